//! What was said, thought, read and planned: typed memories.
//!
//! Memories without rules rot: filters ask for keys that nothing stored, ids do not survive their own text, two fields
//! say different things. So everything that goes in is read strictly, all faults at once, and written in one canonical
//! form that every filter, sort and link is made from.
//!
//! This room is pure: it knows the four kinds ([`kind`]) and their fields, ids ([`id`]), words ([`vocabulary`]),
//! versions of the format ([`schema`]), what a search may ask ([`search`]) and how hits rank ([`rank`]). Keeping
//! memories is the store's.

mod asked_days;
pub mod asked_time;
pub mod baseline;
pub mod cognitive;
pub mod criteria;
mod date_token;
mod day_range;
pub mod document;
pub mod factory;
pub mod field;
pub mod id;
pub mod kind;
pub mod legacy;
pub mod merge;
pub mod message;
pub mod metadata;
pub mod named_date;
pub mod query;
pub mod rank;
mod relative_date;
pub mod schema;
pub mod search;
pub mod stored;
pub mod task;
pub mod text;
pub mod vocabulary;

pub use factory::*;
pub use id::StructuredId;
pub use kind::{Direction, Kind, Metadata, Relation};
