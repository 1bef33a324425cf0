//! What requests about memories have in common: whose memories are meant, what is counted, what goes wrong.

use std::sync::Arc;
use std::time::Instant;

use hyper::StatusCode;

use crate::engine::memory::RecallError;
use crate::http::answer::Answer;
use crate::http::handler::{Answering, Context, Request};
use crate::http::problem::Problem;
use crate::store::StoreError;
use crate::store::memories::MemoryError;
use crate::telemetry::events::MemoryOperated;
use crate::wire::problem::Code;

/// Does it, counts it, and says what went wrong in the words of the wire.
pub(super) fn observed(
    context: Arc<Context>,
    tenant: Arc<str>,
    operation: &'static str,
    work: impl Future<Output = Result<Answer, MemoryProblem>> + Send + 'static,
) -> Answering {
    Box::pin(async move {
        let start = Instant::now();
        let answer = work.await.map_err(|MemoryProblem(problem)| *problem);
        let outcome = match &answer {
            Ok(_) => "done",
            Err(problem) if problem.status().is_server_error() => "failed",
            Err(_) => "refused",
        };
        MemoryOperated { tenant: &tenant, operation, outcome, took: start.elapsed() }.emit(&context.metrics);
        answer
    })
}

/// A problem, also made from what the engine refuses.
pub(super) struct MemoryProblem(Box<Problem>);

impl From<Problem> for MemoryProblem {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<RecallError> for MemoryProblem {
    fn from(error: RecallError) -> Self {
        let said = error.to_string();
        let problem = match error {
            RecallError::Faulty(faults) => Problem::faulty(&faults),
            RecallError::Cursor(_) => Problem::invalid(Code::InvalidCursor, said),
            RecallError::Memory(error) => match error {
                MemoryError::Unknown(_) => Problem::not_found(Code::UnknownMemory, said),
                MemoryError::Changed { .. } => {
                    Problem::new(StatusCode::PRECONDITION_FAILED, Code::VersionChanged, said)
                }
                MemoryError::Taken { .. } => Problem::new(StatusCode::CONFLICT, Code::PositionTaken, said),
                MemoryError::Exists(_) => Problem::new(StatusCode::CONFLICT, Code::MemoryExists, said),
                MemoryError::KeyReused(_) | MemoryError::Store(StoreError::KeyReused(_)) => {
                    Problem::invalid(Code::IdempotencyKeyReused, said)
                }
                MemoryError::Store(StoreError::Busy(_)) => Problem::too_many(Code::StoreBusy, said),
                MemoryError::Store(StoreError::Unavailable(_) | StoreError::Closed) => {
                    Problem::unavailable(Code::StoreUnavailable, said)
                }
                MemoryError::Store(StoreError::TooLong(_)) => Problem::unavailable(Code::AnswerTooLong, said),
                MemoryError::Store(StoreError::Unstorable(_)) => {
                    Problem::invalid(Code::UnstorableText, error.to_string())
                }
                MemoryError::Store(StoreError::Damaged(id)) => {
                    tracing::error!(id, "a memory is damaged in the database");
                    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, Code::DamagedMemory, said)
                }
            },
        };
        problem.into()
    }
}

/// Whose memories are meant.
pub(super) fn tenant(request: &Request) -> Result<String, Problem> {
    let grant = &request.grant;
    match request.query.get("tenant") {
        None => Ok(grant.tenant.to_string()),
        Some(tenant) if grant.is_for_any_tenant() => Ok(tenant.to_owned()),
        Some(_) => {
            let detail =
                "a tenant is named on the admin socket only; elsewhere the token says whose memories are meant";
            Err(Problem::new(StatusCode::FORBIDDEN, Code::ForeignTenant, detail))
        }
    }
}

/// The same for whoever listens: of one that may not be named, who asks.
pub(super) fn concerned(request: &Request) -> Arc<str> {
    tenant(request).map_or_else(|_| Arc::clone(&request.grant.tenant), Into::into)
}

pub(super) fn id(request: &Request) -> Result<String, Problem> {
    request.parameter.clone().ok_or_else(|| Problem::bad_request(Code::InvalidName, "a name is percent-encoded UTF-8"))
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
            let MemoryProblem(problem) = error.into();
            assert_eq!((problem.status().as_u16(), problem.code().as_str()), (status, code), "{said}");
        }
    }
}
