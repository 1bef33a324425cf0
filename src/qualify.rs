//! Which tools fit this message? Tens of them, out of hundreds, in microseconds and without a model.
//!
//! [`Index`] holds what a catalog's tools say of themselves, [`Message`] what is asked; [`Ranking`] compares them:
//! words (BM25F), meanings (a table of static embeddings), and what [`Usage`] has learnt from the tools that were
//! chosen before. [`Categories`] group tools as people speak of them, a [`context`] carries a conversation over its
//! turns, and the [`Selector`] puts all of it together. Everything here is pure: no clock, no I/O, and the same answer
//! for the same index, learnt state and message.
//!
//! Rejected, since they gained nothing on public sets: removing what all vectors have in common, feedback from the best
//! documents of a first search, comparing word by word, fusing ranks instead of scores.

mod carried;
pub mod categories;
mod change;
mod clauses;
pub mod context;
pub mod evaluate;
mod explanation;
pub mod fit;
mod follow_up;
mod index;
mod intent;
mod languages;
mod locators;
mod message;
mod no_tool;
mod observations;
mod parts;
mod presence;
mod purpose;
mod qualification;
mod ranking;
mod said_names;
mod scenes;
mod selector;
mod settings;
mod spelling;
mod stop_words;
mod telling;
mod usage;
mod weights;
mod word_list;

pub use categories::{Categories, CategoryIndex};
pub use context::{IntentContext, Rules};
pub use index::Index;
pub use message::{MAX_BYTES, Message};
pub use parts::ScoreParts;
pub use qualification::{Qualification, Says};
pub use ranking::{Ranked, Ranking};
pub use selector::{Question, Selector};
pub use settings::Settings;
pub use usage::{Adaptation, Trust, Usage};
pub use weights::{Calibration, FEATURES, Weights};
