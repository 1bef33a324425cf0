//! What a start reads back: what this daemon and those beside it learnt, and what is the tenants'.

use super::fault::DatabaseFault;
use super::learnt::{self, LearningDaemon};
use super::notes;
use super::session::DatabaseSession;
use crate::store::{History, ReplayLimits};

pub(super) async fn read(
    session: &DatabaseSession,
    learning: &LearningDaemon,
    limits: ReplayLimits,
) -> Result<History, DatabaseFault> {
    let (counts, executions) = learnt::durations(session, &learning.host, limits).await?;
    Ok(History {
        executions,
        counts,
        calls: learnt::session_calls(session, limits.of_sessions).await?,
        transitions: learnt::transitions(session, learning).await?,
        notes: notes::read_all(session).await?,
    })
}
