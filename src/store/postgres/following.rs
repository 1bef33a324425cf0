//! What other daemons wrote, as they write it.
//!
//! Rows of several writers become visible out of any order that they could be numbered in; those of one writer do not,
//! because each of its transactions moves its row in `writers`, which the next one waits for. So there is a cursor for
//! each writer, and no transaction of others delays or hides anything. Notifications would make all commits of the
//! server wait for one lock; so the small table of writers is looked at now and then, and more only if one moved.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::group::Incarnation;
use super::learnt::{self, LearningDaemon};
use super::moved_sessions::MovedSessions;
use super::notes;
use super::other_hosts::OtherHosts;
use super::purges::{Purges, PurgesReached};
use super::session::{DatabaseSession, StatementValue};
use super::shared_counts::SharedCounts;
use super::trails::{SharedTrails, WrittenTrail};
use crate::store::{FleetKey, Followed, Relearnt, ReplayLimits, SessionCall};
use crate::timing::KeyCount;

/// Calls of one writer that are read at once.
const AT_ONCE: i64 = 5_000;

/// How long it may take to read anew what is known of calls; what others do waits for it.
const READ_ANEW: Duration = Duration::from_secs(5);

/// How far a writer is followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reached {
    /// Its records.
    through: i64,
    /// Its other transactions.
    revision: i64,
}

/// How far all are followed; who writes here is not.
#[derive(Debug, Clone, Default)]
struct Cursors {
    writers: HashMap<Vec<u8>, Reached>,
    /// Which of a daemon's records its counts were read with, of daemons on this host.
    folded: HashMap<Vec<u8>, i64>,
}

/// How far behind following is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FollowingLag {
    /// Records and other transactions that are not followed, when it was looked last.
    pub(super) behind: u64,
    /// When there was nothing more to follow.
    pub(super) at: Instant,
}

/// What this daemon has of what others wrote.
#[derive(Debug)]
pub(super) struct Following {
    own: Incarnation,
    learning: LearningDaemon,
    trails: SharedTrails,
    counts: SharedCounts,
    other_hosts: OtherHosts,
    /// Nothing until the history is read.
    cursors: Mutex<Option<Cursors>>,
    purges: Purges,
    moved_sessions: MovedSessions,
    lag: ArcSwap<Option<FollowingLag>>,
    relearning: AtomicU8,
}

/// Is what this daemon learnt to be read anew? Whoever learns is told first, and notes what comes from then on.
const SETTLED: u8 = 0;
const WANTED: u8 = 1;
const TOLD: u8 = 2;

impl Following {
    pub(super) fn new(own: Incarnation, learning: LearningDaemon) -> Self {
        Self {
            own,
            learning,
            trails: SharedTrails::default(),
            counts: SharedCounts::default(),
            other_hosts: OtherHosts::default(),
            cursors: Mutex::default(),
            purges: Purges::new(own),
            moved_sessions: MovedSessions::default(),
            lag: ArcSwap::default(),
            relearning: AtomicU8::new(SETTLED),
        }
    }

    pub(super) fn trails(&self) -> &SharedTrails {
        &self.trails
    }

    pub(super) fn counts(&self) -> &SharedCounts {
        &self.counts
    }

    pub(super) fn purges(&self) -> &Purges {
        &self.purges
    }

    pub(super) fn moved_sessions(&self) -> &MovedSessions {
        &self.moved_sessions
    }

    pub(super) fn learning(&self) -> &LearningDaemon {
        &self.learning
    }

    /// Nothing before the history is read.
    pub(super) fn lag(&self) -> Option<FollowingLag> {
        **self.lag.load()
    }

    /// Begins with what a history has that is read in the same transaction. Returns what other hosts saw.
    pub(super) async fn begin(&self, session: &DatabaseSession) -> Result<Vec<FleetKey>, DatabaseFault> {
        let writers = writers(session).await?;
        let folded = "SELECT daemon, through FROM almanac.daemons WHERE host = $1";
        let rows = session.query(folded, &[(&self.learning.host as _, Type::TEXT)]).await?;
        let folded = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        self.counts.begin(session, &self.learning, false).await?;
        let fleet = self.other_hosts.begin(session, &self.learning).await?;
        self.purges.begin(session).await?;
        *self.cursors.lock() = Some(Cursors { writers: writers.into_iter().collect(), folded });
        self.say(0);
        Ok(fleet)
    }

    /// Calls were counted that are another daemon's.
    pub(super) fn learn_again(&self) {
        self.relearning.store(WANTED, Ordering::SeqCst);
    }

    /// What was read anew is learnt, unless more is to be by now.
    pub(super) fn has_relearnt(&self) {
        let _ = self.relearning.compare_exchange(TOLD, SETTLED, Ordering::SeqCst, Ordering::SeqCst);
    }

    fn say(&self, behind: u64) {
        let before = self.lag().map(|lag| lag.at);
        let at = before.filter(|_| behind > 0).unwrap_or_else(Instant::now);
        self.lag.store(Arc::new(Some(FollowingLag { behind, at })));
    }

    /// What was written since. What could not be read is read the next time.
    pub(super) async fn follow(&self, session: &DatabaseSession) -> Result<Followed, DatabaseFault> {
        let known = self.cursors.lock().as_ref().map(|cursors| cursors.writers.clone());
        let Some(known) = known else { return Ok(Followed::default()) };
        let behind = self.moved(writers(session).await?, &known).iter().map(Moved::rows).sum();
        self.say(behind);
        let relearning = self.relearning.load(Ordering::SeqCst);
        if behind == 0 && !self.purges.is_due() && relearning == SETTLED {
            return Ok(Followed { transitions: self.trails.hear(Vec::new()), ..Followed::default() });
        }
        let own_steps = self.purges.own_steps();
        session.begin_snapshot().await?;
        let mut read = self.read(session, own_steps).await;
        if let Ok((followed, ..)) = &mut read
            && relearning == TOLD
            && !followed.is_partial
        {
            match timeout(READ_ANEW, self.read_anew(session)).await.unwrap_or(Err(DatabaseFault::Late(READ_ANEW))) {
                Ok(relearnt) => followed.relearnt = Some(relearnt),
                Err(fault) => {
                    // It would take as long the next time, and what others do is to be followed all the same.
                    if matches!(fault, DatabaseFault::Late(_) | DatabaseFault::GivenUp(_)) {
                        self.has_relearnt();
                        tracing::warn!(%fault, "calls that another daemon was told count here, too, until a restart");
                    }
                    read = Err(fault);
                }
            }
        }
        session.end(false).await?;
        let (mut followed, reached, purges) = read?;
        followed.is_relearning = relearning != SETTLED;
        if relearning == WANTED {
            let _ = self.relearning.compare_exchange(WANTED, TOLD, Ordering::SeqCst, Ordering::SeqCst);
        }
        if let Some(cursors) = &mut *self.cursors.lock() {
            cursors.writers.extend(reached.writers);
            cursors.folded.extend(reached.folded);
        }
        self.purges.reached(purges);
        self.moved_sessions.hear(&followed.calls);
        if !followed.is_partial {
            self.say(0);
        }
        Ok(followed)
    }

    /// What is known of the calls of all, in the same state of the database.
    async fn read_anew(&self, session: &DatabaseSession) -> Result<Relearnt, DatabaseFault> {
        let query = "SELECT folds.through, writers.through FROM almanac.folds JOIN almanac.writers USING (incarnation)
            WHERE incarnation = $1";
        let row = session.query_one(query, &[(&self.own.bytes(), Type::BYTEA)]).await?;
        let limits = ReplayLimits::default();
        self.counts.begin(session, &self.learning, true).await?;
        let (counts, executions) = learnt::durations(session, &self.learning.host, limits).await?;
        let calls = learnt::session_calls(session, limits.of_sessions).await?;
        Ok(Relearnt { executions, counts, calls, folded: row.get(0), through: row.get(1) })
    }

    fn moved(&self, now: Vec<(Vec<u8>, Reached)>, known: &HashMap<Vec<u8>, Reached>) -> Vec<Moved> {
        let others = now.into_iter().filter(|(writer, _)| writer != self.own.bytes());
        others
            .map(|(writer, to)| Moved { from: known.get(&writer).copied().unwrap_or_default(), writer, to })
            .filter(|moved| moved.from != moved.to)
            .collect()
    }

    /// All that is beyond the cursors, of one state of the database, and where they move once nothing can fail.
    async fn read(
        &self,
        session: &DatabaseSession,
        own_steps: u64,
    ) -> Result<(Followed, Cursors, PurgesReached), DatabaseFault> {
        let Some(Cursors { writers: known, folded }) = self.cursors.lock().clone() else {
            return Ok(Default::default());
        };
        let mut moved = self.moved(writers(session).await?, &known);
        let mut followed = Followed::default();
        read_calls(session, &mut moved, &mut followed).await?;
        let values = Beyond::of(&moved);
        let values = values.values();
        let durations = learnt::durations_beyond(session, &self.learning, &values, &folded).await?;
        followed.executions = durations.executions;
        let counted = durations.counts.into_iter().map(|(key, others)| {
            let samples = self.counts.count_others(key.clone(), others);
            let mode = Some(key.mode).filter(|mode| !mode.is_empty());
            KeyCount { tool: key.tool, mode, failed: key.failed, samples }
        });
        followed.counts = counted.collect();
        followed.fleet = self.other_hosts.follow(session, &self.learning, &values).await?;
        let (purges, purges_reached) = self.purges.read(session, &values, own_steps).await?;
        followed.purges = purges;
        read_notes(session, &values, &mut followed).await?;
        let trails = format!("SELECT daemon, before, last, followers, tick {} ORDER BY tick", beyond("trails"));
        let trails: Vec<WrittenTrail> = session.query(&trails, &values).await?.iter().map(WrittenTrail::of).collect();
        followed.transitions = self.trails.hear(trails);
        let writers = moved.into_iter().map(|moved| (moved.writer, moved.to)).collect();
        Ok((followed, Cursors { writers, folded: durations.folded }, purges_reached))
    }
}

/// A writer that wrote something.
#[derive(Debug)]
struct Moved {
    writer: Vec<u8>,
    from: Reached,
    to: Reached,
}

impl Moved {
    fn rows(&self) -> u64 {
        let rows = |from: i64, to: i64| to.saturating_sub(from).max(0).cast_unsigned();
        rows(self.from.through, self.to.through) + rows(self.from.revision, self.to.revision)
    }
}

/// Writers and their revisions, behind which rows are read.
struct Beyond<'m> {
    writers: Vec<&'m [u8]>,
    revisions: Vec<i64>,
}

impl<'m> Beyond<'m> {
    fn of(moved: &'m [Moved]) -> Self {
        let moved = moved.iter().filter(|moved| moved.from.revision != moved.to.revision);
        let (writers, revisions) = moved.map(|moved| (moved.writer.as_slice(), moved.from.revision)).unzip();
        Self { writers, revisions }
    }

    fn values(&self) -> [StatementValue<'_>; 2] {
        [(&self.writers, Type::BYTEA_ARRAY), (&self.revisions, Type::INT8_ARRAY)]
    }
}

/// The rows of a table that writers wrote behind their revisions, by its index for each of them.
pub(super) fn beyond(table: &str) -> String {
    format!(
        "FROM unnest($1::bytea[], $2::int8[]) AS followed (writer, beyond) CROSS JOIN LATERAL (
             SELECT * FROM almanac.{table} AS t
             WHERE t.writer = followed.writer AND t.revision > followed.beyond OFFSET 0
         ) AS {table}"
    )
}

async fn writers(session: &DatabaseSession) -> Result<Vec<(Vec<u8>, Reached)>, DatabaseFault> {
    let rows = session.query("SELECT incarnation, through, revision FROM almanac.writers", &[]).await?;
    let writer = |row: &Row| (row.get(0), Reached { through: row.get(1), revision: row.get(2) });
    Ok(rows.iter().map(writer).collect())
}

/// The calls of sessions. A writer that has more than is read at once is followed to the last of them.
async fn read_calls(
    session: &DatabaseSession,
    moved: &mut [Moved],
    followed: &mut Followed,
) -> Result<(), DatabaseFault> {
    let query = "SELECT tenant, session, tool, at_ms, sequence FROM almanac.executions
        WHERE incarnation = $1 AND sequence > $2 AND sequence <= $3 AND session IS NOT NULL
        ORDER BY sequence LIMIT $4";
    for moved in moved.iter_mut().filter(|moved| moved.from.through < moved.to.through) {
        let values = [
            (&moved.writer as _, Type::BYTEA),
            (&moved.from.through as _, Type::INT8),
            (&moved.to.through as _, Type::INT8),
            (&AT_ONCE as _, Type::INT8),
        ];
        let rows = session.query(query, &values).await?;
        let call =
            |row: &Row| SessionCall { tenant: row.get(0), session: row.get(1), tool: row.get(2), at_ms: row.get(3) };
        followed.calls.extend(rows.iter().map(call));
        if let Some(last) = rows.last().filter(|_| rows.len() as i64 == AT_ONCE) {
            moved.to.through = last.get(4);
            followed.is_partial = true;
        }
    }
    Ok(())
}

async fn read_notes(
    session: &DatabaseSession,
    values: &[StatementValue<'_>],
    followed: &mut Followed,
) -> Result<(), DatabaseFault> {
    let query = format!("SELECT tenant, session, number, state {} ORDER BY at_us", beyond("turns"));
    followed.turns = session.query(&query, values).await?.iter().map(notes::turn_of).collect();
    let query = format!(
        "SELECT tenant, tool, message, trust, adaptations.state
         {} JOIN almanac.adaptations USING (tenant) ORDER BY id",
        beyond("choices")
    );
    let purges = followed.purges.iter().filter(|purge| purge.choices.is_some());
    let relearnt: HashSet<&String> = purges.map(|purge| &purge.tenant).collect();
    let choices = session.query(&query, values).await?;
    let choices = choices.iter().map(notes::choice).filter(|choice| !relearnt.contains(&choice.tenant));
    followed.choices = choices.collect();
    Ok(())
}

#[cfg(test)]
mod tests;
