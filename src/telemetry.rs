//! What the daemon tells about itself: metrics, events, and the log they appear in.

pub mod events;
pub mod feed;
pub mod labels;
pub mod logging;
pub mod metrics;
mod minutes;

pub use feed::{EventType, Feed};
pub use metrics::{Metrics, SeriesExemplars};
pub use minutes::{Minute, Minutes};
