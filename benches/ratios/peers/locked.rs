//! What a catalog is without a snapshot: a map behind a lock.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use almanac::catalog::{Catalog, Entry};

type Map = HashMap<String, Arc<Entry>>;

/// Entries by name.
pub(crate) struct Locked(RwLock<Map>);

impl Locked {
    pub(crate) fn of(catalog: &Catalog) -> Self {
        Self(RwLock::new(map(catalog)))
    }

    /// The length of a tool's body, read under the lock: cheaper than to copy the entry out, as an answer would have
    /// to.
    pub(crate) fn length(&self, name: &str) -> usize {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        map.get(name).map_or(0, |entry| entry.body().len())
    }

    /// Replaces the whole. The lock is held for no longer than it takes to exchange two maps.
    pub(crate) fn swap(&self, catalog: &Catalog) {
        let mut next = map(catalog);
        std::mem::swap(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), &mut next);
    }
}

fn map(catalog: &Catalog) -> Map {
    catalog.iter().map(|entry| (entry.name().to_string(), Arc::clone(entry))).collect()
}
