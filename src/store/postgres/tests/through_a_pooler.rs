//! What a daemon does through a pooler, which hands each transaction to any of few connections.

use super::*;
use crate::store::suite::memories::{add, draft};

fn can_be() -> bool {
    is_installed() && TestPooler::is_installed()
}

/// A server with a pooler that has `size` connections to each database.
fn pooled(size: usize) -> Option<(TestServer, TestPooler)> {
    let server = TestServer::start()?;
    let pooler = TestPooler::is_installed().then(|| TestPooler::before(&server, size))?;
    Some((server, pooler))
}

fn pooled_site() -> Box<dyn Site> {
    site_through(|server| Some(TestPooler::before(server, 2)))
}

keeps_the_contract!(pooled_site, where can_be);

/// Each holds a connection for a transaction at most, so two are enough for many.
#[test]
fn three_daemons_share_two_connections() {
    let Some((server, pooler)) = pooled(2) else { return };
    let directories = [(); 3].map(|()| TempDir::new().unwrap());
    let daemons =
        directories.each_ref().map(|directory| start(options(pooler.address(&server, "postgres", ""), directory)));
    std::thread::scope(|scope| {
        for (place, daemon) in daemons.iter().enumerate() {
            for writer in 0..4 {
                scope.spawn(move || {
                    for number in 0..20 {
                        let stored = append(daemon, vec![call(&format!("{place}{writer}"), "a", number)]).unwrap();
                        assert_eq!(stored.degraded, None);
                        add(daemon.memories(), "default", draft("tea", &serde_json::json!({}))).unwrap();
                        daemon.note(vec![turn("s", &number.to_string())]).unwrap();
                    }
                });
            }
        }
    });
    let own = ExecutionFilter { tenant: "default".into(), limit: 1000, ..ExecutionFilter::default() };
    for daemon in &daemons {
        assert_eq!(daemon.executions(&own).unwrap().calls.len(), 3 * 4 * 20);
    }
}

#[tokio::test]
async fn a_transaction_that_is_left_is_undone_and_holds_up_none() {
    let Some((server, pooler)) = pooled(1) else { return };
    let address = pooler.address(&server, "postgres", "");
    let left = super::migrations::open(&address, Migration::Auto).await.unwrap();
    left.begin().await.unwrap();
    left.run("INSERT INTO almanac.leases (name, daemon, until) VALUES ('x', '', now())").await.unwrap();
    drop(left);
    let next = DatabaseSession::open(&address).await.unwrap();
    let count = next.query_one("SELECT count(*) FROM almanac.leases", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 0);
    let level = next.query_one("SELECT current_setting('synchronous_commit')", &[]).await.unwrap();
    assert_eq!(level.get::<_, &str>(0), "on");
}

#[test]
fn a_server_that_goes_away_behind_it_is_waited_for() {
    let Some((mut server, mut pooler)) = pooled(2) else { return };
    let directory = TempDir::new().unwrap();
    let mut options = options(pooler.address(&server, "postgres", ""), &directory);
    options.outbox.commit_within = Duration::from_millis(300);
    let store = start(options);
    let degraded = |tool: &str| append(&store, vec![call("s", tool, 1)]).unwrap().degraded.is_some();
    assert!(!degraded("a"));
    server.kill();
    assert!(degraded("b"));
    let is_sent = || store.standings().unwrap().waiting == 0;
    server.restart();
    wait_until("what waits is sent", is_sent);
    pooler.kill();
    assert!(degraded("c"));
    pooler.restart(&server);
    wait_until("what waits is sent", is_sent);
    let own = ExecutionFilter { tenant: "default".into(), limit: 10, ..ExecutionFilter::default() };
    let tools: Vec<String> =
        store.executions(&own).unwrap().calls.into_iter().map(|call| call.execution.tool).collect();
    assert_eq!(tools, ["c", "b", "a"]);
}

/// A pooler may say it without the code that would end the start.
#[test]
fn what_is_wrong_with_a_setting_is_said_through_it() {
    let Some((server, pooler)) = pooled(2) else { return };
    let directory = TempDir::new().unwrap();
    let check = |address: DatabaseAddress, expected: &str| {
        let said = match Postgres::start(options(address, &directory), Box::new(|_, _| ())) {
            Ok(store) => store.unreadable().unwrap(),
            Err(fault) => fault.to_string(),
        };
        assert!(said.contains(expected), "{said}");
    };
    check(pooler.address(&server, "postgres", "/nowhere"), "\"nowhere\" does not exist");
    check(pooler.address(&server, "nobody", ""), "authentication failed");
}
