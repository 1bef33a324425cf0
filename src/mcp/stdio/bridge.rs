//! Messages from one side to the other.

use std::collections::HashMap;
use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use hyper::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::RwLock;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Interval, interval, sleep, timeout};

use super::super::headers::{SESSION, VERSION};
use super::super::http::MAX_MESSAGE_BYTES;
use super::lines::{StdioLines, StdioOutput};
use super::way::{SendError, Way};
use crate::jsonrpc::lines::MessageLine;
use crate::jsonrpc::param_headers::ToolHeaders;
use crate::jsonrpc::sse::SseReader;
use crate::jsonrpc::{Envelope, ErrorObject, Id, Members, MessageLimits, code, wire_headers};

const LIMITS: MessageLimits = MessageLimits::of_bytes(MAX_MESSAGE_BYTES);

/// Largest answer of a daemon that is read whole, in bytes: those of servers behind it are up to 16 MiB.
const MAX_ANSWER: usize = 32 << 20;

/// What is asked may still be answered for so long after the input ended: as long as a daemon that starts is waited
/// for, and a moment more, so that it is said why there is none.
const LAST_ANSWERS: Duration = Duration::from_secs(32);

/// That the session is over may take so long to tell.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Between two looks whether the parent is still there.
const PARENT: Duration = Duration::from_secs(2);

/// Before a stream of notifications that ended is opened again, at first and at most.
const AGAIN: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

/// The bridge.
pub(super) struct Bridge {
    way: Way,
    path: String,
    output: StdioOutput,
    /// What headers repeat of calls of the tools that the client listed.
    tool_headers: ToolHeaders,
    session: Mutex<McpSession>,
    /// Held while the client introduces itself: what it sends at once behind that waits for the session.
    introduced: Arc<RwLock<()>>,
    /// Held while the client is introduced again.
    introducing: tokio::sync::Mutex<()>,
    running: Mutex<HashMap<Id, RunningRequest>>,
}

/// A request that has no answer yet.
struct RunningRequest {
    task: AbortHandle,
    /// Is it answered for as long as somebody listens?
    is_endless: bool,
    /// Does its client want no answer any more?
    is_given_up: bool,
}

/// What a legacy client and its daemon agreed on.
#[derive(Default, Clone)]
struct McpSession {
    id: Option<String>,
    version: Option<String>,
    /// The client's own `initialize`, to be sent again.
    introduction: Option<Bytes>,
    is_followed: bool,
}

/// A request of the client.
struct Asked {
    line: Bytes,
    /// Those of a modern one.
    headers: Vec<(String, String)>,
    is_introduction: bool,
    lists_tools: bool,
}

/// A message that could not be delivered, as its sender is told.
struct Undelivered(ErrorObject);

impl From<SendError> for Undelivered {
    fn from(error: SendError) -> Self {
        Self(ErrorObject::new(code::INTERNAL, error.to_string()))
    }
}

impl Bridge {
    pub(super) fn new(way: Way, path: String, output: StdioOutput) -> Arc<Self> {
        Arc::new(Self {
            way,
            path,
            output,
            tool_headers: ToolHeaders::default(),
            session: Mutex::default(),
            introduced: Arc::default(),
            introducing: tokio::sync::Mutex::default(),
            running: Mutex::default(),
        })
    }

    /// Until the input ends, or whoever started this does. Did all that was asked get an answer of the daemon's?
    pub(super) async fn run(self: &Arc<Self>, mut lines: StdioLines) -> bool {
        let mut work = JoinSet::new();
        let parent = parent_id();
        let mut looks = interval(PARENT);
        loop {
            tokio::select! {
                line = lines.next() => match line {
                    Ok(Some(MessageLine::Whole(line))) if line.trim_ascii().is_empty() => {}
                    Ok(Some(line)) => self.take(line, &mut work),
                    Ok(None) | Err(_) => break,
                },
                // What has ended need not be kept.
                Some(_) = work.join_next() => {}
                _ = looks.tick() => if parent_id() != parent { return true },
            }
        }
        let unanswered = tokio::select! {
            biased;
            unanswered = self.last_answers(&mut work, LAST_ANSWERS) => unanswered,
            // Nobody reads any more.
            () = orphaned(parent, looks) => 0,
            () = terminated() => 0,
        };
        let _ = timeout(LAST_WORDS, self.end_session()).await;
        unanswered == 0
    }

    /// Waits for what has no answer yet, for so long at most; the rest is told that there will be none. How many?
    async fn last_answers(&self, work: &mut JoinSet<()>, limit: Duration) -> usize {
        self.running.lock().retain(|_, request| {
            let is_wanted = !request.is_endless && !request.is_given_up;
            if !is_wanted {
                request.task.abort();
            }
            is_wanted
        });
        let has_unanswered = || !self.running.lock().is_empty();
        let _ = timeout(limit, async { while has_unanswered() && work.join_next().await.is_some() {} }).await;
        let unanswered = std::mem::take(&mut *self.running.lock());
        for (id, request) in &unanswered {
            request.task.abort();
            let text = format!("not answered within {} s of the input's end; the call may have run", limit.as_secs());
            self.output.write(&Envelope::write_error(Some(id), &ErrorObject::new(code::INTERNAL, text)));
        }
        let _ = timeout(LAST_WORDS, async { while work.join_next().await.is_some() {} }).await;
        unanswered.len()
    }

    /// Tells the daemon that the session is over: what servers have for it can go.
    async fn end_session(&self) {
        let session = self.session.lock().clone();
        if session.id.is_some() {
            let mut request = self.request(&Bytes::new(), &session, &[]);
            *request.method_mut() = Method::DELETE;
            // A daemon that is not there has no session either.
            let _ = self.way.try_send(request).await;
        }
    }

    fn take(self: &Arc<Self>, line: MessageLine, work: &mut JoinSet<()>) {
        let line = match line {
            MessageLine::Whole(line) => Bytes::from(line),
            MessageLine::TooLong(..) => {
                let error =
                    ErrorObject::new(code::INVALID_REQUEST, format!("a message has at most {MAX_MESSAGE_BYTES} bytes"));
                return self.output.write(&Envelope::write_error(None, &error));
            }
        };
        let bridge = Arc::clone(self);
        match Envelope::read(&line, LIMITS) {
            Err(error) => self.output.write(&Envelope::write_error(error.id(), &error.to_object())),
            Ok(Envelope::Request { id, method, params }) => {
                let mut headers = wire_headers::modern(&method, params);
                if !headers.is_empty() {
                    headers.extend(self.tool_headers.write(&method, params));
                }
                let lists_tools = method == "tools/list" && !headers.is_empty();
                let is_introduction = method == "initialize" && headers.is_empty();
                let is_endless = method == "subscriptions/listen";
                // Taken before the next line is; a client that introduces itself once more amid questions goes without.
                let introducing =
                    is_introduction.then(|| Arc::clone(&self.introduced).try_write_owned().ok()).flatten();
                let key = id.clone();
                let line = line.clone();
                // Held until it is known as running: it must not end before.
                let mut running = self.running.lock();
                let task = work.spawn(async move {
                    if !is_introduction {
                        drop(bridge.introduced.read().await);
                    }
                    let asked = Asked { line, headers, is_introduction, lists_tools };
                    let outcome = bridge.ask(&id, asked).await;
                    drop(introducing);
                    let is_given_up = bridge.is_given_up(&id);
                    bridge.running.lock().remove(&id);
                    if let Err(Undelivered(error)) = outcome
                        && !is_given_up
                    {
                        bridge.output.write(&Envelope::write_error(Some(&id), &error));
                    }
                });
                running.insert(key, RunningRequest { task, is_endless, is_given_up: false });
            }
            Ok(Envelope::Notification { method, params }) => {
                let is_modern = self.session.lock().id.is_none();
                if method == "notifications/cancelled" {
                    let named = params.and_then(|params| Id::read(Members::read(params).ok()?.get("requestId")?));
                    if let Some(id) = named {
                        self.give_up(&id, is_modern);
                    }
                    if is_modern {
                        return;
                    }
                }
                let begins = method == "notifications/initialized";
                let line = line.clone();
                work.spawn(async move { bridge.tell(line, begins).await });
            }
            Ok(Envelope::Response { .. }) => {
                let line = line.clone();
                work.spawn(async move { bridge.tell(line, false).await });
            }
        }
    }

    /// The client wants no answer any more. A modern request is cancelled by leaving it; of a legacy one the daemon is
    /// told, which finds it for as long as its connection is there.
    fn give_up(&self, id: &Id, is_modern: bool) {
        let mut running = self.running.lock();
        if let Some(request) = running.get_mut(id) {
            request.is_given_up = true;
            if is_modern {
                request.task.abort();
                running.remove(id);
            }
        }
    }

    fn is_given_up(&self, id: &Id) -> bool {
        self.running.lock().get(id).is_some_and(|request| request.is_given_up)
    }

    /// Sends what wants no answer.
    async fn tell(self: Arc<Self>, line: Bytes, begins: bool) {
        drop(self.introduced.read().await);
        let session = self.session.lock().clone();
        if let Err(error) = self.way.send(self.request(&line, &session, &[])).await {
            tracing::warn!(%error, "a notification is lost");
        }
        if begins && session.id.is_some() && !std::mem::replace(&mut self.session.lock().is_followed, true) {
            tokio::spawn(async move { self.follow().await });
        }
    }

    /// Sends a request and writes its answer, and what is told before it.
    async fn ask(&self, id: &Id, asked: Asked) -> Result<(), Undelivered> {
        let Asked { line, headers, is_introduction, lists_tools } = asked;
        let mut session = if is_introduction { McpSession::default() } else { self.session.lock().clone() };
        let mut response = self.way.send(self.request(&line, &session, &headers)).await?;
        if response.status() == StatusCode::NOT_FOUND && headers.is_empty() && session.id.is_some() {
            // Nothing ran: the daemon is another one, and does not know the session.
            session = self.introduce_again(&session).await?;
            response = self.way.send(self.request(&line, &session, &headers)).await?;
        }
        let begun = header(&response, SESSION);
        if is_event_stream(&response) {
            return if self.relay(response, Some(id)).await { Ok(()) } else { Err(SendError::Broken.into()) };
        }
        let status = response.status();
        let is_json = header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind == "application/json");
        let body = whole(response).await?;
        if is_introduction && begun.is_some() && status.is_success() {
            let version = agreed(&body);
            *self.session.lock() = McpSession { id: begun, version, introduction: Some(line), is_followed: false };
        }
        if lists_tools {
            self.note_tools(&body);
        }
        match std::str::from_utf8(&body) {
            Ok(_) if self.is_given_up(id) => {}
            Ok(message) if is_json && !message.is_empty() => self.output.write(message),
            _ => return Err(Undelivered(refusal(status, &body))),
        }
        Ok(())
    }

    /// Takes note of what headers repeat of calls of these tools: the client knows no headers.
    fn note_tools(&self, list: &[u8]) {
        let Ok(Envelope::Response { outcome: Ok(result), .. }) =
            Envelope::read(list, MessageLimits::of_bytes(MAX_ANSWER))
        else {
            return;
        };
        let tools = Members::read(result).ok().and_then(|result| result.get("tools"));
        let tools: Vec<&RawValue> = tools.and_then(|tools| serde_json::from_str(tools.get()).ok()).unwrap_or_default();
        let named = tools.into_iter().filter_map(|tool| Some((Members::read(tool).ok()?.text("name")?, tool)));
        let named: Vec<_> = named.collect();
        self.tool_headers.add(named.iter().map(|(name, tool)| (&**name, *tool)));
    }

    /// Introduces the client to a daemon that does not know it, in its own words.
    async fn introduce_again(&self, before: &McpSession) -> Result<McpSession, Undelivered> {
        let _one_at_a_time = self.introducing.lock().await;
        let known = self.session.lock().clone();
        let Some(introduction) = known.introduction.clone().filter(|_| known.id == before.id) else { return Ok(known) };
        let response = self.way.send(self.request(&introduction, &McpSession::default(), &[])).await?;
        let id = header(&response, SESSION);
        let version = agreed(&whole(response).await?);
        let session = McpSession { id, version, ..known };
        *self.session.lock() = session.clone();
        let initialized = Bytes::from(Envelope::write_notification("notifications/initialized", None));
        whole(self.way.send(self.request(&initialized, &session, &[])).await?).await?;
        Ok(session)
    }

    /// Passes on what the daemon tells unasked.
    async fn follow(&self) {
        let mut pause = AGAIN[0];
        loop {
            let session = self.session.lock().clone();
            let mut request = self.request(&Bytes::new(), &session, &[]);
            *request.method_mut() = Method::GET;
            match self.way.try_send(request).await {
                Ok(response) if is_event_stream(&response) => {
                    self.relay(response, None).await;
                    pause = AGAIN[0];
                }
                // There is no such stream, or no place for one.
                Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => return,
                _ => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(AGAIN[1]);
        }
    }

    /// Writes the messages of a stream. Was the answer to `id` among them?
    async fn relay(&self, response: Response<Incoming>, id: Option<&Id>) -> bool {
        let (mut body, mut events) = (response.into_body(), SseReader::new(MAX_ANSWER));
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            events.push(&data);
            while let Some(message) = events.next() {
                let answered = Envelope::read(message.as_bytes(), MessageLimits::of_bytes(MAX_ANSWER));
                let is_answer = matches!(
                    (answered, id),
                    (Ok(Envelope::Response { id: Some(answered), .. }), Some(id)) if answered == *id
                );
                if !is_answer || id.is_some_and(|id| !self.is_given_up(id)) {
                    self.output.write(&message);
                }
                if is_answer {
                    return true;
                }
            }
        }
        false
    }

    fn request(&self, line: &Bytes, session: &McpSession, headers: &[(String, String)]) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(line.clone()));
        *request.method_mut() = Method::POST;
        if let Ok(path) = self.path.parse() {
            *request.uri_mut() = path;
        }
        let map = request.headers_mut();
        let both = "application/json, text/event-stream";
        let own = [(CONTENT_TYPE, "application/json".to_owned()), (ACCEPT, both.to_owned())];
        let of_session = [(SESSION, session.id.clone()), (VERSION, session.version.clone())];
        let of_session = of_session.into_iter().filter(|_| headers.is_empty());
        let of_session = of_session.filter_map(|(name, value)| Some((HeaderName::from_static(name), value?)));
        let modern = headers.iter().filter_map(|(name, value)| Some((name.parse().ok()?, value.clone())));
        for (name, value) in own.into_iter().chain(of_session).chain(modern) {
            if let Ok(value) = value.parse() {
                map.insert(name, value);
            }
        }
        request
    }
}

/// Until somebody asks this to end, who gives a moment for it.
async fn terminated() {
    match signal(SignalKind::terminate()) {
        Ok(mut asked) => drop(asked.recv().await),
        Err(_) => std::future::pending().await,
    }
}

/// Until whoever started this has ended.
async fn orphaned(parent: u32, mut looks: Interval) {
    while parent_id() == parent {
        looks.tick().await;
    }
}

fn header(response: &Response<Incoming>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn is_event_stream(response: &Response<Incoming>) -> bool {
    header(response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("text/event-stream"))
}

async fn whole(response: Response<Incoming>) -> Result<Bytes, Undelivered> {
    let body = http_body_util::Limited::new(response.into_body(), MAX_ANSWER).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|_| SendError::Broken.into())
}

/// The version that the answer to an introduction names.
fn agreed(body: &[u8]) -> Option<String> {
    let Ok(Envelope::Response { outcome: Ok(result), .. }) = Envelope::read(body, LIMITS) else { return None };
    Some(Members::read(result).ok()?.text("protocolVersion")?.into_owned())
}

/// What the daemon said that is no message: a problem document, or nothing.
fn refusal(status: StatusCode, body: &[u8]) -> ErrorObject {
    let detail = serde_json::from_slice::<serde_json::Value>(body).ok();
    let detail = detail.as_ref().and_then(|problem| problem["detail"].as_str()).unwrap_or_default();
    ErrorObject::new(code::INTERNAL, format!("the daemon answered {status} {detail}").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn what_has_no_answer_at_the_end_is_told_so() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("mcp.sock");
        // Somebody who takes everything and says nothing.
        let _silent = UnixListener::bind(&socket).unwrap();
        let check = async |methods: &[&str], expected: usize| {
            let bridge = Bridge::new(Way::socket(socket.clone()), "/mcp".to_owned(), StdioOutput::open());
            let mut work = JoinSet::new();
            for (id, method) in methods.iter().enumerate() {
                let line = json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string();
                bridge.take(MessageLine::Whole(line.into_bytes()), &mut work);
            }
            let unanswered = bridge.last_answers(&mut work, Duration::from_millis(10)).await;
            assert_eq!((unanswered, bridge.running.lock().len()), (expected, 0), "{methods:?}");
        };
        check(&[], 0).await;
        check(&["tools/list", "tools/call"], 2).await;
        // One that has no end is not waited for.
        check(&["subscriptions/listen"], 0).await;
    }
}
