//! What each daemon says of itself to the others: a row that it writes anew every few seconds.
//!
//! It goes by a connection for reading, so that neither the thread that writes records nor this waits for the other,
//! and a daemon whose commits hang says that they do. Its own commit is not waited for: what a crash takes of it is
//! said again. Moments are of the server's clock, so that daemons whose clocks differ agree on who is silent.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::following::Following;
use super::group::Incarnation;
use super::learnt::LearningDaemon;
use super::readers::DatabaseReaders;
use super::session::DatabaseSession;
use super::standing::{Standing, Standings};
use crate::store::fleet::{DaemonFigures, DaemonState, Fleet, FleetDaemon};

/// Between two words of a daemon.
const EVERY: Duration = Duration::from_secs(5);

/// One that was not heard of for so long is silent. Two words in a row may fail, or take all their time.
const SILENT: Duration = Duration::from_secs(15);

/// How long a word may take.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long its last word may take.
const LEAVE: Duration = Duration::from_secs(1);

/// How long one that was not heard of is listed, in days.
const LISTED_DAYS: i32 = 7;

/// Daemons that are listed, those that were heard of last.
const MOST_LISTED: i64 = 1000;

/// Who says how it is, and what is needed to know it.
#[derive(Debug)]
pub(super) struct DaemonStates {
    learning: LearningDaemon,
    incarnation: Incarnation,
    started: Instant,
    following: Arc<Following>,
    standing: Standing,
    readers: Arc<DatabaseReaders>,
}

impl DaemonStates {
    /// Of a daemon that starts now.
    pub(super) fn new(
        incarnation: Incarnation,
        following: Arc<Following>,
        standing: Standing,
        readers: Arc<DatabaseReaders>,
    ) -> Self {
        let learning = following.learning().clone();
        Self { learning, incarnation, started: Instant::now(), following, standing, readers }
    }

    /// How it stands now.
    pub(super) fn standings(&self) -> Standings {
        let lag = self.following.lag();
        let (behind, followed_at) = lag.map(|lag| (lag.behind, lag.at)).unzip();
        Standings { behind: behind.unwrap_or_default(), followed_at, ..self.standing.now() }
    }

    /// Says it until the task is ended. What fails is said the next time; why is said by who writes.
    pub(super) async fn go_on_saying(self: Arc<Self>) {
        let mut moments = interval(EVERY);
        moments.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            moments.tick().await;
            if let Err(fault) = self.say(false, PATIENCE).await {
                tracing::debug!(%fault, "the other daemons were not told how this one is");
            }
        }
    }

    /// Says that it ends, which is its last word.
    pub(super) fn take_leave(&self) {
        if self.standing.now().trouble.is_some() {
            return;
        }
        if let Err(fault) = self.readers.wait_for(self.say(true, LEAVE)) {
            tracing::debug!(%fault, "the other daemons were not told that this one ends");
        }
    }

    async fn say(&self, has_ended: bool, patience: Duration) -> Result<(), DatabaseFault> {
        let saying = async {
            let lent = self.readers.lend().await?;
            self.write(lent.session(), has_ended).await?;
            lent.give_back();
            Ok(())
        };
        timeout(patience, saying).await.unwrap_or(Err(DatabaseFault::Late(patience)))
    }

    async fn write(&self, session: &DatabaseSession, has_ended: bool) -> Result<(), DatabaseFault> {
        let put = "WITH unawaited AS (SELECT set_config('synchronous_commit', 'off', true))
            INSERT INTO almanac.daemon_states AS state (daemon, incarnation, version, started_at, said_at, has_ended,
                trouble, waiting, spooled_bytes, waiting_since, put_aside, behind, followed_seconds)
            SELECT $1, $2, $3, now() - make_interval(secs => $4), now(), $5,
                $6, $7, $8, now() - make_interval(secs => $9), $10, $11, $12 FROM unawaited
            ON CONFLICT (daemon) DO UPDATE SET incarnation = excluded.incarnation, version = excluded.version,
                started_at = CASE WHEN state.incarnation = excluded.incarnation
                    THEN state.started_at ELSE excluded.started_at END,
                said_at = excluded.said_at, has_ended = excluded.has_ended, trouble = excluded.trouble,
                waiting = excluded.waiting, spooled_bytes = excluded.spooled_bytes,
                waiting_since = excluded.waiting_since, put_aside = excluded.put_aside, behind = excluded.behind,
                followed_seconds = excluded.followed_seconds
            WHERE NOT (state.has_ended AND state.incarnation = excluded.incarnation)
            RETURNING clock_timestamp()";
        let figures = DaemonFigures::from(&self.standings());
        let (daemon, incarnation) = (self.learning.daemon.bytes(), self.incarnation.bytes());
        let version = env!("CARGO_PKG_VERSION");
        let waited = (figures.waiting > 0).then_some(figures.oldest.as_secs_f64());
        let values = [
            (&daemon as _, Type::BYTEA),
            (&incarnation as _, Type::BYTEA),
            (&version as _, Type::TEXT),
            (&self.started.elapsed().as_secs_f64() as _, Type::FLOAT8),
            (&has_ended as _, Type::BOOL),
            (&figures.trouble as _, Type::TEXT),
            (&(figures.waiting as i64) as _, Type::INT8),
            (&figures.spooled_bytes.cast_signed() as _, Type::INT8),
            (&waited as _, Type::FLOAT8),
            (&figures.put_aside.cast_signed() as _, Type::INT8),
            (&figures.behind.cast_signed() as _, Type::INT8),
            (&figures.followed.as_secs_f64() as _, Type::FLOAT8),
        ];
        let before = SystemTime::now();
        let rows = session.query(put, &values).await?;
        if let Some(row) = rows.first() {
            self.standing.compare_clocks(before, row.get(0), SystemTime::now());
        }
        Ok(())
    }

    /// All of them. One whose version does not say how it is was heard of when it wrote last.
    pub(super) async fn listed(&self, session: &DatabaseSession) -> Result<Fleet, DatabaseFault> {
        let query = "SELECT daemon, host, version, started_at, seen_at,
                extract(epoch FROM now() - seen_at)::float8, has_ended, trouble, waiting, spooled_bytes,
                extract(epoch FROM now() - waiting_since)::float8, put_aside, behind, followed_seconds,
                count(*) OVER ()
            FROM (
                SELECT *, coalesce(said_at, (
                    SELECT max(moved_at) FROM almanac.folds AS f JOIN almanac.writers USING (incarnation)
                    WHERE f.daemon = daemons.daemon
                )) AS seen_at
                FROM almanac.daemons LEFT JOIN almanac.daemon_states USING (daemon)
                -- What was copied, or sent by a command, learns by itself, and is no daemon.
                WHERE NOT EXISTS (SELECT 1 FROM almanac.folds AS f WHERE f.incarnation = daemons.daemon)
            ) AS heard
            WHERE seen_at > now() - make_interval(days => $1) ORDER BY seen_at DESC LIMIT $2";
        let rows = session.query(query, &[(&LISTED_DAYS as _, Type::INT4), (&MOST_LISTED as _, Type::INT8)]).await?;
        let total = rows.first().map_or(0, |row| row.get::<_, i64>(14) as usize);
        let others = rows.iter().filter(|row| row.get::<_, &[u8]>(0) != self.learning.daemon.bytes());
        let mut daemons: Vec<FleetDaemon> = others.map(heard_of).collect();
        let is_listed = daemons.len() < rows.len();
        daemons.push(self.own());
        daemons.sort_by(|a, b| a.host.cmp(&b.host).then_with(|| a.id.cmp(&b.id)));
        Ok(Fleet { daemons, total: total + usize::from(!is_listed), degraded: None })
    }

    /// The one that is asked, while nothing can be known of others.
    pub(super) fn alone(&self, why: String) -> Fleet {
        Fleet { daemons: vec![self.own()], total: 1, degraded: Some(why) }
    }

    /// The one that is asked, as it is now.
    fn own(&self) -> FleetDaemon {
        let now = SystemTime::now();
        FleetDaemon {
            id: self.learning.daemon.to_hex(),
            host: self.learning.host.clone(),
            is_self: true,
            state: DaemonState::Alive,
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            started_at: Some(now - self.started.elapsed()),
            seen_at: now,
            unseen: Duration::ZERO,
            figures: Some((&self.standings()).into()),
        }
    }
}

/// Another daemon, by its row.
fn heard_of(row: &Row) -> FleetDaemon {
    let version: Option<String> = row.get(2);
    let unseen = seconds(row.get(5));
    let state = match row.get(6) {
        None => DaemonState::Unknown,
        Some(true) => DaemonState::Stopped,
        Some(false) if unseen < SILENT => DaemonState::Alive,
        Some(false) => DaemonState::Silent,
    };
    FleetDaemon {
        id: hex::encode(row.get::<_, &[u8]>(0)),
        host: row.get(1),
        is_self: false,
        state,
        figures: version.is_some().then(|| figures(row)),
        version,
        started_at: row.get(3),
        seen_at: row.get(4),
        unseen,
    }
}

fn figures(row: &Row) -> DaemonFigures {
    DaemonFigures {
        trouble: row.get(7),
        waiting: row.get::<_, i64>(8) as usize,
        spooled_bytes: row.get::<_, i64>(9).cast_unsigned(),
        oldest: row.get::<_, Option<f64>>(10).map(seconds).unwrap_or_default(),
        put_aside: row.get::<_, i64>(11).cast_unsigned(),
        behind: row.get::<_, i64>(12).cast_unsigned(),
        followed: seconds(row.get(13)),
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Forgets those that are not listed any more.
pub(super) async fn prune(session: &DatabaseSession) -> Result<(), DatabaseFault> {
    let old = "DELETE FROM almanac.daemon_states WHERE said_at <= now() - make_interval(days => $1)";
    session.query(old, &[(&LISTED_DAYS as _, Type::INT4)]).await.map(drop)
}

#[cfg(test)]
mod tests;
