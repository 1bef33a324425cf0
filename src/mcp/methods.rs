//! What each method answers. Here a request is one that its sender may make, in words that were checked.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Mcp;
use super::address::Address;
use super::capabilities::Capabilities;
use super::error::RpcError;
use super::log_level::LogLevel;
use super::own::OwnTool;
use super::request::{McpCaller, McpRequest, MessageSink, RpcAnswer, cacheable, complete, server_info};
use crate::jsonrpc::{Era, Members, Version};
use crate::text::near;

/// What a client tells its model of us, at most 600 characters.
const INSTRUCTIONS: &str = "Almanac knows the tools that are described to it: which exist, which fit a task, how long \
    a call takes, what usually comes next, and what was said before. Before you choose among many tools, ask \
    find_tools with the task in words; ask predict_duration before a call that may take long. remember and recall \
    keep what should outlast this conversation.";

/// What `initialize` says of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Introduction {
    /// What is spoken from now on.
    pub(super) version: Version,
    /// What the client can.
    pub(super) capabilities: Capabilities,
}

impl Introduction {
    /// Reads the parameters of `initialize`. What a client says wrongly of itself must not keep it out, but for the
    /// version.
    pub(super) fn read(params: Option<&RawValue>) -> Result<Self, RpcError> {
        let members = params.and_then(|params| Members::read(params).ok());
        let wanted = members.as_ref().and_then(|members| members.text("protocolVersion"));
        let wanted = wanted.ok_or_else(|| RpcError::invalid_params("`initialize` needs `protocolVersion`"))?;
        let declared = members.as_ref().and_then(|members| members.get("capabilities"));
        let declared = declared.and_then(|declared| serde_json::from_str(declared.get()).ok());
        let capabilities = declared.as_ref().map(Capabilities::of).unwrap_or_default();
        Ok(Self { version: Version::negotiated(&wanted), capabilities })
    }
}

impl Mcp {
    /// Answers a request; what is told meanwhile goes to `events`.
    pub(super) async fn answer(&self, request: McpRequest, _events: MessageSink) -> RpcAnswer {
        let caller = &request.caller;
        match (caller.era(), request.method.as_str()) {
            (Era::Modern, "server/discover") => discover(caller),
            (Era::Legacy, "ping") => complete(caller, Map::new()),
            (Era::Legacy, "logging/setLevel") => set_level(&request),
            (_, "tools/list") => self.list_tools(&request),
            (_, "tools/call") => self.call_tool(&request).await,
            (_, method) => Err(RpcError::unknown_method(method, caller.version)),
        }
    }

    fn list_tools(&self, request: &McpRequest) -> RpcAnswer {
        let caller = &request.caller;
        if let Some(cursor) = request.value("cursor").filter(|cursor| cursor.get() != "null") {
            let shown: String = cursor.get().chars().take(80).collect();
            return Err(RpcError::invalid_params(format!("{shown} is no cursor of this list")));
        }
        let tools: Vec<Value> = OwnTool::ALL.into_iter().map(OwnTool::definition).collect();
        let mut result = Map::new();
        result.insert("tools".to_owned(), tools.into());
        let answer = cacheable(caller, result)?;
        self.metrics.mcp.list_bytes.with_label_values(&[&caller.address.to_string()]).set(answer.get().len() as i64);
        Ok(answer)
    }

    async fn call_tool(&self, request: &McpRequest) -> RpcAnswer {
        let caller = &request.caller;
        let name = request.text("name").ok_or_else(|| RpcError::invalid_params("`tools/call` needs `name`"))?;
        let Some(tool) = OwnTool::parse(&name) else { return Err(unknown_tool(&name)) };
        let scope = tool.scope();
        if !caller.grant.allows(scope) {
            return Err(RpcError::missing_scope(scope));
        }
        let result = tool.call(&self.engine, &caller.grant, request.value("arguments")).await;
        complete(caller, result.into_json(caller.version))
    }
}

/// Is there such a view?
pub(super) fn has_view(address: &Address) -> bool {
    *address == Address::Default
}

fn set_level(request: &McpRequest) -> RpcAnswer {
    let said = request.text("level").unwrap_or_default();
    // We have nothing to log to a client.
    if LogLevel::parse(&said).is_none() {
        let known = LogLevel::WORDS.join(", ");
        return Err(RpcError::invalid_params(format!("`level` is one of {known}, not `{said}`")));
    }
    complete(&request.caller, Map::new())
}

fn unknown_tool(name: &str) -> RpcError {
    let near = near::nearest(name, OwnTool::WORDS);
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let shown: String = name.chars().take(80).collect();
    RpcError::invalid_params(format!("there is no tool `{shown}` here{hint}"))
}

fn capabilities(era: Era) -> Value {
    match era {
        Era::Modern => json!({"tools": {"listChanged": true}}),
        Era::Legacy => json!({"tools": {"listChanged": true}, "logging": {}}),
    }
}

fn discover(caller: &McpCaller) -> RpcAnswer {
    let mut result = Map::new();
    result.insert("supportedVersions".to_owned(), json!([Version::LATEST_MODERN.as_str()]));
    result.insert("capabilities".to_owned(), capabilities(Era::Modern));
    result.insert("instructions".to_owned(), INSTRUCTIONS.into());
    cacheable(caller, result)
}

/// Greets a legacy client.
pub(super) fn initialize(caller: &McpCaller) -> RpcAnswer {
    let mut result = Map::new();
    result.insert("protocolVersion".to_owned(), caller.version.as_str().into());
    result.insert("capabilities".to_owned(), capabilities(Era::Legacy));
    result.insert("serverInfo".to_owned(), server_info());
    result.insert("instructions".to_owned(), INSTRUCTIONS.into());
    complete(caller, result)
}

/// The line that tells a client of another list, without its end.
pub(super) fn tools_changed() -> Arc<str> {
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_short() {
        assert!(INSTRUCTIONS.chars().count() <= 600, "{}", INSTRUCTIONS.len());
    }

    #[test]
    fn a_client_is_read_as_far_as_it_can_be() {
        let check = |params: &str, expected: Option<(Version, Capabilities)>| {
            let raw: &RawValue = serde_json::from_str(params).unwrap();
            let read = Introduction::read(Some(raw)).ok();
            assert_eq!(read.map(|client| (client.version, client.capabilities)), expected, "{params}");
        };
        check(r#"{"protocolVersion": "2025-06-18"}"#, Some((Version::V2025_06_18, Capabilities::default())));
        let asks = r#"{"protocolVersion": "9", "capabilities": {"sampling": {}}, "clientInfo": 3}"#;
        check(asks, Some((Version::V2025_11_25, Capabilities::SAMPLING)));
        check(r#"{"protocolVersion": "9", "capabilities": []}"#, Some((Version::V2025_11_25, Capabilities::default())));
        check("{}", None);
    }
}
