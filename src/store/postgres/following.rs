//! What other daemons wrote, as they write it.
//!
//! Rows of several writers become visible out of any order that they could be numbered in; those of one writer do not,
//! because each of its transactions moves its row in `writers`, which the next one waits for. So there is a cursor for
//! each writer, and no transaction of others delays or hides anything. Notifications would make all commits of the
//! server wait for one lock; so the small table of writers is looked at now and then, and more only if one moved.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::group::Incarnation;
use super::learnt::{self, LearningDaemon};
use super::notes;
use super::other_hosts::OtherHosts;
use super::session::{DatabaseSession, StatementValue};
use super::shared_counts::SharedCounts;
use super::trails::{SharedTrails, WrittenTrail};
use super::unfollowed::PurgesFollowed;
use crate::store::{FleetKey, Followed, FollowedPurge, ForgottenTexts, SessionCall};
use crate::timing::KeyCount;

/// How long before its history is read a daemon may have noted something, beside its own age: clocks differ.
const MARGIN: Duration = Duration::from_secs(60);

/// Calls of one writer that are read at once.
const AT_ONCE: i64 = 5_000;

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
    purges: PurgesFollowed,
    /// Purges since this daemon began that its history does not show.
    since_start: Vec<(i64, FollowedPurge)>,
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
    began: Instant,
    /// Those whose texts are forgotten here.
    purges: ArcSwap<PurgesFollowed>,
    /// Tenants that were taught what is not written, since it was purged meanwhile.
    to_learn_anew: Mutex<BTreeSet<String>>,
    lag: ArcSwap<Option<FollowingLag>>,
}

impl Following {
    pub(super) fn new(own: Incarnation, learning: LearningDaemon) -> Self {
        Self {
            own,
            learning,
            trails: SharedTrails::default(),
            counts: SharedCounts::default(),
            other_hosts: OtherHosts::default(),
            cursors: Mutex::default(),
            began: Instant::now(),
            purges: ArcSwap::default(),
            to_learn_anew: Mutex::default(),
            lag: ArcSwap::default(),
        }
    }

    pub(super) fn trails(&self) -> &SharedTrails {
        &self.trails
    }

    pub(super) fn counts(&self) -> &SharedCounts {
        &self.counts
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
        self.counts.begin(session, &self.learning).await?;
        let fleet = self.other_hosts.begin(session, &self.learning).await?;
        let (purges, since_start) = self.begin_purges(session).await?;
        self.purges.store(Arc::new(purges.clone()));
        let writers = writers.into_iter().collect();
        *self.cursors.lock() = Some(Cursors { writers, folded, purges, since_start });
        self.say(0);
        Ok(fleet)
    }

    /// Those that were followed before anything is noted here, and those that were not.
    async fn begin_purges(
        &self,
        session: &DatabaseSession,
    ) -> Result<(PurgesFollowed, Vec<(i64, FollowedPurge)>), DatabaseFault> {
        let mut purges = PurgesFollowed::default();
        let age = (self.began.elapsed() + MARGIN).as_secs_f64();
        let before = "SELECT tenant, max(stamp) FROM almanac.purges
            WHERE stamp < (extract(epoch FROM now()) - $1) * 1000000 GROUP BY tenant";
        for row in session.query(before, &[(&age as _, Type::FLOAT8)]).await? {
            purges.insert(row.get(0), row.get(1));
        }
        let since = "SELECT tenant, stamp, texts FROM almanac.purges
            WHERE stamp >= (extract(epoch FROM now()) - $1) * 1000000 AND writer <> $2 ORDER BY stamp";
        let values = [(&age as _, Type::FLOAT8), (&self.own.bytes() as _, Type::BYTEA)];
        let since = session.query(since, &values).await?;
        let purge = |row: &Row| {
            // What is left of sessions and choices is in the history.
            let purge = FollowedPurge { tenant: row.get(0), sessions: Vec::new(), texts: texts(row, 2), choices: None };
            (row.get(1), purge)
        };
        Ok((purges, since.iter().map(purge).collect()))
    }

    /// What whoever notes something now has forgotten.
    pub(super) fn purges_followed(&self) -> PurgesFollowed {
        PurgesFollowed::clone(&self.purges.load())
    }

    /// What these tenants chose is read back with what is followed next.
    pub(super) fn learn_anew(&self, tenants: BTreeSet<String>) {
        self.to_learn_anew.lock().extend(tenants);
    }

    fn say(&self, behind: u64) {
        let before = self.lag().map(|lag| lag.at);
        let at = before.filter(|_| behind > 0).unwrap_or_else(Instant::now);
        self.lag.store(Arc::new(Some(FollowingLag { behind, at })));
    }

    /// What was written since. What could not be read is read the next time; what was read the last time is folded by
    /// now.
    pub(super) async fn follow(&self, session: &DatabaseSession) -> Result<Followed, DatabaseFault> {
        let known = self.cursors.lock().as_ref().map(|cursors| {
            self.purges.store(Arc::new(cursors.purges.clone()));
            (cursors.writers.clone(), cursors.since_start.is_empty())
        });
        let Some((known, has_all)) = known else { return Ok(Followed::default()) };
        let behind = self.moved(writers(session).await?, &known).iter().map(Moved::rows).sum();
        self.say(behind);
        if behind == 0 && has_all && self.to_learn_anew.lock().is_empty() {
            return Ok(Followed { transitions: self.trails.hear(Vec::new()), ..Followed::default() });
        }
        session.begin_snapshot().await?;
        let anew = std::mem::take(&mut *self.to_learn_anew.lock());
        let read = self.read(session, &anew).await;
        let ended = session.end(false).await;
        let read = ended.and(read).inspect_err(|_| self.learn_anew(anew));
        let (followed, reached) = read?;
        if let Some(cursors) = &mut *self.cursors.lock() {
            cursors.writers.extend(reached.writers);
            cursors.folded.extend(reached.folded);
            cursors.purges = reached.purges;
            cursors.since_start.clear();
        }
        if !followed.is_partial {
            self.say(0);
        }
        Ok(followed)
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
        anew: &BTreeSet<String>,
    ) -> Result<(Followed, Cursors), DatabaseFault> {
        let Some(Cursors { writers: known, folded, mut purges, since_start }) = self.cursors.lock().clone() else {
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
        for (stamp, purge) in since_start.into_iter().chain(read_purges(session, &values).await?) {
            purges.insert(&purge.tenant, stamp);
            followed.purges.push(purge);
        }
        read_anew(session, anew, &mut followed).await?;
        read_notes(session, &values, &mut followed).await?;
        let trails = format!("SELECT daemon, before, last, followers, tick {} ORDER BY tick", beyond("trails"));
        let trails: Vec<WrittenTrail> = session.query(&trails, &values).await?.iter().map(WrittenTrail::of).collect();
        followed.transitions = self.trails.hear(trails);
        let writers = moved.into_iter().map(|moved| (moved.writer, moved.to)).collect();
        Ok((followed, Cursors { writers, folded: durations.folded, purges, since_start: Vec::new() }))
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
    let query = "SELECT tenant, session, tool, sequence FROM almanac.executions
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
        let call = |row: &Row| SessionCall { tenant: row.get(0), session: row.get(1), tool: row.get(2) };
        followed.calls.extend(rows.iter().map(call));
        if let Some(last) = rows.last().filter(|_| rows.len() as i64 == AT_ONCE) {
            moved.to.through = last.get(3);
            followed.is_partial = true;
        }
    }
    Ok(())
}

/// With their stamps.
async fn read_purges(
    session: &DatabaseSession,
    values: &[StatementValue<'_>],
) -> Result<Vec<(i64, FollowedPurge)>, DatabaseFault> {
    let query = format!("SELECT tenant, sessions, has_choices, texts, stamp {} ORDER BY stamp", beyond("purges"));
    let (mut purges, mut relearnt) = (Vec::new(), HashSet::new());
    for row in session.query(&query, values).await? {
        let tenant: String = row.get(0);
        let has_choices = row.get::<_, bool>(2) && relearnt.insert(tenant.clone());
        let choices = if has_choices { Some(notes::choices_of(session, Some(&tenant)).await?) } else { None };
        purges.push((row.get(4), FollowedPurge { tenant, sessions: row.get(1), texts: texts(&row, 3), choices }));
    }
    Ok(purges)
}

/// The choices of tenants that are to be learnt anew, unless a purge says them.
async fn read_anew(
    session: &DatabaseSession,
    tenants: &BTreeSet<String>,
    followed: &mut Followed,
) -> Result<(), DatabaseFault> {
    for tenant in tenants {
        if !followed.purges.iter().any(|purge| purge.tenant == *tenant && purge.choices.is_some()) {
            let choices = Some(notes::choices_of(session, Some(tenant)).await?);
            let (tenant, sessions, texts) = (tenant.clone(), Vec::new(), Arc::default());
            followed.purges.push(FollowedPurge { tenant, sessions, texts, choices });
        }
    }
    Ok(())
}

fn texts(row: &Row, column: usize) -> Arc<ForgottenTexts> {
    row.get::<_, Option<&[u8]>>(column).map(ForgottenTexts::of_bytes).unwrap_or_default().into()
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
