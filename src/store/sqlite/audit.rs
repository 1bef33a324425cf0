//! Recorded calls as they stand in the database.

use std::collections::HashSet;

use rusqlite::{Connection, Row, params};

use super::history::execution;
use crate::store::notes::KEPT_TURNS;
use crate::store::{
    Choice, ExecutionFilter, ExecutionPage, KeptTurn, RecordedCall, SessionFilter, SessionPage, SessionRow,
    TimedCallFilter,
};
use crate::timing::{Outcome, Predicted, TimedCall};

/// Records that sessions are looked for in: the latest, so that a long history takes no longer.
const LATEST: i64 = 100_000;

/// Steps back by number: records are never changed, so a page holds what it held.
pub(super) fn page(connection: &Connection, wanted: &ExecutionFilter) -> rusqlite::Result<ExecutionPage> {
    let ExecutionFilter { tenant, tool, session, outcome, since_ms, until_ms, before, limit } = wanted;
    let mut select = connection.prepare_cached(
        "SELECT tenant, tool, mode, duration_ms, outcome, content_length, num_perspectives, num_branches,
                thinking_budget, context_tokens, session, at_ms, id, predicted
         FROM executions
         WHERE tenant = ?1 AND (?2 IS NULL OR tool = ?2) AND (?3 IS NULL OR session = ?3)
           AND (?4 IS NULL OR outcome = ?4) AND (?5 IS NULL OR at_ms >= ?5) AND (?6 IS NULL OR at_ms < ?6)
           AND (?7 IS NULL OR id < ?7)
         ORDER BY id DESC LIMIT ?8",
    )?;
    let outcome = outcome.map(Outcome::as_str);
    let most = *limit as i64 + 1;
    let rows = select.query_map(params![tenant, tool, session, outcome, since_ms, until_ms, before, most], |row| {
        Ok((row.get::<_, i64>(12)?, RecordedCall { execution: execution(row)?, predicted: predicted(row, 13)? }))
    })?;
    let mut found: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    let has_more = found.len() > *limit;
    found.truncate(*limit);
    let next = found.last().map(|(id, _)| *id).filter(|_| has_more);
    Ok(ExecutionPage { calls: found.into_iter().map(|(_, call)| call).collect(), next })
}

fn predicted(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Predicted>> {
    Ok(row.get_ref(column)?.as_blob_or_null()?.and_then(Predicted::from_bytes))
}

/// The latest calls of one key, in the order of its index.
pub(super) fn timed_calls(connection: &Connection, wanted: &TimedCallFilter) -> rusqlite::Result<Vec<TimedCall>> {
    let TimedCallFilter { tenant, tool, mode, failed, limit } = wanted;
    let mut select = connection.prepare_cached(
        "SELECT at_ms, duration_ms, outcome, predicted FROM executions
         WHERE tool = ?2 AND mode IS ?3 AND failed = ?4 AND duration_ms >= 0 AND tenant = ?1
         ORDER BY id DESC LIMIT ?5",
    )?;
    let rows = select.query_map(params![tenant, tool, mode, failed, *limit as i64], |row| {
        Ok(TimedCall {
            at_ms: row.get(0)?,
            duration_ms: row.get::<_, i64>(1)?.max(0).cast_unsigned(),
            // Only names that it parses are ever written.
            outcome: Outcome::parse(row.get_ref(2)?.as_str()?).unwrap_or(Outcome::Success),
            predicted: predicted(row, 3)?,
        })
    })?;
    rows.collect()
}

/// No more choices are kept than can be looked through.
pub(super) fn choices(
    connection: &Connection,
    tenant: &str,
    tool: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Choice>> {
    let mut select = connection.prepare_cached(
        "SELECT at_us, message, trust FROM choices WHERE tenant = ?1 AND tool = ?2 ORDER BY id DESC LIMIT ?3",
    )?;
    let rows = select.query_map(params![tenant, tool, limit as i64], |row| {
        Ok(Choice { at_us: row.get(0)?, message: row.get(1)?, trust: row.get(2)? })
    })?;
    rows.collect()
}

/// The turns of a session that are kept.
pub(super) fn kept_turns(connection: &Connection, tenant: &str, session: &str) -> rusqlite::Result<Vec<KeptTurn>> {
    let mut select = connection.prepare_cached(
        "SELECT number, at_us, state FROM kept_turns WHERE tenant = ?1 AND session = ?2 ORDER BY number DESC LIMIT ?3",
    )?;
    let rows = select.query_map(params![tenant, session, KEPT_TURNS], |row| {
        Ok(KeptTurn { number: row.get(0)?, at_us: row.get(1)?, state: row.get(2)? })
    })?;
    rows.collect()
}

/// Sessions in the order of their last calls. It goes back from the last call until a page is full; so the first page,
/// which is looked at most, takes a few rows for each of its sessions.
pub(super) fn sessions(connection: &Connection, wanted: &SessionFilter) -> rusqlite::Result<SessionPage> {
    let SessionFilter { tenant, before, limit } = wanted;
    let before = before.unwrap_or(i64::MAX);
    let after: i64 =
        connection.query_row("SELECT coalesce(max(id), 0) - ?1 FROM executions", [LATEST], |row| row.get(0))?;
    // In the order of the table: the index of sessions would have to be sorted.
    let mut walk = connection.prepare_cached(
        "SELECT session, id FROM executions NOT INDEXED
         WHERE tenant = ?1 AND session IS NOT NULL AND id > ?2 AND id < ?3 ORDER BY id DESC",
    )?;
    let mut called_later = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM executions WHERE tenant = ?1 AND session = ?2 AND id >= ?3)")?;
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    let mut rows = walk.query(params![tenant, after, before])?;
    while let Some(row) = rows.next()?
        && found.len() <= *limit
    {
        let session = row.get_ref(0)?.as_str()?;
        if seen.contains(session) {
            continue;
        }
        seen.insert(session.to_owned());
        // Else it was on a page before.
        if before == i64::MAX || !called_later.query_row(params![tenant, session, before], |row| row.get(0))? {
            found.push((row.get::<_, i64>(1)?, session.to_owned()));
        }
    }
    let has_more = found.len() > *limit;
    found.truncate(*limit);
    let next = found.last().map(|(id, _)| *id).filter(|_| has_more);
    let sessions = found.into_iter().map(|(_, session)| session_row(connection, tenant, &session, after));
    Ok(SessionPage { sessions: sessions.collect::<rusqlite::Result<_>>()?, next })
}

/// What its calls after this record say of a session.
fn session_row(connection: &Connection, tenant: &str, session: &str, after: i64) -> rusqlite::Result<SessionRow> {
    let mut select = connection.prepare_cached(
        "SELECT COUNT(*), SUM(outcome = 'error'), SUM(outcome = 'timeout'), MIN(at_ms), MAX(at_ms)
         FROM executions WHERE tenant = ?1 AND session = ?2 AND id > ?3",
    )?;
    select.query_row(params![tenant, session, after], |row| {
        let count = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.max(0).cast_unsigned());
        Ok(SessionRow {
            calls: count(0)?,
            errors: count(1)?,
            timeouts: count(2)?,
            first_ms: row.get(3)?,
            last_ms: row.get(4)?,
            session: session.to_owned(),
        })
    })
}
