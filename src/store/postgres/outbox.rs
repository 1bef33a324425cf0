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
use super::group::{Incarnation, Numbered};
use super::server_trouble::ServerTrouble;
use super::session::DatabaseSession;
use super::spool::{LeftSpool, Spool, SpoolError};
use super::standing::Standings;
use crate::strict::Word;
use crate::timing::Execution;

/// Records of one group; more would make the first of them wait for the last.
pub(super) const MAX_GROUP: usize = 4096;

/// Records that waited and are sent as one: who has something to write meanwhile waits for no more of them.
const SENT_AT_ONCE: usize = 1024;

/// What was sent of what waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) records: usize,
    /// Those of this start that are not stored: they had been told before, or are put aside.
    pub(super) lacking: usize,
    /// Is it all that waited?
    pub(super) is_all: bool,
}

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
    /// Up to which number records of this start that the server refuses are put aside.
    aside_through: i64,
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
            aside_through: 0,
            has_lacked: false,
            is_looked_after: false,
        })
    }

    /// Records that only this machine has, as far as is known.
    pub fn waiting(&self) -> usize {
        self.spool.waiting().len() + self.left.iter().map(|left| left.waiting().len()).sum::<usize>()
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
            let patience = self.settings.commit_within;
            if !self.forward(patience, patience / 2).await?.is_all {
                return Err(behind_others().into());
            }
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
        let (patience, begun) = (self.settings.commit_within, Instant::now());
        let outcome = match self.forward_until(first, patience, patience / 2).await? {
            Ok(sent) if sent.is_all => {
                let rest = patience.saturating_sub(begun.elapsed()).max(patience / 2);
                self.commit_all(sizes, kept, rest).await
            }
            // The server is there, and what it has yet to take is more than may be waited for.
            Ok(_) => return Ok(Err(behind_others())),
            Err(fault) => Err(fault),
        };
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

    /// Sends what waits, for at most `patience` for each group, and none after `budget` once one is sent.
    ///
    /// # Errors
    /// If the server does not take it.
    pub(super) async fn forward(&mut self, patience: Duration, budget: Duration) -> Result<Sent, OutboxError> {
        let sent = self.forward_until(i64::MAX, patience, budget).await?;
        match &sent {
            Ok(sent) if !sent.is_all => {}
            sent => self.trouble = sent.as_ref().err().map(ServerTrouble::from),
        }
        Ok(sent?)
    }

    /// The same for what earlier starts left.
    ///
    /// # Errors
    /// If the server does not take it.
    pub(super) async fn forward_left(&mut self, patience: Duration, budget: Duration) -> Result<Sent, OutboxError> {
        Ok(self.forward_until(0, patience, budget).await??)
    }

    /// Sends what waits before the number `end` of this start's.
    async fn forward_until(
        &mut self,
        end: i64,
        patience: Duration,
        budget: Duration,
    ) -> Result<Result<Sent, DatabaseFault>, SpoolError> {
        let (begun, mut sent) = (Instant::now(), Sent::default());
        loop {
            self.remove_sent()?;
            sent.is_all = self.left.is_empty() && self.spool.waiting().first().is_none_or(|(number, _)| *number >= end);
            if sent.is_all {
                self.forwarder.write_as(self.spool.writer());
            }
            if sent.is_all || sent.records > 0 && begun.elapsed() >= budget {
                return Ok(Ok(sent));
            }
            if let Err(fault) = self.forward_group(end, patience, &mut sent).await? {
                return Ok(Err(fault));
            }
        }
    }

    /// What earlier starts left and the server has needs no files any more.
    fn remove_sent(&mut self) -> Result<(), SpoolError> {
        while self.left.front().is_some_and(|left| left.waiting().is_empty())
            && let Some(left) = self.left.pop_front()
        {
            self.spool.sent_left(left.bytes);
            left.remove()?;
        }
        Ok(())
    }

    /// Sends the first group of what waits. What the server refuses is put aside, since it has been acknowledged.
    async fn forward_group(
        &mut self,
        end: i64,
        patience: Duration,
        sent: &mut Sent,
    ) -> Result<Result<(), DatabaseFault>, SpoolError> {
        let Self { spool, left, put_aside, aside_through, has_lacked, .. } = self;
        let own = spool.waiting();
        let due = &own[..own.partition_point(|(number, _)| *number < end)];
        let left = left.front();
        let (writer, waiting) = left.map_or((spool.writer(), due), |left| (left.writer, left.waiting()));
        let group = &waiting[..waiting.len().min(SENT_AT_ONCE)];
        let refuse = |record: &Numbered, why: &DatabaseFault| {
            let is_new = match left {
                Some(left) => left.put_aside(record, why)?,
                None if record.0 <= *aside_through => false,
                None => {
                    spool.put_aside(writer, record, why)?;
                    (*aside_through, *has_lacked) = (record.0, true);
                    true
                }
            };
            if is_new {
                tracing::error!(number = record.0, %why, "a record that was acknowledged is put aside");
                *put_aside += 1;
            }
            Ok::<(), OutboxError>(())
        };
        self.forwarder.write_as(writer);
        let forwarded = match self.forwarder.forward_but(group, patience, refuse).await {
            Ok(forwarded) => forwarded,
            Err(OutboxError::Database(fault)) => return Ok(Err(fault)),
            Err(OutboxError::Spool(error)) => return Err(error),
        };
        let (count, refused) = (group.len(), forwarded.refused.len());
        self.sent += (count - refused) as u64;
        sent.records += count;
        if let Some(left) = self.left.front_mut() {
            left.done(count);
        } else {
            sent.lacking += forwarded.told.len() + refused;
            self.has_lacked |= sent.lacking > 0;
            self.spool.done(count);
        }
        Ok(Ok(()))
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
        let left = self.left.iter().filter(|left| !left.waiting().is_empty()).map(|left| left.waited).max();
        Standings {
            trouble: self.trouble().map(str::to_owned),
            is_refusing: self.settings.when_unreachable == WhenUnreachable::Refuse,
            waiting: self.waiting(),
            spooled_bytes: self.spool.bytes(),
            spool_max: self.settings.spool_max,
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

/// The server takes records, and those that waited go first.
pub(super) fn behind_others() -> DatabaseFault {
    DatabaseFault::Behind("it is sent those first that waited longer".to_owned())
}

#[cfg(test)]
mod tests;
