//! How tool documents are read and followed.

use std::time::Duration;

use crate::strict::FromNode;

/// The section `catalog` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default)]
pub struct Settings {
    /// Largest document, in bytes.
    #[schemars(range(min = 1024, max = 1 << 24))]
    pub max_document_bytes: usize,
    /// Longest time between two scans; file events make it shorter.
    pub poll_interval: Duration,
    /// Use file events.
    pub watch: bool,
    /// Serve the documents of the package beside one's own, too. They stand in where there are none of one's own.
    pub examples: bool,
    /// Reject a whole generation for one faulty document.
    pub strict_reload: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_document_bytes: 256 * 1024,
            poll_interval: Duration::from_secs(30),
            watch: true,
            examples: false,
            strict_reload: false,
        }
    }
}
