//! Removing memories for good, in steps between other writes, and what was noted of what they say. What the server
//! still has of them in its files goes with its next vacuum, and what its backups have is the operator's.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::writes::TenantWriter;
use crate::store::memories::{Forgotten, MemoryError, Purge, SessionsOf};
use crate::store::noted::Noted;
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::group::Incarnation;
use crate::store::postgres::revision::Revision;
use crate::store::postgres::session::DatabaseSession;
use crate::store::postgres::unfollowed::{TurnTexts, await_notes};
use crate::store::{ForgottenTexts, StoreError};

/// Memories that are removed in one transaction.
const AT_ONCE: i64 = 200;

/// Memories that are to be removed, and who waits for it.
pub(in crate::store::postgres) struct MemoryErasure {
    tenant: String,
    which: Purge,
    sessions: SessionsOf,
    /// The last of those that were there when it began; nothing before.
    through: Option<i64>,
    forgotten: Forgotten,
    /// What is told as [`Forgotten::texts`]: too many to be copied at each step.
    texts: ForgottenTexts,
    reply: oneshot::Sender<Result<Forgotten, MemoryError>>,
}

/// A memory that something is to be removed of.
struct GoingMemory {
    seq: i64,
    id: String,
    chat: Option<String>,
    thread: Option<String>,
    /// The memory itself, not only earlier versions of it.
    is_whole: bool,
}

impl MemoryErasure {
    pub(super) fn new(
        tenant: String,
        which: Purge,
        sessions: SessionsOf,
    ) -> (Self, oneshot::Receiver<Result<Forgotten, MemoryError>>) {
        let (reply, pending) = oneshot::channel();
        let (forgotten, texts) = (Forgotten::default(), ForgottenTexts::default());
        (Self { tenant, which, sessions, through: None, forgotten, texts, reply }, pending)
    }

    /// Tells whoever waits.
    pub(in crate::store::postgres) fn acknowledge(self, outcome: Result<(), StoreError>) {
        // Whoever does not wait any more knows that it does not know.
        let texts = Arc::new(self.texts);
        let _ = self.reply.send(Ok(Forgotten { texts, failure: outcome.err(), ..self.forgotten }));
    }

    /// Removes some, in a transaction of its own. Are all removed?
    pub(in crate::store::postgres) async fn step(
        &mut self,
        session: &DatabaseSession,
        writer: Incarnation,
    ) -> Result<bool, DatabaseFault> {
        session.begin().await?;
        let before = self.forgotten.clone();
        let done = self.remove(session, writer).await;
        let ended = session.end(done.is_ok()).await;
        if done.is_err() || ended.is_err() {
            self.forgotten = before;
        }
        let is_done = done?;
        ended.map(|()| is_done)
    }

    async fn remove(&mut self, session: &DatabaseSession, writer: Incarnation) -> Result<bool, DatabaseFault> {
        let revision = Revision::next(session, writer).await?;
        let tenant = self.tenant.clone();
        await_notes(session, &tenant).await?;
        let mut writer = TenantWriter::begin(session, &tenant).await?;
        let through = *self.through.get_or_insert(writer.last());
        let victims = victims(session, &tenant, through, &self.which).await?;
        let (mut noted, mut texts) = (Noted::default(), ForgottenTexts::default());
        if !victims.is_empty() || matches!(self.which, Purge::NotedSince { .. }) {
            noted = noted_of(session, &tenant).await?;
            self.find_noted(session, &victims, (&mut noted, &mut texts)).await?;
            self.texts.extend(&texts);
        }
        let is_nothing = victims.is_empty() && noted.gone.is_empty() && noted.gone_choices.is_empty();
        if !is_nothing {
            let whole: Vec<&GoingMemory> = victims.iter().filter(|victim| victim.is_whole).collect();
            let stamp = writer.tick();
            let seqs: Vec<i64> = whole.iter().map(|victim| victim.seq).collect();
            let ids: Vec<String> = whole.iter().map(|victim| victim.id.clone()).collect();
            remove_rows(&writer, &seqs, &ids, stamp).await?;
            if let Purge::Person(user) = &self.which {
                let seqs: Vec<i64> =
                    victims.iter().filter(|victim| !victim.is_whole).map(|victim| victim.seq).collect();
                remove_versions(session, &tenant, &seqs, user).await?;
            }
            let (memories, sessions) = (whole.len() as u64, noted.gone.clone());
            self.forgotten.memories += memories;
            let has_choices = !noted.gone_choices.is_empty();
            forget(session, &tenant, &mut noted, &mut self.forgotten).await?;
            let purged = Purged { memories, sessions: sessions.into_iter().collect(), has_choices, texts };
            tell(&writer, &revision, stamp, &purged).await?;
        }
        writer.end().await?;
        Ok(victims.is_empty())
    }

    /// Finds what of the tenant's notes goes with these: choices made for a text of theirs, and the sessions that stand
    /// at one; of whole persons also those that are named after their chats and threads. The texts join those that go.
    async fn find_noted(
        &self,
        session: &DatabaseSession,
        victims: &[GoingMemory],
        (noted, gone): (&mut Noted, &mut ForgottenTexts),
    ) -> Result<(), DatabaseFault> {
        if let Purge::NotedSince { texts, sessions } = &self.which {
            noted.forget_texts(texts);
            noted.forget_sessions(sessions.iter().cloned());
        }
        let texts = self.texts_of(session, victims).await?;
        for text in &texts {
            noted.forget_text(text, gone);
        }
        if matches!(self.which, Purge::Person(_) | Purge::Everybody) {
            for victim in victims.iter().filter(|victim| victim.is_whole) {
                let of_chat = victim.chat.as_deref().map(self.sessions).into_iter().flatten();
                noted.forget_sessions(of_chat.chain(victim.thread.clone()));
            }
        }
        Ok(())
    }

    /// What of these memories goes, in any version.
    async fn texts_of(&self, session: &DatabaseSession, victims: &[GoingMemory]) -> Result<Vec<String>, DatabaseFault> {
        let seqs = |is_whole: bool| -> Vec<i64> {
            victims.iter().filter(|victim| victim.is_whole == is_whole).map(|victim| victim.seq).collect()
        };
        let of_versions = "SELECT content FROM almanac.memory_history WHERE tenant = $1 AND seq = ANY($2)";
        let whole =
            format!("SELECT content FROM almanac.memories WHERE tenant = $1 AND seq = ANY($2) UNION ALL {of_versions}");
        let (tenant, seqs) = ((&self.tenant as _, Type::TEXT), [seqs(true), seqs(false)]);
        let mut rows = session.query(&whole, &[tenant.clone(), (&seqs[0], Type::INT8_ARRAY)]).await?;
        if let Purge::Person(user) = &self.which {
            let earlier = format!("{of_versions} AND {}", of_person("user_id", "$3"));
            let values = [tenant, (&seqs[1], Type::INT8_ARRAY), (user as _, Type::TEXT)];
            rows.extend(session.query(&earlier, &values).await?);
        }
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

/// That a column says a person, in any version: one comes after a colon, which no part of an id has.
fn of_person(column: &str, person: &str) -> String {
    format!("({column} = {person} OR {column} > {person} || ':' AND {column} < {person} || ';')")
}

async fn victims(
    session: &DatabaseSession,
    tenant: &str,
    through: i64,
    which: &Purge,
) -> Result<Vec<GoingMemory>, DatabaseFault> {
    let tail = format!("m.seq <= $2 ORDER BY m.seq LIMIT {AT_ONCE}");
    let columns = "SELECT DISTINCT m.seq, m.id, m.chat_id, m.thread_id FROM almanac.memories AS m";
    let whole = |condition: &str| format!("{columns} WHERE m.tenant = $1 AND {condition} AND {tail}");
    let (tenant, through) = ((&tenant as _, Type::TEXT), (&through as _, Type::INT8));
    let rows = match which {
        Purge::Ids(ids) => session.query(&whole("m.id = ANY($3)"), &[tenant, through, (ids, Type::TEXT_ARRAY)]).await?,
        Purge::DeletedBefore(moment) => {
            let before = whole("m.deleted = 1 AND m.updated_us < $3");
            session.query(&before, &[tenant, through, (moment, Type::INT8)]).await?
        }
        Purge::Everybody => session.query(&whole("true"), &[tenant, through]).await?,
        Purge::NotedSince { .. } => Vec::new(),
        Purge::Person(user) => {
            let values = [tenant, through, (user as _, Type::TEXT)];
            let rows = session.query(&whole(&of_person("m.user_id", "$3")), &values).await?;
            if !rows.is_empty() {
                return Ok(rows.iter().map(|row| going(row, true)).collect());
            }
            // Memories that are another's by now, or nobody's.
            let earlier = format!(
                "{columns} JOIN almanac.memory_history AS h ON h.tenant = m.tenant AND h.seq = m.seq
                 WHERE m.tenant = $1 AND {} AND {tail}",
                of_person("h.user_id", "$3")
            );
            let rows = session.query(&earlier, &values).await?;
            return Ok(rows.iter().map(|row| going(row, false)).collect());
        }
    };
    Ok(rows.iter().map(|row| going(row, true)).collect())
}

fn going(row: &Row, is_whole: bool) -> GoingMemory {
    GoingMemory { seq: row.get(0), id: row.get(1), chat: row.get(2), thread: row.get(3), is_whole }
}

/// Removes memories by their numbers and ids.
pub(in crate::store::postgres) async fn remove_rows(
    writer: &TenantWriter<'_>,
    seqs: &[i64],
    ids: &[String],
    stamp: i64,
) -> Result<(), DatabaseFault> {
    let (session, tenant) = (writer.session(), writer.tenant());
    let (tenant, seqs) = ((&tenant as _, Type::TEXT), (&seqs as _, Type::INT8_ARRAY));
    let leave =
        "INSERT INTO almanac.memory_gone (tenant, seq, stamp) SELECT $1, seq, $3 FROM unnest($2::int8[]) AS seq";
    session.query(leave, &[tenant.clone(), seqs.clone(), (&stamp, Type::INT8)]).await?;
    for table in ["memory_history", "memory_links", "memories"] {
        let remove = format!("DELETE FROM almanac.{table} WHERE tenant = $1 AND seq = ANY($2)");
        session.query(&remove, &[tenant.clone(), seqs.clone()]).await?;
    }
    let keys = "DELETE FROM almanac.memory_keys WHERE tenant = $1 AND id = ANY($2)";
    session.query(keys, &[tenant, (&ids, Type::TEXT_ARRAY)]).await.map(drop)
}

async fn remove_versions(
    session: &DatabaseSession,
    tenant: &str,
    seqs: &[i64],
    user: &str,
) -> Result<(), DatabaseFault> {
    let remove = format!(
        "DELETE FROM almanac.memory_history WHERE tenant = $1 AND seq = ANY($2) AND {}",
        of_person("user_id", "$3")
    );
    let values = [(&tenant as _, Type::TEXT), (&seqs as _, Type::INT8_ARRAY), (&user as _, Type::TEXT)];
    session.query(&remove, &values).await.map(drop)
}

/// What is noted of a tenant.
async fn noted_of(session: &DatabaseSession, tenant: &str) -> Result<Noted, DatabaseFault> {
    let (mut noted, of_tenant) = (Noted::default(), [(&tenant as _, Type::TEXT)]);
    for row in session.query("SELECT id, message FROM almanac.choices WHERE tenant = $1", &of_tenant).await? {
        noted.note_choice(row.get(0), row.get(1));
    }
    for row in session.query("SELECT session, state FROM almanac.turns WHERE tenant = $1", &of_tenant).await? {
        noted.note_turn(row.get(0), TurnTexts::of(row.get(1)).all());
    }
    for row in session.query("SELECT session, digest FROM almanac.kept_turns WHERE tenant = $1", &of_tenant).await? {
        noted.note_kept(row.get(0), row.get(1));
    }
    Ok(noted)
}

/// Removes what was found to go. What choices moved cannot be taken apart; if any of them goes, all that the tenant's
/// have moved goes back to where it was before the first.
async fn forget(
    session: &DatabaseSession,
    tenant: &str,
    noted: &mut Noted,
    forgotten: &mut Forgotten,
) -> Result<(), DatabaseFault> {
    let names: Vec<String> = std::mem::take(&mut noted.gone).into_iter().collect();
    let turns = "DELETE FROM almanac.turns WHERE tenant = $1 AND session = ANY($2)";
    session.query(turns, &[(&tenant, Type::TEXT), (&names, Type::TEXT_ARRAY)]).await?;
    forgotten.sessions.extend(names);
    if noted.gone_choices.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = std::mem::take(&mut noted.gone_choices).into_iter().collect();
    let choices = "DELETE FROM almanac.choices WHERE tenant = $1 AND id = ANY($2)";
    session.query(choices, &[(&tenant, Type::TEXT), (&ids, Type::INT8_ARRAY)]).await?;
    // Bytes that nobody wrote are read as nothing moved.
    let nothing = "UPDATE almanac.adaptations SET state = '' WHERE tenant = $1";
    session.query(nothing, &[(&tenant, Type::TEXT)]).await?;
    forgotten.has_choices = true;
    Ok(())
}

/// What a purge removed in one transaction.
#[derive(Default)]
pub(in crate::store::postgres) struct Purged {
    pub(in crate::store::postgres) memories: u64,
    pub(in crate::store::postgres) sessions: Vec<String>,
    pub(in crate::store::postgres) has_choices: bool,
    pub(in crate::store::postgres) texts: ForgottenTexts,
}

/// Leaves a row that says what was purged, without a word of it.
pub(in crate::store::postgres) async fn tell(
    writer: &TenantWriter<'_>,
    revision: &Revision,
    stamp: i64,
    purged: &Purged,
) -> Result<(), DatabaseFault> {
    let put = "INSERT INTO almanac.purges (tenant, stamp, memories, sessions, has_choices, texts, writer, revision)
        VALUES ($1, $2, $3, $4, $5, nullif($6, ''::bytea), $7, $8)";
    let by = revision.writer();
    let (tenant, memories, texts) = (writer.tenant(), purged.memories.cast_signed(), purged.texts.to_bytes());
    let values = [
        (&tenant as _, Type::TEXT),
        (&stamp as _, Type::INT8),
        (&memories as _, Type::INT8),
        (&purged.sessions as _, Type::TEXT_ARRAY),
        (&purged.has_choices as _, Type::BOOL),
        (&texts as _, Type::BYTEA),
        (&by as _, Type::BYTEA),
        revision.number(),
    ];
    writer.session().query(put, &values).await.map(drop)
}
