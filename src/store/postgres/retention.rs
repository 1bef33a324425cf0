//! What was kept before the retention is taken away by one daemon at a time: months of records whole. No insert waits
//! behind it: a month is detached while others go on, which takes no lock of theirs, and dropped once it is a table of
//! its own. What is in the way is let be, and met again at the next look.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::address::DatabaseAddress;
use super::daemon_states;
use super::fault::DatabaseFault;
use super::group::Incarnation;
use super::session::DatabaseSession;

/// For how long a daemon does it without saying so again, in seconds. Each step takes less.
const LEASE_SECONDS: f64 = 300.0;

/// How long a step waits for others.
const STEP: Duration = Duration::from_secs(1);

/// The comment of a table that is to be dropped: one that an operator detached is the operator's.
const DOOMED: &str = "almanacd: before the retention";

/// Where a month stands on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Attached,
    /// Detaching was given up while it waited for older transactions.
    Pending,
    Detached,
}

/// Takes away what ended longer ago than `retention`, unless another daemon is about it.
///
/// # Errors
/// [`DatabaseFault::Conflict`] if something was in the way; what was begun goes on the next time.
pub(super) async fn retain(
    address: &DatabaseAddress,
    daemon: Incarnation,
    retention: Duration,
) -> Result<(), DatabaseFault> {
    let session = DatabaseSession::open(address).await?;
    while take_lease(&session, daemon).await? {
        let Some((table, stage)) = oldest(&session, retention).await? else {
            remove_turns(&session, daemon, retention).await?;
            return daemon_states::prune(&session).await;
        };
        match stage {
            Stage::Attached => {
                step(&session, &format!("COMMENT ON TABLE almanac.{table} IS '{DOOMED}'")).await?;
                let detach = format!("ALTER TABLE almanac.executions DETACH PARTITION almanac.{table} CONCURRENTLY");
                session.run_alone(address, &detach, STEP).await?;
            }
            Stage::Pending => {
                let end = format!("ALTER TABLE almanac.executions DETACH PARTITION almanac.{table} FINALIZE");
                step(&session, &end).await?;
            }
            Stage::Detached => {
                step(&session, &format!("DROP TABLE almanac.{table}")).await?;
                tracing::info!(table, "a month of records that came before the retention is removed");
            }
        }
    }
    Ok(())
}

/// The last turns of sessions, a thousand at a time.
async fn remove_turns(
    session: &DatabaseSession,
    daemon: Incarnation,
    retention: Duration,
) -> Result<(), DatabaseFault> {
    let delete = "WITH old AS (
            SELECT tenant, session, number FROM almanac.kept_turns
            WHERE at_us < (extract(epoch FROM now()) - $1) * 1000000
            ORDER BY at_us LIMIT 1000 FOR UPDATE SKIP LOCKED
        )
        DELETE FROM almanac.kept_turns USING old
        WHERE kept_turns.tenant = old.tenant AND kept_turns.session = old.session AND kept_turns.number = old.number
        RETURNING 1";
    let values = [(&retention.as_secs_f64() as _, Type::FLOAT8)];
    while take_lease(session, daemon).await? && !session.query(delete, &values).await?.is_empty() {}
    Ok(())
}

async fn step(session: &DatabaseSession, sql: &str) -> Result<(), DatabaseFault> {
    session.run(&format!("SELECT set_config('lock_timeout', '{}ms', true); {sql}", STEP.as_millis())).await
}

/// Is it this daemon's turn, for a while?
async fn take_lease(session: &DatabaseSession, daemon: Incarnation) -> Result<bool, DatabaseFault> {
    let query = "INSERT INTO almanac.leases AS held (name, daemon, until)
        VALUES ('retention', $1, now() + make_interval(secs => $2))
        ON CONFLICT (name) DO UPDATE SET daemon = excluded.daemon, until = excluded.until
            WHERE held.until < now() OR held.daemon = excluded.daemon
        RETURNING 1";
    let daemon = daemon.bytes();
    let values = [(&daemon as _, Type::BYTEA), (&LEASE_SECONDS as _, Type::FLOAT8)];
    Ok(!session.query(query, &values).await?.is_empty())
}

/// The month to go on with: first the one that is pending, beside which no other can be detached.
async fn oldest(session: &DatabaseSession, retention: Duration) -> Result<Option<(String, Stage)>, DatabaseFault> {
    let query = "SELECT name, is_attached, is_pending FROM (
            SELECT relname::text AS name, inhrelid IS NOT NULL AS is_attached,
                coalesce(inhdetachpending, false) AS is_pending, obj_description(pg_class.oid, 'pg_class') AS comment
            FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
            WHERE relnamespace = 'almanac'::regnamespace AND relkind = 'r'
                AND relname ~ '^executions_[0-9]{4}_(0[1-9]|1[0-2])$'
        ) AS months
        WHERE (is_attached OR comment = $1)
            AND to_date(substr(name, 12), 'YYYY_MM') + interval '1 month'
                <= (now() AT TIME ZONE 'UTC') - make_interval(secs => $2)
        ORDER BY is_pending DESC, name LIMIT 1";
    let values = [(&DOOMED as _, Type::TEXT), (&retention.as_secs_f64() as _, Type::FLOAT8)];
    let rows = session.query(query, &values).await?;
    Ok(rows.first().map(|row| {
        let stage = match (row.get(1), row.get(2)) {
            (_, true) => Stage::Pending,
            (true, _) => Stage::Attached,
            _ => Stage::Detached,
        };
        (row.get(0), stage)
    }))
}

#[cfg(test)]
mod tests {
    use super::super::migrations::{Migration, open};
    use super::super::partitions::prepare;
    use super::super::test_pooler::TestPooler;
    use super::super::test_server::TestServer;
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A month of 1999 with a record.
    fn month(number: u32) -> String {
        let (table, next) = (format!("executions_1999_{number:02}"), number + 1);
        format!(
            "CREATE TABLE almanac.{table} (LIKE almanac.executions INCLUDING ALL);
             ALTER TABLE almanac.executions ATTACH PARTITION almanac.{table}
                 FOR VALUES FROM ('1999-{number:02}-01 00:00:00+00') TO ('1999-{next:02}-01 00:00:00+00');
             {}",
            insert(&format!("'1999-{number:02}-10'"))
        )
    }

    fn insert(stored_at: &str) -> String {
        format!(
            "INSERT INTO almanac.executions (tenant, incarnation, sequence, stored_at, tool, outcome, at_ms)
             VALUES ('t', '', 1, {stored_at}, 'a', 'success', 0)"
        )
    }

    async fn count(session: &DatabaseSession, what: &str) -> i64 {
        session.query_one(&format!("SELECT count(*) FROM {what}"), &[]).await.unwrap().get(0)
    }

    const OLD: &str = "pg_class WHERE relkind = 'r' AND relname LIKE 'executions_1999_%'";

    #[tokio::test]
    async fn months_go_and_no_insert_waits() {
        let Some(server) = TestServer::start() else { return };
        check_months(&server, server.address("postgres", "")).await;
    }

    /// By one of its two connections the other's statement is cancelled.
    #[tokio::test]
    async fn months_go_through_a_pooler() {
        let Some(server) = TestServer::start().filter(|_| TestPooler::is_installed()) else { return };
        let pooler = TestPooler::before(&server, 2);
        check_months(&server, pooler.address(&server, "postgres", "")).await;
    }

    /// By a daemon that finds the server at `address`, others by the server itself.
    async fn check_months(server: &TestServer, address: DatabaseAddress) {
        let direct = server.address("postgres", "");
        let session = open(&direct, Migration::Auto).await.unwrap();
        prepare(&session).await.unwrap();
        for number in [3, 4, 5] {
            session.run(&month(number)).await.unwrap();
        }
        session.run(&insert("now()")).await.unwrap();
        let kept = "INSERT INTO almanac.key_counts (daemon, tool, mode, failed, samples, last, latest)
                    VALUES ('', 'a', '', false, 50, 50, 'calls')";
        session.run(kept).await.unwrap();
        // The operator's own.
        session.run("ALTER TABLE almanac.executions DETACH PARTITION almanac.executions_1999_05").await.unwrap();
        let daemon = |byte: &str| Incarnation::from_hex(&byte.repeat(16)).unwrap();

        // A transaction that has all months in sight is waited for, for a second, and no insert waits behind that.
        let reader = DatabaseSession::open(&direct).await.unwrap();
        reader.begin_snapshot().await.unwrap();
        assert_eq!(count(&reader, "almanac.executions").await, 3);
        let retaining = tokio::spawn({
            let address = address.clone();
            async move { retain(&address, daemon("01"), 30 * DAY).await }
        });
        let waits = "pg_stat_activity WHERE query LIKE '%DETACH PARTITION%CONCURRENTLY' AND wait_event_type = 'Lock'";
        while count(&session, waits).await == 0 && !retaining.is_finished() {}
        let at_once = format!("SELECT set_config('lock_timeout', '100ms', true); {}", insert("now()"));
        session.run(&at_once).await.unwrap();
        let stopped = retaining.await.unwrap();
        assert!(matches!(stopped, Err(DatabaseFault::Conflict(_))), "{stopped:?}");
        assert_eq!(count(&session, "pg_inherits WHERE inhdetachpending").await, 1);
        session.run(&at_once).await.unwrap();

        // Meanwhile it is the first one's turn.
        retain(&address, daemon("02"), 30 * DAY).await.unwrap();
        assert_eq!(count(&session, "pg_inherits WHERE inhdetachpending").await, 1);
        // What was begun is ended, and the rest goes as well.
        reader.end(true).await.unwrap();
        retain(&address, daemon("01"), 30 * DAY).await.unwrap();
        assert_eq!(count(&session, OLD).await, 1, "what an operator detached stays");
        assert_eq!(count(&session, "almanac.executions").await, 3);
        assert_eq!(count(&session, "almanac.key_counts WHERE latest = 'calls'").await, 1);
        // A turn that has ended is the next one's.
        session.run("UPDATE almanac.leases SET until = now() - interval '1 s'").await.unwrap();
        session.run(&month(6)).await.unwrap();
        retain(&address, daemon("02"), 30 * DAY).await.unwrap();
        assert_eq!(count(&session, OLD).await, 1);
    }

    #[tokio::test]
    async fn turns_go_by_their_age() {
        let Some(server) = TestServer::start() else { return };
        let address = server.address("postgres", "");
        let session = open(&address, Migration::Auto).await.unwrap();
        session
            .run("INSERT INTO almanac.turns (tenant, session, state, at_us) VALUES ('t', 's', '{}', 0)")
            .await
            .unwrap();
        let rows = "INSERT INTO almanac.kept_turns (tenant, session, number, digest, state, at_us)
            SELECT 't', 's', number, '', '{}', (extract(epoch FROM now()) - age) * 1000000
            FROM (SELECT number, CASE WHEN number <= 2500 THEN 3000000 ELSE 1000000 END AS age
                FROM generate_series(1, 2600) AS numbers (number)) AS turns";
        session.run(rows).await.unwrap();
        let daemon = Incarnation::from_hex(&"01".repeat(16)).unwrap();
        retain(&address, daemon, 60 * DAY).await.unwrap();
        assert_eq!(count(&session, "almanac.kept_turns").await, 2600);
        retain(&address, daemon, 30 * DAY).await.unwrap();
        assert_eq!(count(&session, "almanac.kept_turns").await, 100);
        assert_eq!(count(&session, "almanac.turns").await, 1);
    }

    #[tokio::test]
    async fn what_is_within_the_retention_stays() {
        let Some(server) = TestServer::start() else { return };
        let address = server.address("postgres", "");
        let session = open(&address, Migration::Auto).await.unwrap();
        session.run(&month(3)).await.unwrap();
        let daemon = Incarnation::from_hex(&"01".repeat(16)).unwrap();
        let years = |years: u32| years * 365 * DAY;
        retain(&address, daemon, years(100)).await.unwrap();
        assert_eq!(count(&session, OLD).await, 1);
        retain(&address, daemon, years(1)).await.unwrap();
        assert_eq!(count(&session, OLD).await, 0);
    }
}
