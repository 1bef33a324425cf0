//! The schema `almanac`, as the steps that led to it, each one transaction. A step that shipped is never changed, and
//! takes nothing away that the program before it needs; so a daemon works with a schema one step newer.

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use super::session::DatabaseSession;
use crate::strict::Word;

/// Each brings the schema from the version of its index to the next.
const STEPS: &[&str] = &[
    include_str!("migrations/records.sql"),
    include_str!("migrations/learnt.sql"),
    include_str!("migrations/notes.sql"),
    include_str!("migrations/memories.sql"),
    include_str!("migrations/following.sql"),
    include_str!("migrations/retention.sql"),
    include_str!("migrations/kept_turns.sql"),
    // One step: a daemon works with a schema that is one newer.
    concat!(include_str!("migrations/daemon_states.sql"), include_str!("migrations/moved.sql")),
    include_str!("migrations/purged_texts.sql"),
];

/// What is locked while the schema changes, for as long as the transaction lasts.
pub(super) const LOCK: i64 = 0x0061_6c6d_616e_6163;

/// May the daemon bring the schema up to date itself?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum Migration {
    /// At the start.
    Auto,
    /// Only by somebody else.
    Never,
}

/// Connects, with a schema that fits.
///
/// # Errors
/// Also if the role may not write.
pub async fn open(address: &DatabaseAddress, migration: Migration) -> Result<DatabaseSession, DatabaseFault> {
    let session = DatabaseSession::open(address).await?;
    migrate(&session, migration).await?;
    check_rights(&session).await?;
    Ok(session)
}

/// Connects again, unless the schema is too new by now. One that is too old is found by who looks for the server.
///
/// # Errors
/// Also if the server cannot be reached.
pub(super) async fn open_again(address: &DatabaseAddress) -> Result<DatabaseSession, DatabaseFault> {
    let session = DatabaseSession::open(address).await?;
    refuse_newer(version(&session).await?)?;
    Ok(session)
}

/// At most one step newer than this program's is what it works with.
fn refuse_newer(found: i32) -> Result<(), DatabaseFault> {
    let known = STEPS.len() as i32;
    if found > known + 1 { Err(DatabaseFault::NewerSchema { found, known }) } else { Ok(()) }
}

/// The versions of a schema before and after it was brought up to date; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaChange {
    pub from: i32,
    pub to: i32,
}

/// Brings the schema up to date, whatever daemons are told.
///
/// # Errors
/// Also if the schema is more than one step newer than this program's, or the role may not change it.
pub async fn bring_up_to_date(address: &DatabaseAddress) -> Result<SchemaChange, DatabaseFault> {
    let session = DatabaseSession::open(address).await?;
    let from = version(&session).await?;
    Ok(SchemaChange { from, to: migrate(&session, Migration::Auto).await? })
}

/// Brings the schema up to date, and returns its version: at most one newer than this program's.
async fn migrate(session: &DatabaseSession, migration: Migration) -> Result<i32, DatabaseFault> {
    let known = STEPS.len() as i32;
    let mut found = version(session).await?;
    refuse_newer(found)?;
    if found > known {
        tracing::warn!(found, known, "the database was written by a newer almanacd; this one works with it");
    }
    while let Some(step) = usize::try_from(found).ok().and_then(|done| STEPS.get(done)) {
        if migration == Migration::Never {
            return Err(DatabaseFault::OlderSchema { found, known });
        }
        let applied = apply(session, found + 1, step).await;
        let now = version(session).await?;
        if now == found {
            applied?;
        }
        // Else another daemon did it, or this one.
        tracing::info!(version = now, "the schema of the database is brought up to date");
        found = now;
    }
    Ok(found)
}

/// The version of the schema; 0 if there is none.
async fn version(session: &DatabaseSession) -> Result<i32, DatabaseFault> {
    let there = session.query_one("SELECT to_regclass('almanac.migrations') IS NOT NULL", &[]).await?;
    if !there.get::<_, bool>(0) {
        return Ok(0);
    }
    let latest = session.query_one("SELECT coalesce(max(number), 0) FROM almanac.migrations", &[]).await?;
    Ok(latest.get(0))
}

/// Takes a step. Several statements that are sent as one are one transaction.
async fn apply(session: &DatabaseSession, number: i32, step: &str) -> Result<(), DatabaseFault> {
    let there = session.query_one("SELECT to_regnamespace('almanac') IS NOT NULL", &[]).await?;
    // To make it if it is not there needs a right that who made it before may have taken away.
    let schema = if there.get(0) { "" } else { "CREATE SCHEMA almanac;" };
    let migrations = "CREATE TABLE IF NOT EXISTS almanac.migrations (
                          number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());";
    session
        .run(&format!(
            "SELECT set_config('lock_timeout', '10s', true);
             SELECT pg_advisory_xact_lock({LOCK});
             {schema}{migrations}
             INSERT INTO almanac.migrations (number) VALUES ({number});
             {step}"
        ))
        .await
}

/// May the role do what a daemon does? It is asked before the first record has to wait for it.
async fn check_rights(session: &DatabaseSession) -> Result<(), DatabaseFault> {
    let query = "SELECT tables.name, needed.privilege
        FROM unnest(ARRAY['writers', 'call_keys', 'executions', 'daemons', 'folds', 'key_counts', 'trails', 'turns',
            'choices', 'adaptations', 'memory_tenants', 'memories', 'memory_history', 'memory_links', 'memory_keys',
            'memory_gone', 'purges', 'leases', 'kept_turns', 'daemon_states', 'moved']) AS tables (name),
             unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed (privilege)
        WHERE NOT has_table_privilege('almanac.' || tables.name, needed.privilege) LIMIT 1";
    match session.query(query, &[]).await?.first() {
        Some(row) => {
            let (table, privilege): (String, String) = (row.get(0), row.get(1));
            Err(DatabaseFault::MayNot(format!("{privilege} on almanac.{table}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_server::TestServer;
    use super::*;

    async fn said(address: &DatabaseAddress, migration: Migration) -> String {
        open(address, migration).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn the_schema_is_made_once_and_faults_are_said() {
        let Some(server) = TestServer::start() else { return };
        let address = server.address("postgres", "");
        let none = open(&address, Migration::Never).await.unwrap_err();
        assert!(matches!(none, DatabaseFault::OlderSchema { found: 0, .. }) && none.is_setting(), "{none}");
        assert!(none.to_string().ends_with("run `almanacd migrate`"), "{none}");
        // Daemons that start together do it once.
        let starts: Vec<_> = (0..6)
            .map(|_| {
                let address = address.clone();
                tokio::spawn(async move { open(&address, Migration::Auto).await.map(drop) })
            })
            .collect();
        for start in starts {
            start.await.unwrap().unwrap();
        }
        let session = open(&address, Migration::Never).await.unwrap();
        let steps: i64 = session.query_one("SELECT count(*) FROM almanac.migrations", &[]).await.unwrap().get(0);
        assert_eq!(steps as usize, STEPS.len());
        // A role that may read only.
        session.run("CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA almanac TO reader").await.unwrap();
        session.run("GRANT SELECT ON ALL TABLES IN SCHEMA almanac TO reader").await.unwrap();
        let reader = server.address("reader", "/postgres");
        let said_of_reader = said(&reader, Migration::Auto).await;
        assert!(said_of_reader.starts_with("the role may not do that: INSERT on almanac."), "{said_of_reader}");
        // A role that may not make the schema.
        session.run("CREATE DATABASE empty").await.unwrap();
        let stranger = server.address("reader", "/empty");
        let refused = open(&stranger, Migration::Auto).await.unwrap_err();
        assert!(matches!(refused, DatabaseFault::MayNot(_)) && refused.is_setting(), "{refused}");
        // A step newer works, two do not.
        let newer = "INSERT INTO almanac.migrations (number) SELECT max(number) + 1 FROM almanac.migrations";
        session.run(newer).await.unwrap();
        open(&address, Migration::Never).await.unwrap();
        session.run(newer).await.unwrap();
        let refused = open(&address, Migration::Auto).await.unwrap_err();
        assert!(matches!(refused, DatabaseFault::NewerSchema { .. }) && refused.is_setting(), "{refused}");
        let refused = open_again(&address).await.unwrap_err();
        assert!(matches!(refused, DatabaseFault::NewerSchema { .. }), "{refused}");
        let older = "DELETE FROM almanac.migrations WHERE number = (SELECT max(number) FROM almanac.migrations)";
        session.run(older).await.unwrap();
        open_again(&address).await.unwrap();
    }

    #[tokio::test]
    async fn a_step_that_fails_leaves_nothing() {
        let Some(server) = TestServer::start() else { return };
        let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
        let half = "CREATE TABLE almanac.half (a int); SELECT * FROM nowhere";
        apply(&session, 1, half).await.unwrap_err();
        assert_eq!(version(&session).await.unwrap(), 0);
        let there = session.query_one("SELECT to_regnamespace('almanac') IS NOT NULL", &[]).await.unwrap();
        assert!(!there.get::<_, bool>(0));
        assert_eq!(migrate(&session, Migration::Auto).await.unwrap() as usize, STEPS.len());
    }
}
