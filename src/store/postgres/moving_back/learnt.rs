//! What all daemons learnt of calls, added up.

use std::collections::BTreeMap;

use super::{MoveBackError, PATIENCE};
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::group::Incarnation;
use crate::store::postgres::learnt::{LearningDaemon, LearntRecords};
use crate::store::postgres::session::DatabaseSession;
use crate::store::postgres::trails;
use crate::store::projection::CountedKey;
use crate::store::sqlite::source::TrailRow;
use crate::store::sqlite::target::SqliteTarget;
use crate::suggest::transitions::{Followers, Prefix};

/// Has each daemon's last records folded, which it has not come to itself.
pub(super) async fn settle(session: &DatabaseSession) -> Result<(), MoveBackError> {
    let writer = Incarnation::random().map_err(|error| DatabaseFault::Other {
        code: String::new(),
        message: format!("the system has no random numbers: {error}"),
    })?;
    let behind = "SELECT DISTINCT d.daemon, d.host FROM almanac.daemons AS d
        JOIN almanac.folds AS f USING (daemon) JOIN almanac.writers AS w USING (incarnation)
        WHERE w.through > f.through";
    for row in session.query(behind, &[]).await? {
        let Ok(bytes) = row.get::<_, &[u8]>(0).try_into() else { continue };
        let learning = LearningDaemon { daemon: Incarnation::of(bytes), host: row.get(1) };
        LearntRecords::read(session, &learning).await?.commit(session, &learning, writer, PATIENCE).await?;
    }
    Ok(())
}

pub(super) async fn copy(
    session: &DatabaseSession,
    target: &mut SqliteTarget,
    through: i64,
) -> Result<(), MoveBackError> {
    let counted = "SELECT tool, mode, failed, sum(samples)::int8 FROM almanac.key_counts GROUP BY tool, mode, failed";
    let rows = session.query_within(counted, &[], PATIENCE).await?;
    let counts: Vec<(CountedKey, i64)> = rows
        .iter()
        .map(|row| (CountedKey { tool: row.get(0), mode: row.get(1), failed: row.get(2) }, row.get(3)))
        .collect();
    // Each daemon numbers its states; they come in the order of these numbers.
    let mut states: BTreeMap<Prefix, (usize, Followers)> = BTreeMap::new();
    for (place, trail) in trails::read(session, None).await?.into_iter().enumerate() {
        let state = states.entry(trail.prefix).or_default();
        *state = (place, state.1.merged(&trail.followers));
    }
    let mut states: Vec<(Prefix, (usize, Followers))> = states.into_iter().collect();
    states.sort_unstable_by_key(|(_, (place, _))| *place);
    let row = |(tick, (prefix, (_, followers))): (i64, (Prefix, (usize, Followers)))| TrailRow {
        before: prefix.before.unwrap_or_default(),
        last: prefix.last,
        followers: followers.encode(),
        tick,
    };
    let trails: Vec<TrailRow> = (1..).zip(states).map(row).collect();
    Ok(target.learnt(through, &counts, &trails)?)
}
