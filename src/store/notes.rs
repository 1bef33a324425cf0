//! What selection must not forget: where each session stands, and which tools were chosen for which messages.
//!
//! No question waits for the disk: what it notes is there after an orderly end, and all but the last moment of it after any
//! other. What is reported is waited for, in a bound, so that what was acknowledged is not forgotten.
//!
//! Choices do not say whose message it was. Whoever asks that a person be forgotten is served by what is known: the texts of
//! the memories about that person, and the chats they were said in.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::{Connection, Transaction, params};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::memories::{Forgotten, SessionsOf};
use super::writer::{Clock, Task};
use super::{Store, StoreError};
use crate::session::turns::MAX_MESSAGE_BYTES;
use crate::text::head::head;

/// Choices that are kept, over all tenants.
const MAX_CHOICES: u32 = 20_000;

/// Choices that a start reads back.
const REPLAYED_CHOICES: u32 = 5_000;

/// Sessions that are kept and read back.
const MAX_TURNS: u32 = 10_000;

/// Something to keep.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Where a session stands, in place of what was noted of it before.
    Turn(TurnNote),
    /// A choice, and what its tenant's choices have moved.
    Choice(ChoiceNote),
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnNote {
    /// Whose session it is.
    pub tenant: String,
    /// The session.
    pub session: String,
    /// Its state; text whose form is its owner's.
    pub state: String,
}

/// A tool that was chosen for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceNote {
    /// Whose choice it was.
    pub tenant: String,
    /// The tool.
    pub tool: String,
    /// The message.
    pub message: String,
    /// How far it is trusted, 0 to 1.
    pub trust: f32,
    /// What moved with it; bytes whose form is their owner's.
    pub adaptation: Vec<u8>,
}

/// Everything noted, oldest first.
#[derive(Debug, Default)]
pub struct Notes {
    /// Where sessions stand, the one that was quiet longest first.
    pub turns: Vec<TurnNote>,
    /// Choices; the adaptation is the tenant's latest.
    pub choices: Vec<ChoiceNote>,
}

/// How long a report waits for its notes: the store is in trouble, or busy, if it takes longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Notes on their way to the disk.
#[derive(Debug, Default)]
pub struct NotesPending(Vec<oneshot::Receiver<Result<(), StoreError>>>);

impl NotesPending {
    /// Waits until all of them are durable, for at most a second.
    ///
    /// # Errors
    /// If one is not stored, or not yet.
    pub async fn durable(self) -> Result<(), StoreError> {
        let all = async {
            for noted in self.0 {
                noted.await.map_err(|_| StoreError::Closed)??;
            }
            Ok(())
        };
        let late = || StoreError::Unavailable(format!("it takes longer than {} s", PATIENCE.as_secs()));
        timeout(PATIENCE, all).await.unwrap_or_else(|_| Err(late()))
    }
}

/// Where the notes of one question or report are made.
#[derive(Debug)]
pub struct Notepad<'s> {
    store: &'s dyn Store,
    noted: Result<NotesPending, StoreError>,
}

impl<'s> Notepad<'s> {
    /// Nothing noted yet.
    pub fn new(store: &'s dyn Store) -> Self {
        Self { store, noted: Ok(NotesPending::default()) }
    }

    /// Notes it. A store that is busy or in trouble loses it, which it says itself; no answer fails for that.
    pub fn note(&mut self, note: Note) {
        match (self.store.note(vec![note]), &mut self.noted) {
            (Ok(noted), Ok(all)) => all.0.extend(noted.0),
            (Ok(_), Err(_)) => {}
            (Err(error), noted) => {
                tracing::debug!(%error, "a note was not taken");
                *noted = Err(error);
            }
        }
    }

    /// All that was noted; an error if any of it was not taken.
    pub fn close(self) -> Result<NotesPending, StoreError> {
        self.noted
    }
}

/// Notes that wait to be written.
#[derive(Debug)]
pub(super) struct Noting {
    notes: Vec<Note>,
    reply: oneshot::Sender<Result<(), StoreError>>,
}

impl Noting {
    pub(super) fn new(notes: Vec<Note>) -> (Self, NotesPending) {
        let (reply, noted) = oneshot::channel();
        (Self { notes, reply }, NotesPending(vec![noted]))
    }
}

impl Task for Noting {
    fn records(&self) -> usize {
        self.notes.len()
    }

    fn run(&mut self, transaction: &mut Transaction<'_>, clock: &mut Clock) -> rusqlite::Result<()> {
        for note in &self.notes {
            let at = clock.tick();
            match note {
                Note::Turn(TurnNote { tenant, session, state }) => {
                    transaction
                        .prepare_cached(
                            "INSERT INTO turns (tenant, session, state, at_us) VALUES (?1, ?2, ?3, ?4)
                             ON CONFLICT DO UPDATE SET state = excluded.state, at_us = excluded.at_us",
                        )?
                        .execute(params![tenant, session, state, at])?;
                }
                Note::Choice(ChoiceNote { tenant, tool, message, trust, adaptation }) => {
                    transaction
                        .prepare_cached(
                            "INSERT INTO choices (tenant, tool, message, trust, at_us) VALUES (?1, ?2, ?3, ?4, ?5)",
                        )?
                        .execute(params![tenant, tool, message, trust, at])?;
                    transaction
                        .prepare_cached(
                            "INSERT INTO adaptations (tenant, state) VALUES (?1, ?2)
                             ON CONFLICT DO UPDATE SET state = excluded.state",
                        )?
                        .execute(params![tenant, adaptation])?;
                }
            }
        }
        Ok(())
    }

    fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>) {
        if let Err(error) = &outcome {
            tracing::debug!(%error, notes = self.notes.len(), "notes of sessions and choices were not stored");
        }
        // Nobody waits for most of them.
        let _ = self.reply.send(outcome);
    }
}

/// Reads back what a start needs.
pub(super) fn read_all(connection: &Connection) -> rusqlite::Result<Notes> {
    let mut select = connection.prepare("SELECT tenant, session, state FROM turns ORDER BY at_us DESC LIMIT ?1")?;
    let turns = select
        .query_map([MAX_TURNS], |row| Ok(TurnNote { tenant: row.get(0)?, session: row.get(1)?, state: row.get(2)? }))?;
    let mut turns: Vec<TurnNote> = turns.collect::<rusqlite::Result<_>>()?;
    turns.reverse();
    Ok(Notes { turns, choices: choices(connection, None)? })
}

/// The latest choices, oldest first: one tenant's, or all.
fn choices(connection: &Connection, tenant: Option<&str>) -> rusqlite::Result<Vec<ChoiceNote>> {
    let mut select = connection.prepare(
        "SELECT choices.tenant, tool, message, trust, adaptations.state
         FROM choices JOIN adaptations USING (tenant) WHERE ?2 IS NULL OR choices.tenant = ?2 ORDER BY id DESC LIMIT ?1",
    )?;
    let choices = select.query_map(params![REPLAYED_CHOICES, tenant], |row| {
        Ok(ChoiceNote {
            tenant: row.get(0)?,
            tool: row.get(1)?,
            message: row.get(2)?,
            trust: row.get(3)?,
            adaptation: row.get(4)?,
        })
    })?;
    let mut choices: Vec<ChoiceNote> = choices.collect::<rusqlite::Result<_>>()?;
    choices.reverse();
    Ok(choices)
}

/// Forgets what was noted of the messages in these rows of memories, in any version of theirs: choices made for them, and the
/// sessions named after their chats and threads, or that stand at one of them. What choices moved cannot be taken apart; if any
/// of them goes, all that the tenant's have moved goes back to where it was before the first.
pub(super) fn forget(
    connection: &Connection,
    tenant: &str,
    memories: &[i64],
    sessions_of: SessionsOf,
) -> rusqlite::Result<Forgotten> {
    let mut noted = Noted::of(connection, tenant)?;
    let mut place = connection.prepare("SELECT chat_id, thread_id FROM memories WHERE seq = ?1")?;
    let mut texts = connection.prepare(
        "SELECT content FROM memories WHERE seq = ?1 UNION ALL SELECT content FROM memory_history WHERE seq = ?1",
    )?;
    for seq in memories {
        let place: (Option<String>, Option<String>) = place.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
        noted.forget_sessions(place.0.as_deref().map(sessions_of).into_iter().flatten().chain(place.1));
        let mut rows = texts.query([seq])?;
        while let Some(row) = rows.next()? {
            noted.forget_text(row.get_ref(0)?.as_str()?);
        }
    }
    for session in &noted.gone {
        connection.execute("DELETE FROM turns WHERE tenant = ?1 AND session = ?2", [tenant, session])?;
    }
    for id in &noted.gone_choices {
        connection.execute("DELETE FROM choices WHERE id = ?1", [id])?;
    }
    let mut forgotten = Forgotten { sessions: noted.gone.into_iter().collect(), ..Forgotten::default() };
    if !noted.gone_choices.is_empty() {
        // Bytes that nobody wrote are read as nothing moved.
        connection.execute("UPDATE adaptations SET state = x'' WHERE tenant = ?1", [tenant])?;
        let left = choices(connection, Some(tenant))?;
        forgotten.choices = Some(left);
    }
    Ok(forgotten)
}

/// What is noted of a tenant, by what it is found by, and what of it is to go.
struct Noted {
    choices: HashMap<String, Vec<i64>>,
    /// By the message they stand at.
    turns: HashMap<String, Vec<String>>,
    sessions: BTreeSet<String>,
    gone_choices: BTreeSet<i64>,
    gone: BTreeSet<String>,
}

impl Noted {
    fn of(connection: &Connection, tenant: &str) -> rusqlite::Result<Self> {
        let mut noted = Self {
            choices: HashMap::new(),
            turns: HashMap::new(),
            sessions: BTreeSet::new(),
            gone_choices: BTreeSet::new(),
            gone: BTreeSet::new(),
        };
        let mut select = connection.prepare("SELECT id, message FROM choices WHERE tenant = ?1")?;
        let mut rows = select.query([tenant])?;
        while let Some(row) = rows.next()? {
            noted.choices.entry(row.get(1)?).or_default().push(row.get(0)?);
        }
        let mut select = connection.prepare(
            "SELECT session, iif(json_valid(state), state ->> '$.message', NULL) FROM turns WHERE tenant = ?1",
        )?;
        let mut rows = select.query([tenant])?;
        while let Some(row) = rows.next()? {
            let session: String = row.get(0)?;
            if let Some(message) = row.get::<_, Option<String>>(1)? {
                noted.turns.entry(message).or_default().push(session.clone());
            }
            noted.sessions.insert(session);
        }
        Ok(noted)
    }

    fn forget_sessions(&mut self, names: impl Iterator<Item = String>) {
        self.gone.extend(names.filter(|name| self.sessions.contains(name)));
    }

    fn forget_text(&mut self, text: &str) {
        let text = head(text, MAX_MESSAGE_BYTES);
        self.gone_choices.extend(self.choices.remove(text).into_iter().flatten());
        // Sessions without a message stand at none.
        if !text.is_empty() {
            self.gone.extend(self.turns.remove(text).into_iter().flatten());
        }
    }
}

/// Forgets sessions that were quiet since `before`, microseconds since the epoch, and all but the latest of everything.
pub(super) fn prune(connection: &Connection, before: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM turns WHERE at_us < ?1", [before])?;
    let beyond = "DELETE FROM turns WHERE at_us <= (SELECT at_us FROM turns ORDER BY at_us DESC LIMIT 1 OFFSET ?1)";
    connection.execute(beyond, [MAX_TURNS])?;
    connection.execute("DELETE FROM choices WHERE at_us < ?1", [before])?;
    connection.execute(
        "DELETE FROM choices WHERE id <= (SELECT id FROM choices ORDER BY id DESC LIMIT 1 OFFSET ?1)",
        [MAX_CHOICES],
    )?;
    connection.execute("DELETE FROM adaptations WHERE tenant NOT IN (SELECT tenant FROM choices)", []).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::ReplayLimits;
    use super::super::sqlite::{Options, Sqlite, file_in};
    use super::*;

    #[test]
    fn what_was_noted_is_there_after_a_restart() {
        let directory = tempfile::TempDir::new().unwrap();
        let retention = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        let options = Options { retention, ..Options::file(file_in(directory.path())) };
        let start = || Sqlite::start(options.clone(), Box::new(|_, _| ())).unwrap();
        let turn =
            |session: &str, state: &str| TurnNote { tenant: "t".into(), session: session.into(), state: state.into() };
        let choice = |tool: &str, adaptation: u8| ChoiceNote {
            tenant: "t".into(),
            tool: tool.into(),
            message: "m".into(),
            trust: 0.5,
            adaptation: vec![adaptation],
        };
        let store = start();
        store.note(vec![Note::Turn(turn("a", "1")), Note::Turn(turn("b", "1")), Note::Choice(choice("x", 1))]).unwrap();
        store.note(vec![Note::Turn(turn("a", "2")), Note::Choice(choice("y", 2))]).unwrap();
        drop(store);
        let notes = start().replay(ReplayLimits::default()).unwrap().notes;
        assert_eq!(notes.turns, [turn("b", "1"), turn("a", "2")]);
        assert_eq!(notes.choices, [choice("x", 2), choice("y", 2)]);
    }
}
