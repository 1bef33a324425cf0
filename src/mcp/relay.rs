//! A call of a server's tool, from the question to what its client gets.
//!
//! View and scope, then the call in a task of its own, and beside it whoever waits for it. What the client will not
//! wait for is kept under a handle; what it asks again is joined to what runs already. The call is recorded once, at
//! its real end, whoever still waits.

mod arguments;
mod handles;
pub(super) mod metadata;
mod ongoing;
mod outgoing;
mod patience;
mod progress;
mod searches;
mod task;
pub(super) mod translate;

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};

pub(super) use arguments::faults as argument_faults;
pub(super) use handles::{Fetch, schema as handle_schema};
use ongoing::{CallEnd, CallFailure, CallOwner, OngoingCall, OngoingCalls, SameCall, Waiting};
pub(super) use outgoing::passed_on;
pub(super) use patience::Patience;
use patience::{LearntLimits, PatientClient};
use progress::ProgressTeller;
pub(super) use searches::Searches;

use super::Mcp;
use super::error::RpcError;
use super::offering::ServedTool;
use super::own::ToolResult;
use super::request::{McpCaller, McpRequest, MessageSink, RpcAnswer, complete};
use crate::access::Scope;
use crate::jsonrpc::{Era, Members, meta, object};
use crate::upstream::{OnTimeout, ServerEvent};

/// The session of a modern client, which has none of its own.
const SESSION: &str = "dev.almanac/session";

/// How long the client waits for this one, in ms.
const TIMEOUT: &str = "dev.almanac/timeoutMs";

/// What clients may come back for, and what was seen of them.
#[derive(Debug, Default)]
pub(super) struct Relay {
    calls: OngoingCalls,
    limits: LearntLimits,
    searches: Searches,
}

/// A call that a client wants.
#[derive(Debug)]
pub(super) struct WantedCall {
    pub(super) tool: Arc<ServedTool>,
    /// An object; nothing stands for an empty one.
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) way: CallWay,
}

/// How a tool is called.
#[derive(Debug, Default)]
pub(super) enum CallWay {
    /// By its own name.
    #[default]
    Direct,
    /// By the tool that calls others.
    Found {
        /// The search that it was found by.
        search: Option<String>,
        /// How long to wait at most.
        wait: Option<Duration>,
    },
}

/// Whoever waits for a call, and how.
struct Waiter<'r> {
    request: &'r McpRequest,
    events: &'r MessageSink,
    /// When it asked.
    since: Instant,
    patience: Patience,
    client: PatientClient,
    /// Can it come back for the result?
    takes_handle: bool,
    /// Is too long a text given in parts?
    takes_parts: bool,
    /// Wait at most so long.
    most: Option<Duration>,
    is_joined: bool,
    search: Option<String>,
}

impl Mcp {
    /// What was looked for lately.
    pub(super) fn searches(&self) -> &Searches {
        &self.relay.searches
    }

    /// Calls a server's tool.
    pub(super) async fn relay(
        self: &Arc<Self>,
        request: &McpRequest,
        events: &MessageSink,
        wanted: WantedCall,
    ) -> RpcAnswer {
        let caller = &request.caller;
        if let Some(refused) = self.refuse(caller)? {
            return complete(caller, refused.into_json(caller.version));
        }
        let owner = CallOwner { token: Arc::clone(&caller.grant.name), tenant: Arc::clone(&caller.grant.tenant) };
        let session = session_of(request);
        let key = session.as_ref().map(|session| SameCall {
            token: Arc::clone(&owner.token),
            tenant: Arc::clone(&owner.tenant),
            session: session.clone(),
            tool: Arc::clone(&wanted.tool.name),
            arguments: wanted.arguments.as_deref().map_or_else(|| "{}".to_owned(), outgoing::canonical),
        });
        let (is_found, search, most) = match wanted.way {
            CallWay::Direct => (false, None, None),
            CallWay::Found { ref search, wait } => (true, search.clone(), wait),
        };
        let takes_handle = is_found || wanted.tool.server.settings.on_timeout == OnTimeout::Handle;
        let known = key.as_ref().and_then(|key| self.relay.calls.join(key));
        let is_joined = known.is_some();
        let patience = self.patience(request);
        let call = if let Some(call) = known {
            self.metrics.relay.joined.inc();
            call
        } else {
            if takes_handle && let Err(error) = self.relay.calls.check_room(&owner.tenant) {
                return complete(caller, ToolResult::error(error.to_string()).into_json(caller.version));
            }
            let call = task::begin(self, request, &wanted, owner, key, patience.limit);
            self.relay.calls.add(&call);
            call
        };
        let waiter = Waiter {
            request,
            events,
            since: Instant::now(),
            patience,
            client: client_of(request),
            takes_handle,
            takes_parts: is_found,
            most,
            is_joined,
            search,
        };
        self.wait(waiter, call).await
    }

    /// May this caller call servers' tools?
    pub(super) fn may_call(&self, caller: &McpCaller) -> bool {
        caller.grant.allows(Scope::Call) || caller.is_public && self.settings().anonymous_calls
    }

    /// Why this caller may not call servers' tools, if so. Whoever has no token has nowhere to get one, so that is
    /// said to the model instead of sending the client to log in.
    fn refuse(&self, caller: &McpCaller) -> Result<Option<ToolResult>, RpcError> {
        if self.may_call(caller) {
            return Ok(None);
        }
        if !caller.is_public {
            return Err(RpcError::missing_scope(Scope::Call));
        }
        Ok(Some(ToolResult::error(
            "calls of servers' tools are not allowed here without a token: connect by `almanacd mcp` instead, or let \
             `mcp.anonymous_calls: true` in the configuration allow them to everybody on this machine",
        )))
    }

    pub(super) fn patience(&self, request: &McpRequest) -> Patience {
        let (caller, settings) = (&request.caller, self.settings());
        let said = request.params.as_deref().and_then(|params| meta::get(params, TIMEOUT)?.get().parse::<f64>().ok());
        let said = said.filter(|ms| *ms >= 1.0 && *ms <= 86_400_000.0).map(|ms| Duration::from_secs_f64(ms / 1000.0));
        let view = self.view_settings(&caller.address);
        let limit = said
            .or(caller.waits.limit)
            .or(view.client_timeout)
            .or_else(|| self.relay.limits.get(&client_of(request)))
            .or(settings.client_timeout)
            .unwrap_or(patience::DEFAULT);
        Patience::new(limit, caller.waits.progress_resets || view.progress_resets)
    }

    async fn wait(self: &Arc<Self>, waiter: Waiter<'_>, call: Arc<OngoingCall>) -> RpcAnswer {
        let mut given_up = GivenUp { door: self, client: waiter.client.clone(), since: waiter.since, is_over: false };
        let ended = self.wait_for(&waiter, &call, false).await;
        given_up.is_over = true;
        match ended {
            Some(end) => {
                self.relay.limits.took(&waiter.client, waiter.since.elapsed());
                self.deliver(&waiter, &call, &end)
            }
            None => self.hand_out(&waiter, &call),
        }
    }

    /// Waits until the call has ended, or for as long as its client will.
    async fn wait_for(&self, waiter: &Waiter<'_>, call: &Arc<OngoingCall>, is_visit: bool) -> Option<Arc<CallEnd>> {
        let Waiter { request, events, since, patience, .. } = waiter;
        let token = request.params.as_deref().and_then(|params| meta::get(params, meta::PROGRESS_TOKEN));
        let mut teller = token.map(|token| ProgressTeller::new(token.to_owned()));
        let (first, between) = ProgressTeller::rhythm(patience.limit);
        let is_kept_alive = patience.progress_resets && teller.is_some();
        let lasts = (waiter.takes_handle && !is_kept_alive).then(|| patience.handle_after());
        let lasts = lasts.into_iter().chain(waiter.most.filter(|_| waiter.takes_handle)).min();
        let until = lasts.map(|lasts| *since + lasts);
        let mut due = *since + first;
        let mut waiting = Waiting::begin(call, &request.presence, is_visit);
        loop {
            tokio::select! {
                biased;
                event = waiting.heard() => {
                    due = Instant::now() + between;
                    self.told(waiter, teller.as_mut(), event).await;
                }
                end = call.ending() => {
                    while let Some(event) = waiting.rest() {
                        self.told(waiter, teller.as_mut(), event).await;
                    }
                    waiting.leave();
                    return end;
                }
                () = sleep_until(until.unwrap_or(*since)), if until.is_some() => {
                    waiting.leave();
                    return None;
                }
                () = sleep_until(due), if teller.is_some() => {
                    due = Instant::now() + between;
                    if let Some(line) = teller.as_mut().and_then(|teller| keep_alive(teller, call)) {
                        self.metrics.relay.keepalives.inc();
                        let _ = events.send(line.into()).await;
                    }
                }
            }
        }
    }

    /// Tells the client what the server says.
    async fn told(&self, waiter: &Waiter<'_>, teller: Option<&mut ProgressTeller>, event: ServerEvent) {
        match event {
            ServerEvent::Progress(params) => {
                if let Some(line) = teller.and_then(|teller| teller.relay(&params)) {
                    // Nobody listens who does not take events.
                    let _ = waiter.events.send(line.into()).await;
                }
            }
            ServerEvent::Log(params) => {
                if waiter.request.caller.era() == Era::Legacy {
                    let line = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#);
                    let _ = waiter.events.send(line.into()).await;
                }
            }
            // It is refused by being dropped.
            ServerEvent::Question { .. } => {}
        }
    }

    fn deliver(&self, waiter: &Waiter<'_>, call: &Arc<OngoingCall>, end: &CallEnd) -> RpcAnswer {
        let caller = &waiter.request.caller;
        if waiter.request.presence.is_there() {
            call.delivered();
            self.relay.calls.forget_key(call);
        }
        let shows_metadata = self.view_settings(&caller.address).metadata;
        let is_unrecorded = self.engine.store().trouble().is_some();
        let told =
            if shows_metadata { metadata::told(call, end, waiter.is_joined, is_unrecorded) } else { String::new() };
        match &end.outcome {
            Ok(result) => {
                if let Some(query) = waiter.search.as_ref().filter(|_| !says_error(result)) {
                    self.choose(&caller.grant.tenant, query, &call.tool.name);
                }
                if waiter.takes_parts && handles::is_too_long(result) {
                    let handle = self.relay.calls.keep(call);
                    return Self::part_of(caller, result, 0, &handle, &told);
                }
                relayed(caller, result, &told)
            }
            Err(CallFailure::Error(error)) if !waiter.takes_parts => {
                Err(RpcError::relayed(translate::error(error, caller.era())))
            }
            Err(failure) => Self::failed(caller, call, failure, &told),
        }
    }

    fn failed(caller: &McpCaller, call: &OngoingCall, failure: &CallFailure, told: &str) -> RpcAnswer {
        let text = match failure {
            CallFailure::Error(error) => {
                let error = crate::jsonrpc::ErrorObject::read(error);
                format!("{} answered with error {}: {}", call.tool.server.name, error.code, error.message)
            }
            CallFailure::Fault(fault) => fault.to_string(),
            CallFailure::Cancelled => "the call was cancelled; it may have run".to_owned(),
        };
        complete(caller, with_metadata(ToolResult::error(text).into_json(caller.version), told))
    }

    fn choose(&self, tenant: &Arc<str>, search: &str, tool: &str) {
        if let Some(query) = self.relay.searches.take(tenant, search) {
            self.engine.choose(tenant, &query, tool);
        }
    }
}

/// A result as its server gave it.
pub(super) fn relayed(caller: &McpCaller, result: &RawValue, told: &str) -> RpcAnswer {
    let info = super::request::server_info().to_string();
    let mut added: Vec<(&str, &str)> = Vec::new();
    if !told.is_empty() {
        added.push((metadata::KEY, told));
    }
    if caller.era() == Era::Modern {
        added.push((meta::SERVER_INFO, &info));
    }
    let translated = translate::result(result, caller.era(), &added);
    translated.or_else(|error| {
        let failed = ToolResult::error(format!("the server's answer is {error}"));
        complete(caller, failed.into_json(caller.version))
    })
}

/// A result of ours with what is told of the call.
fn with_metadata(mut result: Map<String, Value>, told: &str) -> Map<String, Value> {
    if let Ok(told) = serde_json::from_str::<Value>(told) {
        let known = result.entry(meta::MEMBER).or_insert_with(|| Value::Object(Map::new()));
        known[metadata::KEY] = told;
    }
    result
}

fn says_error(result: &RawValue) -> bool {
    Members::read(result).is_ok_and(|members| members.get("isError").is_some_and(|value| value.get() == "true"))
}

/// The session that a call belongs to: what the client calls it, or that of its era.
pub(super) fn session_of(request: &McpRequest) -> Option<String> {
    let named = request.params.as_deref().and_then(|params| {
        let named = object::text(meta::get(params, SESSION)?)?.into_owned();
        crate::strict::values::check_label(&named).is_ok().then_some(named)
    });
    named.filter(|named| !named.is_empty()).or_else(|| request.caller.session_name())
}

fn client_of(request: &McpRequest) -> PatientClient {
    match request.caller.session {
        Some(session) => PatientClient::Session(session),
        None => PatientClient::Token(request.caller.grant.name.to_string(), request.caller.address.to_string()),
    }
}

/// The notification that a call goes on, as its forecast says it.
fn keep_alive(teller: &mut ProgressTeller, call: &OngoingCall) -> Option<String> {
    let elapsed = call.running_for().as_millis() as u64;
    let share = call.forecast.probability_within(elapsed);
    let [_, half, most, _] = call.forecast.remaining(elapsed).quantiles_ms();
    let message = if call.sent.get().is_none() {
        format!("waiting for {}", call.tool.server.name)
    } else if share > 0.99 {
        format!("running for {}, longer than 99 in 100 calls", shown(elapsed))
    } else {
        format!("about {} left, {} at most in nine of ten cases", shown(half), shown(most))
    };
    teller.keep_alive(share, &message)
}

/// A time for people, with two digits.
fn shown(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", ms as f64 / 1000.0),
        10_000..120_000 => format!("{} s", ms.div_ceil(1000)),
        _ => format!("{} min", ms.div_ceil(60_000)),
    }
}

/// The client gives a call up by leaving: how long it waited may be its limit.
struct GivenUp<'d> {
    door: &'d Mcp,
    client: PatientClient,
    since: Instant,
    is_over: bool,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.door.relay.limits.gave_up(self.client.clone(), self.since.elapsed());
        }
    }
}
