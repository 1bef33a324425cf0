//! Notes in the database: written with the group, read back at a start, forgotten and pruned.

use std::time::Instant;

use rusqlite::{Connection, Params, Row, Transaction, params};
use tokio::sync::oneshot;

use super::writer::Task;
use crate::store::StoreError;
use crate::store::clock::Clock;
use crate::store::memories::Forgotten;
use crate::store::noted::Noted;
use crate::store::notes::{ChoiceNote, KEPT_TURNS, KeptTurnNote, Note, Notes, NotesPending, TurnNote};

/// Choices that are kept and read back, over all tenants: five of the half-lives after which one counts half.
const MAX_CHOICES: u32 = 20_000;

/// Sessions that are kept and read back.
const MAX_TURNS: u32 = 10_000;

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
                Note::Turn(TurnNote { tenant, session, number, state, kept }) => {
                    transaction
                        .prepare_cached(
                            "INSERT INTO turns (tenant, session, state, at_us) VALUES (?1, ?2, ?3, ?4)
                             ON CONFLICT DO UPDATE SET state = excluded.state, at_us = excluded.at_us",
                        )?
                        .execute(params![tenant, session, state, at])?;
                    if let Some(kept) = kept {
                        keep(transaction, (tenant, session, *number), kept, at)?;
                    }
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

/// Keeps a turn, and of its session no more than the last.
fn keep(
    transaction: &Transaction<'_>,
    (tenant, session, number): (&str, &str, i64),
    kept: &KeptTurnNote,
    at: i64,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO kept_turns (tenant, session, number, digest, state, at_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET digest = excluded.digest, state = excluded.state",
        )?
        .execute(params![tenant, session, number, kept.digest, kept.state, at])?;
    transaction
        .prepare_cached("DELETE FROM kept_turns WHERE tenant = ?1 AND session = ?2 AND number <= ?3")?
        .execute(params![tenant, session, number.saturating_sub(KEPT_TURNS)])
        .map(drop)
}

/// Reads back what a start needs.
pub(super) fn read_all(connection: &Connection) -> rusqlite::Result<Notes> {
    let mut select = connection.prepare("SELECT tenant, session, state FROM turns ORDER BY at_us DESC LIMIT ?1")?;
    let turns = select.query_map([MAX_TURNS], |row| {
        Ok(TurnNote { tenant: row.get(0)?, session: row.get(1)?, number: 0, state: row.get(2)?, kept: None })
    })?;
    let mut turns: Vec<TurnNote> = turns.collect::<rusqlite::Result<_>>()?;
    turns.reverse();
    Ok(Notes { turns, choices: choices(connection, None)? })
}

/// The latest choices, oldest first: one tenant's, or all.
pub(super) fn choices(connection: &Connection, tenant: Option<&str>) -> rusqlite::Result<Vec<ChoiceNote>> {
    let mut select = connection.prepare(
        "SELECT choices.tenant, tool, message, trust, adaptations.state
         FROM choices JOIN adaptations USING (tenant) WHERE ?2 IS NULL OR choices.tenant = ?2
         ORDER BY id DESC LIMIT ?1",
    )?;
    let choices = select.query_map(params![MAX_CHOICES, tenant], |row| {
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

/// What is noted of a tenant, read for a while at a time.
#[derive(Debug, Default)]
pub(super) struct NotedReader {
    noted: Noted,
    reached: Reached,
}

/// The last row that was read, of one table after the other.
#[derive(Debug)]
enum Reached {
    Choice(i64),
    Turn(String),
    Kept(String, i64),
    End,
}

impl Default for Reached {
    fn default() -> Self {
        Self::Choice(i64::MIN)
    }
}

impl NotedReader {
    /// Reads on; all that is noted once it is read.
    pub(super) fn read(
        &mut self,
        connection: &Connection,
        tenant: &str,
        deadline: Instant,
    ) -> rusqlite::Result<Option<&mut Noted>> {
        let Self { noted, reached } = self;
        loop {
            let next = match reached {
                Reached::Choice(after) => {
                    let last = *after;
                    let sql = "SELECT id, message FROM choices WHERE tenant = ?1 AND id > ?2 ORDER BY id";
                    let is_over = each(connection, sql, params![tenant, last], deadline, |row| {
                        *after = row.get(0)?;
                        noted.note_choice(*after, &row.get::<_, String>(1)?);
                        Ok(())
                    })?;
                    is_over.then(|| Reached::Turn(String::new()))
                }
                Reached::Turn(after) => {
                    let last = after.clone();
                    let sql = "SELECT session, iif(json_valid(state), state ->> '$.message', NULL),
                                   iif(json_valid(state), state -> '$.said', NULL)
                               FROM turns WHERE tenant = ?1 AND session > ?2 ORDER BY session";
                    let is_over = each(connection, sql, params![tenant, last], deadline, |row| {
                        *after = row.get(0)?;
                        let (message, said): (Option<String>, Option<String>) = (row.get(1)?, row.get(2)?);
                        let said = said.and_then(|said| serde_json::from_str::<Vec<String>>(&said).ok());
                        noted.note_turn(after.clone(), message.into_iter().chain(said.unwrap_or_default()));
                        Ok(())
                    })?;
                    is_over.then(|| Reached::Kept(String::new(), i64::MIN))
                }
                Reached::Kept(session, number) => {
                    let last = (session.clone(), *number);
                    let sql = "SELECT session, number, digest FROM kept_turns
                               WHERE tenant = ?1 AND (session, number) > (?2, ?3) ORDER BY session, number";
                    let is_over = each(connection, sql, params![tenant, last.0, last.1], deadline, |row| {
                        (*session, *number) = (row.get(0)?, row.get(1)?);
                        noted.note_kept(session.clone(), row.get_ref(2)?.as_blob()?);
                        Ok(())
                    })?;
                    is_over.then_some(Reached::End)
                }
                Reached::End => return Ok(Some(noted)),
            };
            let Some(next) = next else { return Ok(None) };
            *reached = next;
        }
    }
}

/// Takes rows up to a deadline, at least one. Were these all?
fn each(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    deadline: Instant,
    mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(values)?;
    while let Some(row) = rows.next()? {
        take(row)?;
        if Instant::now() >= deadline {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes what was found to go. What choices moved cannot be taken apart; if any of them goes, all that the tenant's
/// have moved goes back to where it was before the first.
pub(super) fn forget(
    noted: &mut Noted,
    connection: &Connection,
    tenant: &str,
    forgotten: &mut Forgotten,
) -> rusqlite::Result<()> {
    for session in &noted.gone {
        connection.execute("DELETE FROM turns WHERE tenant = ?1 AND session = ?2", [tenant, session])?;
    }
    forgotten.sessions.extend(std::mem::take(&mut noted.gone));
    if noted.gone_choices.is_empty() {
        return Ok(());
    }
    for id in std::mem::take(&mut noted.gone_choices) {
        connection.execute("DELETE FROM choices WHERE id = ?1", [id])?;
    }
    // Bytes that nobody wrote are read as nothing moved.
    connection.execute("UPDATE adaptations SET state = x'' WHERE tenant = ?1", [tenant])?;
    forgotten.has_choices = true;
    Ok(())
}

/// Forgets sessions that were quiet, turns that were kept, and choices that were made, before this: microseconds since
/// the epoch.
pub(super) fn prune_old(connection: &Connection, before: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM turns WHERE at_us < ?1", [before])?;
    connection.execute("DELETE FROM kept_turns WHERE at_us < ?1", [before])?;
    connection.execute("DELETE FROM choices WHERE at_us < ?1", [before]).map(drop)
}

/// Forgets all but the latest of everything.
pub(super) fn prune(connection: &Connection) -> rusqlite::Result<()> {
    let beyond = "DELETE FROM turns WHERE at_us <= (SELECT at_us FROM turns ORDER BY at_us DESC LIMIT 1 OFFSET ?1)";
    connection.execute(beyond, [MAX_TURNS])?;
    connection.execute(
        "DELETE FROM choices WHERE id <= (SELECT id FROM choices ORDER BY id DESC LIMIT 1 OFFSET ?1)",
        [MAX_CHOICES],
    )?;
    connection.execute("DELETE FROM adaptations WHERE tenant NOT IN (SELECT tenant FROM choices)", []).map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Options, Sqlite, file_in};
    use super::*;
    use crate::store::notes::digest;
    use crate::store::{ForgottenTexts, ReplayLimits, Settings, Store};

    #[test]
    fn what_was_noted_is_there_after_a_restart() {
        let directory = tempfile::TempDir::new().unwrap();
        let retention = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        let settings = Settings { retention, ..Settings::default() };
        let options = Options { settings, ..Options::file(file_in(directory.path())) };
        let start = || Sqlite::start(options.clone(), Box::new(|_, _| ())).unwrap();
        let turn = |session: &str, state: &str| TurnNote {
            tenant: "t".into(),
            session: session.into(),
            number: 0,
            state: state.into(),
            kept: None,
        };
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

    #[test]
    fn all_choices_that_are_kept_are_read_back() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::migrations::migrate(&mut connection).unwrap();
        connection.execute("INSERT INTO adaptations VALUES ('t', x'')", []).unwrap();
        let insert = "WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers LIMIT ?1)
             INSERT INTO choices (tenant, tool, message, trust, at_us)
             SELECT 't', 'tool ' || number, 'm', 1.0, number FROM numbers";
        connection.execute(insert, [MAX_CHOICES + 3]).unwrap();
        prune(&connection).unwrap();
        let read = choices(&connection, None).unwrap();
        assert_eq!((read.len(), &*read[0].tool), (MAX_CHOICES as usize, "tool 4"));
    }

    #[test]
    fn turns_that_are_kept_age_and_go_with_their_session() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::migrations::migrate(&mut connection).unwrap();
        let rows = "INSERT INTO turns VALUES ('t', 'quiet', '{}', 10), ('t', 'long', '{}', 30);
             INSERT INTO kept_turns VALUES ('t', 'quiet', 1, x'00', '{}', 10), ('t', 'long', 1, x'00', '{}', 10),
                 ('t', 'long', 2, x'00', '{}', 30), ('u', 'quiet', 1, x'00', '{}', 30);";
        connection.execute_batch(rows).unwrap();
        let kept = |connection: &Connection| -> Vec<(String, i64)> {
            let mut select = connection.prepare("SELECT session, number FROM kept_turns WHERE tenant = 't'").unwrap();
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.collect::<rusqlite::Result<_>>().unwrap()
        };
        prune_old(&connection, 20).unwrap();
        assert_eq!(kept(&connection), [("long".to_owned(), 2)]);
        connection.execute("DELETE FROM turns", []).unwrap();
        assert_eq!(kept(&connection), []);
    }

    #[test]
    fn what_is_noted_of_a_tenant_is_read_a_row_at_a_time() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::migrations::migrate(&mut connection).unwrap();
        let rows = "INSERT INTO choices (tenant, tool, message, trust, at_us)
                 VALUES ('t', 'a', 'tea', 1.0, 1), ('u', 'a', 'tea', 1.0, 1), ('t', 'a', 'tea', 1.0, 2);
             INSERT INTO turns VALUES ('t', 'a', '{\"message\":\"tea\"}', 1), ('t', 'b', '{\"said\":[\"tea\"]}', 1),
                 ('t', 'c', '{}', 1), ('t', 'd', 'damaged', 1), ('u', 'e', '{\"message\":\"tea\"}', 1);";
        connection.execute_batch(rows).unwrap();
        let keep = "INSERT INTO kept_turns VALUES ('t', 'c', ?1, ?2, '{}', 1), ('u', 'c', ?1, ?2, '{}', 1)";
        for number in [1, 2] {
            connection.execute(keep, params![number, digest("tea")]).unwrap();
        }
        let (mut reader, mut reads) = (NotedReader::default(), 0);
        let over = Instant::now();
        while reader.read(&connection, "t", over).unwrap().is_none() {
            reads += 1;
        }
        assert_eq!(reads, 8, "rows of the tenant");
        let noted = reader.read(&connection, "t", over).unwrap().unwrap();
        noted.forget_text("tea", &mut ForgottenTexts::default());
        assert_eq!(noted.gone_choices.iter().copied().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(noted.gone.iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
