//! One generation of everything that comes from files: what a request sees from beginning to end.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;

use crate::catalog::check::{self, Verdict};
use crate::catalog::entry::{Facet, Wanted};
use crate::catalog::load::Loaded;
use crate::catalog::relations::{self, Relations};
use crate::catalog::search::Search;
use crate::catalog::{Catalog, Entry};

/// A generation. Immutable; the search index is made when it is first asked for.
#[derive(Debug)]
pub struct Generation {
    number: u64,
    label: Bytes,
    loaded: Loaded,
    loaded_at: SystemTime,
    search: OnceLock<Search>,
}

/// Which tools to list. An empty filter lists all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Facets that a tool must have, all of them.
    pub facets: Vec<(Facet, String)>,
    /// Rank by this query, and list only what matches it.
    pub query: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Where the page before ended.
    pub cursor: Option<Cursor>,
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    /// After this name, in a list by name.
    Name(String),
    /// After so many, in a ranked list.
    Rank(usize),
}

/// A page of tools.
#[derive(Debug)]
pub struct Listed {
    /// The tools, each with its score in a ranked list.
    pub items: Vec<(Arc<Entry>, Option<f32>)>,
    /// How many there are on all pages.
    pub total: usize,
    /// Where this page ended, if it is not the last.
    pub next: Option<Cursor>,
}

impl Generation {
    pub(super) fn new(number: u64, loaded: Loaded) -> Self {
        let label = Bytes::from(number.to_string());
        Self { number, label, loaded, loaded_at: SystemTime::now(), search: OnceLock::new() }
    }

    /// Its number, 0 before the first catalog.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its number in decimal.
    pub fn label(&self) -> &Bytes {
        &self.label
    }

    /// The catalog and how it came out.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// When it was published.
    pub fn loaded_at(&self) -> SystemTime {
        self.loaded_at
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.loaded.catalog
    }

    /// What is this tool?
    pub fn tool(&self, name: &str) -> Option<&Arc<Entry>> {
        self.loaded.catalog.get(name)
    }

    /// What tools exist?
    pub fn tools(&self, filter: &ToolFilter) -> Listed {
        let wanted: Vec<Wanted> = filter.facets.iter().map(|(facet, value)| Wanted::new(*facet, value)).collect();
        let passes = |entry: &Entry| wanted.iter().all(|wanted| entry.has(wanted));
        match &filter.query {
            Some(query) => self.ranked(query, filter, passes),
            None => self.by_name(filter, passes),
        }
    }

    fn by_name(&self, filter: &ToolFilter, passes: impl Fn(&Entry) -> bool) -> Listed {
        let catalog = self.catalog();
        let total =
            if filter.facets.is_empty() { catalog.len() } else { catalog.iter().filter(|entry| passes(entry)).count() };
        let after = match &filter.cursor {
            Some(Cursor::Name(name)) => name.as_str(),
            _ => "",
        };
        let mut rest = catalog.after(after).filter(|entry| passes(entry));
        let items: Vec<_> = rest.by_ref().take(filter.limit).map(|entry| (Arc::clone(entry), None)).collect();
        let last = items.last().map(|(entry, _)| Cursor::Name(entry.name().to_string()));
        Listed { total, next: rest.next().and(last), items }
    }

    fn ranked(&self, query: &str, filter: &ToolFilter, passes: impl Fn(&Entry) -> bool) -> Listed {
        let search = self.search.get_or_init(|| Search::build(self.catalog()));
        let ranked: Vec<_> = search.rank(query).filter(|(entry, _)| passes(entry)).collect();
        let start = match filter.cursor {
            Some(Cursor::Rank(start)) => start.min(ranked.len()),
            _ => 0,
        };
        let end = start.saturating_add(filter.limit).min(ranked.len());
        let items = ranked[start..end].iter().map(|(entry, score)| (Arc::clone(entry), Some(*score))).collect();
        Listed { items, total: ranked.len(), next: (end < ranked.len()).then_some(Cursor::Rank(end)) }
    }

    /// What goes with this tool, and what does not?
    pub fn relations(&self, name: &str) -> Option<Relations> {
        self.tool(name).map(|entry| relations::of(self.catalog(), entry))
    }

    /// Is this set of tools a good one?
    pub fn check(&self, tools: &[String], env_vars: &[String]) -> Verdict {
        check::check(self.catalog(), tools, env_vars)
    }

    /// Which names may have been meant by one that is not there?
    pub fn near_names(&self, name: &str) -> Vec<String> {
        check::near_names(self.catalog(), name)
    }
}
