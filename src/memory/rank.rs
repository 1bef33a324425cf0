//! How well candidates match a text: words and meaning, each with a share of what stands beside a message.
//!
//! An answer often has none of the words of a question about it; the turn before it has them. So a message is lent a fifth of
//! what its neighbours score. Words and meaning have scales of their own; each is divided by its spread among the candidates,
//! which is what adding z-scores comes to.

use crate::store::memories::Signals;

/// What a neighbour lends.
const NEAR: f64 = 0.2;

/// Weight of the meaning; that of the words is 1.
const MEANING: f64 = 1.2;

/// Likeness from which on a text means something similar: of unrelated texts one in twenty is above, of requests and what
/// serves them nine in ten.
const LIKE: f64 = 0.25;

/// A score for each candidate that matches: it, or what stands beside it, shares a word with the text or means something like
/// it. Scores of one search compare; those of two do not.
pub fn rank(candidates: &[Signals]) -> Vec<Option<f64>> {
    let words: Vec<f64> = candidates.iter().map(|signals| signals.lexical + NEAR * signals.near_lexical).collect();
    let meaning: Vec<f64> = candidates.iter().map(|signals| signals.likeness + NEAR * signals.near_likeness).collect();
    let (word_spread, meaning_spread) = (spread(&words), spread(&meaning));
    let scores =
        words.iter().zip(&meaning).map(|(words, meaning)| words / word_spread + MEANING * meaning / meaning_spread);
    candidates.iter().zip(scores).map(|(signals, score)| matches(signals).then_some(score)).collect()
}

fn matches(signals: &Signals) -> bool {
    signals.lexical > 0.0 || signals.near_lexical > 0.0 || signals.likeness >= LIKE
}

/// The standard deviation; 1 where all are the same.
fn spread(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    if variance > 1e-12 { variance.sqrt() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(signals: &[Signals], order: &[usize]) {
        let scores = rank(signals);
        let mut ranked: Vec<usize> = (0..signals.len()).filter(|&index| scores[index].is_some()).collect();
        ranked.sort_by(|&a, &b| scores[b].unwrap().total_cmp(&scores[a].unwrap()));
        assert_eq!(ranked, order, "{scores:?}");
    }

    #[test]
    fn words_meaning_and_neighbours_count() {
        let of = |lexical, likeness, near_lexical| Signals { lexical, likeness, near_lexical, ..Signals::default() };
        check(&[of(0.0, 0.1, 0.0), of(2.0, 0.1, 0.0), of(5.0, 0.1, 0.0)], &[2, 1]);
        check(&[of(0.0, 0.5, 0.0), of(0.0, 0.9, 0.0), of(0.0, 0.0, 0.0)], &[1, 0]);
        check(&[of(0.0, 0.1, 4.0), of(1.0, 0.1, 0.0), of(0.0, 0.1, 0.0)], &[1, 0]);
        check(&[], &[]);
    }

    proptest! {
        #[test]
        fn a_better_match_is_never_ranked_lower(
            lexical in prop::collection::vec(0.0_f64..10.0, 2..20), more in 0.0_f64..5.0,
        ) {
            let mut signals: Vec<Signals> =
                lexical.iter().map(|&lexical| Signals { lexical, likeness: 0.1, ..Signals::default() }).collect();
            signals.push(Signals { lexical: lexical[0] + more, ..signals[0] });
            let scores = rank(&signals);
            prop_assert!(scores[lexical.len()] >= scores[0]);
            prop_assert!(scores.iter().flatten().all(|score| score.is_finite()));
        }
    }
}
