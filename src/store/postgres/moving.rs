//! Copies a machine's own database to the one that several daemons share. It is a writer like any other, whose numbers
//! are its rows' ids, so a copy may stop, go on and be repeated, also while a daemon works on it: each takes what is
//! new, what changed, and what is gone.

mod learnt;
mod ledger;
mod memories;
mod move_lock;
mod notes;
mod records;

use std::path::{Path, PathBuf};

use tokio_postgres::types::Type;

use self::ledger::{Ledger, What};
use self::move_lock::MoveLock;
use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use super::group::Incarnation;
use super::learnt::{LearningDaemon, register};
use super::migrations::{self, Migration};
use super::partitions;
use super::session::DatabaseSession;
use crate::store::sqlite::source::{SourceError, SqliteSource};

/// A copy did not come to its end; what was copied stays, and the next goes on.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Database(#[from] DatabaseFault),
    #[error(
        "{}: records up to {moved} were copied from it before, and it ends at {found}: it is an older copy of that \
         database; name the one that was worked on last",
        path.display()
    )]
    Older { path: PathBuf, found: i64, moved: i64 },
    #[error(
        "what was learnt of {} was copied as that of the host {before}, and would become that of {host}: name the \
         configuration of its daemon (`--config FILE`, with its `store.host`), or say `--host {host}` if it is to be \
         that host's from now on",
        path.display()
    )]
    OtherHost { path: PathBuf, before: String, host: String },
    #[error("another copy of {} to that database is under way; repeat this when it has ended", .0.display())]
    UnderWay(PathBuf),
    #[error("{} was copied from that database, which has all of it but what came later; name another", .0.display())]
    Back(PathBuf),
}

/// How much of a sort there is on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowsMoved {
    pub here: u64,
    pub there: u64,
    /// Those that this copy wrote.
    pub written: u64,
}

/// What a copy came to.
#[derive(Debug, Default)]
pub struct Moved {
    pub records: RowsMoved,
    pub memories: RowsMoved,
    pub sessions: RowsMoved,
    pub choices: RowsMoved,
    /// What was copied before and has been removed from the shared database since, which is not copied again.
    pub removed_there: u64,
    /// What cannot stand there, each with the reason.
    pub refused: Vec<String>,
}

impl Moved {
    /// Is all there that is here, but for what is said to be refused or removed?
    pub fn is_complete(&self) -> bool {
        let Self { records, memories, sessions, choices, removed_there, refused } = self;
        let here = records.here + memories.here + sessions.here + choices.here;
        let there = records.there + memories.there + sessions.there + choices.there;
        here == there + removed_there + refused.len() as u64
    }
}

/// The host that what was learnt counts for.
#[derive(Debug, Clone, Copy)]
pub struct CopiedHost<'h> {
    pub name: &'h str,
    /// Also if it was copied as another's before.
    pub is_chosen: bool,
}

impl CopiedHost<'_> {
    /// Is it the one of the copy before, unless another is chosen?
    async fn check(&self, path: &Path, session: &DatabaseSession, origin: Incarnation) -> Result<(), MoveError> {
        // One that wrote nothing yet moves no row.
        let query = "SELECT host FROM almanac.daemons JOIN almanac.writers ON incarnation = daemon WHERE daemon = $1";
        let rows = session.query(query, &[(&origin.bytes(), Type::BYTEA)]).await?;
        match rows.first().map(|row| row.get::<_, String>(0)) {
            Some(before) if before != self.name && !self.is_chosen => {
                Err(MoveError::OtherHost { path: path.to_owned(), before, host: self.name.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// How far a copy is.
pub(super) struct Progress<'p> {
    done: u64,
    all: u64,
    say: &'p mut dyn FnMut(u64, u64),
}

impl<'p> Progress<'p> {
    pub(super) fn of(all: u64, say: &'p mut dyn FnMut(u64, u64)) -> Self {
        Self { done: 0, all, say }
    }

    pub(super) fn add(&mut self, rows: usize) {
        self.done += rows as u64;
        (self.say)(self.done, self.all.max(self.done));
    }
}

/// Copies the database at `path`, whose learning counts for `host`. `say` is told how many rows are done, and of how
/// many.
///
/// # Errors
/// What was in the way; the same may be done again.
pub async fn move_to(
    path: &Path,
    address: &DatabaseAddress,
    migration: Migration,
    host: CopiedHost<'_>,
    say: &mut dyn FnMut(u64, u64),
) -> Result<Moved, MoveError> {
    let source = SqliteSource::open(path)?;
    let session = migrations::open(address, migration).await?;
    partitions::prepare(&session).await?;
    let origin = Incarnation::of(source.origin()?);
    let Some(lock) = MoveLock::take(address, origin).await? else {
        return Err(MoveError::UnderWay(path.to_owned()));
    };
    host.check(path, &session, origin).await?;
    let ledger = Ledger::new(&session, origin);
    if ledger.is_copied_back().await? {
        return Err(MoveError::Back(path.to_owned()));
    }
    let counts = source.counts()?;
    let all = counts.records + counts.memories + counts.turns + counts.choices;
    let (mut progress, mut moved) = (Progress::of(all, say), Moved::default());
    // Its learning is its own: what a daemon on the same directory learns later is added up with it.
    let learning = LearningDaemon { daemon: origin, host: host.name.to_owned() };
    register(&session, &learning, &[origin]).await?;
    records::copy(&source, path, address, origin, &mut progress, &mut moved).await?;
    learnt::copy(&source, &session, &learning).await?;
    memories::copy(&source, &ledger, &mut progress, &mut moved).await?;
    notes::copy(&source, &ledger, &mut progress, &mut moved).await?;
    let counts = source.counts()?;
    moved.records.here = counts.records;
    for (rows, here, what) in [
        (&mut moved.memories, counts.memories, What::Memory),
        (&mut moved.sessions, counts.turns, What::Session),
        (&mut moved.choices, counts.choices, What::Choice),
    ] {
        let (copied, there) = ledger.count(what).await?;
        (rows.here, rows.there) = (here, there);
        moved.removed_there += copied - there;
    }
    moved.records.there = records::count(&source, &session, origin).await?;
    lock.release().await?;
    Ok(moved)
}
