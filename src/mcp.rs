//! The MCP door: Almanac's questions in the words of the Model Context Protocol, for clients of both its eras.
//!
//! The wire is ours: a message is an envelope whose payload stays raw JSON ([`crate::jsonrpc`]), since typed models
//! lose what they do not know. `http` has what belongs to the transport: which era a request is of, headers, sessions,
//! and whether an answer is JSON or a stream of events. Behind it `methods` answers, the same for both eras but for the
//! words, and `own` are the tools. What MCP servers offer is `offering`, what each view has of it `shown`; a call of
//! one of their tools goes through `relay`. [`stdio`] connects a client that only starts commands to a daemon's door.
//!
//! A legacy session is what its id says: ids are under a MAC and outlive the daemon, since clients do not survive a
//! session that is not found. Beside them `sessions` remembers, of the latest and until the daemon ends, only what can
//! be missed: that one was ended, and which log messages it wants.
//!
//! Rejected: a ready-made server (it types what it relays, and brings its own sessions, host lists and body limits),
//! and sessions that only memory holds.

mod address;
mod answer_stream;
mod capabilities;
mod catalog_offers;
mod check;
mod collected;
mod error;
mod features;
mod follow;
mod headers;
mod http;
mod listen;
mod log_level;
mod meta_tool;
mod methods;
mod names;
mod offering;
mod own;
mod questions;
mod relay;
mod request;
mod running;
mod sealed;
mod session;
mod sessions;
mod settings;
mod shown;
pub mod stdio;
mod streams;
mod subscriptions;
mod template;
mod work;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

pub use address::Address;
use catalog_offers::CatalogOffers;
pub use check::check;
pub use http::{HttpAnswer, HttpRequest, MAX_MESSAGE_BYTES};
use names::NameBook;
use offering::Offering;
pub(crate) use offering::{document_of, document_of_value};
use questions::OpenQuestions;
pub use relay::CallUnderWay;
use relay::Relay;
pub use request::Waits;
use running::Running;
use session::SessionKey;
pub use session::SessionKeyError;
use sessions::McpSessions;
pub use settings::{Pinned, Settings, ViewSettings};
use shown::{Shown, ToolFacts};
use streams::Streams;
use subscriptions::Subscriptions;

use crate::Engine;
use crate::access::TokenKeeper;
use crate::telemetry::Metrics;
use crate::upstream::Upstreams;

/// Requests that are answered at once; further ones are told to come again.
const MAX_IN_FLIGHT: usize = 1024;

/// The door.
#[derive(Debug)]
pub struct Mcp {
    engine: Arc<Engine>,
    metrics: Arc<Metrics>,
    tokens: Arc<TokenKeeper>,
    key: SessionKey,
    sessions: McpSessions,
    streams: Streams,
    running: Running,
    questions: OpenQuestions,
    subscriptions: Subscriptions,
    in_flight: Arc<Semaphore>,
    upstreams: Upstreams,
    names: NameBook,
    /// As the configuration says now.
    settings: watch::Receiver<Arc<Settings>>,
    /// What each view shows now.
    shown: watch::Sender<Arc<Shown>>,
    offers: CatalogOffers,
    relay: Relay,
}

/// What a door is made of.
#[derive(Debug)]
pub struct McpParts {
    pub engine: Arc<Engine>,
    pub metrics: Arc<Metrics>,
    pub tokens: Arc<TokenKeeper>,
    /// The servers whose tools are relayed.
    pub upstreams: Upstreams,
    /// How the door is set up, which may change.
    pub settings: watch::Receiver<Arc<Settings>>,
}

impl Mcp {
    /// Waits until all calls are recorded that have ended or are cut short, for so long at most.
    pub async fn all_recorded(&self, limit: Duration) {
        self.relay.all_recorded(limit).await;
    }

    /// A door whose sessions are known by the key in `state_dir`, with `max_streams` open streams at most.
    ///
    /// # Errors
    /// If the key cannot be read or made, or others can read it.
    pub fn open(parts: McpParts, state_dir: &Path, max_streams: usize) -> Result<Self, SessionKeyError> {
        let McpParts { engine, metrics, tokens, upstreams, settings } = parts;
        let names = NameBook::open(state_dir);
        let first = Shown::default().with_offering(Offering::reserving(names.names()));
        Ok(Self {
            names,
            key: SessionKey::open(state_dir)?,
            sessions: McpSessions::new(metrics.mcp.sessions.clone()),
            streams: Streams::new(max_streams, metrics.mcp.streams.clone()),
            running: Running::default(),
            questions: OpenQuestions::default(),
            subscriptions: Subscriptions::default(),
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            upstreams,
            settings,
            shown: watch::Sender::new(Arc::new(first)),
            offers: CatalogOffers::default(),
            relay: Relay::default(),
            engine,
            metrics,
            tokens,
        })
    }

    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown.borrow())
    }

    fn facts(&self, tool: &str) -> Arc<ToolFacts> {
        self.shown.borrow().facts(tool)
    }

    fn view_settings(&self, address: &Address) -> ViewSettings {
        self.shown.borrow().view(address).clone()
    }
}
