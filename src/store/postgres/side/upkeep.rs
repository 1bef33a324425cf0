//! What is done between writes: what waits is sent, what is learnt is kept, and what is too old is removed.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{MOST_PATIENCE, PATIENCE, PostgresSide, within};
use crate::store::front::RETRY;
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::learnt::{self, LearntRecords};
use crate::store::postgres::outbox::{Acknowledge, OutboxError};
use crate::store::postgres::{audit, group, notes, partitions, retention};
use crate::timing::Predicted;

/// Predictions that are written together.
const PREDICTED_AT_ONCE: usize = 4096;

impl PostgresSide {
    /// Reads anew what is learnt. The server has all records.
    pub(super) async fn read_learnt(&mut self) -> Result<(), DatabaseFault> {
        let (writer, patience) = (self.outbox.writer(), self.options.outbox.commit_within);
        let session = self.outbox.session(PATIENCE).await?;
        let read = timeout(MOST_PATIENCE, LearntRecords::read(session, &self.learning)).await;
        let mut learnt = read.unwrap_or(Err(DatabaseFault::Late(MOST_PATIENCE)))?;
        within(learnt.commit(session, &self.learning, writer, patience)).await?;
        self.following.trails().correct(learnt.projection.states());
        (self.learnt, self.is_tainted, self.learnt_at) = (learnt, false, Instant::now());
        if self.outbox.settle() {
            self.following.learn_again();
        }
        Ok(())
    }

    /// Looks now and then whether this machine keeps records again, if it did not.
    pub(super) fn look_for_room(&mut self) {
        if self.outbox.refusal().is_some() && self.prove_at <= Instant::now() {
            self.prove_at = Instant::now() + RETRY;
            self.outbox.prove();
            self.say();
        }
    }

    /// Has the server take what waits, with what was predicted. What is not sent after `budget` goes with the next.
    pub(super) async fn catch_up(&mut self, budget: Duration) -> Result<(), OutboxError> {
        if self.outbox.waiting() > 0 {
            let sent = self.outbox.forward(self.forward_patience(), budget).await?;
            self.is_tainted |= sent.lacking > 0;
            if !sent.is_all {
                return Ok(());
            }
            self.waiting_keys.clear();
        }
        let mut predicted = self.shared.predicted.take();
        while !predicted.is_empty() {
            let rest = predicted.split_off(predicted.len().min(PREDICTED_AT_ONCE));
            if let Err(error) = self.keep_predicted(&predicted).await {
                // What a server that is there does not take, it would not take again.
                let is_kept = matches!(error, OutboxError::Database(DatabaseFault::Unreachable { .. }));
                let again = if is_kept { [predicted, rest].concat() } else { rest };
                self.shared.predicted.put_back(again);
                return Err(error);
            }
            predicted = rest;
        }
        if self.is_tainted || self.outbox.has_lacked() {
            self.read_learnt().await?;
        }
        Ok(())
    }

    async fn keep_predicted(&mut self, predicted: &[(i64, Predicted)]) -> Result<(), OutboxError> {
        let (writer, patience) = (self.outbox.writer(), self.options.outbox.commit_within);
        let session = self.outbox.session(PATIENCE).await?;
        audit::keep_predicted(session, writer, predicted, patience).await?;
        Ok(())
    }

    /// How long the server may take for what waits. Who sends records waits for no server where the journal is enough.
    fn forward_patience(&self) -> Duration {
        match self.options.outbox.acknowledge {
            Acknowledge::Database => PATIENCE,
            Acknowledge::Journal => self.options.outbox.commit_within.min(PATIENCE),
        }
    }

    pub(super) async fn keep_learnt(&mut self, budget: Duration) -> Result<(), OutboxError> {
        self.catch_up(budget).await?;
        // What is written down as learnt is all that is stored, and no more.
        if self.outbox.waiting() > 0 {
            return Ok(());
        }
        if self.learnt.projection.is_unwritten() {
            let (writer, patience) = (self.outbox.writer(), self.options.outbox.commit_within);
            let session = self.outbox.session(PATIENCE).await?;
            // Until it is known to be written, it is as good as not.
            self.is_tainted = true;
            within(self.learnt.commit(session, &self.learning, writer, patience)).await?;
            self.is_tainted = false;
        }
        self.learnt_at = Instant::now();
        Ok(())
    }

    /// Removes old months by a connection of its own, since that may take a while and records go on.
    pub(super) fn retain(&mut self) {
        if self.retaining.as_ref().is_some_and(|retaining| !retaining.is_finished()) {
            return;
        }
        let Some(retention) = self.options.retention else { return };
        let (address, daemon) = (self.options.address.clone(), self.learning.daemon);
        self.retaining = Some(self.runtime.spawn(async move {
            if let Err(fault) = retention::retain(&address, daemon, retention).await {
                tracing::warn!(%fault, "a month of records before the retention is removed later");
            }
        }));
    }

    pub(super) async fn tidy(&mut self) -> Result<(), OutboxError> {
        let session = self.outbox.session(PATIENCE).await?;
        within(partitions::prepare(session)).await?;
        within(learnt::prune(session, &self.learning)).await?;
        within(notes::prune(session)).await?;
        within(group::forget_keys(session)).await?;
        Ok(())
    }
}
