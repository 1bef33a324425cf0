//! Recorded calls as they stand in the database.

use rusqlite::{Connection, params};

use super::history::execution;
use crate::store::{ExecutionFilter, ExecutionPage, SessionFilter, SessionPage, SessionRow};
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

/// Sessions in the order of their last calls. Only the latest calls are looked at, so that a long history takes no
/// longer.
pub(super) fn sessions(connection: &Connection, wanted: &SessionFilter) -> rusqlite::Result<SessionPage> {
    let SessionFilter { tenant, before, limit } = wanted;
    let mut select = connection.prepare_cached(
        "SELECT session, COUNT(*), SUM(outcome = 'error'), SUM(outcome = 'timeout'), MIN(at_ms), MAX(at_ms), MAX(id)
         FROM (SELECT session, outcome, at_ms, id FROM executions
               WHERE tenant = ?1 AND session IS NOT NULL ORDER BY id DESC LIMIT 100000)
         GROUP BY session HAVING ?2 IS NULL OR MAX(id) < ?2
         ORDER BY MAX(id) DESC LIMIT ?3",
    )?;
    let rows = select.query_map(params![tenant, before, *limit as i64 + 1], |row| {
        let count = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.max(0).cast_unsigned());
        let session = SessionRow {
            session: row.get(0)?,
            calls: count(1)?,
            errors: count(2)?,
            timeouts: count(3)?,
            first_ms: row.get(4)?,
            last_ms: row.get(5)?,
        };
        Ok((row.get::<_, i64>(6)?, session))
    })?;
    let mut found: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    let has_more = found.len() > *limit;
    found.truncate(*limit);
    let next = found.last().map(|(id, _)| *id).filter(|_| has_more);
    Ok(SessionPage { sessions: found.into_iter().map(|(_, session)| session).collect(), next })
}
