//! Keeps up with the file of tokens.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::control::Control;

/// A look at the file's times is cheap, and a revoked token is refused this soon.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reads the tokens again whenever their file changed.
pub(super) async fn follow(control: Arc<Control>) {
    let Some(file) = control.tokens_file() else { return };
    // Read again at once: it may have changed since it was read at the start.
    let mut seen = None;
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        let now = stamp(&file);
        // A file that is gone takes no rights away: most likely it is being replaced.
        if now.is_none() || now == seen {
            continue;
        }
        seen = now;
        let control = Arc::clone(&control);
        // Faults are in the log; the old tokens hold.
        let _ = tokio::task::spawn_blocking(move || control.reload_tokens()).await;
    }
}

fn stamp(file: &Path) -> Option<(u64, u64, i64, i64)> {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.ino(), metadata.size(), metadata.ctime(), metadata.ctime_nsec()))
}
