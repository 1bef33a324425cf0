//! Writing memories, in the group's transaction. What is refused, such as a position that is taken, leaves no trace and fails
//! nobody else of the group.

use rusqlite::{OptionalExtension, Savepoint, Transaction, params};
use tokio::sync::oneshot;

use super::{Sqlite, pages, search, text};
use crate::store::memories::{
    Acknowledged, Added, Draft, Forgotten, Found, IdempotencyKey, Imported, Linked, Memories, MemoryError, Purge,
    Search, SessionsOf, StoredMemory, StoredVersion, Thread, Whose,
};
use crate::store::writer::{Clock, Job, Task};
use crate::store::{Store, StoreError, notes};

/// What a write answers: a refusal is no error of the database.
type Outcome<T> = rusqlite::Result<Result<T, MemoryError>>;

/// A write of memories, and who waits for it.
struct MemoryTask<T, F> {
    records: usize,
    is_erasure: bool,
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

    fn is_erasure(&self) -> bool {
        self.is_erasure
    }

    fn run(&mut self, transaction: &mut Transaction<'_>, clock: &mut Clock) -> rusqlite::Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let latest: Option<i64> =
            transaction.query_row("SELECT max(stamp) FROM memory_vectors", [], |row| row.get(0))?;
        clock.pass(latest.unwrap_or_default());
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
        self.put(records, false, work)
    }

    /// Like [`Sqlite::write`]; what is removed is in no file afterwards.
    fn erase<T, F>(&self, work: F) -> Result<Acknowledged<T>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Savepoint<'_>, &mut Clock) -> Outcome<T> + Send + 'static,
    {
        self.put(1, true, work)
    }

    fn put<T, F>(&self, records: usize, is_erasure: bool, work: F) -> Result<Acknowledged<T>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Savepoint<'_>, &mut Clock) -> Outcome<T> + Send + 'static,
    {
        let (reply, pending) = oneshot::channel();
        let task = MemoryTask { records, is_erasure, work: Some(work), outcome: None, reply };
        self.send(Job::Task(Box::new(task)))?;
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
        let (tenant, id) = (tenant.to_owned(), id.to_owned());
        self.write(1, move |savepoint, clock| revise(savepoint, clock, &tenant, id, version, draft))
    }

    fn import(&self, tenant: &str, batch: Vec<Imported>) -> Result<Acknowledged<u64>, StoreError> {
        let tenant = tenant.to_owned();
        self.write(batch.len(), move |savepoint, clock| import(savepoint, clock, &tenant, batch))
    }

    fn purge(&self, tenant: &str, which: Purge) -> Result<Acknowledged<u64>, StoreError> {
        let tenant = tenant.to_owned();
        self.erase(move |savepoint, _| purge(savepoint, &tenant, &which))
    }

    fn forget(&self, tenant: &str, whose: Whose, sessions: SessionsOf) -> Result<Acknowledged<Forgotten>, StoreError> {
        let tenant = tenant.to_owned();
        self.erase(move |savepoint, _| forget(savepoint, &tenant, &whose, sessions))
    }

    fn get(&self, tenant: &str, id: &str) -> Result<Option<StoredMemory>, StoreError> {
        self.read(|transaction| pages::get(transaction, tenant, id))
    }

    fn history(
        &self,
        tenant: &str,
        id: &str,
        before: u64,
        limit: usize,
    ) -> Result<(Vec<StoredVersion>, u64), StoreError> {
        self.read(|transaction| pages::history(transaction, tenant, id, before, limit))
    }

    fn search(&self, tenant: &str, search: &Search) -> Result<Found, StoreError> {
        self.read(|transaction| search::search(transaction, &self.shelves, tenant, search))
    }

    fn thread(
        &self,
        tenant: &str,
        chat: Option<&str>,
        thread: &str,
        position: u64,
        limit: usize,
    ) -> Result<Thread, StoreError> {
        self.read(|transaction| pages::thread(transaction, tenant, chat, thread, position, limit))
    }

    fn links(&self, tenant: &str, ids: &[String], limit: usize) -> Result<Vec<Linked>, StoreError> {
        self.read(|transaction| pages::links(transaction, tenant, ids, limit))
    }

    fn export(
        &self,
        tenant: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(StoredMemory, Vec<StoredVersion>)>, StoreError> {
        self.read(|transaction| pages::export(transaction, tenant, after, limit))
    }
}

/// The tenant's number; a new one, with an index of its own, if it has none.
fn tenant_number(savepoint: &Savepoint<'_>, tenant: &str) -> rusqlite::Result<i64> {
    if let Some(number) = pages::tenant(savepoint, tenant)? {
        return Ok(number);
    }
    savepoint.execute("INSERT INTO memory_tenants (name) VALUES (?1)", [tenant])?;
    let number = savepoint.last_insert_rowid();
    text::create(savepoint, number)?;
    Ok(number)
}

/// An id that sorts by the moment: UUIDv7, whose twelve bits after the milliseconds are the microseconds.
fn new_id(micros: i64) -> String {
    let mut random = [0; 10];
    // Without randomness the moment still makes it unique in its store.
    let _ = getrandom::fill(&mut random);
    let [high, low] = ((micros % 1000) as u16).to_be_bytes();
    (random[0], random[1]) = (high, low);
    uuid::Builder::from_unix_timestamp_millis((micros / 1000) as u64, &random).into_uuid().to_string()
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
        let told = savepoint
            .prepare_cached("SELECT digest, id FROM memory_keys WHERE tenant = ?1 AND key = ?2")?
            .query_row(params![number, key], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?)))
            .optional()?;
        if let Some((told, id)) = told {
            let memory = pages::get(savepoint, tenant, &id)?;
            return Ok(match memory.filter(|_| told == digest) {
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
    insert(savepoint, number, now, &memory, draft)?;
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
    index(savepoint, number, seq, stamp, draft)?;
    Ok(seq)
}

/// What a memory is found by beside its columns.
fn index(savepoint: &Savepoint<'_>, number: i64, seq: i64, stamp: i64, draft: &Draft) -> rusqlite::Result<()> {
    text::insert(savepoint, number, seq, &draft.index)?;
    let vector = draft.index.vector.to_bytes();
    savepoint
        .prepare_cached(
            "INSERT OR REPLACE INTO memory_vectors (seq, tenant, kind, deleted, stamp, vector)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![seq, number, draft.kind, draft.deleted, stamp, vector])?;
    let mut link = savepoint
        .prepare_cached("INSERT OR IGNORE INTO memory_links (seq, relation, target, tenant) VALUES (?1, ?2, ?3, ?4)")?;
    for (relation, target) in &draft.links {
        link.execute(params![seq, relation, target, number])?;
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
    let Some((seq, before)) = pages::row(savepoint, number, &id)? else { return Ok(Err(MemoryError::Unknown(id))) };
    if before.version != version {
        return Ok(Err(MemoryError::Changed { id, found: before.version }));
    }
    if let Some(refusal) = taken(savepoint, number, &draft, Some(&id))? {
        return Ok(Err(refusal));
    }
    remember(savepoint, seq, before.version, before.updated_us, &before.metadata, &before.content)?;
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
    text::remove(savepoint, number, seq)?;
    savepoint.prepare_cached("DELETE FROM memory_links WHERE seq = ?1")?.execute([seq])?;
    index(savepoint, number, seq, now, &draft)?;
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
    seq: i64,
    version: u64,
    updated_us: i64,
    metadata: &str,
    content: &str,
) -> rusqlite::Result<()> {
    savepoint
        .prepare_cached(
            "INSERT INTO memory_history (seq, version, updated_us, metadata, content) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![seq, version.cast_signed(), updated_us, metadata, content])
        .map(drop)
}

fn import(savepoint: &Savepoint<'_>, clock: &mut Clock, tenant: &str, batch: Vec<Imported>) -> Outcome<u64> {
    let number = tenant_number(savepoint, tenant)?;
    let mut new = 0;
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
        if let Some((_, there)) = pages::row(savepoint, number, &memory.id)? {
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
        let seq = insert(savepoint, number, now, &memory, &draft)?;
        for earlier in history {
            remember(savepoint, seq, earlier.version, earlier.updated_us, &earlier.metadata, &earlier.content)?;
        }
        new += 1;
    }
    Ok(Ok(new))
}

fn purge(savepoint: &Savepoint<'_>, tenant: &str, which: &Purge) -> Outcome<u64> {
    let Some(number) = pages::tenant(savepoint, tenant)? else { return Ok(Ok(0)) };
    let seqs = pages::purged(savepoint, number, which)?;
    // What is forgotten must not stay behind in free pages of the file.
    savepoint.pragma_update(None, "secure_delete", true)?;
    let removed = remove(savepoint, number, &seqs)?;
    savepoint.pragma_update(None, "secure_delete", "fast")?;
    Ok(Ok(removed))
}

fn forget(savepoint: &Savepoint<'_>, tenant: &str, whose: &Whose, sessions: SessionsOf) -> Outcome<Forgotten> {
    let Some(number) = pages::tenant(savepoint, tenant)? else { return Ok(Ok(Forgotten::default())) };
    let seqs = pages::about(savepoint, number, whose)?;
    savepoint.pragma_update(None, "secure_delete", true)?;
    let mut forgotten = notes::forget(savepoint, tenant, &seqs, sessions)?;
    forgotten.memories = remove(savepoint, number, &seqs)?;
    savepoint.pragma_update(None, "secure_delete", "fast")?;
    Ok(Ok(forgotten))
}

fn remove(savepoint: &Savepoint<'_>, number: i64, seqs: &[i64]) -> rusqlite::Result<u64> {
    let mut removed = 0;
    for &seq in seqs {
        text::remove(savepoint, number, seq)?;
        for table in ["memory_vectors", "memory_history", "memory_links"] {
            savepoint.prepare_cached(&format!("DELETE FROM {table} WHERE seq = ?1"))?.execute([seq])?;
        }
        savepoint
            .prepare_cached(
                "DELETE FROM memory_keys WHERE tenant = ?1 AND id = (SELECT id FROM memories WHERE seq = ?2)",
            )?
            .execute([number, seq])?;
        removed += savepoint.prepare_cached("DELETE FROM memories WHERE seq = ?1")?.execute([seq])? as u64;
    }
    if removed > 0 {
        // Readers that hold vectors see by the count that they must read them anew.
        savepoint.execute("UPDATE memory_tenants SET purges = purges + 1 WHERE number = ?1", [number])?;
        text::compact(savepoint, number)?;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests;
