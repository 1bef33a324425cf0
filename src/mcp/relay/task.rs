//! The task of the runtime that a call lives in: it asks the server, hears it, and records the call once it has really
//! ended.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use super::super::Mcp;
use super::super::request::McpRequest;
use super::call_result::{CallAnswer, CallResult};
use super::metadata::{self, CallFacts};
use super::ongoing::{CallEnd, CallFailure, CallOwner, OngoingCall, SameCall};
use super::parked::PARKED_FOR;
use super::rounds::{self, InputRequest, InputRequired, MAX_ROUNDS};
use super::{CallWay, WantedCall, outgoing, server_task, session_of};
use crate::jsonrpc::{Era, Members, meta, object};
use crate::telemetry::events::ToolRelayed;
use crate::timing::execution::MAX_DURATION_MS;
use crate::timing::key::check_mode;
use crate::timing::{Execution, Forecast, Key, Measures, Outcome};
use crate::upstream::{CallFault, CallReply, Caller, Outgoing, ServerEvent};

/// What is told beside a result is waited for so long, once the result is there.
const TOLD_WITHIN: Duration = Duration::from_millis(5);

/// How long a tool may take of which too little is known: calls of the key that were recorded, and the limit without.
const FEW: u64 = 20;
const UNKNOWN_LIMIT: Duration = Duration::from_secs(300);

/// Of one that is known: four times what 99 in 100 calls take, between these.
const KNOWN_LIMIT: [Duration; 2] = [Duration::from_secs(120), Duration::from_secs(900)];

/// A call as its task needs it.
pub(super) struct CallTask {
    pub(super) door: Arc<Mcp>,
    pub(super) call: Arc<OngoingCall>,
    outgoing: Outgoing,
    facts: CallFacts,
    /// May it be sent again if it got no answer?
    is_read_only: bool,
    log: CallLog,
    /// Of the client.
    era: Era,
}

/// Where a server's words about a call arrive, from its first request to the last one about its task.
pub(super) struct CallEvents {
    sender: mpsc::Sender<ServerEvent>,
    pub(super) receiver: mpsc::Receiver<ServerEvent>,
}

impl Default for CallEvents {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(32);
        Self { sender, receiver }
    }
}

/// What the log of calls says beside what is recorded.
struct CallLog {
    token: Arc<str>,
    trace: Option<String>,
    arguments: Option<String>,
}

/// What a call begins with beside what is wanted.
pub(super) struct Begin {
    pub(super) owner: CallOwner,
    pub(super) key: Option<SameCall>,
    /// How long its client waits.
    pub(super) patience: Duration,
    /// What its server gave to bring back.
    pub(super) state: Option<String>,
}

/// Makes a call and returns at once.
pub(super) fn begin(door: &Arc<Mcp>, request: &McpRequest, wanted: &WantedCall, with: Begin) -> Arc<OngoingCall> {
    let Begin { owner, key, patience, state } = with;
    let WantedCall { tool, arguments, way } = wanted;
    let facts = door.facts(&tool.name);
    let mode = facts.mode_argument.as_deref().and_then(|argument| mode_of(arguments.as_deref()?, argument));
    let size = arguments.as_ref().map_or(0, |arguments| arguments.get().len() as u64);
    let forecast = {
        let measures = Measures { content_length: Some(size), ..Measures::default() };
        let key = Key::new(&tool.name, mode.as_deref().unwrap_or_default());
        door.engine.forecast_key(&door.engine.generation(), &door.engine.learnt(), key, &(&measures).into())
    };
    let session = session_of(request);
    let facts_of_call = CallFacts {
        grant: request.caller.grant.clone(),
        tool: Arc::clone(&tool.name),
        mode,
        session: session.clone(),
        size,
        patience,
    };
    let params = request.params.as_deref();
    let sent = match way {
        CallWay::Direct => outgoing::direct(params, &tool.own_name),
        CallWay::Found { .. } => outgoing::found(params, &tool.own_name, arguments.as_deref()),
    };
    let sent = sent.and_then(|sent| rounds::passed_on(&sent, params, state.as_deref(), tool.server.era));
    let sent = sent.and_then(|sent| server_task::asked_as(&sent, tool));
    let settings = &tool.server.settings;
    let limit = settings.timeout.unwrap_or_else(|| limit_of(&forecast));
    // One that shares no process with others; without a session, that of the token.
    let process = session.unwrap_or_else(|| outgoing::process_of(&request.caller));
    let call = Arc::new(OngoingCall::new(Arc::clone(tool), (owner, process), key, (forecast, limit)));
    let outgoing = Outgoing {
        method: "tools/call".to_owned(),
        params: sent.ok(),
        caller: Caller {
            session: Some(call.session.clone()),
            token: Some(call.owner.token.to_string()),
            capabilities: Some(request.caller.capabilities.as_ref().to_owned()),
            wants_progress: params.is_some_and(|params| meta::get(params, meta::PROGRESS_TOKEN).is_some()),
            log_level: door.log_level(request).map(|level| level.as_str().to_owned()),
        },
        limit: Some(limit),
        sent: Some(Arc::clone(&call.sent)),
    };
    let shown = |raw: &RawValue| raw.get().to_owned();
    let log = CallLog {
        token: Arc::clone(&call.owner.token),
        trace: params.and_then(|params| meta::text(params, "traceparent")).map(String::from),
        arguments: arguments.as_deref().filter(|_| settings.log_arguments).map(shown),
    };
    let (door, is_read_only) = (Arc::clone(door), facts.is_read_only);
    let era = request.caller.era();
    let task = CallTask { door, call: Arc::clone(&call), outgoing, facts: facts_of_call, is_read_only, log, era };
    tokio::spawn(task.run());
    call
}

fn mode_of(arguments: &RawValue, argument: &str) -> Option<String> {
    let mode = object::text(Members::read(arguments).ok()?.get(argument)?)?.into_owned();
    check_mode(&mode).is_ok().then_some(mode).filter(|mode| !mode.is_empty())
}

/// How long a call may take that nobody set a limit for.
fn limit_of(forecast: &Forecast) -> Duration {
    if forecast.samples() < FEW {
        return UNKNOWN_LIMIT;
    }
    Duration::from_millis(4 * forecast.quantile_ms(0.99)).clamp(KNOWN_LIMIT[0], KNOWN_LIMIT[1])
}

impl CallTask {
    async fn run(self) {
        let _unrecorded = self.door.relay.unrecorded.begin().await;
        let (reply, metadata) = self.ask_and_expect().await;
        let Self { door, call, facts, log, .. } = self;
        let ran_for = call.sent.get().map(std::time::Instant::elapsed);
        let (outcome, duration, queued) = match reply {
            Some(Ok(CallAnswer { outcome, duration, queued })) => {
                (outcome.map_err(CallFailure::Error).and_then(|result| whole(&call, result)), Some(duration), queued)
            }
            Some(Err(fault)) => {
                let ran_for = ran_for.filter(|_| !matches!(fault, CallFault::Down { .. }));
                (Err(CallFailure::Fault(fault)), ran_for, Duration::ZERO)
            }
            None => (Err(CallFailure::Cancelled), ran_for, Duration::ZERO),
        };
        let duration = duration.map(|duration| duration.saturating_sub(call.paused()));
        // A client that is to answer first asks again: that is the call.
        let is_asked = outcome.as_ref().is_ok_and(CallResult::asks);
        let ended_as = outcome_of(&outcome);
        let end = CallEnd { outcome, duration: duration.unwrap_or_default(), queued, at: Instant::now(), metadata };
        let server = call.tool.server.name.clone();
        if is_asked {
            call.finish(end);
            return door.relay.calls.ended(&call);
        }
        let was_made = duration.is_some();
        let label = if was_made { ended_as.as_str() } else { "refused" };
        door.metrics.relay.calls.with_label_values(&[server.as_str(), label]).inc();
        ToolRelayed {
            tenant: &facts.grant.tenant,
            server: &server,
            tool: &facts.tool,
            outcome: label,
            duration: end.duration,
            queued: end.queued,
            token: &log.token,
            session: facts.session.as_deref(),
            trace: log.trace.as_deref(),
            arguments: log.arguments.as_deref(),
        }
        .emit(&door.metrics);
        call.finish(end);
        door.relay.calls.ended(&call);
        if let Some(duration) = duration {
            record(&door, facts, duration, ended_as).await;
        }
    }

    /// The answer, and what is told beside it as far as that is known before: found while the server works.
    async fn ask_and_expect(&self) -> (Option<Result<CallAnswer, CallFault>>, Option<Map<String, Value>>) {
        let expected = async {
            // What is sent leaves first.
            yield_now().await;
            metadata::expect(&self.door.engine, self.facts.clone()).await
        };
        let (mut asked, mut expected) = (pin!(self.ask_in_rounds()), pin!(expected));
        let mut metadata = None;
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut asked => break reply,
                found = &mut expected, if metadata.is_none() => metadata = Some(found),
            }
        };
        let metadata = match metadata {
            Some(metadata) => metadata,
            None => timeout(TOLD_WITHIN, expected).await.ok().flatten(),
        };
        (reply, metadata)
    }

    /// The answer, after what its server asked of a legacy client.
    async fn ask_in_rounds(&self) -> Option<Result<CallAnswer, CallFault>> {
        let (mut outgoing, mut spent, mut waited) = (self.outgoing.clone(), Duration::ZERO, Duration::ZERO);
        for round in 0..=MAX_ROUNDS {
            let (reply, was_made) = match self.ask(&outgoing).await {
                // Nothing came of it, and it changes nothing: it is asked once more.
                Some(Err(CallFault::Died { .. })) if self.is_read_only => (self.ask(&outgoing).await, true),
                reply => (reply, round > 0),
            };
            let mut reply = match reply {
                Some(Ok(reply)) => reply,
                Some(Err(fault)) if was_made => return Some(Err(fault.amid_the_call())),
                other => return other,
            };
            spent += reply.duration;
            waited += reply.queued;
            (reply.duration, reply.queued) = (spent, waited);
            // Whoever holds the call as a task does not ask again either.
            let asks_us = self.era == Era::Legacy || self.call.terms.get().is_some();
            let asked = reply.outcome.as_ref().ok().filter(|result| asks_us && result.asks());
            let Some(asked) = asked.and_then(|result| InputRequired::read(result.json())) else {
                return Some(Ok(reply));
            };
            let Some(answers) = self.answers_to(&asked).await else {
                if self.call.is_cancelled() {
                    return None;
                }
                reply.outcome = Ok(CallResult::read(rounds::unanswered(&self.call.tool.server.name, &asked)));
                return Some(Ok(reply));
            };
            let again = outgoing.params.as_deref().and_then(|params| asked.answered(params, &answers).ok());
            outgoing.params = again.or(outgoing.params);
        }
        let server = &self.call.tool.server.name;
        let text = format!("{server} asked more than {MAX_ROUNDS} times; the call was given up");
        let outcome = Ok(CallResult::read(rounds::failed(&text)));
        Some(Ok(CallAnswer { outcome, duration: spent, queued: waited }))
    }

    /// What the client answers to all of it; nothing if it does not.
    async fn answers_to(&self, asked: &InputRequired) -> Option<Vec<Box<RawValue>>> {
        let ask = |InputRequest { method, params, .. }: &InputRequest| {
            let (answer, answered) = oneshot::channel();
            self.hear(ServerEvent::Question { method: method.clone(), params: params.clone(), answer });
            answered
        };
        let asked: Vec<_> = asked.requests.iter().map(ask).collect();
        let mut answers = Vec::new();
        for answered in asked {
            let answered = tokio::select! {
                answered = answered => answered.ok(),
                () = self.call.cancelling() => None,
            };
            answers.push(answered?.ok()?);
        }
        Some(answers)
    }

    /// The answer, or nothing once nobody wants it any more.
    pub(super) async fn ask_once(
        &self,
        outgoing: &Outgoing,
        events: &mut CallEvents,
    ) -> Option<Result<CallReply, CallFault>> {
        let CallEvents { sender, receiver } = events;
        let server = self.call.tool.server.name.clone();
        let asked = self.door.upstreams.request(&server, outgoing.clone(), sender.clone());
        tokio::pin!(asked);
        let reply = loop {
            tokio::select! {
                biased;
                Some(event) = receiver.recv() => self.hear(event),
                () = self.call.cancelling() => break None,
                reply = &mut asked => break Some(reply),
            }
        };
        while let Ok(event) = receiver.try_recv() {
            self.hear(event);
        }
        reply
    }

    /// Hands on what the server says; what it asks a client that holds the call as a task waits for that.
    pub(super) fn hear(&self, event: ServerEvent) {
        match event {
            ServerEvent::Question { method, params, answer } if self.waits_by_task(&method, params.as_deref()) => {
                let key = self.call.questions.ask(method, params, answer);
                self.call.change();
                let call = Arc::clone(&self.call);
                tokio::spawn(async move {
                    sleep(PARKED_FOR).await;
                    call.questions.refuse(&key);
                    call.change();
                });
            }
            event => self.call.hear(event),
        }
    }

    fn waits_by_task(&self, method: &str, params: Option<&RawValue>) -> bool {
        let (relay, tenant) = (&self.door.relay, &self.call.owner.tenant);
        let asks = self.call.terms.get().is_some_and(|terms| terms.caller.can_answer(method, params));
        asks && relay.can_park(tenant)
    }
}

/// The result, if it is one.
fn whole(call: &OngoingCall, result: CallResult) -> Result<CallResult, CallFailure> {
    match result.fault() {
        None => Ok(result),
        Some(why) => {
            let server = call.tool.server.name.clone();
            Err(CallFailure::Fault(CallFault::Unreadable { server, reason: why.to_owned() }))
        }
    }
}

fn outcome_of(outcome: &Result<CallResult, CallFailure>) -> Outcome {
    match outcome {
        Ok(result) if result.says_error() => Outcome::Error,
        Ok(_) => Outcome::Success,
        Err(CallFailure::Fault(CallFault::Timeout { .. })) => Outcome::Timeout,
        Err(CallFailure::Cancelled) => Outcome::Cancelled,
        Err(CallFailure::Error(_) | CallFailure::Fault(_)) => Outcome::Error,
    }
}

/// Records the call. Its client does not wait for the disk; what cannot be stored is counted.
async fn record(door: &Mcp, facts: CallFacts, duration: Duration, outcome: Outcome) {
    let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as i64);
    let execution = Execution {
        tenant: facts.grant.tenant.to_string(),
        tool: facts.tool.to_string(),
        mode: facts.mode,
        duration_ms: Some((duration.as_millis() as u64).min(MAX_DURATION_MS)),
        outcome,
        measures: Measures { content_length: Some(facts.size), ..Measures::default() },
        session: facts.session,
        at_ms,
        idempotency_key: None,
    };
    if let Err(error) = door.engine.record(vec![execution]).await {
        door.metrics.relay.unrecorded.inc();
        tracing::warn!(%error, tool = &*facts.tool, "a call of a server's tool is not recorded");
    }
}
