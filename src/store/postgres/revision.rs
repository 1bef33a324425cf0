//! The number of a transaction that writes something other than records. Other daemons follow a writer by it: it moves
//! in the writer's row, which the next transaction waits for, so those of one writer become visible in order.

use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::group::Incarnation;
use super::session::{DatabaseSession, StatementValue};

/// What the rows that a transaction writes are marked with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Revision {
    writer: Incarnation,
    number: i64,
}

impl Revision {
    /// The next of a writer, in the transaction of its caller's, which takes nothing else before.
    pub(super) async fn next(session: &DatabaseSession, writer: Incarnation) -> Result<Self, DatabaseFault> {
        let moves =
            "INSERT INTO almanac.writers AS writer (incarnation, through, before, revision) VALUES ($1, 0, 0, 1)
            ON CONFLICT (incarnation) DO UPDATE SET revision = writer.revision + 1, moved_at = now()
            RETURNING revision";
        let row = session.query_one(moves, &[(&writer.bytes(), Type::BYTEA)]).await?;
        Ok(Self { writer, number: row.get(0) })
    }

    /// Was its transaction committed? Who asks by another connection waits until it has ended, and writes, so that a
    /// standby which has this commit has that one, too.
    pub(super) async fn is_committed(&self, session: &DatabaseSession) -> Result<bool, DatabaseFault> {
        let touches =
            "INSERT INTO almanac.writers AS writer (incarnation, through, before, revision) VALUES ($1, 0, 0, 0)
            ON CONFLICT (incarnation) DO UPDATE SET moved_at = now() RETURNING revision";
        session.begin().await?;
        let row = session.query_one(touches, &[(&self.writer.bytes(), Type::BYTEA)]).await?;
        session.end(true).await?;
        Ok(row.get::<_, i64>(0) >= self.number)
    }

    pub(super) fn writer(&self) -> &[u8] {
        self.writer.bytes()
    }

    /// As a value of a statement.
    pub(super) fn number(&self) -> StatementValue<'_> {
        (&self.number, Type::INT8)
    }
}
