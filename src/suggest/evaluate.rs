//! How good is the prediction on anybody's sessions?
//!
//! Each call is foretold from those before it, by the list that is served, then learnt; nothing is seen twice.
//! Beside it stands what is simplest: the tools that followed the last one most often so far, filled up with the most
//! frequent ones, learnt in the same order.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::blend::{Known, blend};
use super::predict::predict;
use super::transitions::Transitions;
use crate::strict::decode::decode;
use crate::strict::read::json;
use crate::strict::{FromNode, Limits};
use crate::suggest::transitions::{Followers, Prefix, Transition};

/// Longest line, in bytes.
const MAX_LINE_BYTES: usize = 1 << 22;

/// How many guesses count.
const RANKS: [usize; 3] = [1, 3, 5];

#[derive(Debug, Clone, Default, PartialEq, Eq, FromNode)]
pub struct Session {
    pub session: String,
    /// The tools it called, oldest first.
    pub tools: Vec<String>,
}

/// A line is no session.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct LineError {
    /// 1-based.
    pub line: usize,
    pub message: String,
}

/// Reads sessions, one to a line of JSON; empty lines are passed over.
pub fn parse(content: &[u8]) -> Result<Vec<Session>, LineError> {
    let lines = content.split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    lines
        .map(|(number, text)| {
            let failed = |message: String| LineError { line: number + 1, message };
            // A long session is no attack on whoever evaluates a file of his own.
            let limits = Limits { nodes: MAX_LINE_BYTES, ..Limits::of_bytes(MAX_LINE_BYTES) };
            let node = json(text, &limits).map_err(|error| failed(error.to_string()))?;
            decode(node).map_err(|faults| {
                let faults =
                    faults.iter().map(|fault| format!("{} {}", fault.pointer(), fault.message).trim().to_owned());
                failed(faults.collect::<Vec<_>>().join("; "))
            })
        })
        .collect()
}

/// Shares of calls that were among the first guesses, 0 to 1; nothing without a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Hits {
    /// The first guess was right.
    #[serde(rename = "1")]
    pub at_1: Option<f64>,
    /// One of the first three was.
    #[serde(rename = "3")]
    pub at_3: Option<f64>,
    /// One of the first five was.
    #[serde(rename = "5")]
    pub at_5: Option<f64>,
}

/// What came of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictionFigures {
    pub sessions: usize,
    /// Calls that were foretold: all but the first of each session.
    pub predictions: usize,
    /// How often the prediction was right.
    pub hit: Hits,
    /// How often it was right for the next call of another tool than the last.
    pub hit_without_repeats: Hits,
    pub baseline: BigramBaseline,
}

/// The simplest prediction's figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BigramBaseline {
    /// How often it was right.
    pub hit: Hits,
    /// The same without repeats.
    pub hit_without_repeats: Hits,
}

/// Counts of right guesses.
#[derive(Debug, Default)]
struct Tally {
    predictions: usize,
    right: [usize; RANKS.len()],
}

impl Tally {
    fn count(&mut self, guesses: &[impl AsRef<str>], next: &str) {
        self.predictions += 1;
        let rank = guesses.iter().position(|guess| guess.as_ref() == next);
        for (right, most) in self.right.iter_mut().zip(RANKS) {
            *right += usize::from(rank.is_some_and(|rank| rank < most));
        }
    }

    fn hits(&self) -> Hits {
        let share = |right: usize| (self.predictions > 0).then(|| right as f64 / self.predictions as f64);
        let [at_1, at_3, at_5] = self.right.map(share);
        Hits { at_1, at_3, at_5 }
    }
}

/// Foretells every call of `sessions` from those before it.
pub fn evaluate(sessions: &[Session]) -> PredictionFigures {
    let mut counter = Counter::default();
    let mut bigram = Bigram::default();
    let [mut own, mut own_other, mut simple, mut simple_other] = [const { Tally { predictions: 0, right: [0; 3] } }; 4];
    for Session { tools, .. } in sessions {
        for position in 1..tools.len() {
            let (history, next) = (&tools[..position], tools[position].as_str());
            let last = history[position - 1].as_str();
            let is_other = last != next;
            own.count(&served(&counter.transitions, history, |_| true), next);
            let simplest = bigram.guess(last);
            simple.count(&simplest, next);
            if is_other {
                // Whoever knows that it is no repeat does not guess one.
                own_other.count(&served(&counter.transitions, history, |tool| tool != last), next);
                simple_other.count(&without(&simplest, last), next);
            }
            counter.called(history, next);
            bigram.called(last, next);
        }
    }
    PredictionFigures {
        sessions: sessions.len(),
        predictions: own.predictions,
        hit: own.hits(),
        hit_without_repeats: own_other.hits(),
        baseline: BigramBaseline { hit: simple.hits(), hit_without_repeats: simple_other.hits() },
    }
}

/// The list as it is served where no rule and no document says anything.
fn served(transitions: &Transitions, history: &[String], is_valid: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(current) = history.last() else { return Vec::new() };
    let known = Known {
        current,
        proposals: &[],
        followers: transitions.after(current),
        has_repeats: transitions.has_repeats(),
        likely: &predict(transitions, history),
        complements: &[],
        others: &[],
    };
    blend(&known, is_valid).into_iter().map(|suggestion| suggestion.tool).collect()
}

fn without<'g>(guesses: &[&'g str], last: &str) -> Vec<&'g str> {
    guesses.iter().copied().filter(|guess| *guess != last).collect()
}

/// Counts as the store does.
#[derive(Debug, Default)]
struct Counter {
    prefixes: HashMap<Prefix, Followers>,
    transitions: Transitions,
    tick: u64,
}

impl Counter {
    fn called(&mut self, history: &[String], next: &str) {
        let Some((last, earlier)) = history.split_last() else { return };
        let before = earlier.last().map(|before| Some(before.clone()));
        for before in before.into_iter().chain([None]) {
            let prefix = Prefix { before, last: last.clone() };
            let followers = self.prefixes.entry(prefix.clone()).or_default();
            followers.observe(next, true);
            self.tick += 1;
            self.transitions.put(&Transition { prefix, followers: followers.clone().into(), tick: self.tick });
        }
    }
}

/// What followed most often.
#[derive(Debug, Default)]
struct Bigram {
    after: HashMap<String, BTreeMap<String, u64>>,
    all: BTreeMap<String, u64>,
}

impl Bigram {
    fn called(&mut self, last: &str, next: &str) {
        *self.after.entry(last.to_owned()).or_default().entry(next.to_owned()).or_default() += 1;
        *self.all.entry(next.to_owned()).or_default() += 1;
    }

    fn guess(&self, last: &str) -> Vec<&str> {
        let mut guesses = self.after.get(last).map(most_frequent).unwrap_or_default();
        if guesses.len() < GUESSES {
            let more = most_frequent(&self.all);
            guesses.extend(more.iter().filter(|tool| !guesses.contains(tool)).copied().collect::<Vec<_>>());
        }
        guesses
    }
}

/// One more than count, so that the last tool can be left out.
const GUESSES: usize = 6;

fn most_frequent(counts: &BTreeMap<String, u64>) -> Vec<&str> {
    let mut ranked: Vec<(&String, &u64)> = counts.iter().collect();
    let order = |a: &(&String, &u64), b: &(&String, &u64)| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0));
    // Twice as many, since some are known already.
    if ranked.len() > 2 * GUESSES {
        ranked.select_nth_unstable_by(2 * GUESSES, order);
        ranked.truncate(2 * GUESSES);
    }
    ranked.sort_by(order);
    ranked.into_iter().map(|(tool, _)| tool.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(texts: &[&str]) -> Vec<Session> {
        let session = |text: &&str| Session {
            session: (*text).to_owned(),
            tools: text.split_whitespace().map(str::to_owned).collect(),
        };
        texts.iter().map(session).collect()
    }

    #[test]
    fn what_depends_on_two_calls_beats_the_baseline() {
        let texts = ["a x p", "b x q"].repeat(20);
        let figures = evaluate(&sessions(&texts));
        assert_eq!((figures.sessions, figures.predictions), (40, 80));
        let (own, simple) = (figures.hit, figures.baseline.hit);
        assert!(own.at_1.unwrap() > 0.9 && simple.at_1.unwrap() < 0.8, "{own:?} {simple:?}");
        assert!(own.at_1 <= own.at_3 && own.at_3 <= own.at_5);
    }

    #[test]
    fn repeats_of_unknown_tools_are_foretold() {
        let texts: Vec<String> = (0..20).map(|i| format!("t{i} t{i} t{i} u{i} t{i}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let figures = evaluate(&sessions(&texts));
        assert!(figures.hit.at_3 > figures.baseline.hit.at_3, "{figures:?}");
        assert!(figures.hit_without_repeats.at_1 > figures.baseline.hit_without_repeats.at_1, "{figures:?}");
    }

    #[test]
    fn nothing_is_foretold_of_nothing() {
        let figures = evaluate(&sessions(&["", "alone"]));
        assert_eq!((figures.predictions, figures.hit.at_1), (0, None));
    }

    #[test]
    fn lines_are_read_strictly() {
        let good = parse(b"{\"session\":\"s\",\"tools\":[\"a\",\"b\"]}\n\n").unwrap();
        assert_eq!(good, [Session { session: "s".into(), tools: vec!["a".into(), "b".into()] }]);
        for (text, line, part) in [
            ("{\"session\":\"s\",\"tools\":[]}\n{\"session\":\"s\"}", 2, "missing"),
            ("\n[1]", 2, "mapping"),
            ("{\"session\":\"s\",\"tools\":[],\"x\":1}", 1, "unknown key"),
            ("{", 1, ""),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.line == line && error.message.contains(part), "{text}: {error}");
        }
    }
}
