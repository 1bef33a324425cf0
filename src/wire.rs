//! What stands on the wire: requests and answers, shared by every door.

pub mod audit;
pub mod catalog;
pub mod memory;
pub mod memory_archive;
pub mod metadata;
pub mod overview;
mod pattern;
pub mod plan;
pub mod plugin;
pub mod presets;
pub mod problem;
pub mod qualify;
pub mod relations;
pub mod stream;
pub mod timing;
pub mod upstream;
pub mod usage;
