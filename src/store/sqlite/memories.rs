//! Writing memories, in the group's transaction. What is refused, such as a position that is taken, leaves no trace and
//! fails nobody else of the group.

use rusqlite::{OptionalExtension, Savepoint, Transaction, params};
use tokio::sync::oneshot;

use super::erasure::Erasure;
use super::postings::Changes;
use super::row_cache::RowOf;
use super::writer::{self, Task};
use super::{Sqlite, queries, search};
use crate::memory::query::{Found, Search};
use crate::memory::stored::{Draft, Keys, StoredMemory, StoredVersion};
use crate::store::clock::Clock;
use crate::store::finding::row_cache::thread_number;
use crate::store::finding::term_counts;
use crate::store::front::Job;
use crate::store::memories::{
    Acknowledged, Added, Forgotten, IdempotencyKey, Imported, Linked, Memories, MemoryError, Purge, SessionsOf, Thread,
    new_id, person_of, refuse_null,
};
use crate::store::{Store, StoreError};

/// What a write answers: a refusal is no error of the database.
type Outcome<T> = rusqlite::Result<Result<T, MemoryError>>;

/// A write of memories, and who waits for it.
struct MemoryTask<T, F> {
    records: usize,
    work: Option<F>,
    outcome: Option<Result<T, MemoryError>>,
    reply: oneshot::Sender<Result<T, MemoryError>>,
}

impl<T, F> Task for MemoryTask<T, F>
where
    T: Send,
    F: FnOnce(&Savepoint<'_>, &mut Clock) -> Outcome<T> + Send,
{
    fn records(&self) -> usize {
        self.records
    }

    fn run(&mut self, transaction: &mut Transaction<'_>, clock: &mut Clock) -> rusqlite::Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let mut savepoint = transaction.savepoint()?;
        let outcome = work(&savepoint, clock)?;
        if outcome.is_ok() {
            savepoint.commit()?;
        } else {
            savepoint.rollback()?;
        }
        self.outcome = Some(outcome);
        Ok(())
    }

    fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>) {
        let answer = match (outcome, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::Closed.into()),
            (Err(error), _) => Err(error.into()),
        };
        // Whoever does not wait any more knows that it does not know.
        let _ = self.reply.send(answer);
    }
}

impl Sqlite {
    fn write<T, F>(&self, records: usize, work: F) -> Result<Acknowledged<T>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Savepoint<'_>, &mut Clock) -> Outcome<T> + Send + 'static,
    {
        let (reply, pending) = oneshot::channel();
        let task = MemoryTask { records, work: Some(work), outcome: None, reply };
        self.send(writer::task(task))?;
        Ok(Acknowledged(pending))
    }

    /// Reads, if the database could be opened. A full disk keeps nobody from reading.
    fn read<T>(&self, body: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        // It is waited for once, so that nobody reads before the schema is there.
        let trouble = self.trouble();
        self.readers.read(body).map_err(|error| match (error, trouble) {
            (StoreError::Unavailable(_), Some(trouble)) => StoreError::Unavailable(trouble),
            (error, _) => error,
        })
    }
}

impl Memories for Sqlite {
    fn add(&self, tenant: &str, draft: Draft, key: Option<IdempotencyKey>) -> Result<Acknowledged<Added>, StoreError> {
        refuse_null([&draft])?;
        let tenant = tenant.to_owned();
        self.write(1, move |savepoint, clock| add(savepoint, clock, &tenant, &draft, key))
    }

    fn revise(
        &self,
        tenant: &str,
        id: &str,
        version: u64,
        draft: Draft,
    ) -> Result<Acknowledged<StoredMemory>, StoreError> {
        refuse_null([&draft])?;
        let (tenant, id) = (tenant.to_owned(), id.to_owned());
        self.write(1, move |savepoint, clock| revise(savepoint, clock, &tenant, id, version, draft))
    }

    fn import(&self, tenant: &str, batch: Vec<Imported>) -> Result<Acknowledged<u64>, StoreError> {
        refuse_null(batch.iter().map(|imported| &imported.draft))?;
        let tenant = tenant.to_owned();
        self.write(batch.len(), move |savepoint, clock| import(savepoint, clock, &tenant, batch))
    }

    fn purge(&self, tenant: &str, which: Purge, sessions: SessionsOf) -> Result<Acknowledged<Forgotten>, StoreError> {
        let (erasure, pending) = Erasure::new(tenant.to_owned(), which, sessions);
        self.send(Job::Erasure(Box::new(erasure)))?;
        Ok(Acknowledged(pending))
    }

    fn get(&self, tenant: &str, id: &str) -> Result<Option<StoredMemory>, StoreError> {
        self.read(|transaction| queries::get(transaction, tenant, id))
    }

    fn history(
        &self,
        tenant: &str,
        id: &str,
        before: u64,
        limit: usize,
    ) -> Result<(Vec<StoredVersion>, u64), StoreError> {
        self.read(|transaction| queries::history(transaction, tenant, id, before, limit))
    }

    fn search(&self, tenant: &str, search: &Search) -> Result<Found, StoreError> {
        self.read(|transaction| search::search(transaction, &self.row_caches, tenant, search))
    }

    fn thread(
        &self,
        tenant: &str,
        chat: Option<&str>,
        thread: &str,
        position: u64,
        limit: usize,
    ) -> Result<Thread, StoreError> {
        self.read(|transaction| queries::thread(transaction, tenant, chat, thread, position, limit))
    }

    fn links(&self, tenant: &str, ids: &[String], limit: usize) -> Result<Vec<Linked>, StoreError> {
        self.read(|transaction| queries::links(transaction, tenant, ids, limit))
    }

    fn export(
        &self,
        tenant: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(StoredMemory, Vec<StoredVersion>)>, StoreError> {
        self.read(|transaction| queries::export(transaction, tenant, after, limit))
    }
}

/// The tenant's number; a new one if it has none.
fn tenant_number(savepoint: &Savepoint<'_>, tenant: &str) -> rusqlite::Result<i64> {
    if let Some(number) = queries::tenant(savepoint, tenant)? {
        return Ok(number);
    }
    savepoint.execute("INSERT INTO memory_tenants (name) VALUES (?1)", [tenant])?;
    Ok(savepoint.last_insert_rowid())
}

fn add(
    savepoint: &Savepoint<'_>,
    clock: &mut Clock,
    tenant: &str,
    draft: &Draft,
    key: Option<IdempotencyKey>,
) -> Outcome<Added> {
    let number = tenant_number(savepoint, tenant)?;
    let now = clock.tick();
    let id = new_id(now);
    if let Some(IdempotencyKey { key, digest }) = key {
        let known = savepoint
            .prepare_cached("SELECT digest, id FROM memory_keys WHERE tenant = ?1 AND key = ?2")?
            .query_row(params![number, key], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?)))
            .optional()?;
        if let Some((known, id)) = known {
            let memory = queries::get(savepoint, tenant, &id)?;
            return Ok(match memory.filter(|_| known == digest) {
                Some(memory) => Ok(Added { memory, is_new: false }),
                None => Err(MemoryError::KeyReused(key)),
            });
        }
        savepoint
            .prepare_cached("INSERT INTO memory_keys (tenant, key, digest, id, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![number, key, digest, id, now / 1000])?;
    }
    if let Some(refusal) = taken(savepoint, number, draft, None)? {
        return Ok(Err(refusal));
    }
    let memory = StoredMemory {
        id,
        kind: draft.kind,
        version: 1,
        created_us: now,
        updated_us: now,
        deleted: draft.deleted,
        metadata: draft.metadata.clone(),
        content: draft.content.clone(),
    };
    let mut changes = Changes::default();
    insert(savepoint, &mut changes, number, now, &memory, draft)?;
    changes.write(savepoint)?;
    Ok(Ok(Added { memory, is_new: true }))
}

/// Is the draft's place in its thread another's?
fn taken(
    savepoint: &Savepoint<'_>,
    number: i64,
    draft: &Draft,
    own: Option<&str>,
) -> rusqlite::Result<Option<MemoryError>> {
    let Some((thread, position)) = draft.keys.place.as_ref().filter(|_| !draft.deleted) else { return Ok(None) };
    let by: Option<String> = savepoint
        .prepare_cached(
            "SELECT id FROM memories WHERE tenant = ?1 AND chat_id = ?2 AND thread_id = ?3 AND position = ?4
             AND deleted = 0",
        )?
        .query_row(params![number, draft.keys.chat, thread, position.cast_signed()], |row| row.get(0))
        .optional()?;
    let by = by.filter(|by| Some(by.as_str()) != own);
    Ok(by.map(|by| MemoryError::Taken { thread: thread.clone(), position: *position, by }))
}

fn insert(
    savepoint: &Savepoint<'_>,
    changes: &mut Changes,
    number: i64,
    stamp: i64,
    memory: &StoredMemory,
    draft: &Draft,
) -> rusqlite::Result<i64> {
    let keys = &draft.keys;
    savepoint
        .prepare_cached(
            "INSERT INTO memories (tenant, id, kind, deleted, created_us, updated_us, version, user_id, agent_id,
                                   chat_id, thread_id, position, importance, metadata, content)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            number,
            memory.id,
            memory.kind,
            memory.deleted,
            memory.created_us,
            memory.updated_us,
            memory.version.cast_signed(),
            keys.user,
            keys.agent,
            keys.chat,
            keys.place.as_ref().map(|(thread, _)| thread),
            keys.place.as_ref().map(|(_, position)| position.cast_signed()),
            keys.importance,
            memory.metadata,
            memory.content,
        ])?;
    let seq = savepoint.last_insert_rowid();
    index(savepoint, changes, number, seq, stamp, memory.created_us, draft)?;
    Ok(seq)
}

/// What a memory is found by beside its columns.
fn index(
    savepoint: &Savepoint<'_>,
    changes: &mut Changes,
    tenant: i64,
    seq: i64,
    stamp: i64,
    created_us: i64,
    draft: &Draft,
) -> rusqlite::Result<()> {
    changes.replace(savepoint, tenant, seq, Some(&draft.index))?;
    let Keys { chat, place, .. } = &draft.keys;
    let row = RowOf {
        seq,
        tenant,
        stamp,
        kind: draft.kind,
        deleted: draft.deleted,
        created_us,
        thread: place.as_ref().map(|(thread, position)| (thread_number(chat.as_deref(), thread), *position)),
        length: term_counts::length(&draft.index.words),
        vector: &draft.index.vector,
    };
    row.write(savepoint)?;
    let mut link = savepoint
        .prepare_cached("INSERT OR IGNORE INTO memory_links (seq, relation, target, tenant) VALUES (?1, ?2, ?3, ?4)")?;
    for (relation, target) in &draft.links {
        link.execute(params![seq, relation, target, tenant])?;
    }
    Ok(())
}

fn revise(
    savepoint: &Savepoint<'_>,
    clock: &mut Clock,
    tenant: &str,
    id: String,
    version: u64,
    draft: Draft,
) -> Outcome<StoredMemory> {
    let number = tenant_number(savepoint, tenant)?;
    let Some((seq, before)) = queries::row(savepoint, number, &id)? else { return Ok(Err(MemoryError::Unknown(id))) };
    if before.version != version {
        return Ok(Err(MemoryError::Changed { id, found: before.version }));
    }
    if let Some(refusal) = taken(savepoint, number, &draft, Some(&id))? {
        return Ok(Err(refusal));
    }
    remember(savepoint, number, seq, before.version, before.updated_us, &before.metadata, &before.content)?;
    let now = clock.tick();
    let keys = &draft.keys;
    savepoint
        .prepare_cached(
            "UPDATE memories SET deleted = ?2, updated_us = ?3, version = ?4, user_id = ?5, agent_id = ?6,
                    chat_id = ?7, thread_id = ?8, position = ?9, importance = ?10, metadata = ?11, content = ?12
             WHERE seq = ?1",
        )?
        .execute(params![
            seq,
            draft.deleted,
            now,
            (version + 1).cast_signed(),
            keys.user,
            keys.agent,
            keys.chat,
            keys.place.as_ref().map(|(thread, _)| thread),
            keys.place.as_ref().map(|(_, position)| position.cast_signed()),
            keys.importance,
            draft.metadata,
            draft.content,
        ])?;
    savepoint.prepare_cached("DELETE FROM memory_links WHERE seq = ?1")?.execute([seq])?;
    let mut changes = Changes::default();
    index(savepoint, &mut changes, number, seq, now, before.created_us, &draft)?;
    changes.write(savepoint)?;
    Ok(Ok(StoredMemory {
        version: version + 1,
        updated_us: now,
        deleted: draft.deleted,
        metadata: draft.metadata,
        content: draft.content,
        ..before
    }))
}

fn remember(
    savepoint: &Savepoint<'_>,
    number: i64,
    seq: i64,
    version: u64,
    updated_us: i64,
    metadata: &str,
    content: &str,
) -> rusqlite::Result<()> {
    savepoint
        .prepare_cached(
            "INSERT INTO memory_history (seq, version, updated_us, metadata, content, user_id, tenant)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![seq, version.cast_signed(), updated_us, metadata, content, person_of(metadata), number])
        .map(drop)
}

fn import(savepoint: &Savepoint<'_>, clock: &mut Clock, tenant: &str, batch: Vec<Imported>) -> Outcome<u64> {
    let number = tenant_number(savepoint, tenant)?;
    let (mut new, mut changes) = (0, Changes::default());
    for Imported { id, draft, version, created_us, updated_us, history } in batch {
        let now = clock.tick();
        let created_us = created_us.unwrap_or(now);
        let memory = StoredMemory {
            id: id.unwrap_or_else(|| new_id(now)),
            kind: draft.kind,
            version,
            created_us,
            updated_us: updated_us.unwrap_or(created_us),
            deleted: draft.deleted,
            metadata: draft.metadata.clone(),
            content: draft.content.clone(),
        };
        if let Some((_, there)) = queries::row(savepoint, number, &memory.id)? {
            let is_same = (&there.metadata, &there.content) == (&memory.metadata, &memory.content)
                && (there.kind, there.version) == (memory.kind, memory.version);
            if !is_same {
                return Ok(Err(MemoryError::Exists(memory.id)));
            }
            continue;
        }
        if let Some(refusal) = taken(savepoint, number, &draft, None)? {
            return Ok(Err(refusal));
        }
        let seq = insert(savepoint, &mut changes, number, now, &memory, &draft)?;
        for earlier in history {
            remember(savepoint, number, seq, earlier.version, earlier.updated_us, &earlier.metadata, &earlier.content)?;
        }
        new += 1;
    }
    changes.write(savepoint)?;
    Ok(Ok(new))
}

#[cfg(test)]
mod tests;
