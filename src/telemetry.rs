//! What the daemon tells about itself: metrics, events, and the log they appear in.

pub mod events;
pub mod labels;
pub mod logging;
pub mod metrics;

pub use metrics::Metrics;
