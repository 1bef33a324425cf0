//! The streamable HTTP transport: which era a request is of, what its headers must say, sessions, and whether the
//! answer is JSON or a stream of events.
//!
//! An answer that is ready soon is JSON. Else a stream begins, so that no timeout of a header runs, and comments keep
//! idle timeouts away. A modern client cancels by leaving; a legacy one that leaves may come back for its answer.
#![expect(clippy::result_large_err, reason = "a refusal is answered at once: it is moved once or twice, and rare")]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Method, StatusCode};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio::time::{self, interval_at, sleep};

use super::Mcp;
use super::address::Address;
use super::answer_stream::{AnswerStream, next};
use super::capabilities::Capabilities;
use super::error::RpcError;
use super::headers::{self, SESSION};
use super::methods::Introduction;
use super::request::{ClientPresence, McpCaller, McpRequest, RpcAnswer, Waits, session_name};
use super::session::{McpSession, Whose};
use super::streams::PIECES;
use super::work::{CountCancelled, Work};
use crate::access::{Grant, Refused};
use crate::jsonrpc::{Envelope, Era, Id, Members, MessageLimits, Version, meta, object};
use crate::telemetry::metrics::McpMetrics;

/// Largest message of a client, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;

const LIMITS: MessageLimits = MessageLimits::of_bytes(MAX_MESSAGE_BYTES);

/// An answer that takes longer becomes a stream.
const SOON: Duration = Duration::from_millis(200);

/// Between two signs to the connection that a request is still worked on.
const SIGNS: Duration = Duration::from_secs(5);

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// A request as it came over HTTP. Its sender may ask at this door.
pub struct HttpRequest {
    /// POST, GET or DELETE.
    pub method: Method,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// What its sender may do.
    pub grant: Grant,
    /// The view that it is sent to.
    pub address: Address,
    /// What its address says of how long it waits.
    pub waits: Waits,
    /// Becomes true when the doors close.
    pub stopped: watch::Receiver<bool>,
    /// Tells the connection that the request goes on, however long it has taken.
    pub goes_on: Box<dyn Fn() + Send + Sync>,
}

/// What goes back.
#[derive(Debug)]
pub enum HttpAnswer {
    /// All of it.
    Whole {
        /// Its status.
        status: StatusCode,
        /// Its headers.
        headers: HeaderMap,
        /// Its body.
        body: Bytes,
    },
    /// Events, as they come.
    Stream(mpsc::Receiver<Bytes>),
}

/// A request that is not answered, with its id if it has one.
struct Refusal {
    id: Option<Id>,
    error: RpcError,
    headers: HeaderMap,
}

impl Refusal {
    fn new(id: Option<Id>, error: RpcError) -> Self {
        Self { id, error, headers: HeaderMap::new() }
    }

    /// With a status that JSON-RPC has no code for.
    fn status(status: StatusCode, message: &str) -> Self {
        Self::new(None, RpcError { status, ..RpcError::invalid_request(message) })
    }

    fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::new(None, error)
    }
}

impl Mcp {
    /// Answers a request.
    pub async fn over_http(self: &Arc<Self>, http: HttpRequest) -> HttpAnswer {
        let answered = match http.method {
            Method::POST => self.post(http).await,
            Method::GET => self.get(&http),
            Method::DELETE => self.delete(&http),
            _ => Err(not_allowed("POST, GET, DELETE")),
        };
        answered.unwrap_or_else(|Refusal { id, error, headers }| {
            let whole = self.failure(id.as_ref(), &error);
            match whole {
                HttpAnswer::Whole { status, headers: mut known, body } => {
                    known.extend(headers);
                    HttpAnswer::Whole { status, headers: known, body }
                }
                stream @ HttpAnswer::Stream(_) => stream,
            }
        })
    }

    async fn post(self: &Arc<Self>, http: HttpRequest) -> Result<HttpAnswer, Refusal> {
        check_content_type(&http.headers)?;
        let wants_events = accepted(&http.headers)?;
        let message = Envelope::read(&http.body, LIMITS)
            .map_err(|error| Refusal::new(error.id().cloned(), RpcError::from(&error)))?;
        let asked = if let Envelope::Request { id, .. } = &message { Some(id.clone()) } else { None };
        self.check_view(&http.address).map_err(|refusal| Refusal { id: asked, ..refusal })?;
        match message {
            Envelope::Response { id, outcome } => {
                if let (Some(session), Some(id)) = (self.session(&http), id) {
                    self.questions.answered(session.random, &id, outcome);
                }
                Ok(empty(StatusCode::ACCEPTED))
            }
            Envelope::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    self.cancel(&http, params);
                }
                Ok(empty(StatusCode::ACCEPTED))
            }
            Envelope::Request { id, method, params } => {
                let asked = Asked { id: &id, method: &method, params };
                let outcome = self.request(&http, asked, wants_events).await;
                outcome.map_err(|error| {
                    self.metrics.mcp.requests.with_label_values(&[label(&method), "unknown", "refused"]).inc();
                    Refusal::new(Some(id), error)
                })
            }
        }
    }

    async fn request(
        self: &Arc<Self>,
        http: &HttpRequest,
        asked: Asked<'_>,
        wants_events: bool,
    ) -> Result<HttpAnswer, RpcError> {
        let Asked { id, method, params } = asked;
        let declared = params.and_then(|params| meta::get(params, meta::PROTOCOL_VERSION));
        if method == "initialize" && declared.is_none() {
            return self.initialize(http, asked);
        }
        let caller = if declared.is_some() || says_modern(&http.headers) {
            self.modern_caller(http, method, params)?
        } else {
            self.legacy_caller(http, wants_events)?
        };
        let request = McpRequest {
            id: id.clone(),
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
            caller,
            presence: ClientPresence::default(),
        };
        if request.caller.era() == Era::Modern && method == "subscriptions/listen" {
            if !wants_events {
                let message = "`subscriptions/listen` is answered by events; accept text/event-stream";
                return Err(RpcError { status: StatusCode::NOT_ACCEPTABLE, ..RpcError::invalid_request(message) });
            }
            return Ok(HttpAnswer::Stream(self.listen(&request, http.stopped.clone())?));
        }
        self.run(request, wants_events, &http.goes_on).await
    }

    fn initialize(&self, http: &HttpRequest, asked: Asked<'_>) -> Result<HttpAnswer, RpcError> {
        let Introduction { version, capabilities } = Introduction::read(asked.params)?;
        let view = http.address.to_string();
        let whose = Whose { token: &http.grant.name, view: &view };
        let (session, name) = self
            .key
            .begin(version, capabilities, whose, SystemTime::now())
            .map_err(|error| RpcError::internal(error.to_string()))?;
        let started = Instant::now();
        let caller = self.caller(http, version, Some(session.random), &session.capabilities.to_json());
        let answer = self.greet(&caller);
        self.count("initialize", Era::Legacy, &answer, started);
        let mut whole = self.respond(asked.id, &answer);
        if let (HttpAnswer::Whole { headers, .. }, Ok(name)) = (&mut whole, HeaderValue::from_str(&name)) {
            headers.insert(HeaderName::from_static(SESSION), name);
        }
        Ok(whole)
    }

    fn modern_caller(
        &self,
        http: &HttpRequest,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<McpCaller, RpcError> {
        let said = params.and_then(|params| Some((params, meta::text(params, meta::PROTOCOL_VERSION)?)));
        let (params, said) = said.ok_or_else(|| RpcError::missing_meta(meta::PROTOCOL_VERSION))?;
        headers::check_version(&http.headers, &said)?;
        let version = Version::parse(&said).filter(|version| version.era() == Era::Modern);
        let version = version.ok_or_else(|| RpcError::unsupported_version(&said))?;
        let subject = headers::subject_of(method);
        let subject = subject.and_then(|name| object::text(Members::read(params).ok()?.get(name)?));
        headers::check_method(&http.headers, method, subject.as_deref())?;
        self.check_arguments(http, method, params)?;
        let declared = meta::get(params, meta::CLIENT_CAPABILITIES);
        let declared: Option<Map<String, Value>> = declared.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let declared = declared.ok_or_else(|| RpcError::missing_meta(meta::CLIENT_CAPABILITIES))?;
        Ok(self.caller(http, version, None, &declared.into()))
    }

    /// Headers repeat the arguments that a tool wants there. Nobody goes by them on the way from `almanacd mcp`, whose
    /// clients know no headers.
    fn check_arguments(&self, http: &HttpRequest, method: &str, params: &RawValue) -> Result<(), RpcError> {
        if method != "tools/call" || http.grant == Grant::client() {
            return Ok(());
        }
        let Ok(params) = Members::read(params) else { return Ok(()) };
        let shown = self.shown();
        let tool = params.text("name").and_then(|name| shown.tool(&http.address, &name));
        tool.map_or(Ok(()), |tool| headers::check_arguments(&http.headers, &tool.headers, params.get("arguments")))
    }

    fn legacy_caller(&self, http: &HttpRequest, wants_events: bool) -> Result<McpCaller, RpcError> {
        if http.headers.get(SESSION).is_none() {
            let message = "the header Mcp-Session-Id is missing: send `initialize` first, or a version in params._meta";
            return Err(RpcError::invalid_request(message));
        }
        let session = self.session(http).ok_or_else(RpcError::unknown_session)?;
        if let Some(said) = http.headers.get(headers::VERSION)
            && said.to_str().ok().and_then(Version::parse).is_none()
        {
            return Err(RpcError::invalid_request(
                "the header MCP-Protocol-Version names a version that is not spoken",
            ));
        }
        // Without a stream there is no way to ask it anything.
        let capabilities = if wants_events { session.capabilities } else { Capabilities::default() };
        Ok(self.caller(http, session.version, Some(session.random), &capabilities.to_json()))
    }

    fn caller(&self, http: &HttpRequest, version: Version, session: Option<u64>, can: &Value) -> McpCaller {
        let is_public = !self.tokens.are_required();
        let (grant, address) = (http.grant.clone(), http.address.clone());
        let capabilities = to_raw_value(can).unwrap_or_default().into();
        McpCaller { grant, address, version, session, is_public, waits: http.waits, capabilities }
    }

    /// The session that the header names, if it is the sender's and has not ended.
    fn session(&self, http: &HttpRequest) -> Option<McpSession> {
        let id = http.headers.get(SESSION)?.to_str().ok()?;
        let view = http.address.to_string();
        let session = self.key.read(id, Whose { token: &http.grant.name, view: &view }, SystemTime::now())?;
        (!self.sessions.has_ended(session.random)).then_some(session)
    }

    fn check_view(&self, address: &Address) -> Result<(), Refusal> {
        if self.has_view(address) {
            return Ok(());
        }
        Err(Refusal::status(StatusCode::NOT_FOUND, &self.shown().no_view(address)))
    }

    /// Answers by JSON if that is soon, else by events if the client takes them.
    async fn run(
        self: &Arc<Self>,
        request: McpRequest,
        wants_events: bool,
        goes_on: &(dyn Fn() + Send + Sync),
    ) -> Result<HttpAnswer, RpcError> {
        let permit = Arc::clone(&self.in_flight).try_acquire_owned().map_err(|_| RpcError::busy("requests"))?;
        let (id, caller, presence) = (request.id.clone(), request.caller.clone(), request.presence.clone());
        let (events, told) = mpsc::channel(PIECES);
        let mut told = wants_events.then_some(told);
        let door = Arc::clone(self);
        let mut work = Work::start(&caller, presence, async move {
            let (started, era) = (Instant::now(), request.caller.era());
            let method = label(&request.method);
            let cancelled = CountCancelled::new(&door.metrics.mcp, method, era);
            let answer = door.answer(request, events).await;
            cancelled.done();
            door.count(method, era, &answer, started);
            drop(permit);
            answer
        });
        work.known = caller.session.map(|session| self.running.add(session, &id, work.abort_handle()));
        goes_on();
        let mut signs = interval_at(time::Instant::now() + SIGNS, SIGNS);
        let soon = sleep(SOON);
        tokio::pin!(soon);
        let first = loop {
            tokio::select! {
                biased;
                event = next(&mut told) => break Some(event),
                answer = work.done() => return Ok(self.respond_or_end(&id, answer.as_ref(), wants_events)),
                () = soon.as_mut(), if wants_events => break None,
                _ = signs.tick(), if !wants_events => goes_on(),
            }
        };
        let Some(place) = self.streams.place() else {
            // What is told meanwhile is lost; the answer is not.
            drop(told.take());
            loop {
                tokio::select! {
                    answer = work.done() => return Ok(self.respond_or_end(&id, answer.as_ref(), wants_events)),
                    _ = signs.tick() => goes_on(),
                }
            }
        };
        let (pieces, body) = mpsc::channel(PIECES);
        let log = caller.session.map(|session| self.streams.keep(session));
        let has_priming = caller.version == Version::V2025_11_25;
        let stream = AnswerStream { id, work, told, log, live: Some((pieces, place)), has_priming };
        tokio::spawn(stream.run(first));
        Ok(HttpAnswer::Stream(body))
    }

    /// What was given up is not answered: a stream ends without a word. Who takes JSON alone waits for something.
    fn respond_or_end(&self, id: &Id, answer: Option<&RpcAnswer>, wants_events: bool) -> HttpAnswer {
        match answer {
            Some(answer) => self.respond(id, answer),
            None if wants_events => HttpAnswer::Stream(mpsc::channel(1).1),
            None => self.failure(Some(id), &RpcError::internal("the request was cancelled")),
        }
    }

    fn respond(&self, id: &Id, answer: &RpcAnswer) -> HttpAnswer {
        match answer {
            Ok(result) => whole(StatusCode::OK, Envelope::write_result(id, result)),
            Err(error) => self.failure(Some(id), error),
        }
    }

    fn failure(&self, id: Option<&Id>, error: &RpcError) -> HttpAnswer {
        let mut answer = whole(error.status, Envelope::write_error(id, &error.object));
        if let HttpAnswer::Whole { headers, .. } = &mut answer {
            if error.status == StatusCode::SERVICE_UNAVAILABLE {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            let challenge = error.scope.map(|scope| self.tokens.challenge(Refused::TooLittle(scope)));
            if let Some(Ok(challenge)) = challenge.map(HeaderValue::try_from) {
                headers.insert(WWW_AUTHENTICATE, challenge);
            }
        }
        answer
    }

    fn count(&self, method: &str, era: Era, answer: &RpcAnswer, started: Instant) {
        let outcome = if answer.is_ok() { "result" } else { "error" };
        let McpMetrics { requests, duration, .. } = &self.metrics.mcp;
        requests.with_label_values(&[label(method), era.as_str(), outcome]).inc();
        duration.with_label_values(&[label(method)]).observe(started.elapsed().as_secs_f64());
    }

    /// A legacy client gives a request up. A modern one leaves its stream.
    fn cancel(&self, http: &HttpRequest, params: Option<&RawValue>) {
        let Some(session) = self.session(http) else { return };
        let named = params.and_then(|params| Id::read(Members::read(params).ok()?.get("requestId")?));
        if let Some(id) = named {
            self.running.cancel(session.random, &id);
        }
    }

    fn get(self: &Arc<Self>, http: &HttpRequest) -> Result<HttpAnswer, Refusal> {
        let session = self.session_of(http)?;
        if !accepted(&http.headers)? {
            return Err(Refusal::status(StatusCode::NOT_ACCEPTABLE, "this is a stream; accept text/event-stream"));
        }
        let last = http.headers.get(LAST_EVENT).and_then(|last| last.to_str().ok());
        if let Some(rest) = last.and_then(|last| self.streams.resume(session.random, last)) {
            return Ok(HttpAnswer::Stream(rest));
        }
        // A client goes on without the stream if it is told that there is none.
        let changes = self.tell_of_changes(session.random, &http.address, http.stopped.clone());
        changes.map(HttpAnswer::Stream).ok_or_else(|| not_allowed("POST, DELETE"))
    }

    fn delete(&self, http: &HttpRequest) -> Result<HttpAnswer, Refusal> {
        let session = self.session_of(http)?;
        self.sessions.end(session.random);
        self.subscriptions.end(session.random);
        self.upstreams.end_session(&session_name(session.random));
        Ok(empty(StatusCode::NO_CONTENT))
    }

    fn session_of(&self, http: &HttpRequest) -> Result<McpSession, Refusal> {
        if http.headers.get(SESSION).is_none() {
            return Err(not_allowed("POST"));
        }
        self.session(http).ok_or_else(|| RpcError::unknown_session().into())
    }
}

/// A request as it stands in the body.
#[derive(Clone, Copy)]
struct Asked<'a> {
    id: &'a Id,
    method: &'a str,
    params: Option<&'a RawValue>,
}

/// Methods that are labels of metrics.
const METHODS: [&str; 10] = [
    "initialize",
    "server/discover",
    "ping",
    "logging/setLevel",
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "subscriptions/listen",
];

fn label(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| *known == method).unwrap_or("other")
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or_default());
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::status(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send JSON, with `content-type: application/json`"))
}

/// Does the client take events? One that takes neither them nor JSON is refused.
fn accepted(headers: &HeaderMap) -> Result<bool, Refusal> {
    let mut ranges =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    if headers.get(ACCEPT).is_none() {
        return Ok(false);
    }
    let ranges: Vec<String> =
        ranges.by_ref().map(|range| range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()).collect();
    let has = |wanted: &[&str]| ranges.iter().any(|range| wanted.contains(&range.as_str()));
    let takes_events = has(&["text/event-stream", "text/*"]);
    if takes_events || has(&["application/json", "application/*", "*/*"]) {
        return Ok(takes_events);
    }
    Err(Refusal::status(StatusCode::NOT_ACCEPTABLE, "accept application/json and text/event-stream"))
}

/// Does the header name a version of the modern era? Versions are dates, so they are ordered as texts; what is none is
/// told so by that era's words.
fn says_modern(headers: &HeaderMap) -> bool {
    let said = headers.get(headers::VERSION).and_then(|value| value.to_str().ok());
    said.is_some_and(|said| said >= Version::LATEST_MODERN.as_str())
}

fn not_allowed(allowed: &'static str) -> Refusal {
    Refusal::status(StatusCode::METHOD_NOT_ALLOWED, "this method needs a session of `initialize`").with(ALLOW, allowed)
}

fn empty(status: StatusCode) -> HttpAnswer {
    HttpAnswer::Whole { status, headers: HeaderMap::new(), body: Bytes::new() }
}

fn whole(status: StatusCode, body: String) -> HttpAnswer {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    HttpAnswer::Whole { status, headers, body: body.into() }
}

impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HttpRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_takes_is_read_from_its_ranges() {
        let check = |accept: Option<&str>, expected: Option<bool>| {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (ACCEPT, HeaderValue::from_str(accept).unwrap())));
            assert_eq!(accepted(&headers).ok(), expected, "{accept:?}");
        };
        check(None, Some(false));
        check(Some("application/json"), Some(false));
        check(Some("*/*"), Some(false));
        check(Some("application/json, text/event-stream"), Some(true));
        check(Some("Text/Event-Stream;q=0.9"), Some(true));
        check(Some("text/html"), None);
    }

    #[test]
    fn a_version_is_modern_by_its_date() {
        let check = |said: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(headers::VERSION, HeaderValue::from_str(said).unwrap());
            assert_eq!(says_modern(&headers), expected, "{said}");
        };
        check("2025-11-25", false);
        check("2026-07-28", true);
        check("2031-01-01", true);
        check("v999.0.0", true);
    }
}
