//! Workers as they come and go: started, put in each other's place, at fault, ended.

use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{Conversation, GRACE, Published, START_TIME, Supervisor, SupervisorMessage};
use crate::plugin_host::fault::LibraryFault;
use crate::plugin_host::host::Serving;
use crate::plugin_host::in_process::InProcess;
use crate::plugin_host::library::Library;
use crate::plugin_host::link::Link;
use crate::plugin_host::process::{Ends, Process, explain};
use crate::plugin_host::quarantine::Verdict;
use crate::plugin_host::settings::Isolation;
use crate::plugin_host::slot::{Slot, Worker};
use crate::plugin_host::socket_line::SocketLine;
use crate::plugin_host::state::PastFault;
use crate::plugin_host::thread_limit;
use crate::plugin_host::wire::{Hello, Order, Reply, Setup};
use crate::process::output::{Said, capture};
use crate::telemetry::events::{PluginFaulted, PluginReplaced, PluginSaid};

impl Supervisor {
    /// Starts and ends what has to be for one slot.
    pub(super) fn consider(&mut self, index: usize) {
        let now = Instant::now();
        let (slot, launch) = (&mut self.slots[index], &self.settings.launch);
        let Some(wanted) = slot.wanted(&self.records, now).cloned() else {
            // What may not run is not kept running, nor under limits that hold no more. What is put aside has ended
            // already: what serves of the same content has the settings of before.
            slot.retry_at = None;
            let goes_on =
                slot.library.is_some() && slot.serving.as_ref().is_some_and(|worker| worker.launch == *launch);
            let serving = if goes_on { None } else { slot.serving.take() };
            if serving.is_some() {
                // Another may have its id from now on.
                self.last_scan = None;
            }
            let ended = slot.starting.take().into_iter().chain(serving);
            ended.collect::<Vec<_>>().into_iter().for_each(|worker| self.dismiss(worker));
            return;
        };
        let settings = self.settings.of(&wanted.identity.id);
        if slot.starting.is_some() && !slot.is_starting(&wanted, launch, &settings) {
            let outdated = slot.starting.take();
            if let Some(outdated) = outdated {
                self.dismiss(outdated);
            }
        }
        let slot = &mut self.slots[index];
        let is_inside = slot.serving.as_ref().is_some_and(|worker| worker.process.is_none());
        if slot.starting.is_some() || slot.is_served(&wanted, &self.settings.launch, &settings) {
            slot.retry_at = None;
            if is_inside && slot.library.is_some() {
                slot.refusal = None;
            }
            return;
        }
        if is_inside {
            slot.refuse("a library that runs in the daemon is replaced by a restart".to_owned(), &self.metrics);
            slot.retry_at = None;
            return;
        }
        if slot.retry_at.is_some_and(|retry_at| retry_at > now) {
            return;
        }
        slot.retry_at = None;
        self.start(index, wanted, settings);
    }

    fn start(&mut self, index: usize, library: Library, settings: String) {
        self.numbers += 1;
        let mut worker = Worker {
            number: self.numbers,
            library,
            launch: self.settings.launch.clone(),
            settings,
            hello: Hello::default(),
            serving: None,
            process: None,
            tasks: Vec::new(),
            snapshot: self.published.borrow().as_ref().map_or(0, |published| published.snapshot.generation),
        };
        let started = match self.settings.isolation {
            Isolation::Process => self.start_process(&mut worker),
            Isolation::InProcess => self.start_in_process(&worker),
        };
        match started {
            Ok(()) => self.slots[index].starting = Some(worker),
            Err(error) => self.fail(index, worker, LibraryFault::Spawn(error.to_string())),
        }
    }

    fn start_process(&self, worker: &mut Worker) -> io::Result<()> {
        let (process, Ends { socket, output }) = Process::start(&worker.launch.program, worker.library.image())?;
        let (exit, hang_up, pid) = (process.exit()?, socket.try_clone()?, process.id());
        worker.process = Some((process, hang_up));
        let (number, sender, id) = (worker.number, self.sender.clone(), worker.library.identity.id.clone());
        let exited = sender.clone();
        self.runtime.spawn(async move {
            exit.await;
            let _ = exited.send(SupervisorMessage::Exited { number });
        });
        self.runtime.spawn(async move {
            let outcome = capture(output, |said| match said {
                Said::Line(level, text) => PluginSaid { plugin: &id, level, text: &text }.emit(),
                Said::Dropped(lines) => {
                    tracing::warn!(plugin = id, lines, "rule library prints too much; lines dropped");
                }
            });
            if let Err(error) = outcome.await {
                tracing::warn!(%error, "what a rule library prints cannot be read");
            }
        });
        let (setup, published) = (setup(worker), self.published.borrow().clone());
        let greeting = self.runtime.spawn(async move {
            let snapshot = published.as_deref().map_or(&[][..], |published| &published.order);
            let outcome = greet_in_time(socket, pid, setup, snapshot).await;
            let outcome = outcome.map(|(line, hello)| (Conversation::SocketLine(line), hello));
            // If it fails, the daemon is stopping.
            let _ = sender.send(SupervisorMessage::Started { number, outcome });
        });
        worker.tasks.push(greeting.abort_handle());
        Ok(())
    }

    fn start_in_process(&self, worker: &Worker) -> io::Result<()> {
        let (number, sender) = (worker.number, self.sender.clone());
        let snapshot =
            self.published.borrow().as_ref().map(|published| Arc::clone(&published.snapshot)).unwrap_or_default();
        let id = worker.library.identity.id.clone();
        let log = move |level: i32, text: &str| {
            PluginSaid { plugin: &id, level: level.clamp(1, 5) as u8, text }.emit();
        };
        InProcess::start(worker.library.clone(), worker.settings.clone(), snapshot, Box::new(log), move |outcome| {
            let outcome = outcome.map(|(inside, hello)| (Conversation::InProcess(inside), hello));
            let _ = sender.send(SupervisorMessage::Started { number, outcome });
        })
    }

    pub(super) fn is_starting(&self, number: u64) -> bool {
        self.slots.iter().filter_map(|slot| slot.starting.as_ref()).any(|worker| worker.number == number)
    }

    pub(super) fn started(&mut self, number: u64, outcome: Result<(Conversation, Hello), LibraryFault>) {
        let is_it = |slot: &Slot| slot.starting.as_ref().is_some_and(|worker| worker.number == number);
        // Not any more, if it was dismissed meanwhile.
        let Some(index) = self.slots.iter().position(is_it) else { return };
        let Some(mut worker) = self.slots[index].starting.take() else { return };
        let (conversation, hello) = match outcome {
            Ok(ready) => ready,
            Err(fault) => return self.fail(index, worker, fault),
        };
        worker.hello = hello;
        worker.serving = Some(match conversation {
            Conversation::InProcess(inside) => Serving::InProcess(inside),
            Conversation::SocketLine(line) => {
                let sender = self.sender.clone();
                let link = Link::start(line, self.settings.launch.deadline, &self.runtime, move |fault| {
                    let _ = sender.send(SupervisorMessage::Faulted { number, fault });
                });
                if worker.hello.wants_snapshots {
                    let keeper = keep_snapshot_current(
                        Arc::clone(&link),
                        self.published.subscribe(),
                        worker.snapshot,
                        worker.hello.id.clone(),
                    );
                    worker.tasks.push(self.runtime.spawn(keeper).abort_handle());
                }
                Serving::Worker(link)
            }
        });
        let (version, hash) = (worker.hello.version.clone(), worker.library.hash.to_string());
        if self.slots[index].id != worker.hello.id {
            self.rename(index, worker.hello.id.clone());
            // Another may have the id of before from now on.
            self.last_scan = None;
        }
        let slot = &mut self.slots[index];
        slot.good = Some(worker.library.clone());
        slot.failures = 0;
        if let Some(old) = slot.serving.replace(worker) {
            slot.restarts += 1;
            PluginReplaced { plugin: &slot.id, version: &version, hash: &hash }.emit(&self.metrics);
            // Before the old one refuses calls, the new one must be found.
            self.announce(Instant::now());
            self.drain(old);
        }
    }

    /// Lets calls end that are under way, then ends the worker.
    fn drain(&mut self, worker: Worker) {
        let Some(Serving::Worker(link)) = &worker.serving else { return self.dismiss(worker) };
        let (link, number, sender) = (Arc::clone(link), worker.number, self.sender.clone());
        self.runtime.spawn(async move {
            link.drain().await;
            let _ = sender.send(SupervisorMessage::Drained { number });
        });
        self.leaving.push((worker, Instant::now() + self.settings.launch.deadline + GRACE));
    }

    pub(super) fn drained(&mut self, number: u64) {
        if let Some((worker, kill_at)) = self.leaving.iter_mut().find(|(worker, _)| worker.number == number) {
            worker.hang_up();
            *kill_at = Instant::now() + GRACE;
        }
    }

    /// Ends a worker that nobody speaks to.
    pub(super) fn dismiss(&mut self, worker: Worker) {
        if let Some(Serving::Worker(link)) = &worker.serving {
            link.retire();
        }
        worker.hang_up();
        worker.tasks.iter().for_each(AbortHandle::abort);
        self.leaving.push((worker, Instant::now() + GRACE));
    }

    pub(super) fn at_fault(&mut self, number: u64, fault: LibraryFault) {
        if let Some(at) = self.leaving.iter().position(|(worker, _)| worker.number == number) {
            self.leaving.remove(at).0.end();
            return;
        }
        let is_it = |worker: &Option<Worker>| worker.as_ref().is_some_and(|worker| worker.number == number);
        let Some(index) = self.slots.iter().position(|slot| is_it(&slot.starting) || is_it(&slot.serving)) else {
            return;
        };
        let slot = &mut self.slots[index];
        let worker = if is_it(&slot.starting) { slot.starting.take() } else { slot.serving.take() };
        if let Some(worker) = worker {
            self.fail(index, worker, fault);
        }
    }

    /// Ends a worker that is at fault, and decides when there will be another.
    fn fail(&mut self, index: usize, worker: Worker, fault: LibraryFault) {
        if let Some(Serving::Worker(link)) = &worker.serving {
            // Nobody else is to begin a call, or to report the same.
            link.retire();
        }
        let hash = worker.library.hash;
        let status = worker.end();
        let fault = explain(fault, status);
        let now = Instant::now();
        self.records.retain(|_, record| !record.is_clean(now));
        let verdict = self.records.entry(hash).or_default().fail(now);
        let slot = &mut self.slots[index];
        match verdict {
            Verdict::Backoff(failures, time) => (slot.failures, slot.retry_at) = (failures, Some(now + time)),
            Verdict::Quarantine(_) => (slot.failures, slot.retry_at) = (0, None),
        }
        let text = hash.to_string();
        let old_serves = slot.serving.is_some();
        // What never served was not replaced.
        slot.restarts += u64::from(!old_serves);
        PluginFaulted { plugin: &slot.id, kind: fault.label(), fault: &fault, hash: &text, old_serves }
            .emit(&self.metrics);
        let known = [&slot.library, &slot.good].into_iter().flatten().find(|library| library.hash == hash);
        let version = known.map(|library| library.identity.version.clone());
        slot.last_fault =
            Some(PastFault { kind: fault.label(), message: fault.to_string(), at: SystemTime::now(), hash, version });
        // At once: until then, calls would go to a worker that is not there.
        self.announce(now);
    }

    /// Lets all workers end by themselves for a moment, then ends them.
    pub(super) fn shut_down(self) {
        self.table.store(Arc::default());
        let running = self.slots.into_iter().flat_map(|slot| slot.starting.into_iter().chain(slot.serving));
        let mut workers: Vec<Worker> = running.chain(self.leaving.into_iter().map(|(worker, _)| worker)).collect();
        workers.iter().for_each(Worker::hang_up);
        let deadline = Instant::now() + GRACE;
        while workers.iter().any(|worker| worker.process.is_some()) && Instant::now() < deadline {
            let handles: Vec<_> = workers.iter().filter_map(|worker| worker.process.as_ref()).collect();
            wait_for_any(&handles.iter().map(|(process, _)| process).collect::<Vec<_>>(), deadline);
            workers.retain_mut(|worker| worker.process.as_mut().is_none_or(|(process, _)| process.ended().is_none()));
        }
        for worker in workers {
            worker.end();
        }
    }
}

/// Waits until one of the processes ends, or it is late.
fn wait_for_any(processes: &[&Process], deadline: Instant) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled: Vec<PollFd<'_>> = processes.iter().map(|process| PollFd::new(*process, PollFlags::IN)).collect();
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    // Whatever comes of it, whoever called looks at the processes themselves.
    let _ = poll(&mut polled, Some(&left));
}

/// How this worker is to live.
fn setup(worker: &Worker) -> Setup {
    let identity = &worker.library.identity;
    Setup {
        max_memory_bytes: worker.launch.max_memory_bytes,
        require_sandbox: worker.launch.require_sandbox,
        settings: worker.settings.clone(),
        noted: (identity.id.clone(), identity.version.clone()),
    }
}

/// Sets the worker with this process id up and waits until it is ready.
pub(in crate::plugin_host) async fn greet_in_time(
    socket: std::os::unix::net::UnixStream,
    pid: u32,
    setup: Setup,
    snapshot: &[u8],
) -> Result<(SocketLine, Hello), LibraryFault> {
    let greeting = async {
        let mut line = SocketLine::new(socket).map_err(|error| LibraryFault::Spawn(error.to_string()))?;
        line.order(&Order::Setup(setup));
        line.raw(snapshot);
        if let Some(listener) = line.receive_listener().await? {
            // Ends with the worker.
            tokio::spawn(thread_limit::enforce(listener, pid));
        }
        match line.converse().await? {
            Reply::Ready(hello) => Ok((line, hello)),
            Reply::Failed(reason) => Err(LibraryFault::Refused(reason)),
            _ => Err(LibraryFault::Protocol("it answered before it was asked".to_owned())),
        }
    };
    let slow = |_| Err(LibraryFault::SlowStart(START_TIME.as_secs()));
    tokio::time::timeout(START_TIME, greeting).await.unwrap_or_else(slow)
}

/// Tells each catalog after the one of generation `known`, and of several that came meanwhile the last.
async fn keep_snapshot_current(
    link: Arc<Link>,
    mut published: watch::Receiver<Option<Arc<Published>>>,
    mut known: u64,
    id: String,
) {
    loop {
        let newest = published.borrow_and_update().clone();
        if let Some(newest) = newest.filter(|newest| newest.snapshot.generation != known) {
            known = newest.snapshot.generation;
            if let Err(refusal) = link.send_snapshot(&newest.order).await {
                tracing::warn!(plugin = id, reason = refusal.message, "rule library refused the catalog");
            }
        }
        if published.changed().await.is_err() || link.is_broken() {
            return;
        }
    }
}
