//! Workers as they come and go: started, put in each other's place, at fault, ended.

use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{Conversation, GRACE, Message, START_TIME, Supervisor, Told};
use crate::config::Isolation;
use crate::plugin_host::fault::Fault;
use crate::plugin_host::host::Serving;
use crate::plugin_host::inside::Inside;
use crate::plugin_host::library::Library;
use crate::plugin_host::link::{Line, Link};
use crate::plugin_host::output::{Said, capture};
use crate::plugin_host::process::{Ends, Process, explain};
use crate::plugin_host::quarantine::Verdict;
use crate::plugin_host::slot::{Slot, Worker};
use crate::plugin_host::state::PastFault;
use crate::plugin_host::wire::{Hello, Order, Reply, Setup};
use crate::telemetry::events::{PluginFaulted, PluginReplaced, PluginSaid};

impl Supervisor {
    /// Starts and ends what has to be for one slot.
    pub(super) fn consider(&mut self, index: usize) {
        let now = Instant::now();
        let (slot, launch) = (&mut self.slots[index], &self.settings.launch);
        let Some(wanted) = slot.wanted(&self.records, now).cloned() else {
            // What may not run is not kept running, and what is put aside has ended already.
            slot.retry_at = None;
            let ended = slot.starting.take().into_iter().chain(slot.serving.take());
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
        if slot.starting.is_some() || slot.is_served(&wanted, &self.settings.launch, &settings) {
            slot.retry_at = None;
            return;
        }
        if slot.serving.as_ref().is_some_and(|worker| worker.process.is_none()) {
            slot.refusal = Some("a library that runs in the daemon is replaced by a restart".to_owned());
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
            told: self.told.borrow().as_ref().map_or(0, |told| told.snapshot.generation),
        };
        let started = match self.settings.isolation {
            Isolation::Process => self.start_process(&mut worker),
            Isolation::InProcess => self.start_inside(&worker),
        };
        match started {
            Ok(()) => self.slots[index].starting = Some(worker),
            Err(error) => self.fail(index, worker, Fault::Spawn(error.to_string())),
        }
    }

    fn start_process(&self, worker: &mut Worker) -> io::Result<()> {
        let (process, Ends { socket, output }) = Process::start(&worker.launch.program, worker.library.image())?;
        let (exit, hang_up) = (process.exit()?, socket.try_clone()?);
        worker.process = Some((process, hang_up));
        let (number, sender, id) = (worker.number, self.sender.clone(), worker.library.identity.id.clone());
        let exited = sender.clone();
        self.runtime.spawn(async move {
            exit.await;
            let _ = exited.send(Message::Exited { number });
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
        let (setup, told) = (setup(worker), self.told.borrow().clone());
        let greeting = self.runtime.spawn(async move {
            let told = told.as_deref().map_or(&[][..], |told| &told.order);
            let outcome = greet_in_time(socket, setup, told).await;
            let outcome = outcome.map(|(line, hello)| (Conversation::Line(line), hello));
            // If it fails, the daemon is stopping.
            let _ = sender.send(Message::Started { number, outcome });
        });
        worker.tasks.push(greeting.abort_handle());
        Ok(())
    }

    fn start_inside(&self, worker: &Worker) -> io::Result<()> {
        let (number, sender) = (worker.number, self.sender.clone());
        let snapshot = self.told.borrow().as_ref().map(|told| Arc::clone(&told.snapshot)).unwrap_or_default();
        let id = worker.library.identity.id.clone();
        let log = move |level: i32, text: &str| {
            PluginSaid { plugin: &id, level: level.clamp(1, 5) as u8, text }.emit();
        };
        Inside::start(worker.library.clone(), worker.settings.clone(), snapshot, Box::new(log), move |outcome| {
            let outcome = outcome.map(|(inside, hello)| (Conversation::Inside(inside), hello));
            let _ = sender.send(Message::Started { number, outcome });
        })
    }

    pub(super) fn is_starting(&self, number: u64) -> bool {
        self.slots.iter().filter_map(|slot| slot.starting.as_ref()).any(|worker| worker.number == number)
    }

    pub(super) fn started(&mut self, number: u64, outcome: Result<(Conversation, Hello), Fault>) {
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
            Conversation::Inside(inside) => Serving::Inside(inside),
            Conversation::Line(line) => {
                let sender = self.sender.clone();
                let link = Link::new(line, self.settings.launch.deadline, self.runtime.clone(), move |fault| {
                    let _ = sender.send(Message::Faulted { number, fault });
                });
                let link = Arc::new(link);
                if worker.hello.wants_snapshots {
                    let told =
                        keep_told(Arc::clone(&link), self.told.subscribe(), worker.told, worker.hello.id.clone());
                    worker.tasks.push(self.runtime.spawn(told).abort_handle());
                }
                Serving::Worker(link)
            }
        });
        let (version, hash) = (worker.hello.version.clone(), worker.library.hash.to_string());
        let slot = &mut self.slots[index];
        slot.rename(worker.hello.id.clone(), &self.metrics);
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
            let _ = sender.send(Message::Drained { number });
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
        worker.hang_up();
        worker.tasks.iter().for_each(AbortHandle::abort);
        self.leaving.push((worker, Instant::now() + GRACE));
    }

    pub(super) fn at_fault(&mut self, number: u64, fault: Fault) {
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
    fn fail(&mut self, index: usize, worker: Worker, fault: Fault) {
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
        slot.restarts += 1;
        let text = hash.to_string();
        let old_serves = slot.serving.is_some();
        PluginFaulted { plugin: &slot.id, fault: &fault, hash: &text, old_serves }.emit(&self.metrics);
        slot.last_fault =
            Some(PastFault { kind: fault.label(), message: fault.to_string(), at: SystemTime::now(), hash });
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
        max_memory: worker.launch.max_memory,
        require_sandbox: worker.launch.require_sandbox,
        settings: worker.settings.clone(),
        noted: (identity.id.clone(), identity.version.clone()),
    }
}

/// Sets a worker up and waits until it is ready.
pub(in crate::plugin_host) async fn greet_in_time(
    socket: std::os::unix::net::UnixStream,
    setup: Setup,
    told: &[u8],
) -> Result<(Line, Hello), Fault> {
    let greeting = async {
        let mut line = Line::new(socket).map_err(|error| Fault::Spawn(error.to_string()))?;
        line.order(&Order::Setup(setup));
        line.raw(told);
        match line.converse().await? {
            Reply::Ready(hello) => Ok((line, hello)),
            Reply::Failed(reason) => Err(Fault::Refused(reason)),
            _ => Err(Fault::Protocol("it answered before it was asked".to_owned())),
        }
    };
    let slow = |_| Err(Fault::SlowStart(START_TIME.as_secs()));
    tokio::time::timeout(START_TIME, greeting).await.unwrap_or_else(slow)
}

/// Tells each catalog after the one of generation `known`, and of several that came meanwhile the last.
async fn keep_told(link: Arc<Link>, mut told: watch::Receiver<Option<Arc<Told>>>, mut known: u64, id: String) {
    loop {
        let newest = told.borrow_and_update().clone();
        if let Some(newest) = newest.filter(|newest| newest.snapshot.generation != known) {
            known = newest.snapshot.generation;
            if let Err(reason) = link.tell(&newest.order).await {
                tracing::warn!(plugin = id, reason, "rule library refused the catalog");
            }
        }
        if told.changed().await.is_err() || link.is_broken() {
            return;
        }
    }
}
