//! What requests about memories have in common: whose memories are meant, what is counted, what goes wrong.

use std::sync::Arc;
use std::time::Instant;

use hyper::StatusCode;

use super::answer::Answer;
use super::problem::Problem;
use super::query::Query;
use super::route::{Later, Whole};
use super::service::Context;
use crate::access::Grant;
use crate::engine::memory::RecallError;
use crate::store::StoreError;
use crate::store::memories::MemoryError;
use crate::telemetry::events::MemoryOperated;

/// Does it, counts it, and says what went wrong in the words of the wire.
pub(super) fn observed(
    context: Arc<Context>,
    operation: &'static str,
    work: impl Future<Output = Result<Answer, Refusal>> + Send + 'static,
) -> Later {
    Box::pin(async move {
        let start = Instant::now();
        let answer = work.await.map_err(|Refusal(problem)| *problem);
        let outcome = match &answer {
            Ok(_) => "done",
            Err(problem) if problem.status().is_server_error() => "failed",
            Err(_) => "refused",
        };
        MemoryOperated { operation, outcome, took: start.elapsed() }.emit(&context.metrics);
        answer
    })
}

/// A problem, also made from what the engine refuses.
pub(super) struct Refusal(Box<Problem>);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<RecallError> for Refusal {
    fn from(error: RecallError) -> Self {
        let said = error.to_string();
        let problem = match error {
            RecallError::Faulty(faults) => Problem::faulty(&faults),
            RecallError::Cursor(_) => Problem::invalid("invalid-cursor", said),
            RecallError::Memory(error) => match error {
                MemoryError::Unknown(_) => Problem::not_found("unknown-memory", said),
                MemoryError::Changed { .. } => Problem::new(StatusCode::PRECONDITION_FAILED, "version-changed", said),
                MemoryError::Taken { .. } => Problem::new(StatusCode::CONFLICT, "position-taken", said),
                MemoryError::Exists(_) => Problem::new(StatusCode::CONFLICT, "memory-exists", said),
                MemoryError::KeyReused(_) => Problem::invalid("idempotency-key-reused", said),
                MemoryError::Store(StoreError::Busy(_)) => Problem::too_many("store-busy", said),
                MemoryError::Store(StoreError::Unavailable(_) | StoreError::Closed) => {
                    Problem::unavailable("store-unavailable", said)
                }
            },
        };
        problem.into()
    }
}

/// Whose memories are meant, and the other parameters, of which only `known` may be there.
pub(super) fn asked(whole: &Whole, known: &[&str]) -> Result<(String, Query), Problem> {
    let query = Query::parse(whole.query.as_deref(), &[known, &["tenant"]].concat())?;
    let tenant = tenant(&whole.grant, &query)?;
    Ok((tenant, query))
}

fn tenant(grant: &Grant, query: &Query) -> Result<String, Problem> {
    match query.get("tenant") {
        None => Ok(grant.tenant.to_string()),
        Some(tenant) if grant.is_for_any_tenant() => Ok(tenant.to_owned()),
        Some(_) => {
            let detail =
                "a tenant is named on the admin socket only; elsewhere the token says whose memories are meant";
            Err(Problem::new(StatusCode::FORBIDDEN, "foreign-tenant", detail))
        }
    }
}

pub(super) fn id(whole: &Whole) -> Result<String, Problem> {
    whole.parameter.clone().ok_or_else(|| Problem::bad_request("invalid-name", "a name is percent-encoded UTF-8"))
}

pub(super) fn flag(query: &Query, name: &str) -> Result<bool, Problem> {
    match query.get(name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Problem::invalid("invalid-parameter", format!("`{name}` is true or false, not `{other}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::search::ForeignCursor;

    #[test]
    fn each_refusal_has_its_status_and_code() {
        let busy = StoreError::Busy(1);
        let memory = |error: MemoryError| RecallError::Memory(error);
        let id = || "i".to_owned();
        for (error, status, code) in [
            (RecallError::Faulty(Vec::new()), 422, "invalid-body"),
            (RecallError::Cursor(ForeignCursor), 422, "invalid-cursor"),
            (memory(MemoryError::Unknown(id())), 404, "unknown-memory"),
            (memory(MemoryError::Changed { id: id(), found: 2 }), 412, "version-changed"),
            (memory(MemoryError::Taken { thread: id(), position: 0, by: id() }), 409, "position-taken"),
            (memory(MemoryError::Exists(id())), 409, "memory-exists"),
            (memory(MemoryError::KeyReused(id())), 422, "idempotency-key-reused"),
            (memory(busy.into()), 429, "store-busy"),
            (memory(StoreError::Closed.into()), 503, "store-unavailable"),
            (memory(StoreError::Unavailable(id()).into()), 503, "store-unavailable"),
        ] {
            let said = format!("{error:?}");
            let Refusal(problem) = error.into();
            assert_eq!((problem.status().as_u16(), problem.code()), (status, code), "{said}");
        }
    }
}
