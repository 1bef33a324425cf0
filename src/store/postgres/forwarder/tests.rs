use super::super::migrations::{Migration, open};
use super::super::test_server::{Proxy, TestServer};
use super::*;
use crate::store::suite::records::execution;
use crate::timing::Execution;

const PATIENCE: Duration = Duration::from_secs(60);

/// Long enough for a group that is answered.
const SHORT: Duration = Duration::from_millis(300);

fn group(first: i64, count: i64) -> Vec<Numbered> {
    let record = |number: i64| {
        let key = format!("k{number}");
        (number, execution("a", None, 1, (number % 2 == 0).then_some(&*key)))
    };
    (first..first + count).map(record).collect()
}

async fn numbers(session: &DatabaseSession) -> Vec<i64> {
    let rows = session.query("SELECT sequence FROM almanac.executions ORDER BY sequence", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// The commit is done, its answer is swallowed, the server is killed: sent again, the group is there once.
#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_done_once() {
    let Some(mut server) = TestServer::start() else { return };
    let direct = server.address("postgres", "");
    let mut session = open(&direct, Migration::Auto).await.unwrap();
    let mut expected = Vec::new();
    let writer = Incarnation::random().unwrap();
    for round in 0..3 {
        let proxy = Proxy::before(&server);
        let mut forwarder = Forwarder::new(proxy.address(), writer);
        let (before, lost, after) = (round * 9 + 1, round * 9 + 4, round * 9 + 7);
        assert!(forwarder.forward(&group(before, 3), PATIENCE).await.unwrap().told.is_empty());
        proxy.swallow_answers(true);
        let fault = forwarder.forward(&group(lost, 3), SHORT).await.unwrap_err();
        assert!(!fault.keeps_session() && fault.may_pass(), "{fault}");
        // It was done although nobody was told.
        while numbers(&session).await.last() != Some(&(lost + 2)) {
            tokio::task::yield_now().await;
        }
        server.kill();
        server.restart();
        proxy.swallow_answers(false);
        let again = forwarder.forward(&group(lost, 3), PATIENCE).await.unwrap();
        assert!(again.told.is_empty() && again.refused.is_empty(), "it is what it would have been at first: {again:?}");
        forwarder.forward(&group(after, 3), PATIENCE).await.unwrap();
        expected.extend(before..before + 9);
        session = DatabaseSession::open(&direct).await.unwrap();
        assert_eq!(numbers(&session).await, expected, "each once, in round {round}");
    }
}

/// What never reached the server is stored once when it is sent again, by whichever connection.
#[tokio::test]
async fn a_commit_that_was_never_done_is_done_once() {
    let Some(mut server) = TestServer::start() else { return };
    let session = open(&server.address("postgres", ""), Migration::Auto).await.unwrap();
    let proxy = Proxy::before(&server);
    let mut forwarder = Forwarder::new(proxy.address(), Incarnation::random().unwrap());
    forwarder.forward(&group(1, 2), PATIENCE).await.unwrap();
    proxy.swallow_questions(true);
    let fault = forwarder.forward(&group(3, 2), SHORT).await.unwrap_err();
    assert!(matches!(fault, DatabaseFault::Late(_) | DatabaseFault::Unreachable { .. }), "{fault}");
    assert_eq!(numbers(&session).await, [1, 2]);
    proxy.swallow_questions(false);
    forwarder.forward(&group(3, 2), PATIENCE).await.unwrap();
    // Killed without a question on its way, it is found out with the next.
    server.kill();
    server.restart();
    forwarder.forward(&group(5, 2), PATIENCE).await.unwrap();
    let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
    assert_eq!(numbers(&session).await, [1, 2, 3, 4, 5, 6]);
    assert!(forwarder.reconnects() > 0);
}

/// A server that is away is waited for, and no longer than that.
#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let Some(mut server) = TestServer::start() else { return };
    let address = server.address("postgres", "");
    drop(open(&address, Migration::Auto).await.unwrap());
    let mut forwarder = Forwarder::new(address.clone(), Incarnation::random().unwrap());
    server.kill();
    let fault = forwarder.forward(&group(1, 2), SHORT).await.unwrap_err();
    assert!(matches!(fault, DatabaseFault::Unreachable { .. }), "{fault}");
    let waiting = tokio::spawn(async move { forwarder.forward(&group(1, 2), PATIENCE).await.map(drop) });
    server.restart();
    waiting.await.unwrap().unwrap();
    assert_eq!(numbers(&DatabaseSession::open(&address).await.unwrap()).await, [1, 2]);
}

#[tokio::test]
async fn a_record_that_nobody_can_store_holds_up_no_other() {
    let Some(server) = TestServer::start() else { return };
    let session = open(&server.address("postgres", ""), Migration::Auto).await.unwrap();
    let mut forwarder = Forwarder::new(server.address("postgres", ""), Incarnation::random().unwrap());
    let mut records = group(1, 9);
    for place in [0, 5, 8] {
        records[place].1 = Execution { tool: "\0".into(), ..records[place].1.clone() };
    }
    let forwarded = forwarder.forward(&records, PATIENCE).await.unwrap();
    let refused: Vec<i64> = forwarded.refused.iter().map(|(number, _)| *number).collect();
    assert_eq!(refused, [1, 6, 9]);
    assert!(forwarded.refused.iter().all(|(_, why)| matches!(why, DatabaseFault::Record(_))));
    assert_eq!(numbers(&session).await, [2, 3, 4, 5, 7, 8]);
    // Sent again as a whole, it comes to the same.
    let again = forwarder.forward(&records, PATIENCE).await.unwrap();
    assert_eq!((again.refused.len(), again.told.len()), (3, 0));
    assert_eq!(numbers(&session).await, [2, 3, 4, 5, 7, 8]);
}
