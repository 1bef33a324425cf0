//! What should be called next?
//!
//! The problem: an agent sees a list of tools and not how they are used together. Three sources know something of it:
//! rule libraries (they see what the last call gave), what sessions did before ([`transitions`], from which [`predict`]
//! tells what is likely), and the complements that tool documents name. [`blend`] makes one short list of them.
//! [`presets`] are whole workflows; a session that has begun one is told what is left of it. [`evaluate`] measures the
//! prediction on recorded sessions.
//!
//! Everything here is pure but [`presets::directory`], which reads the directory of presets: what is known of tools,
//! durations and sessions comes in as arguments.

pub mod blend;
pub mod evaluate;
pub mod predict;
pub mod presets;
pub mod transitions;

pub use blend::{Candidate, Source, Suggestion};
pub use presets::{Preset, Presets};
pub use transitions::Transitions;
