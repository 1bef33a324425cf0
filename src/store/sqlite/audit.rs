//! Recorded calls as they stand in the database.

use rusqlite::{Connection, params};

use super::history::execution;
use crate::store::{ExecutionFilter, ExecutionPage};
use crate::timing::Outcome;

/// Steps back by number: records are never changed, so a page holds what it held.
pub(super) fn page(connection: &Connection, wanted: &ExecutionFilter) -> rusqlite::Result<ExecutionPage> {
    let ExecutionFilter { tenant, tool, session, outcome, since_ms, until_ms, before, limit } = wanted;
    let mut select = connection.prepare_cached(
        "SELECT tenant, tool, mode, duration_ms, outcome, content_length, num_perspectives, num_branches,
                thinking_budget, context_tokens, session, at_ms, id
         FROM executions
         WHERE tenant = ?1 AND (?2 IS NULL OR tool = ?2) AND (?3 IS NULL OR session = ?3)
           AND (?4 IS NULL OR outcome = ?4) AND (?5 IS NULL OR at_ms >= ?5) AND (?6 IS NULL OR at_ms < ?6)
           AND (?7 IS NULL OR id < ?7)
         ORDER BY id DESC LIMIT ?8",
    )?;
    let outcome = outcome.map(Outcome::as_str);
    let most = *limit as i64 + 1;
    let rows = select.query_map(params![tenant, tool, session, outcome, since_ms, until_ms, before, most], |row| {
        Ok((row.get::<_, i64>(12)?, execution(row)?))
    })?;
    let mut found: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    let has_more = found.len() > *limit;
    found.truncate(*limit);
    let next = found.last().map(|(id, _)| *id).filter(|_| has_more);
    Ok(ExecutionPage { executions: found.into_iter().map(|(_, execution)| execution).collect(), next })
}
