//! The table of all routes: dispatch, scopes, metric labels and the OpenAPI document are made from it, so they cannot differ.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};

use super::answer::Answer;
use super::operation::Operation;
use super::problem::Problem;
use super::service::{Call, Context, Streaming};
use super::{admin, catalog, memory, metadata, openapi, plan, plugin, presets, qualify, stream, timing, usage};
use crate::access::{Grant, Scope};
use crate::strict::Node;

/// One route.
pub(super) struct Route {
    pub(super) method: Method,
    /// The path's template; also the metrics' label.
    pub(super) path: &'static str,
    pub(super) access: Access,
    pub(super) handler: Handler,
    pub(super) operation: fn() -> Operation,
}

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody.
    Open,
    /// Whoever has the scope.
    Scope(Scope),
    /// Whoever came through the admin socket.
    Socket,
}

/// What answers a route.
pub(super) enum Handler {
    /// At once.
    Now(fn(&Context, &Call<'_>) -> Result<Answer, Problem>),
    /// By work that would keep other requests of its thread waiting.
    Work(fn(&Context, &Call<'_>) -> Result<Answer, Problem>),
    /// By such work, from a JSON body.
    Body(Answers),
    /// When what it waits for is there, from a JSON body and the request's head.
    Asked(fn(Arc<Context>, Grant, Parts, Node) -> Later),
    /// When what it waits for is there, such as the disk or a rule library, from a JSON body.
    Write(Waits),
    /// When its body, read as it arrives, has ended.
    Stream(fn(Arc<Context>, Grant, Streaming) -> Later),
    /// Later, from the query.
    Later(fn(Arc<Context>, Option<&str>) -> Later),
    /// Later, from the whole request; it has a JSON body if its operation says so.
    Whole(fn(Arc<Context>, Whole) -> Later),
}

/// A request with all that a handler may want to know of it.
pub(super) struct Whole {
    pub(super) grant: Grant,
    pub(super) headers: HeaderMap,
    pub(super) query: Option<String>,
    /// The path's parameter, decoded; nothing if it is no text.
    pub(super) parameter: Option<String>,
    /// Null if the route takes none.
    pub(super) body: Node,
}

/// A handler of [`Handler::Body`].
type Answers = fn(&Context, &Grant, Node) -> Result<Answer, Problem>;

/// A handler of [`Handler::Write`].
type Waits = fn(Arc<Context>, Grant, Node) -> Later;

/// An answer that is waited for.
pub(super) type Later = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send>>;

/// The route that is answered before the table is looked at, and its label there.
pub(super) const TOOL: &str = "/v1/tools/{name}";

/// All routes.
pub(super) fn table() -> Vec<Route> {
    let read = Access::Scope(Scope::Read);
    let ask = |path, handler: Answers, operation| Route {
        method: Method::POST,
        path,
        access: read,
        handler: Handler::Body(handler),
        operation,
    };
    let waits = |path, access, handler: Waits, operation| Route {
        method: Method::POST,
        path,
        access,
        handler: Handler::Write(handler),
        operation,
    };
    let get = |path, access, handler, operation| Route { method: Method::GET, path, access, handler, operation };
    let mut routes = vec![
        get("/v1/tools", read, Handler::Work(catalog::list), catalog::list_operation),
        get(TOOL, read, Handler::Now(catalog::tool), catalog::tool_operation),
        get("/v1/tools/{name}/relations", read, Handler::Work(catalog::relations), catalog::relations_operation),
        ask("/v1/tools/check", catalog::check, catalog::check_operation),
        get("/v1/catalog", read, Handler::Now(catalog::report), catalog::report_operation),
        Route {
            method: Method::POST,
            path: "/v1/qualify",
            access: read,
            handler: Handler::Asked(qualify::qualify),
            operation: qualify::qualify_operation,
        },
        waits("/v1/qualify/miss", read, qualify::miss, qualify::miss_operation),
        ask("/v1/estimate", timing::estimate, timing::estimate_operation),
        waits("/v1/metadata", read, metadata::metadata, metadata::metadata_operation),
        waits("/v1/enrich", read, metadata::enrich, metadata::enrich_operation),
        waits("/v1/executions", Access::Scope(Scope::Record), timing::record, timing::record_operation),
        Route {
            method: Method::POST,
            path: "/v1/streams",
            access: Access::Scope(Scope::Record),
            handler: Handler::Stream(stream::read),
            operation: stream::operation,
        },
        ask("/v1/usage", usage::usage, usage::operation),
        ask("/v1/plans/check", plan::check, plan::check_operation),
        get("/v1/presets", read, Handler::Work(presets::list), presets::list_operation),
        get("/v1/presets/{name}", read, Handler::Work(presets::preset), presets::preset_operation),
        ask("/v1/presets/match", presets::fitting, presets::fitting_operation),
        get("/v1/timing", read, Handler::Work(timing::list), timing::list_operation),
        get("/v1/timing/{name}", read, Handler::Work(timing::tool), timing::tool_operation),
        get("/v1/sessions/{name}", read, Handler::Now(timing::session), timing::session_operation),
        get("/v1/plugins", read, Handler::Now(plugin::list), plugin::list_operation),
        get("/live", Access::Open, Handler::Now(admin::live), admin::live_operation),
        get("/ready", Access::Open, Handler::Now(admin::ready), admin::ready_operation),
        get("/metrics", read, Handler::Now(admin::metrics), admin::metrics_operation),
        get("/openapi.json", read, Handler::Now(openapi::serve), openapi::operation),
        Route {
            method: Method::POST,
            path: "/-/reload",
            access: Access::Socket,
            handler: Handler::Later(admin::reload),
            operation: admin::reload_operation,
        },
        Route {
            method: Method::POST,
            path: "/-/plugins/{name}/reset",
            access: Access::Socket,
            handler: Handler::Work(plugin::reset),
            operation: plugin::reset_operation,
        },
        get("/-/status", Access::Socket, Handler::Now(admin::status), admin::status_operation),
        Route {
            method: Method::PUT,
            path: "/-/log-level",
            access: Access::Socket,
            handler: Handler::Body(admin::log_level),
            operation: admin::log_level_operation,
        },
    ];
    routes.extend(memory::routes());
    routes
}
