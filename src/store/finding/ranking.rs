//! Which memories match a text, and how well: by their words, those of the messages beside them, and by meaning.
//!
//! How rare a term is, and how long a text is for its kind, is counted among what the filter lets through: what others
//! keep changes no score, and a word that everybody says elsewhere is rare in a chat where nobody does.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::iter;
use std::ops::Add;

use fixedbitset::FixedBitSet;
use multiversion::multiversion;

use super::matched_terms::{Link, MatchedTerms};
use super::row_cache::RowCache;
use super::search_scope::{Days, SearchScope};
use crate::memory::named_date::DatePart;
use crate::memory::query::{ScoreSignals, TextQuery};
use crate::memory::rank::{self, BESIDE};
use crate::text::embedding::Packed;

/// Matches by words, best first, that are scored in full.
const POOL: usize = 500;

/// Memories whose meaning is nearest, that match if they are near enough.
const NEAREST: usize = 100;

/// The best by words whose neighbours are scored in full as well, and the best by meaning, of which fewer are meant.
const LEADING: usize = 100;
const NEAREST_LEADING: usize = 10;

/// The best of those that are scored, in whose words a time is looked for if the text asks for one.
const LOOKED_INTO: usize = 100;

/// Terms of a text that says when something is; one of more says this and that, and names some time nearly always.
const TELLS_TIME: u16 = 100;

/// Terms of a query.
pub(in crate::store) const MAX_TERMS: usize = 64;

/// What matches a text.
pub(in crate::store) struct MemoryRanking<'f> {
    scope: SearchScope<'f>,
    terms: MatchedTerms,
    /// Of each term.
    idf: Vec<f64>,
    /// Terms of a row in scope, on average.
    mean_length: f64,
    dates: Vec<(usize, DatePart)>,
    /// Places of what matches.
    matches: FixedBitSet,
    /// The same, the messages next to the best by words, and what was added on a date that is named.
    ranked: FixedBitSet,
    /// Those of them that are scored in full.
    pool: Vec<usize>,
    scores: OnceCell<Vec<(f64, ScoreSignals)>>,
    ordered: OnceCell<Vec<(f64, usize)>>,
}

impl<'f> MemoryRanking<'f> {
    pub(in crate::store) fn of(
        cache: &RowCache,
        scope: SearchScope<'f>,
        mut terms: MatchedTerms,
        query: &TextQuery,
    ) -> Self {
        let (rows, length) = scope.sums(cache);
        for &(term, part) in &query.dates.parts {
            terms.having[term] = terms.having[term].max(scope.dated(cache, part));
        }
        let idf = terms.having.iter().map(|&having| rank::idf(rows, having)).collect();
        let mean_length = (length as f64 / rows.max(1) as f64).max(1.0);
        let (matches, ranked, pool) = (FixedBitSet::new(), FixedBitSet::new(), Vec::new());
        let (scores, ordered) = (OnceCell::new(), OnceCell::new());
        let dates = query.dates.parts.clone();
        let mut ranking = Self { scope, terms, idf, mean_length, dates, matches, ranked, pool, scores, ordered };
        ranking.choose(cache, query);
        ranking
    }

    /// Finds what matches, and what of it is scored in full.
    fn choose(&mut self, cache: &RowCache, query: &TextQuery) {
        let near = self.nearest(cache, query);
        self.matches = FixedBitSet::with_capacity(cache.rows().len());
        self.matches.extend(near.iter().copied());
        let mut best = Vec::new();
        for (entry, score) in self.terms.entries.iter().zip(self.words_of_all(cache)).filter(|(entry, _)| entry.is_in) {
            self.matches.insert(entry.index as usize);
            best.push((score, entry.index as usize));
        }
        let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if best.len() > POOL {
            best.select_nth_unstable_by(POOL, order);
            best.truncate(POOL);
        }
        best.sort_unstable_by(order);
        let leading: Vec<usize> = best.iter().take(LEADING).map(|(_, index)| *index).collect();
        let is_in = |index: &usize| self.scope.has(cache, *index);
        // An answer may have nothing of the question about it but what stands before it.
        let next: Vec<usize> = leading
            .iter()
            .chain(near.iter().take(NEAREST_LEADING))
            .flat_map(|&index| [-1, 1].map(|step| cache.beside(index, step)))
            .flatten()
            .filter(is_in)
            .collect();
        let further: Vec<usize> = leading
            .into_iter()
            .chain(near.iter().copied())
            .flat_map(|index| BESIDE.iter().filter_map(move |(step, _)| cache.beside(index, *step)))
            .filter(|&index| self.is_match(index))
            .collect();
        let of_date = self.of_date(cache, query);
        self.ranked.clone_from(&self.matches);
        self.ranked.extend(next.iter().chain(&of_date).copied());
        let best = best.into_iter().map(|(_, index)| index);
        self.pool = sorted(best.chain(near).chain(next).chain(further).chain(of_date));
    }

    /// Numbers, up to `through`, of those in whose words a time is looked for: the best, as far as is known.
    pub(in crate::store) fn to_look_into(&self, cache: &RowCache, query: &TextQuery, through: i64) -> Vec<i64> {
        let may_tell =
            |&&(_, index): &&(f64, usize)| cache.rows()[index].seq <= through && cache.length(index) <= TELLS_TIME;
        let best = self.ordered(cache, query).iter().filter(may_tell).take(LOOKED_INTO);
        best.map(|(_, index)| cache.rows()[*index].seq).collect()
    }

    /// Scores anew, now that it is known which rows name a time.
    pub(in crate::store) fn with_times(mut self, cache: &RowCache, query: &TextQuery, seqs: &[i64]) -> Self {
        if seqs.is_empty() {
            return self;
        }
        let mut signals: Vec<ScoreSignals> =
            self.scored_pool(cache, query).iter().map(|(_, signals)| *signals).collect();
        for at in seqs.iter().filter_map(|seq| self.pool.binary_search(&cache.index_of(*seq)?).ok()) {
            signals[at].names_time = true;
        }
        let scores = (query.rank)(&signals);
        self.scores = OnceCell::from(scores.into_iter().zip(signals).collect::<Vec<_>>());
        self.ordered = OnceCell::new();
        self
    }

    /// Of what was added on a date that is named, places of the nearest by meaning.
    fn of_date(&self, cache: &RowCache, query: &TextQuery) -> Vec<usize> {
        if !query.dates.is_any_named() {
            return Vec::new();
        }
        let mut days = Days::default();
        let is_of_date = |index: &usize| is_of_date(query, cache.rows()[*index].created_us, &mut days);
        let mut rows: Vec<usize> = self.scope.rows(cache).filter(is_of_date).collect();
        if matches!(self.scope, SearchScope::Plain(_)) && rows.len() > MANY {
            let compared = compared(cache, rows.len(), query);
            rows.retain(|index| compared.binary_search(index).is_ok());
        }
        nearest(cache, query, &rows, f32::MIN)
    }

    /// Places of what is nearest by meaning, if it is near enough.
    fn nearest(&self, cache: &RowCache, query: &TextQuery) -> Vec<usize> {
        let rows: Vec<usize> = match &self.scope {
            SearchScope::Plain(filter) => {
                let compared = compared(cache, cache.sums(filter).0, query);
                compared.into_iter().filter(|&index| cache.passes(index, filter)).collect()
            }
            SearchScope::Rows(..) => self.scope.rows(cache).collect(),
        };
        nearest(cache, query, &rows, query.like)
    }

    /// What matches.
    pub(in crate::store) fn matches(&self) -> &FixedBitSet {
        &self.matches
    }

    /// What is ranked by score: what matches, the messages next to the best, and the nearest of a named date.
    pub(in crate::store) fn ranked(&self) -> &FixedBitSet {
        &self.ranked
    }

    /// Does the filter still let a row through?
    pub(in crate::store) fn is_in(&self, cache: &RowCache, index: usize) -> bool {
        self.scope.has(cache, index)
    }

    fn is_match(&self, index: usize) -> bool {
        self.matches.contains(index)
    }

    /// The same as [`Self::words`] without what stands beside, of each entry.
    fn words_of_all(&self, cache: &RowCache) -> Vec<f64> {
        let shortness = |index: u32| rank::shortness(cache.length(index as usize), self.mean_length);
        let shortness: Vec<f64> = self.terms.entries.iter().map(|entry| shortness(entry.index)).collect();
        self.terms.scores(|entry, Link { term, count, .. }| {
            let frequency = f64::from(count.words) * shortness[entry] + rank::SPEAKER * f64::from(count.speaker);
            self.idf[usize::from(*term)] * rank::saturated(frequency)
        })
    }

    /// BM25F over the row's own words and its speaker's name, and a bit for each term among them; then the same over
    /// those of the messages beside it and of its date as well.
    fn words(&self, cache: &RowCache, index: usize, beside: &Beside) -> (f64, u64, f64) {
        let (mut frequencies, mut matched) = ([0.0_f64; MAX_TERMS], 0_u64);
        let shortness = |index: usize| rank::shortness(cache.length(index), self.mean_length);
        let own = shortness(index);
        for Link { term, count, .. } in self.terms.links(index) {
            frequencies[term as usize] += f64::from(count.words) * own + rank::SPEAKER * f64::from(count.speaker);
            matched |= 1 << term;
        }
        let alone = self.saturated(&frequencies, matched);
        let mut having = matched;
        for ((_, weight), other) in BESIDE.iter().zip(beside) {
            let Some(other) = *other else { continue };
            let short = shortness(other);
            for Link { term, count, .. } in self.terms.links(other) {
                frequencies[term as usize] += weight * f64::from(count.words) * short;
                having |= 1 << term;
            }
        }
        if !self.dates.is_empty() {
            let day = Days::default().of(cache.rows()[index].created_us);
            for &(term, _) in self.dates.iter().filter(|(_, part)| day.is_some_and(|day| part.has(day))) {
                frequencies[term] += rank::DATE;
                having |= 1 << term;
            }
        }
        (alone, matched, self.saturated(&frequencies, having))
    }

    /// What the terms score that have a bit.
    fn saturated(&self, frequencies: &[f64; MAX_TERMS], mut having: u64) -> f64 {
        let mut score = 0.0;
        while having != 0 {
            let term = having.trailing_zeros() as usize;
            score += self.idf[term] * rank::saturated(frequencies[term]);
            having &= having - 1;
        }
        score
    }

    /// What speaks for each of some rows.
    fn signals(&self, cache: &RowCache, query: &TextQuery, rows: &[usize]) -> Vec<ScoreSignals> {
        let besides: Vec<Beside> = rows.iter().map(|&row| beside(cache, row)).collect();
        let compared = rows.iter().zip(&besides).flat_map(|(&row, beside)| iter::once(row).chain(next(beside)));
        let mut similarities =
            Packed::dots(&query.vector, compared.map(|index| &cache.rows()[index].vector)).into_iter().map(f64::from);
        let of_row = |(&index, beside): (&usize, &Beside)| {
            let (lexical, matched, all) = self.words(cache, index, beside);
            ScoreSignals {
                lexical,
                matched,
                near_lexical: all - lexical,
                similarity: similarities.next().unwrap_or_default(),
                // The sum of none would be -0, which is told as it is.
                near_similarity: similarities.by_ref().take(next(beside).count()).fold(0.0, Add::add),
                length: cache.length(index),
                is_of_date: is_of_date(query, cache.rows()[index].created_us, &mut Days::default()),
                names_time: false,
                thread: cache.rows()[index].thread,
            }
        };
        rows.iter().zip(&besides).map(of_row).collect()
    }

    /// The pool with its scores.
    fn scored_pool(&self, cache: &RowCache, query: &TextQuery) -> &[(f64, ScoreSignals)] {
        self.scores.get_or_init(|| {
            let signals = self.signals(cache, query, &self.pool);
            (query.rank)(&signals).into_iter().zip(signals).collect()
        })
    }

    /// The pool by scores, best first.
    fn ordered(&self, cache: &RowCache, query: &TextQuery) -> &[(f64, usize)] {
        self.ordered.get_or_init(|| {
            let scores = self.scored_pool(cache, query).iter().map(|(score, _)| *score);
            let mut best: Vec<(f64, usize)> = scores.zip(self.pool.iter().copied()).collect();
            best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            best
        })
    }

    /// Numbers of those of the pool that have another one's score: their ids decide.
    pub(in crate::store) fn tied(&self, cache: &RowCache, query: &TextQuery) -> Vec<i64> {
        let ties = self.ordered(cache, query).chunk_by(is_tied).filter(|tied| tied.len() > 1);
        ties.flatten().map(|(_, index)| cache.rows()[*index].seq).collect()
    }

    /// Places of the pool, best first, or last; ties in order of their ids.
    pub(in crate::store) fn best(
        &self,
        cache: &RowCache,
        query: &TextQuery,
        descending: bool,
        ids: &HashMap<i64, String>,
    ) -> Vec<usize> {
        let mut best = self.ordered(cache, query).to_vec();
        if !descending {
            best.reverse();
        }
        for tied in best.chunk_by_mut(is_tied).filter(|tied| tied.len() > 1) {
            let id_of = |index: usize| ids.get(&cache.rows()[index].seq).map(String::as_str).unwrap_or_default();
            tied.sort_by_key(|(_, index)| (id_of(*index), *index));
        }
        best.into_iter().map(|(_, index)| index).collect()
    }

    /// Scores of some matches, on the scale of the pool's.
    pub(in crate::store) fn scored(
        &self,
        cache: &RowCache,
        query: &TextQuery,
        rows: &[usize],
    ) -> Vec<(f64, ScoreSignals)> {
        let pool = self.scored_pool(cache, query);
        let known = |index: &usize| self.pool.binary_search(index).ok().map(|at| pool[at]);
        if rows.iter().all(|index| known(index).is_some()) {
            return rows.iter().filter_map(known).collect();
        }
        let mut signals: Vec<ScoreSignals> = pool.iter().map(|(_, signals)| *signals).collect();
        signals.extend(self.signals(cache, query, rows));
        let scores = (query.rank)(&signals);
        scores.into_iter().zip(signals).skip(pool.len()).collect()
    }
}

fn is_tied(a: &(f64, usize), b: &(f64, usize)) -> bool {
    a.0.total_cmp(&b.0).is_eq()
}

/// Of a row the messages at each of the [`BESIDE`].
type Beside = [Option<usize>; BESIDE.len()];

fn beside(cache: &RowCache, index: usize) -> Beside {
    BESIDE.map(|(step, _)| cache.beside(index, step))
}

/// Those of them that it stands next to.
fn next(beside: &Beside) -> impl Iterator<Item = usize> {
    BESIDE.iter().zip(beside).filter(|((step, _), _)| step.abs() == 1).filter_map(|(_, index)| *index)
}

/// Those of `rows` that are nearest by meaning, if they are at least as near as `least`.
fn nearest(cache: &RowCache, query: &TextQuery, rows: &[usize], least: f32) -> Vec<usize> {
    let similarities = Packed::dots(&query.vector, rows.iter().map(|&index| &cache.rows()[index].vector));
    let mut best = Nearest::new(least);
    for (&index, similarity) in rows.iter().zip(similarities) {
        best.take(similarity, index);
    }
    best.into_indices()
}

/// Was what was added then added on a date that the text names?
fn is_of_date(query: &TextQuery, created_us: i64, days: &mut Days) -> bool {
    query.dates.is_any_named() && days.of(created_us).is_some_and(|day| query.dates.has(day))
}

/// Rows from which on a first look decides which are compared exactly; so many are in some milliseconds.
pub(in crate::store) const MANY: usize = 50_000;

/// Rows that are compared exactly then.
const COMPARED: usize = 4000;

/// Which rows are to be compared, where so many are wanted: all, or of very many those whose signs differ from the
/// query's in no more places than those of the [`COMPARED`] nearest do.
fn compared(cache: &RowCache, wanted: usize, query: &TextQuery) -> Vec<usize> {
    let signs = cache.signs();
    if signs.len() <= MANY {
        return (0..signs.len()).collect();
    }
    let distances = distances(signs, query.vector.signs());
    let mut at_distance = [0_usize; u64::BITS as usize + 1];
    for distance in &distances {
        at_distance[usize::from(*distance)] += 1;
    }
    // Others than the wanted ones are among them.
    let enough = COMPARED.saturating_mul(signs.len() / wanted.max(1));
    let mut within = 0;
    let reached = at_distance.iter().position(|rows| {
        within += rows;
        within >= enough
    });
    let most = reached.unwrap_or(at_distance.len());
    distances
        .iter()
        .enumerate()
        .filter(|(_, distance)| usize::from(**distance) <= most)
        .map(|(index, _)| index)
        .collect()
}

/// In how many places each differs. Processors that count bits, or many bytes at once, take a tenth of the time.
#[multiversion(targets("x86_64+avx2+popcnt", "x86_64+popcnt"))]
fn distances(signs: &[u64], wanted: u64) -> Vec<u8> {
    signs.iter().map(|signs| (signs ^ wanted).count_ones() as u8).collect()
}

/// In order, each once.
fn sorted(indices: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut sorted: Vec<usize> = indices.collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

/// The [`NEAREST`] that are near enough, ties to the earlier row; kept sorted only when it overflows.
#[derive(Debug)]
struct Nearest {
    rows: Vec<(f32, usize)>,
    /// So near one must be.
    least: f32,
    is_full: bool,
}

impl Nearest {
    fn new(like: f32) -> Self {
        Self { rows: Vec::new(), least: like, is_full: false }
    }

    fn take(&mut self, similarity: f32, index: usize) {
        // Rows come in order, so that one as near as the last that is kept comes after it.
        if similarity < self.least || self.is_full && similarity <= self.least {
            return;
        }
        self.rows.push((similarity, index));
        if self.rows.len() >= 2 * NEAREST {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        if self.rows.len() >= NEAREST {
            self.rows.truncate(NEAREST);
            (self.least, self.is_full) = (self.rows[NEAREST - 1].0, true);
        }
    }

    fn into_indices(mut self) -> Vec<usize> {
        self.cut();
        self.rows.into_iter().map(|(_, index)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::row_cache::CachedRow;
    use super::super::term_counts::Count;
    use super::*;
    use crate::store::suite::memories::{KIND, all, text};

    proptest! {
        /// Taken term by term, rows score what each does by itself.
        #[test]
        fn all_score_what_each_does(
            lengths in prop::collection::vec(1_u16..20, 1..12),
            said in prop::collection::btree_map((0_usize..3, 0_usize..12), (1_u32..5, 0_u32..=3), 0..24),
        ) {
            let mut cache = RowCache::default();
            for (seq, length) in (1..).zip(&lengths) {
                let (thread, position, deleted, vector) = (1, seq as u64, 0, Packed::ZERO);
                let (created_us, length, kind) = (seq, *length, KIND);
                cache.put(CachedRow { seq, created_us, thread, position, length, kind, deleted, vector });
            }
            let filter = all(KIND).filter;
            let (scope, mut terms) = (SearchScope::Plain(&filter), MatchedTerms::new(&cache, 3));
            let said: BTreeMap<_, _> = said.into_iter().filter(|((_, row), _)| *row < lengths.len()).collect();
            for ((term, row), (words, speaker)) in said {
                terms.add(&cache, &scope, row, term, Count { words, speaker });
            }
            let ranking = MemoryRanking::of(&cache, scope, terms, &text(&["a", "b", "c"]));
            for (entry, score) in ranking.terms.entries.iter().zip(ranking.words_of_all(&cache)) {
                let (alone, ..) = ranking.words(&cache, entry.index as usize, &[None; BESIDE.len()]);
                prop_assert!((score - alone).abs() < 1e-9, "{score} {alone}");
            }
        }
    }

    /// In whichever order they are asked for, and at the ends of a thread as well.
    #[test]
    fn each_has_its_own_likeness_and_that_of_its_neighbours() {
        let said = ["tea with milk", "the price of oil", "a walk in the rain", "compile errors"];
        let vectors = said.map(|said| Packed::from(&text(&[said]).vector));
        let mut cache = RowCache::default();
        for (seq, vector) in (1..).zip(vectors) {
            let (created_us, thread, position, length, deleted) = (seq, 1, seq as u64, 3, 0);
            cache.put(CachedRow { seq, created_us, thread, position, length, kind: KIND, deleted, vector });
        }
        let alone = CachedRow { seq: 5, thread: 0, ..cache.rows()[0] };
        cache.put(alone);
        let (filter, query) = (all(KIND).filter, text(&["oil", "tea"]));
        let terms = MatchedTerms::new(&cache, 2);
        let ranking = MemoryRanking::of(&cache, SearchScope::Plain(&filter), terms, &query);
        let of = vectors.map(|vector| f64::from(vector.dot(&query.vector)));
        let found = ranking.signals(&cache, &query, &[2, 0, 4, 3, 1]);
        assert!(found[2].near_similarity.is_sign_positive(), "of none it is 0, not -0");
        let found: Vec<_> = found.iter().map(|of| (of.similarity, of.near_similarity)).collect();
        assert_eq!(
            found,
            [(of[2], of[1] + of[3]), (of[0], of[1]), (of[0], 0.0), (of[3], of[2]), (of[1], of[0] + of[2])]
        );
    }

    #[test]
    fn the_nearest_are_kept_and_ties_go_to_the_earlier() {
        let mut nearest = Nearest::new(0.25);
        for index in 0..1000 {
            nearest.take(if index % 2 == 0 { 0.5 } else { 0.2 }, index);
        }
        nearest.take(0.9, 1000);
        let indices = nearest.into_indices();
        assert_eq!((indices.len(), indices[0], indices[1], indices[NEAREST - 1]), (NEAREST, 1000, 0, 2 * NEAREST - 4));
    }
}
