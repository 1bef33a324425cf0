//! How well candidates match a text: by words and by meaning, each with a share of what stands beside a message.
//!
//! An answer often has none of the words of a question about it; the turns before it have them. So the messages beside
//! one are fields of it: what they say counts as said less often, and saturates with its own words (BM25F; Robertson &
//! Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3.6). Words and meaning have
//! scales of their own; each is divided by its spread among the candidates, which is what adding z-scores comes to. The
//! best of a thread speaks for the others: what is asked about is mostly talked of in one.

use foldhash::{HashMap, HashMapExt};

use super::query::ScoreSignals;

/// Weight of a term in the speaker's name; in the message it is 1.
pub const SPEAKER: f64 = 3.0;

/// How many positions further on a message stands in the thread, and what its terms weigh.
pub const BESIDE: [(i64, f64); 4] = [(-1, 0.5), (1, 0.25), (-2, 0.2), (2, 0.1)];

/// Weight of a term that the date has on which a memory was added.
pub const DATE: f64 = 0.5;

/// How soon repeats of a term count no more.
const SATURATION: f64 = 0.8;

/// Length normalisation, 0 (none) to 1 (full).
const LENGTH: f64 = 0.5;

/// Weight of the meaning; that of the words is 1. This and the three that follow were chosen on LoCoMo
/// (see [`THREAD`]).
const MEANING: f64 = 1.3;

/// What the meaning of each of the two messages beside one lends it.
const NEAR: f64 = 0.1;

/// Terms at which the meaning of a text counts half: the vector of a few words is near to this or that by chance.
const HALF_MEANT: f64 = 6.0;

/// What it adds that one was added on a date that is named.
const OF_DATE: f64 = 2.0;

/// What it adds that one names a time where the text asks for one; its thread is lent none of it. Chosen on LoCoMo,
/// where .8 to 2.4 do nearly as well.
const NAMES_TIME: f64 = 2.0;

/// What the score of a thread's best lends each of its messages. Chosen on LoCoMo (Maharana et al., "Evaluating Very
/// Long-Term Conversational Memory of LLM Agents", 2024), where .2 to .6 do nearly as well.
const THREAD: f64 = 0.4;

/// Similarity from which on a text means something similar: of unrelated texts one in twenty is above, of requests and
/// what serves them nine in ten.
pub const LIKE: f32 = 0.25;

/// The inverse document frequency of a term that `having` of `all` have; above 0.
pub fn idf(all: usize, having: usize) -> f64 {
    let (all, having) = (all.max(having) as f64, having as f64);
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}

/// What a term counts in a message of `length` terms, where the mean is `mean`, 1 or more.
pub fn shortness(length: u16, mean: f64) -> f64 {
    1.0 / (1.0 - LENGTH + LENGTH * f64::from(length) / mean)
}

/// How much of its idf a term of that weighted frequency scores: 0 to 1.
pub fn saturated(frequency: f64) -> f64 {
    frequency / (SATURATION + frequency)
}

/// The same where nothing is asked for but what was added on the dates that are named: that stands before all else.
pub fn rank_of_dates(candidates: &[ScoreSignals]) -> Vec<f64> {
    let scores = rank(candidates);
    let reach = scores.iter().copied().fold(0.0, f64::max) - scores.iter().copied().fold(0.0, f64::min);
    scores.iter().zip(candidates).map(|(score, of)| score + weighted(reach + 1.0, of.is_of_date)).collect()
}

/// A score for each candidate. Scores of one search compare; those of two do not.
pub fn rank(candidates: &[ScoreSignals]) -> Vec<f64> {
    let words: Vec<f64> = candidates.iter().map(|signals| signals.lexical + signals.near_lexical).collect();
    let meaning: Vec<f64> = candidates.iter().map(meaning).collect();
    let (word_spread, meaning_spread) = (spread(&words), spread(&meaning));
    let own = words.iter().zip(&meaning);
    let own = own.map(|(words, meaning)| words / word_spread + MEANING * meaning / meaning_spread);
    let own: Vec<f64> = own.zip(candidates).map(|(own, of)| own + weighted(OF_DATE, of.is_of_date)).collect();
    let mut best: HashMap<i64, f64> = HashMap::new();
    for (signals, own) in candidates.iter().zip(&own).filter(|(signals, _)| signals.thread != 0) {
        best.entry(signals.thread).and_modify(|best| *best = best.max(*own)).or_insert(*own);
    }
    let of_thread = |signals: &ScoreSignals, own: f64| best.get(&signals.thread).copied().unwrap_or(own);
    let lent =
        |(of, own): (&ScoreSignals, &f64)| own + THREAD * of_thread(of, *own) + weighted(NAMES_TIME, of.names_time);
    candidates.iter().zip(&own).map(lent).collect()
}

fn weighted(weight: f64, is_so: bool) -> f64 {
    if is_so { weight } else { 0.0 }
}

/// How near a text is by meaning, with a share of what stands beside it.
fn meaning(of: &ScoreSignals) -> f64 {
    let length = f64::from(of.length);
    of.similarity * length / (length + HALF_MEANT) + NEAR * of.near_similarity
}

/// Where they deviate by less than this, all are as good as the same.
const LEAST_SPREAD: f64 = 0.01;

/// The standard deviation; 1 where all are the same.
fn spread(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    Some(variance.sqrt()).filter(|deviation| *deviation > LEAST_SPREAD).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(signals: &[ScoreSignals], order: &[usize]) {
        let scores = rank(signals);
        let mut ranked: Vec<usize> = (0..signals.len()).collect();
        ranked.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        assert_eq!(ranked, order, "{scores:?}");
    }

    #[test]
    fn words_meaning_and_neighbours_count() {
        let of = |lexical, similarity, near_lexical| ScoreSignals {
            lexical,
            similarity,
            near_lexical,
            length: 10,
            ..ScoreSignals::default()
        };
        check(&[of(0.0, 0.1, 0.0), of(2.0, 0.1, 0.0), of(5.0, 0.1, 0.0)], &[2, 1, 0]);
        check(&[of(0.0, 0.5, 0.0), of(0.0, 0.9, 0.0), of(0.0, 0.0, 0.0)], &[1, 0, 2]);
        check(&[of(0.0, 0.1, 4.0), of(1.0, 0.1, 0.0), of(0.0, 0.1, 0.0)], &[0, 1, 2]);
        check(&[], &[]);
    }

    #[test]
    fn the_best_of_a_thread_speaks_for_the_others() {
        let of = |lexical, thread| ScoreSignals { lexical, similarity: 0.1, thread, ..ScoreSignals::default() };
        check(&[of(5.0, 1), of(2.0, 1), of(2.5, 2), of(0.0, 0)], &[0, 1, 2, 3]);
        check(&[of(5.0, 1), of(2.0, 1), of(2.5, 1), of(0.0, 1)], &[0, 2, 1, 3]);
        check(&[of(5.0, 0), of(2.0, 0), of(2.5, 0)], &[0, 2, 1]);
    }

    #[test]
    fn a_few_words_are_near_to_this_or_that_by_chance() {
        let of = |similarity, length| ScoreSignals { similarity, length, ..ScoreSignals::default() };
        check(&[of(0.5, 2), of(0.4, 20), of(0.0, 20)], &[1, 0, 2]);
        check(&[of(0.9, 8), of(0.4, 20), of(0.0, 0)], &[0, 1, 2]);
    }

    #[test]
    fn what_was_added_on_a_named_date_comes_first_of_the_like() {
        let of = |lexical, is_of_date| ScoreSignals { lexical, is_of_date, ..ScoreSignals::default() };
        check(&[of(2.0, false), of(1.5, true), of(0.0, true), of(6.0, false)], &[3, 1, 2, 0]);
    }

    #[test]
    fn what_was_added_on_a_named_date_comes_before_all_where_nothing_else_is_asked_for() {
        let of = |lexical, is_of_date| ScoreSignals { lexical, is_of_date, thread: 1, ..ScoreSignals::default() };
        let mut candidates = vec![of(0.1, false); 2000];
        candidates.extend([of(1.5, true), of(0.0, true), of(60.0, false)]);
        let scores = rank_of_dates(&candidates);
        let [.., first, second, third] = &*scores else { panic!("{scores:?}") };
        assert!(first > second && second > third && third > &scores[0], "{first} {second} {third}");
    }

    #[test]
    fn what_names_a_time_comes_first_of_the_like() {
        let of = |lexical, names_time| ScoreSignals { lexical, names_time, ..ScoreSignals::default() };
        check(&[of(2.0, false), of(1.5, true), of(0.0, true), of(6.0, false)], &[3, 1, 2, 0]);
        let in_thread = |named| [named, false].map(|named| ScoreSignals { thread: 1, ..of(1.0, named) });
        let (before, scores) = (rank(&in_thread(false)), rank(&in_thread(true)));
        assert!((scores[0] - before[0] - NAMES_TIME).abs() < 1e-9, "{scores:?}");
        assert!((scores[1] - before[1]).abs() < 1e-9, "its thread is lent nothing of it: {scores:?}");
    }

    #[test]
    fn what_is_as_good_as_the_same_is_not_blown_up() {
        let of = |similarity| ScoreSignals { similarity, length: 10, ..ScoreSignals::default() };
        let scores = rank(&[of(0.838), of(0.837)]);
        assert!(scores[0] > scores[1] && scores[0] < 1.0, "{scores:?}");
    }

    #[test]
    fn a_rare_term_in_a_short_text_counts_more() {
        assert!(idf(100, 1) > idf(100, 50) && idf(100, 100) > 0.0 && idf(0, 3) > 0.0);
        assert!(shortness(5, 10.0) > shortness(20, 10.0));
        assert!((shortness(10, 10.0) - 1.0).abs() < 1e-9);
        assert!(saturated(9.0) < 1.0 && saturated(2.0) > saturated(1.0));
    }

    proptest! {
        #[test]
        fn a_better_match_is_never_ranked_lower(
            lexical in prop::collection::vec(0.0_f64..10.0, 2..20), more in 0.0_f64..5.0,
        ) {
            let mut signals: Vec<ScoreSignals> = lexical
                .iter()
                .map(|&lexical| ScoreSignals { lexical, similarity: 0.1, ..ScoreSignals::default() })
                .collect();
            signals.push(ScoreSignals { lexical: lexical[0] + more, ..signals[0] });
            let scores = rank(&signals);
            prop_assert!(scores[lexical.len()] >= scores[0]);
            prop_assert!(scores.iter().all(|score| score.is_finite()));
        }
    }
}
