//! A page of a search by score.

use std::collections::HashMap;

use super::ranking::MemoryRanking;
use super::row_cache::RowCache;
use crate::memory::query::{Begun, Place, ScoreSignals, Search, TextQuery};

/// Ranked memories that the pages of one search go through in the order of their first page. What matches beyond them
/// follows, newest first.
const MAX_RANKED: usize = 500;

/// A memory of the page, the place after it, and how well it matches.
pub(in crate::store) struct ScoredRow {
    pub(in crate::store) seq: i64,
    pub(in crate::store) place: Place,
    pub(in crate::store) score: f64,
    pub(in crate::store) signals: ScoreSignals,
}

/// What is on a page.
pub(in crate::store) struct ScorePage {
    pub(in crate::store) rows: Vec<ScoredRow>,
    /// How many there are on all pages.
    pub(in crate::store) total: u64,
    /// The numbers of all that are ranked.
    pub(in crate::store) ranked: Vec<i64>,
}

impl ScorePage {
    /// All that matches a text, best first, with what stands next to the best: those in the order of their scores, then
    /// the others, newest first. `ids` are those of [`MemoryRanking::tied`].
    pub(in crate::store) fn of(
        cache: &RowCache,
        ranking: &MemoryRanking<'_>,
        search: &Search,
        query: &TextQuery,
        begun: Begun,
        ids: &HashMap<i64, String>,
    ) -> Self {
        let seq_of = |index: usize| cache.rows()[index].seq;
        let (ranked, mut shown, last) = if let Some(Place::Ranked { rows, shown, last }) = &search.place {
            (rows.clone(), *shown, *last)
        } else {
            let mut best = ranking.best(cache, query, search.descending, ids);
            best.truncate(MAX_RANKED);
            (best.into_iter().map(seq_of).collect(), 0, None)
        };
        let end = cache.rows().partition_point(|row| row.seq <= begun.through);
        let total = ranking.ranked().count_ones(..end);
        let mut left_out = search.offset;
        let mut page: Vec<(usize, Place)> = Vec::new();
        for &seq in ranked.get(shown..).unwrap_or_default() {
            shown += 1;
            let Some(index) = cache.index_of(seq).filter(|&index| ranking.is_in(cache, index)) else { continue };
            if left_out > 0 {
                left_out -= 1;
            } else if page.len() < search.limit {
                page.push((index, Place::Ranked { rows: Vec::new(), shown, last: None }));
            } else {
                break;
            }
        }
        if page.len() < search.limit {
            let mut known = ranked.clone();
            known.sort_unstable();
            let rest = ranking.ranked().ones().rev().filter(|&index| {
                let seq = seq_of(index);
                seq <= begun.through && last.is_none_or(|last| seq < last) && known.binary_search(&seq).is_err()
            });
            for index in rest.skip(left_out).take(search.limit - page.len()) {
                page.push((index, Place::Ranked { rows: Vec::new(), shown: ranked.len(), last: Some(seq_of(index)) }));
            }
        }
        let indices: Vec<usize> = page.iter().map(|(index, _)| *index).collect();
        let scores = ranking.scored(cache, query, &indices);
        let rows = page.into_iter().zip(scores).map(|((index, place), (score, signals))| ScoredRow {
            seq: seq_of(index),
            place,
            score,
            signals,
        });
        Self { rows: rows.collect(), total: total as u64, ranked }
    }
}
