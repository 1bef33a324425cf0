//! The meaning of a text as a vector, from a table and without a model.
//!
//! BM25 only sees words that are the same. Sentence encoders see that "what's the weather" and "forecast for a city"
//! are near, but cost a hundred megabytes and ten milliseconds a message. Here each word piece has a fixed row of
//! [`DIMENSIONS`] numbers, fitted so that the mean of a text's rows points where such an encoder puts the whole text: a
//! few microseconds, and data that is read in place from the binary. What is lost is word order. A name such as
//! `getUserName` is one word here; who wants its parts to count splits it before.
//!
//! The table is made by `fit/fit.py` in the directory of this module; `NOTICE` there names what it was fitted on.

mod packed;
mod quantized;
mod table;
mod vector;
mod wordpiece;

pub use packed::Packed;
pub use quantized::Quantized;
pub use table::{Piece, Table};
pub use vector::{Pool, Vector};

/// Numbers in a vector. Of the encoder's 384, these keep what ranking needs; with 128 it loses two points.
pub const DIMENSIONS: usize = 192;

/// Word pieces of a message that count; what follows rarely changes what it is about.
pub const QUERY_PIECES: usize = 64;

/// Word pieces of a stored text that count. It bounds the work for one, however hostile, to some hundred microseconds.
pub const DOCUMENT_PIECES: usize = 512;
