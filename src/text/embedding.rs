//! The meaning of a text as a vector, from a table and without a model.
//!
//! BM25 only sees words that are the same. Sentence encoders see that "what's the weather" and "forecast for a city" are
//! near, but cost a hundred megabytes and ten milliseconds a message. Here each word piece has a fixed row of
//! [`DIMENSIONS`] numbers, fitted so that the mean of a text's rows points where such an encoder puts the whole text: a
//! few microseconds, and data that is read in place from the binary. What is lost is word order.
//!
//! The table is made by `fit.py` beside it; `NOTICE` there names what it was fitted on.

mod quantized;
mod table;
mod vector;
mod wordpiece;

pub use quantized::Quantized;
pub use table::{Piece, Table};
pub use vector::{Pool, Vector};

/// Numbers in a vector: what a principal component analysis of sentence vectors keeps without a loss that ranking shows.
pub const DIMENSIONS: usize = 128;

/// Word pieces of a message that count; what follows rarely changes what it is about.
pub const QUERY_PIECES: usize = 64;

/// Word pieces of a stored text that count. It bounds the work for a hostile one to about a millisecond.
pub const DOCUMENT_PIECES: usize = 512;
