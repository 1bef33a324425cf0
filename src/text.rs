//! Ground under selection and memory: words, likeness of words, ranking.

pub mod analysis;
pub mod bm25;
pub mod near;
