//! Records, under their ids; what was predicted of them; and the keys that were told within the last week.

use std::path::Path;
use std::time::Duration;

use tokio_postgres::types::Type;

use super::{MoveError, Moved, Progress};
use crate::store::postgres::address::DatabaseAddress;
use crate::store::postgres::audit::keep_predicted;
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::forwarder::Forwarder;
use crate::store::postgres::group::Incarnation;
use crate::store::postgres::outbox::MAX_GROUP;
use crate::store::postgres::session::DatabaseSession;
use crate::store::sqlite::source::SqliteSource;

/// How long the server may take for a group.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was predicted of a record may be written after it, by the transaction of a later one: of so many it is looked
/// for again.
const PREDICTED_LATER: i64 = 10_000;

pub(super) async fn copy(
    source: &SqliteSource,
    path: &Path,
    address: &DatabaseAddress,
    origin: Incarnation,
    progress: &mut Progress<'_>,
    moved: &mut Moved,
) -> Result<(), MoveError> {
    let mut forwarder = Forwarder::new(address.clone(), origin);
    let (first, last) = source.bounds()?;
    let begin = through(forwarder.session(PATIENCE).await?, origin).await?;
    if begin > last {
        return Err(MoveError::Older { path: path.to_owned(), found: last, moved: begin });
    }
    progress.add((begin + 1 - first).max(0) as usize);
    let mut after = begin;
    loop {
        let group = source.records(after, MAX_GROUP)?;
        let Some((id, _)) = group.last() else { break };
        after = *id;
        let sent = forwarder.forward(&group, PATIENCE).await?;
        moved.refused.extend(sent.refused.iter().map(|(number, why)| format!("record {number}: {why}")));
        moved.records.written += (group.len() - sent.refused.len()) as u64;
        progress.add(group.len());
    }
    let session = forwarder.session(PATIENCE).await?;
    let mut done = begin - PREDICTED_LATER;
    while done < after {
        let until = (done + MAX_GROUP as i64).min(after);
        let predicted = source.predicted(done, until)?;
        if !predicted.is_empty() {
            keep_predicted(session, origin, &predicted, PATIENCE).await?;
        }
        done = until;
    }
    copy_keys(source, session, origin).await
}

/// Up to which id records are there.
async fn through(session: &DatabaseSession, origin: Incarnation) -> Result<i64, DatabaseFault> {
    let query = "SELECT through FROM almanac.writers WHERE incarnation = $1";
    let rows = session.query(query, &[(&origin.bytes(), Type::BYTEA)]).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// How many there are of those that the source still has.
pub(super) async fn count(
    source: &SqliteSource,
    session: &DatabaseSession,
    origin: Incarnation,
) -> Result<u64, MoveError> {
    let (first, _) = source.bounds()?;
    let count = "SELECT count(*) FROM almanac.executions WHERE incarnation = $1 AND sequence >= $2";
    let row = session.query_one(count, &[(&origin.bytes(), Type::BYTEA), (&first, Type::INT8)]).await?;
    Ok(row.get::<_, i64>(0).cast_unsigned())
}

/// Keys: which record stands for one is not known any more, and need not be.
async fn copy_keys(source: &SqliteSource, session: &DatabaseSession, origin: Incarnation) -> Result<(), MoveError> {
    let put = "INSERT INTO almanac.call_keys (tenant, key, digest, incarnation, sequence, told_at)
        SELECT tenant, key, digest, $1, 0, to_timestamp(at_ms / 1000.0)
        FROM unnest($2::text[], $3::text[], $4::text[], $5::int8[]) AS told (tenant, key, digest, at_ms)
        WHERE to_timestamp(at_ms / 1000.0) > now() - interval '7 days'
        ORDER BY tenant, key ON CONFLICT DO NOTHING";
    for keys in source.call_keys()?.chunks(MAX_GROUP) {
        let keys: Vec<_> = keys.iter().filter(|key| !key.tenant.contains('\0') && !key.key.contains('\0')).collect();
        let tenants: Vec<&str> = keys.iter().map(|key| key.tenant.as_str()).collect();
        let names: Vec<&str> = keys.iter().map(|key| key.key.as_str()).collect();
        let digests: Vec<_> = keys.iter().map(|key| String::from_utf8_lossy(&key.digest)).collect();
        let moments: Vec<i64> = keys.iter().map(|key| key.at_ms).collect();
        let values = [
            (&origin.bytes() as _, Type::BYTEA),
            (&tenants as _, Type::TEXT_ARRAY),
            (&names as _, Type::TEXT_ARRAY),
            (&digests as _, Type::TEXT_ARRAY),
            (&moments as _, Type::INT8_ARRAY),
        ];
        session.commit(put, &values, PATIENCE).await?;
    }
    Ok(())
}
