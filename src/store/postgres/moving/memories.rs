//! Memories with their histories and links, a page of ids at a time, each page as a whole.

use std::collections::{BTreeSet, HashMap};

use tokio_postgres::types::Type;

use super::ledger::{Difference, Ledger, States, What};
use super::{MoveError, Moved, Progress};
use crate::store::memories::{Imported, MemoryError};
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::memories::{Purged, TenantWriter, remove_rows, tell_purge};
use crate::store::postgres::revision::Revision;
use crate::store::sqlite::source::SqliteSource;

/// Memories of one page.
const PAGE: usize = 200;

pub(super) async fn copy(
    source: &SqliteSource,
    ledger: &Ledger<'_>,
    progress: &mut Progress<'_>,
    moved: &mut Moved,
) -> Result<(), MoveError> {
    let numbers: HashMap<String, i64> =
        source.tenants()?.into_iter().map(|(number, tenant)| (tenant, number)).collect();
    let copied = ledger.tenants(What::Memory).await?;
    let tenants: BTreeSet<&str> = numbers.keys().chain(&copied).map(String::as_str).collect();
    for name in tenants {
        // Of one that has none any more there are none.
        let tenant = Tenant { name, number: numbers.get(name).copied().unwrap_or_default() };
        tenant.copy(source, ledger, progress, moved).await?;
    }
    copy_keys(source, ledger).await
}

struct Tenant<'t> {
    name: &'t str,
    /// In the source.
    number: i64,
}

impl Tenant<'_> {
    async fn copy(
        &self,
        source: &SqliteSource,
        ledger: &Ledger<'_>,
        progress: &mut Progress<'_>,
        moved: &mut Moved,
    ) -> Result<(), MoveError> {
        let (mut after, mut is_last, mut in_the_way) = (String::new(), false, Vec::new());
        while !is_last {
            let here = source.memory_states(self.number, &after, PAGE)?;
            is_last = here.len() < PAGE;
            let until = here.last().filter(|_| !is_last).map(|(id, _)| id.clone());
            let copied = ledger.copied(self.name, What::Memory, &after, until.as_deref()).await?;
            let rows = here.len();
            let difference = Difference::of(here, copied);
            let refused = self.write(source, ledger, difference, moved).await?;
            in_the_way.extend(refused.into_iter().map(|(row, _)| row));
            progress.add(rows);
            after = until.unwrap_or_default();
        }
        // What stood in another's place may have left it on a later page.
        let again = Difference { new: in_the_way, ..Difference::default() };
        let refused = self.write(source, ledger, again, moved).await?;
        let said = |((id, _), why): &(_, MemoryError)| format!("memory {id} of {}: {why}", self.name);
        moved.refused.extend(refused.iter().map(said));
        Ok(())
    }

    /// Writes a page. Returns what cannot stand there, with the reasons.
    async fn write(
        &self,
        source: &SqliteSource,
        ledger: &Ledger<'_>,
        difference: Difference,
        moved: &mut Moved,
    ) -> Result<Vec<((String, String), MemoryError)>, MoveError> {
        if difference.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<String> = difference.new.iter().chain(&difference.changed).map(|(id, _)| id.clone()).collect();
        // Those that went meanwhile are gone at the next copy.
        let found = source.memories(self.number, &ids)?;
        let session = ledger.session;
        session.begin().await?;
        let written = self.write_in(ledger, &difference, found).await;
        session.end(written.is_ok()).await?;
        let (written, refused) = written?;
        moved.memories.written += written;
        Ok(refused)
    }

    async fn write_in(
        &self,
        ledger: &Ledger<'_>,
        difference: &Difference,
        found: Vec<Imported>,
    ) -> Result<(u64, Vec<((String, String), MemoryError)>), DatabaseFault> {
        let Difference { new, changed, gone } = difference;
        let revision = Revision::next(ledger.session, ledger.origin).await?;
        let mut writer = TenantWriter::begin(ledger.session, self.name).await?;
        let removed = self.remove(&mut writer, &revision, changed, gone).await?;
        ledger.forget(self.name, What::Memory, gone).await?;
        // One that changed here and was removed there stays removed.
        let lost: BTreeSet<&str> =
            changed.iter().map(|(id, _)| id.as_str()).filter(|id| !removed.contains(*id)).collect();
        let found: Vec<Imported> =
            found.into_iter().filter(|memory| !memory.id.as_deref().is_some_and(|id| lost.contains(id))).collect();
        let refused = import(&mut writer, &found).await?;
        let is_refused = |id: &str| refused.iter().any(|(refused, _)| refused == id);
        let done: States = new.iter().chain(changed).filter(|(id, _)| !is_refused(id)).cloned().collect();
        ledger.put(self.name, What::Memory, &done).await?;
        writer.end().await?;
        let state = |id: &str| new.iter().chain(changed).find(|(other, _)| other == id).cloned();
        let written = (found.len() - refused.len()) as u64;
        Ok((written, refused.into_iter().filter_map(|(id, why)| Some((state(&id)?, why))).collect()))
    }

    /// Removes what is gone, and what is written anew. Returns the ids of those that were there.
    async fn remove(
        &self,
        writer: &mut TenantWriter<'_>,
        revision: &Revision,
        changed: &States,
        gone: &States,
    ) -> Result<BTreeSet<String>, DatabaseFault> {
        let ids: Vec<&str> = changed.iter().chain(gone).map(|(id, _)| id.as_str()).collect();
        if ids.is_empty() {
            return Ok(BTreeSet::new());
        }
        let there = "SELECT seq, id FROM almanac.memories WHERE tenant = $1 AND id = ANY($2::text[])";
        let values = [(&self.name as _, Type::TEXT), (&ids as _, Type::TEXT_ARRAY)];
        let rows = writer.session().query(there, &values).await?;
        let seqs: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let ids: Vec<String> = rows.iter().map(|row| row.get(1)).collect();
        let stamp = writer.tick();
        remove_rows(writer, &seqs, &ids, stamp).await?;
        let is_gone = |id: &&String| gone.iter().any(|(other, _)| other == *id);
        let purged = ids.iter().filter(is_gone).count() as u64;
        if purged > 0 {
            tell_purge(writer, revision, stamp, &Purged { memories: purged, ..Purged::default() }).await?;
        }
        Ok(ids.into_iter().collect())
    }
}

/// Takes memories: all at once, or each by itself where one of them cannot stand there.
async fn import(
    writer: &mut TenantWriter<'_>,
    memories: &[Imported],
) -> Result<Vec<(String, MemoryError)>, DatabaseFault> {
    if writer.take(memories).await?.is_ok() {
        return Ok(Vec::new());
    }
    let mut refused = Vec::new();
    for memory in memories {
        if let Err(why) = writer.take(std::slice::from_ref(memory)).await? {
            refused.push((memory.id.clone().unwrap_or_default(), why));
        }
    }
    Ok(refused)
}

/// Keys under which memories were told that are there.
async fn copy_keys(source: &SqliteSource, ledger: &Ledger<'_>) -> Result<(), MoveError> {
    let put = "INSERT INTO almanac.memory_keys (tenant, key, digest, id, told_at)
        SELECT told.tenant, told.key, told.digest, told.id, to_timestamp(at_ms / 1000.0)
        FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::int8[])
                AS told (tenant, key, digest, id, at_ms)
            JOIN almanac.memories AS m ON m.tenant = told.tenant AND m.id = told.id
        WHERE to_timestamp(at_ms / 1000.0) > now() - interval '7 days'
        ORDER BY tenant, key ON CONFLICT DO NOTHING";
    for keys in source.memory_keys()?.chunks(4096) {
        let tenants: Vec<&str> = keys.iter().map(|key| key.tenant.as_str()).collect();
        let names: Vec<&str> = keys.iter().map(|key| key.key.as_str()).collect();
        let digests: Vec<&[u8]> = keys.iter().map(|key| key.digest.as_slice()).collect();
        let ids: Vec<&str> = keys.iter().map(|key| key.id.as_str()).collect();
        let moments: Vec<i64> = keys.iter().map(|key| key.at_ms).collect();
        let values = [
            (&tenants as _, Type::TEXT_ARRAY),
            (&names as _, Type::TEXT_ARRAY),
            (&digests as _, Type::BYTEA_ARRAY),
            (&ids as _, Type::TEXT_ARRAY),
            (&moments as _, Type::INT8_ARRAY),
        ];
        ledger.session.query(put, &values).await?;
    }
    Ok(())
}
