//! MCP servers behind the daemon: started, watched and ended; asked on behalf of all clients; their lists kept.
//!
//! # The problem
//!
//! Servers are programs of others. They start slowly, hang, die, write noise, list thousands of tools, and change what
//! their tools say after somebody approved it. Clients that start them each by themselves multiply their processes and
//! lose their tools whenever one restarts.
//!
//! # The approach
//!
//! One process for each server, for all clients. `launcher` is the thread that starts programs, each by way of
//! [`launch`]; `peer` is the conversation; `greet` finds out which era a server is of; `list` asks for all that it
//! offers, which `hygiene` cleans and `pins` holds to what was approved; `kept` is what a restart must not lose. A task
//! for each server, its `keeper`, starts it again, ever more seldom if it fails; `manager` brings servers in line with
//! the configuration: what changed is started beside the old one, and takes its place once it serves.
//!
//! Requests and answers pass as they are; nothing here knows what a tool does.

mod call;
mod challenge;
mod check;
mod client_credentials;
mod directory;
mod fault;
mod greet;
mod hygiene;
mod journal;
mod keeper;
mod kept;
pub mod launch;
mod launcher;
mod lines;
mod list;
mod listed;
mod manager;
mod name;
mod open;
mod peer;
mod pins;
mod process;
mod reaper;
mod redirect;
mod remote;
mod secret;
mod server;
mod settings;
mod shape;
mod token;
mod way_in;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

pub use call::{CallFault, CallReply, Caller, Outgoing, ServerEvent};
pub use check::{check, configured};
pub use lines::MAX_MESSAGE_BYTES;
pub use listed::{Listed, ListedItem, ListedTool};
use manager::{Manager, ManagerMessage, ServerTable};
pub use name::{MAX_NAME, public_name};
pub use secret::is_secret_key;
pub use server::ServerState;
pub use settings::{OnChange, OnTimeout, PinPolicy, ServerSettings, Settings, name_fault, prefix_of};

use crate::telemetry::Metrics;

/// Changes of resources that wait for a slow listener; what is older is lost.
const UPDATES: usize = 256;

/// All servers. A cheap handle.
#[derive(Clone)]
pub struct Upstreams {
    table: ServerTable,
    revision: watch::Sender<u64>,
    updates: broadcast::Sender<(Arc<str>, Arc<RawValue>)>,
    faults: Arc<ArcSwap<Vec<String>>>,
    manager: mpsc::UnboundedSender<ManagerMessage>,
}

/// A definition that waits for an approval.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The tool's name there.
    pub tool: String,
    /// What was approved, if anything was.
    pub approved: Option<Box<RawValue>>,
    /// What is offered now.
    pub offered: Box<RawValue>,
}

impl Upstreams {
    /// Starts the servers. Returns at once: what they offered last is there already, from the kept lists. Servers'
    /// programs are started by way of `program`, which is `almanacd` itself.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(settings: Settings, metrics: Arc<Metrics>, runtime: &Handle, program: PathBuf) -> io::Result<Self> {
        let table = ServerTable::default();
        let (revision, updates) = (watch::Sender::new(0), broadcast::Sender::new(UPDATES));
        let faults = Arc::default();
        let shared = Arc::new(server::SharedSetup {
            metrics,
            revision: revision.clone(),
            updates: updates.clone(),
            faults: Arc::clone(&faults),
        });
        let (manager, messages) = mpsc::unbounded_channel();
        let launcher = launcher::Launcher::start(runtime.clone())?;
        let managing = Manager::new(shared, launcher, program, Arc::clone(&table), manager.clone());
        managing.begin(settings, messages, runtime);
        Ok(Self { table, revision, updates, faults, manager })
    }

    /// What is wrong with the files that name servers, a line each.
    pub fn troubles(&self) -> Arc<Vec<String>> {
        self.faults.load_full()
    }

    /// How each server is, in the order of their names.
    pub fn servers(&self) -> Arc<[Arc<ServerState>]> {
        self.table.load().values().map(|server| server.state.load_full()).collect()
    }

    /// How one server is.
    pub fn server(&self, name: &str) -> Option<Arc<ServerState>> {
        Some(self.table.load().get(name)?.state.load_full())
    }

    /// Rises whenever a list, a pin or a state changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// `params` of `notifications/resources/updated`, with the server that sent it.
    pub fn updates(&self) -> broadcast::Receiver<(Arc<str>, Arc<RawValue>)> {
        self.updates.subscribe()
    }

    /// Asks a server; what it says meanwhile goes to `events`. Waits for a slot, and for a server that is starting.
    /// Dropping the future cancels the request at the server.
    pub async fn request(
        &self,
        server: &str,
        request: Outgoing,
        events: mpsc::Sender<ServerEvent>,
    ) -> Result<CallReply, CallFault> {
        let found = self.table.load().get(server).cloned();
        let found = found.ok_or_else(|| CallFault::UnknownServer(server.to_owned()))?;
        found.request(request, events).await
    }

    /// The session still listens: the processes that are its own do not end for want of calls.
    pub fn touch_session(&self, session: &str) {
        self.table.load().values().for_each(|server| server.touch_session(session));
    }

    /// The session has ended: so do the processes that were its own.
    pub fn end_session(&self, session: &str) {
        self.table.load().values().for_each(|server| server.end_session(session));
    }

    /// Takes over another configuration; returns once it is known which servers there are, not when they serve.
    pub async fn reload(&self, settings: Settings) {
        let (reply, done) = oneshot::channel();
        let _ = self.manager.send(ManagerMessage::Reload { settings: Some(settings), reply: Some(reply) });
        // Without an answer the manager has ended, and with it the servers.
        let _ = done.await;
    }

    /// Ends a server, with the processes of sessions, and starts it again; false if there is none of that name.
    pub fn restart(&self, server: &str) -> bool {
        let found = self.table.load().get(server).cloned();
        found.is_some_and(|server| {
            server.end_sessions("it is restarted");
            server.orders.send(server::ServerOrder::Restart("operator")).is_ok()
        })
    }

    /// The last lines that a server wrote, and what became of it; nothing if there is none of that name.
    pub fn logs(&self, server: &str) -> Option<Vec<String>> {
        Some(self.table.load().get(server)?.journal.lines())
    }

    /// What waits for an approval; nothing if there is no server of that name.
    pub fn differences(&self, server: &str) -> Option<Vec<Difference>> {
        let server = self.table.load().get(server).cloned()?;
        let kept = server.kept.lock();
        let difference = |tool: &String, offered: &RawValue| Difference {
            tool: tool.clone(),
            approved: kept.pins.get(tool).map(|pin| pin.json.clone()),
            offered: offered.to_owned(),
        };
        Some(kept.waiting.iter().map(|(tool, offered)| difference(tool, offered)).collect())
    }

    /// Approves what waits, of one tool or of all; returns the names. Nothing if there is no server of that name. Waits
    /// for the disk.
    pub fn approve(&self, server: &str, tool: Option<&str>) -> Option<Vec<String>> {
        let server = self.table.load().get(server).cloned()?;
        let wanted = |name: &String| tool.is_none_or(|tool| tool == name);
        if !server.kept.lock().waiting.keys().any(wanted) {
            return Some(Vec::new());
        }
        let names = server.change_kept(|kept| {
            let names: Vec<String> = kept.waiting.keys().filter(|name| wanted(name)).cloned().collect();
            for name in &names {
                if let Some(json) = kept.waiting.remove(name) {
                    kept.pins.insert(name.clone(), pins::Pin { sum: pins::sum(&json), json });
                }
            }
            names
        });
        if !names.is_empty() {
            server.journal.note(&format!("has approved definitions: {}", names.join(", ")));
            let _ = server.orders.send(server::ServerOrder::Relist);
        }
        Some(names)
    }

    /// Ends all servers; calls in flight may take so long.
    pub async fn stop(&self, grace: Duration) {
        let (reply, done) = oneshot::channel();
        if self.manager.send(ManagerMessage::Stop { grace, reply }).is_ok() {
            let _ = done.await;
        }
    }
}

impl std::fmt::Debug for Upstreams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Upstreams").field("servers", &self.table.load().len()).finish_non_exhaustive()
    }
}
