//! The words of a text that tell what it is about, and how far two texts tell the same.

use std::sync::Arc;

use foldhash::HashMap;
use parking_lot::Mutex;

use super::follow_up;
use super::message::MAX_BYTES;
use super::stop_words;
use crate::text::analysis;
use crate::text::embedding::{QUERY_PIECES, Quantized, Table};
use crate::text::head::head;

/// Telling words of a text that are compared.
const MOST_WORDS: usize = 24;

/// A word, by its stem and its meaning.
#[derive(Debug)]
struct Word {
    term: Box<str>,
    meaning: Quantized,
}

/// What tells, in the order of the text, each stem once.
#[derive(Debug)]
pub(super) struct Telling(Box<[Arc<Word>]>);

/// Words that were read already: catalogs say the same things often.
#[derive(Debug, Default)]
pub(super) struct KnownWords(Mutex<HashMap<Box<str>, Arc<Word>>>);

impl Word {
    fn read(word: &str) -> Self {
        Self::of_term(word, term_of(word))
    }

    fn of_term(word: &str, term: String) -> Self {
        let meaning = Table::shipped().pool(word, QUERY_PIECES, stop_words::piece_weight).vector();
        Self { term: term.into(), meaning: Quantized::from(&meaning) }
    }

    fn similarity(&self, other: &Self) -> f32 {
        if self.term == other.term { 1.0 } else { self.meaning.dot(&other.meaning) }
    }
}

fn term_of(word: &str) -> String {
    let mut term = String::new();
    analysis::terms(word, |part| term.push_str(part));
    term
}

/// Does a word of this term add something to `words`?
fn tells(term: &str, words: &[Arc<Word>]) -> bool {
    !stop_words::is_stop_word(term) && words.iter().all(|known| *known.term != *term)
}

impl KnownWords {
    fn word(&self, word: &str) -> Arc<Word> {
        let mut known = self.0.lock();
        if let Some(known) = known.get(word) {
            return Arc::clone(known);
        }
        let read = Arc::new(Word::read(word));
        known.insert(word.into(), Arc::clone(&read));
        read
    }
}

impl Telling {
    /// Reads `text`. `names` says of each of its words, split at whatever is no letter and no digit, whether it is of a
    /// name that says where, not what: that of a network, say.
    pub(super) fn of(text: &str, names: &[bool]) -> Self {
        // Most words of a message tell nothing, and their meaning is never looked up.
        Self::read(text, names, |word, words| {
            let term = term_of(word);
            tells(&term, words).then(|| Arc::new(Word::of_term(word, term)))
        })
    }

    /// The same of a text of the catalog, whose words come again and are kept.
    pub(super) fn of_catalog(text: &str, names: &[bool], known: &KnownWords) -> Self {
        Self::read(text, names, |word, words| Some(known.word(word)).filter(|word| tells(&word.term, words)))
    }

    fn read(text: &str, names: &[bool], telling: impl Fn(&str, &[Arc<Word>]) -> Option<Arc<Word>>) -> Self {
        let has_plain_words = text.chars().any(char::is_lowercase);
        let mut words: Vec<Arc<Word>> = Vec::new();
        for (place, word) in follow_up::split(head(text, MAX_BYTES)).enumerate() {
            let is_name =
                word.starts_with(|char: char| char.is_ascii_digit()) || follow_up::is_asset(word, has_plain_words);
            if words.len() >= MOST_WORDS || is_name || names.get(place).copied().unwrap_or_default() {
                continue;
            }
            words.extend(telling(word, &words));
        }
        Self(words.into())
    }

    /// Does nothing tell?
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How far its words are in `other`, on average; 0 to 1, and 0 if it has none.
    pub(super) fn covered_by(&self, other: &Self) -> f32 {
        let nearest = |word: &Word| other.0.iter().map(|other| word.similarity(other)).fold(0.0, f32::max);
        self.0.iter().map(|word| nearest(word)).sum::<f32>() / self.0.len().max(1) as f32
    }

    /// How far each says what the other does, 0 to 1; 0 if one says nothing.
    pub(super) fn same_as(&self, other: &Self) -> f32 {
        if self.is_empty() || other.is_empty() {
            return 0.0;
        }
        let (mut covered, mut covering) = (0.0, [0.0_f32; MOST_WORDS]);
        for word in &self.0 {
            let mut nearest = 0.0_f32;
            for (other, most) in other.0.iter().zip(&mut covering) {
                let similarity = word.similarity(other);
                nearest = nearest.max(similarity);
                *most = most.max(similarity);
            }
            covered += nearest;
        }
        f32::midpoint(covered / self.0.len() as f32, covering.iter().sum::<f32>() / other.0.len() as f32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(one: &str, other: &str, expected: f32) {
        let same = Telling::of(one, &[]).same_as(&Telling::of(other, &[]));
        assert!((same - expected).abs() < 0.01, "{one:?} and {other:?}: {same}");
    }

    #[test]
    fn texts_that_say_the_same_do() {
        check("Buy a token", "buying the tokens", 1.0);
        check("", "Buy a token", 0.0);
        check("what is it", "Buy a token", 0.0);
    }

    #[test]
    fn names_and_amounts_do_not_tell() {
        check("Buy a token with SOL", "Buy 12 tokens", 1.0);
        let names = [false, false, false, true];
        assert!(Telling::of("swap tokens on Polygon", &names).0.iter().all(|word| *word.term != *"polygon"));
    }

    proptest! {
        #[test]
        fn both_ways_at_once_are_each_way_by_itself(one in "[a-c ]{0,40}|[a-z ]{0,40}", other in "[a-z ]{0,40}") {
            let known = KnownWords::default();
            let (one, other) = (Telling::of(&one, &[]), Telling::of_catalog(&other, &[], &known));
            let each = f32::midpoint(one.covered_by(&other), other.covered_by(&one));
            let expected = if one.is_empty() || other.is_empty() { 0.0 } else { each };
            prop_assert!((one.same_as(&other) - expected).abs() < 1e-5);
        }
    }
}
