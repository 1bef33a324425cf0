//! Reading what people and programs write, strictly.
//!
//! Tool documents, the configuration and request bodies share one need: a mistake must be refused with its place and a
//! way out, all mistakes at once, and no input may cost more than it weighs. The YAML library underneath accepts alias
//! bombs and silently takes the last of two equal keys.
//!
//! So every input goes through two passes. [`read`] turns text into a [`Node`] under a [`Limits`] budget and refuses
//! duplicate keys. [`decode`] takes the node apart into typed values and collects a [`Fault`] for whatever is missing,
//! unknown or of the wrong type. Nodes carry no positions; on the rare path of a faulty file [`locate`] walks the text
//! again to find the line, for the [`Diagnostic`] that people see.
//!
//! Rejected: `deny_unknown_fields` (stops at the first fault, cannot suggest), and a position on every node (slows the
//! path that has no faults).

pub mod bounds;
pub mod decode;
pub mod diagnostic;
pub mod file;
mod last_good;
pub mod load;
pub mod locate;
mod mask;
mod mistakes;
pub mod node;
mod number;
pub mod pattern;
pub mod read;
pub mod replacement;
pub mod spelling;
mod surrogates;
pub mod values;
pub mod write;

pub use almanac_macros::{FromNode, Word};
pub use bounds::Violation;
pub use decode::{At, Fault, FaultCode, Fields, FromFields, FromNode, Segment};
pub use diagnostic::{Diagnostic, Severity};
pub use file::FileStamp;
pub use last_good::LastGood;
pub use load::LoadError;
pub use node::Node;
pub use read::{Limits, Unreadable, UnreadableKind};
