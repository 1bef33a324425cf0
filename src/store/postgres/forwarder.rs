//! Sends groups to the server until they are stored: on a new connection after one that failed, in halves where the
//! server refuses a record, so that one that nobody can store holds up none behind it.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use super::group::{Incarnation, Numbered, commit};
use super::session::DatabaseSession;
use super::{migrations, partitions};

/// Between two tries, at first and at most: who comes back finds few waiting, and soon.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What became of a group.
#[derive(Debug, Default)]
pub struct Forwarded {
    /// Numbers of the records that had been told before, under their keys, rising.
    pub told: Vec<i64>,
    /// Numbers of those that the server refuses for what they are, rising, each with the reason.
    pub refused: Vec<(i64, DatabaseFault)>,
}

/// One writer's way to the server. Groups go one after the other: two at once would commit out of order, and the later
/// would make the earlier look stored.
#[derive(Debug)]
pub struct Forwarder {
    address: DatabaseAddress,
    writer: Incarnation,
    session: Option<DatabaseSession>,
    opened: u64,
    /// Others wait behind it: a server that is away is not waited for.
    is_hasty: bool,
}

impl Forwarder {
    pub fn new(address: DatabaseAddress, writer: Incarnation) -> Self {
        Self { address, writer, session: None, opened: 0, is_hasty: false }
    }

    /// Whose records it sends.
    pub fn writer(&self) -> Incarnation {
        self.writer
    }

    /// Gives up with the second connection that fails.
    pub(super) fn hasten(&mut self) {
        self.is_hasty = true;
    }

    /// Goes on for another writer, once all of the one before is sent.
    pub(super) fn write_as(&mut self, writer: Incarnation) {
        self.writer = writer;
    }

    /// How often a connection was opened in place of one that failed.
    pub fn reconnects(&self) -> u64 {
        self.opened.saturating_sub(1)
    }

    /// Sends the records until each is stored or refused, for at most `patience`.
    ///
    /// # Errors
    /// What was in the way last. Some of them may be stored, all of them even; so the same must be sent again before
    /// any other.
    pub async fn forward(&mut self, records: &[Numbered], patience: Duration) -> Result<Forwarded, DatabaseFault> {
        self.forward_but(records, patience, |_, _| Ok(())).await
    }

    /// The same, with what is to be done with each that is refused before one behind it is sent: from then on the
    /// server takes it for stored, and refuses it no more.
    ///
    /// # Errors
    /// As [`Forwarder::forward`], or what `refuse` fails with.
    pub(super) async fn forward_but<E: From<DatabaseFault>>(
        &mut self,
        records: &[Numbered],
        patience: Duration,
        mut refuse: impl FnMut(&Numbered, &DatabaseFault) -> Result<(), E>,
    ) -> Result<Forwarded, E> {
        let deadline = Instant::now() + patience;
        let mut forwarded = Forwarded::default();
        // The part to be sent next is the last.
        let mut parts = vec![records];
        while let Some(part) = parts.pop() {
            match self.send(part, deadline).await {
                Ok(told) => forwarded.told.extend(told),
                Err(fault @ (DatabaseFault::Record(_) | DatabaseFault::KeyReused)) => {
                    if let [record] = part {
                        refuse(record, &fault)?;
                        forwarded.refused.push((record.0, fault));
                    } else {
                        let (front, back) = part.split_at(part.len() / 2);
                        parts.extend([back, front]);
                    }
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(forwarded)
    }

    /// Sends a group as a whole. Returns the numbers of those that had been told before.
    ///
    /// # Errors
    /// As [`Forwarder::forward`]; one record that is refused refuses all.
    pub async fn forward_whole(&mut self, records: &[Numbered], patience: Duration) -> Result<Vec<i64>, DatabaseFault> {
        self.send(records, Instant::now() + patience).await
    }

    /// Sends a group until it is known what became of it.
    async fn send(&mut self, records: &[Numbered], deadline: Instant) -> Result<Vec<i64>, DatabaseFault> {
        let (mut pause, mut lost) = (FIRST_PAUSE, 0);
        loop {
            let fault = match self.attempt(records, deadline).await {
                Ok(told) => return Ok(told),
                Err(fault) => fault,
            };
            if !fault.keeps_session() {
                self.session = None;
                lost += 1;
            }
            let is_given_up = self.is_hasty && lost > 1;
            if !fault.may_pass() || is_given_up || Instant::now() + pause >= deadline {
                return Err(fault);
            }
            tracing::debug!(%fault, "a group of records is sent again");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The connection; a new one if there is none.
    pub(super) async fn session(&mut self, patience: Duration) -> Result<&mut DatabaseSession, DatabaseFault> {
        let session = match self.session.take() {
            Some(session) if !session.is_closed() => session,
            _ => {
                let opening = timeout(patience, migrations::open_again(&self.address));
                let session = opening.await.map_err(|_| DatabaseFault::Late(patience))??;
                self.opened += 1;
                session
            }
        };
        Ok(self.session.insert(session))
    }

    /// Uses the connection no more.
    pub(super) fn hang_up(&mut self) {
        self.session = None;
    }

    /// Uses this connection from now on.
    pub(super) fn adopt(&mut self, session: DatabaseSession) {
        self.session = Some(session);
        self.opened += 1;
    }

    async fn attempt(&mut self, records: &[Numbered], deadline: Instant) -> Result<Vec<i64>, DatabaseFault> {
        let left = deadline.saturating_duration_since(Instant::now());
        let late = |_| DatabaseFault::Late(left);
        let writer = self.writer;
        let session = self.session(left).await?;
        match commit(session, writer, records, left).await {
            Err(DatabaseFault::NoPartition) => {
                timeout_at(deadline, partitions::prepare(session)).await.map_err(late)??;
                commit(session, writer, records, left).await
            }
            done => done,
        }
    }
}

#[cfg(test)]
mod tests;
