//! A request with all that is known of whoever asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::address::Address;
use super::capabilities::TASKS;
use crate::access::Grant;
use crate::jsonrpc::{Era, Id, Members, Version, meta};

/// A request.
#[derive(Debug)]
pub(super) struct McpRequest {
    /// Comes back with the answer.
    pub(super) id: Id,
    /// What is asked.
    pub(super) method: String,
    /// About what; nothing stands for an empty object.
    pub(super) params: Option<Box<RawValue>>,
    /// Who asks.
    pub(super) caller: McpCaller,
    /// Is it still there?
    pub(super) presence: ClientPresence,
}

/// Whether the client of a request can still be told something. A legacy one that lost its connection may be back.
#[derive(Debug, Clone)]
pub(super) struct ClientPresence(Arc<AtomicBool>);

impl Default for ClientPresence {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl ClientPresence {
    /// Is it there?
    pub(super) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// It left, or is back.
    pub(super) fn set(&self, is_there: bool) {
        self.0.store(is_there, Ordering::Relaxed);
    }

    /// Is it of the same request?
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct McpCaller {
    /// What the token, or the door, allows.
    pub(super) grant: Grant,
    /// Which view is asked.
    pub(super) address: Address,
    /// The version that is spoken.
    pub(super) version: Version,
    /// The legacy session.
    pub(super) session: Option<u64>,
    /// Does every caller see the same?
    pub(super) is_public: bool,
    /// What its address says of how long it waits.
    pub(super) waits: Waits,
    /// What it can be asked, an object in its own words.
    pub(super) capabilities: Arc<RawValue>,
}

/// What an address says of how long its clients wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Until they give up.
    pub limit: Option<Duration>,
    /// Does progress start that anew?
    pub progress_resets: bool,
}

impl Waits {
    /// How long a client waits, as it is written.
    ///
    /// # Errors
    /// If it is no time from 1 ms to a day.
    pub fn parse_limit(text: &str) -> Result<Duration, String> {
        let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
        let is_usual = (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&time);
        if is_usual { Ok(time) } else { Err("a time is 1ms to 24h".to_owned()) }
    }
}

impl McpCaller {
    /// What a legacy session is called where modern clients name theirs.
    pub(super) fn session_name(&self) -> Option<String> {
        self.session.map(session_name)
    }

    /// Can it answer this question?
    pub(super) fn can_answer(&self, method: &str, params: Option<&RawValue>) -> bool {
        let declared: Value = serde_json::from_str(self.capabilities.get()).unwrap_or_default();
        let has = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        match method {
            "sampling/createMessage" => has(&declared["sampling"]),
            "roots/list" => has(&declared["roots"]),
            "elicitation/create" => {
                let mode = params.and_then(|params| Members::read(params).ok()?.text("mode").map(String::from));
                let asks = &declared["elicitation"];
                if mode.as_deref() == Some("url") { has(&asks["url"]) } else { has(asks) }
            }
            _ => false,
        }
    }

    /// Can it hold a call as a task?
    pub(super) fn takes_tasks(&self) -> bool {
        let declared: Value = serde_json::from_str(self.capabilities.get()).unwrap_or_default();
        self.era() == Era::Modern && declared["extensions"][TASKS].is_object()
    }

    /// How it is spoken to.
    pub(super) fn era(&self) -> Era {
        self.version.era()
    }
}

/// What a legacy session is called outside of this door.
pub(super) fn session_name(session: u64) -> String {
    format!("mcp-{session:016x}")
}

impl McpRequest {
    /// The same request about something else.
    pub(super) fn with_params(&self, params: Option<Box<RawValue>>) -> Self {
        let (id, method) = (self.id.clone(), self.method.clone());
        Self { id, method, params, caller: self.caller.clone(), presence: self.presence.clone() }
    }

    /// A text of the parameters.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let members = Members::read(self.params.as_deref()?).ok()?;
        Some(members.text(name)?.into_owned())
    }

    /// A value of the parameters.
    pub(super) fn value(&self, name: &str) -> Option<&RawValue> {
        Members::read(self.params.as_deref()?).ok()?.get(name)
    }
}

/// What is answered: a result's JSON, or an error.
pub(super) type RpcAnswer = Result<Box<RawValue>, super::error::RpcError>;

/// A result of ours, in the words of the caller's era.
pub(super) fn complete(caller: &McpCaller, result: Map<String, Value>) -> RpcAnswer {
    finish(caller, result, false)
}

/// A result that may be kept by whoever asked; for a while, since a change is told.
pub(super) fn cacheable(caller: &McpCaller, result: Map<String, Value>) -> RpcAnswer {
    finish(caller, result, true)
}

/// How long a list holds, in ms.
const TTL_MS: u64 = 300_000;

fn finish(caller: &McpCaller, mut result: Map<String, Value>, is_cacheable: bool) -> RpcAnswer {
    if caller.era() == Era::Modern {
        result.insert("resultType".to_owned(), "complete".into());
        if is_cacheable {
            result.insert("ttlMs".to_owned(), TTL_MS.into());
            result.insert("cacheScope".to_owned(), if caller.is_public { "public" } else { "private" }.into());
        }
        let known = result.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        known[meta::SERVER_INFO] = server_info();
    }
    let raw = serde_json::value::to_raw_value(&result);
    raw.map_err(|error| super::error::RpcError::internal(error.to_string()))
}

/// Who we are.
pub(super) fn server_info() -> Value {
    serde_json::json!({"name": "almanac", "title": "Almanac", "version": env!("CARGO_PKG_VERSION")})
}

/// What is told beside an answer: progress, log messages, questions.
pub(super) type MessageSink = tokio::sync::mpsc::Sender<Arc<str>>;
