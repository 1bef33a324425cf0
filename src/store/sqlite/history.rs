//! What a start reads back of the records: of each key the latest, found in the index, so that it takes as long for ten
//! million records as for ten thousand.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row, params};

use super::{notes, projection};
use crate::store::{History, ReplayLimits, SessionCall, StoreError};
use crate::timing::{Execution, KeyCount, Measures, Outcome};

/// How many rows are looked at for one whose duration is known, and for one that belongs to a session.
const SPARSITY: u32 = 10;

/// Reads what the database at `path` has.
pub(super) fn read(path: &Path, limits: ReplayLimits) -> Result<History, StoreError> {
    read_from(path, limits).map_err(|error| StoreError::Unavailable(error.to_string()))
}

fn read_from(path: &Path, limits: ReplayLimits) -> rusqlite::Result<History> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let counts = counts(&connection, limits.keys)?;
    Ok(History {
        executions: executions(&connection, &counts, limits)?,
        counts,
        fleet: Vec::new(),
        calls: calls(&connection, limits.of_sessions)?,
        transitions: projection::read_trails(&connection)?,
        notes: notes::read_all(&connection)?,
    })
}

/// Of the keys that were called last, how many records there are.
fn counts(connection: &Connection, keys: u32) -> rusqlite::Result<Vec<KeyCount>> {
    let mut select = connection.prepare(
        "SELECT tool, mode, failed, samples FROM execution_keys WHERE samples > 0 ORDER BY last_id DESC LIMIT ?1",
    )?;
    let rows = select.query_map([keys], |row| {
        let mode: String = row.get(1)?;
        Ok(KeyCount {
            tool: row.get(0)?,
            mode: Some(mode).filter(|mode| !mode.is_empty()),
            failed: row.get(2)?,
            samples: row.get::<_, i64>(3)?.cast_unsigned(),
        })
    })?;
    let mut counts: Vec<KeyCount> = rows.collect::<rusqlite::Result<_>>()?;
    counts.sort_unstable_by(|a, b| (&a.tool, &a.mode, a.failed).cmp(&(&b.tool, &b.mode, b.failed)));
    Ok(counts)
}

/// The latest records of a key: its columns are those of the index, and so is the order.
const OF_KEY: &str = "SELECT tenant, tool, mode, executions.duration_ms, outcome, content_length, num_perspectives,
           num_branches, thinking_budget, context_tokens, session, at_ms, id
    FROM (
        SELECT id, duration_ms FROM executions WHERE tool = ?1 AND mode IS ?2 AND failed = ?3
        ORDER BY id DESC LIMIT ?5
    ) AS latest JOIN executions USING (id)
    WHERE latest.duration_ms >= 0 ORDER BY id DESC LIMIT ?4";

fn executions(connection: &Connection, keys: &[KeyCount], limits: ReplayLimits) -> rusqlite::Result<Vec<Execution>> {
    let each = limits.rows_of_each(keys);
    let mut select = connection.prepare(OF_KEY)?;
    let mut latest: Vec<(i64, Execution)> = Vec::new();
    for KeyCount { tool, mode, failed, .. } in keys {
        let key = params![tool, mode, failed, each, each.saturating_mul(SPARSITY)];
        for row in select.query_map(key, |row| Ok((row.get(12)?, execution(row)?)))? {
            latest.push(row?);
        }
    }
    latest.sort_unstable_by_key(|(id, _)| *id);
    Ok(latest.into_iter().map(|(_, execution)| execution).collect())
}

/// A call, from these columns: tenant, tool, mode, duration, outcome, the five measures, session and moment.
pub(super) fn execution(row: &Row<'_>) -> rusqlite::Result<Execution> {
    let outcome: String = row.get(4)?;
    Ok(Execution {
        tenant: row.get(0)?,
        tool: row.get(1)?,
        mode: row.get(2)?,
        duration_ms: u64::try_from(row.get::<_, i64>(3)?).ok(),
        // Only names that it parses are ever written.
        outcome: Outcome::parse(&outcome).unwrap_or(Outcome::Success),
        measures: Measures {
            content_length: measure(row, 5)?,
            num_perspectives: measure(row, 6)?,
            num_branches: measure(row, 7)?,
            thinking_budget: measure(row, 8)?,
            context_tokens: measure(row, 9)?,
        },
        session: row.get(10)?,
        at_ms: row.get(11)?,
        idempotency_key: None,
    })
}

fn measure(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(i64::cast_unsigned))
}

fn calls(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<SessionCall>> {
    let mut select = connection.prepare(
        "SELECT tenant, session, tool, at_ms FROM executions
         WHERE id > (SELECT coalesce(max(id), 0) FROM executions) - ?2 AND session IS NOT NULL
         ORDER BY id DESC LIMIT ?1",
    )?;
    let rows = select.query_map([limit, limit.saturating_mul(SPARSITY)], |row| {
        Ok(SessionCall { tenant: row.get(0)?, session: row.get(1)?, tool: row.get(2)?, at_ms: row.get(3)? })
    })?;
    let mut calls: Vec<SessionCall> = rows.collect::<rusqlite::Result<_>>()?;
    calls.reverse();
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::super::migrations::migrate;
    use super::*;

    #[test]
    fn no_record_is_looked_at_that_is_not_read_back() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let plan = |query: &str| -> Vec<String> {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
            let parameters = rusqlite::params_from_iter((0..explain.parameter_count()).map(|_| 1));
            explain.query_map(parameters, |row| row.get(3)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
        };
        let plan = plan(OF_KEY);
        let by_key = "SEARCH executions USING COVERING INDEX executions_by_key (tool=? AND mode=? AND failed=?)";
        assert!(plan.iter().any(|step| step == by_key), "{plan:?}");
        assert!(plan.iter().all(|step| !step.starts_with("SCAN executions")), "{plan:?}");
    }

    #[test]
    fn many_keys_have_fewer_rows_each() {
        let check = |samples: &[u64], in_all: u32, expected: u32| {
            let keys: Vec<KeyCount> = samples
                .iter()
                .map(|&samples| KeyCount { tool: "a".into(), mode: None, failed: false, samples })
                .collect();
            let limits = ReplayLimits { in_all, ..ReplayLimits::default() };
            assert_eq!(limits.rows_of_each(&keys), expected, "of {samples:?} at most {in_all}");
        };
        check(&[], 100, 50);
        check(&[1000, 1000], 100, 50);
        check(&[1000, 1000], 99, 49);
        check(&[1000, 3, 3], 36, 30);
        check(&[1000, 1000, 1000], 2, 1);
    }
}
