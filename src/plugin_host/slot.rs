//! One library's file and the workers that run it: which content is wanted, which serves, and what state that makes.

use std::collections::HashMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::task::AbortHandle;

use super::host::{HostEntry, Serving};
use super::library::Library;
use super::process::Process;
use super::quarantine::Record;
use super::settings::{Launch, Settings};
use super::state::{CallFigures, LibraryStatus, PastFault, State};
use super::wire::Hello;
use crate::sum::Sum;
use crate::telemetry::Metrics;
use crate::telemetry::events::PluginUpdateRefused;

/// What is held against contents.
pub(super) type Records = HashMap<Sum, Record>;

/// A library's file, and all that runs for it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) path: PathBuf,
    pub(super) id: String,
    pub(super) stamp: Option<Stamp>,
    /// What the file holds, if it may be run.
    pub(super) library: Option<Library>,
    /// Why it may not.
    pub(super) refusal: Option<String>,
    /// The last content that served: it stands in for one that fails.
    pub(super) good: Option<Library>,
    pub(super) serving: Option<Worker>,
    pub(super) starting: Option<Worker>,
    /// Before that, nothing is started.
    pub(super) retry_at: Option<Instant>,
    pub(super) failures: usize,
    pub(super) last_fault: Option<PastFault>,
    pub(super) restarts: u64,
    /// Known as soon as the file was looked at.
    pub(super) figures: Option<Arc<CallFigures>>,
    /// The state that was announced last.
    pub(super) announced: Option<State>,
}

/// A file's identity, size and times.
pub(super) type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

/// One run of a library: a process, or a thread of the daemon's.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) number: u64,
    pub(super) library: Library,
    pub(super) launch: Launch,
    pub(super) settings: String,
    pub(super) hello: Hello,
    pub(super) serving: Option<Serving>,
    /// Nothing for a library in the daemon.
    pub(super) process: Option<(Process, UnixStream)>,
    pub(super) tasks: Vec<AbortHandle>,
    /// The generation it is snapshot at the start.
    pub(super) snapshot: u64,
}

impl Worker {
    /// Does it run this content in this way?
    fn is_of(&self, library: &Library, launch: &Launch, settings: &str) -> bool {
        self.library.hash == library.hash && self.launch == *launch && self.settings == settings
    }

    /// Lets it end by itself: it reads the end of its orders.
    pub(super) fn hang_up(&self) {
        if let Some((_, socket)) = &self.process {
            // It fails if the other end is gone.
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    /// Ends it now, and reaps it. Returns how it had ended, if it is a process.
    pub(super) fn end(mut self) -> Option<std::process::ExitStatus> {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.process.as_mut().and_then(|(process, _)| process.kill())
    }
}

impl Slot {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            id: name_of(&path),
            path,
            stamp: None,
            library: None,
            refusal: None,
            good: None,
            serving: None,
            starting: None,
            retry_at: None,
            failures: 0,
            last_fault: None,
            restarts: 0,
            figures: None,
            announced: None,
        }
    }

    /// Does it serve under this id?
    pub(super) fn serves(&self, id: &str) -> bool {
        self.serving.as_ref().is_some_and(|worker| worker.library.identity.id == id)
    }

    /// Has it this id, or is it to have it?
    pub(super) fn claims(&self, id: &str) -> bool {
        [&self.library, &self.good].into_iter().flatten().any(|library| library.identity.id == id)
    }

    /// Does it serve under this id, or did so a moment ago and is started again?
    pub(super) fn holds(&self, id: &str, records: &Records, now: Instant) -> bool {
        let is_kept = self.library.is_some() || self.good.is_some();
        let returns = |good: &Library| good.identity.id == id && put_aside_until(good, records, now).is_none();
        match &self.serving {
            Some(_) => is_kept && self.serves(id),
            None => self.good.as_ref().is_some_and(returns),
        }
    }

    /// Each goes on with what it runs, and has the file of the other from now on.
    pub(super) fn exchange_files(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.path, &mut other.path);
        std::mem::swap(&mut self.stamp, &mut other.stamp);
        std::mem::swap(&mut self.library, &mut other.library);
        std::mem::swap(&mut self.refusal, &mut other.refusal);
        for slot in [self, other] {
            (slot.retry_at, slot.failures) = (None, 0);
        }
    }

    /// The content to run: the file's, or while that is put aside or unusable the last good one.
    pub(super) fn wanted(&self, records: &Records, now: Instant) -> Option<&Library> {
        let is_put_aside = |library: &&Library| put_aside_until(library, records, now).is_some();
        [&self.library, &self.good].into_iter().flatten().find(|library| !is_put_aside(library))
    }

    /// The id that its settings are found by.
    pub(super) fn library_id(&self) -> &str {
        self.library.as_ref().map_or(&self.id, |library| &library.identity.id)
    }

    /// Nothing is held against its contents any more.
    pub(super) fn forgive(&mut self, records: &mut Records) {
        for library in [&self.library, &self.good].into_iter().flatten() {
            records.remove(&library.hash);
        }
        (self.retry_at, self.failures) = (None, 0);
    }

    /// Takes note that the file must not be run. Said once: a refusal where nothing serves is a state of its own.
    pub(super) fn refuse(&mut self, reason: String, metrics: &Metrics) {
        if self.serving.is_some() && self.refusal.as_ref() != Some(&reason) {
            PluginUpdateRefused { plugin: &self.id, reason: &reason }.emit(metrics);
        }
        self.refusal = Some(reason);
    }

    /// Does what is wanted serve?
    pub(super) fn is_served(&self, library: &Library, launch: &Launch, settings: &str) -> bool {
        self.serving.as_ref().is_some_and(|worker| worker.is_of(library, launch, settings))
    }

    /// Is what is wanted on its way?
    pub(super) fn is_starting(&self, library: &Library, launch: &Launch, settings: &str) -> bool {
        self.starting.as_ref().is_some_and(|worker| worker.is_of(library, launch, settings))
    }

    pub(super) fn state(&self, records: &Records, now: Instant) -> State {
        if self.serving.is_some() {
            return State::Ready;
        }
        let Some(wanted) = self.wanted(records, now) else {
            return if self.library.is_some() { State::Quarantined } else { State::Refused };
        };
        if self.failures > 0 && self.last_fault.as_ref().is_some_and(|fault| fault.hash == wanted.hash) {
            return State::Backoff(self.failures);
        }
        State::Starting
    }

    /// Why it is not as it should be, if so.
    pub(super) fn reason(&self) -> Option<String> {
        self.refusal.clone().or_else(|| self.last_fault.as_ref().map(|fault| fault.message.clone()))
    }

    /// Why the file's content does not serve, if it does not.
    pub(super) fn failure(&self) -> Option<String> {
        let serves = self.serving.as_ref().map(|worker| worker.library.hash);
        let wanted = self.library.as_ref().map(|library| library.hash);
        if self.refusal.is_none() && serves.is_some() && serves == wanted {
            return None;
        }
        Some(self.reason().unwrap_or_else(|| "it has not started yet".to_owned()))
    }

    /// Why what serves has other settings than these, or other limits, although those were tried.
    pub(super) fn outdated(&self, wanted: &Settings, records: &Records, now: Instant) -> Option<String> {
        let worker = self.serving.as_ref().filter(|worker| worker.process.is_some())?;
        let settings = wanted.of(&worker.library.identity.id);
        let is_wanted = worker.launch == wanted.launch && worker.settings == settings;
        let was_tried = self.failures > 0 || self.wanted(records, now).is_none();
        let fault = self.last_fault.as_ref().filter(|fault| fault.hash == worker.library.hash)?;
        (!is_wanted && was_tried).then(|| format!("{}; it goes on with the settings of before", fault.message))
    }

    /// As it is to be called and shown.
    pub(super) fn entry(
        &self,
        state: State,
        outdated: Option<String>,
        records: &Records,
        now: Instant,
    ) -> Option<HostEntry> {
        let worker = self.serving.as_ref();
        let until = self.library.as_ref().and_then(|library| put_aside_until(library, records, now));
        Some(HostEntry {
            status: LibraryStatus {
                id: self.id.clone(),
                path: self.path.clone(),
                state,
                file: self.library.as_ref().map(|library| (library.hash, library.identity.clone())),
                serving: worker.map(|worker| (worker.library.hash, worker.hello.clone())),
                pid: worker.and_then(|worker| worker.process.as_ref()).map(|(process, _)| process.id()),
                refusal: self.refusal.clone().or(outdated),
                last_fault: self.last_fault.clone(),
                retry_in: until.map(|until| until - now),
                restarts: self.restarts,
            },
            serving: worker.and_then(|worker| worker.serving.clone()),
            figures: self.figures.clone()?,
        })
    }
}

/// When this content may be run again, if it is put aside.
pub(super) fn put_aside_until(library: &Library, records: &Records, now: Instant) -> Option<Instant> {
    records.get(&library.hash).and_then(|record| record.put_aside_until(now))
}

/// What a library is called until its note is known.
pub(super) fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
