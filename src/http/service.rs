//! One request: who may, which route, the answer, and what is counted.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{self, Poll};
use std::time::Instant;

use arc_swap::ArcSwap;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use prometheus::{Histogram, IntCounter};
use tokio::sync::watch;

use super::answer::Answer;
use super::guard::{Door, Guard};
use super::problem::Problem;
use super::progress::Progress;
use super::query::Query;
use super::route::{Access, Handler, Route, TOOL, Whole, table};
use super::{body, catalog, request_id};
use crate::access::{Grant, Scope, Tokens};
use crate::config::Http;
use crate::control::Control;
use crate::engine::{Engine, Generation};
use crate::llm::Llm;
use crate::strict::Node;
use crate::telemetry::Metrics;

const GENERATION: HeaderName = HeaderName::from_static("x-almanac-generation");
const TOOL_PREFIX: &str = "/v1/tools/";

/// What handlers answer from.
#[derive(Debug)]
pub struct Context {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The daemon's own controls.
    pub control: Arc<Control>,
    /// The model that is asked for its opinion on a selection, if there is one.
    pub llm: Option<Arc<Llm>>,
}

/// The door's service, shared by all connections.
pub struct Service {
    context: Arc<Context>,
    guard: Guard,
    limits: Http,
    routes: Vec<Counted>,
    paths: matchit::Router<Vec<usize>>,
    /// The route of a tool's document.
    tool: usize,
    /// Counts what matched no route.
    unmatched: Counts,
    /// Are the doors closing? Then every answer is the last of its connection.
    stopping: AtomicBool,
    /// The same, for those who wait for it.
    stopped: watch::Sender<bool>,
}

struct Counted {
    route: Route,
    has_body: bool,
    counts: Counts,
}

/// Metric handles of one route, resolved on first use.
struct Counts {
    label: &'static str,
    duration: Histogram,
    /// By method (GET, HEAD, other), then by status less 100.
    requests: [OnceLock<Box<[OnceLock<IntCounter>]>>; METHODS.len()],
}

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "other"];

impl Counts {
    fn new(metrics: &Metrics, label: &'static str) -> Self {
        let duration = metrics.http_duration.with_label_values(&[label]);
        Self { label, duration, requests: Default::default() }
    }

    fn count(&self, metrics: &Metrics, method: &Method, status: StatusCode, seconds: f64) {
        let number = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
        let by_code = self.requests[number].get_or_init(|| (100..600).map(|_| OnceLock::new()).collect());
        let slot = &by_code[usize::from(status.as_u16()).clamp(100, 599) - 100];
        slot.get_or_init(|| metrics.http_counter(self.label, METHODS[number], status.as_str())).inc();
        self.duration.observe(seconds);
    }
}

/// A request as a handler sees it.
pub(super) struct Call<'r> {
    pub(super) generation: Arc<Generation>,
    pub(super) headers: &'r HeaderMap,
    pub(super) grant: Grant,
    query: Option<&'r str>,
    parameter: Option<Cow<'r, str>>,
}

impl Call<'_> {
    /// The query's parameters, of which only `known` may be there.
    pub(super) fn query(&self, known: &[&str]) -> Result<Query, Problem> {
        Query::parse(self.query, known)
    }

    /// The path's parameter, decoded.
    pub(super) fn parameter(&self) -> Result<&str, Problem> {
        self.parameter.as_deref().ok_or_else(|| Problem::bad_request("invalid-name", "a name is percent-encoded UTF-8"))
    }
}

/// A request whose body is read as it arrives.
pub(super) struct Streaming {
    pub(super) parts: Parts,
    pub(super) body: Incoming,
    pub(super) limits: Http,
    /// To be told that the request goes on, for as long as it does.
    pub(super) progress: Arc<Progress>,
    /// Becomes true when the doors close.
    pub(super) stopped: watch::Receiver<bool>,
}

/// An answer that is there, or is worked on.
pub(super) enum Answering {
    Now(Option<Answer>),
    Later(Pin<Box<dyn Future<Output = Answer> + Send>>),
}

impl Future for Answering {
    type Output = Result<Answer, std::convert::Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now(answer) => Poll::Ready(Ok(answer.take().expect("a future is not polled after it ended"))),
            Self::Later(future) => future.as_mut().poll(context).map(Ok),
        }
    }
}

impl Service {
    /// The door's service.
    ///
    /// # Errors
    /// If two routes exclude each other, which a test rules out.
    pub fn new(context: Context, tokens: Arc<ArcSwap<Tokens>>, limits: &Http) -> Result<Self, matchit::InsertError> {
        let metrics = Arc::clone(&context.metrics);
        let counted = |route: Route| Counted {
            counts: Counts::new(&metrics, route.path),
            has_body: (route.operation)().body.is_some(),
            route,
        };
        let routes: Vec<Counted> = table().into_iter().map(counted).collect();
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
            guard: Guard::new(tokens, &limits.allowed_hosts),
            limits: limits.clone(),
            unmatched: Counts::new(&metrics, "unmatched"),
            context: Arc::new(context),
            routes,
            paths,
            tool,
            stopping: AtomicBool::new(false),
            stopped: watch::Sender::new(false),
        })
    }

    /// From now on every answer is the last of its connection, and streams are not waited for.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stopped.send_replace(true);
    }

    pub(super) fn limits(&self) -> &Http {
        &self.limits
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.context.metrics
    }

    /// Answers one request.
    pub(super) fn answer(
        self: &Arc<Self>,
        door: Door,
        request: Request<Incoming>,
        progress: &Arc<Progress>,
    ) -> Answering {
        progress.request_began();
        let started = Instant::now();
        let id = request_id::of(request.headers());
        let generation = Arc::clone(&self.context.engine.generation());
        match self.dispatch(door, &request, &generation) {
            Dispatched::Answered(counts, answer) => {
                let answer = self.finish(answer, counts, request.method(), request.headers(), id, &generation, started);
                progress.request_ended();
                Answering::Now(Some(answer))
            }
            Dispatched::Taken(index, grant) => {
                let (service, progress) = (Arc::clone(self), Arc::clone(progress));
                Answering::Later(Box::pin(async move {
                    let (parts, body) = request.into_parts();
                    let (method, headers) = (parts.method.clone(), parts.headers.clone());
                    let answer = service.wait(index, grant, parts, body, &progress).await;
                    let answer = answer.unwrap_or_else(Problem::into_answer);
                    // A reload changes the generation that the answer speaks of.
                    let generation = Arc::clone(&service.context.engine.generation());
                    let counts = &service.routes[index].counts;
                    let answer = service.finish(answer, counts, &method, &headers, id, &generation, started);
                    progress.request_ended();
                    answer
                }))
            }
        }
    }

    async fn wait(
        &self,
        index: usize,
        grant: Grant,
        parts: Parts,
        incoming: Incoming,
        progress: &Arc<Progress>,
    ) -> Result<Answer, Problem> {
        let context = Arc::clone(&self.context);
        let name = self.paths.at(parts.uri.path()).ok().and_then(|matched| decode(matched.params.iter().next()?.1));
        match self.routes[index].route.handler {
            Handler::Body(handler) => {
                let limits = &self.limits;
                let node = body::json(&parts.headers, incoming, limits.max_body_bytes, limits.request_timeout).await?;
                work(move || handler(&context, &grant, node)).await
            }
            Handler::Asked(handler) => {
                let limits = &self.limits;
                let node = body::json(&parts.headers, incoming, limits.max_body_bytes, limits.request_timeout).await?;
                handler(context, grant, parts, node).await
            }
            Handler::Write(handler) => {
                let limits = &self.limits;
                let node = body::json(&parts.headers, incoming, limits.max_body_bytes, limits.request_timeout).await?;
                handler(context, grant, node).await
            }
            Handler::Stream(handler) => {
                let (limits, progress, stopped) = (self.limits.clone(), Arc::clone(progress), self.stopped.subscribe());
                handler(context, grant, Streaming { parts, body: incoming, limits, progress, stopped }).await
            }
            Handler::Later(handler) => handler(context, parts.uri.query()).await,
            Handler::Whole(handler) => {
                let limits = &self.limits;
                let most = match self.routes[index].route.access {
                    Access::Socket => limits.max_body_bytes.max(body::ADMIN_BYTES),
                    Access::Open | Access::Scope(_) => limits.max_body_bytes,
                };
                let body = if self.routes[index].has_body {
                    body::json(&parts.headers, incoming, most, limits.request_timeout).await?
                } else {
                    Node::Null
                };
                let query = parts.uri.query().map(ToOwned::to_owned);
                handler(context, Whole { grant, headers: parts.headers, query, parameter: name, body }).await
            }
            Handler::Now(handler) | Handler::Work(handler) => {
                work(move || {
                    let generation = Arc::clone(&context.engine.generation());
                    let parameter = name.map(Cow::Owned);
                    handler(
                        &context,
                        &Call { generation, headers: &parts.headers, grant, query: parts.uri.query(), parameter },
                    )
                })
                .await
            }
        }
    }

    fn dispatch<'s>(&'s self, door: Door, request: &Request<Incoming>, generation: &Arc<Generation>) -> Dispatched<'s> {
        let (headers, uri) = (request.headers(), request.uri());
        let authority = uri.authority().map(hyper::http::uri::Authority::as_str);
        if let Err(problem) = self.guard.check_host(door, request.version(), authority, headers) {
            return Dispatched::Answered(&self.unmatched, problem.into_answer());
        }
        let path = uri.path();
        let is_get = request.method() == Method::GET || request.method() == Method::HEAD;
        if is_get
            && uri.query().is_none()
            && let Some(name) = path.strip_prefix(TOOL_PREFIX)
            && !name.bytes().any(|byte| byte == b'/' || byte == b'%')
        {
            let answer = self
                .guard
                .may(door, Scope::Read, headers)
                .and_then(|()| catalog::document(generation, name, headers))
                .unwrap_or_else(Problem::into_answer);
            return Dispatched::Answered(&self.routes[self.tool].counts, answer);
        }
        let Ok(matched) = self.paths.at(path) else {
            let problem = Problem::not_found("unknown-path", "nothing is served here; /openapi.json lists all paths");
            return Dispatched::Answered(&self.unmatched, problem.into_answer());
        };
        let is_meant = |index: &&usize| {
            let method = &self.routes[**index].route.method;
            method == request.method() || is_get && method == Method::GET
        };
        let Some(&index) = matched.value.iter().find(is_meant) else {
            let mut allowed: Vec<&str> =
                matched.value.iter().map(|&index| self.routes[index].route.method.as_str()).collect();
            if allowed.contains(&"GET") {
                allowed.push("HEAD");
            }
            let problem = Problem::method_not_allowed(&allowed.join(", ")).and_close();
            return Dispatched::Answered(&self.unmatched, problem.into_answer());
        };
        let Counted { route, counts, .. } = &self.routes[index];
        let grant = match self.guard.check_access(door, route.access, headers) {
            Ok(grant) => grant,
            Err(problem) => return Dispatched::Answered(counts, problem.into_answer()),
        };
        let Handler::Now(handler) = route.handler else { return Dispatched::Taken(index, grant) };
        let parameter = matched.params.iter().next().and_then(|(_, raw)| decode(raw)).map(Cow::Owned);
        let call = Call { generation: Arc::clone(generation), headers, grant, query: uri.query(), parameter };
        let answer = handler(&self.context, &call).unwrap_or_else(Problem::into_answer);
        Dispatched::Answered(counts, answer)
    }

    /// What every answer carries, and what is counted of it.
    #[expect(clippy::too_many_arguments, reason = "all that is known of a request at its end")]
    fn finish(
        &self,
        mut answer: Answer,
        counts: &Counts,
        method: &Method,
        request: &HeaderMap,
        id: HeaderValue,
        generation: &Generation,
        started: Instant,
    ) -> Answer {
        let took = started.elapsed();
        counts.count(&self.context.metrics, method, answer.status(), took.as_secs_f64());
        tracing::debug!(
            route = counts.label,
            %method,
            status = answer.status().as_u16(),
            took_us = took.as_secs_f64() * 1e6,
            request_id = id.to_str().unwrap_or_default(),
            trace_id = request_id::trace_of(request),
            "request",
        );
        let headers = answer.headers_mut();
        headers.insert(request_id::REQUEST_ID, id);
        let label = HeaderValue::from_maybe_shared(generation.label().clone()).expect("a number is visible ASCII");
        headers.insert(GENERATION, label);
        if self.stopping.load(Ordering::Relaxed) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

fn decode(raw: &str) -> Option<String> {
    percent_decode_str(raw).decode_utf8().ok().map(Cow::into_owned)
}

/// Runs what takes its time where nobody waits for the thread.
pub(super) async fn work<T: Send + 'static>(
    body: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(body).await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

enum Dispatched<'s> {
    Answered(&'s Counts, Answer),
    /// The route at this index has a body to read or something to wait for.
    Taken(usize, Grant),
}

impl std::fmt::Debug for Service {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Service").field("limits", &self.limits).finish_non_exhaustive()
    }
}
