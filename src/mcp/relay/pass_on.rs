//! Requests to servers beside calls of tools: prompts, resources and completions. What a server wants to know
//! meanwhile is asked of its client in the words of the client's era, as with calls: on the stream of the request, or
//! by an answer that the client makes the request again for.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::Mcp;
use super::super::error::RpcError;
use super::super::request::{McpRequest, MessageSink, RpcAnswer};
use super::super::sealed::RoundState;
use super::call_result::CallResult;
use super::ongoing::CallOwner;
use super::outgoing::{passed_on, process_of};
use super::parked::{Parked, QUESTION, ServerQuestion};
use super::rounds::{self, InputRequest, InputRequired};
use super::{good_for, relayed, session_of, translate, wrong_state};
use crate::jsonrpc::object::Change;
use crate::jsonrpc::{Era, Members, NoObject};
use crate::upstream::{CallFault, CallReply, Caller, Outgoing, ServerEvent, ServerState};

/// Methods beside calls that modern clients may be asked something for.
const ASKING: [&str; 2] = ["prompts/get", "resources/read"];

/// A request that its server works on. Dropped, it is given up.
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// The one task that asks.
    asking: JoinSet<Result<CallReply, CallFault>>,
    heard: mpsc::Receiver<ServerEvent>,
}

/// What comes of a request next.
enum Heard {
    Reply(Result<CallReply, RpcError>),
    /// Its modern client is to answer first.
    Question {
        method: String,
        params: Option<Box<RawValue>>,
        answer: ServerQuestion,
    },
}

impl OpenRequest {
    fn begin(door: &Mcp, server: &str, outgoing: Outgoing) -> Self {
        let (events, heard) = mpsc::channel(8);
        let (upstreams, server) = (door.upstreams.clone(), server.to_owned());
        let mut asking = JoinSet::new();
        asking.spawn(async move { upstreams.request(&server, outgoing, events).await });
        Self { asking, heard }
    }
}

impl Mcp {
    /// Hands a request on to its server.
    pub(in crate::mcp) async fn pass_on(
        self: &Arc<Self>,
        request: &McpRequest,
        events: &MessageSink,
        server: &ServerState,
    ) -> RpcAnswer {
        let caller = &request.caller;
        let (mut open, mut outgoing) = match self.state_about(request, server)? {
            Some(RoundState::Parked(name)) => match self.unpark_request(request, &name)? {
                Ok(open) => (open, None),
                // It is asked again, in the same words.
                Err(parked) => return self.park_request(request, server, parked),
            },
            state => {
                let outgoing = outgoing_of(request, server, state)?;
                (OpenRequest::begin(self, &server.name, outgoing.clone()), Some(outgoing))
            }
        };
        let mut rounds_left = rounds::MAX_ROUNDS;
        let outcome = loop {
            let reply = match self.hear(request, events, &mut open).await {
                Heard::Reply(reply) => reply?,
                Heard::Question { method, params, answer } => {
                    let (owner, since) = (CallOwner::of(&request.caller), Instant::now());
                    let parked = Parked { owner, waiting: open, method, params, answer, since };
                    return self.park_request(request, server, parked);
                }
            };
            let asked = reply.outcome.as_ref().ok().and_then(|result| InputRequired::read(result));
            let asked = asked.filter(|_| caller.era() == Era::Legacy && rounds_left > 0);
            let (Some(asked), Some(outgoing)) = (asked, outgoing.as_mut()) else { break reply.outcome };
            rounds_left -= 1;
            let answers = self.client_answers(request, events, server, &asked).await?;
            let again = outgoing.params.as_deref().map(|params| asked.answered(params, &answers)).transpose();
            outgoing.params = again.map_err(|error| RpcError::internal(error.to_string()))?;
            open = OpenRequest::begin(self, &server.name, outgoing.clone());
        };
        self.passed_back(request, server, outcome)
    }

    /// What a legacy client answers to all that a server wants to know.
    async fn client_answers(
        &self,
        request: &McpRequest,
        events: &MessageSink,
        server: &ServerState,
        asked: &InputRequired,
    ) -> Result<Vec<Box<RawValue>>, RpcError> {
        let mut answers = Vec::new();
        for InputRequest { method, params, .. } in &asked.requests {
            let answered = self.ask_client(&request.caller, events, method, params.as_deref()).await;
            let refused = || RpcError::internal(format!("{} asks for what this client cannot tell", server.name));
            answers.push(answered.and_then(Result::ok).ok_or_else(refused)?);
        }
        Ok(answers)
    }

    /// What the client gets of its server's answer.
    fn passed_back(
        &self,
        request: &McpRequest,
        server: &ServerState,
        outcome: Result<Box<RawValue>, Box<RawValue>>,
    ) -> RpcAnswer {
        let caller = &request.caller;
        match outcome.map(CallResult::read) {
            Ok(result) if result.asks() => {
                self.sealed(caller, result.json(), &server.name, (&request.method, &subject_of(request)))
            }
            Ok(result) => {
                let answer = relayed(caller, result.json(), "")?;
                if caller.era() == Era::Legacy || request.method != "resources/read" {
                    return Ok(answer);
                }
                let hints = [("ttlMs", "0"), ("cacheScope", "\"private\"")];
                let hinted = Members::read(&answer).and_then(|members| match members.get("ttlMs") {
                    Some(_) => Ok(answer.clone()),
                    None => members.rewrite(|_, _| Change::Keep, &hints),
                });
                hinted.map_err(|error| RpcError::internal(error.to_string()))
            }
            Err(error) => Err(RpcError::relayed(translate::error(&error, caller.era()))),
        }
    }

    /// The state that a client brings back; refused if it was not given to it for this.
    fn state_about(&self, request: &McpRequest, server: &ServerState) -> Result<Option<RoundState>, RpcError> {
        let Some(sealed) = request.params.as_deref().and_then(rounds::state_of) else { return Ok(None) };
        let subject = subject_of(request);
        let good_for = good_for(&request.caller, &server.name, &request.method, &subject);
        self.key.unseal(&sealed, good_for, SystemTime::now()).map(Some).ok_or_else(wrong_state)
    }

    /// Waits for the answer. A legacy client is asked meanwhile what its server wants to know.
    async fn hear(&self, request: &McpRequest, events: &MessageSink, open: &mut OpenRequest) -> Heard {
        let caller = &request.caller;
        loop {
            let event = tokio::select! {
                Some(event) = open.heard.recv() => event,
                reply = reply_of(&mut open.asking) => return Heard::Reply(reply),
            };
            // The rest of what it says is of calls of tools alone.
            let ServerEvent::Question { method, params, answer } = event else { continue };
            if caller.era() == Era::Modern {
                // Whoever cannot be asked refuses, as the answer is dropped.
                let can = ASKING.contains(&request.method.as_str()) && caller.can_answer(&method, params.as_deref());
                if can && self.relay.can_park(&caller.grant.tenant) {
                    return Heard::Question { method, params, answer };
                }
                continue;
            }
            tokio::select! {
                reply = reply_of(&mut open.asking) => return Heard::Reply(reply),
                answered = self.ask_client(caller, events, &method, params.as_deref()) => {
                    if let Some(answered) = answered {
                        let _ = answer.send(answered);
                    }
                }
            }
        }
    }

    /// The request that waits for this client's answer, which it is given; it still waits if none is there.
    fn unpark_request(
        &self,
        request: &McpRequest,
        name: &str,
    ) -> Result<Result<OpenRequest, Parked<OpenRequest>>, RpcError> {
        let parked = self.relay.parked_requests.take(name, &CallOwner::of(&request.caller));
        let parked = parked.ok_or_else(|| {
            RpcError::invalid_params("the request that asked this was given up; make it anew, without `requestState`")
        })?;
        let Some(answer) = rounds::response(request.params.as_deref(), QUESTION) else { return Ok(Err(parked)) };
        // A server that has gone meanwhile is told so by the end of the request.
        let _ = parked.answer.send(Ok(answer));
        Ok(Ok(parked.waiting))
    }

    /// Keeps a request until its client is back with the answer, and asks it.
    fn park_request(
        self: &Arc<Self>,
        request: &McpRequest,
        server: &ServerState,
        parked: Parked<OpenRequest>,
    ) -> RpcAnswer {
        let (method, params) = (parked.method.clone(), parked.params.clone());
        let name = self.relay.parked_requests.park(parked);
        let name = name.ok_or_else(|| RpcError::internal("there is no randomness"))?;
        let subject = subject_of(request);
        let good_for = good_for(&request.caller, &server.name, &request.method, &subject);
        let state = self.key.seal(&RoundState::Parked(name.clone()), good_for, SystemTime::now());
        let door = Arc::clone(self);
        tokio::spawn(async move { door.relay.parked_requests.expire(&name).await });
        relayed(&request.caller, &rounds::asking(QUESTION, &method, params.as_deref(), &state), "")
    }
}

/// What the task that asks comes back with.
async fn reply_of(asking: &mut JoinSet<Result<CallReply, CallFault>>) -> Result<CallReply, RpcError> {
    match asking.join_next().await {
        Some(Ok(reply)) => reply.map_err(|fault| RpcError::internal(fault.to_string())),
        Some(Err(error)) => Err(RpcError::internal(error.to_string())),
        None => Err(RpcError::internal("the request was answered before")),
    }
}

/// What a request asks of its server.
fn outgoing_of(request: &McpRequest, server: &ServerState, state: Option<RoundState>) -> Result<Outgoing, RpcError> {
    let caller = &request.caller;
    let session = session_of(request).unwrap_or_else(|| process_of(caller));
    Ok(Outgoing {
        method: request.method.clone(),
        params: params_of(request, server, state)?,
        caller: Caller {
            session: Some(session),
            token: Some(caller.grant.name.to_string()),
            capabilities: Some(caller.capabilities.as_ref().to_owned()),
            ..Caller::default()
        },
        limit: None,
        sent: None,
    })
}

/// What the server gets: without what is of one hop, with the state that it gave itself.
fn params_of(
    request: &McpRequest,
    server: &ServerState,
    state: Option<RoundState>,
) -> Result<Option<Box<RawValue>>, RpcError> {
    let Some(raw) = request.params.as_deref() else { return Ok(None) };
    let wrong = |error: NoObject| RpcError::invalid_params(format!("params: {error}"));
    let passed = passed_on(raw).map_err(wrong)?;
    if !rounds::answers(Some(raw)) {
        return Ok(Some(passed));
    }
    let state = state.map(|state| match state {
        RoundState::Server(text) | RoundState::Parked(text) => text,
    });
    rounds::passed_on(&passed, Some(raw), state.as_deref(), server.era).map(Some).map_err(wrong)
}

/// What a request is about.
fn subject_of(request: &McpRequest) -> String {
    request.text("name").or_else(|| request.text("uri")).unwrap_or_default()
}
