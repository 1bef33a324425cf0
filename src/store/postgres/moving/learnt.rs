//! What was learnt of records, as it stands: more than the records that are left would teach.

use tokio_postgres::types::Type;

use super::MoveError;
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::learnt::{KeptCall, LATEST, LearningDaemon, bytes_of};
use crate::store::postgres::learnt_rows::{CountRows, TrailRows};
use crate::store::postgres::revision::Revision;
use crate::store::postgres::session::DatabaseSession;
use crate::store::sqlite::source::{CountedCalls, LearntSource, SqliteSource, TrailRow};

pub(super) async fn copy(
    source: &SqliteSource,
    session: &DatabaseSession,
    learning: &LearningDaemon,
) -> Result<(), MoveError> {
    let query = "SELECT through, tick FROM almanac.daemons WHERE daemon = $1";
    let row = session.query_one(query, &[(&learning.daemon.bytes(), Type::BYTEA)]).await?;
    let learnt = source.learnt(row.get(0), row.get(1), LATEST)?;
    session.begin().await?;
    let written = write(session, learning, &learnt).await;
    session.end(written.is_ok()).await?;
    Ok(written?)
}

async fn write(
    session: &DatabaseSession,
    learning: &LearningDaemon,
    learnt: &LearntSource,
) -> Result<(), DatabaseFault> {
    let LearntSource { through, tick, counts, trails } = learnt;
    let daemon = learning.daemon.bytes();
    let revision = Revision::next(session, learning.daemon).await?;
    let values = [(&daemon as _, Type::BYTEA), (through as _, Type::INT8), (tick as _, Type::INT8)];
    session.query("UPDATE almanac.daemons SET through = $2, tick = $3 WHERE daemon = $1", &values).await?;
    let fold = "UPDATE almanac.folds SET through = $2 WHERE incarnation = $1 AND daemon = $1";
    session.query(fold, &values[..2]).await?;
    let mut rows = CountRows::default();
    for CountedCalls { key, samples, last, latest } in counts {
        let calls: Vec<KeptCall> = latest.iter().map(KeptCall::of).collect();
        rows.push(key, *samples, *last, bytes_of(&calls)?);
    }
    rows.put(session, daemon, &revision).await?;
    let mut rows = TrailRows::default();
    for TrailRow { before, last, followers, tick } in trails {
        rows.push(before, last, followers.clone(), *tick);
    }
    rows.put(session, daemon, &revision).await
}
