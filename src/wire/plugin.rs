//! Rule libraries on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plugin_host::{Confined, Lack};

/// `GET /v1/plugins`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PluginList {
    /// The libraries, in the order of their precedence.
    pub items: Vec<PluginItem>,
    /// How many there are.
    pub total: usize,
    /// Can this kernel confine the files of their processes? It needs Landlock for that.
    pub sandbox_available: bool,
}

/// A rule library.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PluginItem {
    /// Its id; the name of its file as long as that cannot be read.
    pub id: String,
    /// starting, ready, backoff, quarantined or refused.
    #[schemars(extend("enum" = ["starting", "ready", "backoff", "quarantined", "refused"]))]
    pub state: String,
    /// Failures within the last minute, in the state backoff.
    pub failures: usize,
    /// Where its file is.
    pub file: String,
    /// The version that serves, or is to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Where to read on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// SHA-256 of the content that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// SHA-256 of the file's content; another than `hash` while a new version starts, or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_hash: Option<String>,
    /// The version in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_version: Option<String>,
    /// The interface that the file was built for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abi: Option<String>,
    /// The process that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Is its access to files confined?
    pub sandboxed: bool,
    /// full, partial (something is lacking), system_calls (no Landlock) or none (it runs in the daemon, or not at all).
    #[schemars(extend("enum" = Confined::WORDS))]
    pub sandbox: String,
    /// What it lacks to be full: user_namespace, network_namespace, landlock_rights (an older kernel) or landlock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = serde_json::json!({"type": "string", "enum": Lack::WORDS})))]
    pub sandbox_lacks: Vec<String>,
    /// Why the file is not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Why the file's content does not serve, while an earlier one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_refused: Option<String>,
    /// Its last fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<PluginFault>,
    /// When it is tried again, if it is put aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_seconds: Option<f64>,
    /// Processes that were replaced, for whatever reason.
    pub restarts: u64,
    /// Calls by how they came out.
    pub calls: PluginCalls,
    /// Time of answered calls, to a fifth; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<PluginLatency>,
}

/// A fault of a rule library.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PluginFault {
    /// timeout, slow_start, crash, protocol, oversized, broken, refused or spawn.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// The moment, by RFC 3339, in UTC.
    pub at: String,
    /// SHA-256 of the content that was at fault.
    pub hash: String,
    /// Its version, if it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Calls of a rule library by how they came out.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PluginCalls {
    /// With proposals, or none.
    pub answered: u64,
    /// With the library's own error.
    pub failed: u64,
    /// No answer before the deadline.
    pub timeout: u64,
    /// Not asked: earlier calls took all the time.
    pub busy: u64,
    /// Not: the library or its process was at fault.
    pub fault: u64,
    /// Not asked: it was not ready.
    pub unavailable: u64,
}

/// How long answered calls took, in microseconds.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PluginLatency {
    /// Half of them at most.
    pub p50: u64,
    /// All but one in a hundred at most.
    pub p99: u64,
}

/// Answer of `POST /-/plugins/{name}/reset`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PluginReset {
    /// The library's id.
    pub reset: String,
}
