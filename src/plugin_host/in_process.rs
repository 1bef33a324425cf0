//! A library that the operator trusts enough to run in the daemon: on a thread of its own, since nothing can end it.
//!
//! What it crashes, it crashes for all. What it does not answer in time is answered without it; a thread that hangs is
//! left alone, and calls are then refused as busy until it comes back. It is never unloaded, and replaced by a restart
//! only.

use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::ask::{Ask, Proposal, Snapshot};
use super::fault::LibraryFault;
use super::instance::Instance;
use super::library::Library;
use super::link::Unanswered;
use super::services::LogSink;
use super::start_error::StartError;
use super::wire::{Hello, clamp};
use super::worker::{chain, first_call};

/// Calls that wait for one library.
const MAX_WAITING: usize = 64;

/// A library in the daemon.
#[derive(Debug, Clone)]
pub(super) struct InProcess {
    jobs: SyncSender<Job>,
}

#[derive(Debug)]
enum Job {
    Ask { ask: Arc<Ask>, until: Instant, reply: oneshot::Sender<Result<Vec<Proposal>, Unanswered>> },
    Tell(Arc<Snapshot>),
}

impl InProcess {
    /// Loads the library on a thread of its own; `started` is told how that went.
    pub(super) fn start(
        library: Library,
        settings: String,
        snapshot: Arc<Snapshot>,
        log: LogSink,
        started: impl FnOnce(Result<(Self, Hello), LibraryFault>) + Send + 'static,
    ) -> io::Result<()> {
        let (jobs, received) = sync_channel(MAX_WAITING);
        let inside = Self { jobs };
        let name: String = format!("rule {}", library.identity.id).chars().take(15).collect();
        Builder::new().name(name).spawn(move || match load(&library, settings, &snapshot, log) {
            Ok(instance) => {
                let hello = instance.about().clone();
                started(Ok((inside, hello)));
                serve(instance, snapshot, &received);
                // For as long as its code is mapped: for ever.
                std::mem::forget(library);
            }
            Err(error) => started(Err(LibraryFault::Refused(chain(&error)))),
        })?;
        Ok(())
    }

    /// Asks the library; the answer is waited for until `until`.
    pub(super) async fn ask(&self, ask: Arc<Ask>, until: Instant) -> Result<Vec<Proposal>, Unanswered> {
        let (reply, answer) = oneshot::channel();
        self.jobs.try_send(Job::Ask { ask, until, reply }).map_err(|_| Unanswered::Busy)?;
        match timeout_at(until, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Unanswered::Busy),
            Err(_) => Err(Unanswered::Late),
        }
    }

    /// Tells the catalog. A library that is too busy for that is told the next one.
    pub(super) fn set_snapshot(&self, snapshot: Arc<Snapshot>) {
        if self.jobs.try_send(Job::Tell(snapshot)).is_err() {
            tracing::warn!("a rule library in the daemon is too busy to be told the catalog");
        }
    }
}

fn load(library: &Library, settings: String, snapshot: &Snapshot, log: LogSink) -> Result<Instance, StartError> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", library.image().as_raw_fd()));
    let noted = (library.identity.id.as_str(), library.identity.version.as_str());
    let mut instance = Instance::load(&path, noted, settings, log)?;
    first_call(&mut instance, snapshot)?;
    Ok(instance)
}

/// Does jobs until nobody can send any more.
fn serve(mut instance: Instance, mut snapshot: Arc<Snapshot>, jobs: &Receiver<Job>) {
    for job in jobs {
        match job {
            Job::Ask { ask, until, reply } => {
                let patience = until.saturating_duration_since(Instant::now());
                // Nobody waits any more.
                if patience.is_zero() {
                    continue;
                }
                let outcome = instance.ask(&ask, patience);
                let is_lost = outcome.as_ref().is_err_and(|refusal| refusal.for_good);
                let outcome = outcome.map_err(|refusal| Unanswered::Failed(refusal.message)).map(|mut proposals| {
                    clamp(&mut proposals);
                    proposals
                });
                let _ = reply.send(outcome);
                if is_lost {
                    renew(&mut instance, &snapshot);
                }
            }
            Job::Tell(newer) => {
                snapshot = newer;
                set_snapshot(&mut instance, &snapshot);
            }
        }
    }
}

/// An instance that panicked answers nothing else, so another takes its place.
fn renew(instance: &mut Instance, snapshot: &Snapshot) {
    match instance.remake() {
        Ok(()) => set_snapshot(instance, snapshot),
        Err(error) => tracing::error!(plugin = instance.about().id, %error, "rule library lost until the restart"),
    }
}

fn set_snapshot(instance: &mut Instance, snapshot: &Snapshot) {
    if let Err(refusal) = instance.set_snapshot(snapshot) {
        tracing::warn!(plugin = instance.about().id, reason = refusal.message, "rule library refused the catalog");
    }
}
