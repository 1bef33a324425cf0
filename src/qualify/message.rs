//! A message as the ranking sees it: its terms, what each counts, and its meaning; the same of each of its clauses.
//!
//! What is only told counts less than what is asked, material less than that, and what is turned down hardly at all.

use std::borrow::Cow;

use super::change::only_asks;
use super::clauses::{Clause, MAX_CLAUSES, Role, clauses};
use super::languages::in_english;
use super::locators::without_locators;
use super::said_names::SaidWords;
use super::stop_words;
use crate::text::analysis;
use crate::text::embedding::{Pool, QUERY_PIECES, Quantized, Table, Vector};
use crate::text::head::{head, tail};

/// Bytes of a message that are looked at: half of them from its head, and half from its tail. A request stands at one
/// of the two; what is between them is material.
pub const MAX_BYTES: usize = 8 * 1024;

/// Different terms of a message that count; more would only make the search slow.
const MAX_TERMS: usize = 192;

/// What a word counts as it is written, beside what it says in English.
const WRITTEN: f32 = 0.15;

/// Words of a message that needs no cutting. Fitted messages have 5 to 30.
const SHORT: f32 = 25.0;

/// What a clause counts in the whole, by its role, beside one that asks. Below .7 for what is told, requests that are
/// told ("I am looking …") suffer; at 1, pasted prose costs two points more.
const fn counts(role: Role) -> f32 {
    match role {
        Role::Asked => 1.0,
        Role::Told => 0.85,
        Role::Given | Role::Carried => 0.25,
        Role::Rejected => 0.05,
    }
}

#[derive(Debug, Clone)]
pub struct Message {
    /// Its terms, each once, in the order of their first appearance.
    pub(super) terms: Vec<Term>,
    pub(super) vector: Vector,
    /// The same, for scans.
    pub(super) quantized: Quantized,
    /// What may be a request of its own; one at least.
    pub(super) parts: Vec<Part>,
    /// What may be names of tools.
    pub(super) names: SaidWords,
    /// Does it want something told, and nothing changed?
    pub(super) only_asks: bool,
    /// How long it is: 0 for up to 25 words, nearing 1 with hundreds.
    pub(super) length: f32,
}

/// A clause.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Places in the message's terms.
    pub(super) terms: Vec<u32>,
    pub(super) vector: Vector,
    /// The same, for scans.
    pub(super) quantized: Quantized,
    /// What it counts beside a clause that asks.
    pub(super) weight: f32,
}

/// A term of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) text: Box<str>,
    /// 1, or less for a plain word and outside of what is asked.
    pub(super) weight: f32,
}

impl Message {
    /// Analyses `text`, of which [`MAX_BYTES`] count.
    pub fn new(text: &str) -> Self {
        let text = &*without_locators(text);
        let (first, last) = looked_at(text);
        let english = [in_english(first), in_english(last)];
        let mut message = Self::of(&clauses_of(&english));
        message.only_asks = last.is_empty() && message.requests() <= 1 && only_asks(&english[0]);
        for (written, english) in [first, last].into_iter().zip(&english) {
            if matches!(english, Cow::Owned(_)) {
                message.add_written(written);
            }
        }
        message
    }

    /// What the message of this text means, without the rest of it.
    pub(super) fn meaning(text: &str) -> Vector {
        let text = &*without_locators(text);
        let (first, last) = looked_at(text);
        let english = [in_english(first), in_english(last)];
        let clauses = clauses_of(&english);
        let (best, mut whole) = (most(&clauses), Pool::default());
        for clause in &clauses {
            whole.add_pool(&pool(clause), counts(clause.role) / best);
        }
        whole.vector()
    }

    /// Adds the words as they are written where they were put into English: documents may be in their language, too.
    pub(super) fn add_written(&mut self, text: &str) {
        analysis::terms(text, |term| {
            if self.terms.len() < MAX_TERMS && !self.terms.iter().any(|known| *known.text == *term) {
                self.terms.push(Term { text: term.into(), weight: WRITTEN });
            }
        });
    }

    fn of(clauses: &[Clause<'_>]) -> Self {
        let best = most(clauses);
        let (mut terms, mut whole, mut parts) = (Vec::<Term>::new(), Pool::default(), Vec::new());
        let mut names = SaidWords::default();
        let mut words = 0;
        for clause in clauses {
            let weight = counts(clause.role) / best;
            words += clause.text.split_whitespace().count();
            let mut own: Vec<u32> = Vec::new();
            analysis::terms(clause.text, |term| {
                let place = match terms.iter().position(|known| *known.text == *term) {
                    Some(place) => place,
                    None if terms.len() >= MAX_TERMS => return,
                    None => {
                        terms.push(Term { text: term.into(), weight: 0.0 });
                        terms.len() - 1
                    }
                };
                terms[place].weight = terms[place].weight.max(weight * stop_words::term_weight(term));
                if !own.contains(&(place as u32)) {
                    own.push(place as u32);
                }
            });
            let pool = pool(clause);
            whole.add_pool(&pool, weight);
            if clause.role != Role::Rejected {
                if clause.role != Role::Carried {
                    names.add(clause.text);
                }
                let vector = pool.vector();
                parts.push(Part { terms: own, quantized: Quantized::from(&vector), vector, weight });
            }
        }
        let vector = whole.vector();
        if parts.is_empty() {
            let all = (0..terms.len() as u32).collect();
            parts.push(Part { terms: all, quantized: Quantized::from(&vector), vector, weight: 1.0 });
        }
        let length = 1.0 - SHORT / (words as f32).max(SHORT);
        Self { terms, quantized: Quantized::from(&vector), vector, parts, names, only_asks: false, length }
    }

    /// Clauses that ask; of a message that asks nothing, those that stand in for them.
    pub(super) fn requests(&self) -> usize {
        self.asking().count()
    }

    /// The same clauses.
    pub(super) fn asking(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.weight >= 1.0)
    }

    /// Does it say what it is about?
    pub fn is_telling(&self) -> bool {
        self.terms.iter().any(|term| !stop_words::is_stop_word(&term.text))
    }
}

/// Those of the head and the tail that count.
fn clauses_of<'e>(english: &'e [Cow<'_, str>; 2]) -> Vec<Clause<'e>> {
    let mut all = clauses(&english[0]);
    all.extend(clauses(&english[1]));
    if all.len() > MAX_CLAUSES {
        all.drain(MAX_CLAUSES / 3..all.len() - (MAX_CLAUSES - MAX_CLAUSES / 3));
    }
    all
}

/// What the clause counts that counts most. Where nothing asks, what is told does.
fn most(clauses: &[Clause<'_>]) -> f32 {
    clauses.iter().map(|clause| counts(clause.role)).fold(0.0, f32::max)
}

fn pool(clause: &Clause<'_>) -> Pool {
    Table::shipped().pool(clause.text, QUERY_PIECES, stop_words::piece_weight)
}

/// The head and the tail of a text that is too long; else all of it, and nothing.
fn looked_at(text: &str) -> (&str, &str) {
    if text.len() <= MAX_BYTES {
        return (text, "");
    }
    (head(text, MAX_BYTES / 2), tail(text, MAX_BYTES / 2))
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

    #[test]
    fn what_is_carried_says_no_name_and_counts_little() {
        let names = |text: &str| format!("{:?}", Message::new(text).names);
        assert_eq!(names("remind me to merge_pull_request"), names("remind me to"));
        assert_ne!(names("please merge_pull_request"), names("please"));
        let carried = Message::new("remind me to merge the requests");
        let weight = |term: &str| carried.terms.iter().find(|known| &*known.text == term).unwrap().weight;
        assert!(weight("merg") < 0.3 && weight("remind") > 0.9, "{:?}", carried.terms);
    }

    proptest! {
        #[test]
        fn a_meaning_is_that_of_the_message(text in "(\\PC{0,40}[.?,\n]? ){0,6}") {
            prop_assert_eq!(Message::meaning(&text), Message::new(&text).vector);
        }

        #[test]
        fn any_message_costs_a_bounded_amount(text in "\\PC{0,300}", times in 1_usize..200) {
            let message = Message::new(&text.repeat(times));
            prop_assert!(message.terms.len() <= MAX_TERMS && message.parts.len() <= MAX_CLAUSES);
            prop_assert!(message.vector.dot(&message.vector) < 1.001);
            prop_assert!((0.0..1.0).contains(&message.length));
        }
    }
}
