//! A message as the ranking sees it: its terms, what each counts, and its meaning.

use super::plain;
use crate::text::analysis;
use crate::text::embedding::{QUERY_PIECES, Quantized, Table, Vector};
use crate::text::head::head;

/// Bytes of a message that are looked at. What a message wants stands at its beginning; the rest is material.
pub const MAX_BYTES: usize = 8 * 1024;

/// Different terms of a message that count; more would only make the search slow.
const MAX_TERMS: usize = 128;

/// An analysed message.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its terms, each once, in the order of their first appearance.
    pub(super) terms: Vec<Term>,
    /// Its meaning.
    pub(super) vector: Vector,
    /// The same, for scans.
    pub(super) quantized: Quantized,
}

/// A term of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) text: Box<str>,
    /// 1, or less for a plain word.
    pub(super) weight: f32,
}

impl Message {
    /// Analyses `text`, of which the first [`MAX_BYTES`] count.
    pub fn new(text: &str) -> Self {
        let text = head(text, MAX_BYTES);
        let mut terms: Vec<Term> = Vec::new();
        analysis::terms(text, |term| {
            if terms.len() < MAX_TERMS && !terms.iter().any(|known| *known.text == *term) {
                terms.push(Term { text: term.into(), weight: plain::term_weight(term) });
            }
        });
        let vector = Table::shipped().embed_weighted(text, QUERY_PIECES, plain::piece_weight);
        Self { terms, quantized: Quantized::from(&vector), vector }
    }

    /// Does it say what it is about?
    pub fn is_telling(&self) -> bool {
        self.terms.iter().any(|term| !plain::is_plain(&term.text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_term_counts_once() {
        let message = Message::new("swap, swap and swap the tokens");
        let terms: Vec<&str> = message.terms.iter().map(|term| &*term.text).collect();
        assert_eq!(terms, ["swap", "and", "the", "token"]);
        assert!(message.is_telling());
        assert!(!Message::new("could you do that for me?").is_telling());
        assert!(!Message::new("").is_telling());
    }

    proptest! {
        #[test]
        fn any_message_costs_a_bounded_amount(text in "\\PC{0,300}", times in 1_usize..200) {
            let message = Message::new(&text.repeat(times));
            prop_assert!(message.terms.len() <= MAX_TERMS);
            prop_assert!(message.vector.dot(&message.vector) < 1.001);
        }
    }
}
