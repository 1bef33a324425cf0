//! Writing memories, in the group's transaction. What is refused, such as a position that is taken, leaves no trace and
//! fails nobody else of the group.

use tokio::sync::oneshot;
use tokio_postgres::types::Type;

use super::{queries, words};
use crate::memory::stored::{Draft, StoredMemory};
use crate::store::StoreError;
use crate::store::clock::Clock;
use crate::store::finding::row_cache::thread_number;
use crate::store::finding::term_counts;
use crate::store::memories::{Added, IdempotencyKey, Imported, MemoryError, new_id, person_of};
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::session::DatabaseSession;

/// What a write answers: a refusal is no fault of the database.
type Outcome<T> = Result<Result<T, MemoryError>, DatabaseFault>;

/// Who waits for a write, and what it came to.
pub(in crate::store::postgres) struct MemoryReply<T> {
    reply: oneshot::Sender<Result<T, MemoryError>>,
    outcome: Option<Result<T, MemoryError>>,
}

impl<T> MemoryReply<T> {
    pub(super) fn new() -> (Self, oneshot::Receiver<Result<T, MemoryError>>) {
        let (reply, pending) = oneshot::channel();
        (Self { reply, outcome: None }, pending)
    }

    fn acknowledge(self, outcome: Result<(), StoreError>) {
        let answer = match (outcome, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::Closed.into()),
            (Err(error), _) => Err(error.into()),
        };
        // Whoever does not wait any more knows that it does not know.
        let _ = self.reply.send(answer);
    }
}

/// What is to be written.
pub(in crate::store::postgres) enum MemoryWrite {
    Add(Box<Draft>, Option<IdempotencyKey>, MemoryReply<Added>),
    Revise(String, u64, Box<Draft>, MemoryReply<StoredMemory>),
    Import(Vec<Imported>, MemoryReply<u64>),
}

/// A write of one tenant's.
pub(in crate::store::postgres) struct MemoryTask {
    pub(in crate::store::postgres) tenant: String,
    pub(super) write: MemoryWrite,
}

impl MemoryTask {
    pub(in crate::store::postgres) fn records(&self) -> usize {
        if let MemoryWrite::Import(batch, _) = &self.write { batch.len() } else { 1 }
    }

    pub(in crate::store::postgres) fn acknowledge(self, outcome: Result<(), StoreError>) {
        match self.write {
            MemoryWrite::Add(_, _, reply) => reply.acknowledge(outcome),
            MemoryWrite::Revise(_, _, _, reply) => reply.acknowledge(outcome),
            MemoryWrite::Import(_, reply) => reply.acknowledge(outcome),
        }
    }

    /// Writes it; if it is refused, nothing of it stays.
    pub(in crate::store::postgres) async fn run(&mut self, writer: &mut TenantWriter<'_>) -> Result<(), DatabaseFault> {
        match &mut self.write {
            MemoryWrite::Add(draft, key, reply) => {
                reply.outcome = Some(writer.attempt(async |writer| writer.add(draft, key.as_ref()).await).await?);
            }
            MemoryWrite::Revise(id, version, draft, reply) => {
                let outcome = writer.attempt(async |writer| writer.revise(id, *version, draft).await).await?;
                reply.outcome = Some(outcome);
            }
            MemoryWrite::Import(batch, reply) => {
                reply.outcome = Some(writer.attempt(async |writer| writer.import(batch).await).await?);
            }
        }
        Ok(())
    }
}

/// Writes a tenant's memories, which nobody else does until the transaction ends.
pub(in crate::store::postgres) struct TenantWriter<'s> {
    session: &'s DatabaseSession,
    tenant: &'s str,
    /// The number of the memory that was added last.
    last: i64,
    clock: Clock,
}

impl<'s> TenantWriter<'s> {
    /// Waits for those who write this tenant's memories. What is written bears the time of the server's clock: what
    /// comes later is never before it, so one daemon whose clock is ahead would move the time of all.
    pub(in crate::store::postgres) async fn begin(
        session: &'s DatabaseSession,
        tenant: &'s str,
    ) -> Result<Self, DatabaseFault> {
        let of_tenant = [(&tenant as _, Type::TEXT)];
        let make = "INSERT INTO almanac.memory_tenants (tenant) VALUES ($1) ON CONFLICT DO NOTHING";
        session.query(make, &of_tenant).await?;
        let lock = "WITH locked AS MATERIALIZED (
                SELECT last, stamp FROM almanac.memory_tenants WHERE tenant = $1 FOR UPDATE
            )
            SELECT last, stamp, (extract(epoch FROM clock_timestamp()) * 1000000)::int8 FROM locked";
        let row = session.query_one(lock, &of_tenant).await?;
        let mut clock = Clock::by(row.get(2));
        clock.pass(row.get(1));
        Ok(Self { session, tenant, last: row.get(0), clock })
    }

    /// What was written is there with the end of the transaction.
    pub(in crate::store::postgres) async fn end(self) -> Result<(), DatabaseFault> {
        let (last, stamp) = (self.last, self.clock.last());
        let update = "UPDATE almanac.memory_tenants SET last = $2, stamp = $3 WHERE tenant = $1";
        let values = [(&self.tenant as _, Type::TEXT), (&last as _, Type::INT8), (&stamp as _, Type::INT8)];
        self.session.query(update, &values).await.map(drop)
    }

    /// Takes memories that were kept elsewhere, or none of them.
    pub(in crate::store::postgres) async fn take(&mut self, batch: &[Imported]) -> Outcome<u64> {
        self.attempt(async |writer| writer.import(batch).await).await
    }

    pub(in crate::store::postgres) fn tenant(&self) -> &'s str {
        self.tenant
    }

    pub(in crate::store::postgres) fn session(&self) -> &'s DatabaseSession {
        self.session
    }

    pub(super) fn last(&self) -> i64 {
        self.last
    }

    pub(in crate::store::postgres) fn tick(&mut self) -> i64 {
        self.clock.tick()
    }

    /// Does it, or nothing of it.
    async fn attempt<T>(&mut self, work: impl AsyncFnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.session.run("SAVEPOINT memory").await?;
        let last = self.last;
        let outcome = match work(self).await {
            // It is the fault of what was to be written.
            Err(DatabaseFault::Record(why)) => Err(StoreError::Unstorable(why).into()),
            done => done?,
        };
        if outcome.is_err() {
            self.last = last;
            self.session.run("ROLLBACK TO SAVEPOINT memory").await?;
        }
        self.session.run("RELEASE SAVEPOINT memory").await?;
        Ok(outcome)
    }

    async fn add(&mut self, draft: &Draft, key: Option<&IdempotencyKey>) -> Outcome<Added> {
        let now = self.tick();
        let id = new_id(now);
        if let Some(IdempotencyKey { key, digest }) = key {
            let known = "SELECT digest, id FROM almanac.memory_keys WHERE tenant = $1 AND key = $2";
            let values = [(&self.tenant as _, Type::TEXT), (key as _, Type::TEXT)];
            if let Some(row) = self.session.query(known, &values).await?.first() {
                let (known, id): (&[u8], &str) = (row.get(0), row.get(1));
                let memory = queries::get(self.session, self.tenant, id).await?;
                return Ok(match memory.filter(|_| known == digest) {
                    Some(memory) => Ok(Added { memory, is_new: false }),
                    None => Err(MemoryError::KeyReused(key.clone())),
                });
            }
            let remember = "INSERT INTO almanac.memory_keys (tenant, key, digest, id) VALUES ($1, $2, $3, $4)";
            let digest = &digest[..];
            let [tenant, key] = values;
            self.session.query(remember, &[tenant, key, (&digest, Type::BYTEA), (&id, Type::TEXT)]).await?;
        }
        if let Some(refusal) = self.taken(draft, None).await? {
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
        self.insert(now, &memory, draft).await?;
        Ok(Ok(Added { memory, is_new: true }))
    }

    /// Is the draft's place in its thread another's?
    async fn taken(&self, draft: &Draft, own: Option<&str>) -> Result<Option<MemoryError>, DatabaseFault> {
        let Some((thread, position)) = draft.keys.place.as_ref().filter(|_| !draft.deleted) else { return Ok(None) };
        let query = "SELECT id FROM almanac.memories
            WHERE tenant = $1 AND chat_id = $2 AND thread_id = $3 AND position = $4 AND deleted = 0";
        let at = position.cast_signed();
        let values = [
            (&self.tenant as _, Type::TEXT),
            (&draft.keys.chat as _, Type::TEXT),
            (thread as _, Type::TEXT),
            (&at as _, Type::INT8),
        ];
        let rows = self.session.query(query, &values).await?;
        let by: Option<String> = rows.first().map(|row| row.get(0));
        let by = by.filter(|by| Some(by.as_str()) != own);
        Ok(by.map(|by| MemoryError::Taken { thread: thread.clone(), position: *position, by }))
    }

    async fn insert(&mut self, stamp: i64, memory: &StoredMemory, draft: &Draft) -> Result<i64, DatabaseFault> {
        self.last += 1;
        let seq = self.last;
        let put =
            "INSERT INTO almanac.memories (tenant, seq, id, kind, deleted, created_us, updated_us, version, user_id,
                agent_id, chat_id, thread_id, position, importance, metadata, content, document, moments, stamp, words,
                length, thread, vector)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $15::jsonb, $17::jsonb, $18,
                $19::tsvector, $20, $21, $22)";
        self.put(put, seq, stamp, memory, draft).await?;
        self.link(seq, draft).await?;
        Ok(seq)
    }

    /// Writes a memory's row by a statement of these values.
    async fn put(
        &self,
        statement: &str,
        seq: i64,
        stamp: i64,
        memory: &StoredMemory,
        draft: &Draft,
    ) -> Result<(), DatabaseFault> {
        let keys = &draft.keys;
        let (thread, position) = (keys.place.as_ref().map(|place| &place.0), keys.place.as_ref().map(|place| place.1));
        let position = position.map(u64::cast_signed);
        let number = thread.map(|thread| thread_number(keys.chat.as_deref(), thread));
        let (kind, deleted, version) =
            (i16::from(memory.kind), i16::from(memory.deleted), memory.version.cast_signed());
        let (moments, words) = (words::moments(&memory.metadata), words::vector(&draft.index));
        let length = i32::from(term_counts::length(&draft.index.words));
        let vector = draft.index.vector.to_bytes();
        let vector = &vector[..];
        let values = [
            (&self.tenant as _, Type::TEXT),
            (&seq as _, Type::INT8),
            (&memory.id as _, Type::TEXT),
            (&kind as _, Type::INT2),
            (&deleted as _, Type::INT2),
            (&memory.created_us as _, Type::INT8),
            (&memory.updated_us as _, Type::INT8),
            (&version as _, Type::INT8),
            (&keys.user as _, Type::TEXT),
            (&keys.agent as _, Type::TEXT),
            (&keys.chat as _, Type::TEXT),
            (&thread as _, Type::TEXT),
            (&position as _, Type::INT8),
            (&keys.importance as _, Type::FLOAT8),
            (&memory.metadata as _, Type::TEXT),
            (&memory.content as _, Type::TEXT),
            (&moments as _, Type::TEXT),
            (&stamp as _, Type::INT8),
            (&words as _, Type::TEXT),
            (&length as _, Type::INT4),
            (&number as _, Type::INT8),
            (&vector as _, Type::BYTEA),
        ];
        self.session.query(statement, &values).await.map(drop)
    }

    async fn link(&self, seq: i64, draft: &Draft) -> Result<(), DatabaseFault> {
        if draft.links.is_empty() {
            return Ok(());
        }
        let (relations, targets): (Vec<&str>, Vec<&str>) =
            draft.links.iter().map(|(relation, target)| (*relation, target.as_str())).unzip();
        let put = "INSERT INTO almanac.memory_links (tenant, seq, relation, target)
            SELECT $1, $2, relation, target FROM unnest($3::text[], $4::text[]) AS linked (relation, target)
            ON CONFLICT DO NOTHING";
        let values = [
            (&self.tenant as _, Type::TEXT),
            (&seq as _, Type::INT8),
            (&relations as _, Type::TEXT_ARRAY),
            (&targets as _, Type::TEXT_ARRAY),
        ];
        self.session.query(put, &values).await.map(drop)
    }

    async fn revise(&mut self, id: &str, version: u64, draft: &Draft) -> Outcome<StoredMemory> {
        let Some((seq, before)) = queries::row(self.session, self.tenant, id).await? else {
            return Ok(Err(MemoryError::Unknown(id.to_owned())));
        };
        if before.version != version {
            return Ok(Err(MemoryError::Changed { id: id.to_owned(), found: before.version }));
        }
        if let Some(refusal) = self.taken(draft, Some(id)).await? {
            return Ok(Err(refusal));
        }
        self.remember(seq, before.version, before.updated_us, &before.metadata, &before.content).await?;
        let now = self.tick();
        let memory = StoredMemory {
            version: version + 1,
            updated_us: now,
            deleted: draft.deleted,
            metadata: draft.metadata.clone(),
            content: draft.content.clone(),
            ..before
        };
        let put = "UPDATE almanac.memories SET id = $3, kind = $4, deleted = $5, created_us = $6, updated_us = $7,
                version = $8, user_id = $9, agent_id = $10, chat_id = $11, thread_id = $12, position = $13,
                importance = $14, metadata = $15, content = $16, document = $15::jsonb, moments = $17::jsonb,
                stamp = $18, words = $19::tsvector, length = $20, thread = $21, vector = $22
            WHERE tenant = $1 AND seq = $2";
        self.put(put, seq, now, &memory, draft).await?;
        let unlink = "DELETE FROM almanac.memory_links WHERE tenant = $1 AND seq = $2";
        self.session.query(unlink, &[(&self.tenant, Type::TEXT), (&seq, Type::INT8)]).await?;
        self.link(seq, draft).await?;
        Ok(Ok(memory))
    }

    /// Keeps an earlier version.
    async fn remember(
        &self,
        seq: i64,
        version: u64,
        updated_us: i64,
        metadata: &str,
        content: &str,
    ) -> Result<(), DatabaseFault> {
        let put = "INSERT INTO almanac.memory_history (tenant, seq, version, updated_us, metadata, content, user_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let (version, person) = (version.cast_signed(), person_of(metadata));
        let values = [
            (&self.tenant as _, Type::TEXT),
            (&seq as _, Type::INT8),
            (&version as _, Type::INT8),
            (&updated_us as _, Type::INT8),
            (&metadata as _, Type::TEXT),
            (&content as _, Type::TEXT),
            (&person as _, Type::TEXT),
        ];
        self.session.query(put, &values).await.map(drop)
    }

    async fn import(&mut self, batch: &[Imported]) -> Outcome<u64> {
        let mut new = 0;
        for Imported { id, draft, version, created_us, updated_us, history } in batch {
            let now = self.tick();
            let created_us = created_us.unwrap_or(now);
            let memory = StoredMemory {
                id: id.clone().unwrap_or_else(|| new_id(now)),
                kind: draft.kind,
                version: *version,
                created_us,
                updated_us: updated_us.unwrap_or(created_us),
                deleted: draft.deleted,
                metadata: draft.metadata.clone(),
                content: draft.content.clone(),
            };
            if let Some((_, there)) = queries::row(self.session, self.tenant, &memory.id).await? {
                let is_same = (&there.metadata, &there.content) == (&memory.metadata, &memory.content)
                    && (there.kind, there.version) == (memory.kind, memory.version);
                if !is_same {
                    return Ok(Err(MemoryError::Exists(memory.id)));
                }
                continue;
            }
            if let Some(refusal) = self.taken(draft, None).await? {
                return Ok(Err(refusal));
            }
            let seq = self.insert(now, &memory, draft).await?;
            for earlier in history {
                self.remember(seq, earlier.version, earlier.updated_us, &earlier.metadata, &earlier.content).await?;
            }
            new += 1;
        }
        Ok(Ok(new))
    }
}
