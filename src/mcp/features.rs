//! What a server offers beside tools, at its own address: prompts, resources and completions, as it gives them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Mcp;
use super::address::Address;
use super::capabilities::TASKS;
use super::error::RpcError;
use super::relay::NO_TOKEN;
use super::request::{McpCaller, McpRequest, MessageSink, RpcAnswer, cacheable, complete};
use super::shown::PAGE;
use crate::access::Scope;
use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Era, Members};
use crate::upstream::{ListedItem, ServerState};

/// Lists of a server that are kept: the method, the member of its result, and the capability that it needs.
const LISTS: [(&str, &str, &str); 3] = [
    ("prompts/list", "prompts", "prompts"),
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resourceTemplates", "resources"),
];

/// What is asked of the server itself, and the capability that it needs.
const ASKED: [(&str, &str); 3] =
    [("prompts/get", "prompts"), ("resources/read", "resources"), ("completion/complete", "completions")];

/// By which resources are followed.
const FOLLOWING: [&str; 2] = ["resources/subscribe", "resources/unsubscribe"];

impl Mcp {
    /// Answers what is asked of one server beside tools; an unknown method if it is none of that.
    pub(super) async fn ask_server(self: &Arc<Self>, request: &McpRequest, events: &MessageSink) -> RpcAnswer {
        let caller = &request.caller;
        let unknown = || RpcError::unknown_method(&request.method, caller.version);
        let Address::Server(name) = &caller.address else { return Err(unknown()) };
        let server = self.upstreams.server(name).ok_or_else(unknown)?;
        let has = |capability: &str| server.listed.as_ref().is_some_and(|listed| listed.has(capability));
        if let Some((_, member, _)) = LISTS.iter().find(|(method, _, needs)| *method == request.method && has(needs)) {
            return list(request, &server, member);
        }
        self.ask_one(request, events, &server).await
    }

    /// Asks a server for one of the things that it offers.
    pub(super) async fn ask_one(
        self: &Arc<Self>,
        request: &McpRequest,
        events: &MessageSink,
        server: &Arc<ServerState>,
    ) -> RpcAnswer {
        let caller = &request.caller;
        let unknown = || RpcError::unknown_method(&request.method, caller.version);
        let has = |capability: &str| server.listed.as_ref().is_some_and(|listed| listed.has(capability));
        if let Some(is_wanted) = subscribes(request, server) {
            return self.subscribe(request, events, server, is_wanted).await;
        }
        if caller.era() == Era::Legacy && FOLLOWING.contains(&request.method.as_str()) {
            return Err(RpcError::cannot(&format!("the server `{}` does not tell of changed resources", server.name)));
        }
        let is_asked = ASKED.iter().any(|(method, needs)| *method == request.method && has(needs));
        if !is_asked {
            return Err(unknown());
        }
        self.check_may_ask(caller)?;
        self.pass_on(request, events, server).await
    }

    /// Only who may call servers' tools may ask them for the rest.
    fn check_may_ask(&self, caller: &McpCaller) -> Result<(), RpcError> {
        if self.may_call(caller) {
            Ok(())
        } else if caller.is_public {
            Err(RpcError::no_token(&format!("servers' prompts and resources are {NO_TOKEN}")))
        } else {
            Err(RpcError::missing_scope(Scope::Call))
        }
    }

    /// A legacy session wants to be told of changes of a resource, or does no more.
    async fn subscribe(
        self: &Arc<Self>,
        request: &McpRequest,
        events: &MessageSink,
        server: &ServerState,
        is_wanted: bool,
    ) -> RpcAnswer {
        let caller = &request.caller;
        self.check_may_ask(caller)?;
        let uri = request.text("uri").ok_or_else(|| RpcError::invalid_params("`uri` says of which resource"))?;
        let session = caller.session.unwrap_or_default();
        if is_wanted {
            if !self.subscriptions.add(session, &server.name, &uri) {
                return Err(RpcError::busy("subscriptions"));
            }
            let answer = self.pass_on(request, events, server).await;
            if answer.is_err() {
                self.subscriptions.remove(session, &server.name, &uri);
            }
            return answer;
        }
        let was_last = self.subscriptions.remove(session, &server.name, &uri);
        if was_last || server.settings.per_session {
            return self.pass_on(request, events, server).await;
        }
        complete(caller, Map::new())
    }
}

/// Is a resource to be followed, or no more? Nothing if neither is asked, or the server cannot.
fn subscribes(request: &McpRequest, server: &ServerState) -> Option<bool> {
    let can = request.caller.era() == Era::Legacy && can_subscribe(server);
    match request.method.as_str() {
        "resources/subscribe" if can => Some(true),
        "resources/unsubscribe" if can => Some(false),
        _ => None,
    }
}

/// A modern server tells of changes by streams alone, which end with whoever asked.
fn can_subscribe(server: &ServerState) -> bool {
    let resources = server.listed.as_ref().and_then(|listed| {
        let declared = Members::read(&listed.capabilities).ok()?.get("resources")?;
        Members::read(declared).ok()?.get("subscribe").map(|value| value.get() == "true")
    });
    server.era == Some(Era::Legacy) && resources == Some(true)
}

/// A page of a list as the server gave it last.
fn list(request: &McpRequest, server: &ServerState, member: &str) -> RpcAnswer {
    let listed = server.listed.as_ref();
    let items: &[ListedItem] = listed.map_or(&[], |listed| match member {
        "prompts" => &listed.prompts,
        "resources" => &listed.resources,
        _ => &listed.templates,
    });
    page(request, member, items, |item| &item.key, |item| item.json.get().to_owned())
}

/// A page of items that each have a key, which is the cursor after it.
pub(super) fn page<T>(
    request: &McpRequest,
    member: &str,
    items: &[T],
    key: impl Fn(&T) -> &str,
    json: impl Fn(&T) -> String,
) -> RpcAnswer {
    let cursor = request.value("cursor").and_then(object::text);
    let start = match &cursor {
        None => 0,
        Some(after) => {
            let place = items.iter().position(|item| key(item) == &**after);
            place.map(|place| place + 1).ok_or_else(|| {
                let shown: String = after.chars().take(80).collect();
                RpcError::invalid_params(format!("\"{shown}\" is no cursor of this list; begin anew without one"))
            })?
        }
    };
    let end = items.len().min(start + PAGE);
    let page: Vec<String> = items[start..end].iter().map(json).collect();
    let mut result = Map::new();
    if end < items.len() {
        result.insert("nextCursor".to_owned(), key(&items[end - 1]).into());
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
            // It is asked anew when it tells of a change, and when it is started again.
            let tells = capability != "completions";
            can[capability] = if tells { json!({"listChanged": true}) } else { json!({}) };
        }
    }
    if era == Era::Legacy {
        if can_subscribe(server) {
            can["resources"]["subscribe"] = true.into();
        }
        can["logging"] = json!({});
    } else {
        can["extensions"] = json!({TASKS: {}});
    }
    can
}
