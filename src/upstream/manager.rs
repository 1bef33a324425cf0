//! Brings the servers in line with the configuration, and with the directory beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::directory;
use super::journal::ServerLog;
use super::keeper::Keeper;
use super::kept::{Kept, KeptError};
use super::launcher::Launcher;
use super::open::Opener;
use super::reaper;
use super::server::{Server, ServerOrder, SharedSetup};
use super::settings::{MAX_SERVERS, ServerSettings, Settings};
use super::way_in::WayIn;
use crate::blocking;
use crate::watch::{Debounce, Hint, Watch};

/// The servers that are asked, by name.
pub(super) type ServerTable = Arc<ArcSwap<BTreeMap<String, Arc<Server>>>>;

/// How long calls of a server that was replaced may take to finish.
const GRACE: Duration = Duration::from_secs(30);

/// How much longer than their calls the keepers may take: they hear at once that they are to end, unless a disk hangs.
const JOIN: Duration = Duration::from_secs(2);

/// How long all processes together may take to end: 2 s, 5 s after SIGTERM, and 1 s for what they left behind.
const LAST: Duration = Duration::from_secs(9);

/// What the manager is told.
pub(super) enum ManagerMessage {
    /// Look at the configuration again, which may be another, and at the directory.
    Reload { settings: Option<Settings>, reply: Option<oneshot::Sender<()>> },
    /// Files of the directory changed.
    Hint(Hint),
    /// A server that was started beside an old one serves, or does not.
    Judged { name: String, number: u64, outcome: Result<(), String> },
    /// End.
    Stop { grace: Duration, reply: oneshot::Sender<()> },
}

/// A server that is kept.
struct Running {
    server: Arc<Server>,
    keeper: JoinHandle<()>,
    number: u64,
}

/// Who starts and ends servers.
pub(super) struct Manager {
    shared: Arc<SharedSetup>,
    launcher: Launcher,
    program: PathBuf,
    table: ServerTable,
    sender: mpsc::UnboundedSender<ManagerMessage>,
    settings: Settings,
    running: BTreeMap<String, Running>,
    /// Started beside an old one, and not yet in its place; or failed, so that it is not tried again as it is.
    beside: BTreeMap<String, Beside>,
    leaving: Vec<Running>,
    /// Processes that have not ended yet.
    living: watch::Sender<usize>,
    numbers: u64,
    /// Shared with whoever reads it where nobody else waits for the thread.
    directory: Arc<Mutex<directory::Directory>>,
    watch: Watch,
    debounce: Debounce,
}

/// What the disk has.
struct Found {
    /// All servers that are configured.
    wanted: BTreeMap<String, Arc<ServerSettings>>,
    /// What is kept of those that do not run.
    kept: BTreeMap<String, Result<Kept, KeptError>>,
    /// What is wrong with the files of the directory, a line each.
    faults: Vec<String>,
}

/// Reads the directory, and what is kept. Servers of the configuration come before those of the directory.
fn look(settings: &Settings, directory: &Mutex<directory::Directory>, running: &BTreeSet<String>) -> Found {
    let mut wanted: BTreeMap<String, Arc<ServerSettings>> =
        settings.servers.iter().map(|(name, server)| (name.clone(), Arc::new(server.clone()))).collect();
    let mut directory = directory.lock();
    directory.read(&settings.directory);
    for (name, server) in directory.servers() {
        if wanted.len() < MAX_SERVERS {
            wanted.entry(name.clone()).or_insert_with(|| Arc::new(server.clone()));
        }
    }
    let fresh = wanted.keys().filter(|name| !running.contains(*name));
    let kept = fresh.map(|name| (name.clone(), Kept::read(&settings.kept, name))).collect();
    let faults = directory.findings().iter().filter(|finding| finding.is_error());
    let faults = faults.map(|fault| format!("MCP servers: {}: {}", fault.place(), fault.message)).collect();
    Found { wanted, kept, faults }
}

struct Beside {
    settings: Arc<ServerSettings>,
    candidate: Option<Running>,
}

impl Manager {
    pub(super) fn new(
        shared: Arc<SharedSetup>,
        launcher: Launcher,
        program: PathBuf,
        table: ServerTable,
        sender: mpsc::UnboundedSender<ManagerMessage>,
    ) -> Self {
        Self {
            shared,
            launcher,
            program,
            table,
            sender,
            settings: Settings::default(),
            running: BTreeMap::new(),
            beside: BTreeMap::new(),
            leaving: Vec::new(),
            living: watch::Sender::new(0),
            numbers: 0,
            directory: Arc::default(),
            watch: Watch::off("nothing is configured yet"),
            debounce: Debounce::default(),
        }
    }

    /// Reads the directory, makes the servers known with what is kept of them, and goes on as a task.
    pub(super) fn begin(
        mut self,
        settings: Settings,
        messages: mpsc::UnboundedReceiver<ManagerMessage>,
        runtime: &Handle,
    ) {
        let inside = runtime.enter();
        reaper::become_subreaper();
        self.adopt(settings);
        self.arm();
        let found = look(&self.settings, &self.directory, &BTreeSet::new());
        self.bring_in_line(found);
        drop(inside);
        runtime.spawn(self.run(messages));
    }

    async fn run(mut self, mut messages: mpsc::UnboundedReceiver<ManagerMessage>) {
        let mut reaping = reaper::Reaper::default();
        loop {
            let poll = self.settings.poll_interval;
            let due = self.debounce.due().unwrap_or_else(|| Instant::now() + poll.min(reaper::INTERVAL));
            let message = tokio::time::timeout_at(due.into(), messages.recv()).await;
            match message {
                Ok(Some(ManagerMessage::Hint(hint))) => {
                    let _ = self.debounce.hint(hint, Instant::now());
                }
                Ok(Some(ManagerMessage::Reload { settings, reply })) => {
                    if let Some(settings) = settings {
                        self.adopt(settings);
                    }
                    self.look_again().await;
                    if let Some(reply) = reply {
                        let _ = reply.send(());
                    }
                }
                Ok(Some(ManagerMessage::Judged { name, number, outcome })) => self.judged(&name, number, outcome),
                Ok(Some(ManagerMessage::Stop { grace, reply })) => {
                    self.stop(grace).await;
                    let _ = reply.send(());
                    return;
                }
                Ok(None) => return,
                Err(_) => {
                    self.debounce.scanned();
                    if self.is_stale().await {
                        self.look_again().await;
                    }
                    reaping.look();
                }
            }
            self.leaving.retain(|leaving| !leaving.keeper.is_finished());
        }
    }

    fn adopt(&mut self, settings: Settings) {
        let changed = self.settings.directory != settings.directory || self.settings.watch != settings.watch;
        if changed || self.numbers == 0 {
            let sender = self.sender.clone();
            self.watch = if settings.watch {
                // If it fails, nobody is left to look.
                Watch::new(directory::is_wanted, move |hint| drop(sender.send(ManagerMessage::Hint(hint))))
            } else {
                Watch::off("file events are turned off in the configuration")
            };
        }
        self.settings = settings;
    }

    fn arm(&mut self) {
        self.watch.arm(&directory::interest(&self.settings.directory));
    }

    /// Did the directory change since it was read?
    async fn is_stale(&self) -> bool {
        let (directory, place) = (Arc::clone(&self.directory), self.settings.directory.clone());
        // Without a thread the next look tells.
        blocking::run(move || directory.lock().is_stale(&place)).await.unwrap_or_default()
    }

    /// Reads the directory again, and does what it says.
    async fn look_again(&mut self) {
        self.arm();
        let running: BTreeSet<String> = self.running.keys().cloned().collect();
        let reads = {
            let (settings, directory) = (self.settings.clone(), Arc::clone(&self.directory));
            let running = running.clone();
            blocking::run(move || look(&settings, &directory, &running)).await
        };
        // Without a thread it is done here: nobody might ask again.
        let found = reads.unwrap_or_else(|_| look(&self.settings, &self.directory, &running));
        self.bring_in_line(found);
    }

    fn bring_in_line(&mut self, found: Found) {
        let Found { wanted, mut kept, faults } = found;
        self.shared.faults.store(Arc::new(faults));
        let gone: Vec<String> = self.running.keys().filter(|name| !wanted.contains_key(*name)).cloned().collect();
        for name in gone {
            self.discard_beside(&name);
            if let Some(running) = self.running.remove(&name) {
                running.server.journal.note("is no longer configured");
                self.shared.metrics.upstream.forget(&name);
                self.end(running, GRACE);
            }
        }
        for (name, settings) in wanted {
            match self.running.get(&name) {
                Some(running) if *running.server.settings == *settings => {
                    // Changed, and changed back.
                    if self.discard_beside(&name) {
                        running_well(&self.running, &name);
                    }
                }
                Some(_) if self.beside.get(&name).is_some_and(|beside| *beside.settings == *settings) => {}
                Some(_) => {
                    self.discard_beside(&name);
                    let candidate = self.launch(&name, Arc::clone(&settings), None);
                    self.beside.insert(name, Beside { settings, candidate: Some(candidate) });
                }
                None => {
                    let running = self.launch(&name, settings, kept.remove(&name));
                    self.running.insert(name, running);
                }
            }
        }
        self.publish();
    }

    fn publish(&self) {
        let servers = self.running.iter().map(|(name, running)| (name.clone(), Arc::clone(&running.server)));
        self.table.store(Arc::new(servers.collect()));
        self.shared.revision.send_modify(|revision| *revision += 1);
    }

    /// Starts a server with what is kept of it, or beside the one that runs.
    fn launch(&mut self, name: &str, settings: Arc<ServerSettings>, kept: Option<Result<Kept, KeptError>>) -> Running {
        self.numbers += 1;
        let number = self.numbers;
        let journal = match self.running.get(name) {
            Some(running) => Arc::clone(&running.server.journal),
            None => Arc::new(ServerLog::new(name)),
        };
        let beside = self.running.get(name);
        let is_beside = beside.is_some();
        let kept = match beside {
            Some(running) => running.server.kept.lock().clone(),
            None => kept.map(|kept| readable(kept, &journal)).unwrap_or_default(),
        };
        let (orders, received) = mpsc::unbounded_channel();
        let opener = Opener {
            name: name.to_owned(),
            way_in: WayIn::new(&settings),
            settings,
            launcher: self.launcher.clone(),
            program: self.program.clone(),
            kept: self.settings.kept.clone(),
            journal,
            tool_headers: Arc::default(),
            living: self.living.clone(),
        };
        let server = Arc::new(Server::new(opener, kept, Arc::clone(&self.shared), orders));
        let first = is_beside.then(|| self.judge(name, number));
        let keeper = Keeper { server: Arc::clone(&server), orders: received, first };
        Running { server, keeper: tokio::spawn(keeper.run()), number }
    }

    fn judge(&self, name: &str, number: u64) -> oneshot::Sender<Result<(), String>> {
        let (first, judged) = oneshot::channel();
        let (sender, name) = (self.sender.clone(), name.to_owned());
        tokio::spawn(async move {
            if let Ok(outcome) = judged.await {
                let _ = sender.send(ManagerMessage::Judged { name, number, outcome });
            }
        });
        first
    }

    fn judged(&mut self, name: &str, number: u64, outcome: Result<(), String>) {
        let Some(beside) = self.beside.get_mut(name) else { return };
        let Some(candidate) = beside.candidate.take_if(|candidate| candidate.number == number) else { return };
        match outcome {
            Ok(()) => {
                self.beside.remove(name);
                candidate.server.journal.note("serves with its new configuration");
                if let Some(old) = self.running.insert(name.to_owned(), candidate) {
                    self.end(old, GRACE);
                }
                self.publish();
            }
            Err(why) => {
                if let Some(running) = self.running.get(name) {
                    let problem = format!("its new configuration does not work, and the old one goes on: {why}");
                    running.server.journal.warn(&problem);
                    running.server.publish(|state| state.problem = Some(problem.clone()));
                }
                self.end(candidate, Duration::ZERO);
            }
        }
    }

    /// True if there was one.
    fn discard_beside(&mut self, name: &str) -> bool {
        let Some(beside) = self.beside.remove(name) else { return false };
        if let Some(candidate) = beside.candidate {
            self.end(candidate, Duration::ZERO);
        }
        true
    }

    fn end(&mut self, running: Running, grace: Duration) {
        let _ = running.server.orders.send(ServerOrder::Stop(grace));
        self.leaving.push(running);
    }

    async fn stop(&mut self, grace: Duration) {
        let names: Vec<String> = self.running.keys().cloned().collect();
        for name in names {
            self.discard_beside(&name);
            if let Some(running) = self.running.remove(&name) {
                self.end(running, grace);
            }
        }
        let until = Instant::now() + grace + JOIN;
        for leaving in &self.leaving {
            // Some were left more time.
            let _ = leaving.server.orders.send(ServerOrder::Stop(grace));
        }
        for mut leaving in self.leaving.drain(..) {
            if tokio::time::timeout_at(until.into(), &mut leaving.keeper).await.is_err() {
                leaving.server.journal.warn("does not end in time");
                leaving.keeper.abort();
            }
        }
        // Each has its time to end by itself; what is left is killed with the runtime.
        let _ = tokio::time::timeout(LAST, self.living.subscribe().wait_for(|living| *living == 0)).await;
    }
}

fn readable(kept: Result<Kept, KeptError>, journal: &ServerLog) -> Kept {
    kept.unwrap_or_else(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        journal.warn(&format!("has lost its kept lists and approvals: {error}: {source}"));
        Kept::default()
    })
}

/// What was wrong with another configuration is wrong no longer.
fn running_well(running: &BTreeMap<String, Running>, name: &str) {
    if let Some(running) = running.get(name) {
        running.server.publish(|state| state.problem = None);
    }
}
