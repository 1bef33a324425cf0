//! What systemd is told, and the watchdog it expects.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

use crate::control::{Control, Status};
use crate::http::server::probe::{Probe, ProbeError};

/// Between two updates of the status line, without a watchdog.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

fn notify(states: &[NotifyState<'_>]) {
    /// Was it said? It is tried all the time.
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    // Without systemd nobody listens, which is no fault.
    match sd_notify::notify(states) {
        Err(error) if !IS_SAID.swap(true, Ordering::Relaxed) => {
            tracing::warn!(%error, "the service manager cannot be notified");
        }
        Err(_) => {}
        Ok(()) => IS_SAID.store(false, Ordering::Relaxed),
    }
}

pub(super) fn ready(status: &Status) {
    notify(&[NotifyState::Ready, NotifyState::Status(&status.line())]);
}

pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Keeps the status line current, and pings the watchdog whenever a probe was answered.
pub(super) async fn watchdog(control: Arc<Control>, admin: Option<PathBuf>, probe: Probe) {
    let patience = sd_notify::watchdog_enabled();
    let interval = patience.map_or(STATUS_INTERVAL, |patience| patience / 3);
    let mut ticks = tokio::time::interval(interval);
    loop {
        ticks.tick().await;
        notify(&[NotifyState::Status(&control.status().line())]);
        let lives = control.check_threads();
        if patience.is_none() {
            continue;
        }
        let probed = tokio::time::timeout(interval, look(&probe, admin.as_deref())).await;
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
            notify(&[NotifyState::Watchdog]);
        }
    }
}

/// A question to itself; and the administrator must find the door.
async fn look(probe: &Probe, admin: Option<&Path>) -> Result<(), ProbeError> {
    if admin.is_some_and(|admin| !admin.exists()) {
        return Err(ProbeError::Deaf);
    }
    probe.ask().await
}
