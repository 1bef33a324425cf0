use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;

use super::super::migrations::{Migration, open};
use super::super::session::DatabaseSession;
use super::super::test_pooler::TestPooler;
use super::super::test_server::{Proxy, TestServer};
use super::*;
use crate::store::suite::records::execution;

const PATIENCE: Duration = Duration::from_secs(60);

fn settings() -> OutboxSettings {
    OutboxSettings { commit_within: Duration::from_millis(300), ..OutboxSettings::default() }
}

fn record(tool: &str) -> Execution {
    execution(tool, None, 1, None)
}

/// The tools of all that is stored, sorted.
async fn tools(server: &TestServer) -> Vec<String> {
    let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
    let rows = session.query("SELECT tool FROM almanac.executions ORDER BY tool", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

impl Outbox {
    async fn send(&mut self, records: Vec<Execution>) -> Result<Taken, OutboxError> {
        self.send_groups(vec![records]).await
    }

    async fn forward_all(&mut self, patience: Duration) -> Result<Sent, OutboxError> {
        self.forward(patience, Duration::MAX).await
    }
}

fn is_alone(taken: &Taken) -> bool {
    matches!(taken.groups[..], [GroupKept::InJournalAlone])
}

fn is_stored(taken: &Taken) -> bool {
    matches!(taken.groups[..], [GroupKept::AtDatabase { .. }])
}

#[tokio::test]
async fn what_was_spooled_is_stored_once_whoever_is_killed() {
    let Some(mut server) = TestServer::start() else { return };
    drop(open(&server.address("postgres", ""), Migration::Auto).await.unwrap());
    let (directory, proxy) = (TempDir::new().unwrap(), Proxy::before(&server));
    let start = || Outbox::open(directory.path(), proxy.address(), settings()).unwrap();
    let mut outbox = start();
    let taken = outbox.send(vec![record("a")]).await.unwrap();
    assert!(is_stored(&taken) && taken.first == 1);
    // It is committed, and nobody is told; those behind it wait on this machine.
    proxy.swallow_answers(true);
    let taken = outbox.send(vec![record("b"), record("c")]).await.unwrap();
    assert!(is_alone(&taken) && taken.first == 2);
    assert!(outbox.trouble().is_some());
    assert!(is_alone(&outbox.send(vec![record("d")]).await.unwrap()));
    while tools(&server).await.len() < 3 {
        tokio::task::yield_now().await;
    }
    // The daemon is killed: nothing of it is tidied up. The server is, too.
    std::mem::forget(outbox);
    server.kill();
    let mut outbox = start();
    assert_eq!(outbox.waiting(), 3);
    assert!(is_alone(&outbox.send(vec![record("e")]).await.unwrap()), "it stands behind what was left");
    std::mem::forget(outbox);
    server.restart();
    proxy.swallow_answers(false);
    let mut outbox = start();
    assert_eq!(outbox.waiting(), 4, "of two earlier starts");
    let taken = outbox.send(vec![record("f")]).await.unwrap();
    assert!(is_stored(&taken), "{taken:?}");
    assert_eq!((outbox.waiting(), outbox.trouble()), (0, None));
    assert_eq!(tools(&server).await, ["a", "b", "c", "d", "e", "f"]);
    drop(outbox);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left to be sent");
    let mut again = start();
    again.forward_all(PATIENCE).await.unwrap();
    assert_eq!(tools(&server).await.len(), 6);
}

#[tokio::test]
async fn a_pooler_that_is_killed_before_it_answers_loses_nothing() {
    let Some(server) = TestServer::start().filter(|_| TestPooler::is_installed()) else { return };
    let proxy = Proxy::before(&server);
    let mut pooler = TestPooler::before_port(&server, proxy.port(), 1);
    let address = pooler.address(&server, "postgres", "");
    drop(open(&address, Migration::Auto).await.unwrap());
    let directory = TempDir::new().unwrap();
    let mut outbox = Outbox::open(directory.path(), address, settings()).unwrap();
    for round in 0..5 {
        let name = |place: u8| format!("{round}{place}");
        assert!(is_stored(&outbox.send(vec![record(&name(0))]).await.unwrap()));
        // It is committed, and the pooler does not hear of it.
        proxy.swallow_answers(true);
        assert!(is_alone(&outbox.send(vec![record(&name(1)), record(&name(2))]).await.unwrap()));
        while tools(&server).await.len() < 4 * round + 3 {
            tokio::task::yield_now().await;
        }
        pooler.kill();
        assert!(is_alone(&outbox.send(vec![record(&name(3))]).await.unwrap()));
        proxy.swallow_answers(false);
        pooler.restart(&server);
        outbox.forward_all(PATIENCE).await.unwrap();
        assert_eq!((outbox.waiting(), outbox.trouble()), (0, None));
        assert_eq!(tools(&server).await.len(), 4 * round + 4);
    }
    let stored = tools(&server).await;
    assert!(stored.windows(2).all(|pair| pair[0] != pair[1]), "{stored:?}");
}

/// The first try goes on at the server, by a connection that the pooler has given up.
#[tokio::test]
async fn a_try_that_a_pooler_left_at_the_server_is_not_repeated() {
    let Some(server) = TestServer::start().filter(|_| TestPooler::is_installed()) else { return };
    let pooler = TestPooler::before(&server, 1);
    let address = pooler.address(&server, "postgres", "");
    drop(open(&address, Migration::Auto).await.unwrap());
    let directory = TempDir::new().unwrap();
    let mut outbox = Outbox::open(directory.path(), address, settings()).unwrap();
    assert!(is_stored(&outbox.send(vec![record("a")]).await.unwrap()));
    let holder = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
    holder.begin().await.unwrap();
    holder.run("SELECT 1 FROM almanac.writers FOR UPDATE").await.unwrap();
    assert!(is_alone(&outbox.send(vec![record("b")]).await.unwrap()));
    assert!(outbox.forward_all(Duration::from_millis(100)).await.is_err());
    holder.end(false).await.unwrap();
    outbox.forward_all(PATIENCE).await.unwrap();
    assert_eq!(tools(&server).await, ["a", "b"]);
}

#[tokio::test]
async fn what_waits_is_sent_a_slice_at_a_time() {
    let Some(mut server) = TestServer::start() else { return };
    let address = server.address("postgres", "");
    drop(open(&address, Migration::Auto).await.unwrap());
    let directory = TempDir::new().unwrap();
    let start = || Outbox::open(directory.path(), address.clone(), settings()).unwrap();
    let mut outbox = start();
    server.kill();
    let count = 2 * SENT_AT_ONCE + 10;
    assert!(is_alone(&outbox.send(vec![record("a"); count]).await.unwrap()));
    std::mem::forget(outbox);
    let mut outbox = start();
    assert!(is_alone(&outbox.send(vec![record("b"); count]).await.unwrap()));
    server.restart();
    let slice = |records: usize, is_all: bool| Sent { records, lacking: 0, is_all };
    let sizes = [(SENT_AT_ONCE, false), (SENT_AT_ONCE, false), (10, true)];
    for (size, is_all) in sizes {
        assert_eq!(outbox.forward_left(PATIENCE, Duration::ZERO).await.unwrap(), slice(size, is_all));
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "the file of the earlier start is gone");
    for (size, is_all) in sizes {
        assert!(outbox.trouble().is_some(), "it is not over yet");
        assert_eq!(outbox.forward(PATIENCE, Duration::ZERO).await.unwrap(), slice(size, is_all));
    }
    assert_eq!((outbox.waiting(), outbox.trouble()), (0, None));
    assert_eq!(tools(&server).await.len(), 2 * count);
}

#[tokio::test]
async fn who_does_not_spool_refuses() {
    let Some(mut server) = TestServer::start() else { return };
    let address = server.address("postgres", "");
    drop(open(&address, Migration::Auto).await.unwrap());
    let directory = TempDir::new().unwrap();
    let refuse = OutboxSettings { when_unreachable: WhenUnreachable::Refuse, ..settings() };
    let mut outbox = Outbox::open(directory.path(), address, refuse).unwrap();
    server.kill();
    for _ in 0..2 {
        let error = outbox.send(vec![record("a")]).await.unwrap_err();
        assert!(matches!(error, OutboxError::Database(DatabaseFault::Unreachable { .. })), "{error}");
        assert_eq!(outbox.waiting(), 0);
    }
    server.restart();
    assert!(is_stored(&outbox.send(vec![record("b")]).await.unwrap()));
    assert_eq!(tools(&server).await, ["b"]);
}

#[tokio::test]
async fn a_spool_that_is_full_refuses_until_the_server_is_back() {
    let Some(mut server) = TestServer::start() else { return };
    let address = server.address("postgres", "");
    drop(open(&address, Migration::Auto).await.unwrap());
    let directory = TempDir::new().unwrap();
    let mut outbox = Outbox::open(directory.path(), address, OutboxSettings { spool_max: 300, ..settings() }).unwrap();
    server.kill();
    let mut kept = 0;
    let full = loop {
        match outbox.send(vec![record("a")]).await {
            Ok(taken) => assert!(is_alone(&taken)),
            Err(error) => break error,
        }
        kept += 1;
        assert!(kept < 20);
    };
    assert!(matches!(full, OutboxError::Spool(SpoolError::Full(_))), "{full}");
    server.restart();
    outbox.forward_all(PATIENCE).await.unwrap();
    assert!(is_stored(&outbox.send(vec![record("a")]).await.unwrap()));
    assert_eq!(tools(&server).await.len(), kept + 1);
}

#[tokio::test]
async fn the_journal_acknowledges_where_it_is_to() {
    let Some(server) = TestServer::start() else { return };
    let address = server.address("postgres", "");
    drop(open(&address, Migration::Auto).await.unwrap());
    let directory = TempDir::new().unwrap();
    let by_journal = OutboxSettings { acknowledge: Acknowledge::Journal, ..settings() };
    let mut outbox = Outbox::open(directory.path(), address, by_journal).unwrap();
    let keyed = |tool: &str, key: &str| execution(tool, None, 1, Some(key));
    assert!(matches!(
        outbox.send(vec![keyed("a", "k"), record("\0")]).await.unwrap().groups[..],
        [GroupKept::InJournal]
    ));
    assert!(matches!(
        outbox.send(vec![keyed("a", "k"), record("b")]).await.unwrap().groups[..],
        [GroupKept::InJournal]
    ));
    assert_eq!((tools(&server).await.len(), outbox.waiting()), (0, 4));
    outbox.forward_all(PATIENCE).await.unwrap();
    assert_eq!(tools(&server).await, ["a", "b"], "once, and what cannot be stored holds up nothing");
    let refused = std::fs::read_to_string(directory.path().join("spool.refused")).unwrap();
    assert_eq!(refused.lines().count(), 1, "{refused}");
}

/// Sends records of these names until it is stopped, and notes each that was acknowledged.
async fn keep_sending(mut outbox: Outbox, prefix: String, acknowledged: Arc<Mutex<Vec<String>>>) {
    for number in 0.. {
        let name = format!("{prefix}.{number}");
        if outbox.send(vec![record(&name)]).await.is_ok() {
            acknowledged.lock().push(name);
        }
        // What is spooled is sent as soon as it can be.
        let _ = outbox.forward_all(Duration::from_millis(50)).await;
    }
}

/// Three daemons, each of which ends in the middle of what it does, and a server that is killed now and then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_acknowledged_is_stored_once() {
    let Some(mut server) = TestServer::start() else { return };
    drop(open(&server.address("postgres", ""), Migration::Auto).await.unwrap());
    let directories = [(); 3].map(|()| TempDir::new().unwrap());
    let acknowledged: Arc<Mutex<Vec<String>>> = Arc::default();
    for round in 0..8 {
        let address = server.address("postgres", "");
        let start = |(place, directory): (usize, &TempDir)| {
            let outbox = Outbox::open(directory.path(), address.clone(), settings()).unwrap();
            tokio::spawn(keep_sending(outbox, format!("{round}.{place}"), Arc::clone(&acknowledged)))
        };
        let daemons: Vec<_> = directories.iter().enumerate().map(start).collect();
        let wait_for = async |more: usize| {
            let enough = acknowledged.lock().len() + more;
            while acknowledged.lock().len() < enough {
                tokio::task::yield_now().await;
            }
        };
        wait_for(20 + round * 7).await;
        if round % 2 == 1 {
            server.kill();
            // These are on their own machines alone.
            wait_for(5).await;
        }
        if round % 4 == 3 {
            server.restart();
            wait_for(5).await;
        }
        for daemon in daemons {
            daemon.abort();
            assert!(daemon.await.unwrap_err().is_cancelled());
        }
        if round % 4 == 1 {
            server.restart();
        }
    }
    for directory in &directories {
        let mut outbox = Outbox::open(directory.path(), server.address("postgres", ""), settings()).unwrap();
        outbox.forward_all(PATIENCE).await.unwrap();
        assert_eq!(outbox.waiting(), 0);
    }
    let stored = tools(&server).await;
    assert!(stored.windows(2).all(|pair| pair[0] != pair[1]), "none twice");
    let acknowledged = acknowledged.lock();
    let lost: Vec<&String> = acknowledged.iter().filter(|name| stored.binary_search(name).is_err()).collect();
    assert!(lost.is_empty(), "of {}: {lost:?}", acknowledged.len());
}

#[tokio::test]
async fn a_group_is_kept_as_a_whole_and_fails_no_other() {
    let Some(server) = TestServer::start() else { return };
    let address = server.address("postgres", "");
    drop(open(&address, Migration::Auto).await.unwrap());
    let directory = TempDir::new().unwrap();
    let mut outbox = Outbox::open(directory.path(), address, settings()).unwrap();
    let keyed = |tool: &str, digest: &str| {
        let key = crate::timing::CallKey { name: "k".into(), digest: digest.into() };
        Execution { idempotency_key: Some(key), ..record(tool) }
    };
    let groups = vec![vec![keyed("a", "1")], vec![record("b"), record("\0")], vec![record("c"), record("d")]];
    let taken = outbox.send_groups(groups).await.unwrap();
    let is_refused = |kept: &GroupKept| matches!(kept, GroupKept::Refused(DatabaseFault::Record(_)));
    assert_eq!(taken.groups.iter().map(is_refused).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(tools(&server).await, ["a", "c", "d"]);
    let again = outbox.send_groups(vec![vec![record("e"), keyed("x", "2")], vec![keyed("a", "1"), record("f")]]).await;
    let again = again.unwrap();
    assert!(matches!(again.groups[0], GroupKept::Refused(DatabaseFault::KeyReused)), "{again:?}");
    assert!(matches!(&again.groups[1], GroupKept::AtDatabase { told } if told[..] == [again.first + 2]), "{again:?}");
    assert_eq!(tools(&server).await, ["a", "c", "d", "f"]);
}
