//! What systemd is told, and the watchdog it expects.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;

use super::probe::probe;
use crate::control::{Control, Status};

/// Between two updates of the status line, without a watchdog.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

fn tell(states: &[NotifyState<'_>]) {
    // Without systemd nobody listens, which is no fault.
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the supervisor cannot be told");
    }
}

pub(super) fn ready(status: &Status) {
    tell(&[NotifyState::Ready, NotifyState::Status(&status.line())]);
}

pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Keeps the status line current, and pings the watchdog whenever a probe through the admin socket was answered.
pub(super) async fn watchdog(control: Arc<Control>, admin: Option<PathBuf>) {
    let patience = sd_notify::watchdog_enabled();
    let interval = patience.map_or(STATUS_INTERVAL, |patience| patience / 3);
    let mut ticks = tokio::time::interval(interval);
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Status(&control.status().line())]);
        let lives = control.check_catalog_thread() && control.check_plugins_thread();
        let (Some(_), Some(path)) = (patience, &admin) else { continue };
        let probed = tokio::time::timeout(interval, probe(path)).await;
        let outcome = match &probed {
            Ok(Ok(())) => "answered",
            Ok(Err(error)) => {
                tracing::error!(%error, "the daemon does not answer itself");
                "failed"
            }
            Err(_) => {
                tracing::error!("the daemon does not answer itself in time");
                "failed"
            }
        };
        control.metrics().watchdog_probes.with_label_values(&[outcome]).inc();
        if outcome == "answered" && lives {
            tell(&[NotifyState::Watchdog]);
        }
    }
}
