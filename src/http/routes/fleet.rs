//! `GET /v1/fleet`: which daemons share the database, and how each is. It tells nothing of what tenants keep, so
//! whoever may read is answered the same.

use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::wire::fleet::FleetAnswer;

pub(super) fn operation() -> Operation {
    Operation::new("getFleet", "Which daemons share the database, and how each is.")
        .answering::<FleetAnswer>("All of them; while the database cannot be read, the one that answers.")
}

pub(super) fn fleet(context: &Context, _: &mut Request) -> Result<Answer, Problem> {
    Ok(answer::json(&FleetAnswer::from(context.engine.store().fleet())))
}
