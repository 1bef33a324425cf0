//! Memories on PostgreSQL, where every daemon reads and writes them: there is no second truth of them.

mod condition;
mod erasure;
mod queries;
mod search;
#[cfg(test)]
mod tests;
mod values;
mod words;
mod writes;

pub(super) use self::erasure::{MemoryErasure, Purged, remove_rows, tell as tell_purge};
pub(super) use self::queries::page_of;
use self::writes::{MemoryReply, MemoryWrite};
pub(super) use self::writes::{MemoryTask, TenantWriter};
use super::Postgres;
use super::tasks::DatabaseTask;
use crate::memory::query::{Found, Search};
use crate::memory::stored::{Draft, StoredMemory, StoredVersion};
use crate::store::StoreError;
use crate::store::front::Job;
use crate::store::memories::{
    Acknowledged, Added, Forgotten, IdempotencyKey, Imported, Linked, Memories, Purge, SessionsOf, Thread, refuse_null,
};

impl Postgres {
    fn write(&self, tenant: &str, write: MemoryWrite) -> Result<(), StoreError> {
        let task = MemoryTask { tenant: tenant.to_owned(), write };
        self.front.send(Job::Task(DatabaseTask::Memory(Box::new(task))))
    }
}

impl Memories for Postgres {
    fn add(&self, tenant: &str, draft: Draft, key: Option<IdempotencyKey>) -> Result<Acknowledged<Added>, StoreError> {
        refuse_null([&draft])?;
        let (reply, pending) = MemoryReply::new();
        self.write(tenant, MemoryWrite::Add(Box::new(draft), key, reply))?;
        Ok(Acknowledged(pending))
    }

    fn revise(
        &self,
        tenant: &str,
        id: &str,
        version: u64,
        draft: Draft,
    ) -> Result<Acknowledged<StoredMemory>, StoreError> {
        refuse_null([&draft])?;
        let (reply, pending) = MemoryReply::new();
        self.write(tenant, MemoryWrite::Revise(id.to_owned(), version, Box::new(draft), reply))?;
        Ok(Acknowledged(pending))
    }

    fn import(&self, tenant: &str, batch: Vec<Imported>) -> Result<Acknowledged<u64>, StoreError> {
        refuse_null(batch.iter().map(|imported| &imported.draft))?;
        let (reply, pending) = MemoryReply::new();
        self.write(tenant, MemoryWrite::Import(batch, reply))?;
        Ok(Acknowledged(pending))
    }

    fn purge(&self, tenant: &str, which: Purge, sessions: SessionsOf) -> Result<Acknowledged<Forgotten>, StoreError> {
        let (erasure, pending) = MemoryErasure::new(tenant.to_owned(), which, sessions);
        self.front.send(Job::Erasure(erasure))?;
        Ok(Acknowledged(pending))
    }

    fn get(&self, tenant: &str, id: &str) -> Result<Option<StoredMemory>, StoreError> {
        self.readers.read(async |session| queries::get(session, tenant, id).await)
    }

    fn history(
        &self,
        tenant: &str,
        id: &str,
        before: u64,
        limit: usize,
    ) -> Result<(Vec<StoredVersion>, u64), StoreError> {
        self.readers.read(async |session| queries::history(session, tenant, id, before, limit).await)
    }

    fn search(&self, tenant: &str, search: &Search) -> Result<Found, StoreError> {
        self.readers.read(async |session| search::search(session, &self.row_caches, tenant, search).await)
    }

    fn thread(
        &self,
        tenant: &str,
        chat: Option<&str>,
        thread: &str,
        position: u64,
        limit: usize,
    ) -> Result<Thread, StoreError> {
        self.readers.read(async |session| queries::thread(session, tenant, chat, thread, position, limit).await)
    }

    fn links(&self, tenant: &str, ids: &[String], limit: usize) -> Result<Vec<Linked>, StoreError> {
        self.readers.read(async |session| queries::links(session, tenant, ids, limit).await)
    }

    fn export(
        &self,
        tenant: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(StoredMemory, Vec<StoredVersion>)>, StoreError> {
        self.readers.read(async |session| queries::export(session, tenant, after, limit).await)
    }
}
