//! Purges, of all daemons and this one, as this one follows them: what it has forgotten of what went, and what it is to
//! learn anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::following::beyond;
use super::group::Incarnation;
use super::notes;
use super::session::{DatabaseSession, StatementValue};
use super::unfollowed::PurgesFollowed;
use crate::store::{ChoicesLeft, FollowedPurge, ForgottenTexts};

/// What is added to a daemon's age for the purges that its history does not show: clocks differ.
const MARGIN: Duration = Duration::from_secs(60);

/// What this daemon has of purges.
#[derive(Debug)]
pub(super) struct Purges {
    own: Incarnation,
    began: Instant,
    /// Those whose texts are forgotten here.
    forgotten: ArcSwap<PurgesFollowed>,
    reached: Mutex<PurgesReached>,
    /// Steps of own purges.
    own_steps: AtomicU64,
    /// Tenants that were taught what is not written, which no purge finds.
    to_learn_anew: Mutex<BTreeSet<String>>,
}

/// How far purges are read.
#[derive(Debug, Clone, Default)]
pub(super) struct PurgesReached {
    followed: PurgesFollowed,
    /// Of own ones, by their revision.
    own: i64,
    own_steps: u64,
    /// Those since this daemon began that its history does not show.
    since_start: Vec<PurgeRow>,
    learnt_anew: BTreeSet<String>,
}

/// One as it is read.
#[derive(Debug, Clone)]
struct PurgeRow {
    tenant: String,
    stamp: i64,
    sessions: Vec<String>,
    has_choices: bool,
    texts: Arc<ForgottenTexts>,
    /// Of an own one.
    revision: Option<i64>,
}

/// In the order of [`PurgeRow::of`].
const COLUMNS: &str = "purges.tenant, stamp, sessions, has_choices, texts";

impl PurgeRow {
    fn of(row: &Row) -> Self {
        let texts = row.get::<_, Option<&[u8]>>(4).map(ForgottenTexts::of_bytes).unwrap_or_default();
        let (tenant, stamp, sessions, has_choices) = (row.get(0), row.get(1), row.get(2), row.get(3));
        Self { tenant, stamp, sessions, has_choices, texts: texts.into(), revision: None }
    }
}

impl Purges {
    pub(super) fn new(own: Incarnation) -> Self {
        Self {
            own,
            began: Instant::now(),
            forgotten: ArcSwap::default(),
            reached: Mutex::default(),
            own_steps: AtomicU64::default(),
            to_learn_anew: Mutex::default(),
        }
    }

    /// Begins with what a history has that is read in the same transaction.
    pub(super) async fn begin(&self, session: &DatabaseSession) -> Result<(), DatabaseFault> {
        let mut followed = PurgesFollowed::default();
        let age = (self.began.elapsed() + MARGIN).as_secs_f64();
        let before = "SELECT tenant, max(stamp) FROM almanac.purges
            WHERE stamp < (extract(epoch FROM now()) - $1) * 1000000 GROUP BY tenant";
        for row in session.query(before, &[(&age as _, Type::FLOAT8)]).await? {
            followed.insert(row.get(0), row.get(1));
        }
        let since = format!(
            "SELECT {COLUMNS} FROM almanac.purges
             WHERE stamp >= (extract(epoch FROM now()) - $1) * 1000000 AND writer <> $2 ORDER BY stamp"
        );
        let values = [(&age as _, Type::FLOAT8), (&self.own.bytes() as _, Type::BYTEA)];
        let since = session.query(&since, &values).await?;
        // Where sessions stand is in the history; what tenants learnt before it was read is not.
        let since_start = since.iter().map(|row| PurgeRow { sessions: Vec::new(), ..PurgeRow::of(row) });
        let since_start: Vec<PurgeRow> = since_start.collect();
        self.learn_anew(since_start.iter().map(|purge| purge.tenant.clone()));
        self.forgotten.store(Arc::new(followed.clone()));
        *self.reached.lock() = PurgesReached { followed, since_start, ..PurgesReached::default() };
        Ok(())
    }

    /// Is there anything to be followed, also if no other daemon wrote?
    pub(super) fn is_due(&self) -> bool {
        let reached = self.reached.lock();
        reached.own_steps != self.own_steps.load(Ordering::Acquire)
            || !reached.since_start.is_empty()
            || !self.to_learn_anew.lock().is_empty()
    }

    /// Steps of own purges that are in a state of the database that is read from now on.
    pub(super) fn own_steps(&self) -> u64 {
        self.own_steps.load(Ordering::Acquire)
    }

    /// Those beyond the revisions of other writers, and own ones, of one state of the database.
    pub(super) async fn read(
        &self,
        session: &DatabaseSession,
        values: &[StatementValue<'_>],
        own_steps: u64,
    ) -> Result<(Vec<FollowedPurge>, PurgesReached), DatabaseFault> {
        let PurgesReached { mut followed, mut own, since_start, .. } = self.reached.lock().clone();
        let others = format!("SELECT {COLUMNS} {} ORDER BY stamp", beyond("purges"));
        let mut rows = since_start;
        rows.extend(session.query(&others, values).await?.iter().map(PurgeRow::of));
        let of_own = format!(
            "SELECT {COLUMNS}, revision FROM almanac.purges WHERE writer = $1 AND revision > $2 ORDER BY revision"
        );
        let values = [(&self.own.bytes() as _, Type::BYTEA), (&own as _, Type::INT8)];
        for row in session.query(&of_own, &values).await? {
            // Whoever purges forgets sessions and choices itself, when it is done.
            let purge = PurgeRow { sessions: Vec::new(), has_choices: false, ..PurgeRow::of(&row) };
            rows.push(PurgeRow { revision: Some(row.get(5)), ..purge });
        }
        let learnt_anew = self.to_learn_anew.lock().clone();
        // With whether all are left; once for each tenant.
        let mut relearnt: BTreeMap<String, bool> = learnt_anew.iter().map(|tenant| (tenant.clone(), true)).collect();
        relearnt.extend(rows.iter().filter(|row| row.has_choices).map(|row| (row.tenant.clone(), false)));
        let mut purges = Vec::with_capacity(rows.len());
        for PurgeRow { tenant, stamp, sessions, texts, revision, .. } in rows {
            followed.insert(&tenant, stamp);
            own = own.max(revision.unwrap_or_default());
            purges.push(FollowedPurge { tenant, sessions, texts, choices: None });
        }
        for (tenant, are_all) in relearnt {
            let choices = Some(ChoicesLeft { choices: notes::choices_of(session, Some(&tenant)).await?, are_all });
            purges.push(FollowedPurge { tenant, sessions: Vec::new(), texts: Arc::default(), choices });
        }
        Ok((purges, PurgesReached { followed, own, own_steps, since_start: Vec::new(), learnt_anew }))
    }

    /// What was read is folded now.
    pub(super) fn reached(&self, reached: PurgesReached) {
        // Whatever was not written meanwhile was learnt before these are learnt anew.
        self.to_learn_anew.lock().retain(|tenant| !reached.learnt_anew.contains(tenant));
        *self.reached.lock() = reached;
    }

    /// What was folded is forgotten by all who may note it.
    pub(super) fn has_forgotten(&self) {
        self.forgotten.store(Arc::new(self.reached.lock().followed.clone()));
    }

    /// What whoever notes something now has forgotten.
    pub(super) fn forgotten(&self) -> PurgesFollowed {
        PurgesFollowed::clone(&self.forgotten.load())
    }

    /// A step of an own purge was done.
    pub(super) fn has_purged(&self) {
        self.own_steps.fetch_add(1, Ordering::AcqRel);
    }

    /// What these tenants chose is read back with what is followed next.
    pub(super) fn learn_anew(&self, tenants: impl IntoIterator<Item = String>) {
        self.to_learn_anew.lock().extend(tenants);
    }
}
