//! The one thread that starts and ends workers.
//!
//! One, and as long-lived as the daemon, since the kernel kills a worker when the thread that started it ends. It never
//! waits for a library: what takes time (a start, a catalog being published, a drain) is a task that sends a message
//! when it is done, so every decision is made here, in the order of the messages.

mod files;
mod workers;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::ask::Snapshot;
use super::discover::is_library;
use super::fault::LibraryFault;
use super::host::{HostTable, Reloaded, Serving};
use super::in_process::InProcess;
use super::sandbox::has_landlock;
use super::settings::{Isolation, Settings};
use super::slot::{Records, Slot, Worker, put_aside_until};
use super::socket_line::SocketLine;
use super::state::State;
use super::wire::{Hello, Order, encode};
use crate::telemetry::Metrics;
use crate::telemetry::events::{PluginStateChanged, SandboxMissing};
use crate::watch::{Debounce, Hint, Watch};
pub(super) use workers::greet_in_time;

/// From the start of a worker until it is ready: loaded, made, told the catalog and asked once.
pub(super) const START_TIME: Duration = Duration::from_secs(5);

/// How long a worker that was told to end may take.
const GRACE: Duration = Duration::from_millis(500);

/// What the thread is told.
pub(super) enum SupervisorMessage {
    /// There is another catalog.
    Publish(Box<dyn FnOnce() -> Snapshot + Send>),
    /// A worker is ready, or is not.
    Started {
        number: u64,
        outcome: Result<(Conversation, Hello), LibraryFault>,
    },
    /// A worker that served is at fault.
    Faulted {
        number: u64,
        fault: LibraryFault,
    },
    Exited {
        number: u64,
    },
    /// No call is under way at this worker any more, which has been replaced.
    Drained {
        number: u64,
    },
    Hint(Hint),
    /// Look at the files.
    Reload {
        settings: Option<Settings>,
        reply: oneshot::Sender<Reloaded>,
    },
    Reset {
        id: String,
        reply: oneshot::Sender<bool>,
    },
    Stop,
}

/// How a worker that is ready is spoken to.
pub(super) enum Conversation {
    SocketLine(SocketLine),
    InProcess(InProcess),
}

/// A catalog, and the order that tells it.
#[derive(Debug)]
struct Published {
    snapshot: Arc<Snapshot>,
    order: Vec<u8>,
}

pub(super) struct Supervisor {
    settings: Settings,
    metrics: Arc<Metrics>,
    runtime: Handle,
    sender: Sender<SupervisorMessage>,
    settle: watch::Sender<bool>,
    table: Arc<ArcSwap<HostTable>>,
    slots: Vec<Slot>,
    /// Replaced, and not ended yet.
    leaving: Vec<(Worker, Instant)>,
    records: Records,
    published: watch::Sender<Option<Arc<Published>>>,
    unmade: Option<Box<dyn FnOnce() -> Snapshot + Send>>,
    numbers: u64,
    watch: Watch,
    debounce: Debounce,
    last_scan: Option<Instant>,
    troubles: Vec<String>,
    unclaimed: Vec<String>,
    waiting: Vec<oneshot::Sender<Reloaded>>,
    has_landlock: bool,
}

impl Supervisor {
    pub(super) fn new(
        settings: Settings,
        metrics: Arc<Metrics>,
        runtime: Handle,
        sender: Sender<SupervisorMessage>,
        settle: watch::Sender<bool>,
        table: Arc<ArcSwap<HostTable>>,
    ) -> Self {
        let has_landlock = has_landlock();
        if !has_landlock && settings.isolation == Isolation::Process {
            SandboxMissing { refused: settings.launch.require_sandbox }.emit(&metrics);
        }
        let watch = watch(&settings, &sender);
        Self {
            settings,
            metrics,
            runtime,
            sender,
            settle,
            table,
            slots: Vec::new(),
            leaving: Vec::new(),
            records: Records::new(),
            published: watch::Sender::new(None),
            unmade: None,
            numbers: 0,
            watch,
            debounce: Debounce::default(),
            last_scan: None,
            troubles: Vec::new(),
            unclaimed: Vec::new(),
            waiting: Vec::new(),
            has_landlock,
        }
    }

    /// Runs until it is told to stop.
    pub(super) fn run(mut self, messages: &Receiver<SupervisorMessage>) {
        loop {
            let now = Instant::now();
            let wait = self.due(now).map_or(Duration::from_secs(3600), |due| due.saturating_duration_since(now));
            let first = match messages.recv_timeout(wait) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut end = ControlFlow::Continue(());
            for message in first.into_iter().chain(messages.try_iter()) {
                end = self.take(message);
                if end.is_break() {
                    break;
                }
            }
            if end.is_break() {
                break;
            }
            self.tend();
        }
        self.shut_down();
    }

    fn take(&mut self, message: SupervisorMessage) -> ControlFlow<()> {
        match message {
            SupervisorMessage::Publish(make) => self.unmade = Some(make),
            SupervisorMessage::Started { number, outcome } => self.started(number, outcome),
            SupervisorMessage::Faulted { number, fault } => self.at_fault(number, fault),
            // Of one that starts, the greeting tells more: it may have said why.
            SupervisorMessage::Exited { number } if self.is_starting(number) => {}
            SupervisorMessage::Exited { number } => {
                self.at_fault(number, LibraryFault::Crash("its process ended".to_owned()));
            }
            SupervisorMessage::Drained { number } => self.drained(number),
            SupervisorMessage::Hint(hint) => {
                let _ = self.debounce.hint(hint, Instant::now());
            }
            SupervisorMessage::Reload { settings, reply } => {
                if let Some(settings) = settings {
                    self.adopt(settings);
                }
                self.last_scan = None;
                self.waiting.push(reply);
            }
            SupervisorMessage::Reset { id, reply } => {
                let _ = reply.send(self.reset(&id));
            }
            SupervisorMessage::Stop => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// When there is something to do without a message.
    fn due(&self, now: Instant) -> Option<Instant> {
        if self.published.borrow().is_none() {
            return None;
        }
        let scan = self.last_scan.map_or(now, |last| last + self.settings.poll_interval);
        let retries = self.slots.iter().filter_map(|slot| slot.retry_at);
        let forgiven = self.slots.iter().filter_map(|slot| put_aside_until(slot.library.as_ref()?, &self.records, now));
        let leaving = self.leaving.iter().map(|(_, kill_at)| *kill_at);
        retries.chain(forgiven).chain(leaving).chain(self.debounce.due()).chain([scan]).min()
    }

    /// Does all that is due.
    fn tend(&mut self) {
        if let Some(make) = self.unmade.take() {
            self.publish_snapshot(make());
        }
        if self.published.borrow().is_none() {
            return;
        }
        let now = Instant::now();
        let is_due = |due: Instant| due <= now;
        if self.last_scan.is_none_or(|last| is_due(last + self.settings.poll_interval))
            || self.debounce.due().is_some_and(is_due)
        {
            self.scan();
        }
        for index in 0..self.slots.len() {
            self.consider(index);
        }
        let now = Instant::now();
        for (worker, _) in self.leaving.extract_if(.., |(_, kill_at)| *kill_at <= now) {
            worker.end();
        }
        self.announce(now);
    }

    fn publish_snapshot(&mut self, snapshot: Snapshot) {
        let mut order = Vec::new();
        let message: Order = Order::Snapshot(snapshot);
        encode(&message, &mut order);
        let Order::Snapshot(snapshot) = message else { return };
        let published = Arc::new(Published { snapshot: Arc::new(snapshot), order });
        for serving in self.slots.iter().filter_map(|slot| slot.serving.as_ref()?.serving.as_ref()) {
            if let Serving::InProcess(in_process) = serving {
                in_process.set_snapshot(Arc::clone(&published.snapshot));
            }
        }
        self.published.send_replace(Some(published));
    }

    fn adopt(&mut self, settings: Settings) {
        if settings.watch != self.settings.watch {
            self.watch = watch(&settings, &self.sender);
        }
        // What runs in the daemon stays there until the restart.
        let isolation = self.settings.isolation;
        let before = std::mem::replace(&mut self.settings, Settings { isolation, ..settings });
        // What is to run otherwise was never tried so.
        for slot in &mut self.slots {
            let is_other = self.settings.launch != before.launch
                || self.settings.of(slot.library_id()) != before.of(slot.library_id());
            if is_other {
                slot.forgive(&mut self.records);
            }
        }
    }

    fn reset(&mut self, id: &str) -> bool {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) else { return false };
        slot.forgive(&mut self.records);
        slot.stamp = None;
        self.last_scan = None;
        tracing::info!(plugin = id, "rule library reset");
        true
    }

    /// Says what changed, publishes what is to be called, and answers who waits for an end of all starts.
    fn announce(&mut self, now: Instant) {
        let mut entries = Vec::with_capacity(self.slots.len());
        for slot in &mut self.slots {
            let state = slot.state(&self.records, now);
            if slot.announced != Some(state) {
                let known = slot.serving.as_ref().map(|worker| &worker.library).or(slot.library.as_ref());
                let content = known.map(|library| (library.hash.to_string(), library.identity.version.clone()));
                let reason = slot.reason();
                PluginStateChanged {
                    plugin: &slot.id,
                    from: slot.announced.map(State::label),
                    to: state.label(),
                    failures: state.failures(),
                    content: content.as_ref().map(|(hash, version)| (hash.as_str(), version.as_str())),
                    reason: reason.as_deref().filter(|_| state != State::Ready),
                }
                .emit(&self.metrics);
                slot.announced = Some(state);
            }
            let outdated = slot.outdated(&self.settings, &self.records, now);
            if let Some(entry) = slot.entry(state, outdated, &self.records, now) {
                let is_outdated = entry.status.update_refused().is_some();
                self.metrics.plugins.is_outdated.with_label_values(&[&slot.id]).set(is_outdated.into());
                entries.push(entry);
            }
        }
        let is_settled = self.last_scan.is_some() && self.slots.iter().all(|slot| self.has_settled(slot, now));
        self.table.store(Arc::new(HostTable { entries, deadline: self.settings.launch.deadline }));
        if is_settled {
            self.settle.send_if_modified(|settled| !std::mem::replace(settled, true));
            let ready = self.slots.iter().filter(|slot| slot.serving.is_some()).count();
            let failure = |slot: &Slot| slot.failure().or_else(|| slot.outdated(&self.settings, &self.records, now));
            let failed: Vec<(String, String)> =
                self.slots.iter().filter_map(|slot| Some((slot.id.clone(), failure(slot)?))).collect();
            let missing = self.troubles.iter().map(|trouble| ("plugins.paths".to_owned(), trouble.clone()));
            let failed: Vec<(String, String)> = failed.into_iter().chain(missing).collect();
            for reply in self.waiting.drain(..) {
                let _ = reply.send(Reloaded { ready, failed: failed.clone() });
            }
        }
    }

    /// Has what is wanted started, or failed for now?
    fn has_settled(&self, slot: &Slot, now: Instant) -> bool {
        if slot.starting.is_some() {
            return false;
        }
        if !slot.state(&self.records, now).is_settled() {
            // Who waits is not to wait for the next try of what takes so long.
            return slot.last_fault.as_ref().is_some_and(|fault| matches!(fault.kind, "slow_start"));
        }
        slot.wanted(&self.records, now).is_none_or(|wanted| {
            let settings = self.settings.of(&wanted.identity.id);
            slot.is_served(wanted, &self.settings.launch, &settings)
                || slot.serving.as_ref().is_some_and(|worker| worker.process.is_none())
        })
    }
}

fn watch(settings: &Settings, sender: &Sender<SupervisorMessage>) -> Watch {
    if !settings.watch {
        return Watch::off("file events are turned off in the configuration");
    }
    let sender = sender.clone();
    Watch::new(is_library, move |hint| {
        // If it fails, nobody is left to look.
        let _ = sender.send(SupervisorMessage::Hint(hint));
    })
}
