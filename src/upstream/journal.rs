//! What a server said and what became of it, of late: for `ctl mcp logs`.

use std::collections::VecDeque;
use std::time::SystemTime;

use parking_lot::Mutex;

/// Lines that are kept for each server.
const KEPT: usize = 200;

/// The last lines of one server.
#[derive(Debug)]
pub(super) struct ServerLog {
    server: String,
    lines: Mutex<VecDeque<String>>,
}

impl ServerLog {
    pub(super) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), lines: Mutex::default() }
    }

    /// Something the server printed.
    pub(super) fn say(&self, text: &str) {
        tracing::info!(server = self.server, "{text}");
        self.keep(text);
    }

    /// Something that happened to it.
    pub(super) fn note(&self, text: &str) {
        tracing::info!(server = self.server, "MCP server {text}");
        self.keep(&format!("-- {text}"));
    }

    /// Something that should not have happened.
    pub(super) fn warn(&self, text: &str) {
        tracing::warn!(server = self.server, "MCP server {text}");
        self.keep(&format!("-- {text}"));
    }

    fn keep(&self, text: &str) {
        let mut lines = self.lines.lock();
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(format!("{} {text}", humantime::format_rfc3339_millis(SystemTime::now())));
    }

    /// The last lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().iter().cloned().collect()
    }
}
