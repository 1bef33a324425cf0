//! One request: who may, which route, the answer, and what is counted.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{self, Poll};
use std::time::{Duration, Instant, SystemTime};

use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use prometheus::{Histogram, IntCounter};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::cors;
use super::guard::{Door, Guard};
use super::patience::patiently;
use super::progress::Progress;
use super::{body, request_id};
use crate::access::{Grant, Scope, TokenKeeper};
use crate::blocking::NoThread;
use crate::engine::Generation;
use crate::http::answer::Answer;
use crate::http::handler::{Access, Context, Handler, Request, Revoked, Route, Upload, blocking};
use crate::http::json_body::JsonBody;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::routes::{self, TOOL, catalog};
use crate::http::settings::Settings;
use crate::telemetry::{Metrics, SeriesExemplars};
use crate::wire::problem::Code;

const GENERATION: HeaderName = HeaderName::from_static("x-almanac-generation");
/// A body from this many bytes on is worked on where nobody else waits for the thread.
const LARGE_BODY: usize = 64 * 1024;

/// Longest path that is compared with those that are served.
const MAX_MISSPELT: usize = 64;

/// How long a body is waited for when the doors close: the daemon ends in time, and the client is told.
const LAST_BODY: Duration = Duration::from_secs(3);

/// Large bodies that are worked on at once; further ones wait, so that they cannot take all processors.
const LARGE_AT_ONCE: usize = 2;

const TOOL_PREFIX: &str = "/v1/tools/";

/// The door's service, shared by all connections.
pub struct Service {
    context: Arc<Context>,
    guard: Arc<Guard>,
    settings: Settings,
    routes: Vec<Counted>,
    paths: matchit::Router<Vec<usize>>,
    /// The route of a tool's document.
    tool: usize,
    /// Places for streams that the daemon sends.
    sent_streams: Arc<Semaphore>,
    /// Places for streams that are sent to it.
    read_streams: Arc<Semaphore>,
    /// Turns to work on a large body.
    large: Semaphore,
    /// Counts what matched no route.
    unmatched: Counts,
    /// Connections so far.
    accepted: AtomicU64,
    /// Are the doors closing? Then every answer is the last of its connection.
    stopping: AtomicBool,
    /// The same, for those who wait for it.
    stopped: watch::Sender<bool>,
}

struct Counted {
    route: Route,
    has_body: bool,
    /// The parameters that its query may have.
    parameters: Vec<&'static str>,
    counts: Counts,
}

impl Counted {
    fn new(route: Route) -> Self {
        let operation = (route.operation)();
        let in_query = operation.parameters.iter().filter(|parameter| parameter.place == "query");
        Self {
            counts: Counts::new(route.path),
            has_body: operation.body.is_some(),
            parameters: in_query.map(|parameter| parameter.name).collect(),
            route,
        }
    }
}

/// Metric handles of one route, resolved on first use.
struct Counts {
    label: &'static str,
    duration: OnceLock<(Histogram, Arc<SeriesExemplars>)>,
    /// By method, then by status less 100.
    requests: [OnceLock<Box<[OnceLock<IntCounter>]>>; METHODS.len()],
}

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "other"];

impl Counts {
    fn new(label: &'static str) -> Self {
        Self { label, duration: OnceLock::new(), requests: Default::default() }
    }

    fn count(&self, metrics: &Metrics, method: &Method, status: StatusCode, id: &HeaderValue, took: Duration) {
        let number = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
        let by_code = self.requests[number].get_or_init(|| (100..600).map(|_| OnceLock::new()).collect());
        let slot = &by_code[usize::from(status.as_u16()).clamp(100, 599) - 100];
        slot.get_or_init(|| metrics.http_counter(self.label, METHODS[number], status.as_str())).inc();
        let (duration, exemplars) = self.duration.get_or_init(|| {
            (metrics.http_duration.with_label_values(&[self.label]), metrics.http_exemplars.of(self.label))
        });
        duration.observe(took.as_secs_f64());
        exemplars.observe(took.as_secs_f64(), SystemTime::now, id.to_str().unwrap_or_default());
    }
}

/// An answer that is there, or is worked on.
pub(super) enum ResponseFuture {
    Now(Option<Answer>),
    Later(Pin<Box<dyn Future<Output = Answer> + Send>>),
}

impl ResponseFuture {
    fn now(answer: Answer) -> Self {
        Self::Now(Some(answer))
    }
}

impl Future for ResponseFuture {
    type Output = Result<Answer, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now(answer) => Poll::Ready(Ok(answer.take().expect("a future is not polled after it ended"))),
            Self::Later(future) => future.as_mut().poll(context).map(Ok),
        }
    }
}

/// A route that a request may take.
struct Routed {
    index: usize,
    grant: Grant,
    parameter: Option<String>,
    query: Query,
    has_console: bool,
}

/// What is known of a request when it arrives, and told or counted when it is answered.
struct Arrived {
    method: Method,
    id: HeaderValue,
    traceparent: Option<HeaderValue>,
    /// Of a page that may read the answer.
    origin: Option<HeaderValue>,
    generation: Arc<Generation>,
    started: Instant,
}

impl Service {
    /// The door's service.
    ///
    /// # Errors
    /// If two routes exclude each other, which a test rules out.
    pub fn new(context: Context, tokens: Arc<TokenKeeper>, settings: &Settings) -> Result<Self, matchit::InsertError> {
        let routes: Vec<Counted> = routes::table().into_iter().map(Counted::new).collect();
        let mut by_path: Vec<(&'static str, Vec<usize>)> = Vec::new();
        for (index, counted) in routes.iter().enumerate() {
            match by_path.iter_mut().find(|(path, _)| *path == counted.route.path) {
                Some((_, indices)) => indices.push(index),
                None => by_path.push((counted.route.path, vec![index])),
            }
        }
        let mut paths = matchit::Router::new();
        for (path, indices) in by_path {
            paths.insert(path, indices)?;
        }
        let tool = routes.iter().position(|counted| counted.route.path == TOOL).unwrap_or_default();
        Ok(Self {
            guard: Arc::new(Guard::new(tokens, settings)),
            sent_streams: Arc::new(Semaphore::new(settings.max_streams)),
            read_streams: Arc::new(Semaphore::new(settings.max_streams)),
            large: Semaphore::new(LARGE_AT_ONCE),
            settings: settings.clone(),
            unmatched: Counts::new("unmatched"),
            context: Arc::new(context),
            routes,
            paths,
            tool,
            accepted: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            stopped: watch::Sender::new(false),
        })
    }

    /// From now on every answer is the last of its connection, and streams are not waited for.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stopped.send_replace(true);
        self.context.metrics.feed.close();
    }

    /// Ends so long after the doors began to close.
    async fn stopped_for(&self, time: Duration) {
        // It fails if nobody can stop it any more, which is when this is gone.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
        tokio::time::sleep(time).await;
    }

    /// A connection came.
    pub(super) fn connected(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that came so far, and those that are open.
    pub fn connections(&self) -> (u64, u64) {
        let open = self.context.metrics.http_connections.get().max(0) as u64;
        (self.accepted.load(Ordering::Relaxed), open)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.context.metrics
    }

    pub(super) fn answer(
        self: &Arc<Self>,
        door: Door,
        request: hyper::Request<Incoming>,
        progress: &Arc<Progress>,
    ) -> ResponseFuture {
        let started = Instant::now();
        let (parts, incoming) = request.into_parts();
        let mut arrived = Arrived {
            method: parts.method.clone(),
            id: request_id::of(&parts.headers),
            traceparent: parts.headers.get(request_id::TRACEPARENT).cloned(),
            origin: self.guard.cors().origin(&parts.headers),
            generation: Arc::clone(&self.context.engine.generation()),
            started,
        };
        progress.request_began(false);
        progress.set_unread(!incoming.is_end_stream());
        if let Some(answer) = self.tool_document(door, &parts, &arrived.generation) {
            return ResponseFuture::now(self.finish(&arrived, Some(self.tool), answer, progress));
        }
        if let Some(answer) = self.preflight(door, &parts) {
            return ResponseFuture::now(self.finish(&arrived, None, answer, progress));
        }
        let routed = match self.route(door, &parts) {
            Ok(routed) => routed,
            Err((index, problem)) => {
                return ResponseFuture::now(self.finish(&arrived, index, problem.into_answer(), progress));
            }
        };
        let (index, Counted { route, has_body, .. }) = (routed.index, &self.routes[routed.index]);
        let mut request = request_of(parts, routed, &arrived.generation);
        if let (Handler::Now(handler), false) = (&route.handler, has_body) {
            let answer = handler(&self.context, &mut request).unwrap_or_else(Problem::into_answer);
            return ResponseFuture::now(self.finish(&arrived, Some(index), answer, progress));
        }
        progress.request_began(route.is_abandoned);
        let (service, progress) = (Arc::clone(self), Arc::clone(progress));
        let authorization = request.headers().get(AUTHORIZATION).cloned();
        let (guard, access) = (Arc::clone(&self.guard), route.access);
        let revoked = move || guard.revoked(door, access, authorization.clone());
        ResponseFuture::Later(Box::pin(async move {
            let answer = service.handle(index, request, incoming, &progress, revoked).await;
            // A reload changes the generation that the answer speaks of.
            arrived.generation = Arc::clone(&service.context.engine.generation());
            service.finish(&arrived, Some(index), answer.unwrap_or_else(Problem::into_answer), &progress)
        }))
    }

    /// The commonest question, answered before the routes are looked at.
    fn tool_document(&self, door: Door, parts: &Parts, generation: &Generation) -> Option<Answer> {
        let Parts { method, uri, headers, version, .. } = parts;
        let is_get = method == Method::GET || method == Method::HEAD;
        let name = uri.path().strip_prefix(TOOL_PREFIX)?;
        if !is_get
            || door == Door::Mcp
            || uri.query().is_some()
            || name.bytes().any(|byte| byte == b'/' || byte == b'%')
        {
            return None;
        }
        let authority = uri.authority().map(hyper::http::uri::Authority::as_str);
        self.guard.check_host(door, *version, authority, headers).ok()?;
        let answer = self
            .guard
            .may(door, Scope::Read, headers)
            .and_then(|()| catalog::document(generation, name, headers))
            .unwrap_or_else(Problem::into_answer);
        Some(answer)
    }

    /// What a browser asks before a page may ask: the methods of that path, whoever would send them.
    fn preflight(&self, door: Door, parts: &Parts) -> Option<Answer> {
        if !matches!(door, Door::Tcp { .. }) || !self.guard.cors().is_preflight(parts) {
            return None;
        }
        let authority = parts.uri.authority().map(hyper::http::uri::Authority::as_str);
        self.guard.check_host(door, parts.version, authority, &parts.headers).ok()?;
        let matched = self.paths.at(parts.uri.path()).ok()?;
        Some(cors::preflight(&self.methods(matched.value)))
    }

    /// The methods of these routes, as a header lists them.
    fn methods(&self, routes: &[usize]) -> String {
        let mut methods: Vec<&str> = routes.iter().map(|&index| self.routes[index].route.method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.join(", ")
    }

    /// Paths that take the method and are nearly spelt like this one.
    fn near_paths(&self, method: &Method, path: &str) -> Vec<String> {
        if path.len() > MAX_MISSPELT {
            return Vec::new();
        }
        let routes = self.routes.iter().map(|known| &known.route);
        let routes = routes.filter(|route| route.method == *method && !matches!(route.access, Access::Socket));
        let near = routes.filter(|route| !route.path.contains('{') && strsim::osa_distance(route.path, path) <= 2);
        near.map(|route| route.path.to_owned()).collect()
    }

    /// The route that is meant, if the sender may take it; else the one, if any, that counts the refusal.
    fn route(&self, door: Door, parts: &Parts) -> Result<Routed, (Option<usize>, Problem)> {
        let Parts { method, uri, headers, version, .. } = parts;
        let authority = uri.authority().map(hyper::http::uri::Authority::as_str);
        self.guard.check_host(door, *version, authority, headers).map_err(|problem| (None, problem))?;
        let Ok(matched) = self.paths.at(uri.path()) else {
            let detail = "nothing is served here; /openapi.json lists all paths";
            let problem = Problem::not_found(Code::UnknownPath, detail);
            return Err((None, problem.with_near(self.near_paths(method, uri.path()))));
        };
        let is_head = method == Method::HEAD;
        let is_meant = |index: &&usize| {
            let meant = &self.routes[**index].route.method;
            meant == method || is_head && meant == Method::GET
        };
        let Some(&index) = matched.value.iter().find(is_meant) else {
            let path = matched.value.first().map_or("this path", |&index| self.routes[index].route.path);
            let problem = Problem::method_not_allowed(path, &self.methods(matched.value));
            return Err((None, problem.with_near(self.near_paths(method, uri.path())).and_close()));
        };
        let access = self.routes[index].route.access;
        let grant = self.guard.check_access(door, access, headers).map_err(|problem| (Some(index), problem))?;
        let parameter = matched.params.iter().next().and_then(|(_, raw)| decode(raw));
        let query =
            Query::parse(uri.query(), &self.routes[index].parameters).map_err(|problem| (Some(index), problem))?;
        let has_console = access == Access::Open && self.guard.check_console(door, headers).is_ok();
        Ok(Routed { index, grant, parameter, query, has_console })
    }

    async fn handle(
        &self,
        index: usize,
        mut request: Request,
        incoming: Incoming,
        progress: &Arc<Progress>,
        revoked: impl Fn() -> Revoked,
    ) -> Result<Answer, Problem> {
        let (Counted { route, has_body, .. }, context) = (&self.routes[index], Arc::clone(&self.context));
        if let Handler::Upload(handler) = route.handler {
            let place = Arc::clone(&self.read_streams).try_acquire_owned();
            let _place = place.map_err(|_| too_many_streams())?;
            let (limits, stopped) = (self.settings.clone(), self.stopped.subscribe());
            let connection = Arc::clone(progress) as _;
            let upload = Upload { body: incoming, limits, connection, stopped, revoked: revoked() };
            let answer = handler(context, request, upload).await?;
            progress.set_unread(false);
            return Ok(while_allowed(answer, revoked));
        }
        if *has_body {
            let most = match route.access {
                Access::Socket => self.settings.max_body_bytes.max(body::ADMIN_BYTES),
                Access::Open | Access::Scope(_) | Access::Console | Access::Mcp => self.settings.max_body_bytes,
            };
            let bytes = tokio::select! {
                bytes = body::collect(request.headers(), incoming, most, self.settings.request_timeout) => bytes?,
                () = self.stopped_for(LAST_BODY) => {
                    let detail = "the daemon stops, and the body has not arrived; send it again";
                    return Err(Problem::unavailable(Code::Stopping, detail).and_close());
                }
            };
            progress.set_unread(false);
            let is_large = bytes.len() >= LARGE_BODY;
            request.body = JsonBody::new(bytes, most);
            if is_large {
                let turn = self.large.acquire().await.map_err(|_| NoThread)?;
                let answer = Self::handle_large(context, route.handler, request);
                let answer = self.waited_for(route.access, progress, answer).await;
                drop(turn);
                return answer;
            }
        }
        let answer = match route.handler {
            Handler::Now(handler) => handler(&context, &mut request),
            Handler::Blocking(handler) => blocking(move || handler(&context, &mut request)).await,
            Handler::Async(handler) => self.waited_for(route.access, progress, handler(context, request)).await,
            Handler::Upload(_) => unreachable!("it was called before the body was read"),
        }?;
        Ok(while_allowed(answer, revoked))
    }

    /// Waits for an answer. What only an administrator asks for may take its time, such as removing all of a tenant's
    /// memories.
    async fn waited_for<T>(&self, access: Access, progress: &Progress, answer: impl Future<Output = T>) -> T {
        match access {
            Access::Socket => patiently(progress, self.settings.request_timeout, answer).await,
            Access::Open | Access::Scope(_) | Access::Console | Access::Mcp => answer.await,
        }
    }

    /// Reads and answers on a thread that may block, from the text of the body to the answer's.
    async fn handle_large(context: Arc<Context>, handler: Handler, mut request: Request) -> Result<Answer, Problem> {
        let runtime = Handle::current();
        blocking(move || match handler {
            Handler::Now(handler) | Handler::Blocking(handler) => handler(&context, &mut request),
            Handler::Async(handler) => runtime.block_on(handler(context, request)),
            Handler::Upload(_) => unreachable!("it reads its body itself"),
        })
        .await
    }

    /// What every answer carries, and what is counted of it; of a stream, at its end.
    fn finish(
        self: &Arc<Self>,
        arrived: &Arrived,
        index: Option<usize>,
        mut answer: Answer,
        progress: &Arc<Progress>,
    ) -> Answer {
        let Arrived { method, id, traceparent, origin, generation, started } = arrived;
        let (status, is_stream) = (answer.status(), answer.body().is_stream());
        let headers = answer.headers_mut();
        headers.insert(request_id::REQUEST_ID, id.clone());
        let label = HeaderValue::from_maybe_shared(generation.label().clone()).expect("a number is visible ASCII");
        headers.insert(GENERATION, label);
        self.guard.cors().mark(origin.as_ref(), headers);
        // A stream's connection has given up its place among those that ask.
        if is_stream || self.stopping.load(Ordering::Relaxed) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if is_stream {
            let Ok(place) = Arc::clone(&self.sent_streams).try_acquire_owned() else {
                return self.finish(arrived, index, too_many_streams().into_answer(), progress);
            };
            progress.stream_began();
            let (service, progress) = (Arc::clone(self), Arc::clone(progress));
            let (method, id, started) = (method.clone(), id.clone(), *started);
            answer.body_mut().when_ended(move || {
                service.counts(index).count(&service.context.metrics, &method, status, &id, started.elapsed());
                progress.request_ended();
                drop(place);
            });
            return answer;
        }
        let (took, counts) = (started.elapsed(), self.counts(index));
        counts.count(&self.context.metrics, method, status, id, took);
        tracing::debug!(
            route = counts.label,
            %method,
            status = status.as_u16(),
            took_us = took.as_secs_f64() * 1e6,
            request_id = id.to_str().unwrap_or_default(),
            trace_id = traceparent.as_ref().and_then(request_id::trace_of),
            "request",
        );
        progress.request_ended();
        answer
    }

    fn counts(&self, index: Option<usize>) -> &Counts {
        index.map_or(&self.unmatched, |index| &self.routes[index].counts)
    }
}

/// Ends an answer that is a stream once whoever asked may not any more.
fn while_allowed(mut answer: Answer, revoked: impl Fn() -> Revoked) -> Answer {
    if answer.body().is_stream() {
        answer.body_mut().until(revoked());
    }
    answer
}

fn too_many_streams() -> Problem {
    Problem::unavailable(Code::TooManyStreams, "there are as many streams as the daemon takes; try again").and_close()
}

fn request_of(parts: Parts, routed: Routed, generation: &Arc<Generation>) -> Request {
    let Routed { grant, parameter, query, has_console, .. } = routed;
    Request {
        parts,
        grant,
        parameter,
        generation: Arc::clone(generation),
        query,
        has_console,
        body: JsonBody::default(),
    }
}

fn decode(raw: &str) -> Option<String> {
    percent_decode_str(raw).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Service").field("routes", &self.routes.len()).finish_non_exhaustive()
    }
}
