//! The route that listens to an agent's chat stream and records the tool calls in it.
//!
//! Each call is recorded as soon as its result arrives, so a stream that breaks off loses nothing of what it told before. The
//! recording runs beside the reading: waiting for the disk would stretch the durations that are measured here.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::answer;
use super::body::check_encoding;
use super::operation::{Operation, Parameter, query};
use super::problem::Problem;
use super::progress::Progress;
use super::query::Query;
use super::route::Later;
use super::service::{Context, Streaming};
use super::timing::keep;
use super::wire_qualify::IntentContextBody;
use super::wire_stream::{StreamAnswer, StreamFault, StreamedCall, UnfinishedCall};
use crate::access::Grant;
use crate::catalog::document::check_name;
use crate::session::turns::Used;
use crate::store::{Execution, MAX_DURATION_MS, Measures, Outcome};
use crate::stream::{Arrival, Calls, Ended, Parser, Part, Protocol, Read, Seen};
use crate::usage::MAX_TOKENS;

/// Faults, and events of usage, that an answer tells at most.
const MAX_TOLD: usize = 100;

/// Size of a value that an answer tells, in bytes of JSON: a hundred of them must not hold the memory of the daemon.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// Characters of a fault's message, which can quote the line.
const MAX_MESSAGE_CHARS: usize = 200;

/// Calls of one stream that an answer tells at most; further ones are recorded all the same.
const MAX_CALLS: usize = 10_000;

/// Executions that wait for the recorder.
const QUEUE: usize = 1024;

pub(super) fn operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query("protocol", "string", "data-v1 or ui-v1; may be left out with the protocol's header."),
        query("session_id", "string", "The session to which the calls belong."),
    ];
    Operation::new("readStream", "Listen to an agent's chat stream as it arrives: its tool calls are recorded.")
        .taking(&PARAMETERS)
        .with_stream(&["text/plain", "text/event-stream"])
        .answering_with::<StreamAnswer>(201, "The stream ended; calls of it are durable.")
        .answering_with::<StreamAnswer>(200, "The stream ended; it had no call whose duration is known.")
}

pub(super) fn read(context: Arc<Context>, grant: Grant, streaming: Streaming) -> Later {
    Box::pin(async move {
        let query = Query::parse(streaming.parts.uri.query(), &["protocol", "session_id"])?;
        let protocol = protocol(&query, &streaming.parts.headers)?;
        check_encoding(&streaming.parts.headers)?;
        let session = session(&query)?;
        let (sender, recorder) = record_beside(Arc::clone(&context));
        let progress = Arc::clone(&streaming.progress);
        let tenant = Arc::clone(&grant.tenant);
        let mut listener = Listener::new(protocol, grant, session.clone(), sender, progress);
        let heard = listen(&mut listener, streaming).await;
        let answer = listener.end(heard.is_err()).await;
        if let Some(session) = &session {
            answer.tell_engine(&context, &tenant, session);
        }
        // The recorder ends when nobody can send any more; what it holds is recorded first.
        let recorded = recorder.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        heard?;
        if answer.read == 0 && !answer.told.faults.is_empty() {
            let StreamFault { line, message } = &answer.told.faults[0];
            let detail = format!("no line of it is of a {} stream; line {line}: {message}", protocol.as_str());
            return Err(Problem::bad_request("malformed-stream", detail));
        }
        let mut reply = answer::json(&StreamAnswer { recorded, ..answer.told });
        if recorded > 0 {
            *reply.status_mut() = StatusCode::CREATED;
        }
        Ok(reply)
    })
}

fn protocol(query: &Query, headers: &HeaderMap) -> Result<Protocol, Problem> {
    let named = query.get("protocol").map(|name| Protocol::parse(name).ok_or(name));
    match named {
        Some(Ok(protocol)) => Ok(protocol),
        Some(Err(name)) => {
            let detail = format!("`protocol` is data-v1 or ui-v1, not `{name}`");
            Err(Problem::invalid("invalid-parameter", detail))
        }
        None => {
            let told = Protocol::ALL.into_iter().find(|protocol| headers.contains_key(protocol.header()));
            told.ok_or_else(|| {
                let detail =
                    "name the stream's protocol: ?protocol=data-v1 (AI SDK 4) or ?protocol=ui-v1 (AI SDK 5 and later)";
                Problem::invalid("missing-protocol", detail)
            })
        }
    }
}

fn session(query: &Query) -> Result<Option<String>, Problem> {
    let Some(session) = query.get("session_id") else { return Ok(None) };
    if session.chars().count() > 256 || session.chars().any(char::is_control) {
        let detail = "`session_id` has at most 256 characters, none of them a control character";
        return Err(Problem::invalid("invalid-parameter", detail));
    }
    Ok(Some(session.to_owned()))
}

/// Reads the body to its end. Between two pieces of it a tool may work for long.
async fn listen(listener: &mut Listener, streaming: Streaming) -> Result<(), Problem> {
    let Streaming { mut body, limits, progress, mut stopped, .. } = streaming;
    let mut bytes = 0;
    let mut alive = tokio::time::interval(limits.request_timeout.min(limits.stream_idle_timeout) / 2);
    let mut quiet_since = Instant::now();
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            _ = alive.tick() => {
                if quiet_since.elapsed() >= limits.stream_idle_timeout {
                    let detail = format!("the stream was silent for {} s", limits.stream_idle_timeout.as_secs());
                    return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow-body", detail).and_close());
                }
                progress.request_began();
                continue;
            }
            _ = stopped.wait_for(|stopped| *stopped) => {
                let detail = "the daemon stops; what ended so far is recorded, send what follows as another stream";
                return Err(Problem::unavailable("stopping", detail).and_close());
            }
        };
        quiet_since = Instant::now();
        let Some(frame) = frame else { return Ok(()) };
        let frame = frame.map_err(|_| Problem::bad_request("broken-body", "the stream broke off").and_close())?;
        let Ok(data) = frame.into_data() else { continue };
        bytes += data.len();
        if bytes > limits.max_stream_bytes {
            let detail = format!("the stream is longer than {} bytes", limits.max_stream_bytes);
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail).and_close());
        }
        listener.hear(&data).await;
    }
}

/// Records what is sent to it, in batches, until nobody can send any more; how many had a duration.
fn record_beside(context: Arc<Context>) -> (mpsc::Sender<Execution>, JoinHandle<Result<usize, Problem>>) {
    let (sender, mut waiting) = mpsc::channel::<Execution>(QUEUE);
    let recorder = tokio::spawn(async move {
        let mut recorded = 0;
        let mut outcome = Ok(());
        let mut batch = Vec::new();
        while waiting.recv_many(&mut batch, QUEUE).await > 0 {
            let timed = batch.iter().filter(|execution| execution.duration_ms.is_some()).count();
            match keep(&context, std::mem::take(&mut batch)).await {
                // They have no keys, so all of them are new.
                Ok(_) => recorded += timed,
                Err(problem) => outcome = Err(problem),
            }
        }
        outcome.map(|()| recorded)
    });
    (sender, recorder)
}

/// What is known of a stream so far.
struct Listener {
    grant: Grant,
    session: Option<String>,
    recorder: mpsc::Sender<Execution>,
    parser: Parser,
    calls: Calls,
    began: Instant,
    progress: Arc<Progress>,
    /// As they were when something arrived last.
    lulls: u64,
    burst: u64,
    heard: Heard,
}

/// What a stream told.
#[derive(Default)]
struct Heard {
    /// Parts that could be read.
    read: u64,
    gave_up: bool,
    told: StreamAnswer,
}

impl Listener {
    fn new(
        protocol: Protocol,
        grant: Grant,
        session: Option<String>,
        recorder: mpsc::Sender<Execution>,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            grant,
            session,
            recorder,
            parser: Parser::new(protocol),
            calls: Calls::default(),
            began: Instant::now(),
            lulls: progress.lulls(),
            progress,
            burst: 0,
            heard: Heard::default(),
        }
    }

    /// A burst ends with a lull after a whole line. A lull within a line is the network's: no agent waits for a tool there, but
    /// a stream that is sent all at once, such as one from a file, comes in pieces that are cut anywhere.
    fn arrival(&mut self) -> Arrival {
        let lulls = self.progress.lulls();
        if lulls != self.lulls && self.parser.is_between_lines() {
            self.burst += 1;
        }
        self.lulls = lulls;
        Arrival { at_ms: self.began.elapsed().as_millis() as u64, burst: self.burst }
    }

    async fn hear(&mut self, bytes: &[u8]) {
        let arrival = self.arrival();
        let Self { parser, calls, heard, .. } = self;
        let mut ended = Vec::new();
        parser.push(bytes, |read| ended.extend(heard.take(read, calls, arrival)));
        self.record(ended).await;
    }

    /// The stream ended, by itself or, when it broke off, without its end.
    async fn end(mut self, broke_off: bool) -> Heard {
        let arrival = self.arrival();
        let Self { parser, calls, heard, .. } = &mut self;
        let mut ended = Vec::new();
        parser.finish(|read| ended.extend(heard.take(read, calls, arrival)));
        if broke_off || heard.gave_up {
            let given_up = calls.give_up(arrival);
            for call in &given_up {
                heard.tell(call);
            }
            ended.extend(given_up);
        }
        heard.told.unfinished = calls
            .open()
            .map(|(call, tool)| UnfinishedCall { tool_call_id: call.to_owned(), tool_name: tool.to_owned() })
            .collect();
        self.record(ended).await;
        self.heard
    }

    async fn record(&self, ended: Vec<Ended>) {
        for call in ended {
            let Some(execution) = self.execution(call) else { continue };
            // The recorder lives for as long as this sender does.
            let _ = self.recorder.send(execution).await;
        }
    }

    /// The record of a call; nothing of one whose name is none, or that has neither a duration nor a session.
    fn execution(&self, call: Ended) -> Option<Execution> {
        let duration_ms = call.duration_ms.map(|duration_ms| duration_ms.min(MAX_DURATION_MS));
        if duration_ms.is_none() && self.session.is_none() {
            return None;
        }
        check_name(&call.tool).ok()?;
        Some(Execution {
            tenant: self.grant.tenant.to_string(),
            tool: call.tool,
            mode: None,
            duration_ms,
            outcome: outcome(call.how),
            measures: Measures::default(),
            session: self.session.clone(),
            at_ms: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64,
            idempotency_key: None,
        })
    }
}

/// What the events of a stream add up to. Its token_usage events are the account; path_info is one only where there is no other.
fn used(events: &[Value]) -> Used {
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    let accounts = Some(of("token_usage")).filter(|accounts| !accounts.is_empty()).unwrap_or_else(|| of("path_info"));
    accounts.into_iter().fold(Used::default(), |used, event| {
        let tokens = |key: &str| event[key].as_u64().unwrap_or_default().min(MAX_TOKENS);
        let cost_usd = event["costUsd"].as_f64().filter(|cost| (0.0..=1e6).contains(cost)).unwrap_or_default();
        used.and(Used {
            turns: 1,
            tokens_in: tokens("tokensIn"),
            tokens_out: tokens("tokensOut"),
            cached_tokens: tokens("cachedTokens"),
            cost_usd,
        })
    })
}

fn outcome(how: Seen) -> Outcome {
    match how {
        Seen::Result => Outcome::Success,
        Seen::Error => Outcome::Error,
        Seen::GivenUp => Outcome::Cancelled,
    }
}

impl Heard {
    /// Gives the session what the stream told of it.
    fn tell_engine(&self, context: &Context, tenant: &str, session: &str) {
        let intent = self.told.intent_context.clone();
        // What is no context is told again, but no session is about it.
        let intent: Option<IntentContextBody> = intent.and_then(|intent| serde_json::from_value(intent).ok());
        let used = used(&self.told.usage);
        if intent.is_some() || used.turns > 0 {
            context.engine.hear(tenant, session, intent.map(Into::into), used);
        }
    }

    /// Takes note of what was read; the call that it ended.
    fn take(&mut self, read: Read, calls: &mut Calls, arrival: Arrival) -> Option<Ended> {
        let part = match read {
            Ok(part) => part,
            Err(fault) => {
                if self.told.faults.len() < MAX_TOLD {
                    let message = fault.message.chars().take(MAX_MESSAGE_CHARS).collect();
                    self.told.faults.push(StreamFault { line: fault.line, message });
                }
                return None;
            }
        };
        self.read += 1;
        self.gave_up |= matches!(part, Part::Abort { .. } | Part::Error(_));
        let ended = calls.take(&part, arrival);
        if let Part::Data { name, value, .. } = part {
            self.take_data(name.as_deref(), value);
        }
        ended.inspect(|call| self.tell(call))
    }

    fn take_data(&mut self, name: Option<&str>, mut value: Value) {
        let kind = value.get("type").and_then(Value::as_str).or(name).unwrap_or_default();
        match kind {
            "intent_context" | "intent-context" => {
                if let Some(intent) = value.get_mut("intentContext").filter(|intent| is_small(intent)) {
                    self.told.intent_context = Some(intent.take());
                }
            }
            "token_usage" | "path_info" | "token-usage" | "path-info"
                if self.told.usage.len() < MAX_TOLD && is_small(&value) =>
            {
                self.told.usage.push(value);
            }
            _ => {}
        }
    }

    fn tell(&mut self, call: &Ended) {
        if self.told.calls.len() < MAX_CALLS {
            self.told.calls.push(StreamedCall {
                tool_call_id: call.call.clone(),
                tool_name: call.tool.clone(),
                outcome: outcome(call.how).as_str().to_owned(),
                duration_ms: call.duration_ms,
            });
        }
    }
}

fn is_small(value: &Value) -> bool {
    serde_json::to_vec(value).is_ok_and(|json| json.len() <= MAX_VALUE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Durations of the calls in a stream that arrives in these pieces, with a lull after each.
    fn durations(pieces: &[&str]) -> Vec<bool> {
        let progress = Arc::new(Progress::new());
        let (sender, _recorder) = mpsc::channel(QUEUE);
        let mut listener = Listener::new(Protocol::DataV1, Grant::anonymous(), None, sender, Arc::clone(&progress));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let heard = runtime.block_on(async {
            for piece in pieces {
                listener.hear(piece.as_bytes()).await;
                progress.waited();
            }
            listener.end(false).await
        });
        heard.told.calls.iter().map(|call| call.duration_ms.is_some()).collect()
    }

    #[test]
    fn a_lull_counts_after_a_whole_line_only() {
        let call = r#"9:{"toolCallId":"c","toolName":"t","args":{}}"#;
        let result = r#"a:{"toolCallId":"c","result":1}"#;
        let check = |pieces: &[&str], known: bool| assert_eq!(durations(pieces), [known], "{pieces:?}");
        check(&[&format!("{call}\n"), &format!("{result}\n")], true);
        check(&[call, "\n", result, "\n"], true);
        check(&[&format!("{call}\n{result}\n")], false);
        check(&[&format!("{call}\n{}", &result[..9]), &format!("{}\n", &result[9..])], false);
        check(&[&format!("0:\"a\"\n{call}\n"), &result[..9], &format!("{}\n", &result[9..])], true);
    }
}
