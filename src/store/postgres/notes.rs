//! Notes in the database: turns of sessions, choices, and what they moved. All of it is the tenants', whichever daemon
//! wrote it.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::revision::Revision;
use super::session::DatabaseSession;
use crate::store::notes::{ChoiceNote, KEPT_TURNS, KeptTurnNote, Note, Notes, TurnNote};
use crate::store::{Choice, KeptTurn};

/// Choices that are kept and read back, over all tenants: five of the half-lives after which one counts half.
const MAX_CHOICES: i64 = 20_000;

/// Sessions that are kept and read back.
const MAX_TURNS: i64 = 10_000;

/// Writes a note, as of a moment in microseconds since the epoch. A turn that is later there already stays.
pub(super) async fn write(
    session: &DatabaseSession,
    revision: &Revision,
    note: &Note,
    at_us: i64,
) -> Result<(), DatabaseFault> {
    let writer = revision.writer();
    match note {
        Note::Turn(TurnNote { tenant, session: name, number, state, kept }) => {
            let put = "INSERT INTO almanac.turns AS known (tenant, session, state, at_us, number, writer, revision)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                ON CONFLICT (tenant, session) DO UPDATE SET state = excluded.state, at_us = excluded.at_us,
                    number = excluded.number, writer = excluded.writer, revision = excluded.revision
                WHERE (known.number, known.at_us) <= (excluded.number, excluded.at_us)";
            let values = [
                (tenant as _, Type::TEXT),
                (name as _, Type::TEXT),
                (state as _, Type::TEXT),
                (&at_us as _, Type::INT8),
                (number as _, Type::INT8),
                (&writer as _, Type::BYTEA),
                revision.number(),
            ];
            session.query(put, &values).await?;
            match kept {
                Some(kept) => keep(session, (tenant, name, *number), kept, at_us).await,
                None => Ok(()),
            }
        }
        Note::Choice(ChoiceNote { tenant, tool, message, trust, adaptation }) => {
            let put = "WITH chosen AS (
                    INSERT INTO almanac.choices (tenant, tool, message, trust, at_us, writer, revision)
                    VALUES ($1, $2, $3, $4, $5, $7, $8)
                )
                INSERT INTO almanac.adaptations (tenant, state) VALUES ($1, $6)
                ON CONFLICT (tenant) DO UPDATE SET state = excluded.state";
            // A message is anybody's text, and this is the one character that no text has here.
            let message = message.replace('\0', "\u{fffd}");
            let values = [
                (tenant as _, Type::TEXT),
                (tool as _, Type::TEXT),
                (&message as _, Type::TEXT),
                (trust as _, Type::FLOAT4),
                (&at_us as _, Type::INT8),
                (adaptation as _, Type::BYTEA),
                (&writer as _, Type::BYTEA),
                revision.number(),
            ];
            session.query(put, &values).await.map(drop)
        }
    }
}

/// Keeps a turn, and of its session no more than the last.
pub(super) async fn keep(
    session: &DatabaseSession,
    (tenant, name, number): (&str, &str, i64),
    kept: &KeptTurnNote,
    at_us: i64,
) -> Result<(), DatabaseFault> {
    let put = "WITH kept AS (
            INSERT INTO almanac.kept_turns (tenant, session, number, digest, state, at_us)
            VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (tenant, session, number) DO UPDATE SET digest = excluded.digest, state = excluded.state
        )
        DELETE FROM almanac.kept_turns WHERE tenant = $1 AND session = $2 AND number <= $7";
    let (digest, beyond) = (&kept.digest[..], number.saturating_sub(KEPT_TURNS));
    let values = [
        (&tenant as _, Type::TEXT),
        (&name as _, Type::TEXT),
        (&number as _, Type::INT8),
        (&digest as _, Type::BYTEA),
        (&kept.state as _, Type::TEXT),
        (&at_us as _, Type::INT8),
        (&beyond as _, Type::INT8),
    ];
    session.query(put, &values).await.map(drop)
}

/// Removes what is noted of a session up to a turn that is not to be noted: the session is forgotten, and begins anew.
pub(super) async fn leave(session: &DatabaseSession, turn: &TurnNote) -> Result<(), DatabaseFault> {
    let remove = "DELETE FROM almanac.turns WHERE tenant = $1 AND session = $2 AND number <= $3";
    let values = [(&turn.tenant as _, Type::TEXT), (&turn.session as _, Type::TEXT), (&turn.number as _, Type::INT8)];
    session.query(remove, &values).await.map(drop)
}

/// The turns of a session that are kept, the latest first.
pub(super) async fn kept_turns(
    session: &DatabaseSession,
    tenant: &str,
    name: &str,
) -> Result<Vec<KeptTurn>, DatabaseFault> {
    let latest = "SELECT number, at_us, state FROM almanac.kept_turns WHERE tenant = $1 AND session = $2
        ORDER BY number DESC LIMIT $3";
    let values = [(&tenant as _, Type::TEXT), (&name as _, Type::TEXT), (&KEPT_TURNS as _, Type::INT8)];
    let turn = |row: &Row| KeptTurn { number: row.get(0), at_us: row.get(1), state: row.get(2) };
    Ok(session.query(latest, &values).await?.iter().map(turn).collect())
}

/// What orders notes of one transaction, so that no two wait for each other.
pub(super) fn place(note: &Note) -> (&str, &str) {
    match note {
        Note::Turn(turn) => (&turn.tenant, &turn.session),
        Note::Choice(choice) => (&choice.tenant, ""),
    }
}

/// A row of tenant, session, number and state.
pub(super) fn turn_of(row: &Row) -> TurnNote {
    TurnNote { tenant: row.get(0), session: row.get(1), number: row.get(2), state: row.get(3), kept: None }
}

/// Reads back what a start needs, of all daemons.
pub(super) async fn read_all(session: &DatabaseSession) -> Result<Notes, DatabaseFault> {
    let latest = "SELECT tenant, session, number, state FROM almanac.turns ORDER BY at_us DESC LIMIT $1";
    let rows = session.query(latest, &[(&MAX_TURNS as _, Type::INT8)]).await?;
    let turns = rows.iter().rev().map(turn_of).collect();
    Ok(Notes { turns, choices: choices_of(session, None).await? })
}

/// The latest choices, oldest first: one tenant's, or all.
pub(super) async fn choices_of(
    session: &DatabaseSession,
    tenant: Option<&str>,
) -> Result<Vec<ChoiceNote>, DatabaseFault> {
    let latest = "SELECT tenant, tool, message, trust, adaptations.state
        FROM almanac.choices JOIN almanac.adaptations USING (tenant) WHERE $2 IS NULL OR tenant = $2
        ORDER BY id DESC LIMIT $1";
    let values = [(&MAX_CHOICES as _, Type::INT8), (&tenant as _, Type::TEXT)];
    Ok(session.query(latest, &values).await?.iter().rev().map(choice).collect())
}

/// Of the columns tenant, tool, message, trust, and what the tenant's choices moved.
pub(super) fn choice(row: &Row) -> ChoiceNote {
    ChoiceNote { tenant: row.get(0), tool: row.get(1), message: row.get(2), trust: row.get(3), adaptation: row.get(4) }
}

/// When a tool was chosen, the latest first.
pub(super) async fn choices(
    session: &DatabaseSession,
    tenant: &str,
    tool: &str,
    limit: usize,
) -> Result<Vec<Choice>, DatabaseFault> {
    let latest = "SELECT at_us, message, trust FROM almanac.choices WHERE tenant = $1 AND tool = $2
        ORDER BY id DESC LIMIT $3";
    let most = limit as i64;
    let values = [(&tenant as _, Type::TEXT), (&tool as _, Type::TEXT), (&most as _, Type::INT8)];
    let choice = |row: &Row| Choice { at_us: row.get(0), message: row.get(1), trust: row.get(2) };
    Ok(session.query(latest, &values).await?.iter().map(choice).collect())
}

/// Forgets all but the latest of everything, and what those who purged left for others to find.
pub(super) async fn prune(session: &DatabaseSession) -> Result<(), DatabaseFault> {
    let turns = "DELETE FROM almanac.turns
        WHERE at_us <= (SELECT at_us FROM almanac.turns ORDER BY at_us DESC LIMIT 1 OFFSET $1)";
    session.query(turns, &[(&MAX_TURNS as _, Type::INT8)]).await?;
    let choices = "DELETE FROM almanac.choices
        WHERE id <= (SELECT id FROM almanac.choices ORDER BY id DESC LIMIT 1 OFFSET $1)";
    session.query(choices, &[(&MAX_CHOICES as _, Type::INT8)]).await?;
    // Who has not followed a purge for a week has been away.
    let texts = "UPDATE almanac.purges SET texts = NULL
        WHERE texts IS NOT NULL AND stamp < (extract(epoch FROM now() - interval '7 days') * 1000000)::int8";
    session.query(texts, &[]).await.map(drop)
}
