//! What a daemon left that does not start again: its records are sent under the numbers they had, so that each is
//! stored once however often that is done, and then what follows from them is learnt, which nobody else would.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use super::forwarder::Forwarder;
use super::group::Incarnation;
use super::learnt::{self, LearntRecords};
use super::migrations::{self, Migration};
use super::outbox::{MAX_GROUP, OutboxError};
use super::partitions;
use super::session::DatabaseSession;
use super::spool::LeftSpool;

/// How long the server may take for a group.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of the records of a spool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForwardedSpool {
    pub records: usize,
    /// Those that were stored by an earlier try.
    pub stored_before: usize,
    /// Those that had been told by another daemon, under their keys.
    pub told: usize,
    /// Those that the server refuses for what they are, which are put aside.
    pub refused: usize,
}

/// Sends a spool, says after each group how many records are done, and learns from them.
///
/// # Errors
/// What was in the way. Some of the records may be stored; the same may be sent again.
pub async fn forward(
    left: &LeftSpool,
    address: &DatabaseAddress,
    migration: Migration,
    mut progress: impl FnMut(usize),
) -> Result<ForwardedSpool, OutboxError> {
    let session = migrations::open(address, migration).await?;
    partitions::prepare(&session).await?;
    let through = through(&session, left.writer).await?;
    let stored_before = left.records.partition_point(|(number, _)| *number <= through);
    let mut forwarded = ForwardedSpool { records: left.records.len(), stored_before, ..ForwardedSpool::default() };
    let mut forwarder = Forwarder::new(address.clone(), left.writer);
    forwarder.adopt(session);
    let mut done = 0;
    for group in left.records.chunks(MAX_GROUP) {
        done += group.len();
        // The last is sent in any case: its commit covers those before on a standby, too.
        if done > stored_before || done == left.records.len() {
            let aside = |record: &_, why: &_| left.put_aside(record, why).map(drop).map_err(OutboxError::from);
            let sent = forwarder.forward_but(group, PATIENCE, aside).await?;
            forwarded.told += sent.told.len();
            forwarded.refused += sent.refused.len();
        }
        progress(done);
    }
    if !left.records.is_empty() {
        let session = forwarder.session(PATIENCE).await?;
        let learning = learnt::take_over(session, left.writer).await?;
        LearntRecords::read(session, &learning).await?.commit(session, &learning, left.writer, PATIENCE).await?;
    }
    Ok(forwarded)
}

/// Up to which number a writer's records are stored.
async fn through(session: &DatabaseSession, writer: Incarnation) -> Result<i64, DatabaseFault> {
    let query = "SELECT through FROM almanac.writers WHERE incarnation = $1";
    let rows = session.query(query, &[(&writer.bytes(), Type::BYTEA)]).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}
