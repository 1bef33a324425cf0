//! What daemons on other hosts saw of each tool and mode: their latest calls, kept by daemon, so that one that tells of
//! a key anew replaces what it told before and nothing of the others' has to be read again.

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::following::beyond;
use super::learnt::{KeptCall, LearningDaemon, kept_calls};
use super::session::{DatabaseSession, StatementValue};
use crate::store::FleetKey;
use crate::store::projection::CountedKey;
use crate::timing::{FleetCalls, Observation};

/// Keys that are kept, as many as a model has; each takes up to 1 kB for each daemon.
const MOST_KEYS: usize = 20_000;

const COLUMNS: &str = "daemon, host, tool, mode, failed, samples, latest";

/// What one daemon told of a key.
#[derive(Debug)]
struct OfDaemon {
    host: String,
    samples: u64,
    /// Its latest calls with their numbers there, oldest first.
    calls: Vec<(i64, Observation)>,
}

/// Shared by whoever reads a history and whoever follows.
#[derive(Debug, Default)]
pub(super) struct OtherHosts(Mutex<HashMap<CountedKey, BTreeMap<Vec<u8>, OfDaemon>>>);

impl OtherHosts {
    /// Takes what is written, and returns all of it.
    pub(super) async fn begin(
        &self,
        session: &DatabaseSession,
        learning: &LearningDaemon,
    ) -> Result<Vec<FleetKey>, DatabaseFault> {
        let query = format!(
            "WITH called AS (
                 SELECT tool, mode, failed FROM almanac.key_counts JOIN almanac.daemons USING (daemon) WHERE host <> $1
                 GROUP BY tool, mode, failed ORDER BY max(last) DESC, tool, mode, failed LIMIT $2
             )
             SELECT {COLUMNS} FROM called JOIN almanac.key_counts USING (tool, mode, failed)
             JOIN almanac.daemons USING (daemon) WHERE host <> $1"
        );
        let most = MOST_KEYS as i64;
        let values = [(&learning.host as _, Type::TEXT), (&most as _, Type::INT8)];
        let rows = session.query(&query, &values).await?;
        self.0.lock().clear();
        Ok(self.hear(&rows))
    }

    /// What was written in transactions behind these revisions of writers. Returns the keys that changed.
    pub(super) async fn follow(
        &self,
        session: &DatabaseSession,
        learning: &LearningDaemon,
        revisions: &[StatementValue<'_>; 2],
    ) -> Result<Vec<FleetKey>, DatabaseFault> {
        let query =
            format!("SELECT {COLUMNS} {} JOIN almanac.daemons USING (daemon) WHERE host <> $3", beyond("key_counts"));
        let [writers, beyond] = revisions;
        let values = [writers.clone(), beyond.clone(), (&learning.host as _, Type::TEXT)];
        Ok(self.hear(&session.query(&query, &values).await?))
    }

    fn hear(&self, rows: &[Row]) -> Vec<FleetKey> {
        let mut keys = self.0.lock();
        let mut changed = HashSet::new();
        for row in rows {
            let key = CountedKey { tool: row.get(2), mode: row.get(3), failed: row.get(4) };
            if keys.len() >= MOST_KEYS && !keys.contains_key(&key) {
                continue;
            }
            let calls = kept_calls(row.get(6)).iter().filter_map(KeptCall::observed).collect();
            let told = OfDaemon { host: row.get(1), samples: row.get::<_, i64>(5).cast_unsigned(), calls };
            keys.entry(key.clone()).or_default().insert(row.get(0), told);
            changed.insert(key);
        }
        changed.into_iter().filter_map(|key| keys.get(&key).map(|daemons| added_up(key, daemons))).collect()
    }
}

/// Of each host its latest calls, whichever of its daemons recorded them.
fn added_up(key: CountedKey, daemons: &BTreeMap<Vec<u8>, OfDaemon>) -> FleetKey {
    let mut hosts: BTreeMap<&str, Vec<(i64, Observation)>> = BTreeMap::new();
    for daemon in daemons.values() {
        hosts.entry(&daemon.host).or_default().extend(&daemon.calls);
    }
    let latest = |mut calls: Vec<(i64, Observation)>| {
        calls.sort_by_key(|(number, _)| *number);
        calls.into_iter().map(|(_, observation)| observation).collect()
    };
    let hosts: Vec<Vec<Observation>> = hosts.into_values().map(latest).collect();
    let samples = daemons.values().map(|daemon| daemon.samples).sum();
    let CountedKey { tool, mode, failed } = key;
    FleetKey { tool, mode, failed, calls: FleetCalls::of_hosts(&hosts, samples) }
}
