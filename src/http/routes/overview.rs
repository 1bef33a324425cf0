//! `GET /v1/overview`: how all is, in one answer.

use std::time::{Duration, SystemTime};

use super::admin;
use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::telemetry::Minute;
use crate::wire::overview::{MinuteOfCalls, OverviewAnswer, StoreState};

pub(super) fn operation() -> Operation {
    Operation::new("getOverview", "How all is: the daemon, its store, its forecasts and the calls of the last hour.")
        .answering::<OverviewAnswer>("How it is.")
}

pub(super) fn overview(context: &Context, _: &mut Request) -> Result<Answer, Problem> {
    let (metrics, store, now) = (&context.metrics, context.engine.store(), SystemTime::now());
    let status = admin::status_of(context);
    let started = now - Duration::try_from_secs_f64(status.uptime_seconds).unwrap_or_default();
    let trouble = store.trouble();
    let judged = |inside: &str| metrics.interval_calls.with_label_values(&[inside]).get();
    let judged_calls = judged("true") + judged("false");
    Ok(answer::json(&OverviewAnswer {
        status,
        started_at: timestamp(started),
        store: StoreState {
            usable: trouble.is_none(),
            trouble,
            queued: store.queued(),
            missing_history: context.engine.missing_history().map(|reason| reason.to_string()),
        },
        watching: metrics.catalog_watching.get() == 1,
        coverage: (judged_calls > 0).then(|| metrics.interval_coverage.get()),
        judged_calls,
        saved_calls: metrics.relay.saved.get(),
        minutes: metrics.minutes.of_late(now).iter().map(minute).collect(),
        listeners: metrics.feed.listeners(),
    }))
}

fn minute(minute: &Minute) -> MinuteOfCalls {
    let Minute { calls, errors, timeouts, .. } = *minute;
    MinuteOfCalls { at: timestamp(minute.began()), calls, errors, timeouts }
}

fn timestamp(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}
