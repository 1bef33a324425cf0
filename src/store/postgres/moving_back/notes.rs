//! Where sessions stand, their last turns, and choices with what they moved.

use std::collections::HashMap;

use super::{MoveBackError, PATIENCE};
use crate::store::postgres::moving::Progress;
use crate::store::postgres::session::DatabaseSession;
use crate::store::sqlite::source::{ChoiceRow, KeptRow, TurnRow};
use crate::store::sqlite::target::SqliteTarget;

pub(super) async fn copy(
    session: &DatabaseSession,
    target: &mut SqliteTarget,
    progress: &mut Progress<'_>,
) -> Result<(), MoveBackError> {
    let query = "SELECT tenant, session, number, digest, state, at_us FROM almanac.kept_turns ORDER BY number";
    let mut kept: HashMap<(String, String), Vec<KeptRow>> = HashMap::new();
    for row in session.query_within(query, &[], PATIENCE).await? {
        let turn = KeptRow { number: row.get(2), digest: row.get(3), state: row.get(4), at_us: row.get(5) };
        kept.entry((row.get(0), row.get(1))).or_default().push(turn);
    }
    let query = "SELECT tenant, session, state, at_us FROM almanac.turns";
    let rows = session.query_within(query, &[], PATIENCE).await?;
    let turns = rows.iter().map(|row| {
        let (tenant, session): (String, String) = (row.get(0), row.get(1));
        let kept = kept.remove(&(tenant.clone(), session.clone())).unwrap_or_default();
        TurnRow { tenant, session, state: row.get(2), at_us: row.get(3), kept }
    });
    target.turns(&turns.collect::<Vec<_>>())?;
    progress.add(rows.len());
    let query = "SELECT tenant, tool, message, trust, at_us, coalesce(state, '') FROM almanac.choices
        LEFT JOIN almanac.adaptations USING (tenant) ORDER BY id";
    let rows = session.query_within(query, &[], PATIENCE).await?;
    let choices = rows.iter().map(|row| ChoiceRow {
        tenant: row.get(0),
        tool: row.get(1),
        message: row.get(2),
        trust: row.get(3),
        at_us: row.get(4),
        adaptation: row.get(5),
    });
    target.choices(&choices.collect::<Vec<_>>())?;
    progress.add(rows.len());
    Ok(())
}
