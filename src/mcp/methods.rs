//! What each method answers. Here a request is one that its sender may make, in words that were checked.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Mcp;
use super::address::Address;
use super::capabilities::{Capabilities, TASKS};
use super::error::RpcError;
use super::features::capabilities_of;
use super::meta_tool::MetaTool;
use super::own::{OwnTool, Reach};
use super::relay::{CallWay, WantedCall};
use super::request::{McpCaller, McpRequest, MessageSink, RpcAnswer, cacheable, complete, server_info};
use super::shown::ListPage;
use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Era, Members, Version, instance, meta};

/// What a client tells its model of the tools of ours that it has, at most 600 characters.
pub(super) fn instructions(has: impl Fn(OwnTool) -> bool) -> String {
    if !OwnTool::ALL.into_iter().any(&has) {
        return String::new();
    }
    let mut text = "Almanac knows the tools that are described to it: which exist, which fit a task, how long a call \
                    takes, what usually comes next, and what was said before."
        .to_owned();
    let (finds, predicts) = (has(OwnTool::FindTools), has(OwnTool::PredictDuration));
    let hints = [
        (finds, "Before you choose among many tools, ask find_tools with the task in words."),
        (predicts, "Before a call that may take long, ask predict_duration."),
        (has(OwnTool::Remember), "remember keeps what should outlast this conversation."),
        (has(OwnTool::Recall), "recall finds what was kept."),
    ];
    for (_, hint) in hints.into_iter().filter(|(is_there, _)| *is_there) {
        text.push(' ');
        text.push_str(hint);
    }
    text
}

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
    pub(super) async fn answer(self: &Arc<Self>, request: McpRequest, events: MessageSink) -> RpcAnswer {
        let caller = &request.caller;
        match (caller.era(), request.method.as_str()) {
            (Era::Modern, "server/discover") => self.discover(caller),
            (Era::Legacy, "ping") => complete(caller, Map::new()),
            (Era::Legacy, "logging/setLevel") => self.set_log_level(&request),
            (Era::Modern, "tasks/get" | "tasks/update" | "tasks/cancel") => self.ask_task(&request).await,
            (_, "tools/list") => self.list_tools(&request).await,
            (_, "tools/call") => self.call_tool(&request, &events).await,
            _ => match &caller.address {
                Address::Server(_) => self.ask_server(&request, &events).await,
                Address::View(_) | Address::Default => self.ask_view(&request, &events).await,
            },
        }
    }

    async fn list_tools(&self, request: &McpRequest) -> RpcAnswer {
        let caller = &request.caller;
        self.await_starting(request).await;
        let shown = self.shown();
        // It may have been there when the request came.
        let list =
            shown.list(&caller.address).ok_or_else(|| RpcError::invalid_params(shown.no_view(&caller.address)))?;
        let cursor = request.value("cursor").filter(|cursor| cursor.get() != "null");
        let after = cursor.map(|cursor| object::text(cursor).unwrap_or_default().into_owned());
        let Some(page) = list.page_after(caller.era(), caller.is_public, after.as_deref()) else {
            let shown: String = cursor.map_or("", RawValue::get).chars().take(80).collect();
            return Err(RpcError::invalid_params(format!("{shown} is no cursor of this list; begin anew without one")));
        };
        list.answer(page, |ListPage { tools, next }| {
            let mut result = Map::new();
            result.extend(next.map(|next| ("nextCursor".to_owned(), Value::from(&*next))));
            let rest = cacheable(caller, result)?;
            let whole = object::rewrite(&rest, |_, _| Change::Keep, &[("tools", &tools)]);
            whole.map_err(|error| RpcError::internal(error.to_string()))
        })
    }

    async fn call_tool(self: &Arc<Self>, request: &McpRequest, events: &MessageSink) -> RpcAnswer {
        let caller = &request.caller;
        let name = request.text("name").ok_or_else(|| RpcError::invalid_params("`tools/call` needs `name`"))?;
        let shown = self.shown();
        let own = OwnTool::parse(&name).filter(|tool| shown.has_own(&caller.address, *tool));
        if let Some(tool) = own {
            let scope = tool.scope();
            if !caller.grant.allows(scope) {
                return Err(RpcError::missing_scope(scope));
            }
            if tool == OwnTool::FindTools {
                self.await_starting(request).await;
            }
            let reach = Reach { door: Arc::clone(self), address: caller.address.clone() };
            let result = tool.call(&reach, &caller.grant, request.value("arguments")).await;
            return complete(caller, result.into_json(caller.version));
        }
        if let Some(tool) = MetaTool::parse(&name).filter(|tool| shown.has_meta_tool(&caller.address, *tool)) {
            return self.call_meta(request, events, tool).await;
        }
        self.await_starting(request).await;
        let Some(tool) = self.shown().tool(&caller.address, &name).cloned() else {
            return Err(RpcError::invalid_params(self.unknown(request, &name)));
        };
        let arguments = request.value("arguments").filter(|arguments| arguments.get() != "null").map(ToOwned::to_owned);
        self.relay(request, events, WantedCall { tool, arguments, way: CallWay::Direct }).await
    }

    /// Is there such a view?
    pub(super) fn has_view(&self, address: &Address) -> bool {
        self.shown.borrow().has(address)
    }

    pub(super) fn capabilities(&self, address: &Address, era: Era) -> Value {
        match address {
            Address::Default => capabilities(era),
            Address::View(_) => capabilities_of_view(era),
            Address::Server(name) => {
                self.upstreams.server(name).map_or_else(|| capabilities(era), |server| capabilities_of(&server, era))
            }
        }
    }

    fn instructions(&self, address: &Address) -> Value {
        let shown = self.shown();
        shown.list(address).map_or_else(String::new, |list| list.instructions.clone()).into()
    }

    fn discover(&self, caller: &McpCaller) -> RpcAnswer {
        let mut result = Map::new();
        result.insert("supportedVersions".to_owned(), json!([Version::LATEST_MODERN.as_str()]));
        result.insert("capabilities".to_owned(), self.capabilities(&caller.address, Era::Modern));
        result.insert("instructions".to_owned(), self.instructions(&caller.address));
        result.insert(meta::MEMBER.to_owned(), json!({instance::KEY: instance::own()}));
        cacheable(caller, result)
    }

    /// Greets a legacy client.
    pub(super) fn greet(&self, caller: &McpCaller) -> RpcAnswer {
        let mut result = Map::new();
        result.insert("protocolVersion".to_owned(), caller.version.as_str().into());
        result.insert("capabilities".to_owned(), self.capabilities(&caller.address, Era::Legacy));
        result.insert("serverInfo".to_owned(), server_info());
        result.insert("instructions".to_owned(), self.instructions(&caller.address));
        complete(caller, result)
    }
}

fn capabilities(era: Era) -> Value {
    match era {
        Era::Modern => json!({"tools": {"listChanged": true}, "extensions": {TASKS: {}}}),
        Era::Legacy => json!({"tools": {"listChanged": true}, "logging": {}}),
    }
}

/// Whatever servers a view has now, it may have others in a moment.
fn capabilities_of_view(era: Era) -> Value {
    let mut can = capabilities(era);
    for capability in ["prompts", "resources"] {
        can[capability] = json!({"listChanged": true});
    }
    can["completions"] = json!({});
    if era == Era::Legacy {
        can["resources"]["subscribe"] = true.into();
    }
    can
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_short() {
        let whole = instructions(|_| true);
        assert!(whole.chars().count() <= 600, "{}", whole.len());
        assert_eq!(instructions(|_| false), "");
        let some = instructions(|tool| tool == OwnTool::Recall);
        assert!(some.ends_with("before. recall finds what was kept."), "{some}");
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
