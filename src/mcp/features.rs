//! What a server offers beside tools, at its own address: prompts, resources and completions, as it gives them.

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::Mcp;
use super::address::Address;
use super::error::RpcError;
use super::relay::{passed_on, relayed, session_of, translate};
use super::request::{McpRequest, RpcAnswer, cacheable};
use super::shown::PAGE;
use crate::access::Scope;
use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Era, Members};
use crate::upstream::{Caller, ListedItem, Outgoing, ServerState};

/// Lists of a server that are kept: the method, the member of its result, and the capability that it needs.
const LISTS: [(&str, &str, &str); 3] = [
    ("prompts/list", "prompts", "prompts"),
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resourceTemplates", "resources"),
];

/// What is asked of the server itself, and the capability that it needs.
const ASKED: [(&str, &str); 3] =
    [("prompts/get", "prompts"), ("resources/read", "resources"), ("completion/complete", "completions")];

impl Mcp {
    /// Answers what is asked of one server beside tools; an unknown method if it is none of that.
    pub(super) async fn ask_server(&self, request: &McpRequest) -> RpcAnswer {
        let caller = &request.caller;
        let unknown = || RpcError::unknown_method(&request.method, caller.version);
        let Address::Server(name) = &caller.address else { return Err(unknown()) };
        let server = self.upstreams.server(name).ok_or_else(unknown)?;
        let has = |capability: &str| server.listed.as_ref().is_some_and(|listed| listed.has(capability));
        if let Some((_, member, _)) = LISTS.iter().find(|(method, _, needs)| *method == request.method && has(needs)) {
            return list(request, &server, member);
        }
        let is_asked = ASKED.iter().any(|(method, needs)| *method == request.method && has(needs));
        if !is_asked {
            return Err(unknown());
        }
        if !self.may_call(caller) {
            return Err(RpcError::missing_scope(Scope::Call));
        }
        self.pass_on(request, name).await
    }

    async fn pass_on(&self, request: &McpRequest, server: &str) -> RpcAnswer {
        let caller = &request.caller;
        let params = request.params.as_deref().map(passed_on).transpose();
        let params = params.map_err(|error| RpcError::invalid_params(format!("params: {error}")))?;
        let outgoing = Outgoing {
            method: request.method.clone(),
            params,
            caller: Caller {
                session: session_of(request),
                token: Some(caller.grant.name.to_string()),
                ..Caller::default()
            },
            limit: None,
            sent: None,
        };
        // What it says meanwhile is of a call of tools alone.
        let reply = self.upstreams.request(server, outgoing, mpsc::channel(1).0).await;
        let reply = reply.map_err(|fault| RpcError::internal(fault.to_string()))?;
        match reply.outcome {
            Ok(result) => {
                let answer = relayed(caller, &result, "")?;
                let is_cached = Members::read(&answer).is_ok_and(|members| members.get("ttlMs").is_some());
                if caller.era() == Era::Legacy || request.method != "resources/read" || is_cached {
                    return Ok(answer);
                }
                let hints = [("ttlMs", "0"), ("cacheScope", "\"private\"")];
                object::rewrite(&answer, |_, _| Change::Keep, &hints)
                    .map_err(|error| RpcError::internal(error.to_string()))
            }
            Err(error) => Err(RpcError::relayed(translate::error(&error, caller.era()))),
        }
    }
}

/// A page of a list as the server gave it last.
fn list(request: &McpRequest, server: &ServerState, member: &str) -> RpcAnswer {
    let listed = server.listed.as_ref();
    let items: &[ListedItem] = listed.map_or(&[], |listed| match member {
        "prompts" => &listed.prompts,
        "resources" => &listed.resources,
        _ => &listed.templates,
    });
    let cursor = request.value("cursor").and_then(object::text);
    let start = match &cursor {
        None => 0,
        Some(after) => {
            let place = items.iter().position(|item| item.key == **after);
            place.map(|place| place + 1).ok_or_else(|| {
                let shown: String = after.chars().take(80).collect();
                RpcError::invalid_params(format!("\"{shown}\" is no cursor of this list; begin anew without one"))
            })?
        }
    };
    let end = items.len().min(start + PAGE);
    let page: Vec<&str> = items[start..end].iter().map(|item| item.json.get()).collect();
    let mut result = Map::new();
    if end < items.len() {
        result.insert("nextCursor".to_owned(), items[end - 1].key.as_str().into());
    }
    let rest = cacheable(&request.caller, result)?;
    let page = format!("[{}]", page.join(","));
    let whole = object::rewrite(&rest, |_, _| Change::Keep, &[(member, &page)]);
    whole.map_err(|error| RpcError::internal(error.to_string()))
}

/// What a server's own address can, as its server said last.
pub(super) fn capabilities_of(server: &ServerState, era: Era) -> Value {
    let mut can = json!({"tools": {"listChanged": true}});
    let has = |capability: &str| server.listed.as_ref().is_some_and(|listed| listed.has(capability));
    for capability in ["prompts", "resources", "completions"] {
        if has(capability) {
            can[capability] = json!({});
        }
    }
    if era == Era::Legacy {
        can["logging"] = json!({});
    }
    can
}
