//! What memories are looked for by, in which order they come, and what is found.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::named_date::NamedDates;
use super::stored::StoredMemory;
use crate::text::embedding::Quantized;

/// Which memories are meant. All that is given holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    pub kind: Option<u8>,
    pub user: Option<String>,
    pub agent: Option<String>,
    pub chat: Option<String>,
    /// Of this thread, in any chat.
    pub thread: Option<String>,
    /// With this word as what its kind is told apart by: the role of a message, the type of a process, the source of a
    /// document, the status of a task.
    pub word: Option<String>,
    pub fields: Vec<(FieldPath, Wanted)>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// At least so important.
    pub min_importance: Option<f64>,
    /// Added then or later, µs since the epoch.
    pub from_us: Option<i64>,
    /// Added then or before, µs since the epoch.
    pub to_us: Option<i64>,
    /// Also those that were deleted softly.
    pub include_deleted: bool,
}

impl Filter {
    /// Does it ask for nothing but the kind and deletion?
    pub fn is_plain(&self) -> bool {
        *self == Self { kind: self.kind, include_deleted: self.include_deleted, ..Self::default() }
    }
}

/// Keys that lead to a field of the metadata. Each is letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<String>);

/// Steps of a path; deeper than anything is written.
const MAX_STEPS: usize = 8;

impl FieldPath {
    /// Keys joined by dots; nothing if that is none.
    pub fn parse(text: &str) -> Option<Self> {
        let is_key = |key: &str| {
            (1..=128).contains(&key.len())
                && key.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-'))
        };
        let keys: Vec<String> = text.split('.').map(str::to_owned).take(MAX_STEPS + 1).collect();
        (keys.len() <= MAX_STEPS && keys.iter().all(|key| is_key(key))).then_some(Self(keys))
    }

    pub fn keys(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("."))
    }
}

/// A value that a field must have, or that a list there must hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    Text(String),
    Number(f64),
    /// This whole number, whichever way it is written.
    Whole(i64),
    /// This whole number, which is beyond the others.
    Huge(u64),
    /// This moment, in whichever offset it is written; µs since the epoch.
    Moment(i64),
    Bool(bool),
    /// An object of these four keys, of which the last may be absent: namespace, type, id, version.
    Id(String, String, String, Option<u64>),
}

/// What memories are sorted by. Those without it come last, whichever the direction; ties go by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortBy {
    /// When they were added.
    Created,
    /// When they were last changed.
    Updated,
    /// How well they match a text.
    Score,
    /// A text, number or truth of the metadata; numbers (truths are 0 and 1) before texts.
    Field(FieldPath),
    /// A moment in RFC 3339.
    Moment(FieldPath),
    /// An object of namespace, type, id and version, by these.
    Id(FieldPath),
}

impl SortBy {
    /// The field of the metadata whose value a change may move to another page.
    pub fn field(&self) -> Option<&FieldPath> {
        match self {
            Self::Field(path) | Self::Moment(path) | Self::Id(path) => Some(path),
            Self::Created | Self::Updated | Self::Score => None,
        }
    }
}

/// The value a memory is sorted by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SortValue {
    Nothing,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl SortValue {
    /// The order of values: numbers before texts, and nothing after both, whichever the direction.
    pub fn compare(&self, other: &Self, descending: bool) -> Ordering {
        let number = |value: &Self| match value {
            Self::Integer(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            Self::Nothing | Self::Text(_) => None,
        };
        let natural = match (self, other) {
            (Self::Nothing, Self::Nothing) => return Ordering::Equal,
            (Self::Nothing, _) => return Ordering::Greater,
            (_, Self::Nothing) => return Ordering::Less,
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (a, b) => match (number(a), number(b)) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                // Whatever is no number here is a text.
                (a, b) => b.is_some().cmp(&a.is_some()),
            },
        };
        if descending { natural.reverse() } else { natural }
    }
}

/// A page of memories that are wanted.
#[derive(Debug, Clone)]
pub struct Search {
    pub filter: Filter,
    /// What they are about; then only those that match are found.
    pub text: Option<TextQuery>,
    pub sort: SortBy,
    pub descending: bool,
    /// When its first page was made; nothing for the first page.
    pub begun: Option<Begun>,
    /// Where the page before ended.
    pub place: Option<Place>,
    /// How many its first page counted, which need not be done again; nothing for the first page.
    pub total: Option<u64>,
    /// So many of them left out.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

/// The moment of a search's first page: what comes later is on none of its pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The number of the memory that was added last.
    pub through: i64,
    /// When a memory of the tenant was written last, µs since the epoch.
    pub stamp: i64,
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Place {
    /// At the memory of that value and id.
    After(SortValue, String),
    /// In the order of the first page, which does not move.
    Ranked {
        /// Numbers of the memories that are ranked, best first.
        rows: Vec<i64>,
        /// So many of them have been passed.
        shown: usize,
        /// Behind them, where newer ones come first: the number of the last.
        last: Option<i64>,
    },
}

/// A text that is looked for.
#[derive(Debug, Clone)]
pub struct TextQuery {
    /// Its terms, each once, at most 64.
    pub terms: Vec<String>,
    /// Their other forms, each with the place of its term, in the order of these; none is a term itself.
    pub forms: Vec<(usize, &'static str)>,
    /// The dates that it names.
    pub dates: NamedDates,
    pub vector: Quantized,
    /// Terms that name a time; nothing if the text does not ask for one.
    pub time_terms: Option<&'static HashSet<String>>,
    /// The similarity of meaning from which on a memory matches without having a term; -1 to 1.
    pub like: f32,
    /// How well candidates match.
    pub rank: fn(&[ScoreSignals]) -> Vec<f64>,
}

impl TextQuery {
    /// What is looked for: its terms, at most `most`, and their other forms, in the order of the terms.
    pub fn looked_for(&self, most: usize) -> Vec<WordForm<'_>> {
        let terms = self.terms.iter().enumerate().take(most);
        let terms = terms.map(|(term, text)| WordForm { term, text, is_asked: true });
        let forms = self.forms.iter().filter(|(term, _)| *term < most);
        let forms = forms.map(|&(term, text)| WordForm { term, text, is_asked: false });
        let mut all: Vec<WordForm<'_>> = terms.chain(forms).collect();
        all.sort_by_key(|form| form.term);
        all
    }
}

/// A form of a term that is looked for.
#[derive(Debug, Clone, Copy)]
pub struct WordForm<'q> {
    /// The place of the term.
    pub term: usize,
    pub text: &'q str,
    /// Is it what was asked for? A name is none of another form: who asks who sings does not mean Sang.
    pub is_asked: bool,
}

/// What speaks for one candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ScoreSignals {
    /// BM25 over its words and its speaker's name; 0 or more.
    pub lexical: f64,
    /// Similarity of its meaning, -1 to 1.
    pub similarity: f64,
    /// What the words of the messages beside it, and of its date, add to that.
    pub near_lexical: f64,
    /// The sum of its neighbours' `similarity`.
    pub near_similarity: f64,
    /// How many terms its text has.
    pub length: u16,
    /// Was it added on a date that the text names?
    pub is_of_date: bool,
    /// Does it name a time, where the text asks for one?
    pub names_time: bool,
    /// A number for its thread; 0 for none.
    pub thread: i64,
    /// A bit for each term that it has.
    pub matched: u64,
}

/// A memory that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub memory: StoredMemory,
    /// What it was sorted by.
    pub value: SortValue,
    /// How well it matches the text, and why; only if there is one.
    pub score: Option<(f64, ScoreSignals)>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// How many there are on all pages.
    pub total: u64,
    /// When the first page was made.
    pub begun: Begun,
    /// In the order of scores: the numbers of all that are ranked, and for each hit the place after it, in which they
    /// are left out.
    pub ranked: Vec<i64>,
    /// See `ranked`.
    pub places: Vec<Place>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_plain_keys() {
        for (text, path) in [
            ("thread.position", Some("thread.position")),
            ("x", Some("x")),
            ("größe_1-a", Some("größe_1-a")),
            ("", None),
            ("a..b", None),
            ("a\"b", None),
            ("a'; DROP TABLE memories; --", None),
            ("$.a", None),
            ("a.b.c.d.e.f.g.h.i", None),
        ] {
            assert_eq!(FieldPath::parse(text).map(|path| path.to_string()).as_deref(), path, "{text}");
        }
        assert_eq!(FieldPath::parse(&"x".repeat(10_000)), None);
    }
}
