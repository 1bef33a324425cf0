//! Which sessions there are, and what their turns were about.

use super::timing::store_problem;
use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::{Operation, Parameter, path, query, query_number};
use crate::http::problem::Problem;
use crate::store::SessionFilter;
use crate::wire::audit::{SessionList, TurnItem, TurnList};
use crate::wire::problem::Code;

/// Sessions on a page if nobody says.
const PAGE: usize = 100;

pub(super) fn list_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query_number("limit", (1, 1000), "At most so many, 1 to 1000; 100 by default."),
        query("cursor", "string", "`nextCursor` of the page before."),
    ];
    Operation::new("listSessions", "The tenant's sessions of late, those that called last first.")
        .taking(&PARAMETERS)
        .answering::<SessionList>("A page.")
}

pub(super) fn list(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let query = &request.query;
    let cursor = query.get("cursor").map(|text| {
        let wrong = || Problem::invalid(Code::InvalidCursor, format!("`{text}` is no cursor of this list"));
        text.parse::<i64>().map_err(|_| wrong())
    });
    let filter = SessionFilter {
        tenant: request.grant.tenant.to_string(),
        before: cursor.transpose()?,
        limit: query.number("limit", PAGE, 1, 1000)?,
    };
    let page = context.engine.store().sessions(&filter);
    let page = page.map_err(|error| store_problem(&error))?;
    Ok(answer::json(&SessionList::from(page)))
}

pub(super) fn turns_operation() -> Operation {
    Operation::new(
        "listSessionTurns",
        "What a session's last turns were about, what was suggested, and what was taken.",
    )
    .taking(const { &[path("name", "The session, percent-encoded.")] })
    .answering::<TurnList>("The last 20 at most, the latest first; their intents with the scope `memory` only.")
}

pub(super) fn turns(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let turns = context.engine.store().kept_turns(&request.grant.tenant, request.parameter()?);
    let shows_intent = request.grant.reads_what_was_said();
    let items = turns.map_err(|error| store_problem(&error))?.into_iter();
    Ok(answer::json(&TurnList { items: items.filter_map(|turn| TurnItem::of(turn, shows_intent)).collect() }))
}
