//! Keeps up with the file of tokens.

use std::sync::Arc;
use std::time::Duration;

use crate::blocking;
use crate::control::Control;

/// A look at the file's times is cheap, and a revoked token is refused this soon.
const INTERVAL: Duration = Duration::from_millis(500);

/// Reads the tokens again whenever their file changed, or is there for the first time.
pub(super) async fn follow(control: Arc<Control>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        let control = Arc::clone(&control);
        // Faults are in the log; the next look is soon.
        let _ = blocking::run(move || control.look_at_tokens(false)).await;
    }
}
