//! The route that listens to an agent's chat stream and records the tool calls in it.
//!
//! Each call is recorded as soon as its result arrives, so a stream that breaks off loses nothing of what it told
//! before. The recording runs beside the reading: waiting for the disk would stretch the durations that are measured
//! here.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde_json::Value;
use tokio::sync::mpsc;

use super::stream_usage::{Account, used};
use super::timing::store_problem;
use crate::access::Grant;
use crate::catalog::document::check_name;
use crate::http::answer;
use crate::http::handler::{Answering, Connection, Context, Request, Upload};
use crate::http::operation::{Operation, Parameter, query, query_word};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::server::body::check_encoding;
use crate::qualify::IntentContext;
use crate::stream::{Arrival, Calls, EndedCall, Parser, Part, Protocol, Read, Seen};
use crate::strict::values::check_label;
use crate::timing::execution::MAX_DURATION_MS;
use crate::timing::{Execution, Measures, Outcome};
use crate::wire::problem::Code;
use crate::wire::qualify::IntentContextBody;
use crate::wire::stream::{StreamAnswer, StreamFault, StreamedCall, UnfinishedCall};

/// Faults, and events of usage, that an answer tells at most.
const MAX_LISTED: usize = 100;

/// Size of a value that an answer tells, in bytes of JSON: a hundred of them must not hold the memory of the daemon.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// Characters of a fault's message, which can quote the line.
const MAX_MESSAGE_CHARS: usize = 200;

/// Between two looks at a stream that is silent.
const LOOK: Duration = Duration::from_secs(1);

/// Calls of one stream that an answer tells at most; further ones are recorded all the same.
const MAX_CALLS: usize = 10_000;

pub(super) fn operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query_word("protocol", &Protocol::WORDS, "data-v1 or ui-v1; may be left out with the protocol's header."),
        query("session_id", "string", "The session to which the calls belong."),
    ];
    Operation::new("readStream", "Listen to an agent's chat stream as it arrives: its tool calls are recorded.")
        .taking(&PARAMETERS)
        .with_stream(&["text/plain", "text/event-stream", "application/octet-stream"])
        .answering_with::<StreamAnswer>(201, "The stream ended; calls of it are durable.")
        .answering_with::<StreamAnswer>(200, "The stream ended; it had no call whose duration is known.")
}

pub(super) fn read(context: Arc<Context>, request: Request, upload: Upload) -> Answering {
    Box::pin(async move {
        let query = &request.query;
        let protocol = protocol(query, request.headers())?;
        check_encoding(request.headers())?;
        let session = session(query)?;
        let (sender, recorder) = context.engine.record_beside();
        let connection = Arc::clone(&upload.connection);
        let grant = request.grant.clone();
        let mut listener = Listener::new(protocol, request.grant, session.clone(), sender, connection);
        let heard = listen(&mut listener, upload).await;
        let listened = listener.end(heard.is_err()).await;
        if let Some(session) = &session {
            listened.update_session(&context, &grant, session);
        }
        // The recorder ends when nobody can send any more; what it holds is recorded first.
        let recorded = recorder.end().await.map_err(|error| store_problem(&error))?;
        heard?;
        if listened.read == 0 && !listened.answer.faults.is_empty() {
            let StreamFault { line, message } = &listened.answer.faults[0];
            let detail = format!("no line of it is of a {} stream; line {line}: {message}", protocol.as_str());
            return Err(Problem::bad_request(Code::MalformedStream, detail));
        }
        let mut reply = answer::json(&StreamAnswer { recorded, ..listened.answer });
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
        Some(Err(name)) => Err(Problem::unknown_protocol("protocol", name)),
        None => {
            let named = Protocol::ALL.into_iter().find(|protocol| headers.contains_key(protocol.header()));
            named.ok_or_else(|| {
                let detail =
                    "name the stream's protocol: ?protocol=data-v1 (AI SDK 4) or ?protocol=ui-v1 (AI SDK 5 and later)";
                Problem::invalid(Code::MissingProtocol, detail)
            })
        }
    }
}

fn session(query: &Query) -> Result<Option<String>, Problem> {
    let Some(session) = query.get("session_id") else { return Ok(None) };
    check_label(session).map_err(|said| Problem::invalid(Code::InvalidParameter, format!("`session_id` {said}")))?;
    Ok(Some(session.to_owned()))
}

/// Reads the body to its end. Between two pieces of it a tool may work for long.
async fn listen(listener: &mut Listener, upload: Upload) -> Result<(), Problem> {
    let Upload { mut body, limits, connection, mut stopped, mut revoked } = upload;
    let mut bytes = 0;
    let mut alive = tokio::time::interval((limits.request_timeout.min(limits.stream_idle_timeout) / 2).min(LOOK));
    let mut quiet_since = Instant::now();
    // An agent waits for a tool between two lines, never within one.
    let mut line_since = None;
    loop {
        let frame = tokio::select! {
            biased;
            () = revoked.as_mut() => {
                let detail = "this token is not known here any more; what ended so far is recorded";
                return Err(Problem::unauthorized(Code::UnknownToken, detail).and_close());
            }
            _ = stopped.wait_for(|stopped| *stopped) => {
                let detail = "the daemon stops; what ended so far is recorded, send what follows as another stream";
                return Err(Problem::unavailable(Code::Stopping, detail).and_close());
            }
            frame = body.frame() => frame,
            _ = alive.tick() => {
                let limit = limits.request_timeout;
                if line_since.is_some_and(|since: Instant| since.elapsed() >= limit) {
                    let detail = format!("a line of the stream took longer than {} s", limit.as_secs_f32());
                    return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, Code::SlowBody, detail).and_close());
                }
                // Its end is withheld from whoever reads, since it may want its answer; but nothing follows it.
                if connection.has_ended() && quiet_since.elapsed() >= LOOK {
                    return Err(Problem::bad_request(Code::BrokenBody, "the stream broke off").and_close());
                }
                if quiet_since.elapsed() >= limits.stream_idle_timeout {
                    let detail = format!("the stream was silent for {} s", limits.stream_idle_timeout.as_secs());
                    return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, Code::SlowBody, detail).and_close());
                }
                connection.goes_on();
                continue;
            }
        };
        quiet_since = Instant::now();
        let Some(frame) = frame else { return Ok(()) };
        let frame = frame.map_err(|_| Problem::bad_request(Code::BrokenBody, "the stream broke off").and_close())?;
        let Ok(data) = frame.into_data() else { continue };
        bytes += data.len();
        if bytes > limits.max_stream_bytes {
            let detail = format!("the stream is longer than {} bytes", limits.max_stream_bytes);
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, Code::BodyTooLarge, detail).and_close());
        }
        listener.hear(&data).await;
        line_since = (!listener.parser.is_between_lines()).then(|| line_since.unwrap_or(quiet_since));
    }
}

/// What is known of a stream so far.
struct Listener {
    grant: Grant,
    session: Option<String>,
    recorder: mpsc::Sender<Execution>,
    parser: Parser,
    calls: Calls,
    began: Instant,
    connection: Arc<dyn Connection>,
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
    /// Is the stream over with an error? That of AI SDK 4 goes on.
    errors_end_it: bool,
    account: Account,
    answer: StreamAnswer,
}

impl Listener {
    fn new(
        protocol: Protocol,
        grant: Grant,
        session: Option<String>,
        recorder: mpsc::Sender<Execution>,
        connection: Arc<dyn Connection>,
    ) -> Self {
        Self {
            grant,
            session,
            recorder,
            parser: Parser::new(protocol),
            calls: Calls::of(protocol),
            began: Instant::now(),
            lulls: connection.lulls(),
            connection,
            burst: 0,
            heard: Heard { errors_end_it: protocol == Protocol::UiV1, ..Heard::default() },
        }
    }

    /// A burst ends with a lull after a whole line. A lull within a line is the network's: no agent waits for a tool
    /// there, but a stream that is sent all at once, such as one from a file, comes in pieces that are cut
    /// anywhere.
    fn arrival(&mut self) -> Arrival {
        let lulls = self.connection.lulls();
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
        let failed = calls.settle();
        for call in &failed {
            heard.list(call);
        }
        ended.extend(failed);
        if broke_off || heard.gave_up {
            let given_up = calls.give_up(arrival);
            for call in &given_up {
                heard.list(call);
            }
            ended.extend(given_up);
        }
        heard.close_account();
        heard.answer.unfinished = calls
            .open()
            .map(|(call, tool)| UnfinishedCall { tool_call_id: call.to_owned(), tool_name: tool.to_owned() })
            .collect();
        self.record(ended).await;
        self.heard
    }

    async fn record(&self, ended: Vec<EndedCall>) {
        for call in ended {
            let Some(execution) = self.execution(call) else { continue };
            // The recorder lives for as long as this sender does.
            let _ = self.recorder.send(execution).await;
        }
    }

    /// The record of a call; nothing of one whose name is none, or that has neither a duration nor a session.
    fn execution(&self, call: EndedCall) -> Option<Execution> {
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

fn outcome(how: Seen) -> Outcome {
    match how {
        Seen::Result => Outcome::Success,
        Seen::Error => Outcome::Error,
        Seen::GivenUp => Outcome::Cancelled,
    }
}

impl Heard {
    /// Gives the session what the stream told of it.
    fn update_session(&self, context: &Context, grant: &Grant, session: &str) {
        let intent = self.answer.intent_context.clone();
        // What is no context is told again, but no session is about it.
        let intent: Option<IntentContextBody> = intent.and_then(|intent| serde_json::from_value(intent).ok());
        let used = used(&self.answer.usage);
        if used.turns > 0 {
            // A stream does not say what its threshold is.
            context.engine.spent(&grant.tenant, used, 0);
        }
        if intent.is_some() || used.turns > 0 {
            let intent = intent.map(|intent| IntentContext::from(intent).bounded());
            context.engine.hear(grant, session, intent, used);
        }
    }

    /// Takes note of what was read; the calls that it ended.
    fn take(&mut self, read: Read, calls: &mut Calls, arrival: Arrival) -> Vec<EndedCall> {
        let part = match read {
            Ok(part) => part,
            Err(fault) => {
                if self.answer.faults.len() < MAX_LISTED {
                    let message = fault.message.chars().take(MAX_MESSAGE_CHARS).collect();
                    self.answer.faults.push(StreamFault { line: fault.line, message });
                }
                return Vec::new();
            }
        };
        self.read += 1;
        self.gave_up |= matches!(part, Part::Abort { .. }) || (self.errors_end_it && matches!(part, Part::Error(_)));
        self.account.take(&part);
        let ended = calls.take(&part, arrival);
        if let Part::Data { name, value, .. } = part {
            self.take_data(name.as_deref(), value);
        }
        for call in &ended {
            self.list(call);
        }
        ended
    }

    /// Where the application told nothing of tokens, what the protocol did counts.
    fn close_account(&mut self) {
        if self.answer.usage.is_empty() {
            self.answer.usage.extend(self.account.event());
        }
    }

    fn take_data(&mut self, name: Option<&str>, mut value: Value) {
        let kind = value.get("type").and_then(Value::as_str).or(name).unwrap_or_default();
        match kind {
            "intent_context" | "intent-context" => {
                if let Some(intent) = value.get_mut("intentContext").filter(|intent| is_small(intent)) {
                    self.answer.intent_context = Some(intent.take());
                }
            }
            "token_usage" | "path_info" | "token-usage" | "path-info"
                if self.answer.usage.len() < MAX_LISTED && is_small(&value) =>
            {
                self.answer.usage.push(value);
            }
            _ => {}
        }
    }

    fn list(&mut self, call: &EndedCall) {
        if self.answer.calls.len() < MAX_CALLS {
            self.answer.calls.push(StreamedCall {
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
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A connection that is told when there was nothing to read.
    #[derive(Default)]
    struct Lulls(AtomicU64);

    impl Connection for Lulls {
        fn has_ended(&self) -> bool {
            false
        }

        fn goes_on(&self) {}

        fn lulls(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// Durations of the calls in a stream that arrives in these pieces, with a lull after each.
    fn durations(pieces: &[&str]) -> Vec<bool> {
        let lulls = Arc::new(Lulls::default());
        let (sender, _recorder) = mpsc::channel(16);
        let mut listener = Listener::new(Protocol::DataV1, Grant::anonymous(), None, sender, Arc::clone(&lulls) as _);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let heard = runtime.block_on(async {
            for piece in pieces {
                listener.hear(piece.as_bytes()).await;
                lulls.0.fetch_add(1, Ordering::Relaxed);
            }
            listener.end(false).await
        });
        heard.answer.calls.iter().map(|call| call.duration_ms.is_some()).collect()
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
