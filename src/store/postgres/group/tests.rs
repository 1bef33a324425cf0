use super::super::migrations::{Migration, open};
use super::super::partitions::prepare;
use super::super::test_server::TestServer;
use super::*;
use crate::store::suite::records::execution;
use crate::timing::{CallKey, Measures, Outcome};

const PATIENCE: Duration = Duration::from_secs(30);

async fn ready(server: &TestServer) -> DatabaseSession {
    let session = open(&server.address("postgres", ""), Migration::Auto).await.unwrap();
    prepare(&session).await.unwrap();
    session
}

fn keyed(tenant: &str, tool: &str, key: &str, digest: &str) -> Execution {
    let key = CallKey { name: key.into(), digest: digest.into() };
    Execution { tenant: tenant.into(), idempotency_key: Some(key), ..execution(tool, None, 1, None) }
}

/// Tenant, tool and number of all that is stored.
async fn stored(session: &DatabaseSession) -> Vec<(String, String, i64)> {
    let query = "SELECT tenant, tool, sequence FROM almanac.executions ORDER BY id";
    let rows = session.query(query, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

#[tokio::test]
async fn a_record_is_stored_as_it_is() {
    let Some(server) = TestServer::start() else { return };
    let session = ready(&server).await;
    let writer = Incarnation::random().unwrap();
    let full = Execution {
        mode: Some("m".into()),
        outcome: Outcome::Error,
        measures: Measures {
            content_length: Some(1),
            num_perspectives: Some(2),
            num_branches: Some(3),
            thinking_budget: Some(4),
            context_tokens: Some(u64::MAX),
        },
        at_ms: -5,
        ..keyed("t", "ä", "k", "d")
    };
    let bare =
        Execution { duration_ms: None, session: None, measures: Measures::default(), ..execution("b", None, 0, None) };
    commit(&session, writer, &[(1, full), (2, bare)], PATIENCE).await.unwrap();
    let rows = session
        .query(
            "SELECT format('%s %s %s %s %s %s %s', tenant, tool, mode, outcome, failed, duration_ms, session),
                    format('%s %s %s %s %s %s', content_length, num_perspectives, num_branches, thinking_budget,
                           context_tokens, at_ms), incarnation
             FROM almanac.executions ORDER BY id",
            &[],
        )
        .await
        .unwrap();
    let texts: Vec<(&str, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(texts, [("t ä m error t 1 s", "1 2 3 4 -1 -5"), ("default b  success f  ", "     1700000000000")]);
    assert!(rows.iter().all(|row| row.get::<_, &[u8]>(2) == writer.bytes()));
}

#[tokio::test]
async fn a_key_stands_for_what_was_told_under_it() {
    let Some(server) = TestServer::start() else { return };
    let session = ready(&server).await;
    let [one, other] = [(); 2].map(|()| Incarnation::random().unwrap());
    let send = async |writer, records: &[Numbered]| commit(&session, writer, records, PATIENCE).await;
    let first = [(1, keyed("t", "a", "k", "1")), (2, keyed("t", "b", "k", "1")), (3, keyed("u", "c", "k", "2"))];
    assert_eq!(send(one, &first).await.unwrap(), [2], "told twice in one group");
    assert_eq!(send(one, &first).await.unwrap(), [2], "sent again, it is the same");
    assert_eq!(send(one, &[(4, keyed("t", "d", "k", "1")), (5, keyed("t", "e", "l", "1"))]).await.unwrap(), [4]);
    assert_eq!(send(other, &[(1, keyed("t", "f", "k", "")), (2, keyed("t", "g", "m", ""))]).await.unwrap(), [1]);
    assert_eq!(send(other, &[(3, keyed("t", "h", "m", "x"))]).await.unwrap(), [3], "one without digest is any");
    // Of a group with another body under a key nothing is stored, nor is it moved on.
    let reused = [(4, execution("i", None, 1, None)), (5, keyed("t", "j", "k", "2"))];
    assert!(matches!(send(other, &reused).await, Err(DatabaseFault::KeyReused)));
    let differing = [(4, keyed("t", "j", "n", "1")), (5, keyed("t", "j", "n", "2"))];
    assert!(matches!(send(other, &differing).await, Err(DatabaseFault::KeyReused)));
    assert!(send(other, &reused[..1]).await.unwrap().is_empty());
    let tools: Vec<String> = stored(&session).await.into_iter().map(|(_, tool, _)| tool).collect();
    assert_eq!(tools, ["a", "c", "e", "g", "i"]);
}

#[tokio::test]
async fn a_group_that_is_sent_again_is_stored_once() {
    let Some(server) = TestServer::start() else { return };
    let session = ready(&server).await;
    let writer = Incarnation::random().unwrap();
    let records: Vec<Numbered> = (1..=6).map(|number| (number, execution("a", None, 1, None))).collect();
    // In parts, again, and begun within what was there.
    for part in [0..2, 0..2, 0..4, 3..4, 2..6, 0..6] {
        commit(&session, writer, &records[part], PATIENCE).await.unwrap();
    }
    let numbers: Vec<i64> = stored(&session).await.into_iter().map(|(.., number)| number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let row = session.query_one("SELECT through, before FROM almanac.writers", &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (6, 6));
}

/// The first try hangs at a lock when its connection is lost; the second waits for it.
#[tokio::test]
async fn a_second_try_waits_for_the_first() {
    let Some(server) = TestServer::start() else { return };
    let session = ready(&server).await;
    let address = server.address("postgres", "");
    let holder = DatabaseSession::open(&address).await.unwrap();
    holder.run("BEGIN; INSERT INTO almanac.call_keys VALUES ('t', 'k', '1', '', 0)").await.unwrap();
    let writer = Incarnation::random().unwrap();
    let records = [(1, keyed("t", "a", "k", "1")), (2, execution("b", None, 1, None))];
    let first = DatabaseSession::open(&address).await.unwrap();
    let lost = commit(&first, writer, &records, Duration::from_millis(50)).await;
    assert!(matches!(&lost, Err(fault @ DatabaseFault::Late(_)) if !fault.keeps_session()));
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let wait_for = async |count: i64| {
        while session.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < count {
            tokio::task::yield_now().await;
        }
    };
    wait_for(1).await;
    drop(first);
    let second = tokio::spawn(async move {
        let session = DatabaseSession::open(&address).await.unwrap();
        commit(&session, writer, &records, PATIENCE).await
    });
    wait_for(2).await;
    holder.run("ROLLBACK").await.unwrap();
    assert!(second.await.unwrap().unwrap().is_empty());
    assert_eq!(stored(&session).await.len(), 2);
}

/// Groups of several writers have the same keys in opposite orders.
#[tokio::test]
async fn writers_with_the_same_keys_do_not_lock_each_other_out() {
    let Some(server) = TestServer::start() else { return };
    let session = ready(&server).await;
    let writers: Vec<_> = (0..4)
        .map(|place| {
            let address = server.address("postgres", "");
            tokio::spawn(async move {
                let (session, writer) =
                    (DatabaseSession::open(&address).await.unwrap(), Incarnation::random().unwrap());
                let mut told = 0;
                for round in 0..10 {
                    let mut names: Vec<i64> = (0..40).collect();
                    if place % 2 == 0 {
                        names.reverse();
                    }
                    let key = |name: &i64| keyed("t", "a", &format!("{round}.{name}"), "");
                    let records: Vec<Numbered> = (round * 40 + 1..).zip(names.iter().map(key)).collect();
                    told += commit(&session, writer, &records, PATIENCE).await.unwrap().len();
                }
                told
            })
        })
        .collect();
    let mut told = 0;
    for writer in writers {
        told += writer.await.unwrap();
    }
    assert_eq!((told, stored(&session).await.len()), (3 * 400, 400));
}

/// A server that was told not to wait for its disk waits for it all the same.
#[tokio::test]
async fn what_was_answered_survives_a_kill() {
    let settings = "synchronous_commit = off\nwal_writer_delay = 10s";
    let Some(mut server) = TestServer::with(settings, "local all all trust\n") else { return };
    let session = ready(&server).await;
    let writer = Incarnation::random().unwrap();
    for number in 1..=20 {
        commit(&session, writer, &[(number, execution("a", None, 1, None))], PATIENCE).await.unwrap();
    }
    server.kill();
    server.restart();
    let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
    assert_eq!(stored(&session).await.len(), 20);
}
