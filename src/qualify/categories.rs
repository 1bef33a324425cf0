//! The groups in which tools are offered, and the networks that messages speak of: `categories.yaml`.
//!
//! An agent's user thinks in groups ("the Polymarket tools"), and a client shows them. The file says which there are,
//! by what names a message may call them and which tools they hold; a document's category that the file does not know
//! is a category all the same, with its name and nothing more. Pure: read from text, compared with a catalog by
//! [`CategoryIndex`].

pub mod file;
mod index;
mod phrase;
mod word_bits;

use std::collections::BTreeSet;
use std::path::Path;

pub use index::CategoryIndex;
pub(super) use index::Mention;

use crate::strict::{Diagnostic, Fields, FromNode, Limits, Violation, load};

/// The file that ships.
const SHIPPED: &str = include_str!("../../config/categories.yaml");

/// Largest file, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// Longest name of a category or network, in characters; as of a tool.
const MAX_NAME: usize = 128;

/// Categories and networks as they are configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromNode)]
#[node(default, check = check)]
pub struct Categories {
    /// In the file's order.
    pub categories: Vec<Category>,
    /// In the file's order.
    pub networks: Vec<Network>,
}

/// A group of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromNode)]
pub struct Category {
    /// Its name on the wire.
    #[node(check = check_name)]
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What a message calls it, besides its name. Written with capitals, they count; its name written with capitals is
    /// what it is called then.
    #[node(default)]
    pub aliases: Vec<String>,
    /// Words that speak for it.
    #[node(default)]
    pub keywords: Vec<String>,
    /// Is it offered whatever the message is?
    #[node(default)]
    pub always: bool,
    /// Its tools serve these networks only: without one of them named, similarity alone does not qualify it.
    #[node(default)]
    pub networks: Vec<String>,
    /// Documents of these categories belong to it; its own name by default.
    #[node(default)]
    pub categories: Vec<String>,
    /// These tools belong to it.
    #[node(default)]
    pub tools: Vec<String>,
    /// Documents in folders of these names belong to it.
    #[node(default)]
    pub families: Vec<String>,
}

/// A network that messages speak of.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromNode)]
pub struct Network {
    /// Its name on the wire.
    #[node(check = check_name)]
    pub name: String,
    /// What a message calls it, besides its name. Written with capitals, they count.
    #[node(default)]
    pub aliases: Vec<String>,
}

impl Categories {
    pub fn shipped() -> Self {
        Self::parse(Path::new("categories.yaml"), SHIPPED.as_bytes()).expect("a test reads the file that ships")
    }

    /// Reads a file's content, or says all that is wrong with it.
    pub fn parse(path: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        load::parse(path, content, &Limits::of_bytes(MAX_FILE_BYTES))
    }
}

/// Names stand once, and networks that are served are listed.
fn check(file: &Categories, fields: &mut Fields<'_>) {
    let Categories { categories, networks } = file;
    for name in repeated(networks.iter().map(|network| &network.name)) {
        fields.bad_value("networks", format!("the network `{name}` stands twice"));
    }
    for name in repeated(categories.iter().map(|category| &category.name)) {
        fields.bad_value("categories", format!("the category `{name}` stands twice"));
    }
    let known: BTreeSet<&str> = networks.iter().map(|network| network.name.as_str()).collect();
    for category in categories {
        for network in category.networks.iter().filter(|network| !known.contains(network.as_str())) {
            let message =
                format!("the category `{}` serves the network `{network}`, which is not listed", category.name);
            fields.bad_value("categories", message);
        }
    }
}

fn repeated<'n>(names: impl Iterator<Item = &'n String>) -> Vec<&'n String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

/// A name that can stand on the wire.
fn check_name(name: &str) -> Result<(), Violation> {
    let fits = (1..=MAX_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fits {
        Ok(())
    } else {
        Err(format!("a name has 1 to {MAX_NAME} characters, none of them a control character").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_has_the_vocabularies() {
        let shipped = Categories::shipped();
        let names: Vec<&str> = shipped.categories.iter().map(|category| category.name.as_str()).collect();
        let expected = [
            "required",
            "solana",
            "ethereum",
            "bsc",
            "polygon",
            "hedera",
            "base",
            "ordiscan",
            "coinglass",
            "defillama",
            "advanced-search",
            "lunarcrush",
            "messari",
            "swell",
            "polymarket",
            "cross-chain",
            "opensea",
        ];
        assert_eq!(names[..expected.len()], expected);
        let always: Vec<&str> = shipped
            .categories
            .iter()
            .filter(|category| category.always)
            .map(|category| category.name.as_str())
            .collect();
        assert_eq!(always, ["required"]);
        let networks: Vec<&str> = shipped.networks.iter().map(|network| network.name.as_str()).collect();
        assert_eq!(networks, ["solana", "ethereum", "bsc", "polygon", "hedera", "bitcoin", "base"]);
    }

    fn check(text: &str, expected: &[(&str, usize)]) {
        let faults = Categories::parse(Path::new("c.yaml"), text.as_bytes()).err().unwrap_or_default();
        let found: Vec<(&str, usize)> = faults.iter().map(|fault| (fault.code.as_str(), fault.line)).collect();
        assert_eq!(found, expected, "{faults:#?} in {text}");
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        check("", &[]);
        check("categories: []", &[]);
        check("categories:\n- {name: a, description: d}\n- {name: a, description: d}", &[("bad-value", 2)]);
        check("categories:\n- {name: a, description: d, networks: [mars]}", &[("bad-value", 2)]);
        check(
            "networks:\n- {name: a, alias: [x]}\ncategories:\n- {name: '', description: 1}",
            &[("unknown-key", 2), ("bad-value", 4), ("wrong-type", 4)],
        );
    }
}
