//! Recorded calls as they stand in the database.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::group::Incarnation;
use super::session::DatabaseSession;
use crate::store::{
    ExecutionFilter, ExecutionPage, RecordedCall, SessionFilter, SessionPage, SessionRow, TimedCallFilter,
};
use crate::timing::{Execution, Measures, Outcome, Predicted, TimedCall};

/// Records that sessions are looked for in: the latest, so that a long history takes no longer.
const LATEST: i64 = 100_000;

/// A page of records, stepping back by number: records are never changed, so a page holds what it held.
pub async fn page(session: &DatabaseSession, wanted: &ExecutionFilter) -> Result<ExecutionPage, DatabaseFault> {
    let ExecutionFilter { tenant, tool, session: of_session, outcome, since_ms, until_ms, before, limit } = wanted;
    let query = "SELECT tenant, tool, mode, duration_ms, outcome, content_length, num_perspectives, num_branches,
               thinking_budget, context_tokens, session, at_ms, id, predicted
        FROM almanac.executions
        WHERE tenant = $1 AND ($2 IS NULL OR tool = $2) AND ($3 IS NULL OR session = $3)
            AND ($4 IS NULL OR outcome = $4) AND ($5 IS NULL OR at_ms >= $5) AND ($6 IS NULL OR at_ms < $6)
            AND id < $7
        ORDER BY id DESC LIMIT $8";
    let outcome = outcome.map(Outcome::as_str);
    let (before, most) = (before.unwrap_or(i64::MAX), *limit as i64 + 1);
    let values = [
        (tenant as _, Type::TEXT),
        (tool as _, Type::TEXT),
        (of_session as _, Type::TEXT),
        (&outcome as _, Type::TEXT),
        (since_ms as _, Type::INT8),
        (until_ms as _, Type::INT8),
        (&before as _, Type::INT8),
        (&most as _, Type::INT8),
    ];
    let rows = session.query(query, &values).await?;
    let next = rows.get(limit.wrapping_sub(1)).filter(|_| rows.len() > *limit).map(|row| row.get(12));
    let call = |row: &Row| RecordedCall { execution: execution(row), predicted: predicted(row, 13) };
    Ok(ExecutionPage { calls: rows.iter().take(*limit).map(call).collect(), next })
}

/// What a writer stored behind a number, so many at once: a call's columns, its id, its number.
pub(super) const BEHIND: &str = "SELECT tenant, tool, mode, duration_ms, outcome, content_length, num_perspectives,
        num_branches, thinking_budget, context_tokens, session, at_ms, id, sequence
    FROM almanac.executions WHERE incarnation = $1 AND sequence > $2 ORDER BY sequence LIMIT $3";

/// A call, from these columns: tenant, tool, mode, duration, outcome, the five measures, session and moment.
pub(super) fn execution(row: &Row) -> Execution {
    let number = |column: usize| row.get::<_, Option<i64>>(column).map(i64::cast_unsigned);
    Execution {
        tenant: row.get(0),
        tool: row.get(1),
        mode: row.get(2),
        duration_ms: number(3),
        outcome: outcome(row, 4),
        measures: Measures {
            content_length: number(5),
            num_perspectives: number(6),
            num_branches: number(7),
            thinking_budget: number(8),
            context_tokens: number(9),
        },
        session: row.get(10),
        at_ms: row.get(11),
        idempotency_key: None,
    }
}

/// Only names that it parses are ever written.
fn outcome(row: &Row, column: usize) -> Outcome {
    Outcome::parse(row.get(column)).unwrap_or(Outcome::Success)
}

pub(super) fn predicted(row: &Row, column: usize) -> Option<Predicted> {
    row.get::<_, Option<&[u8]>>(column).and_then(Predicted::from_bytes)
}

/// The latest calls of one key with a duration, in the order of its index.
pub async fn timed_calls(session: &DatabaseSession, wanted: &TimedCallFilter) -> Result<Vec<TimedCall>, DatabaseFault> {
    let TimedCallFilter { tenant, tool, mode, failed, limit } = wanted;
    // An index finds either of these; what is the same or nothing at once, it does not.
    let of_mode = if mode.is_some() { "mode = $3" } else { "mode IS NULL AND $3 IS NULL" };
    let query = format!(
        "SELECT at_ms, duration_ms, outcome, predicted FROM almanac.executions
         WHERE tenant = $1 AND tool = $2 AND {of_mode} AND failed = $4 AND duration_ms IS NOT NULL
         ORDER BY id DESC LIMIT $5"
    );
    let most = *limit as i64;
    let values = [
        (tenant as _, Type::TEXT),
        (tool as _, Type::TEXT),
        (mode as _, Type::TEXT),
        (failed as _, Type::BOOL),
        (&most as _, Type::INT8),
    ];
    let rows = session.query(&query, &values).await?;
    let call = |row: &Row| TimedCall {
        at_ms: row.get(0),
        duration_ms: row.get::<_, i64>(1).cast_unsigned(),
        outcome: outcome(row, 2),
        predicted: predicted(row, 3),
    };
    Ok(rows.iter().map(call).collect())
}

/// Sessions in the order of their last calls, as the latest records show them.
pub async fn sessions(session: &DatabaseSession, wanted: &SessionFilter) -> Result<SessionPage, DatabaseFault> {
    let SessionFilter { tenant, before, limit } = wanted;
    let query = "SELECT session, max(id) AS last, count(*), count(*) FILTER (WHERE outcome = 'error'),
               count(*) FILTER (WHERE outcome = 'timeout'), min(at_ms), max(at_ms)
        FROM almanac.executions
        WHERE tenant = $1 AND session IS NOT NULL AND id > (SELECT last_value FROM almanac.execution_ids) - $2
        GROUP BY session HAVING max(id) < $3 ORDER BY last DESC LIMIT $4";
    let (before, most) = (before.unwrap_or(i64::MAX), *limit as i64 + 1);
    let values =
        [(tenant as _, Type::TEXT), (&LATEST as _, Type::INT8), (&before as _, Type::INT8), (&most as _, Type::INT8)];
    let rows = session.query(query, &values).await?;
    let next = rows.get(limit.wrapping_sub(1)).filter(|_| rows.len() > *limit).map(|row| row.get(1));
    let count = |row: &Row, column: usize| row.get::<_, i64>(column).cast_unsigned();
    let session_row = |row: &Row| SessionRow {
        session: row.get(0),
        calls: count(row, 2),
        errors: count(row, 3),
        timeouts: count(row, 4),
        first_ms: row.get(5),
        last_ms: row.get(6),
    };
    Ok(SessionPage { sessions: rows.iter().take(*limit).map(session_row).collect(), next })
}

/// Keeps what was predicted of a writer's records beside them, within `patience`. Those that are not stored stay
/// without.
pub async fn keep_predicted(
    session: &DatabaseSession,
    writer: Incarnation,
    predicted: &[(i64, Predicted)],
    patience: Duration,
) -> Result<(), DatabaseFault> {
    let (numbers, bytes): (Vec<i64>, Vec<Vec<u8>>) =
        predicted.iter().map(|(number, predicted)| (*number, predicted.to_bytes())).unzip();
    let update = "UPDATE almanac.executions SET predicted = known.predicted
        FROM unnest($2::int8[], $3::bytea[]) AS known (sequence, predicted)
        WHERE executions.incarnation = $1 AND executions.sequence = known.sequence";
    let writer = writer.bytes();
    let values = [(&writer as _, Type::BYTEA), (&numbers as _, Type::INT8_ARRAY), (&bytes as _, Type::BYTEA_ARRAY)];
    session.commit(update, &values, patience).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::group::commit;
    use super::super::migrations::{Migration, open};
    use super::super::partitions::prepare;
    use super::super::test_server::TestServer;
    use super::*;
    use crate::store::suite::records::execution;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Stores calls for two writers in turn.
    async fn store(session: &DatabaseSession, calls: Vec<Execution>) -> [Incarnation; 2] {
        let writers = [(); 2].map(|()| Incarnation::random().unwrap());
        prepare(session).await.unwrap();
        for (number, call) in (0..).zip(calls) {
            let writer = writers[number as usize % 2];
            commit(session, writer, &[(number + 1, call)], PATIENCE).await.unwrap();
        }
        writers
    }

    #[tokio::test]
    async fn records_of_all_writers_are_listed_the_latest_first_page_by_page() {
        let Some(server) = TestServer::start() else { return };
        let session = open(&server.address("postgres", ""), Migration::Auto).await.unwrap();
        let call = |number: u64| Execution {
            tenant: if number % 5 == 4 { "other" } else { "default" }.into(),
            session: number.is_multiple_of(2).then(|| "s".into()),
            outcome: if number.is_multiple_of(3) { Outcome::Error } else { Outcome::Success },
            at_ms: 1_700_000_000_000 + number as i64,
            ..execution(if number < 6 { "a" } else { "b" }, None, number, None)
        };
        store(&session, (0..10).map(call).collect()).await;
        let check = async |wanted: ExecutionFilter, expected: &[u64]| {
            let (mut found, mut before) = (Vec::new(), None);
            loop {
                let page = page(&session, &ExecutionFilter { before, limit: 2, ..wanted.clone() }).await.unwrap();
                assert!(page.calls.len() <= 2);
                found.extend(page.calls.into_iter().map(|recorded| recorded.execution));
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected.iter().map(|number| call(*number)).collect::<Vec<_>>(), "{wanted:?}");
        };
        let own = ExecutionFilter { tenant: "default".into(), ..ExecutionFilter::default() };
        check(own.clone(), &[8, 7, 6, 5, 3, 2, 1, 0]).await;
        check(ExecutionFilter { tool: Some("a".into()), ..own.clone() }, &[5, 3, 2, 1, 0]).await;
        check(ExecutionFilter { session: Some("s".into()), ..own.clone() }, &[8, 6, 2, 0]).await;
        check(ExecutionFilter { outcome: Some(Outcome::Error), ..own.clone() }, &[6, 3, 0]).await;
        let (since_ms, until_ms) = (Some(1_700_000_000_003), Some(1_700_000_000_007));
        check(ExecutionFilter { since_ms, until_ms, ..own.clone() }, &[6, 5, 3]).await;
        check(ExecutionFilter { tenant: "nobody".into(), ..own }, &[]).await;
    }

    #[tokio::test]
    async fn what_was_predicted_stands_beside_the_call() {
        let Some(server) = TestServer::start() else { return };
        let session = open(&server.address("postgres", ""), Migration::Auto).await.unwrap();
        let untimed = Execution { duration_ms: None, ..execution("a", None, 0, None) };
        let failed = Execution { outcome: Outcome::Error, ..execution("a", None, 4, None) };
        let theirs = Execution { tenant: "other".into(), ..execution("a", None, 6, None) };
        let (one, two) = (execution("a", None, 1, None), execution("a", None, 2, None));
        let calls = vec![one, two, untimed, failed, execution("a", Some("m"), 5, None), theirs];
        let [writer, other] = store(&session, calls).await;
        let sketch = |middle| Predicted::sketch([1, 2, middle, 400, 500]);
        keep_predicted(&session, writer, &[(1, sketch(10)), (2, sketch(20)), (99, sketch(30))], PATIENCE)
            .await
            .unwrap();
        keep_predicted(&session, other, &[(4, sketch(40))], PATIENCE).await.unwrap();
        let check = async |mode: Option<&str>, failed, expected: &[(u64, Option<Predicted>)]| {
            let (tenant, tool) = ("default".to_owned(), "a".to_owned());
            let wanted = TimedCallFilter { tenant, tool, mode: mode.map(Into::into), failed, limit: 10 };
            let calls = timed_calls(&session, &wanted).await.unwrap();
            let found: Vec<_> = calls.iter().map(|call| (call.duration_ms, call.predicted)).collect();
            assert_eq!(found, expected, "{mode:?} {failed}");
        };
        check(None, false, &[(2, None), (1, Some(sketch(10)))]).await;
        check(None, true, &[(4, Some(sketch(40)))]).await;
        check(Some("m"), false, &[(5, None)]).await;
        check(Some("n"), false, &[]).await;
    }

    #[tokio::test]
    async fn sessions_are_listed_the_latest_first_page_by_page() {
        let Some(server) = TestServer::start() else { return };
        let session = open(&server.address("postgres", ""), Migration::Auto).await.unwrap();
        let names = ["a", "b", "a", "c", "d", "b", "d", "a", "e"];
        let call = |(number, name): (usize, &&str)| Execution {
            session: Some((*name).into()),
            tenant: if *name == "e" { "other" } else { "default" }.into(),
            outcome: if number == 0 { Outcome::Error } else { Outcome::Timeout },
            at_ms: 1_700_000_000_000 + number as i64,
            ..execution("t", None, 1, None)
        };
        store(&session, names.iter().enumerate().map(call).collect()).await;
        for limit in 1..6 {
            let (mut found, mut before) = (Vec::new(), None);
            loop {
                let wanted = SessionFilter { tenant: "default".into(), before, limit };
                let page = sessions(&session, &wanted).await.unwrap();
                assert!(page.sessions.len() <= limit);
                found.extend(page.sessions);
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
            let calls: Vec<(&str, u64)> = found.iter().map(|row| (row.session.as_str(), row.calls)).collect();
            assert_eq!(calls, [("a", 3), ("d", 2), ("b", 2), ("c", 1)], "{limit} a page");
            let first = &found[0];
            assert_eq!((first.errors, first.timeouts, first.last_ms - first.first_ms), (1, 2, 7));
        }
    }
}
