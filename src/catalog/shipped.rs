//! The names of the shipped documents, of which people keep those they want.

use std::collections::BTreeSet;
use std::sync::LazyLock;

static NAMES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| include_str!("shipped.txt").lines().collect());

/// Does a tool of that name ship? Then a relation with it is no mistake where it is not there.
pub(super) fn ships(name: &str) -> bool {
    NAMES.contains(name)
}

#[cfg(test)]
mod tests {
    use super::super::load::{LoadOptions, load};
    use super::*;

    #[test]
    fn the_names_are_those_of_the_documents() {
        let catalog = load(LoadOptions::directory(concat!(env!("CARGO_MANIFEST_DIR"), "/tool_metadata"))).catalog;
        let names: BTreeSet<&str> = catalog.iter().map(|entry| &**entry.name()).collect();
        assert_eq!(*NAMES, names, "src/catalog/shipped.txt lists the names of tool_metadata/");
    }
}
