//! MCP servers on the wire of administration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Answer of `GET /v1/servers`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServersAnswer {
    /// The servers, by name.
    pub items: Vec<McpServerItem>,
    /// The tenant's calls that are under way, the one that began first at the beginning.
    pub calls: Vec<CallInFlight>,
}

/// A call of a server's tool that is under way.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallInFlight {
    /// The server that is asked.
    pub server: String,
    /// The tool, by the name that clients know it by.
    pub tool: String,
    /// How long its server has had it, in ms; absent while it waits to be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_ms: Option<u64>,
    /// How long it still takes in half of all such cases, in ms.
    pub p50_left_ms: u64,
    /// How long it still takes at most in nine of ten, in ms.
    pub p90_left_ms: u64,
    /// The probability that a call takes longer than this one has already, 0 to 1.
    pub longer_probability: f64,
}

/// `GET /-/mcp`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpServerList {
    /// The servers, by name.
    pub items: Vec<McpServerItem>,
    /// How many there are.
    pub total: usize,
}

/// An MCP server behind the daemon.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpServerItem {
    /// As it is configured.
    pub name: String,
    /// Begins the names of its tools; empty for none.
    pub prefix: String,
    /// up, starting (its lists are those of before, if it has any), idle (stopped until the next
    /// call of it), down, or needs-login: it wants a person who logs in, which `problem` says more
    /// of.
    pub state: String,
    /// legacy or modern; absent until it was greeted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// The protocol's version that it is spoken to in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Tools that are listed; absent if it was never listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Prompts that are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<usize>,
    /// Resources and templates of resources that are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<usize>,
    /// Tools that wait for an approval.
    pub waiting: usize,
    /// Starts since the daemon's.
    pub starts: usize,
    /// Why it does not serve, or not with its new configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// `GET /-/mcp/{name}/logs`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpServerLogs {
    /// The last lines, oldest first, each with its time.
    pub lines: Vec<String>,
}

/// `POST /-/mcp/{name}/restart`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpServerRestarted {
    /// The server.
    pub restarted: String,
}

/// `GET /-/mcp/{name}/diff` and `GET /v1/servers/{name}/changes`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpServerDiff {
    /// Definitions that wait for an approval, by name.
    pub items: Vec<McpToolDifference>,
}

/// A definition that waits for an approval.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpToolDifference {
    /// The tool's name there.
    pub tool: String,
    /// What was approved; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Value>,
    /// What is offered now.
    pub offered: Value,
}

/// `POST /-/mcp/{name}/approve` and `POST /v1/servers/{name}/approve`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpServerApproved {
    /// Names of the tools whose definitions are approved now.
    pub approved: Vec<String>,
}
