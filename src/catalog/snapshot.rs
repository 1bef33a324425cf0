//! The catalog as readers hold it: immutable, whole, sharing with its predecessor what did not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;

use super::Entry;
use super::table::NameTable;

/// All tools at one moment.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    table: NameTable,
    order: OrdMap<Arc<str>, Arc<Entry>>,
    hash: u128,
}

impl Catalog {
    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.table.get(name)
    }

    /// All tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.order.values()
    }

    /// Tools whose name comes after `name`, by name.
    pub fn after(&self, name: &str) -> impl Iterator<Item = &Arc<Entry>> {
        let start = (std::ops::Bound::Excluded(Arc::from(name)), std::ops::Bound::Unbounded::<Arc<str>>);
        self.order.range(start).map(|(_, entry)| entry)
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Is there no tool?
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A hash of the content; equal for equal sets of documents, whatever files they stand in.
    pub fn hash(&self) -> String {
        format!("{:032x}", self.hash)
    }

    /// The same catalog with `entry` in it, in place of one of the same name.
    pub(super) fn insert(&mut self, entry: Arc<Entry>) {
        if let Some(old) = self.order.insert(Arc::clone(entry.name()), Arc::clone(&entry)) {
            self.hash = self.hash.wrapping_sub(old.digest());
        }
        self.hash = self.hash.wrapping_add(entry.digest());
        self.table.insert(entry);
    }

    /// As [`Catalog::insert`], for tests of other rooms.
    #[cfg(test)]
    pub(crate) fn add(&mut self, entry: Arc<Entry>) {
        self.insert(entry);
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(old) = self.order.remove(name) {
            self.hash = self.hash.wrapping_sub(old.digest());
            self.table.remove(name);
        }
    }

    /// Makes this catalog hold exactly `entries`, touching only what differs. Returns whether anything did.
    pub(super) fn become_exactly(&mut self, entries: &BTreeMap<&str, &Arc<Entry>>) -> bool {
        let gone: Vec<Arc<str>> =
            self.order.keys().filter(|name| !entries.contains_key(&***name)).map(Arc::clone).collect();
        for name in &gone {
            self.remove(name);
        }
        let mut changed = !gone.is_empty();
        for (name, entry) in entries {
            if !self.get(name).is_some_and(|held| Arc::ptr_eq(held, entry)) {
                self.insert(Arc::clone(entry));
                changed = true;
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::super::document::ToolMetadata;
    use super::*;

    fn entry(name: &str, title: &str) -> Arc<Entry> {
        let document = ToolMetadata { name: name.into(), title: title.into(), ..ToolMetadata::default() };
        Arc::new(Entry::new(&document, Path::new(name).into()))
    }

    proptest! {
        /// Whatever is saved and deleted, a catalog equals one built afresh, and its predecessor is unmoved.
        #[test]
        fn equals_a_map(steps in prop::collection::vec(("[a-z]{1,2}", prop::option::of("[a-c]")), 0..60)) {
            let mut catalog = Catalog::default();
            let mut model: BTreeMap<String, Arc<Entry>> = BTreeMap::new();
            let mut earlier = Vec::new();
            for (name, title) in steps {
                earlier.push((catalog.clone(), catalog.iter().map(|entry| entry.digest()).collect::<Vec<_>>()));
                if let Some(title) = title {
                    let entry = entry(&name, &title);
                    catalog.insert(Arc::clone(&entry));
                    model.insert(name, entry);
                } else {
                    catalog.remove(&name);
                    model.remove(&name);
                }
            }
            let mut fresh = Catalog::default();
            fresh.become_exactly(&model.iter().map(|(name, entry)| (name.as_str(), entry)).collect());
            prop_assert_eq!(catalog.hash(), fresh.hash());
            prop_assert_eq!(catalog.len(), model.len());
            let names: Vec<_> = catalog.iter().map(|entry| entry.name().to_string()).collect();
            prop_assert_eq!(names, model.keys().cloned().collect::<Vec<_>>());
            for (name, entry) in &model {
                prop_assert!(Arc::ptr_eq(catalog.get(name).unwrap(), entry));
            }
            for (snapshot, digests) in earlier {
                prop_assert_eq!(snapshot.iter().map(|entry| entry.digest()).collect::<Vec<_>>(), digests);
            }
        }
    }

    #[test]
    fn an_unchanged_catalog_says_so() {
        let (a, b) = (entry("a", "1"), entry("b", "1"));
        let both = BTreeMap::from([("a", &a), ("b", &b)]);
        let mut catalog = Catalog::default();
        assert!(catalog.become_exactly(&both));
        assert!(!catalog.become_exactly(&both));
        assert_eq!(catalog.after("a").map(|entry| entry.name().to_string()).collect::<Vec<_>>(), ["b"]);
    }
}
