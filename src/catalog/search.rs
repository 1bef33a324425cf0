//! Ranks the tools of a catalog for a query.

use std::sync::Arc;

use super::{Catalog, Entry};
use crate::text::bm25::{Field, Index};

/// Name, description, use cases, category with capabilities and keywords; weights fitted on nine public catalogs.
const FIELDS: [Field; 4] = [
    Field { weight: 5.0, b: 0.9 },
    Field { weight: 2.0, b: 0.6 },
    Field { weight: 2.0, b: 0.6 },
    Field { weight: 2.0, b: 0.9 },
];

/// An index over one catalog.
#[derive(Debug)]
pub struct Search {
    catalog: Arc<Catalog>,
    entries: Box<[Arc<Entry>]>,
    index: Index,
}

impl Search {
    /// Indexes all tools of `catalog`.
    pub fn build(catalog: &Arc<Catalog>) -> Self {
        let entries: Box<[Arc<Entry>]> = catalog.iter().cloned().collect();
        let texts = entries.iter().map(|entry| {
            let document = entry.document();
            let scenes = document.use_cases.iter().flat_map(|case| [&case.title, &case.when_to_use, &case.example]);
            let scenes: Vec<&str> = scenes.map(String::as_str).collect();
            [
                (0, document.name.clone()),
                (1, format!("{} {}", document.title, document.description)),
                (2, scenes.join(" ")),
                (
                    3,
                    format!(
                        "{} {} {}",
                        document.category,
                        document.capabilities.join(" "),
                        document.keywords.join(" ")
                    ),
                ),
            ]
        });
        let texts: Vec<[(usize, String); 4]> = texts.collect();
        let index = Index::build(
            &FIELDS,
            texts.iter().map(|fields| fields.iter().map(|(field, text)| (*field, text.as_str()))),
        );
        Self { catalog: Arc::clone(catalog), entries, index }
    }

    /// Is it the index of this very catalog?
    pub fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        Arc::ptr_eq(&self.catalog, catalog)
    }

    /// Tools that share a term with `query`, best first with their scores, ties by name.
    pub fn rank(&self, query: &str) -> impl Iterator<Item = (&Arc<Entry>, f32)> {
        self.index.rank(query).into_iter().map(|(number, score)| (&self.entries[number as usize], score))
    }
}
