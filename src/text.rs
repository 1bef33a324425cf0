//! Ground under selection and memory: words, likeness of words, ranking, meaning.

pub mod analysis;
pub mod bm25;
pub mod embedding;
pub mod head;
pub mod near;
