//! Tasks of servers: a call that its server answers with a task is followed to its end, so that it is one call here,
//! recorded once with its real duration, whoever looks at it meanwhile.
//!
//! Servers of 2025-11-25 are asked for a task where a tool demands one; they say how it stands, and give the result
//! when they are asked for it. Those of 2026-07-28 decide by themselves, for clients that can hold a task, and give
//! the result with the last state.

use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::offering::ServedTool;
use super::call_result::{CallAnswer, CallResult};
use super::task::{CallEvents, CallTask};
use crate::jsonrpc::{Era, ErrorObject, Members, NoObject, code, object};
use crate::strict::values::moment_or_utc;
use crate::upstream::{CallFault, CallReply, Outgoing};

/// Between two looks at a task whose server does not say how often, and the limits of what it may say.
const LOOKS: Duration = Duration::from_secs(1);
const LOOK_BOUNDS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(60)];

/// How long a server may take to say how a task stands, or that it is given up.
const SOON: Duration = Duration::from_secs(30);

/// The member of a call that asks for a task, up to 2025-11-25.
const TASK: &str = "task";

/// A server's task, as it said last.
#[derive(Debug, Clone)]
pub(super) struct ServerTask {
    /// What its server calls it.
    pub(super) id: String,
    pub(super) era: Era,
    pub(super) state: Box<RawValue>,
    /// When its server was asked.
    pub(super) asked: Instant,
}

/// How a server's task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// How the time between two looks at a task ends.
enum Pause {
    Over,
    Unwanted,
    TooLong,
}

/// What following a task comes to.
enum Followed {
    Ended(Result<Box<RawValue>, Box<RawValue>>, Option<Duration>),
    Fault(CallFault),
    /// Its server gave it up.
    GivenUp,
    /// Nobody here wants it any more.
    Unwanted,
}

impl ServerTask {
    /// The task that a server answers a call with, if it does.
    pub(super) fn of(result: &RawValue) -> Option<Self> {
        let members = Members::read(result).ok()?;
        let era = era_of(&members)?;
        let state = if era == Era::Modern { result } else { members.get(TASK)? };
        let id = Members::read(state).ok()?.text("taskId")?.into_owned();
        Some(Self { id, era, state: state.to_owned(), asked: Instant::now() })
    }

    fn standing(&self) -> Option<Standing> {
        let members = Members::read(&self.state).ok()?;
        Some(match &*members.text("status")? {
            "working" | "submitted" => Standing::Working,
            "input_required" => Standing::InputRequired,
            "completed" => Standing::Completed,
            "failed" => Standing::Failed,
            "cancelled" => Standing::Cancelled,
            _ => return None,
        })
    }

    /// When to look again.
    fn pause(&self) -> Duration {
        let member = if self.era == Era::Modern { "pollIntervalMs" } else { "pollInterval" };
        let said = Members::read(&self.state).ok().and_then(|members| members.get(member)?.get().parse::<f64>().ok());
        let said = said.filter(|ms| ms.is_finite()).map(|ms| Duration::from_secs_f64(ms.clamp(0.0, 1e6) / 1000.0));
        said.unwrap_or(LOOKS).clamp(LOOK_BOUNDS[0], LOOK_BOUNDS[1])
    }

    /// How long it took by its server's own clock.
    fn took(&self) -> Option<Duration> {
        let members = Members::read(&self.state).ok()?;
        let at = |name: &str| moment_or_utc(&members.text(name)?);
        (at("lastUpdatedAt")? - at("createdAt")?).try_into().ok()
    }

    /// What its server is asked about it, with these members beside its name.
    pub(super) fn params(&self, more: &[(&str, &str)]) -> Result<Box<RawValue>, NoObject> {
        let id = to_raw_value(&json!({"taskId": self.id})).map_err(|_| NoObject)?;
        more.iter().try_fold(id, |params, (name, value)| object::set(&params, name, value))
    }
}

/// May these be members of a task instead of a result's?
pub(super) fn may_be(members: &Members<'_>) -> bool {
    era_of(members).is_some()
}

/// Of a task with these members.
fn era_of(members: &Members<'_>) -> Option<Era> {
    if members.text("resultType").is_some_and(|kind| kind == TASK) {
        return Some(Era::Modern);
    }
    (members.get("content").is_none() && members.get(TASK).is_some()).then_some(Era::Legacy)
}

/// A call as its server is asked it: by a task where the tool demands one, and only there.
pub(super) fn asked_as(sent: &RawValue, tool: &ServedTool) -> Result<Box<RawValue>, NoObject> {
    match tool.server.era {
        Some(Era::Legacy) if tool.needs_task => {
            let ttl = tool.server.settings.max_timeout.as_millis();
            object::set(sent, TASK, &format!("{{\"ttl\":{ttl}}}"))
        }
        // Nobody could ask for it afterwards: we do not declare tasks of that era.
        Some(Era::Legacy) => object::remove(sent, &[TASK]),
        _ => Ok(sent.to_owned()),
    }
}

/// Must calls of a tool be tasks? Its definition, and what its server declares.
pub(in crate::mcp) fn needs_task(definition: &Value, capabilities: &RawValue) -> bool {
    let can: Value = serde_json::from_str(capabilities.get()).unwrap_or_default();
    definition["execution"]["taskSupport"] == "required" && can["tasks"]["requests"]["tools"]["call"].is_object()
}

impl CallTask {
    /// The server's answer; if that is a task, what comes of it. Nothing once nobody wants it any more.
    pub(super) async fn ask(&self, outgoing: &Outgoing) -> Option<Result<CallAnswer, CallFault>> {
        let (begun, mut events) = (Instant::now(), CallEvents::default());
        let answer = match self.ask_once(outgoing, &mut events).await? {
            Ok(reply) => CallAnswer::from(reply),
            Err(fault) => return Some(Err(fault)),
        };
        let task = answer.outcome.as_ref().ok().filter(|result| result.is_task());
        let Some(mut task) = task.and_then(|result| ServerTask::of(result.json())) else { return Some(Ok(answer)) };
        let followed = self.follow(&mut task, outgoing, &mut events).await;
        let elapsed = begun.elapsed().saturating_sub(answer.queued);
        match followed {
            Followed::Ended(outcome, took) => {
                // Its server knows better than whoever looks from time to time.
                let duration = took.filter(|took| *took <= elapsed && !took.is_zero()).unwrap_or(elapsed);
                let outcome = outcome.map(CallResult::read);
                Some(Ok(CallAnswer { outcome, duration, queued: answer.queued }))
            }
            Followed::Fault(fault) => {
                if matches!(fault, CallFault::Timeout { .. }) {
                    self.give_up(&task, outgoing).await;
                }
                Some(Err(fault))
            }
            Followed::GivenUp => None,
            Followed::Unwanted => {
                self.give_up(&task, outgoing).await;
                None
            }
        }
    }

    async fn follow(&self, task: &mut ServerTask, outgoing: &Outgoing, events: &mut CallEvents) -> Followed {
        let most = self.call.tool.server.settings.max_timeout;
        let until = Instant::now() + most;
        self.show(task);
        loop {
            match task.standing() {
                Some(Standing::Completed | Standing::Failed) => return self.ended(task, outgoing, events, until).await,
                Some(Standing::Cancelled) => return Followed::GivenUp,
                // What it asks comes with the question for its result.
                Some(Standing::InputRequired) if task.era == Era::Legacy => {
                    return self.ended(task, outgoing, events, until).await;
                }
                Some(Standing::Working | Standing::InputRequired) => {}
                None => return Followed::Ended(Err(nonsense()), None),
            }
            let since = Instant::now();
            match self.pause(task, events, until).await {
                Pause::Over => {}
                Pause::Unwanted => return Followed::Unwanted,
                Pause::TooLong => {
                    let server = self.call.tool.server.name.clone();
                    return Followed::Fault(CallFault::Timeout { server, after: most });
                }
            }
            let asked = Instant::now();
            if task.standing() == Some(Standing::InputRequired) {
                // As with other calls, waiting for the client is no part of how long it took.
                self.call.pause(asked - since);
            }
            let state = match self.ask_of(task, "tasks/get", (outgoing, SOON), events).await {
                Some(Ok(CallReply { outcome: Ok(state), .. })) => state,
                Some(Ok(CallReply { outcome: Err(error), .. })) => return Followed::Ended(Err(error), None),
                Some(Err(fault)) => return Followed::Fault(fault.amid_the_call()),
                None => return Followed::Unwanted,
            };
            (task.state, task.asked) = (state, asked);
            self.show(task);
        }
    }

    /// Waits until it is time to look again, and hears what the server says meanwhile.
    async fn pause(&self, task: &ServerTask, events: &mut CallEvents, until: Instant) -> Pause {
        let due = sleep(task.pause());
        tokio::pin!(due);
        loop {
            tokio::select! {
                Some(event) = events.receiver.recv() => self.hear(event),
                () = &mut due => return Pause::Over,
                () = self.call.looked_for() => return Pause::Over,
                () = self.call.cancelling() => return Pause::Unwanted,
                () = sleep_until(until) => return Pause::TooLong,
            }
        }
    }

    /// A task of a modern server is seen by its client as the server tells of it; one of the older eras is a call here.
    fn show(&self, task: &ServerTask) {
        if task.era == Era::Modern {
            self.call.follow(task.clone());
        }
    }

    /// The result of a task that has ended, or is about to.
    async fn ended(&self, task: &ServerTask, outgoing: &Outgoing, events: &mut CallEvents, until: Instant) -> Followed {
        if task.era == Era::Legacy {
            let left = until.saturating_duration_since(Instant::now()).max(SOON);
            let took = task.standing().filter(|standing| *standing != Standing::InputRequired).and(task.took());
            return match self.ask_of(task, "tasks/result", (outgoing, left), events).await {
                Some(Ok(reply)) => Followed::Ended(reply.outcome, took),
                Some(Err(fault)) => Followed::Fault(fault.amid_the_call()),
                None => Followed::Unwanted,
            };
        }
        let member = |name: &str| Members::read(&task.state).ok()?.get(name).map(ToOwned::to_owned);
        let outcome = match task.standing() {
            Some(Standing::Completed) => member("result").ok_or_else(nonsense),
            _ => Err(member("error").unwrap_or_else(nonsense)),
        };
        Followed::Ended(outcome, task.took())
    }

    /// Asks the server something about its task.
    async fn ask_of(
        &self,
        task: &ServerTask,
        method: &str,
        (outgoing, limit): (&Outgoing, Duration),
        events: &mut CallEvents,
    ) -> Option<Result<CallReply, CallFault>> {
        self.ask_once(&about(task, method, outgoing, limit), events).await
    }

    async fn give_up(&self, task: &ServerTask, outgoing: &Outgoing) {
        let (events, _) = mpsc::channel(1);
        let asked = about(task, "tasks/cancel", outgoing, SOON);
        let server = &self.call.tool.server.name;
        if let Err(fault) = self.door.upstreams.request(server, asked, events).await {
            tracing::debug!(%fault, "a task could not be given up at its server");
        }
    }
}

/// A question about a task.
fn about(task: &ServerTask, method: &str, outgoing: &Outgoing, limit: Duration) -> Outgoing {
    let mut asked = Outgoing {
        method: method.to_owned(),
        params: task.params(&[]).ok(),
        limit: Some(limit),
        sent: None,
        ..outgoing.clone()
    };
    asked.caller.wants_progress = false;
    asked
}

/// What is answered for a server that says nothing of its task.
fn nonsense() -> Box<RawValue> {
    let error = ErrorObject::new(code::INTERNAL, "the server does not say how its task stands, or what came of it");
    to_raw_value(&error).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_task_is_known_by_its_words_in_both_eras() {
        let check = |json: &str, expected: Option<(&str, Era, u64)>| {
            let found = ServerTask::of(raw(json));
            let found = found.as_ref().map(|task| (task.id.as_str(), task.era, task.pause().as_millis() as u64));
            assert_eq!(found, expected, "{json}");
        };
        check(r#"{"resultType":"task","taskId":"a","pollIntervalMs":200}"#, Some(("a", Era::Modern, 200)));
        check(r#"{"task":{"taskId":"b","status":"working","pollInterval":5}}"#, Some(("b", Era::Legacy, 50)));
        check(r#"{"task":{"taskId":"b","pollInterval":1e99}}"#, Some(("b", Era::Legacy, 60_000)));
        check(r#"{"resultType":"task","taskId":"a"}"#, Some(("a", Era::Modern, 1000)));
        check(r#"{"resultType":"task"}"#, None);
        check(r#"{"content":[],"task":{"taskId":"b"}}"#, None);
        check(r#"{"content":[]}"#, None);
    }

    #[test]
    fn its_server_says_how_it_stands_and_how_long_it_took() {
        let task = |json: &str| ServerTask {
            id: "a".to_owned(),
            era: Era::Modern,
            state: raw(json).to_owned(),
            asked: Instant::now(),
        };
        let check = |json: &str, standing: Option<Standing>, ms: Option<u64>| {
            let task = task(json);
            assert_eq!(task.standing(), standing, "{json}");
            assert_eq!(task.took(), ms.map(Duration::from_millis), "{json}");
        };
        let stamps = r#""createdAt":"2026-11-01T10:00:00Z","lastUpdatedAt":"2026-11-01T10:00:01.5Z""#;
        check(&format!(r#"{{"status":"completed",{stamps}}}"#), Some(Standing::Completed), Some(1500));
        check(r#"{"status":"input_required","createdAt":"now"}"#, Some(Standing::InputRequired), None);
        check(r#"{"status":"dreaming"}"#, None, None);
        check("[]", None, None);
    }
}
