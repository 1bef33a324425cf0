//! A server's process: its log, its end, and what it leaves behind.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::Child;
use tokio::time::timeout;

use super::journal::ServerLog;
use super::launcher::Started;
use super::secret::Mask;
use crate::process::output::{Said, capture};

/// From the end of its input until it is asked to end.
const AFTER_INPUT: Duration = Duration::from_secs(2);

/// From being asked to end until it is killed.
const AFTER_TERM: Duration = Duration::from_secs(5);

/// A program that was started, with the group of all that it started.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    group: Option<Pid>,
}

impl ServerProcess {
    /// Takes over what was started; what it prints on standard error goes to the journal.
    pub(super) fn new(started: Started, journal: Arc<ServerLog>, mask: Mask) -> Self {
        let Started { child, errors } = started;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        tokio::spawn(async move {
            let said = capture(File::from(OwnedFd::from(errors)), |said| match said {
                Said::Line(_, text) => journal.say(&mask.hide(&text)),
                Said::Dropped(lines) => journal.say(&format!("({lines} lines more)")),
            });
            if let Err(error) = said.await {
                tracing::warn!(%error, "what a server prints cannot be read");
            }
        });
        Self { child, group }
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.group.map(|group| group.as_raw_nonzero().get().cast_unsigned())
    }

    /// Waits until it has ended; says how.
    pub(super) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Ends it and all that it started, whose input was closed before: first by waiting, then by asking, then by force.
    pub(super) async fn end(mut self) {
        if timeout(AFTER_INPUT, self.child.wait()).await.is_err() {
            self.signal(Signal::TERM);
            if timeout(AFTER_TERM, self.child.wait()).await.is_err() {
                self.signal(Signal::KILL);
                let _ = self.child.wait().await;
            }
        }
        self.end_rest().await;
    }

    /// What a launcher leaves behind is the daemon's child, since that is the subreaper; it had its time.
    async fn end_rest(&self) {
        for signal in [Signal::TERM, Signal::KILL] {
            if !self.signal(signal) {
                break;
            }
            let started = tokio::time::Instant::now();
            while started.elapsed() < Duration::from_millis(500) {
                if !self.reap() && !self.signal_exists() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        self.reap();
    }

    /// Sends the signal to the whole group; false if there is nobody left in it.
    fn signal(&self, signal: Signal) -> bool {
        self.group.is_some_and(|group| kill_process_group(group, signal).is_ok())
    }

    fn signal_exists(&self) -> bool {
        self.group.is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
    }

    /// Takes note of the end of members of the group that are this daemon's children; false if there are none.
    fn reap(&self) -> bool {
        let Some(group) = self.group else { return false };
        loop {
            match waitid(WaitId::Pgid(Some(group)), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The daemon ends, or a start was given up: nobody waits for a polite end.
        if self.child.id().is_some() {
            self.signal(Signal::KILL);
        }
    }
}
