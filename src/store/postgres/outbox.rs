//! The way of records to the server: into the spool first, and from there, in the order of their numbers.
//!
//! While the server is away they stay on this machine, which is said; until the spool is empty, new ones stand behind
//! it. What an earlier start left goes before all.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use super::forwarder::{Forwarded, Forwarder};
use super::spool::{LeftSpool, Spool, SpoolError};
use crate::timing::Execution;

/// Records of one group; more would make the first of them wait for the last.
const MAX_GROUP: usize = 4096;

/// When whoever sends records is told that they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledge {
    /// When this machine's journal is flushed.
    Journal,
    /// When the server has committed them.
    Database,
}

/// What becomes of records while the server is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenUnreachable {
    /// They stay on this machine for the time being.
    Spool,
    /// They are refused.
    Refuse,
}

/// How records are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxSettings {
    pub acknowledge: Acknowledge,
    /// How long the server may take before the journal stands in for it.
    pub commit_within: Duration,
    pub when_unreachable: WhenUnreachable,
    /// Bytes that may wait on this machine.
    pub spool_max: u64,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self {
            acknowledge: Acknowledge::Database,
            commit_within: Duration::from_secs(2),
            when_unreachable: WhenUnreachable::Spool,
            spool_max: 256 << 20,
        }
    }
}

/// Records were not taken.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Whether the server has them is not known.
    #[error(transparent)]
    Database(#[from] DatabaseFault),
}

/// Where records are that were taken.
#[derive(Debug)]
pub enum KeptAt {
    /// At the server; some may have been told before, or are refused, and then they are nowhere.
    Database(Forwarded),
    /// In this machine's journal, as was asked for.
    Journal,
    /// In this machine's journal alone, for this reason.
    JournalAlone(DatabaseFault),
}

/// Records that were taken.
#[derive(Debug)]
pub struct Taken {
    /// The number of the first; those of the others follow it.
    pub first: i64,
    pub kept_at: KeptAt,
}

/// All that is on its way to the server.
#[derive(Debug)]
pub struct Outbox {
    settings: OutboxSettings,
    spool: Spool,
    left: VecDeque<LeftSpool>,
    forwarder: Forwarder,
    /// Why the server did not take what was sent last.
    trouble: Option<String>,
}

impl Outbox {
    /// Begins with what earlier starts left in a directory that nobody else uses.
    pub fn open(directory: &Path, address: DatabaseAddress, settings: OutboxSettings) -> Result<Self, SpoolError> {
        let (spool, left) = Spool::open(directory, settings.spool_max)?;
        let forwarder = Forwarder::new(address, spool.writer());
        Ok(Self { settings, spool, left: left.into(), forwarder, trouble: None })
    }

    /// Records that only this machine has, as far as is known.
    pub fn waiting(&self) -> usize {
        self.spool.waiting().len() + self.left.iter().map(|left| left.records.len()).sum::<usize>()
    }

    /// Why the server did not take what was sent last, if it did not.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Takes records, and returns when they are kept where the settings say.
    ///
    /// # Errors
    /// If they are kept nowhere, or may be at the server although the settings refuse to keep them here.
    pub async fn send(&mut self, records: Vec<Execution>) -> Result<Taken, OutboxError> {
        let is_first = self.waiting() == 0;
        if !is_first && self.settings.when_unreachable == WhenUnreachable::Refuse {
            // What is here was left by a start with other settings.
            self.forward(self.settings.commit_within).await?;
        }
        let first = self.spool.put(records)?;
        if self.settings.acknowledge == Acknowledge::Journal {
            self.spool.flush()?;
            return Ok(Taken { first, kept_at: KeptAt::Journal });
        }
        // Who waits behind a server that is away does not ask it again: that is done beside.
        let waited = match &self.trouble {
            Some(trouble) if !is_first => Err(DatabaseFault::Behind(trouble.clone())),
            _ => self.forward_from(first, self.settings.commit_within).await?,
        };
        match (waited, self.settings.when_unreachable) {
            (Ok(forwarded), _) => Ok(Taken { first, kept_at: KeptAt::Database(forwarded) }),
            (Err(fault), WhenUnreachable::Spool) => {
                self.spool.flush()?;
                Ok(Taken { first, kept_at: KeptAt::JournalAlone(fault) })
            }
            (Err(fault), WhenUnreachable::Refuse) => {
                self.spool.give_up();
                Err(fault.into())
            }
        }
    }

    /// Sends what waits, for at most `patience` for each group.
    ///
    /// # Errors
    /// If not all of it is sent.
    pub async fn forward(&mut self, patience: Duration) -> Result<(), OutboxError> {
        Ok(self.forward_from(i64::MAX, patience).await?.map(drop)?)
    }

    /// Sends what waits. Says what became of those from the number `first` on; others that the server refuses are put
    /// aside, since they have been acknowledged.
    async fn forward_from(
        &mut self,
        first: i64,
        patience: Duration,
    ) -> Result<Result<Forwarded, DatabaseFault>, SpoolError> {
        let forwarded = self.forward_all(first, patience).await?;
        self.trouble = forwarded.as_ref().err().map(ToString::to_string);
        Ok(forwarded)
    }

    async fn forward_all(
        &mut self,
        first: i64,
        patience: Duration,
    ) -> Result<Result<Forwarded, DatabaseFault>, SpoolError> {
        while let Some(left) = self.left.front() {
            self.forwarder.write_as(left.writer);
            for group in left.records.chunks(MAX_GROUP) {
                let forwarded = match self.forwarder.forward(group, patience).await {
                    Ok(forwarded) => forwarded,
                    Err(fault) => return Ok(Err(fault)),
                };
                for (number, why) in &forwarded.refused {
                    aside(&self.spool, &self.forwarder, group, *number, why)?;
                }
            }
            if let Some(left) = self.left.pop_front() {
                left.remove()?;
            }
        }
        self.forwarder.write_as(self.spool.writer());
        let mut of_these = Forwarded::default();
        while !self.spool.waiting().is_empty() {
            let group = &self.spool.waiting()[..self.spool.waiting().len().min(MAX_GROUP)];
            let forwarded = match self.forwarder.forward(group, patience).await {
                Ok(forwarded) => forwarded,
                Err(fault) => return Ok(Err(fault)),
            };
            of_these.told.extend(forwarded.told.into_iter().filter(|number| *number >= first));
            for (number, why) in forwarded.refused {
                if number < first {
                    aside(&self.spool, &self.forwarder, group, number, &why)?;
                } else {
                    of_these.refused.push((number, why));
                }
            }
            self.spool.done(group.len());
        }
        Ok(Ok(of_these))
    }
}

/// Puts a record of a group aside. One whose key was told with another body stands already for what it was told as.
fn aside(
    spool: &Spool,
    forwarder: &Forwarder,
    group: &[(i64, Execution)],
    number: i64,
    why: &DatabaseFault,
) -> Result<(), SpoolError> {
    tracing::error!(number, %why, "a record that was acknowledged is put aside");
    match group.iter().find(|(other, _)| *other == number) {
        Some(record) => spool.put_aside(forwarder.writer(), record, why),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
