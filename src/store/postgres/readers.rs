//! Connections for reading: a reader blocks its own thread, never the writer.

use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use super::session::DatabaseSession;
use super::standing::Standing;
use crate::store::StoreError;

/// Connections kept open for the next reader.
const MAX_IDLE: usize = 4;

/// Connections that read at once; more readers wait, so that the server has some for other daemons.
const MAX_READING: usize = 8;

/// A question that takes longer is given up: its asker has gone by then.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Who reads.
pub(super) struct DatabaseReaders {
    runtime: Handle,
    address: DatabaseAddress,
    standing: Standing,
    idle: Mutex<Vec<DatabaseSession>>,
    turns: Semaphore,
}

impl fmt::Debug for DatabaseReaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DatabaseReaders").field("address", &self.address).finish_non_exhaustive()
    }
}

impl DatabaseReaders {
    pub(super) fn of(runtime: Handle, address: DatabaseAddress, standing: Standing) -> Self {
        Self { runtime, address, standing, idle: Mutex::default(), turns: Semaphore::new(MAX_READING) }
    }

    /// Reads by a connection of its own. Called on a thread that may block.
    pub(super) fn read<T>(
        &self,
        body: impl AsyncFnOnce(&DatabaseSession) -> Result<T, DatabaseFault>,
    ) -> Result<T, StoreError> {
        let answer = self.wait_for(async { timeout(MOST_TIME, self.ask(body)).await });
        answer.map_err(|_| StoreError::TooLong(MOST_TIME.as_secs()))?.map_err(|fault| unavailable(&fault))
    }

    /// The same for who asks nothing that takes long: if it does, the server does not answer.
    pub(super) fn follow<T>(
        &self,
        body: impl AsyncFnOnce(&DatabaseSession) -> Result<T, DatabaseFault>,
    ) -> Result<T, StoreError> {
        let answer = self.wait_for(async { timeout(MOST_TIME, self.ask(body)).await });
        let answer = answer.unwrap_or(Err(DatabaseFault::Late(MOST_TIME)));
        self.standing.followed(answer.as_ref().err());
        answer.map_err(|fault| unavailable(&fault))
    }

    async fn ask<T>(
        &self,
        body: impl AsyncFnOnce(&DatabaseSession) -> Result<T, DatabaseFault>,
    ) -> Result<T, DatabaseFault> {
        let lent = self.lend().await?;
        let answer = body(lent.session()).await?;
        lent.give_back();
        Ok(answer)
    }

    /// Waits for what a connection does, on a thread that may block.
    pub(super) fn wait_for<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Lends a connection, when it is one's turn.
    pub(super) async fn lend(&self) -> Result<LentSession<'_>, DatabaseFault> {
        let turn = self.turns.acquire().await.ok();
        let taken = self.take().await;
        self.standing.connected(taken.as_ref().err());
        Ok(LentSession { session: taken?, readers: self, _turn: turn })
    }

    async fn take(&self) -> Result<DatabaseSession, DatabaseFault> {
        loop {
            let kept = self.idle.lock().pop();
            match kept {
                Some(session) if session.is_closed() => {}
                // A server that went away says so when it is asked, and then it is asked anew.
                Some(session) if session.query_one("SELECT 1", &[]).await.is_err() => {}
                Some(session) => return Ok(session),
                None => return DatabaseSession::open(&self.address).await,
            }
        }
    }
}

/// A connection that is given back once it answered. One that failed is not used again: its answer may still come.
pub(super) struct LentSession<'r> {
    session: DatabaseSession,
    readers: &'r DatabaseReaders,
    _turn: Option<SemaphorePermit<'r>>,
}

impl LentSession<'_> {
    pub(super) fn session(&self) -> &DatabaseSession {
        &self.session
    }

    pub(super) fn give_back(self) {
        let mut idle = self.readers.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(self.session);
        }
    }
}

/// What whoever asked is told.
pub(super) fn unavailable(fault: &DatabaseFault) -> StoreError {
    StoreError::Unavailable(fault.to_string())
}
