//! A call of a server's tool, from the question to what its client gets.
//!
//! View and scope, then the call in a task of its own, and beside it whoever waits for it. What the client will not
//! wait for is kept under a handle; what it asks again is joined to what runs already. The call is recorded once, at
//! its real end, whoever still waits.

mod arguments;
mod call_result;
mod handles;
pub(super) mod metadata;
mod ongoing;
mod outgoing;
mod parked;
mod pass_on;
mod patience;
mod progress;
pub(super) mod rounds;
mod searches;
mod server_task;
mod task;
mod task_questions;
mod tasks;
pub(super) mod translate;
mod under_way;
mod unrecorded;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use task::Begin;
use tokio::time::{Instant, sleep_until};
use unrecorded::UnrecordedCalls;

pub(super) use arguments::faults as argument_faults;
pub(super) use handles::{Fetch, schema as handle_schema};
use ongoing::{CallEnd, CallFailure, CallOwner, OngoingCall, OngoingCalls, SameCall, Waiting};
use parked::{MAX_PARKED, Parked, ParkingPlace, QUESTION, ServerQuestion};
use pass_on::OpenRequest;
pub(super) use patience::Patience;
use patience::{LearntLimits, PatientClient};
use progress::{ProgressTeller, keep_alive};
pub(super) use searches::Searches;
pub(super) use server_task::needs_task;
pub(super) use tasks::needs_tasks;
pub use under_way::CallUnderWay;

use super::Mcp;
use super::error::RpcError;
use super::offering::ServedTool;
use super::own::ToolResult;
use super::request::{McpCaller, McpRequest, MessageSink, RpcAnswer, complete};
use super::sealed::{GoodFor, RoundState};
use crate::access::Scope;
use crate::jsonrpc::{Era, Members, canonical, meta, object};
use crate::text::head::head;
use crate::upstream::{OnTimeout, ServerEvent};

/// Of what a server adds to its error, what is shown in a text, in bytes.
const MAX_ERROR_DATA: usize = 4000;

/// The session of a modern client, which has none of its own.
const SESSION: &str = "dev.almanac/session";

/// How long the client waits for this one, in ms.
const TIMEOUT: &str = "dev.almanac/timeoutMs";

/// Whoever has no token has nowhere to get one, so that is said instead of sending the client to log in.
pub(super) const NO_TOKEN: &str = "not allowed here without a token: connect by `almanacd mcp` instead, or let \
                                   `mcp.anonymous_calls: true` in the configuration allow them to everybody on this \
                                   machine";

/// What clients may come back for, and what was seen of them.
#[derive(Debug, Default)]
pub(super) struct Relay {
    calls: OngoingCalls,
    limits: LearntLimits,
    searches: Searches,
    parked: ParkingPlace<Waiting>,
    parked_requests: ParkingPlace<OpenRequest>,
    unrecorded: UnrecordedCalls,
}

impl Relay {
    /// Waits until all calls are recorded that have ended or are cut short, for so long at most.
    pub(super) async fn all_recorded(&self, limit: Duration) {
        self.unrecorded.none_left(limit).await;
    }

    /// Can one more of the tenant wait for its client?
    fn can_park(&self, tenant: &str) -> bool {
        let waiting = self.parked.count(tenant) + self.parked_requests.count(tenant);
        waiting + self.calls.open_questions(tenant) < MAX_PARKED
    }
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
    /// Is what it comes back for a task?
    takes_tasks: bool,
    /// Is too long a text given in parts?
    takes_parts: bool,
    /// Wait at most so long.
    most: Option<Duration>,
    came: Came,
    search: Option<String>,
}

/// How somebody came to wait for a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    /// By asking for it.
    Asking,
    /// By asking for what runs already.
    Joining,
    /// With its handle.
    Back,
}

/// What waiting for a call comes to.
enum Waited {
    Ended(Arc<CallEnd>),
    /// The client will not wait any longer.
    TooLong,
    /// A modern client is to answer a legacy server first.
    Asked(Box<Parked<Waiting>>),
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
        let owner = CallOwner::of(caller);
        let session = session_of(request);
        let state = self.state_of(request, &wanted.tool)?;
        // What brings answers is another request, however much it looks like the first.
        let key = session.as_ref().filter(|_| !rounds::answers(request.params.as_deref())).map(|session| SameCall {
            token: Arc::clone(&owner.token),
            tenant: Arc::clone(&owner.tenant),
            session: session.clone(),
            tool: Arc::clone(&wanted.tool.name),
            arguments: wanted.arguments.as_deref().map_or_else(|| "{}".to_owned(), canonical),
        });
        let (is_found, search, most) = match wanted.way {
            CallWay::Direct => (false, None, None),
            CallWay::Found { ref search, wait } => (true, search.clone(), wait),
        };
        let takes_tasks = caller.takes_tasks();
        let takes_handle = is_found || wanted.tool.server.settings.on_timeout == OnTimeout::Handle;
        let known = key.as_ref().and_then(|key| self.relay.calls.join(key));
        let is_joined = known.is_some();
        let patience = self.patience(request);
        let mut waiter = Waiter {
            request,
            events,
            since: Instant::now(),
            patience,
            client: client_of(request),
            takes_handle,
            takes_tasks,
            takes_parts: is_found,
            most,
            came: if is_joined { Came::Joining } else { Came::Asking },
            search,
        };
        if let Some(RoundState::Parked(name)) = &state {
            // Its client is here: it hears of whatever comes next.
            waiter.takes_handle = false;
            return self.unpark(waiter, name, &owner).await;
        }
        let call = if let Some(call) = known {
            self.metrics.relay.joined.inc();
            call
        } else {
            if (takes_handle || takes_tasks)
                && let Err(error) = self.relay.calls.check_room(&owner.tenant)
            {
                return complete(caller, ToolResult::error(error.to_string()).into_json(caller.version));
            }
            let state = state.map(|state| match state {
                RoundState::Server(text) | RoundState::Parked(text) => text,
            });
            let call =
                task::begin(self, request, &wanted, Begin { owner, key, patience: waiter.patience.limit, state });
            self.relay.calls.add(&call);
            call
        };
        let waiting = Waiting::begin(&call, &request.presence, false);
        self.wait(waiter, call, waiting).await
    }

    /// The state that a modern client brings back; refused if it was not given to it for this.
    fn state_of(&self, request: &McpRequest, tool: &ServedTool) -> Result<Option<RoundState>, RpcError> {
        let Some(sealed) = request.params.as_deref().and_then(rounds::state_of) else { return Ok(None) };
        if request.caller.era() == Era::Legacy {
            return Ok(None);
        }
        let good_for = good_for(&request.caller, &tool.server.name, "tools/call", &tool.own_name);
        let state = self.key.unseal(&sealed, good_for, SystemTime::now());
        state.map(Some).ok_or_else(wrong_state)
    }

    /// Goes on with a call that waits for its client's answer.
    async fn unpark(self: &Arc<Self>, waiter: Waiter<'_>, name: &str, owner: &CallOwner) -> RpcAnswer {
        let request = waiter.request;
        let Some(mut parked) = self.relay.parked.take(name, owner) else {
            let text = "the call that asked this was given up; call the tool anew";
            return complete(&request.caller, ToolResult::error(text).into_json(request.caller.version));
        };
        parked.waiting.resume(&request.presence);
        let Some(answer) = rounds::response(request.params.as_deref(), QUESTION) else {
            // It is asked again, in the same words.
            return self.park(request, parked);
        };
        let call = Arc::clone(parked.waiting.call());
        call.pause(parked.since.elapsed());
        // A server that has gone meanwhile is told so by the end of the call.
        let _ = parked.answer.send(Ok(answer));
        self.wait(waiter, call, parked.waiting).await
    }

    /// Keeps a call until its client is back with the answer, and asks it.
    fn park(self: &Arc<Self>, request: &McpRequest, parked: Parked<Waiting>) -> RpcAnswer {
        let caller = &request.caller;
        let call = Arc::clone(parked.waiting.call());
        self.relay.calls.forget_key(&call);
        let (method, params) = (parked.method.clone(), parked.params.clone());
        let name = self.relay.parked.park(parked).ok_or_else(|| RpcError::internal("there is no randomness"))?;
        let good_for = good_for(caller, &call.tool.server.name, "tools/call", &call.tool.own_name);
        let state = self.key.seal(&RoundState::Parked(name.clone()), good_for, SystemTime::now());
        let asked = rounds::asking(QUESTION, &method, params.as_deref(), &state);
        let door = Arc::clone(self);
        tokio::spawn(async move { door.relay.parked.expire(&name).await });
        relayed(caller, &asked, "")
    }

    /// May this caller call servers' tools?
    pub(super) fn may_call(&self, caller: &McpCaller) -> bool {
        caller.grant.allows(Scope::Call) || caller.is_public && self.settings().anonymous_calls
    }

    /// Why this caller may not call servers' tools, if so, which is said to the model.
    fn refuse(&self, caller: &McpCaller) -> Result<Option<ToolResult>, RpcError> {
        if self.may_call(caller) {
            return Ok(None);
        }
        if !caller.is_public {
            return Err(RpcError::missing_scope(Scope::Call));
        }
        Ok(Some(ToolResult::error(format!("calls of servers' tools are {NO_TOKEN}"))))
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

    async fn wait(self: &Arc<Self>, waiter: Waiter<'_>, call: Arc<OngoingCall>, waiting: Waiting) -> RpcAnswer {
        let mut given_up = GivenUp { door: self, client: waiter.client.clone(), since: waiter.since, is_over: false };
        let waited = self.wait_for(&waiter, &call, waiting).await;
        given_up.is_over = true;
        match waited {
            Waited::Ended(end) => {
                self.relay.limits.took(&waiter.client, waiter.since.elapsed());
                self.deliver(&waiter, &call, &end)
            }
            Waited::TooLong if waiter.takes_tasks => self.give_task(&waiter, &call),
            Waited::TooLong => self.hand_out(&waiter, &call),
            Waited::Asked(parked) => self.park(waiter.request, *parked),
        }
    }

    /// Waits until the call has ended, or for as long as its client will.
    async fn wait_for(self: &Arc<Self>, waiter: &Waiter<'_>, call: &Arc<OngoingCall>, mut waiting: Waiting) -> Waited {
        let Waiter { request, events, since, patience, .. } = waiter;
        let token = request.params.as_deref().and_then(|params| meta::get(params, meta::PROGRESS_TOKEN));
        let mut teller = token.map(|token| ProgressTeller::new(token.to_owned()));
        let (first, between) = ProgressTeller::rhythm(patience.limit);
        let is_kept_alive = patience.progress_resets && teller.is_some();
        let lasts = (waiter.takes_handle && !is_kept_alive).then(|| patience.handle_after());
        let lasts = lasts.into_iter().chain(waiter.most.filter(|_| waiter.takes_handle)).min();
        let until = lasts.map(|lasts| *since + lasts);
        let mut due = *since + first;
        loop {
            tokio::select! {
                biased;
                event = waiting.heard() => {
                    due = Instant::now() + between;
                    match event {
                        ServerEvent::Question { method, params, answer }
                            if self.parks(waiter, &method, params.as_deref()) =>
                        {
                            let (owner, since) = (call.owner.clone(), Instant::now());
                            return Waited::Asked(Box::new(Parked { owner, waiting, method, params, answer, since }));
                        }
                        event => self.told(waiter, teller.as_mut(), event, call).await,
                    }
                }
                end = call.ending() => {
                    while let Some(event) = waiting.rest() {
                        self.told(waiter, teller.as_mut(), event, call).await;
                    }
                    waiting.leave();
                    // It has ended, so it says how.
                    return end.map_or(Waited::TooLong, Waited::Ended);
                }
                () = call.becoming_task(), if waiter.takes_tasks => {
                    waiting.leave();
                    return Waited::TooLong;
                }
                () = sleep_until(until.unwrap_or(*since)), if until.is_some() => {
                    waiting.leave();
                    return Waited::TooLong;
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

    /// Is the question answered by a request of the client's that follows?
    fn parks(&self, waiter: &Waiter<'_>, method: &str, params: Option<&RawValue>) -> bool {
        let caller = &waiter.request.caller;
        caller.era() == Era::Modern
            && waiter.came != Came::Back
            && caller.can_answer(method, params)
            && self.relay.can_park(&caller.grant.tenant)
    }

    /// Tells the client what the server says.
    async fn told(
        self: &Arc<Self>,
        waiter: &Waiter<'_>,
        teller: Option<&mut ProgressTeller>,
        event: ServerEvent,
        call: &Arc<OngoingCall>,
    ) {
        match event {
            ServerEvent::Progress(params) => {
                if let Some(line) = teller.and_then(|teller| teller.relay(&params)) {
                    // Nobody listens who does not take events.
                    let _ = waiter.events.send(line.into()).await;
                }
            }
            ServerEvent::Log(params) => {
                if self.wants_log(waiter.request, &params) {
                    let line = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#);
                    let _ = waiter.events.send(line.into()).await;
                }
            }
            ServerEvent::Question { method, params, answer } => self.ask_on(waiter, call, method, params, answer),
        }
    }

    /// Asks a legacy client on its call's stream. Whoever cannot be asked refuses, as the answer is dropped.
    fn ask_on(
        self: &Arc<Self>,
        waiter: &Waiter<'_>,
        call: &Arc<OngoingCall>,
        method: String,
        params: Option<Box<RawValue>>,
        mut answer: ServerQuestion,
    ) {
        let (door, caller) = (Arc::clone(self), waiter.request.caller.clone());
        let (events, call) = (waiter.events.clone(), Arc::clone(call));
        tokio::spawn(async move {
            let since = Instant::now();
            let answered = tokio::select! {
                answered = door.ask_client(&caller, &events, &method, params.as_deref()) => answered,
                _ = call.ending() => None,
                () = answer.closed() => None,
            };
            call.pause(since.elapsed());
            if let Some(answered) = answered {
                let _ = answer.send(answered);
            }
        });
    }

    fn deliver(&self, waiter: &Waiter<'_>, call: &Arc<OngoingCall>, end: &CallEnd) -> RpcAnswer {
        let caller = &waiter.request.caller;
        if waiter.request.presence.is_there() {
            call.delivered();
            self.relay.calls.forget_key(call);
        }
        let shows_metadata = self.view_settings(&caller.address).metadata;
        let is_unrecorded = !self.engine.store().takes_records();
        let told = if shows_metadata {
            let shown = self.shown();
            let facts = (waiter.came == Came::Joining, is_unrecorded);
            metadata::told(call, end, facts, |name| shown.found_as(&caller.address, name))
        } else {
            String::new()
        };
        match &end.outcome {
            Ok(result) if result.asks() => self.asked(waiter, call, result.json()),
            Ok(result) => {
                if let Some(query) = waiter.search.as_ref().filter(|_| !result.says_error()) {
                    self.choose(&caller.grant.tenant, query, &call.tool.name);
                }
                if waiter.takes_parts && handles::is_too_long(result.json()) {
                    let handle = self.relay.calls.keep(call);
                    return Self::part_of(caller, result.json(), 0, &handle, &told);
                }
                relayed(caller, result.json(), &told)
            }
            Err(CallFailure::Error(error)) if Self::pages(waiter, error).is_some() => {
                Self::pages(waiter, error).map_or_else(|| Err(wrong_state()), |asked| relayed(caller, &asked, ""))
            }
            Err(CallFailure::Error(error)) if !waiter.takes_parts => {
                Err(RpcError::relayed(translate::error(error, caller.era())))
            }
            Err(failure) => Self::failed(caller, call, failure, &told),
        }
    }

    /// The questions of a legacy server that sends its user to a page, if the client can show it.
    fn pages(waiter: &Waiter<'_>, error: &RawValue) -> Option<Box<RawValue>> {
        let asked = rounds::of_pages(error)?;
        let caller = &waiter.request.caller;
        let first = rounds::InputRequired::read(&asked)?.requests.pop()?;
        let can = caller.era() == Era::Modern && caller.can_answer(&first.method, first.params.as_deref());
        (can && waiter.came != Came::Back).then_some(asked)
    }

    /// A modern server's questions, for a modern client that is there.
    fn asked(&self, waiter: &Waiter<'_>, call: &OngoingCall, result: &RawValue) -> RpcAnswer {
        let (caller, tool) = (&waiter.request.caller, &call.tool);
        if waiter.came == Came::Back || caller.era() == Era::Legacy {
            let failed = rounds::InputRequired::read(result).map(|asked| rounds::unanswered(&tool.server.name, &asked));
            return relayed(caller, &failed.unwrap_or_default(), "");
        }
        self.sealed(caller, result, &tool.server.name, ("tools/call", &tool.own_name))
    }

    /// A modern server's questions about a request, with their state sealed.
    pub(super) fn sealed(
        &self,
        caller: &McpCaller,
        result: &RawValue,
        server: &str,
        request: (&str, &str),
    ) -> RpcAnswer {
        let good_for = GoodFor { token: &caller.grant.name, server, request };
        let seal = |state: &str| self.key.seal(&RoundState::Server(state.to_owned()), good_for, SystemTime::now());
        let sealed = rounds::sealed(result, seal).map_err(|error| RpcError::internal(error.to_string()))?;
        relayed(caller, &sealed, "")
    }

    fn failed(caller: &McpCaller, call: &OngoingCall, failure: &CallFailure, told: &str) -> RpcAnswer {
        let text = match failure {
            CallFailure::Error(error) => {
                let data = Members::read(error).ok().and_then(|error| error.get("data"));
                let data = data.map(|data| format!("; data: {}", head(data.get(), MAX_ERROR_DATA))).unwrap_or_default();
                let error = crate::jsonrpc::ErrorObject::read(error);
                format!("{} answered with error {}: {}{data}", call.tool.server.name, error.code, error.message)
            }
            CallFailure::Fault(fault) => fault.to_string(),
            CallFailure::Cancelled => "the call was cancelled; it may have run".to_owned(),
        };
        complete(caller, with_metadata(ToolResult::error(text).into_json(caller.version), told))
    }

    fn choose(&self, tenant: &Arc<str>, search: &str, tool: &str) {
        if let Some((query, purges)) = self.relay.searches.take(tenant, search) {
            self.engine.choose(tenant, (&query, purges), tool);
        }
    }
}

fn good_for<'a>(caller: &'a McpCaller, server: &'a str, method: &'a str, subject: &'a str) -> GoodFor<'a> {
    GoodFor { token: &caller.grant.name, server, request: (method, subject) }
}

/// A state that was not given to this client for this request.
pub(super) fn wrong_state() -> RpcError {
    RpcError::invalid_params("`requestState` is not of this request, was changed, or is older than 15 minutes")
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
