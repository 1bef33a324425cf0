//! What a start reads back: what this daemon and those beside it learnt, and what is the tenants'.

use super::fault::DatabaseFault;
use super::following::Following;
use super::learnt;
use super::session::DatabaseSession;
use super::{notes, trails};
use crate::store::{History, ReplayLimits};

/// All of one state of the database, which others are followed from.
pub(super) async fn read(
    session: &DatabaseSession,
    following: &Following,
    limits: ReplayLimits,
) -> Result<History, DatabaseFault> {
    session.begin_snapshot().await?;
    let read = read_snapshot(session, following, limits).await;
    session.end(false).await?;
    read
}

async fn read_snapshot(
    session: &DatabaseSession,
    following: &Following,
    limits: ReplayLimits,
) -> Result<History, DatabaseFault> {
    let learning = following.learning();
    let fleet = following.begin(session).await?;
    let (counts, executions) = learnt::durations(session, &learning.host, limits).await?;
    Ok(History {
        executions,
        counts,
        fleet,
        calls: learnt::session_calls(session, limits.of_sessions).await?,
        transitions: following.trails().begin(learning.daemon, trails::read(session, None).await?),
        notes: notes::read_all(session).await?,
    })
}
