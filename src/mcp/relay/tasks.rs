//! Calls as tasks (the extension `io.modelcontextprotocol/tasks`): a modern client that declares it is given a task
//! where others are given a handle, and looks at it, answers its questions and gives it up by methods of their own. A
//! task is a call that is kept, under one name for both ways; so `get_result` finds it too.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::super::Mcp;
use super::super::capabilities::TASKS;
use super::super::error::RpcError;
use super::super::request::{McpRequest, RpcAnswer, complete};
use super::ongoing::{CallEnd, CallFailure, CallOwner, KEPT_FOR, OngoingCall, TaskTerms};
use super::outgoing::passed_on;
use super::progress::{shown, standing};
use super::server_task::ServerTask;
use super::{Came, Waiter, client_of, relayed, with_metadata};
use crate::jsonrpc::{Members, object};
use crate::upstream::{Caller, Outgoing};

/// Bounds of the time after which a client is told to look again.
const LOOKS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(30)];

/// A server is waited for so long that is asked how its task stands; then what it said last is told.
const FRESH: Duration = Duration::from_secs(5);

/// How long a server may take to take an answer.
const UPDATE: Duration = Duration::from_secs(30);

impl Mcp {
    /// Answers what is asked of a task.
    pub(in crate::mcp) async fn ask_task(self: &Arc<Self>, request: &McpRequest) -> RpcAnswer {
        let caller = &request.caller;
        if !caller.takes_tasks() {
            return Err(needs_tasks());
        }
        let id = request.text("taskId").ok_or_else(|| RpcError::invalid_params("`taskId` says which task"))?;
        let call = self.task_call(request, &id).ok_or_else(|| {
            RpcError::invalid_params(
                "there is no task with this id: tasks are kept for an hour, and not over a restart of the daemon",
            )
        })?;
        match request.method.as_str() {
            "tasks/get" => self.task_state(request, &call).await,
            "tasks/update" => {
                self.update_task(request, &call).await?;
                complete(caller, Map::new())
            }
            _ => {
                if call.end().is_none() {
                    call.cancel();
                    self.metrics.relay.detached.with_label_values(&["cancelled"]).inc();
                }
                complete(caller, Map::new())
            }
        }
    }

    /// The call that is this task, if it is the client's own.
    fn task_call(&self, request: &McpRequest, id: &str) -> Option<Arc<OngoingCall>> {
        self.relay.calls.get(id, &CallOwner::of(&request.caller))
    }

    /// Is there such a task of the client's?
    pub(in crate::mcp) fn has_task(&self, request: &McpRequest, id: &str) -> bool {
        self.task_call(request, id).is_some()
    }

    /// Gives a client the call as a task: its server's, or one of ours.
    pub(super) fn give_task(&self, waiter: &Waiter<'_>, call: &Arc<OngoingCall>) -> RpcAnswer {
        let caller = &waiter.request.caller;
        // Whoever was given it first is asked what its server wants to know.
        call.terms.get_or_init(|| TaskTerms { caller: caller.clone(), takes_parts: waiter.takes_parts });
        let id = self.relay.calls.keep(call);
        let told = json!({"call": {"server": call.tool.server.name, "handle": id}}).to_string();
        if let Some(ServerTask { state, .. }) = call.at_server().filter(|_| call.end().is_none()) {
            return relayed(caller, &created(&named(&state, &id)?)?, &told);
        }
        let task = complete(caller, with_metadata(own(call, &id), &told))?;
        created(&task)
    }

    /// The task as it stands, with what came of it once it has ended.
    async fn task_state(&self, request: &McpRequest, call: &Arc<OngoingCall>) -> RpcAnswer {
        let caller = &request.caller;
        let id = call.handle().unwrap_or_default();
        if call.end().is_none() && call.at_server().is_some() {
            // What it said last is better than nothing.
            let _ = timeout(FRESH, call.look()).await;
        }
        if let Some(end) = call.end() {
            return self.ended_task(request, call, &end, &id);
        }
        if let Some(ServerTask { state, .. }) = call.at_server() {
            let state = named(&state, &id)?;
            return relayed(caller, &set(&state, "resultType", "\"complete\"")?, "");
        }
        let mut task = own(call, &id);
        let questions = call.questions.to_json();
        if !questions.is_empty() {
            task.insert("status".to_owned(), "input_required".into());
            task.insert("statusMessage".to_owned(), format!("{} asks something", call.tool.server.name).into());
            task.insert("inputRequests".to_owned(), questions.into());
        }
        complete(caller, task)
    }

    fn ended_task(&self, request: &McpRequest, call: &Arc<OngoingCall>, end: &CallEnd, id: &str) -> RpcAnswer {
        let caller = &request.caller;
        if matches!(end.outcome, Err(CallFailure::Cancelled)) {
            let mut task = own(call, id);
            task.insert("status".to_owned(), "cancelled".into());
            return complete(caller, task);
        }
        if !call.was_delivered() {
            self.metrics.relay.detached.with_label_values(&["delivered"]).inc();
            self.metrics.relay.saved.inc();
        }
        let takes_parts = call.terms.get().is_none_or(|terms| terms.takes_parts);
        let (events, _) = mpsc::channel(1);
        let waiter = Waiter {
            request,
            events: &events,
            since: Instant::now(),
            patience: self.patience(request),
            client: client_of(request),
            takes_handle: false,
            takes_tasks: false,
            takes_parts,
            most: None,
            came: Came::Back,
            search: None,
        };
        let mut task = own(call, id);
        let outcome = match self.deliver(&waiter, call, end) {
            Ok(result) => {
                task.insert("status".to_owned(), "completed".into());
                ("result", result)
            }
            Err(error) => {
                task.insert("status".to_owned(), "failed".into());
                task.insert("statusMessage".to_owned(), error.object.message.as_str().into());
                let error = serde_json::value::to_raw_value(&error.object);
                ("error", error.map_err(|error| RpcError::internal(error.to_string()))?)
            }
        };
        set(&complete(caller, task)?, outcome.0, outcome.1.get())
    }

    /// Takes a client's answers.
    async fn update_task(&self, request: &McpRequest, call: &Arc<OngoingCall>) -> Result<(), RpcError> {
        let responses = request.value("inputResponses");
        let Some(Ok(responses)) = responses.map(Members::read) else {
            return Err(RpcError::invalid_params(
                "`inputResponses` is an object of answers by the keys of their questions",
            ));
        };
        if let Some(waited) = call.questions.answered(&responses) {
            call.pause(waited);
            call.change();
        }
        match call.at_server().filter(|_| call.end().is_none()) {
            Some(task) => self.update_at_server(request, call, &task).await,
            None => Ok(()),
        }
    }

    /// Hands a client's answers on to the server whose task it is.
    async fn update_at_server(
        &self,
        request: &McpRequest,
        call: &Arc<OngoingCall>,
        task: &ServerTask,
    ) -> Result<(), RpcError> {
        let wrong = |error| RpcError::invalid_params(format!("params: {error}"));
        let params = request.params.as_deref().map(passed_on).transpose().map_err(wrong)?;
        let params = params.map(|params| set(&params, "taskId", &Value::from(task.id.as_str()).to_string()));
        let caller = &request.caller;
        let outgoing = Outgoing {
            method: "tasks/update".to_owned(),
            params: params.transpose()?,
            caller: Caller {
                // That of the call, whose process alone knows the task.
                session: Some(call.session.clone()),
                token: Some(caller.grant.name.to_string()),
                capabilities: Some(caller.capabilities.as_ref().to_owned()),
                ..Caller::default()
            },
            limit: Some(UPDATE),
            sent: None,
        };
        let (events, _) = mpsc::channel(1);
        let reply = self.upstreams.request(&call.tool.server.name, outgoing, events).await;
        let reply = reply.map_err(|fault| RpcError::internal(fault.to_string()))?;
        reply.outcome.map_err(|error| RpcError::relayed(super::translate::error(&error, caller.era())))?;
        // Whoever looks at it now sees what became of the answer.
        let _ = timeout(FRESH, call.look()).await;
        Ok(())
    }

    /// Tells of each state of a task until it has ended, or nobody listens any more.
    pub(in crate::mcp) async fn tell_of_task(
        self: Arc<Self>,
        (request, id): (McpRequest, String),
        pieces: mpsc::Sender<Bytes>,
        event: impl Fn(&RawValue) -> Bytes + Send + Sync,
        mut stopped: watch::Receiver<bool>,
    ) {
        let Some(call) = self.task_call(&request, &id) else { return };
        let mut changes = call.changes();
        loop {
            let has_ended = call.end().is_some();
            let Ok(state) = self.task_state(&request, &call).await else { return };
            if pieces.send(event(&state)).await.is_err() || has_ended {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = pieces.closed() => return,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }
}

/// Only who can hold tasks may ask for them.
pub(in crate::mcp) fn needs_tasks() -> RpcError {
    let message = format!("this needs the extension {TASKS} in the client's capabilities");
    RpcError::missing_capability(&message, &json!({"extensions": {TASKS: {}}}))
}

/// What is said of each task of ours, as one that is worked on.
fn own(call: &OngoingCall, id: &str) -> Map<String, Value> {
    let (began, on) = call.began;
    let changed = *call.changes().borrow();
    let at = |when: Instant| stamp(on + when.saturating_duration_since(began));
    // From its end on it is kept for so long; until then as long from any moment.
    let kept_from = call.end().map_or_else(Instant::now, |end| end.at);
    let ttl = kept_from.saturating_duration_since(began) + KEPT_FOR;
    let mut task = Map::new();
    task.insert("taskId".to_owned(), id.into());
    task.insert("status".to_owned(), "working".into());
    task.insert("createdAt".to_owned(), at(began).into());
    task.insert("lastUpdatedAt".to_owned(), at(changed).into());
    task.insert("ttlMs".to_owned(), (ttl.as_millis() as u64).into());
    if call.end().is_none() {
        let elapsed = call.running_for().as_millis() as u64;
        let [half, _] = call.left_ms();
        let [least, most] = LOOKS.map(|bound| bound.as_millis() as u64);
        task.insert("pollIntervalMs".to_owned(), half.clamp(least, most).into());
        let said = format!("running for {}; {}", shown(elapsed), standing(call));
        task.insert("statusMessage".to_owned(), said.into());
    }
    task
}

fn stamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// A server's task by the name that it has here.
fn named(state: &RawValue, id: &str) -> RpcAnswer {
    set(state, "taskId", &Value::from(id).to_string())
}

/// A task as the answer of the call that it is made of, which says no more of it than that it is there.
fn created(task: &RawValue) -> RpcAnswer {
    let rest = object::remove(task, &["result", "error", "inputRequests", "requestState"]);
    set(&rest.map_err(|error| RpcError::internal(error.to_string()))?, "resultType", "\"task\"")
}

fn set(object: &RawValue, name: &str, value: &str) -> RpcAnswer {
    object::set(object, name, value).map_err(|error| RpcError::internal(error.to_string()))
}
