//! Which tools fit this message? Tens of them, out of hundreds, in microseconds and without a model.
//!
//! [`Index`] holds what a catalog's tools say of themselves, [`Message`] what is asked; [`Ranking`] compares them: words
//! (BM25F), meanings (a table of static embeddings), and what [`Usage`] has learnt from the tools that were chosen before.
//! [`Categories`] group tools as people speak of them, a [`context`] carries a conversation over its turns, and the [`Desk`] puts
//! all of it together. Everything here is pure: no clock, no I/O, and the same answer for the same index, learnt state and message.
//!
//! Rejected, since they gained nothing on public sets: removing what all vectors have in common, feedback from the best
//! documents of a first search, comparing word by word, fusing ranks instead of scores.

mod account;
pub mod categories;
pub mod context;
pub mod evaluate;
pub mod fit;
mod index;
mod message;
mod plain;
mod quiet;
mod ranking;
mod selection;
mod usage;
mod weights;

pub use categories::{Board, Categories};
pub use context::{IntentContext, Rules};
pub use index::Index;
pub use message::{MAX_BYTES, Message};
pub use ranking::{Ranked, Ranking};
pub use selection::{Desk, Qualification, Question};
pub use usage::{Adaptation, Trust, Usage};
pub use weights::{Calibration, FEATURES, Weights};
