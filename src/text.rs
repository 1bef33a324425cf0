//! Ground under selection and memory: words, likeness of words, ranking, meaning.

pub mod analysis;
pub mod bm25;
#[cfg(test)]
pub(crate) mod edits;
pub mod embedding;
pub mod head;
pub mod irregular;
pub mod near;
pub mod stop_words;
