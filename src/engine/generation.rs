//! One generation of everything that comes from files: what a request sees from beginning to end.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::catalog::check::{self, SetReview};
use crate::catalog::entry::{Facet, FacetFilter};
use crate::catalog::load::Loaded;
use crate::catalog::plan::{self, PlannedCall, Review};
use crate::catalog::relations::{self, Relations};
use crate::catalog::{Catalog, Entry};
use crate::qualify::{Categories, Index, Ranking, Usage};
use crate::suggest::Presets;

#[derive(Debug)]
pub struct Generation {
    number: u64,
    label: Bytes,
    loaded: Loaded,
    presets: Arc<Presets>,
    categories: Arc<Categories>,
    loaded_at: SystemTime,
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
pub struct ListedTools {
    /// The tools, each with its score in a ranked list.
    pub items: Vec<(Arc<Entry>, Option<f32>)>,
    /// How many there are on all pages.
    pub total: usize,
    /// Where this page ended, if it is not the last.
    pub next: Option<Cursor>,
}

impl ToolFilter {
    fn predicate(&self) -> impl Fn(&Entry) -> bool + use<> {
        let wanted: Vec<FacetFilter> =
            self.facets.iter().map(|(facet, value)| FacetFilter::new(*facet, value)).collect();
        move |entry| wanted.iter().all(|wanted| entry.has(wanted))
    }
}

/// Summaries on one page, in bytes: a page of the longest documents must not fill the memory of many connections.
const PAGE_BYTES: usize = 1 << 20;

/// A page that is being filled.
struct Page {
    items: Vec<(Arc<Entry>, Option<f32>)>,
    limit: usize,
    bytes: usize,
}

impl Page {
    fn new(filter: &ToolFilter) -> Self {
        Self { items: Vec::new(), limit: filter.limit, bytes: 0 }
    }

    /// Is there room? Counts it as taken. The first always has some.
    fn has_room_for(&mut self, entry: &Entry) -> bool {
        self.bytes += entry.summary().len();
        self.items.is_empty() || self.items.len() < self.limit && self.bytes <= PAGE_BYTES
    }
}

impl Generation {
    pub(super) fn new(number: u64, loaded: Loaded, presets: Arc<Presets>, categories: Arc<Categories>) -> Self {
        let label = Bytes::from(number.to_string());
        Self { number, label, loaded, presets, categories, loaded_at: SystemTime::now() }
    }

    /// The generation after this one; with the same number it is the same one, whose diagnostics may differ.
    pub(super) fn successor(
        &self,
        number: u64,
        loaded: Loaded,
        presets: Arc<Presets>,
        categories: Arc<Categories>,
    ) -> Self {
        let fresh = Self::new(number, loaded, presets, categories);
        if number == self.number { Self { loaded_at: self.loaded_at, ..fresh } } else { fresh }
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

    /// The presets whose tools the catalog has.
    pub fn presets(&self) -> &Presets {
        &self.presets
    }

    /// Is there a document of that category?
    pub fn has_category(&self, name: &str) -> bool {
        self.catalog().iter().any(|entry| entry.category() == name)
    }

    /// The categories and networks.
    pub fn categories(&self) -> &Arc<Categories> {
        &self.categories
    }

    /// When it was published.
    pub fn loaded_at(&self) -> SystemTime {
        self.loaded_at
    }

    pub fn catalog(&self) -> &Catalog {
        &self.loaded.catalog
    }

    /// What is this tool?
    pub fn tool(&self, name: &str) -> Option<&Arc<Entry>> {
        self.loaded.catalog.get(name)
    }

    /// What tools exist, by name?
    pub(super) fn tools(&self, filter: &ToolFilter) -> ListedTools {
        let catalog = self.catalog();
        let passes = filter.predicate();
        let total =
            if filter.facets.is_empty() { catalog.len() } else { catalog.iter().filter(|entry| passes(entry)).count() };
        let after = match &filter.cursor {
            Some(Cursor::Name(name)) => name.as_str(),
            _ => "",
        };
        let mut rest = catalog.after(after).filter(|entry| passes(entry)).peekable();
        let mut page = Page::new(filter);
        while rest.peek().is_some_and(|entry| page.has_room_for(entry)) {
            page.items.extend(rest.next().map(|entry| (Arc::clone(entry), None)));
        }
        let last = page.items.last().map(|(entry, _)| Cursor::Name(entry.name().to_string()));
        ListedTools { total, next: rest.next().and(last), items: page.items }
    }

    /// What tools match the query, as selection ranks them? Each has the probability that it is needed.
    pub(super) fn ranked(&self, index: &Index, usage: &Usage, query: &str, filter: &ToolFilter) -> ListedTools {
        let passes = filter.predicate();
        let message = index.message(query);
        let mut ranking = Ranking::new(index, &message, usage);
        let is_current = Arc::ptr_eq(index.catalog(), &self.loaded.catalog);
        let matching = ranking.matching();
        let mut ranked = Vec::with_capacity(matching.len());
        ranked.extend(matching.into_iter().filter_map(|number| {
            let indexed = index.entry(number as usize);
            let entry = if is_current { indexed } else { self.tool(indexed.name())? };
            passes(entry).then_some((entry, number as usize))
        }));
        let start = match filter.cursor {
            Some(Cursor::Rank(start)) => start.min(ranked.len()),
            _ => 0,
        };
        let mut page = Page::new(filter);
        page.items.reserve(filter.limit.min(ranked.len() - start));
        for &(entry, number) in &ranked[start..] {
            if !page.has_room_for(entry) {
                break;
            }
            page.items.push((Arc::clone(entry), Some(ranking.confidence(number))));
        }
        let end = start + page.items.len();
        ListedTools { total: ranked.len(), next: (end < ranked.len()).then_some(Cursor::Rank(end)), items: page.items }
    }

    /// What goes with this tool, and what does not?
    pub fn relations(&self, name: &str) -> Option<Relations> {
        self.tool(name).map(|entry| relations::of(self.catalog(), entry))
    }

    /// Is this set of tools a good one, for a caller that has these variables and calls by that provider?
    pub fn check(&self, tools: &[String], env_vars: &[String], provider: Option<&str>) -> SetReview {
        check::check(self.catalog(), tools, env_vars, provider)
    }

    /// Is this sequence of calls a good one for the goal, after those that the session made earlier?
    pub fn review(&self, steps: &[PlannedCall<'_>], earlier: &[impl AsRef<str>], goal: &str) -> Review {
        plan::review(self.catalog(), steps, earlier, goal)
    }

    /// Which names may have been meant by one that is not there?
    pub fn near_names(&self, name: &str) -> Vec<String> {
        check::near_names(self.catalog(), name)
    }
}
