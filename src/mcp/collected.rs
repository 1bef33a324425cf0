//! What the servers of a view offer beside tools: prompts, by names like those of tools, resources by their URIs, and
//! completions of both. Of two prompts of one name, and of two resources of one URI, the lesser server's is asked.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::Mcp;
use super::address::Address;
use super::error::RpcError;
use super::features::page;
use super::request::{McpRequest, MessageSink, RpcAnswer};
use super::template;
use crate::jsonrpc::{Era, ErrorObject, Members, code, object};
use crate::upstream::{Listed, ListedItem, ServerState, public_name};

/// A prompt, a resource or a template of a server of the view.
struct Collected<'s> {
    server: &'s Arc<ServerState>,
    item: &'s ListedItem,
    /// What it is asked for by here.
    key: String,
}

impl Mcp {
    /// Answers what is asked of a view beside tools; an unknown method if it is none of that.
    pub(super) async fn ask_view(self: &Arc<Self>, request: &McpRequest, events: &MessageSink) -> RpcAnswer {
        let caller = &request.caller;
        let unknown = || RpcError::unknown_method(&request.method, caller.version);
        if caller.address == Address::Default {
            return Err(unknown());
        }
        let servers = self.shown().servers_of(&caller.address);
        let of = |items: fn(&Listed) -> &[ListedItem], named: Option<usize>| collect(&servers, items, named);
        let max_name = Some(self.settings().max_name);
        match request.method.as_str() {
            "prompts/list" => list(request, &of(|listed| &listed.prompts, max_name), "prompts"),
            "resources/list" => list(request, &of(|listed| &listed.resources, None), "resources"),
            "resources/templates/list" => list(request, &of(|listed| &listed.templates, None), "resourceTemplates"),
            "prompts/get" => {
                let name = request.text("name").ok_or_else(|| RpcError::invalid_params("`name` says which prompt"))?;
                let prompts = of(|listed| &listed.prompts, max_name);
                let prompt = found(&prompts, &name).ok_or_else(|| no_prompt(&name))?;
                let params = request.params.as_deref().map(|params| renamed(params, &prompt.item.key)).transpose()?;
                self.ask_one(&request.with_params(params), events, prompt.server).await
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                let uri = request.text("uri").ok_or_else(|| RpcError::invalid_params("`uri` says which resource"))?;
                let server = with_resource(&servers, &uri).ok_or_else(|| no_resource(&uri, caller.era()))?;
                self.ask_one(request, events, server).await
            }
            "completion/complete" => {
                let reference = request.value("ref").and_then(|reference| Members::read(reference).ok());
                let reference = reference.ok_or_else(|| RpcError::invalid_params("`ref` says of what"))?;
                if let Some(uri) = reference.text("uri") {
                    let server = with_resource(&servers, &uri).ok_or_else(|| no_resource(&uri, caller.era()))?;
                    return self.ask_one(request, events, server).await;
                }
                let name = reference.text("name").unwrap_or_default();
                let prompts = of(|listed| &listed.prompts, max_name);
                let prompt = found(&prompts, &name).ok_or_else(|| no_prompt(&name))?;
                let own = request.value("ref").map(|reference| renamed(reference, &prompt.item.key)).transpose()?;
                let params = request.params.as_deref().zip(own);
                let params = params.map(|(params, own)| object::set(params, "ref", own.get())).transpose();
                let params = params.map_err(|error| RpcError::invalid_params(format!("params: {error}")))?;
                self.ask_one(&request.with_params(params), events, prompt.server).await
            }
            _ => Err(unknown()),
        }
    }
}

/// Items of all servers, those of prompts by names of at most `named` bytes, in the order of their keys.
fn collect(
    servers: &[Arc<ServerState>],
    items: fn(&Listed) -> &[ListedItem],
    named: Option<usize>,
) -> Vec<Collected<'_>> {
    let mut known = HashSet::new();
    let mut all = Vec::new();
    for server in servers {
        for item in server.listed.iter().flat_map(|listed| items(listed)) {
            let key = match named {
                Some(most) => public_name(&server.prefix, &item.key, most),
                None => item.key.clone(),
            };
            if known.insert(key.clone()) {
                all.push(Collected { server, item, key });
            }
        }
    }
    all.sort_by(|one, other| one.key.cmp(&other.key));
    all
}

fn found<'a, 's>(all: &'a [Collected<'s>], key: &str) -> Option<&'a Collected<'s>> {
    all.binary_search_by(|one| one.key.as_str().cmp(key)).ok().map(|at| &all[at])
}

/// The first server that lists the resource; else the first whose template it fits.
fn with_resource<'s>(servers: &'s [Arc<ServerState>], uri: &str) -> Option<&'s Arc<ServerState>> {
    let has = |fits: fn(&Listed, &str) -> bool| {
        servers.iter().find(|server| server.listed.as_ref().is_some_and(|listed| fits(listed, uri)))
    };
    has(|listed, uri| listed.resources.iter().any(|resource| resource.key == uri)).or_else(|| {
        has(|listed, uri| listed.templates.iter().any(|one| one.key == uri || template::fits(&one.key, uri)))
    })
}

fn list(request: &McpRequest, all: &[Collected<'_>], member: &str) -> RpcAnswer {
    let json = |one: &Collected<'_>| {
        let is_same = one.key == one.item.key;
        let named = || object::set(&one.item.json, "name", &Value::from(one.key.as_str()).to_string());
        let json = if is_same { None } else { named().ok() };
        json.unwrap_or_else(|| one.item.json.clone())
    };
    page(request, member, all, |one| &one.key, |one| json(one).get().to_owned())
}

/// With the name that the server knows it by.
fn renamed(object: &RawValue, own: &str) -> Result<Box<RawValue>, RpcError> {
    let changed = object::set(object, "name", &Value::from(own).to_string());
    changed.map_err(|error| RpcError::invalid_params(format!("params: {error}")))
}

fn no_prompt(name: &str) -> RpcError {
    let shown: String = name.chars().take(80).collect();
    RpcError::invalid_params(format!("there is no prompt `{shown}` here; prompts/list has all"))
}

fn no_resource(uri: &str, era: Era) -> RpcError {
    let code = if era == Era::Legacy { code::RESOURCE_NOT_FOUND } else { code::INVALID_PARAMS };
    let shown: String = uri.chars().take(200).collect();
    let error = ErrorObject::new(code, "no server of this view has this resource");
    RpcError::relayed(error.with_data(serde_json::json!({"uri": shown})))
}
