//! One copy of an origin at a time: two would both find what is new, and write it twice.

use tokio_postgres::types::Type;

use crate::store::postgres::address::DatabaseAddress;
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::group::Incarnation;
use crate::store::postgres::session::DatabaseSession;

/// Held by a transaction that is open for as long as the copy takes: a lock of the session would not be one behind a
/// pooler. It reads and writes nothing, so it holds up no vacuum.
pub(super) struct MoveLock(DatabaseSession);

impl MoveLock {
    /// Nothing if another copy of the origin is under way.
    pub(super) async fn take(address: &DatabaseAddress, origin: Incarnation) -> Result<Option<Self>, DatabaseFault> {
        let session = DatabaseSession::open(address).await?;
        session.begin().await?;
        // It is idle all the time.
        session.run("SET LOCAL idle_in_transaction_session_timeout = 0").await?;
        let lock = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))";
        let name = format!("almanac move {}", origin.to_hex());
        let is_held: bool = session.query_one(lock, &[(&name, Type::TEXT)]).await?.get(0);
        Ok(is_held.then_some(Self(session)))
    }

    /// The copy is done.
    ///
    /// # Errors
    /// If the lock was lost meanwhile, so that another copy may have written the same.
    pub(super) async fn release(self) -> Result<(), DatabaseFault> {
        self.0.end(true).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::test_server::TestServer;

    #[tokio::test]
    async fn a_copy_of_the_same_is_kept_out_until_the_first_has_ended() {
        let Some(server) = TestServer::start() else { return };
        let address = server.address("postgres", "");
        let (one, other) = (Incarnation::of([1; 16]), Incarnation::of([2; 16]));
        let first = MoveLock::take(&address, one).await.unwrap().unwrap();
        assert!(MoveLock::take(&address, one).await.unwrap().is_none());
        assert!(MoveLock::take(&address, other).await.unwrap().is_some(), "of another origin");
        first.release().await.unwrap();
        // One that is killed holds it no longer, either, once the server has noticed.
        drop(MoveLock::take(&address, one).await.unwrap().unwrap());
        let session = DatabaseSession::open(&address).await.unwrap();
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
        while session.query_one(held, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
        assert!(MoveLock::take(&address, one).await.unwrap().is_some());
    }
}
