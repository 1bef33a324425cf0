//! Records, in the order in which they are listed, under new ids; and the keys that were told.

use super::{AT_ONCE, MoveBackError, PATIENCE};
use crate::store::postgres::audit::{execution, predicted};
use crate::store::postgres::moving::Progress;
use crate::store::postgres::session::DatabaseSession;
use crate::store::sqlite::source::ToldKey;
use crate::store::sqlite::target::SqliteTarget;
use crate::timing::{Execution, Predicted};

/// Returns the id of the last.
pub(super) async fn copy(
    session: &DatabaseSession,
    target: &mut SqliteTarget,
    progress: &mut Progress<'_>,
) -> Result<i64, MoveBackError> {
    session
        .run(
            "DECLARE copied CURSOR FOR
             SELECT tenant, tool, mode, duration_ms, outcome, content_length, num_perspectives, num_branches,
                thinking_budget, context_tokens, session, at_ms, predicted
             FROM almanac.executions ORDER BY id",
        )
        .await?;
    let mut id = 0;
    let fetch = format!("FETCH {AT_ONCE} FROM copied");
    loop {
        let rows = session.query_within(&fetch, &[], PATIENCE).await?;
        if rows.is_empty() {
            break;
        }
        let ids = id + 1..;
        let records: Vec<(i64, Execution)> = ids.clone().zip(rows.iter().map(execution)).collect();
        let known: Vec<(i64, Predicted)> =
            ids.zip(&rows).filter_map(|(id, row)| Some((id, predicted(row, 12)?))).collect();
        target.records(&records, &known)?;
        id += rows.len() as i64;
        progress.add(rows.len());
    }
    let told = "SELECT tenant, key, digest, (extract(epoch FROM told_at) * 1000)::int8 FROM almanac.call_keys";
    let keys = session.query_within(told, &[], PATIENCE).await?;
    let keys = keys.iter().map(|row| ToldKey {
        tenant: row.get(0),
        key: row.get(1),
        digest: row.get::<_, String>(2).into_bytes(),
        id: String::new(),
        at_ms: row.get(3),
    });
    target.call_keys(&keys.collect::<Vec<_>>())?;
    Ok(id)
}
