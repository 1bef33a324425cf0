//! What follows from a daemon's records, as it stands in the database: folded in the records' order, written now and
//! then, and folded again from there after a kill, to the same. Daemons keep theirs apart; whoever reads adds them up.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::audit;
use super::fault::DatabaseFault;
use super::following::beyond;
use super::group::Incarnation;
use super::learnt_rows::{CountRows, TrailRows};
use super::revision::Revision;
use super::session::{DatabaseSession, StatementValue};
use super::trails::{self, WrittenTrail};
use crate::store::projection::{CountedKey, FoldedCall, Latest, Projection, WrittenBefore};
use crate::store::{ReplayLimits, SessionCall};
use crate::suggest::transitions::{Followers, MAX_PREFIXES, Prefix};
use crate::timing::{Execution, KeyCount, Observation};

/// Calls with a duration that are kept beside a key's count: so many restore the quality of its forecasts in full.
pub(super) const LATEST: usize = 50;

/// Records that are folded again at once.
const AT_ONCE: i64 = 10_000;

/// Who learns, and whose durations they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LearningDaemon {
    pub(super) daemon: Incarnation,
    pub(super) host: String,
}

/// The last calls of sessions before some records, as the database has them.
#[derive(Debug, Default)]
pub(super) struct EarlierCalls(HashMap<(String, String), Latest>);

impl WrittenBefore for EarlierCalls {
    type Error = Infallible;

    /// All counts are held.
    fn samples(&mut self, _: &CountedKey) -> Result<Option<i64>, Infallible> {
        Ok(None)
    }

    /// All states are held.
    fn followers(&mut self, _: &Prefix) -> Result<Followers, Infallible> {
        Ok(Followers::default())
    }

    fn latest(&mut self, _: i64, tenant: &str, session: &str) -> Result<Option<Latest>, Infallible> {
        Ok(self.0.remove(&(tenant.to_owned(), session.to_owned())))
    }
}

impl EarlierCalls {
    /// Of these sessions, now.
    pub(super) async fn of(session: &DatabaseSession, sessions: &[(String, String)]) -> Result<Self, DatabaseFault> {
        let sessions = sessions.iter().map(|(tenant, name)| ((tenant.as_str(), name.as_str()), i64::MAX)).collect();
        Self::before(session, &sessions).await
    }

    /// Of each of these sessions, before the record of its id: of many at once, since each question is a way there and
    /// back.
    async fn before(session: &DatabaseSession, sessions: &BTreeMap<(&str, &str), i64>) -> Result<Self, DatabaseFault> {
        if sessions.is_empty() {
            return Ok(Self::default());
        }
        let query = "SELECT asked.tenant, asked.session, called.tool
            FROM unnest($1::text[], $2::text[], $3::int8[]) AS asked (tenant, session, before)
            CROSS JOIN LATERAL (
                SELECT id, tool FROM almanac.executions AS e
                WHERE e.tenant = asked.tenant AND e.session = asked.session AND e.id < asked.before
                ORDER BY id DESC LIMIT 2
            ) AS called ORDER BY asked.tenant, asked.session, called.id DESC";
        let (tenants, names): (Vec<&str>, Vec<&str>) = sessions.keys().copied().unzip();
        let before: Vec<i64> = sessions.values().copied().collect();
        let values =
            [(&tenants as _, Type::TEXT_ARRAY), (&names as _, Type::TEXT_ARRAY), (&before as _, Type::INT8_ARRAY)];
        let mut earlier: HashMap<(String, String), Latest> = HashMap::new();
        for row in session.query(query, &values).await? {
            let tool: String = row.get(2);
            earlier
                .entry((row.get(0), row.get(1)))
                .and_modify(|latest| latest.before = Some(tool.clone()))
                .or_insert(Latest { last: tool.clone(), before: None });
        }
        Ok(Self(earlier))
    }
}

/// What a daemon learnt, and what others did beside it.
#[derive(Debug, Default)]
pub(super) struct LearntRecords {
    pub(super) projection: Projection,
    /// Calls with a duration that no row of their key has yet, with their ids.
    recent: HashMap<CountedKey, VecDeque<(i64, Execution)>>,
    /// Up to which numbers what earlier writers stored was folded again, which is not written yet.
    folded: Vec<(Vec<u8>, i64)>,
}

impl LearntRecords {
    /// Folds a record. Returns how many of its key there are with a duration.
    pub(super) fn add(&mut self, earlier: &mut EarlierCalls, execution: &Execution) -> u64 {
        let Ok(samples) = self.projection.add(earlier, execution);
        if execution.duration_ms.is_some() {
            let recent = self.recent.entry(FoldedCall::of(execution).key()).or_default();
            recent.push_back((self.projection.through, execution.clone()));
            recent.drain(..recent.len().saturating_sub(LATEST));
        }
        samples
    }

    /// Reads what was written, and folds what was stored since.
    pub(super) async fn read(session: &DatabaseSession, learning: &LearningDaemon) -> Result<Self, DatabaseFault> {
        let daemon = learning.daemon.bytes();
        let of_daemon = [(&daemon as _, Type::BYTEA)];
        let row = session.query("SELECT through, tick FROM almanac.daemons WHERE daemon = $1", &of_daemon).await?;
        let (through, tick) = row.first().map_or((0, 0), |row| (row.get(0), row.get(1)));
        let mut projection = Projection::from_there(through, tick);
        for WrittenTrail { prefix, followers, tick, .. } in trails::read(session, Some(learning.daemon)).await? {
            projection.hold_state(prefix, Arc::new(followers), tick);
        }
        let counts = "SELECT tool, mode, failed, samples, last FROM almanac.key_counts WHERE daemon = $1";
        for row in session.query(counts, &of_daemon).await? {
            let key = CountedKey { tool: row.get(0), mode: row.get(1), failed: row.get(2) };
            projection.hold_count(key, row.get(3), row.get(4));
        }
        let mut learnt = Self { projection, recent: HashMap::new(), folded: Vec::new() };
        let behind = "SELECT f.incarnation, f.through, w.through
            FROM almanac.folds AS f JOIN almanac.writers AS w USING (incarnation)
            WHERE f.daemon = $1 AND w.through > f.through ORDER BY w.moved_at, f.incarnation";
        for row in session.query(behind, &of_daemon).await? {
            learnt.fold_again(session, row.get(0), row.get(1)).await?;
            learnt.folded.push((row.get(0), row.get(2)));
        }
        learnt.projection.take_changes();
        Ok(learnt)
    }

    /// Folds what a writer stored behind a number.
    async fn fold_again(
        &mut self,
        session: &DatabaseSession,
        writer: &[u8],
        mut through: i64,
    ) -> Result<(), DatabaseFault> {
        loop {
            let values = [(&writer as _, Type::BYTEA), (&through as _, Type::INT8), (&AT_ONCE as _, Type::INT8)];
            let rows = session.query(audit::BEHIND, &values).await?;
            let calls: Vec<(Execution, i64)> = rows.iter().map(|row| (audit::execution(row), row.get(12))).collect();
            let mut unknown = BTreeMap::new();
            for (execution, id) in &calls {
                if let Some(name) = &execution.session
                    && !self.projection.knows(&execution.tenant, name)
                {
                    // What comes behind its first is folded here.
                    unknown.entry((execution.tenant.as_str(), name.as_str())).or_insert(*id);
                }
            }
            let mut earlier = EarlierCalls::before(session, &unknown).await?;
            for (execution, _) in &calls {
                self.add(&mut earlier, execution);
            }
            through = rows.last().map_or(through, |row| row.get(13));
            if (rows.len() as i64) < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Writes what changed as a whole. Records wait behind it, so its commit may take no longer than theirs:
    /// `patience`.
    pub(super) async fn commit(
        &mut self,
        session: &DatabaseSession,
        learning: &LearningDaemon,
        writer: Incarnation,
        patience: Duration,
    ) -> Result<(), DatabaseFault> {
        session.begin().await?;
        let written = self.write(session, learning, writer).await;
        let ended = timeout(patience, session.end(written.is_ok())).await;
        written?;
        ended.unwrap_or(Err(DatabaseFault::Late(patience)))?;
        self.written();
        Ok(())
    }

    /// Writes what changed, in a transaction of its caller's. All that `writer` stored is in it.
    async fn write(
        &mut self,
        session: &DatabaseSession,
        learning: &LearningDaemon,
        writer: Incarnation,
    ) -> Result<(), DatabaseFault> {
        let daemon = learning.daemon.bytes();
        let Projection { through, tick, .. } = self.projection;
        let revision = Revision::next(session, writer).await?;
        let update = "UPDATE almanac.daemons SET through = $2, tick = $3 WHERE daemon = $1";
        let values = [(&daemon as _, Type::BYTEA), (&through as _, Type::INT8), (&tick as _, Type::INT8)];
        session.query(update, &values).await?;
        let own = "UPDATE almanac.folds AS f SET through = w.through FROM almanac.writers AS w
            WHERE f.incarnation = $1 AND w.incarnation = $1";
        session.query(own, &[(&writer.bytes(), Type::BYTEA)]).await?;
        let earlier = "UPDATE almanac.folds AS f SET through = greatest(f.through, folded.through)
            FROM unnest($1::bytea[], $2::int8[]) AS folded (incarnation, through)
            WHERE f.incarnation = folded.incarnation";
        let (writers, numbers): (Vec<&[u8]>, Vec<i64>) =
            self.folded.iter().map(|(writer, through)| (writer.as_slice(), *through)).unzip();
        session.query(earlier, &[(&writers, Type::BYTEA_ARRAY), (&numbers, Type::INT8_ARRAY)]).await?;
        self.write_counts(session, daemon, &revision).await?;
        self.write_trails(session, daemon, &revision).await
    }

    async fn write_counts(
        &mut self,
        session: &DatabaseSession,
        daemon: &[u8],
        revision: &Revision,
    ) -> Result<(), DatabaseFault> {
        let changed: BTreeMap<&CountedKey, (i64, i64)> =
            self.projection.unwritten_counts().map(|(key, count)| (key, (count.samples, count.last_id))).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let tools: Vec<&str> = changed.keys().map(|key| key.tool.as_str()).collect();
        let modes: Vec<&str> = changed.keys().map(|key| key.mode.as_str()).collect();
        let failed: Vec<bool> = changed.keys().map(|key| key.failed).collect();
        let keys = [
            (&daemon as _, Type::BYTEA),
            (&tools as _, Type::TEXT_ARRAY),
            (&modes as _, Type::TEXT_ARRAY),
            (&failed as _, Type::BOOL_ARRAY),
        ];
        let known = "SELECT k.tool, k.mode, k.failed, k.latest FROM almanac.key_counts AS k
            JOIN unnest($2::text[], $3::text[], $4::bool[]) AS asked (tool, mode, failed)
                ON k.daemon = $1 AND k.tool = asked.tool AND k.mode = asked.mode AND k.failed = asked.failed";
        let mut latest: HashMap<CountedKey, Vec<KeptCall>> = HashMap::new();
        for row in session.query(known, &keys).await? {
            let key = CountedKey { tool: row.get(0), mode: row.get(1), failed: row.get(2) };
            latest.insert(key, kept_calls(row.get(3)));
        }
        let mut rows = CountRows::default();
        for (key, (count, last_id)) in &changed {
            let mut calls = latest.remove(*key).unwrap_or_default();
            calls.extend(self.recent.get(*key).into_iter().flatten().map(KeptCall::of));
            calls.drain(..calls.len().saturating_sub(LATEST));
            rows.push(key, *count, *last_id, bytes_of(&calls)?);
        }
        rows.put(session, daemon, revision).await
    }

    async fn write_trails(
        &mut self,
        session: &DatabaseSession,
        daemon: &[u8],
        revision: &Revision,
    ) -> Result<(), DatabaseFault> {
        let mut rows = TrailRows::default();
        for (prefix, state) in self.projection.unwritten_prefixes() {
            let before = prefix.before.as_deref().unwrap_or_default();
            rows.push(before, &prefix.last, state.followers.encode(), state.tick);
        }
        rows.put(session, daemon, revision).await
    }

    /// What was given to be written is there.
    fn written(&mut self) {
        self.projection.written();
        self.projection.trim_sessions();
        self.recent.clear();
        self.folded.clear();
    }
}

/// How long another try of the same, which waits for its standby, is waited for.
const STEP: Duration = Duration::from_secs(1);

/// Says who learns from the records of these writers, in a commit that promises what an acknowledgement does.
///
/// # Errors
/// [`DatabaseFault::Conflict`] if an earlier try is not through yet.
pub(super) async fn register(
    session: &DatabaseSession,
    learning: &LearningDaemon,
    writers: &[Incarnation],
) -> Result<(), DatabaseFault> {
    let daemon = learning.daemon.bytes();
    let writers: Vec<&[u8]> = writers.iter().map(Incarnation::bytes).collect();
    let put = "WITH learns AS (
            INSERT INTO almanac.daemons (daemon, host) VALUES ($1, $2)
            ON CONFLICT (daemon) DO UPDATE SET host = excluded.host
        )
        INSERT INTO almanac.folds (incarnation, daemon, through) SELECT writer, $1, 0 FROM unnest($3::bytea[]) AS writer
        ON CONFLICT (incarnation) DO NOTHING";
    let values = [(&daemon as _, Type::BYTEA), (&learning.host as _, Type::TEXT), (&writers as _, Type::BYTEA_ARRAY)];
    session.begin().await?;
    // Else each try would leave one more connection that waits at the server.
    session.run(&format!("SELECT set_config('lock_timeout', '{}ms', true)", STEP.as_millis())).await?;
    let done = session.query(put, &values).await;
    session.end(done.is_ok()).await?;
    done.map(drop)
}

/// Has a writer's records, which its daemon will not learn any more, learnt for themselves: what is learnt is added up
/// when it is read. They are of its daemon's host, or, if it never said one, of a host of their own.
pub(super) async fn take_over(session: &DatabaseSession, writer: Incarnation) -> Result<LearningDaemon, DatabaseFault> {
    let known = "SELECT host FROM almanac.folds JOIN almanac.daemons USING (daemon) WHERE incarnation = $1";
    let by = writer.bytes();
    let rows = session.query(known, &[(&by as _, Type::BYTEA)]).await?;
    let host = rows.first().map_or_else(|| writer.to_hex(), |row| row.get(0));
    let put = "WITH learns AS (
            INSERT INTO almanac.daemons (daemon, host) VALUES ($1, $2) ON CONFLICT DO NOTHING
        )
        INSERT INTO almanac.folds (incarnation, daemon, through) VALUES ($1, $1, 0)
        ON CONFLICT (incarnation) DO UPDATE SET daemon = excluded.daemon";
    session.query(put, &[(&by as _, Type::BYTEA), (&host as _, Type::TEXT)]).await?;
    Ok(LearningDaemon { daemon: writer, host })
}

/// A daemon's latest trails are kept, and all others of it forgotten.
pub(super) async fn prune(session: &DatabaseSession, learning: &LearningDaemon) -> Result<(), DatabaseFault> {
    let beyond = "DELETE FROM almanac.trails WHERE daemon = $1 AND tick <= (
        SELECT tick FROM almanac.trails WHERE daemon = $1 ORDER BY tick DESC LIMIT 1 OFFSET $2)";
    let (daemon, most) = (learning.daemon.bytes(), MAX_PREFIXES as i64);
    session.query(beyond, &[(&daemon as _, Type::BYTEA), (&most as _, Type::INT8)]).await.map(drop)
}

/// A call as it stands beside its key's count.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptCall {
    id: i64,
    /// Without tool, mode and key.
    execution: Execution,
}

impl KeptCall {
    pub(super) fn of((id, execution): &(i64, Execution)) -> Self {
        let execution = Execution { tool: String::new(), mode: None, idempotency_key: None, ..execution.clone() };
        Self { id: *id, execution }
    }

    /// Its number, and how it went.
    pub(super) fn observed(&self) -> Option<(i64, Observation)> {
        let duration_ms = self.execution.duration_ms?;
        Some((self.id, Observation { duration_ms, outcome: self.execution.outcome }))
    }
}

/// As they stand in a row.
pub(super) fn bytes_of(calls: &[KeptCall]) -> Result<Vec<u8>, DatabaseFault> {
    postcard::to_stdvec(calls).map_err(|error| DatabaseFault::Record(error.to_string()))
}

/// Of bytes that nobody wrote, none.
pub(super) fn kept_calls(bytes: &[u8]) -> Vec<KeptCall> {
    postcard::from_bytes(bytes).unwrap_or_default()
}

/// The counts of the keys that were called last, and the latest calls of each, oldest first: all of one host.
pub(super) async fn durations(
    session: &DatabaseSession,
    host: &str,
    limits: ReplayLimits,
) -> Result<(Vec<KeyCount>, Vec<Execution>), DatabaseFault> {
    let query = "WITH counted AS (
            SELECT tool, mode, failed, sum(samples)::int8 AS samples, max(last) AS last, array_agg(latest) AS latest
            FROM almanac.key_counts JOIN almanac.daemons USING (daemon) WHERE host = $1
            GROUP BY tool, mode, failed
        )
        SELECT tool, mode, failed, samples, latest FROM counted WHERE samples > 0
        ORDER BY last DESC, tool, mode, failed LIMIT $2";
    let keys = i64::from(limits.keys);
    let rows = session.query(query, &[(&host as _, Type::TEXT), (&keys as _, Type::INT8)]).await?;
    let count = |row: &Row| {
        let mode: String = row.get(1);
        KeyCount {
            tool: row.get(0),
            mode: Some(mode).filter(|mode| !mode.is_empty()),
            failed: row.get(2),
            samples: row.get::<_, i64>(3).cast_unsigned(),
        }
    };
    let mut counted: Vec<(KeyCount, Vec<&[u8]>)> = rows.iter().map(|row| (count(row), row.get(4))).collect();
    counted.sort_unstable_by(|(a, _), (b, _)| (&a.tool, &a.mode, a.failed).cmp(&(&b.tool, &b.mode, b.failed)));
    let counts: Vec<KeyCount> = counted.iter().map(|(count, _)| count.clone()).collect();
    let each = limits.rows_of_each(&counts) as usize;
    let mut latest: Vec<(i64, Execution)> = Vec::new();
    for (KeyCount { tool, mode, .. }, bytes) in &counted {
        let mut calls: Vec<KeptCall> = bytes.iter().flat_map(|bytes| kept_calls(bytes)).collect();
        calls.sort_by_key(|call| call.id);
        let whole = |KeptCall { id, execution }: KeptCall| {
            (id, Execution { tool: tool.clone(), mode: mode.clone(), ..execution })
        };
        latest.extend(calls.drain(calls.len().saturating_sub(each)..).map(whole));
    }
    latest.sort_by_key(|(id, _)| *id);
    Ok((counts, latest.into_iter().map(|(_, execution)| execution).collect()))
}

/// Durations that other daemons of this host learnt.
#[derive(Debug, Default)]
pub(super) struct FollowedDurations {
    pub(super) executions: Vec<Execution>,
    /// Of these calls' keys: how many all the others recorded.
    pub(super) counts: Vec<(CountedKey, u64)>,
    /// Which of its records each daemon's counts were read with.
    pub(super) folded: HashMap<Vec<u8>, i64>,
}

/// What other daemons of this host learnt in transactions behind these revisions of writers. `folded` are the records
/// whose durations are known already.
pub(super) async fn durations_beyond(
    session: &DatabaseSession,
    learning: &LearningDaemon,
    revisions: &[StatementValue<'_>; 2],
    folded: &HashMap<Vec<u8>, i64>,
) -> Result<FollowedDurations, DatabaseFault> {
    let query = format!(
        "SELECT daemon, through, tool, mode, failed, latest, (
             SELECT sum(k.samples)::int8 FROM almanac.key_counts AS k JOIN almanac.daemons AS other USING (daemon)
             WHERE other.host = $3 AND other.daemon <> $4 AND k.tool = key_counts.tool AND k.mode = key_counts.mode
                 AND k.failed = key_counts.failed
         ) {} JOIN almanac.daemons USING (daemon) WHERE host = $3 AND daemon <> $4
         ORDER BY daemon, tool, mode, failed",
        beyond("key_counts")
    );
    let [writers, beyond] = revisions;
    let own = learning.daemon.bytes();
    let values = [writers.clone(), beyond.clone(), (&learning.host as _, Type::TEXT), (&own as _, Type::BYTEA)];
    let mut followed = FollowedDurations::default();
    for row in session.query(&query, &values).await? {
        let (daemon, mode): (Vec<u8>, String) = (row.get(0), row.get(3));
        let (tool, mode): (String, Option<String>) = (row.get(2), Some(mode).filter(|mode| !mode.is_empty()));
        let known = folded.get(&daemon).copied().unwrap_or_default();
        let calls = kept_calls(row.get(5)).into_iter().filter(|call| call.id > known);
        followed.executions.extend(calls.map(|call| Execution {
            tool: tool.clone(),
            mode: mode.clone(),
            ..call.execution
        }));
        let key = CountedKey { tool, mode: mode.unwrap_or_default(), failed: row.get(4) };
        followed.counts.push((key, row.get::<_, i64>(6).cast_unsigned()));
        followed.folded.insert(daemon, row.get(1));
    }
    Ok(followed)
}

/// How many rows are looked at for one that belongs to a session.
const SPARSITY: i64 = 10;

/// The latest calls of sessions, whichever daemon recorded them, oldest first.
pub(super) async fn session_calls(session: &DatabaseSession, most: u32) -> Result<Vec<SessionCall>, DatabaseFault> {
    let query = "SELECT tenant, session, tool, at_ms FROM (
            SELECT id, tenant, session, tool, at_ms FROM almanac.executions
            WHERE session IS NOT NULL AND id > (SELECT last_value FROM almanac.execution_ids) - $2
            ORDER BY id DESC LIMIT $1
        ) AS latest ORDER BY id";
    let (most, looked_at) = (i64::from(most), i64::from(most) * SPARSITY);
    let rows = session.query(query, &[(&most as _, Type::INT8), (&looked_at as _, Type::INT8)]).await?;
    let call = |row: &Row| SessionCall { tenant: row.get(0), session: row.get(1), tool: row.get(2), at_ms: row.get(3) };
    Ok(rows.iter().map(call).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::group::commit;
    use super::super::migrations::{Migration, open};
    use super::super::partitions::prepare;
    use super::super::test_server::TestServer;
    use super::*;
    use crate::store::suite::records::execution;

    /// What stands in the database of it.
    async fn written(session: &DatabaseSession) -> String {
        let query = "SELECT (SELECT json_agg(to_jsonb(k) - 'writer' - 'revision' ORDER BY tool, mode)
                          FROM almanac.key_counts AS k)::text
                         || (SELECT json_agg(to_jsonb(t) - 'writer' - 'revision' ORDER BY before, last)
                             FROM almanac.trails AS t)::text
                         || (SELECT json_agg(d) FROM almanac.daemons AS d)::text";
        let text: String = session.query_one(query, &[]).await.unwrap().get(0);
        text.replace('"', "")
    }

    #[tokio::test]
    async fn many_sessions_are_looked_up_together() {
        let Some(server) = TestServer::start() else { return };
        let session = open(&server.address("postgres", ""), Migration::Auto).await.unwrap();
        let other = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
        prepare(&session).await.unwrap();
        let writer = Incarnation::from_hex(&"01".repeat(16)).unwrap();
        let learning = LearningDaemon { daemon: writer, host: "h".into() };
        register(&session, &learning, &[writer]).await.unwrap();
        let call = |number: i64| Execution { session: Some(format!("s{number}")), ..execution("a", None, 1, None) };
        let group: Vec<(i64, Execution)> = (1..=1000).map(|number| (number, call(number))).collect();
        commit(&session, writer, &group, Duration::from_secs(60)).await.unwrap();
        // Each question outside of a transaction is one of its own.
        let asked = async || -> i64 {
            session.run("SELECT pg_stat_force_next_flush()").await.unwrap();
            let count = "SELECT pg_stat_get_db_xact_commit(oid) FROM pg_database WHERE datname = current_database()";
            other.query_one(count, &[]).await.unwrap().get(0)
        };
        let before = asked().await;
        let learnt = LearntRecords::read(&session, &learning).await.unwrap();
        let questions = asked().await - before;
        assert!((1..100).contains(&questions), "{questions} for 1000 sessions");
        assert!(learnt.projection.knows(&group[0].1.tenant, "s1") && learnt.projection.through >= 1000);
    }

    /// Written at any time and killed at any time, it comes to the same as written once.
    #[tokio::test]
    async fn a_kill_changes_nothing() {
        let Some(server) = TestServer::start() else { return };
        let mut outcomes = Vec::new();
        for is_killed in [false, true] {
            let database = format!("site{is_killed}");
            let made = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
            made.run(&format!("CREATE DATABASE {database}")).await.unwrap();
            let address = server.address("postgres", &format!("/{database}"));
            let session = open(&address, Migration::Auto).await.unwrap();
            prepare(&session).await.unwrap();
            let same = |byte: &str| Incarnation::from_hex(&byte.repeat(16)).unwrap();
            let learning = LearningDaemon { daemon: same("0a"), host: "h".into() };
            let mut writer = same("01");
            register(&session, &learning, &[writer]).await.unwrap();
            let mut learnt = LearntRecords::read(&session, &learning).await.unwrap();
            let mut number = 0;
            for step in 0..40_u64 {
                let call = |place: u64| Execution {
                    session: (place % 4 != 3).then(|| format!("s{}", (step + place) % 3)),
                    ..execution(["a", "b", "c"][(step * 7 + place) as usize % 3], None, step * 10 + place, None)
                };
                let calls: Vec<Execution> = (0..=step % 3).map(call).collect();
                let group: Vec<(i64, Execution)> = (number + 1..).zip(calls.clone()).collect();
                let unknown: Vec<(String, String)> = calls
                    .iter()
                    .filter_map(|call| Some((call.tenant.clone(), call.session.clone()?)))
                    .filter(|(tenant, session)| !learnt.projection.knows(tenant, session))
                    .collect();
                let mut earlier = EarlierCalls::of(&session, &unknown).await.unwrap();
                commit(&session, writer, &group, Duration::from_secs(60)).await.unwrap();
                number += calls.len() as i64;
                for call in &calls {
                    learnt.add(&mut earlier, call);
                }
                if step % 4 == 1 {
                    learnt.write(&session, &learning, writer).await.unwrap();
                    learnt.written();
                }
                if is_killed && step % 5 == 4 {
                    // The next start writes under another name.
                    (writer, number) = (same(&format!("{:02x}", 2 + step)), 0);
                    register(&session, &learning, &[writer]).await.unwrap();
                    learnt = LearntRecords::read(&session, &learning).await.unwrap();
                }
            }
            let mut learnt = LearntRecords::read(&session, &learning).await.unwrap();
            learnt.write(&session, &learning, writer).await.unwrap();
            outcomes.push(written(&session).await);
        }
        assert_eq!(outcomes[0], outcomes[1]);
    }
}
