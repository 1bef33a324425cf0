//! The months that records are stored in. Three are made ahead, as plain tables that are then attached, so that no
//! insert waits; there is no default one, which every attaching would have to look through.

use super::fault::DatabaseFault;
use super::migrations::LOCK;
use super::session::DatabaseSession;

/// Months that are made ahead of the running one.
const AHEAD: u32 = 3;

/// A month of the calendar, in UTC: months since the year 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Month(u32);

impl Month {
    fn table(self) -> String {
        format!("executions_{:04}_{:02}", self.0 / 12, self.0 % 12 + 1)
    }

    fn first_moment(self) -> String {
        format!("{:04}-{:02}-01 00:00:00+00", self.0 / 12, self.0 % 12 + 1)
    }
}

/// Sees to it that there is a place for what is stored now and in the next three months, by the server's clock.
pub async fn prepare(session: &DatabaseSession) -> Result<(), DatabaseFault> {
    let query = "SELECT (extract(year FROM today) * 12 + extract(month FROM today) - 1)::int4,
                        ARRAY(SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
                              WHERE inhparent = 'almanac.executions'::regclass)
                 FROM (SELECT now() AT TIME ZONE 'UTC' AS today) AS clock";
    let row = session.query_one(query, &[]).await?;
    let (now, there): (i32, Vec<String>) = (row.get(0), row.get(1));
    for month in (0..=AHEAD).map(|ahead| Month(now.max(0).cast_unsigned() + ahead)) {
        if !there.contains(&month.table()) {
            attach(session, month).await?;
        }
    }
    Ok(())
}

async fn attach(session: &DatabaseSession, month: Month) -> Result<(), DatabaseFault> {
    let table = month.table();
    let (from, to) = (month.first_moment(), Month(month.0 + 1).first_moment());
    let made = session
        .run(&format!(
            "SELECT set_config('lock_timeout', '1s', true);
             SELECT pg_advisory_xact_lock({LOCK});
             CREATE TABLE almanac.{table} (LIKE almanac.executions INCLUDING ALL);
             ALTER TABLE almanac.executions ATTACH PARTITION almanac.{table} FOR VALUES FROM ('{from}') TO ('{to}')"
        ))
        .await;
    let Err(fault) = made else { return Ok(()) };
    // Another daemon may have made it meanwhile.
    let query = format!("SELECT count(*) > 0 FROM pg_inherits WHERE inhrelid = to_regclass('almanac.{table}')");
    if session.query_one(&query, &[]).await?.get(0) { Ok(()) } else { Err(fault) }
}

#[cfg(test)]
mod tests {
    use super::super::migrations::{Migration, open};
    use super::super::test_server::TestServer;
    use super::*;

    #[test]
    fn months_follow_each_other() {
        let check = |month: u32, table: &str, from: &str| {
            assert_eq!((Month(month).table().as_str(), Month(month).first_moment().as_str()), (table, from));
        };
        check(2026 * 12 + 10, "executions_2026_11", "2026-11-01 00:00:00+00");
        check(2026 * 12 + 11, "executions_2026_12", "2026-12-01 00:00:00+00");
        check(2026 * 12 + 12, "executions_2027_01", "2027-01-01 00:00:00+00");
    }

    #[tokio::test]
    async fn daemons_that_start_together_make_each_month_once() {
        let Some(server) = TestServer::start() else { return };
        let address = server.address("postgres", "");
        drop(open(&address, Migration::Auto).await.unwrap());
        let starts: Vec<_> = (0..4)
            .map(|_| {
                let address = address.clone();
                tokio::spawn(async move { prepare(&DatabaseSession::open(&address).await.unwrap()).await })
            })
            .collect();
        for start in starts {
            start.await.unwrap().unwrap();
        }
        let session = DatabaseSession::open(&address).await.unwrap();
        let count = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'almanac.executions'::regclass";
        assert_eq!(session.query_one(count, &[]).await.unwrap().get::<_, i64>(0), i64::from(AHEAD) + 1);
        // None is found unused: what is stored ages ago or ahead has no place.
        let misplaced =
            "INSERT INTO almanac.executions (tenant, incarnation, sequence, stored_at, tool, outcome, at_ms)
                         VALUES ('t', '', 1, '1999-01-01', 'a', 'success', 0)";
        assert!(matches!(session.run(misplaced).await, Err(DatabaseFault::NoPartition)));
    }
}
