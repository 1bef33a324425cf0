//! Routes of operation: probes, metrics, and what the admin socket can do.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_SECURITY_POLICY, HeaderValue};
use serde_json::{Map, Value};

use super::console;
use crate::catalog::findings;
use crate::catalog::reload::Trigger;
use crate::control::{Need, ReloadError, ReloadedAll};
use crate::http::answer::{self, Answer, JSON};
use crate::http::handler::{Answering, Context, Request};
use crate::http::operation::{Operation, Parameter, query};
use crate::http::problem::Problem;
use crate::store::DaemonFigures;
use crate::strict::diagnostic;
use crate::telemetry::logging;
use crate::telemetry::metrics::DatabaseFigures;
use crate::wire::catalog::{
    FailedPlugin, Live, LogLevelAnswer, LogLevelRequest, Ready, ReloadAnswer, ReloadStarted, StatusAnswer,
};
use crate::wire::problem::Code;

/// Diagnostics in the answer to a reload.
const RELOAD_DIAGNOSTICS: usize = 100;

pub(super) fn landing_operation() -> Operation {
    Operation::new("getLanding", "A page for people: the console, or where it is not served one with links.")
        .answering_text(200, "HTML.", "text/html")
        .answering_text(302, "The console.", "text/plain")
}

pub(super) fn landing(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    const PAGE: &str = include_str!("landing.html");
    if request.has_console {
        return console::redirect(context, request);
    }
    let content_type = HeaderValue::from_static("text/html; charset=utf-8");
    let mut answer = answer::bytes(StatusCode::OK, content_type, PAGE);
    // Nothing of it comes from elsewhere, and nothing of it runs.
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(answer)
}

pub(super) fn live_operation() -> Operation {
    Operation::new("getLive", "Whether the process answers.").answering::<Live>("It does.")
}

pub(super) fn live(_: &Context, _: &mut Request) -> Result<Answer, Problem> {
    Ok(answer::json(&Live { live: true }))
}

pub(super) fn ready_operation() -> Operation {
    Operation::new("getReady", "Whether questions are answered.")
        .answering::<Ready>("They are.")
        .answering_with::<Ready>(503, "Not yet, or no longer; says what is missing.")
}

pub(super) fn ready(context: &Context, _: &mut Request) -> Result<Answer, Problem> {
    context.control.check_threads();
    let readiness = context.control.readiness();
    let ready = Ready { ready: readiness.is_ready(), missing: names(&readiness.missing()) };
    let mut answer = answer::json(&ready);
    if !ready.ready {
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(answer)
}

fn names(needs: &[Need]) -> Vec<String> {
    needs.iter().map(|need| need.as_str().to_owned()).collect()
}

pub(super) fn metrics_operation() -> Operation {
    Operation::new("getMetrics", "Metrics for Prometheus, in the format that is asked for.")
        .answering_text(200, "Text format 0.0.4.", "text/plain")
        .answering_text(200, "OpenMetrics 1.0, with a request of each bucket.", "application/openmetrics-text")
}

pub(super) fn metrics(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let store = context.engine.store();
    context.metrics.store_queue.set(store.queued() as i64);
    context.metrics.store_usable.set(store.trouble().is_none().into());
    if let Some(standings) = store.standings() {
        context.metrics.database.show(&DatabaseFigures {
            is_reachable: standings.trouble.is_none(),
            waiting: standings.waiting,
            spooled_bytes: standings.spooled_bytes,
            spool_max: standings.spool_max,
            oldest: standings.oldest_age(),
            put_aside: standings.put_aside,
            reconnects: standings.reconnects,
            behind: standings.behind,
            followed: standings.following_age(),
        });
    }
    let accepted = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let (text, content_type) = context.metrics.render_as(&accepted.collect::<Vec<_>>().join(","));
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static(content_type), text))
}

pub(super) fn openapi_operation() -> Operation {
    Operation::new("getOpenapi", "This document.").answering::<Map<String, Value>>("OpenAPI 3.1")
}

pub(super) fn openapi(context: &Context, _: &mut Request) -> Result<Answer, Problem> {
    Ok(answer::bytes(StatusCode::OK, JSON, Bytes::clone(&context.openapi)))
}

pub(super) fn reload_operation() -> Operation {
    const PARAMETERS: [Parameter; 1] = [query("wait", "boolean", "false: do not wait for the outcome. Default: true.")];
    Operation::new("reload", "Read configuration, tokens, documents and rule libraries again.")
        .taking(&PARAMETERS)
        .answering::<ReloadAnswer>("What is served now.")
        .answering_with::<ReloadStarted>(202, "The reload has begun.")
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of all handlers that wait")]
pub(super) fn reload(context: Arc<Context>, request: Request) -> Answering {
    let wait = request.query.flag("wait", true);
    Box::pin(async move {
        let control = Arc::clone(&context.control);
        let reload = tokio::spawn(async move { control.reload(Trigger::Request).await });
        if !wait? {
            let mut answer = answer::json(&ReloadStarted { started: true });
            *answer.status_mut() = StatusCode::ACCEPTED;
            return Ok(answer);
        }
        let outcome = reload.await.map_err(|error| Problem::unavailable(Code::Stopping, error.to_string()))?;
        let outcome = outcome.map_err(|error| match &error {
            ReloadError::Config(faults) => Problem::invalid(Code::FaultyConfiguration, faults.describe("; ")),
            ReloadError::Tokens(faults) => Problem::invalid(Code::FaultyTokens, faults.describe("; ")),
            ReloadError::NoThread(error) => (*error).into(),
            ReloadError::ReloadThreadEnded(_) | ReloadError::Plugins(_) => {
                Problem::unavailable(Code::Stopping, error.to_string())
            }
        })?;
        let ReloadedAll { catalog: report, plugins, waiting } = outcome;
        Ok(answer::json(&ReloadAnswer {
            outcome: report.outcome.as_str().to_owned(),
            generation: context.engine.generation().number(),
            tools: report.loaded.catalog.len(),
            errors: diagnostic::errors(&report.loaded.diagnostics),
            diagnostics: findings::worst(&report.loaded.diagnostics, RELOAD_DIAGNOSTICS),
            total: report.loaded.diagnostics.len(),
            plugins_ready: plugins.ready,
            plugins_failed: plugins.failed.into_iter().map(|(id, reason)| FailedPlugin { id, reason }).collect(),
            waiting,
        }))
    })
}

pub(super) fn status_operation() -> Operation {
    Operation::new("getStatus", "How the daemon is.").answering::<StatusAnswer>("Its status.")
}

pub(super) fn status(context: &Context, _: &mut Request) -> Result<Answer, Problem> {
    Ok(answer::json(&status_of(context)))
}

/// How the daemon is.
pub(super) fn status_of(context: &Context) -> StatusAnswer {
    let status = context.control.status();
    StatusAnswer {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        status: status.line(),
        ready: status.is_ready,
        missing: names(&status.missing),
        uptime_seconds: status.uptime_seconds,
        generation: status.generation,
        loaded_at: humantime::format_rfc3339_millis(status.loaded_at).to_string(),
        tools: status.tools,
        stale: status.stale,
        plugins_ready: status.plugins.ready,
        plugins_quarantined: status.plugins.quarantined,
        plugins_refused: status.plugins.refused,
        errors: status.errors,
        warnings: status.warnings,
        troubles: context.control.troubles(),
        database: context.engine.store().standings().map(|standings| DaemonFigures::from(&*standings).into()),
    }
}

pub(super) fn log_level_operation() -> Operation {
    Operation::new("setLogLevel", "Set the log's level until the next restart.")
        .with_body::<LogLevelRequest>()
        .answering::<LogLevelAnswer>("It is set.")
}

pub(super) fn log_level(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let body: LogLevelRequest = request.take_body()?;
    let outcome = context.control.set_log_level(&body.level);
    outcome.map_err(|error| Problem::invalid(Code::InvalidLevel, error.to_string()))?;
    Ok(answer::json(&LogLevelAnswer { warnings: logging::doubts(&body.level), level: body.level }))
}
