//! The table of all routes: dispatch, scopes, metric labels and the OpenAPI document are made from it, so they cannot
//! differ.
#![allow(clippy::unnecessary_wraps, reason = "handlers have one shape, whether they can fail or not")]

mod admin;
mod audit;
pub(super) mod catalog;
mod console;
mod events;
mod fleet;
mod mcp;
mod memory;
mod memory_admin;
mod memory_request;
mod metadata;
mod overview;
mod plan;
mod plugin;
mod presets;
mod protected_resource;
mod qualify;
mod relations;
mod sessions;
mod stream;
mod stream_usage;
mod timing;
mod upstream;
mod usage;

use hyper::Method;

use super::handler::{Access, Handler, Route};
use super::operation::Operation;
use crate::access::Scope;

/// The route that is answered before the table is looked at, and its label there.
pub(super) const TOOL: &str = "/v1/tools/{name}";

pub(super) fn table() -> Vec<Route> {
    use Handler::{Async, Blocking, Now, Upload};
    let [read, record, admin] = [Scope::Read, Scope::Record, Scope::Admin].map(Access::Scope);
    let mut routes = vec![
        get("/v1/tools", read, Async(catalog::list), catalog::list_operation),
        get(TOOL, read, Now(catalog::tool), catalog::tool_operation),
        get("/v1/tools/{name}/relations", read, Now(catalog::relations), catalog::relations_operation),
        get("/v1/tools/{name}/choices", read, Blocking(audit::choices), audit::choices_operation),
        get("/v1/relations", read, Blocking(relations::relations), relations::operation),
        post("/v1/tools/check", read, Now(catalog::check), catalog::check_operation),
        get("/v1/catalog", read, Now(catalog::report), catalog::report_operation),
        // A model may be asked, and nobody else needs its opinion.
        Route { is_abandoned: true, ..post("/v1/qualify", read, Async(qualify::qualify), qualify::qualify_operation) },
        post("/v1/qualify/miss", record, Async(qualify::miss), qualify::miss_operation),
        post("/v1/estimate", read, Now(timing::estimate), timing::estimate_operation),
        post("/v1/metadata", read, Async(metadata::metadata), metadata::metadata_operation),
        post("/v1/enrich", read, Async(metadata::enrich), metadata::enrich_operation),
        get("/v1/executions", read, Blocking(audit::list), audit::list_operation),
        post("/v1/executions", record, Async(timing::record), timing::record_operation),
        post("/v1/streams", record, Upload(stream::read), stream::operation),
        get("/v1/usage", read, Now(usage::list), usage::list_operation),
        post("/v1/usage", read, Now(usage::usage), usage::operation),
        post("/v1/plans/check", read, Blocking(plan::check), plan::check_operation),
        get("/v1/presets", read, Blocking(presets::list), presets::list_operation),
        get("/v1/presets/{name}", read, Now(presets::preset), presets::preset_operation),
        post("/v1/presets/match", read, Blocking(presets::fitting), presets::fitting_operation),
        get("/v1/timing", read, Blocking(timing::list), timing::list_operation),
        get("/v1/timing/{name}", read, Blocking(timing::tool), timing::tool_operation),
        get("/v1/timing/{name}/calls", read, Blocking(audit::points), audit::points_operation),
        get("/v1/sessions", read, Blocking(sessions::list), sessions::list_operation),
        get("/v1/sessions/{name}/turns", read, Blocking(sessions::turns), sessions::turns_operation),
        get("/v1/sessions/{name}", read, Now(timing::session), timing::session_operation),
        get("/v1/servers", read, Now(upstream::servers), upstream::servers_operation),
        get("/v1/servers/{name}/changes", read, Blocking(upstream::diff), upstream::changes_operation),
        post("/v1/servers/{name}/approve", admin, Blocking(upstream::approve), upstream::approve_changes_operation),
        get("/v1/plugins", read, Now(plugin::list), plugin::list_operation),
        get("/v1/events", read, Async(events::listen), events::operation),
        get("/v1/overview", read, Now(overview::overview), overview::operation),
        get("/v1/fleet", read, Blocking(fleet::fleet), fleet::operation),
        get("/", Access::Open, Now(admin::landing), admin::landing_operation),
        get(
            "/.well-known/oauth-protected-resource",
            Access::Open,
            Now(protected_resource::metadata),
            protected_resource::operation,
        ),
        get(
            "/.well-known/oauth-protected-resource/mcp",
            Access::Open,
            Now(protected_resource::metadata),
            protected_resource::mcp_operation,
        ),
        get("/live", Access::Open, Now(admin::live), admin::live_operation),
        get("/ready", Access::Open, Now(admin::ready), admin::ready_operation),
        get("/metrics", read, Now(admin::metrics), admin::metrics_operation),
        get("/openapi.json", read, Now(admin::openapi), admin::openapi_operation),
        post("/-/reload", Access::Socket, Async(admin::reload), admin::reload_operation),
        post("/-/plugins/{name}/reset", Access::Socket, Blocking(plugin::reset), plugin::reset_operation),
        get("/-/status", Access::Socket, Now(admin::status), admin::status_operation),
        get("/-/mcp", Access::Socket, Now(upstream::list), upstream::list_operation),
        get("/-/mcp/{name}/logs", Access::Socket, Now(upstream::logs), upstream::logs_operation),
        get("/-/mcp/{name}/diff", Access::Socket, Blocking(upstream::diff), upstream::diff_operation),
        post("/-/mcp/{name}/restart", Access::Socket, Now(upstream::restart), upstream::restart_operation),
        post("/-/mcp/{name}/approve", Access::Socket, Blocking(upstream::approve), upstream::approve_operation),
        route(Method::PUT, "/-/log-level", Access::Socket, Blocking(admin::log_level), admin::log_level_operation),
    ];
    routes.extend(console::routes());
    routes.extend(mcp::routes());
    routes.extend(memory::routes());
    routes.extend(memory_admin::routes());
    routes
}

fn get(path: &'static str, access: Access, handler: Handler, operation: fn() -> Operation) -> Route {
    route(Method::GET, path, access, handler, operation)
}

fn post(path: &'static str, access: Access, handler: Handler, operation: fn() -> Operation) -> Route {
    route(Method::POST, path, access, handler, operation)
}

fn route(method: Method, path: &'static str, access: Access, handler: Handler, operation: fn() -> Operation) -> Route {
    Route { method, path, access, handler, operation, is_abandoned: false }
}
