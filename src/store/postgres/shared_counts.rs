//! How many calls of each tool and mode the daemons of this host recorded: this one's and the others', side by side, so
//! that whichever rises, the sum is told.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::learnt::LearningDaemon;
use super::session::DatabaseSession;
use crate::store::projection::CountedKey;

/// Shared by the thread that writes and whoever follows.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedCounts(Arc<Mutex<HashMap<CountedKey, CallCount>>>);

#[derive(Debug, Clone, Copy, Default)]
struct CallCount {
    own: u64,
    others: u64,
}

impl CallCount {
    fn sum(self) -> u64 {
        self.own + self.others
    }
}

impl SharedCounts {
    /// So many this daemon recorded. Returns the sum.
    pub(super) fn count_own(&self, key: CountedKey, own: u64) -> u64 {
        let mut counts = self.0.lock();
        let count = counts.entry(key).or_default();
        count.own = count.own.max(own);
        count.sum()
    }

    /// So many the others did. Returns the sum.
    pub(super) fn count_others(&self, key: CountedKey, others: u64) -> u64 {
        let mut counts = self.0.lock();
        let count = counts.entry(key).or_default();
        count.others = others;
        count.sum()
    }

    /// Takes all counts of the host as they are written; `anew` in place of what was told, which may be too much.
    pub(super) async fn begin(
        &self,
        session: &DatabaseSession,
        learning: &LearningDaemon,
        anew: bool,
    ) -> Result<(), DatabaseFault> {
        let query = "SELECT tool, mode, failed,
                coalesce(sum(samples) FILTER (WHERE daemon = $2), 0)::int8,
                coalesce(sum(samples) FILTER (WHERE daemon <> $2), 0)::int8
            FROM almanac.key_counts JOIN almanac.daemons USING (daemon) WHERE host = $1 GROUP BY tool, mode, failed";
        let daemon = learning.daemon.bytes();
        let values = [(&learning.host as _, Type::TEXT), (&daemon as _, Type::BYTEA)];
        let rows = session.query(query, &values).await?;
        if anew {
            self.0.lock().clear();
        }
        for row in rows {
            let key = || CountedKey { tool: row.get(0), mode: row.get(1), failed: row.get(2) };
            self.count_own(key(), row.get::<_, i64>(3).cast_unsigned());
            self.count_others(key(), row.get::<_, i64>(4).cast_unsigned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_of_what_is_known_last() {
        let counts = SharedCounts::default();
        let key = || CountedKey { tool: "t".into(), mode: String::new(), failed: false };
        assert_eq!(counts.count_own(key(), 2), 2);
        assert_eq!(counts.count_others(key(), 5), 7);
        assert_eq!(counts.count_own(key(), 1), 7, "what was written before is not what there is");
        assert_eq!(counts.count_own(key(), 3), 8);
        assert_eq!(counts.count_others(key(), 6), 9);
    }
}
