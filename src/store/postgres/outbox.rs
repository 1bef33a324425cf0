//! The way of records to the server: into the spool first, and from there, in the order of their numbers.
//!
//! While the server is away they stay on this machine, which is said; until the spool is empty, new ones stand behind
//! it. What an earlier start left goes before all.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use super::forwarder::Forwarder;
use super::group::Incarnation;
use super::server_trouble::ServerTrouble;
use super::session::DatabaseSession;
use super::spool::{LeftSpool, Spool, SpoolError};
use super::standing::Standings;
use crate::strict::Word;
use crate::timing::Execution;

/// Records of one group; more would make the first of them wait for the last.
pub(super) const MAX_GROUP: usize = 4096;

/// When whoever sends records is told that they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum Acknowledge {
    /// When this machine's journal is flushed.
    Journal,
    /// When the server has committed them.
    Database,
}

/// What becomes of records while the server is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
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

/// What became of records that belong together, of which all are kept or none.
#[derive(Debug)]
pub enum GroupKept {
    /// The server has them, but for those of these numbers, which had been told before, under their keys.
    AtDatabase { told: Vec<i64> },
    /// In this machine's journal, as was asked for.
    InJournal,
    /// In this machine's journal alone, since the database cannot be reached.
    InJournalAlone,
    /// Nowhere: the server refuses one of them for what it is.
    Refused(DatabaseFault),
}

/// Records that were taken.
#[derive(Debug)]
pub struct Taken {
    /// The number of the first; those of the others follow it.
    pub first: i64,
    /// Of each group.
    pub groups: Vec<GroupKept>,
}

/// All that is on its way to the server.
#[derive(Debug)]
pub struct Outbox {
    settings: OutboxSettings,
    spool: Spool,
    left: VecDeque<LeftSpool>,
    forwarder: Forwarder,
    /// Why the server did not take what was sent last.
    trouble: Option<ServerTrouble>,
    opened: Instant,
    /// Since when records of this start wait.
    since: Option<Instant>,
    sent: u64,
    put_aside: u64,
    /// Records were sent late that are not stored, and were counted before.
    has_lacked: bool,
    /// Somebody else looks whether the server is back.
    is_looked_after: bool,
}

impl Outbox {
    /// Begins with what earlier starts left in a directory that nobody else uses.
    pub fn open(directory: &Path, address: DatabaseAddress, settings: OutboxSettings) -> Result<Self, SpoolError> {
        let (spool, left) = Spool::open(directory, settings.spool_max)?;
        let mut forwarder = Forwarder::new(address, spool.writer());
        if settings.acknowledge == Acknowledge::Journal {
            forwarder.hasten();
        }
        Ok(Self {
            settings,
            spool,
            left: left.into(),
            forwarder,
            trouble: None,
            opened: Instant::now(),
            since: None,
            sent: 0,
            put_aside: 0,
            has_lacked: false,
            is_looked_after: false,
        })
    }

    /// Records that only this machine has, as far as is known.
    pub fn waiting(&self) -> usize {
        self.spool.waiting().len() + self.left.iter().map(|left| left.records.len()).sum::<usize>()
    }

    /// Why the server did not take what was sent last, if it did not.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.why.as_str())
    }

    /// The same, with its kind.
    pub(super) fn server_trouble(&self) -> Option<&ServerTrouble> {
        self.trouble.as_ref()
    }

    /// Why no record can be kept on this machine, which goes before all else, if so.
    pub(super) fn refusal(&self) -> Option<String> {
        self.spool.refusal()
    }

    /// Looks whether what could not be kept on this machine can be again.
    pub(super) fn prove(&mut self) {
        self.spool.prove();
    }

    /// Whose records go this way: this start's, and what earlier ones left.
    pub fn writers(&self) -> Vec<Incarnation> {
        self.left.iter().map(|left| left.writer).chain([self.spool.writer()]).collect()
    }

    /// This start's.
    pub fn writer(&self) -> Incarnation {
        self.spool.writer()
    }

    /// Takes groups of records, each as a whole or not at all, and returns when they are kept where the settings say.
    ///
    /// # Errors
    /// If none is kept, or they may be at the server although the settings refuse to keep them here.
    pub async fn send_groups(&mut self, groups: Vec<Vec<Execution>>) -> Result<Taken, OutboxError> {
        let is_first = self.waiting() == 0;
        if !is_first && self.settings.when_unreachable == WhenUnreachable::Refuse {
            // What is here was left by a start with other settings.
            self.forward(self.settings.commit_within).await?;
        }
        let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
        let first = self.spool.put(groups.into_iter().flatten().collect())?;
        if self.settings.acknowledge == Acknowledge::Journal {
            self.spool.flush()?;
            return Ok(Taken { first, groups: sizes.iter().map(|_| GroupKept::InJournal).collect() });
        }
        let mut kept = Vec::with_capacity(sizes.len());
        // Who waits behind a server that is away does not ask it again: that is done beside.
        let waited = match &self.trouble {
            Some(trouble) if !is_first || self.is_looked_after => Err(DatabaseFault::Behind(trouble.why.clone())),
            _ => self.commit_groups(first, &sizes, &mut kept).await?,
        };
        let Err(fault) = waited else { return Ok(Taken { first, groups: kept }) };
        if self.settings.when_unreachable == WhenUnreachable::Refuse {
            self.spool.give_up();
            return Err(fault.into());
        }
        self.spool.flush()?;
        kept.resize_with(sizes.len(), || GroupKept::InJournalAlone);
        Ok(Taken { first, groups: kept })
    }

    /// Sends what waits before the number `first`, then the groups from there on. Those that came to an end are `kept`.
    async fn commit_groups(
        &mut self,
        first: i64,
        sizes: &[usize],
        kept: &mut Vec<GroupKept>,
    ) -> Result<Result<(), DatabaseFault>, SpoolError> {
        let patience = self.settings.commit_within;
        let mut outcome = self.forward_until(first, patience).await?.map(drop);
        if outcome.is_ok() {
            outcome = self.commit_all(sizes, kept, patience).await;
        }
        self.trouble = outcome.as_ref().err().map(ServerTrouble::from);
        Ok(outcome)
    }

    async fn commit_all(
        &mut self,
        sizes: &[usize],
        kept: &mut Vec<GroupKept>,
        patience: Duration,
    ) -> Result<(), DatabaseFault> {
        match self.forwarder.forward_whole(self.spool.waiting(), patience).await {
            Ok(told) => {
                let mut next = self.spool.waiting().first().map_or(0, |(number, _)| *number);
                for size in sizes {
                    let end = next + *size as i64;
                    let told = told.iter().copied().filter(|number| (next..end).contains(number)).collect();
                    kept.push(GroupKept::AtDatabase { told });
                    next = end;
                }
                self.spool.done(self.spool.waiting().len());
                return Ok(());
            }
            Err(DatabaseFault::Record(_) | DatabaseFault::KeyReused) => {}
            Err(fault) => return Err(fault),
        }
        // One of them fails all; each goes by itself.
        for size in sizes {
            match self.forwarder.forward_whole(&self.spool.waiting()[..*size], patience).await {
                Ok(told) => kept.push(GroupKept::AtDatabase { told }),
                Err(fault @ (DatabaseFault::Record(_) | DatabaseFault::KeyReused)) => {
                    kept.push(GroupKept::Refused(fault));
                }
                Err(fault) => return Err(fault),
            }
            self.spool.done(*size);
        }
        Ok(())
    }

    /// Sends what waits, for at most `patience` for each group. Returns how many of these are not stored: they had been
    /// told before, or are put aside.
    ///
    /// # Errors
    /// If not all of it is sent.
    pub async fn forward(&mut self, patience: Duration) -> Result<usize, OutboxError> {
        let forwarded = self.forward_until(i64::MAX, patience).await?;
        self.trouble = forwarded.as_ref().err().map(ServerTrouble::from);
        Ok(forwarded?)
    }

    /// Sends what earlier starts left.
    ///
    /// # Errors
    /// If not all of it is sent.
    pub async fn forward_left(&mut self, patience: Duration) -> Result<(), OutboxError> {
        Ok(self.forward_until(0, patience).await?.map(drop)?)
    }

    /// Sends what waits before the number `end` of this start's. What the server refuses is put aside, since it has
    /// been acknowledged.
    async fn forward_until(
        &mut self,
        end: i64,
        patience: Duration,
    ) -> Result<Result<usize, DatabaseFault>, SpoolError> {
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
                self.put_aside += forwarded.refused.len() as u64;
                self.sent += (group.len() - forwarded.refused.len()) as u64;
            }
            if let Some(left) = self.left.pop_front() {
                self.spool.sent_left(left.bytes);
                left.remove()?;
            }
        }
        self.forwarder.write_as(self.spool.writer());
        let mut lacking = 0;
        loop {
            let due = self.spool.waiting().partition_point(|(number, _)| *number < end);
            let group = &self.spool.waiting()[..due.min(MAX_GROUP)];
            if group.is_empty() {
                return Ok(Ok(lacking));
            }
            let forwarded = match self.forwarder.forward(group, patience).await {
                Ok(forwarded) => forwarded,
                Err(fault) => return Ok(Err(fault)),
            };
            lacking += forwarded.told.len() + forwarded.refused.len();
            self.has_lacked |= lacking > 0;
            self.put_aside += forwarded.refused.len() as u64;
            self.sent += (group.len() - forwarded.refused.len()) as u64;
            for (number, why) in &forwarded.refused {
                aside(&self.spool, &self.forwarder, group, *number, why)?;
            }
            self.spool.done(group.len());
        }
    }

    /// Were records counted that are not stored, as it turned out when they were sent?
    pub(super) fn has_lacked(&self) -> bool {
        self.has_lacked
    }

    /// What is learnt is read anew.
    pub(super) fn settle(&mut self) -> bool {
        std::mem::take(&mut self.has_lacked)
    }

    /// The connection that records go by, for whatever else is to be written.
    ///
    /// # Errors
    /// If there is none within `patience`.
    pub(super) async fn session(&mut self, patience: Duration) -> Result<&mut DatabaseSession, DatabaseFault> {
        self.forwarder.session(patience).await
    }

    /// What was asked last may go on at the server: the connection is not used again.
    pub(super) fn hang_up(&mut self) {
        self.forwarder.hang_up();
    }

    /// Goes on by this connection: the server is back.
    pub(super) fn go_on_by(&mut self, session: DatabaseSession) {
        self.forwarder.adopt(session);
    }

    /// The server does not take what is sent, for this reason; who says so looks whether it is back.
    pub(super) fn is_troubled(&mut self, why: &DatabaseFault) {
        (self.trouble, self.is_looked_after) = (Some(why.into()), true);
    }

    /// How it stands.
    pub(super) fn standings(&mut self) -> Standings {
        let is_own_waiting = !self.spool.waiting().is_empty();
        self.since = is_own_waiting.then(|| self.since.unwrap_or_else(Instant::now));
        let left = self.left.iter().filter(|left| !left.records.is_empty()).map(|left| left.waited).max();
        Standings {
            trouble: self.trouble().map(str::to_owned),
            is_refusing: self.settings.when_unreachable == WhenUnreachable::Refuse,
            waiting: self.waiting(),
            spooled_bytes: self.spool.bytes(),
            since: left.map(|_| self.opened).or(self.since),
            waited_before: left.unwrap_or_default(),
            sent: self.sent,
            put_aside: self.put_aside,
            reconnects: self.reconnects(),
            ..Standings::default()
        }
    }

    /// How often a connection was opened in place of one that failed.
    pub fn reconnects(&self) -> u64 {
        self.forwarder.reconnects()
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
