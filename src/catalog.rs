//! What tools exist: a directory of YAML documents, always current, read without waiting.
//!
//! [`document`] is one tool's document, with the keys of the wire. [`files`] lists the directories, [`scanner`] reads
//! what changed into an [`Entry`] per tool (the answer already rendered) and assembles the immutable [`Catalog`] that
//! readers hold. [`crate::watch`] turns file events into hints; [`reload`] is the one place that acts on them.
//! [`relations`] and [`check`] answer what goes with what. [`Loader`] is all of it for a Rust program without the
//! daemon.
//!
//! Readers hold entries as rendered bytes and a line of facets, not parsed trees: those took four times the memory, and
//! the questions that need the tree are rare enough to parse one body again.

pub mod check;
pub mod document;
pub mod entry;
pub mod errors;
pub mod files;
pub mod findings;
mod foreign;
pub mod load;
mod loader;
pub mod next;
pub mod offer;
pub mod plan;
pub mod price;
pub mod relations;
pub mod reload;
pub mod scanner;
pub mod schema;
mod settings;
mod shipped;
pub mod snapshot;
mod table;

pub use document::ToolMetadata;
pub use entry::Entry;
pub use loader::{Loader, LoaderError};
pub use offer::Offer;
pub use settings::Settings;
pub use snapshot::Catalog;

pub use crate::strict::{Diagnostic, Severity};
