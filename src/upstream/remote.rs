//! A server at a URL: what the conversation writes as lines is posted there, and what comes back is read as lines.
//!
//! To the conversation it looks like a program: so all that is kept, watched and timed of programs holds for it too.
//! Redirects are followed within their origin only and proxies of the environment are not used: credentials go where
//! the configuration says. The answer of a legacy server whose stream breaks off is asked for by the last event's id.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use rustls::RootCertStore;
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::lines::MAX_MESSAGE_BYTES;
use super::redirect;
use super::token::NoToken;
use super::way_in::WayIn;
use crate::jsonrpc::lines::{LineReader, MessageLine};
use crate::jsonrpc::param_headers::ToolHeaders;
use crate::jsonrpc::sse::{EventPlace, SseReader};
use crate::jsonrpc::wire_headers::{self, SESSION, VERSION};
use crate::jsonrpc::{Envelope, ErrorObject, Id, Members, MessageLimits, code};
use crate::tls::{self, TlsError};

/// Until a connection is there.
const CONNECT: Duration = Duration::from_secs(10);

/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(50);

/// Between two tries to follow a server's stream of notifications.
const AGAIN: Duration = Duration::from_secs(5);

/// How long the end of a session may take to be told.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where a stream is to go on.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long the conversation may take to hear of its end, on a machine that is busy.
const HEARD: Duration = Duration::from_secs(60);

/// Bytes between the conversation and this.
const PIPE: usize = 64 << 10;

/// Redirects that are followed for one request.
const MAX_REDIRECTS: usize = 3;

/// Times in a row that the rest of a stream is asked for, and nothing comes.
const MAX_RESUMES: usize = 5;

/// Before the rest of a stream is asked for, unless the server says how long to wait; and at most, whatever it says.
const RESUME: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Requests that fail within this time of each other fail together.
const SAME_TIME: Duration = Duration::from_millis(50);

/// Statuses that say nothing of which era a server is of.
const MUTE: [u16; 6] = [401, 403, 407, 408, 421, 429];

/// A server that cannot be asked at its URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    #[error("`{0}` is no URL of a server")]
    Url(String),
    #[error("the value of the header `{0}` cannot be sent")]
    Header(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A conversation with a server at a URL.
pub(super) struct RemoteStream {
    pub(super) reader: ReadHalf<DuplexStream>,
    pub(super) writer: WriteHalf<DuplexStream>,
    /// How the server makes it end, if it does.
    pub(super) end: mpsc::UnboundedReceiver<RemoteEnd>,
}

/// What is told of a conversation that a server makes end.
#[derive(Debug)]
pub(super) enum RemoteEnd {
    /// Why, and the number of the request that was not done for it; nothing more is to be asked.
    Over(String, Option<u64>),
    /// The number of a request that was not done, and will not be.
    Undone(u64),
    /// Nothing more is told.
    Told,
}

/// A server at a URL.
struct Remote {
    uri: Uri,
    headers: HeaderMap,
    way_in: WayIn,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    tool_headers: Arc<ToolHeaders>,
    session: Mutex<RemoteSession>,
    /// What is read next by the conversation.
    lines: mpsc::Sender<String>,
}

/// What a legacy server agreed to.
#[derive(Debug, Clone, Default)]
struct RemoteSession {
    id: Option<HeaderValue>,
    version: Option<String>,
}

/// Why the conversation is over.
struct Over {
    why: String,
    /// The number of the request that showed it, if it was not done.
    undone: Option<u64>,
}

impl Over {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), undone: None }
    }

    /// At a request that was not done.
    fn at(id: &Id, why: impl Into<String>) -> Self {
        Self { why: why.into(), undone: id.as_number() }
    }
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("it cannot be reached: {source}{}", source_of(.source))]
    Http {
        #[from]
        source: hyper_util::client::legacy::Error,
    },
    #[error(transparent)]
    Token(#[from] NoToken),
}

impl SendError {
    /// Did it fail before the request left?
    fn is_before(&self) -> bool {
        match self {
            Self::Http { source } => source.is_connect(),
            Self::Token(_) => true,
        }
    }
}

fn source_of(error: &hyper_util::client::legacy::Error) -> String {
    std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default()
}

/// Begins to speak to the server at a URL, with these headers. Must be called within the runtime.
pub(super) fn open(
    url: &str,
    headers: &[(String, String)],
    way_in: WayIn,
    tool_headers: Arc<ToolHeaders>,
) -> Result<RemoteStream, RemoteError> {
    let uri: Uri = url.parse().map_err(|_| RemoteError::Url(url.to_owned()))?;
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || RemoteError::Header(name.clone());
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        map.insert(HeaderName::try_from(name.as_str()).map_err(|_| wrong())?, value);
    }
    let (near, far) = duplex(PIPE);
    let (lines, told) = mpsc::channel(64);
    let client = client(uri.scheme_str() == Some("https"))?;
    let remote = Arc::new(Remote { uri, headers: map, way_in, client, tool_headers, session: Mutex::default(), lines });
    let (ended, end) = mpsc::unbounded_channel();
    let (reader, writer) = split(far);
    tokio::spawn(remote.run(reader, writer, told, ended));
    let (reader, writer) = split(near);
    Ok(RemoteStream { reader, writer, end })
}

fn client(is_tls: bool) -> Result<Client<HttpsConnector<HttpConnector>, Full<Bytes>>, RemoteError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT));
    let roots = if is_tls { tls::system_roots()? } else { RootCertStore::empty() };
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls::client_config(roots)?);
    let schemes = if is_tls { builder.https_only() } else { builder.https_or_http() };
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(schemes.enable_http1().wrap_connector(http)))
}

impl Remote {
    /// Until the conversation ends, or the server makes it end.
    async fn run(
        self: Arc<Self>,
        reader: ReadHalf<DuplexStream>,
        mut writer: WriteHalf<DuplexStream>,
        mut told: mpsc::Receiver<String>,
        ended: mpsc::UnboundedSender<RemoteEnd>,
    ) {
        let mut reader = LineReader::new(reader, MAX_MESSAGE_BYTES);
        let mut posts: JoinSet<Result<(), Over>> = JoinSet::new();
        let mut asked: HashMap<u64, AbortHandle> = HashMap::new();
        let over = loop {
            tokio::select! {
                line = reader.next() => match line {
                    Ok(Some(MessageLine::Whole(line))) => {
                        if let Err(over) = self.take(line, &mut posts, &mut asked).await {
                            break Some(over);
                        }
                    }
                    // No message of ours is that long.
                    Ok(Some(MessageLine::TooLong(..))) => {}
                    Ok(None) | Err(_) => break None,
                },
                Some(line) = told.recv() => {
                    if writer.write_all(line.as_bytes()).await.is_err() {
                        break None;
                    }
                }
                Some(posted) = posts.join_next(), if !posts.is_empty() => {
                    asked.retain(|_, post| !post.is_finished());
                    if let Ok(Err(over)) = posted {
                        break Some(over);
                    }
                }
            }
        };
        if let Some(over) = over {
            // If it fails, nobody waits for any answer.
            let _ = ended.send(RemoteEnd::Over(over.why, over.undone));
            let undone = |number| drop(ended.send(RemoteEnd::Undone(number)));
            // What breaks one request breaks the others at the same time, and what is still read here never left.
            let rest = async {
                let (mut is_read, mut are_done) = (false, posts.is_empty());
                while !(is_read && are_done) {
                    tokio::select! {
                        line = reader.next(), if !is_read => match line {
                            Ok(Some(MessageLine::Whole(line))) => number_of(&line).into_iter().for_each(undone),
                            Ok(Some(MessageLine::TooLong(..))) => {}
                            Ok(None) | Err(_) => is_read = true,
                        },
                        posted = posts.join_next(), if !are_done => match posted {
                            Some(Ok(Err(other))) => other.undone.into_iter().for_each(undone),
                            Some(_) => {}
                            None => are_done = true,
                        },
                    }
                }
            };
            let _ = timeout(SAME_TIME, rest).await;
        }
        drop(posts);
        while let Ok(line) = told.try_recv() {
            // Whoever does not read it any more does not need it.
            let _ = writer.write_all(line.as_bytes()).await;
        }
        if ended.send(RemoteEnd::Told).is_ok() {
            // All of it is heard before the conversation sees its end.
            let _ = timeout(HEARD, ended.closed()).await;
        }
        let _ = writer.shutdown().await;
        self.bid_farewell().await;
    }

    /// Sends a message of the conversation.
    async fn take(
        self: &Arc<Self>,
        line: Vec<u8>,
        posts: &mut JoinSet<Result<(), Over>>,
        asked: &mut HashMap<u64, AbortHandle>,
    ) -> Result<(), Over> {
        let body = Bytes::from(line);
        let limits = MessageLimits::of_bytes(MAX_MESSAGE_BYTES);
        let message = Envelope::read(&body, limits);
        match message {
            Ok(Envelope::Request { id, method, params }) => {
                let headers = self.modern_headers(&method, params);
                let (remote, number, body) = (Arc::clone(self), id.as_number(), body.clone());
                let post = posts.spawn(async move { remote.ask(id, &method, headers, body).await });
                if let Some(number) = number {
                    asked.insert(number, post);
                }
                Ok(())
            }
            Ok(Envelope::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    let named = params.and_then(|params| Id::read(Members::read(params).ok()?.get("requestId")?));
                    let post = named.and_then(|id| asked.remove(&id.as_number()?));
                    // A modern server hears of it by the end of the stream, and of nothing else.
                    if self.session.lock().version.is_none() {
                        post.iter().for_each(AbortHandle::abort);
                        return Ok(());
                    }
                }
                // In order: what follows may rest on it.
                let posted = timeout(CONNECT, self.post(body.clone(), HeaderMap::new())).await;
                if method == "notifications/initialized" && matches!(posted, Ok(Ok(_))) {
                    let remote = Arc::clone(self);
                    posts.spawn(async move { remote.follow().await });
                }
                Ok(())
            }
            Ok(Envelope::Response { .. }) => {
                let remote = Arc::clone(self);
                posts.spawn(async move {
                    // Nobody hears whether it arrived.
                    let _ = remote.post(body, HeaderMap::new()).await;
                    Ok(())
                });
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    async fn post(&self, body: Bytes, more: HeaderMap) -> Result<Response<Incoming>, SendError> {
        self.send_to(Method::POST, body, more).await
    }

    /// Sends a request, with a token if the server wants one and we may have one. Refused once, it is sent again with
    /// another: what is refused was not done.
    async fn send_to(&self, method: Method, body: Bytes, mut more: HeaderMap) -> Result<Response<Incoming>, SendError> {
        let Some(tokens) = self.way_in.tokens(&self.headers) else {
            return Ok(self.send_where(method, body, more).await?);
        };
        let sent = tokens.current().await?;
        more.extend(sent.iter().map(|token| (AUTHORIZATION, token.header.clone())));
        let response = self.send_where(method.clone(), body.clone(), more.clone()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let token = tokens.after_refusal(sent.as_ref(), response.headers()).await?;
        more.insert(AUTHORIZATION, token.header);
        Ok(self.send_where(method, body, more).await?)
    }

    /// Sends a request, to where the server says if that is of the same origin.
    async fn send_where(
        &self,
        method: Method,
        body: Bytes,
        more: HeaderMap,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        let mut uri = self.uri.clone();
        for _ in 0..MAX_REDIRECTS {
            let request = self.request(method.clone(), &uri, Full::new(body.clone()), more.clone());
            let response = self.client.request(request).await?;
            match redirect::target(&uri, &response) {
                Some(next) => uri = next,
                None => return Ok(response),
            }
        }
        self.client.request(self.request(method, &uri, Full::new(body), more)).await
    }

    fn request(&self, method: Method, uri: &Uri, body: Full<Bytes>, more: HeaderMap) -> Request<Full<Bytes>> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri.clone();
        let session = self.session.lock().clone();
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(id) = session.id {
            headers.insert(HeaderName::from_static(SESSION), id);
        }
        if let Some(Ok(version)) = session.version.map(HeaderValue::try_from) {
            headers.insert(HeaderName::from_static(VERSION), version);
        }
        headers.extend(more);
        request
    }

    /// Asks, and hands on what is answered.
    async fn ask(self: Arc<Self>, id: Id, method: &str, headers: HeaderMap, body: Bytes) -> Result<(), Over> {
        let is_greeting = matches!(method, "server/discover" | "initialize");
        let response = match self.post(body, headers).await {
            Ok(response) => response,
            // The others may have theirs.
            Err(SendError::Token(fault)) if !is_greeting => return self.answer_error(&id, &fault.to_string()).await,
            Err(error) if error.is_before() => return Err(Over::at(&id, error.to_string())),
            Err(error) => return Err(Over::new(error.to_string())),
        };
        let status = response.status();
        if method == "initialize" && status.is_success() {
            self.session.lock().id = response.headers().get(SESSION).cloned();
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if status.is_success() && kind.starts_with("text/event-stream") {
            return self.relay(&id, method, response.into_body()).await;
        }
        let read = Limited::new(response.into_body(), MAX_MESSAGE_BYTES).collect().await;
        let Ok(body) = read.map(http_body_util::Collected::to_bytes) else {
            return self.answer_error(&id, "its answer broke off, or is too long; the call may have run").await;
        };
        let limits = MessageLimits::of_bytes(MAX_MESSAGE_BYTES);
        if status == StatusCode::NOT_FOUND && self.session.lock().id.is_some() {
            return Err(Over::at(&id, "it does not know the session any more"));
        }
        let is_mute = MUTE.contains(&status.as_u16()) || status.is_server_error();
        match Envelope::read(&body, limits) {
            Ok(Envelope::Response { id: of, outcome }) if of.as_ref() == Some(&id) => {
                self.heed(method, outcome);
                return self.hand_on(&body).await;
            }
            // What refuses a message before it is read does not know its id; whose answer it is, HTTP says.
            Ok(Envelope::Response { id: None, outcome: Err(error) }) if !is_mute => {
                return self.send(Envelope::write_raw_error(Some(&id), error.get())).await;
            }
            Err(error) if status.is_success() && !is_greeting => {
                let why = format!("its answer cannot be read ({error}); the call may have run");
                return self.answer_error(&id, &why).await;
            }
            _ => {}
        }
        if method == "server/discover" && !is_mute {
            // It is none of this era.
            let error = ErrorObject::new(code::METHOD_NOT_FOUND, format!("it answered {status}"));
            return self.send(Envelope::write_error(Some(&id), &error)).await;
        }
        if is_greeting {
            return Err(Over::new(format!("it answered {status}{}", self.way_in.greeted(status, &self.headers))));
        }
        self.answer_error(&id, &format!("it answered {status}{}", self.way_in.hint(status, &self.headers))).await
    }

    /// The headers of a modern request; none of a legacy one.
    fn modern_headers(&self, method: &str, params: Option<&RawValue>) -> HeaderMap {
        let own = wire_headers::modern(method, params);
        let repeated = if own.is_empty() { Vec::new() } else { self.tool_headers.write(method, params) };
        let valid = |(name, value): (String, String)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        };
        own.into_iter().chain(repeated).filter_map(valid).collect()
    }

    /// Notes what the server agreed to.
    fn heed(&self, method: &str, outcome: Result<&RawValue, &RawValue>) {
        if method == "initialize"
            && let Ok(result) = outcome
        {
            let version =
                Members::read(result).ok().and_then(|members| members.text("protocolVersion").map(Into::into));
            self.session.lock().version = version;
        }
    }

    async fn answer_error(&self, id: &Id, message: &str) -> Result<(), Over> {
        self.send(Envelope::write_error(Some(id), &ErrorObject::new(code::INTERNAL, message))).await
    }

    async fn hand_on(&self, message: &[u8]) -> Result<(), Over> {
        // A message may be laid out over lines.
        let line: Vec<u8> =
            message.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect();
        match String::from_utf8(line) {
            Ok(line) => self.send(line).await,
            Err(_) => Ok(()),
        }
    }

    async fn send(&self, mut line: String) -> Result<(), Over> {
        line.push('\n');
        self.lines.send(line).await.map_err(|_| Over::new("the conversation has ended"))
    }

    /// Hands on what a stream has for the question, and asks for the rest of one that breaks off.
    async fn relay(&self, id: &Id, method: &str, body: Incoming) -> Result<(), Over> {
        let (mut place, mut body, mut resumes) = (EventPlace::default(), Some(body), 0);
        while let Some(stream) = body.take() {
            let before = place.clone();
            if self.relay_events(Some((id, method)), stream, &mut place).await? {
                return Ok(());
            }
            resumes = if place.last_id == before.last_id { resumes + 1 } else { 0 };
            if resumes < MAX_RESUMES {
                body = self.resume(&place).await;
            }
        }
        self.answer_error(id, "its stream ended without an answer; the call may have run").await
    }

    /// The rest of a legacy server's stream, if its events have ids.
    async fn resume(&self, place: &EventPlace) -> Option<Incoming> {
        let last = HeaderValue::try_from(place.last_id.as_ref()?).ok()?;
        // A modern server's streams cannot be asked for again.
        self.session.lock().version.as_ref()?;
        sleep(place.retry.unwrap_or(RESUME[0]).min(RESUME[1])).await;
        let response = self.listen(Some(last)).await.ok()?;
        response.status().is_success().then(|| response.into_body())
    }

    async fn listen(&self, last: Option<HeaderValue>) -> Result<Response<Incoming>, SendError> {
        let more = last.into_iter().map(|last| (LAST_EVENT, last)).collect();
        self.send_to(Method::GET, Bytes::new(), more).await
    }

    /// Hands on the events of a stream: until the answer of `asked`, which is told, or its end.
    async fn relay_events(
        &self,
        asked: Option<(&Id, &str)>,
        mut body: Incoming,
        place: &mut EventPlace,
    ) -> Result<bool, Over> {
        let mut events = SseReader::new(MAX_MESSAGE_BYTES);
        let limits = MessageLimits::of_bytes(MAX_MESSAGE_BYTES);
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { break };
            let Some(piece) = frame.data_ref() else { continue };
            events.push(piece);
            while let Some(message) = events.next() {
                let mut is_answer = false;
                if let (Some((id, method)), Ok(Envelope::Response { id: of, outcome })) =
                    (asked, Envelope::read(message.as_bytes(), limits))
                    && of.as_ref() == Some(id)
                {
                    self.heed(method, outcome);
                    is_answer = true;
                }
                self.hand_on(message.as_bytes()).await?;
                if is_answer {
                    return Ok(true);
                }
            }
            place.follow(events.place());
        }
        Ok(false)
    }

    /// Follows what a legacy server tells without being asked; until it says that it tells nothing.
    async fn follow(self: Arc<Self>) -> Result<(), Over> {
        let mut place = EventPlace::default();
        loop {
            let last = place.last_id.as_ref().and_then(|last| HeaderValue::try_from(last).ok());
            match self.listen(last).await {
                Ok(response) if response.status().is_success() => {
                    self.relay_events(None, response.into_body(), &mut place).await?;
                }
                Ok(_) if place.last_id.take().is_some() => {}
                Ok(_) => return Ok(()),
                Err(_) => {}
            }
            sleep(place.retry.unwrap_or(AGAIN).clamp(RESUME[0], RESUME[1])).await;
        }
    }

    /// Ends the session of a legacy server.
    async fn bid_farewell(&self) {
        if self.session.lock().id.is_none() {
            return;
        }
        // It may not know how, or be gone.
        let _ = timeout(FAREWELL, self.send_to(Method::DELETE, Bytes::new(), HeaderMap::new())).await;
    }
}

/// The number of a request.
fn number_of(line: &[u8]) -> Option<u64> {
    match Envelope::read(line, MessageLimits::of_bytes(MAX_MESSAGE_BYTES)) {
        Ok(Envelope::Request { id, .. }) => id.as_number(),
        _ => None,
    }
}
