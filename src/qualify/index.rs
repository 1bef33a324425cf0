//! What all tools of a catalog say of themselves, ready to be compared with a message.
//!
//! Words go to a BM25F index, meanings to vectors. A tool has two of these: of its name alone, which is the shortest
//! description there is, and of everything that describes it, with word pieces counting by how few tools have them: "a
//! tool that provides" means nothing where every document says so. Use cases with their example messages are the best
//! text there is: they stand in for messages that the tool was chosen for until there are some.

use std::sync::Arc;

use foldhash::HashMap;

use super::change;
use super::locators::files;
use super::message::{MAX_BYTES, Message};
use super::said_names::{SaidNames, split};
use super::scenes::{CaseMeanings, Scenes};
use super::spelling::Spelling;
use crate::catalog::entry::Facet;
use crate::catalog::{Catalog, Entry, ToolMetadata};
use crate::parallel;
use crate::text::analysis;
use crate::text::bm25::{self, Field};
use crate::text::embedding::{DOCUMENT_PIECES, Piece, Pool, Quantized, Table, Vector};
use crate::text::head::head;

/// Name; title and description; parameters; category, capabilities and keywords; use cases. Fitted on public catalogs,
/// the last by hand.
const FIELDS: [Field; 5] = [
    Field { weight: 2.0, b: 0.9 },
    Field { weight: 2.0, b: 0.6 },
    Field { weight: 2.0, b: 0.6 },
    Field { weight: 2.0, b: 0.9 },
    Field { weight: 2.0, b: 0.6 },
];

/// How soon repeats of a term stop counting.
const SATURATION: f32 = 2.0;

/// What the parameters add to the meaning of a tool.
const PARAMETERS: f32 = 0.35;

/// What a word piece counts that every tool has, of one that no other has.
const COMMON_PIECE: f32 = 0.1;

/// An index over one catalog.
#[derive(Debug)]
pub struct Index {
    catalog: Arc<Catalog>,
    pub(super) entries: Box<[Arc<Entry>]>,
    pub(super) words: bm25::Bm25,
    /// Per term of a name: the tools that have it there, and its share of the name.
    pub(super) names: HashMap<Box<str>, Vec<(u32, f32)>>,
    /// Per tool, by number, those that must never be used beside it, whichever of the two says so; empty if none does.
    conflicts: HashMap<u32, Vec<u32>>,
    /// How messages may say the names.
    pub(super) said_names: SaidNames,
    spelling: Spelling,
    numbers: Numbers,
    /// What each tool means.
    pub(super) meanings: Box<[Quantized]>,
    /// What each name means.
    pub(super) name_meanings: Box<[Quantized]>,
    /// What messages for it mean, as far as its document tells.
    pub(super) scenes: Box<[Option<Scenes>]>,
    /// Does each change something, as far as its name tells?
    acting: Box<[bool]>,
}

type Numbers = HashMap<Arc<str>, u32>;

/// The text of a document by field.
struct Texts {
    /// As it is, and as words.
    name: String,
    name_words: String,
    description: String,
    parameters: String,
    groups: String,
    scenes: String,
}

impl Index {
    /// Indexes all tools of `catalog`. What an index from before knows of those that are still the same is not found
    /// out again.
    pub fn build(catalog: &Arc<Catalog>, before: Option<&Self>) -> Self {
        let entries: Box<[Arc<Entry>]> = catalog.iter().cloned().collect();
        let read = |entry: &Arc<Entry>| {
            let document = entry.document();
            let known = before.and_then(|before| before.use_cases(entry));
            (Texts::of(&document), known.or_else(|| CaseMeanings::of(&document).map(Arc::new)))
        };
        let is_first = before.is_none();
        let (texts, cases): (Vec<Texts>, Vec<Option<Arc<CaseMeanings>>>) =
            of_each(is_first, &entries, read).into_iter().unzip();
        let words = bm25::Bm25::build(&FIELDS, SATURATION, texts.iter().map(Texts::fields));
        let weights = PieceWeights::of(&texts);
        let embed =
            |text: &str| Table::shipped().embed_weighted(text, DOCUMENT_PIECES, |piece| weights.of_piece(piece));
        let meanings = of_each(is_first, &texts, |texts| texts.meaning(embed));
        let scenes = cases.into_iter().zip(&meanings).map(|(cases, meaning)| Some(Scenes::of(cases?, meaning)));
        let scenes = scenes.collect();
        let numbers = (0..).zip(&entries).map(|(number, entry)| (Arc::clone(entry.name()), number)).collect();
        Self {
            conflicts: conflicts(&entries, &numbers),
            numbers,
            names: names(&entries, &words),
            spelling: Spelling::of(texts.iter().flat_map(Texts::words)),
            said_names: SaidNames::new(entries.iter().map(|entry| &**entry.name())),
            name_meanings: of_each(is_first, &texts, |texts| Quantized::from(&embed(&texts.name_words))).into(),
            meanings: meanings.iter().map(Quantized::from).collect(),
            scenes,
            acting: entries.iter().map(|entry| change::acts(entry.name())).collect(),
            catalog: Arc::clone(catalog),
            entries,
            words,
        }
    }

    /// A message, with words that were mistyped as the tools' documents have them.
    pub fn message(&self, text: &str) -> Message {
        let mut message = Message::new(&self.spelling.mended(text));
        // What looks like a file may be the name of a tool.
        for name in files(head(text, MAX_BYTES)).filter(|name| self.numbers.contains_key(*name)) {
            message.names.add(name);
        }
        message
    }

    /// Of this very entry.
    fn use_cases(&self, entry: &Arc<Entry>) -> Option<Arc<CaseMeanings>> {
        let number = self.number(entry.name())?;
        let scenes = self.scenes[number].as_ref().filter(|_| Arc::ptr_eq(&self.entries[number], entry))?;
        Some(Arc::clone(&scenes.cases))
    }

    /// Is it the index of this very catalog?
    pub fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        Arc::ptr_eq(&self.catalog, catalog)
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The tools that must never be used beside this one.
    pub(super) fn conflicts_of(&self, number: usize) -> &[u32] {
        self.conflicts.get(&(number as u32)).map_or(&[], Vec::as_slice)
    }

    /// The tool of that number.
    pub fn entry(&self, number: usize) -> &Arc<Entry> {
        &self.entries[number]
    }

    /// Does the tool of that number change something, as far as its name tells?
    pub(super) fn acts(&self, number: usize) -> bool {
        self.acting[number]
    }

    /// The number of the tool of that name.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).map(|&number| number as usize)
    }
}

impl Texts {
    fn of(document: &ToolMetadata) -> Self {
        // A title that only repeats the name would count it twice.
        let title = if split(&document.title) == split(&document.name) { "" } else { &document.title };
        let mut parameters = String::new();
        if let Some(schema) = &document.input_schema {
            describe_parameters(schema, &mut parameters, 0);
        }
        let scenes = document.use_cases.iter().flat_map(|case| [&case.title, &case.when_to_use, &case.example]);
        Self {
            name: document.name.clone(),
            name_words: split(&document.name).join(" "),
            description: format!("{title}. {}", document.description),
            parameters,
            groups: format!(
                "{} {} {}",
                document.category,
                document.capabilities.join(" "),
                document.keywords.join(" ")
            ),
            scenes: scenes.map(String::as_str).collect::<Vec<_>>().join(" "),
        }
    }

    fn fields(&self) -> [(usize, &str); 5] {
        [(0, &self.name), (1, &self.description), (2, &self.parameters), (3, &self.groups), (4, &self.scenes)]
    }

    /// What people may mean to write.
    fn words(&self) -> [&str; 4] {
        [&self.name_words, &self.description, &self.groups, &self.scenes]
    }

    fn meaning(&self, embed: impl Fn(&str) -> Vector) -> Vector {
        let mut pool = Pool::default();
        pool.add(&embed(&format!("{}. {}", self.name_words, self.description)), 1.0);
        pool.add(&embed(&self.parameters), PARAMETERS);
        pool.vector()
    }
}

/// The first index is waited for. A later one is made beside the answers, which need the other processors.
fn of_each<T: Sync, R: Send>(is_first: bool, things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if is_first { parallel::map(things, work) } else { things.iter().map(work).collect() }
}

/// Schemas are nested by their authors; deeper than this nobody describes a parameter.
const MAX_SCHEMA_DEPTH: usize = 4;

/// Names and descriptions of properties, nested ones included.
fn describe_parameters(schema: &serde_json::Map<String, serde_json::Value>, text: &mut String, depth: usize) {
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    for (name, property) in properties.into_iter().flatten() {
        text.push_str(name);
        let Some(property) = property.as_object() else { continue };
        if let Some(description) = property.get("description").and_then(|description| description.as_str()) {
            text.push_str(": ");
            text.push_str(description);
        }
        text.push_str(". ");
        if depth < MAX_SCHEMA_DEPTH {
            describe_parameters(property, text, depth + 1);
            if let Some(items) = property.get("items").and_then(|items| items.as_object()) {
                describe_parameters(items, text, depth + 1);
            }
        }
    }
}

/// Most documents declare none; asking two documents for each pair would take a third of a question's time.
fn conflicts(entries: &[Arc<Entry>], numbers: &Numbers) -> HashMap<u32, Vec<u32>> {
    let mut conflicts: HashMap<u32, Vec<u32>> = HashMap::default();
    for (number, entry) in (0..).zip(entries) {
        for &other in entry.values(Facet::HighConflict).filter_map(|name| numbers.get(name)) {
            conflicts.entry(number).or_default().push(other);
            conflicts.entry(other).or_default().push(number);
        }
    }
    conflicts
}

fn names(entries: &[Arc<Entry>], words: &bm25::Bm25) -> HashMap<Box<str>, Vec<(u32, f32)>> {
    let mut names: HashMap<Box<str>, Vec<(u32, f32)>> = HashMap::default();
    for (number, entry) in (0..).zip(entries) {
        let mut terms: Vec<(String, f32)> = Vec::new();
        analysis::terms(entry.name(), |term| {
            if !terms.iter().any(|(known, _)| known == term) {
                terms.push((term.to_owned(), words.find(term).map_or(0.0, |found| found.idf)));
            }
        });
        let whole: f32 = terms.iter().map(|(_, idf)| idf).sum();
        for (term, idf) in terms {
            names.entry(term.into()).or_default().push((number, if whole > 0.0 { idf / whole } else { 0.0 }));
        }
    }
    names
}

/// What word pieces count in this catalog.
struct PieceWeights {
    having: Vec<u32>,
    tools: f32,
}

impl PieceWeights {
    fn of(texts: &[Texts]) -> Self {
        let table = Table::shipped();
        let (mut having, mut last) = (vec![0; table.len()], vec![0; table.len()]);
        for (number, texts) in (1_u32..).zip(texts) {
            let mut count = |piece: Piece| {
                if std::mem::replace(&mut last[piece.index()], number) != number {
                    having[piece.index()] += 1;
                }
            };
            table.pieces(&texts.name_words, DOCUMENT_PIECES, &mut count);
            table.pieces(&texts.description, DOCUMENT_PIECES, &mut count);
        }
        Self { having, tools: texts.len() as f32 }
    }

    fn of_piece(&self, piece: Piece) -> f32 {
        let having = self.having[piece.index()] as f32;
        COMMON_PIECE + (self.tools / (1.0 + having)).ln_1p() / self.tools.ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::catalog::document::UseCase;

    fn entry(name: &str, when_to_use: &str) -> Arc<Entry> {
        let case = UseCase { when_to_use: when_to_use.into(), not_for: "the news".into(), ..UseCase::default() };
        let document = ToolMetadata { name: name.into(), use_cases: vec![case], ..ToolMetadata::default() };
        Arc::new(Entry::new(&document, Path::new("x").into()))
    }

    #[test]
    fn what_use_cases_mean_is_found_out_once() {
        let catalog = |entries: &[&Arc<Entry>]| {
            let mut catalog = Catalog::default();
            for entry in entries {
                catalog.add(Arc::clone(entry));
            }
            Arc::new(catalog)
        };
        let (same, old) = (entry("weather", "rain tomorrow"), entry("tides", "the tide at noon"));
        let (new, added) = (entry("tides", "when the sea is low"), entry("apples", "which apples are ripe"));
        let before = Index::build(&catalog(&[&same, &old]), None);
        let later = catalog(&[&same, &new, &added]);
        let (index, anew) = (Index::build(&later, Some(&before)), Index::build(&later, None));
        for name in ["weather", "tides", "apples"] {
            let of = |index: &'_ Index| index.number(name).and_then(|number| index.scenes[number].as_ref()).cloned();
            let (scenes, expected) = (of(&index).unwrap(), of(&anew).unwrap());
            assert_eq!(scenes.centroid, expected.centroid, "{name}");
            let is_known = of(&before).is_some_and(|known| Arc::ptr_eq(&known.cases, &scenes.cases));
            assert_eq!(is_known, name == "weather", "{name}");
        }
    }

    #[test]
    fn parameters_are_described_with_those_inside() {
        let schema = serde_json::json!({"properties": {
            "city": {"type": "string", "description": "The city"},
            "days": {"items": {"properties": {"hour": {"description": "Of the day"}}}},
            "odd": 7,
        }});
        let mut text = String::new();
        describe_parameters(schema.as_object().unwrap(), &mut text, 0);
        assert_eq!(text, "city: The city. days. hour: Of the day. odd");
    }
}
