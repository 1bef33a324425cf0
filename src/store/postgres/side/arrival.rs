//! The server is looked for, and is sent what waits once it is there: a slice at a time, since that may be hours of
//! records, and what is told meanwhile stands behind it on this machine without waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinError;

use super::{PATIENCE, PostgresSide, within};
use crate::store::ReplayLimits;
use crate::store::front::RETRY;
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::learnt::{self, LearntRecords};
use crate::store::postgres::migrations::{self, Migration};
use crate::store::postgres::outbox::{OutboxError, behind_others};
use crate::store::postgres::readers::unavailable;
use crate::store::postgres::session::DatabaseSession;
use crate::store::postgres::spool::SpoolError;
use crate::store::postgres::{history, partitions};

/// Records that are sent between two looks at what they teach, so that the last takes no longer than one.
const LEARNT_TOGETHER: usize = 10_000;

impl PostgresSide {
    /// Looks whether the server is there, in a task of its own; what it found is taken when it is done.
    pub(super) fn look_for_server(&mut self) {
        if self.is_reached() {
            return;
        }
        if self.is_taking_up {
            self.go_on();
            return;
        }
        let Some(opening) = &mut self.opening else {
            if self.open_at <= Instant::now() {
                // Who emptied it is about to put something back there, and a schema would be in the way.
                let migration = if self.is_known { Migration::Never } else { self.options.migration };
                let address = self.options.address.clone();
                let (learning, writers) = (self.learning.clone(), self.outbox.writers());
                self.opening = Some(self.runtime.spawn(async move {
                    let session = migrations::open(&address, migration).await?;
                    partitions::prepare(&session).await?;
                    // A commit waits for a standby that is away; here, that holds up nobody.
                    within(learnt::register(&session, &learning, &writers)).await?;
                    Ok(session)
                }));
            }
            return;
        };
        if !opening.is_finished() {
            return;
        }
        let opened = self.runtime.block_on(opening);
        self.take_opened(opened);
    }

    pub(super) fn take_opened(&mut self, opened: Result<Result<DatabaseSession, DatabaseFault>, JoinError>) {
        self.opening = None;
        self.open_at = Instant::now() + RETRY;
        match opened.unwrap_or_else(|_| Err(DatabaseFault::Late(PATIENCE))) {
            Ok(session) => {
                self.outbox.go_on_by(session);
                self.is_taking_up = true;
                self.go_on();
            }
            Err(fault) => self.fail(&fault),
        }
    }

    /// The server is there: it takes some of what waits. When it has all of it, it tells what is known.
    pub(super) fn go_on(&mut self) {
        let runtime = self.runtime.clone();
        match runtime.block_on(self.take_up()) {
            // What is told meanwhile stands behind it.
            Ok(false) if self.outbox.trouble().is_none() => self.outbox.is_troubled(&behind_others()),
            Ok(false) => {}
            Ok(true) => {
                // What was sent made room.
                self.outbox.prove();
                self.is_open();
                self.is_taking_up = false;
            }
            Err(error) => {
                self.open_at = Instant::now() + RETRY;
                match error {
                    OutboxError::Database(fault) => self.fail(&fault),
                    OutboxError::Spool(error) => self.spool_fails(&error),
                }
            }
        }
        self.say();
    }

    /// The database is one that fits, and all that it had is read.
    fn is_open(&mut self) {
        if !self.is_known {
            self.is_known = true;
            self.retain();
            tracing::info!(daemon = %self.learning.daemon.to_hex(), "the database is open");
        }
    }

    /// What waits cannot be seen to on this machine, such as what the server refuses and cannot be put aside: it is
    /// tried again as if the server were away, so that the reason stands until it works.
    pub(super) fn spool_fails(&mut self, error: &SpoolError) {
        (self.is_taking_up, self.open_at) = (false, Instant::now() + RETRY);
        self.outbox.is_troubled(&DatabaseFault::Spool(error.to_string()));
        self.say();
    }

    /// Is it done?
    async fn take_up(&mut self) -> Result<bool, OutboxError> {
        let budget = self.slice();
        let sent = self.outbox.forward_left(PATIENCE, budget).await?;
        self.sent_unlearnt += sent.records;
        if !sent.is_all {
            self.learn_sent().await?;
            return Ok(false);
        }
        if !self.is_known {
            let is_late = self.shared.awaits_history();
            self.read_history().await?;
            if is_late {
                // From here on it is as for a daemon whose server comes back, though much of this start may wait.
                self.is_open();
            }
        }
        let sent = self.outbox.forward(PATIENCE, budget).await?;
        self.sent_unlearnt += sent.records;
        if !sent.is_all {
            self.learn_sent().await?;
            return Ok(false);
        }
        self.waiting_keys.clear();
        self.read_learnt().await?;
        self.sent_unlearnt = 0;
        Ok(true)
    }

    /// Reads what there is for who could not at the start: as of now, before anything of this start is there.
    async fn read_history(&mut self) -> Result<(), DatabaseFault> {
        if !self.shared.awaits_history() {
            return Ok(());
        }
        let (writer, following) = (self.outbox.writer(), Arc::clone(&self.following));
        let session = self.outbox.session(PATIENCE).await?;
        let read = async {
            // What was left before is counted when it is read.
            let mut learnt = LearntRecords::read(session, following.learning()).await?;
            learnt.commit(session, following.learning(), writer, PATIENCE).await?;
            history::read(session, &following, ReplayLimits::default()).await
        };
        let read = within(read).await;
        self.shared.opened(|| read.map_err(|fault| unavailable(&fault)));
        Ok(())
    }

    /// What was sent is counted in the database now and then. What this daemon holds of it stands until all is sent.
    async fn learn_sent(&mut self) -> Result<(), DatabaseFault> {
        if self.sent_unlearnt >= LEARNT_TOGETHER {
            let writer = self.outbox.writer();
            let session = self.outbox.session(PATIENCE).await?;
            let mut learnt = within(LearntRecords::read(session, &self.learning)).await?;
            within(learnt.commit(session, &self.learning, writer, PATIENCE)).await?;
            self.sent_unlearnt = 0;
        }
        Ok(())
    }

    /// For how long what waits is sent before it is looked whether somebody has something to write. Who comes while one
    /// slice is sent waits for another, and is to be answered within `commit_within`.
    pub(super) fn slice(&self) -> Duration {
        self.options.outbox.commit_within / 4
    }
}
