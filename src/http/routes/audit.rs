//! Looking at recorded calls one by one.

use super::timing::store_problem;
use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::{Operation, Parameter, path, query, query_number, query_word};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::store::{ExecutionFilter, TimedCallFilter};
use crate::strict::values;
use crate::timing::{Key, Outcome, thin};
use crate::wire::audit::{CallPoint, CallPoints, ChoiceItem, ChoiceList, ExecutionList};
use crate::wire::problem::Code;

/// Records on a page if nobody says.
const PAGE: usize = 100;

/// Calls that points are made of: the latest, so that a long history takes no longer.
const MAX_LOOKED_AT: usize = 100_000;

/// Points of one answer; nobody sees more in a picture.
const MAX_POINTS: usize = 10_000;

pub(super) fn list_operation() -> Operation {
    const PARAMETERS: [Parameter; 7] = [
        query("tool", "string", "Calls of this tool only."),
        query("session", "string", "Calls of this session only."),
        query_word("outcome", &Outcome::WORDS, "Calls that ended so only."),
        query("since", "string", "Calls that ended then or later: RFC 3339, or milliseconds since the epoch."),
        query("until", "string", "Calls that ended before then, written likewise."),
        query_number("limit", (1, 1000), "At most so many, 1 to 1000; 100 by default."),
        query("cursor", "string", "`next_cursor` of the page before."),
    ];
    Operation::new("listExecutions", "The tenant's recorded calls, those that were recorded last first.")
        .taking(&PARAMETERS)
        .answering::<ExecutionList>("A page.")
}

pub(super) fn list(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let query = &request.query;
    let cursor = query.get("cursor").map(|text| {
        let wrong = || Problem::invalid(Code::InvalidCursor, format!("`{text}` is no cursor of this list"));
        text.parse::<i64>().map_err(|_| wrong())
    });
    let outcome = query.get("outcome").map(|word| {
        let known = Outcome::WORDS.join(", ");
        let wrong = || Problem::invalid(Code::InvalidParameter, format!("`outcome` is one of {known}, not `{word}`"));
        Outcome::parse(word).ok_or_else(wrong)
    });
    let filter = ExecutionFilter {
        tenant: request.grant.tenant.to_string(),
        tool: query.get("tool").map(str::to_owned),
        session: query.get("session").map(str::to_owned),
        outcome: outcome.transpose()?,
        since_ms: moment(query, "since")?,
        until_ms: moment(query, "until")?,
        before: cursor.transpose()?,
        limit: query.number("limit", PAGE, 1, 1000)?,
    };
    let page = context.engine.store().executions(&filter);
    Ok(answer::json(&ExecutionList::from(page.map_err(|error| store_problem(&error))?)))
}

pub(super) fn points_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        path("name", "The tool's name, percent-encoded."),
        query(
            "mode",
            "string",
            "The mode as `getTiming` names it, `#error` at its end for calls that failed; none if absent.",
        ),
    ];
    Operation::new("listTimedCalls", "The tenant's latest calls of a tool and mode over what was forecast of them.")
        .taking(&PARAMETERS)
        .answering::<CallPoints>("As many as can be looked at.")
}

pub(super) fn points(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let key = Key::shown_as(request.parameter()?, request.query.get("mode").unwrap_or_default());
    let wanted = TimedCallFilter {
        tenant: request.grant.tenant.to_string(),
        tool: key.tool.to_owned(),
        mode: Some(key.mode.to_owned()).filter(|mode| !mode.is_empty()),
        failed: key.failed,
        limit: MAX_LOOKED_AT,
    };
    let calls = context.engine.store().timed_calls(&wanted).map_err(|error| store_problem(&error))?;
    let total = calls.len();
    let items: Vec<CallPoint> = thin(calls, MAX_POINTS).into_iter().map(CallPoint::from).collect();
    Ok(answer::json(&CallPoints { thinned: items.len() < total, items, total }))
}

pub(super) fn choices_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        path("name", "The tool's name, percent-encoded."),
        query_number("limit", (1, 1000), "At most so many, 1 to 1000; 100 by default."),
    ];
    Operation::new("listToolChoices", "When this tool was chosen for the tenant, and for which messages.")
        .taking(&PARAMETERS)
        .answering::<ChoiceList>("The latest first; their messages with the scope `memory` only.")
}

pub(super) fn choices(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let limit = request.query.number("limit", PAGE, 1, 1000)?;
    let choices = context.engine.store().choices(&request.grant.tenant, request.parameter()?, limit);
    let shows_messages = request.grant.reads_what_was_said();
    let items = choices.map_err(|error| store_problem(&error))?.into_iter();
    Ok(answer::json(&ChoiceList { items: items.map(|choice| ChoiceItem::of(choice, shows_messages)).collect() }))
}

/// A moment as milliseconds since the epoch.
fn moment(query: &Query, name: &str) -> Result<Option<i64>, Problem> {
    let Some(text) = query.get(name) else { return Ok(None) };
    if let Ok(millis) = text.parse() {
        return Ok(Some(millis));
    }
    let moment = values::moment(text).ok_or_else(|| {
        let detail = format!("`{name}` is RFC 3339, such as 2026-11-22T10:00:00Z, or milliseconds, not `{text}`");
        Problem::invalid(Code::InvalidParameter, detail)
    });
    Ok(Some((moment?.unix_timestamp_nanos() / 1_000_000) as i64))
}
