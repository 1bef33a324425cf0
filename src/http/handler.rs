//! What a handler is given, and how it may answer: the vocabulary that the routes and the server share.

use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use tokio::sync::watch;

use super::answer::Answer;
use super::json_body::JsonBody;
use super::operation::Operation;
use super::problem::Problem;
use super::query::Query;
use super::settings::Settings;
use crate::access::{Grant, Scope};
use crate::blocking;
use crate::control::Control;
use crate::engine::{Engine, Generation};
use crate::mcp::Mcp;
use crate::strict::FromNode;
use crate::strict::decode::decode;
use crate::telemetry::Metrics;
use crate::wire::problem::Code;

/// What handlers answer from.
#[derive(Debug)]
pub struct Context {
    pub engine: Arc<Engine>,
    pub metrics: Arc<Metrics>,
    /// The daemon's own controls.
    pub control: Arc<Control>,
    /// The door of MCP clients.
    pub mcp: Arc<Mcp>,
    /// What is served, described; rendered when it is first asked for.
    pub(super) openapi: LazyLock<Bytes>,
}

impl Context {
    pub fn new(engine: Arc<Engine>, metrics: Arc<Metrics>, control: Arc<Control>, mcp: Arc<Mcp>) -> Self {
        let openapi: LazyLock<Bytes> = LazyLock::new(|| super::openapi_document().to_string().into());
        Self { engine, metrics, control, mcp, openapi }
    }
}

/// A request whose sender may make it, with its body read.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) parts: Parts,
    pub(super) grant: Grant,
    /// The path's parameter, decoded; nothing if it is no text, or the path has none.
    pub(super) parameter: Option<String>,
    /// What was known when the request arrived.
    pub(super) generation: Arc<Generation>,
    /// The query's parameters, of which only those that the route's operation describes may be there.
    pub(super) query: Query,
    /// Is the console shown to the sender? Told of open routes only.
    pub(super) has_console: bool,
    pub(super) body: JsonBody,
}

impl Request {
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    pub(super) fn parameter(&self) -> Result<&str, Problem> {
        self.parameter
            .as_deref()
            .ok_or_else(|| Problem::bad_request(Code::InvalidName, "a name is percent-encoded UTF-8"))
    }

    /// The body as a `T`, once. All faults of it are told.
    pub(super) fn take_body<T: FromNode>(&mut self) -> Result<T, Problem> {
        decode(std::mem::take(&mut self.body).read()?).map_err(|faults| Problem::faulty(&faults))
    }
}

/// A body that is read as it arrives, and what is to be known meanwhile.
pub(super) struct Upload {
    pub(super) body: Incoming,
    pub(super) limits: Settings,
    /// The connection that it arrives on.
    pub(super) connection: Arc<dyn Connection>,
    /// Becomes true when the doors close.
    pub(super) stopped: watch::Receiver<bool>,
    /// Ends when the sender may send no more.
    pub(super) revoked: Revoked,
}

/// Ends when a token is taken back.
pub(super) type Revoked = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// What a handler may ask of the connection that its request came by.
pub(super) trait Connection: Send + Sync {
    /// The request goes on, however long it has taken.
    fn goes_on(&self);

    /// Has the client closed its side?
    fn has_ended(&self) -> bool;

    /// How often there was nothing to read so far: what was read between two looks at an unchanged count arrived
    /// together.
    fn lulls(&self) -> u64;
}

pub(super) struct Route {
    pub(super) method: Method,
    /// The path's template; also the metrics' label.
    pub(super) path: &'static str,
    pub(super) access: Access,
    pub(super) handler: Handler,
    pub(super) operation: fn() -> Operation,
    /// Is the work given up when the client leaves? Else it is done all the same, and a client that has closed its own
    /// side only is answered.
    pub(super) is_abandoned: bool,
}

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Open,
    /// Whoever has the scope.
    Scope(Scope),
    /// Whoever may load the console's files, which hold nothing of what the daemon knows.
    Console,
    /// MCP clients: whoever has a token, or may do without; each tool then needs its scope.
    Mcp,
    /// Whoever came through the admin socket.
    Socket,
}

/// What answers a route, once its body, if it takes one, has been read.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    /// At once, in microseconds.
    Now(fn(&Context, &mut Request) -> Result<Answer, Problem>),
    /// By work that would keep other requests of its thread waiting.
    Blocking(fn(&Context, &mut Request) -> Result<Answer, Problem>),
    /// When what it waits for is there, such as the disk, a rule library or a model.
    Async(fn(Arc<Context>, Request) -> Answering),
    /// When its body, which it reads itself, has ended.
    Upload(fn(Arc<Context>, Request, Upload) -> Answering),
}

/// An answer that is waited for.
pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send>>;

/// Runs what takes its time where nobody waits for the thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    blocking::run_soon(work).await.unwrap_or_else(|no_thread| Err(no_thread.into()))
}

/// The same, but what is short is done at once.
pub(super) async fn blocking_unless_short<T: Send + 'static>(
    is_short: bool,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if is_short { work() } else { blocking(work).await }
}
