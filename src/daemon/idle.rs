//! A daemon that was started for somebody ends when nobody is left.

use std::sync::Arc;
use std::time::Duration;

use crate::http::server::Service;

/// Looks in the time that must pass without a connection.
const LOOKS: u32 = 10;

/// Returns when nobody has been connected for that long; never without a limit.
pub(super) async fn wait(service: &Arc<Service>, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    let mut ticks = tokio::time::interval((limit / LOOKS).max(Duration::from_millis(1)));
    ticks.tick().await;
    let (mut seen, mut quiet) = (service.connections().0, 0);
    while quiet < LOOKS {
        ticks.tick().await;
        let (accepted, open) = service.connections();
        quiet = if open == 0 && accepted == seen { quiet + 1 } else { 0 };
        seen = accepted;
    }
    tracing::info!("nobody is connected any more");
}
