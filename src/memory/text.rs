//! The text that a memory is found by, and the text that is looked for, as terms and as a vector.

use std::collections::HashSet;

use super::kind::Metadata;
use crate::store::memories::Index;
use crate::text::analysis;
use crate::text::embedding::{DOCUMENT_PIECES, Pool, QUERY_PIECES, Quantized, Table, Vector};

/// What the speaker's name weighs beside the text, whose weight is 1.
const SPEAKER: f32 = 0.4;

/// Terms of one query; more say nothing more, and each costs a look into the index.
const MAX_TERMS: usize = 64;

/// What a memory is found by.
pub fn index(metadata: &Metadata, content: &str) -> Index {
    let speaker = metadata.speaker().map(|speaker| speaker.id()).unwrap_or_default();
    let title = match metadata {
        Metadata::Document(document) => document.details.title.as_deref(),
        Metadata::Task(task) => Some(task.title.as_str()),
        Metadata::Message(_) | Metadata::CognitiveProcess(_) => None,
    };
    let description = match metadata {
        Metadata::Task(task) => task.details.description.as_deref(),
        _ => None,
    };
    let parts: Vec<&str> = title.into_iter().chain([content]).chain(description).collect();
    let text = parts.join("\n");
    let mut pool = Pool::default();
    pool.add(&meaning(&text, DOCUMENT_PIECES), 1.0);
    if !speaker.is_empty() {
        pool.add(&meaning(speaker, QUERY_PIECES), SPEAKER);
    }
    Index { words: words(&text), speaker: words(speaker), vector: Quantized::from(&pool.vector()) }
}

/// What is looked for: its terms, each once, and what it means.
pub fn query(text: &str) -> (Vec<String>, Quantized) {
    let (mut terms, mut seen) = (Vec::new(), HashSet::new());
    analysis::terms(text, |term| {
        if terms.len() < MAX_TERMS && seen.insert(term.to_owned()) {
            terms.push(term.to_owned());
        }
    });
    (terms, Quantized::from(&meaning(text, QUERY_PIECES)))
}

fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    analysis::terms(text, |term| {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(term);
    });
    words
}

/// Word pieces come in the order of how common they are, most common first, so the logarithm of a piece's number stands for
/// its inverse document frequency; it does not change while memories come and go, so what was stored stays comparable.
fn meaning(text: &str, pieces: usize) -> Vector {
    Table::shipped().embed_weighted(text, pieces, |piece| (1.0 + piece.index() as f32 / COMMON).ln())
}

/// Pieces that are so common that they say next to nothing.
const COMMON: f32 = 100.0;
