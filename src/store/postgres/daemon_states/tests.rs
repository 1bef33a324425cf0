use tempfile::TempDir;

use super::super::address::DatabaseAddress;
use super::super::migrations::{Migration, open};
use super::super::retention;
use super::super::test_pooler::TestPooler;
use super::super::test_server::TestServer;
use super::super::tests::{options, start};
use super::*;
use crate::store::Store;

/// The states of all, those of other daemons in the order of their hosts.
fn states(store: &dyn Store) -> Vec<(String, DaemonState)> {
    store.fleet().unwrap().daemons.into_iter().map(|daemon| (daemon.host, daemon.state)).collect()
}

/// A daemon on a host, with its directory.
fn daemon(address: &DatabaseAddress, host: &str) -> (super::super::Postgres, TempDir) {
    let directory = TempDir::new().unwrap();
    let options = super::super::PostgresOptions { host: host.into(), ..options(address.clone(), &directory) };
    (start(options), directory)
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

fn run(server: &TestServer, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
        session.run(sql).await.unwrap();
    });
}

fn named(states: &[(&str, DaemonState)]) -> Vec<(String, DaemonState)> {
    states.iter().map(|(host, state)| ((*host).to_owned(), *state)).collect()
}

#[test]
fn each_says_how_it_is_and_that_it_ends() {
    let Some(server) = TestServer::start() else { return };
    check(&server, &server.address("postgres", ""));
}

#[test]
fn each_says_so_through_a_pooler() {
    let Some(server) = TestServer::start().filter(|_| TestPooler::is_installed()) else { return };
    let pooler = TestPooler::before(&server, 2);
    check(&server, &pooler.address(&server, "postgres", ""));
}

fn check(server: &TestServer, address: &DatabaseAddress) {
    use DaemonState::{Alive, Silent, Stopped, Unknown};
    let (one, _one) = daemon(address, "a");
    let (two, _two) = daemon(address, "b");
    wait_until("both are heard of", || states(&one) == named(&[("a", Alive), ("b", Alive)]));
    let fleet = one.fleet().unwrap();
    assert_eq!((fleet.total, &fleet.degraded), (2, &None));
    assert_eq!(fleet.daemons.iter().map(|daemon| daemon.is_self).collect::<Vec<_>>(), [true, false]);
    let other = &fleet.daemons[1];
    assert_eq!(other.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert!(other.unseen < SILENT && other.started_at.unwrap() <= other.seen_at, "{other:?}");
    assert_eq!(other.figures.as_ref().unwrap().trouble, None);
    // One that is killed says nothing any more.
    run(server, "UPDATE almanac.daemon_states SET said_at = now() - interval '16 s'");
    let is_silent = |states: &[(String, DaemonState)]| states == named(&[("a", Alive), ("b", Silent)]);
    assert!(is_silent(&states(&one)), "{:?}", states(&one));
    wait_until("it speaks again", || states(&one) == named(&[("a", Alive), ("b", Alive)]));
    two.take_leave();
    two.states.readers.wait_for(two.states.say(false, PATIENCE)).unwrap();
    assert_eq!(states(&one), named(&[("a", Alive), ("b", Stopped)]));
    // One whose version does not say how it is was heard of when it wrote; what was copied is no daemon.
    run(
        server,
        "INSERT INTO almanac.daemons (daemon, host) SELECT decode(repeat(byte, 16), 'hex'), host
            FROM (VALUES ('0c', 'c'), ('0d', 'd'), ('0e', 'e'), ('0f', 'copied')) AS hosts (byte, host);
         INSERT INTO almanac.folds (incarnation, daemon, through)
            SELECT CASE host WHEN 'copied' THEN daemon ELSE set_byte(daemon, 0, 255) END, daemon, 0
            FROM almanac.daemons WHERE host IN ('c', 'd', 'copied');
         INSERT INTO almanac.writers (incarnation, through, before, moved_at)
            SELECT incarnation, 0, 0, now() - CASE host WHEN 'd' THEN interval '8 days' ELSE interval '6 days' END
            FROM almanac.folds JOIN almanac.daemons USING (daemon) WHERE host IN ('c', 'd', 'copied')",
    );
    assert_eq!(states(&one), named(&[("a", Alive), ("b", Stopped), ("c", Unknown)]));
    let unknown = one.fleet().unwrap().daemons.remove(2);
    assert_eq!((unknown.version, unknown.started_at, unknown.figures), (None, None, None));
    assert_eq!(unknown.unseen.as_secs() / (24 * 60 * 60), 6);
    run(server, "UPDATE almanac.daemon_states SET said_at = now() - interval '8 days' WHERE has_ended");
    assert_eq!(states(&one), named(&[("a", Alive), ("c", Unknown)]));
}

#[tokio::test]
async fn what_is_not_listed_any_more_goes_with_the_retention() {
    let Some(server) = TestServer::start() else { return };
    let address = server.address("postgres", "");
    let session = open(&address, Migration::Auto).await.unwrap();
    session
        .run(
            "INSERT INTO almanac.daemon_states SELECT decode(repeat(byte, 16), 'hex'), '', '1', now(),
                 now() - make_interval(days => days), false, NULL, 0, 0, NULL, 0, 0, 0
             FROM (VALUES ('0a', 6), ('0b', 7), ('0c', 8)) AS silent (byte, days)",
        )
        .await
        .unwrap();
    let incarnation = Incarnation::from_hex(&"01".repeat(16)).unwrap();
    retention::retain(&address, incarnation, Duration::from_secs(365 * 24 * 60 * 60)).await.unwrap();
    let left = session.query("SELECT encode(daemon, 'hex') FROM almanac.daemon_states", &[]).await.unwrap();
    assert_eq!(left.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["0a".repeat(16)]);
}

/// A daemon whose commits hang for it says that they do.
#[test]
fn a_word_waits_for_no_standby() {
    let Some(server) = TestServer::start() else { return };
    let (store, _directory) = daemon(&server.address("postgres", ""), "a");
    let standby = |change: &str| {
        run(&server, &format!("ALTER SYSTEM {change}"));
        run(&server, "SELECT pg_reload_conf()");
    };
    standby("SET synchronous_standby_names = 'away'");
    let readers = &store.readers;
    let is_known = async |session: &DatabaseSession| {
        let names = session.query_one("SHOW synchronous_standby_names", &[]).await?;
        Ok(names.get::<_, &str>(0) == "away")
    };
    wait_until("it is to be waited for", || readers.read(is_known).unwrap());
    readers.wait_for(store.states.say(false, PATIENCE)).unwrap();
    standby("RESET synchronous_standby_names");
}
