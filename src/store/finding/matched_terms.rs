//! Which rows have a query's terms, and how often, as places in the cache.

use std::ops::Range;

use fixedbitset::FixedBitSet;

use super::row_cache::RowCache;
use super::search_scope::SearchScope;
use super::term_counts::Count;
use crate::memory::query::WordForm;
use crate::memory::rank::BESIDE;

/// Rows that are looked at by themselves, instead of looking for all that have a term; reading that many one by one
/// takes a millisecond or two.
pub(in crate::store) const FEW: usize = 1000;

/// What a row has of the terms.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Entry {
    pub(in crate::store) index: u32,
    /// Is it in scope? Neighbours of what is may be out of it.
    pub(in crate::store) is_in: bool,
    /// Its first [`Link`], counted from 1.
    first: u32,
}

/// One term that a row has, and where its next is.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Link {
    pub(in crate::store) term: u8,
    pub(in crate::store) count: Count,
    /// The number of its row's entry.
    entry: u32,
    next: u32,
}

/// Of all rows that have one of the terms, what they have.
pub(in crate::store) struct MatchedTerms {
    /// The first row that is looked at.
    first: usize,
    /// For each row from there on its entry, counted from 1; 0 for none.
    entry_of: Vec<u32>,
    pub(in crate::store) entries: Vec<Entry>,
    links: Vec<Link>,
    /// How many rows in scope have each term.
    pub(in crate::store) having: Vec<usize>,
}

impl MatchedTerms {
    /// Of all rows.
    pub(in crate::store) fn new(cache: &RowCache, terms: usize) -> Self {
        Self::within(0..cache.rows().len(), terms)
    }

    /// Of a range of them: others are passed over.
    pub(in crate::store) fn within(rows: Range<usize>, terms: usize) -> Self {
        let entry_of = vec![0; rows.len()];
        Self { first: rows.start, entry_of, entries: Vec::new(), links: Vec::new(), having: vec![0; terms] }
    }

    /// So often more a row has a term. All that a row has of one is added before another's.
    pub(in crate::store) fn add(
        &mut self,
        cache: &RowCache,
        scope: &SearchScope<'_>,
        index: usize,
        term: usize,
        count: Count,
    ) {
        let Some(known) = self.entry_of.get_mut(index.wrapping_sub(self.first)) else { return };
        let mut entry = *known as usize;
        if entry == 0 {
            self.entries.push(Entry { index: index as u32, is_in: scope.has(cache, index), first: 0 });
            entry = self.entries.len();
            *known = entry as u32;
        }
        let number = entry as u32 - 1;
        let entry = &mut self.entries[entry - 1];
        if let Some(link) = self.links.get_mut((entry.first as usize).wrapping_sub(1))
            && usize::from(link.term) == term
        {
            // Another form of the word.
            link.count = link.count.and(count.words, count.speaker);
            return;
        }
        self.links.push(Link { term: term as u8, count, entry: number, next: entry.first });
        entry.first = self.links.len() as u32;
        self.having[term] += usize::from(entry.is_in);
    }

    /// Takes the rows that have a term, or one of its forms, which come in order.
    pub(in crate::store) fn sink(
        &mut self,
        cache: &RowCache,
        scope: &SearchScope<'_>,
        term: usize,
    ) -> impl FnMut(i64, Count) {
        let mut at = 0;
        move |seq, count| {
            at = cache.advance(at, seq);
            if cache.rows().get(at).is_some_and(|row| row.seq == seq) {
                self.add(cache, scope, at, term, count);
            }
        }
    }

    /// Takes all that the rows have of a form.
    pub(in crate::store) fn sink_of_form(
        &mut self,
        cache: &RowCache,
        scope: &SearchScope<'_>,
        form: WordForm<'_>,
    ) -> impl FnMut(i64, Count) {
        let mut sink = self.sink(cache, scope, form.term);
        move |seq, count| {
            if let Some(count) = count_of(form, count) {
                sink(seq, count);
            }
        }
    }

    /// Of each entry, what its terms score together. They are taken in the order in which they were found, term by
    /// term: from row to row each would be somewhere else.
    pub(in crate::store) fn scores(&self, score: impl Fn(usize, &Link) -> f64) -> Vec<f64> {
        let mut scores = vec![0.0; self.entries.len()];
        for link in &self.links {
            let entry = link.entry as usize;
            scores[entry] += score(entry, link);
        }
        scores
    }

    pub(in crate::store) fn links(&self, index: usize) -> impl Iterator<Item = Link> {
        let first = match self.entry_of.get(index.wrapping_sub(self.first)) {
            None | Some(0) => 0,
            Some(entry) => self.entries[*entry as usize - 1].first,
        };
        let link = |at: u32| (at > 0).then(|| self.links[at as usize - 1]);
        std::iter::successors(link(first), move |before| link(before.next))
    }
}

/// How often a row has a form, as far as that counts.
pub(in crate::store) fn count_of(form: WordForm<'_>, count: Count) -> Option<Count> {
    let speaker = if form.is_asked { count.speaker } else { 0 };
    Some(Count { speaker, ..count }).filter(|count| *count != Count::default())
}

/// Some rows, and those beside them.
pub(in crate::store) fn with_beside(cache: &RowCache, rows: impl Iterator<Item = usize>) -> FixedBitSet {
    let mut set = FixedBitSet::with_capacity(cache.rows().len());
    for row in rows {
        set.insert(row);
        set.extend(BESIDE.iter().filter_map(|(step, _)| cache.beside(row, *step)));
    }
    set
}
