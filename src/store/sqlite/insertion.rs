//! Writing records, with their keys and what was predicted of them.

use rusqlite::{Transaction, params};

use crate::store::clock::now;
use crate::timing::{Execution, Outcome, Predicted};

/// In place of a duration that is not known.
const UNTIMED: i64 = -1;

/// Writes records, and what was `predicted` of them and of those that were written before, in the order of their ids.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    records: &[(i64, Execution)],
    predicted: &[(i64, Predicted)],
) -> rusqlite::Result<()> {
    let first = records.first().map_or(i64::MAX, |(id, _)| *id);
    let (of_written, predicted) = predicted.split_at(predicted.partition_point(|(id, _)| *id < first));
    if !of_written.is_empty() {
        let mut add = transaction.prepare_cached("UPDATE executions SET predicted = ?2 WHERE id = ?1")?;
        for (id, predicted) in of_written {
            add.execute(params![id, predicted.to_bytes()])?;
        }
    }
    let predicted_of = |id: &i64| {
        let place = predicted.binary_search_by_key(id, |(id, _)| *id).ok()?;
        Some(predicted[place].1.to_bytes())
    };
    let now = now().as_millis() as i64;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO executions (id, tenant, tool, mode, failed, duration_ms, outcome, content_length, num_perspectives,
                                 num_branches, thinking_budget, context_tokens, session, at_ms, predicted)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    let mut remember = transaction.prepare_cached(
        "INSERT INTO idempotency_keys (tenant, key, digest, at_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?;
    for (id, execution) in records {
        let Execution { tenant, tool, mode, duration_ms, outcome, measures, session, at_ms, idempotency_key } =
            execution;
        if let Some(key) = idempotency_key {
            remember.execute(params![tenant, key.name, key.digest, now])?;
        }
        let number = |measure: Option<u64>| measure.map(u64::cast_signed);
        insert.execute(params![
            id,
            tenant,
            tool,
            mode,
            *outcome == Outcome::Error,
            duration_ms.map_or(UNTIMED, u64::cast_signed),
            outcome.as_str(),
            number(measures.content_length),
            number(measures.num_perspectives),
            number(measures.num_branches),
            number(measures.thinking_budget),
            number(measures.context_tokens),
            session,
            at_ms,
            predicted_of(id),
        ])?;
    }
    Ok(())
}
