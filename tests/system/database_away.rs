//! What a daemon says of a PostgreSQL that is away, refuses it, or has another schema.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Reply, Site, document, wait_until};
use crate::database::DatabaseServer;
use crate::fleet::{database, start};

fn site(store: &str) -> Site {
    let site = Site::new();
    site.save("a.yaml", &document("a", "Alpha"));
    site.configure(&format!("store: {{{store}}}\n"));
    site
}

/// Records so many calls at once.
fn record(daemon: &Daemon, count: usize) -> Reply {
    let call = json!({"tool_name": "a", "mode_name": "m".repeat(100), "duration_ms": 5});
    daemon.post("/v1/executions", &Value::from(vec![call; count]).to_string())
}

fn is_alone(reply: &Reply) -> bool {
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json()["degraded"] == json!(["database unreachable: spooling"])
}

fn troubles(daemon: &Daemon) -> Vec<String> {
    let said = daemon.admin("GET", "/-/status", b"").json()["troubles"].clone();
    said.as_array().unwrap().iter().map(|trouble| trouble.as_str().unwrap().to_owned()).collect()
}

/// The lines of the log that say something, oldest first.
fn lines(daemon: &Daemon, message: &str) -> Vec<Value> {
    let text = daemon.log.text();
    text.lines().filter(|line| line.contains(message)).map(|line| serde_json::from_str(line).unwrap()).collect()
}

const AWAY: &str = "the database cannot be used";
const BACK: &str = "the database can be used again";

#[test]
fn who_records_nothing_notices_it() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let site = site("");
    let daemon = start(&site, &server.url("postgres"));
    let looked_for = json!({"options": {"query": "kettle"}}).to_string();
    let search = || daemon.post("/v1/memories/messages/search", &looked_for).status;
    assert_eq!((daemon.metric("almanac_database_reachable"), search()), (Some(1.0), 200));
    server.kill();
    wait_until("it is noticed", || daemon.metric("almanac_database_reachable") == Some(0.0));
    assert_eq!(search(), 503);
    let standing = database(&daemon);
    assert!(standing["reachable"] == false && standing["waiting"] == 0, "{standing}");
    assert!(troubles(&daemon)[0].contains("cannot be reached"), "{:?}", troubles(&daemon));
    assert!(daemon.log.wait_for(AWAY)["fault"].as_str().unwrap().contains("cannot be reached"));
    assert_eq!(daemon.metric("almanac_store_usable"), Some(1.0), "records would wait here");
    server.restart();
    wait_until("it is back", || daemon.metric("almanac_database_reachable") == Some(1.0));
    assert_eq!((search(), troubles(&daemon)), (200, Vec::new()));
    daemon.log.wait_for(BACK);
    assert_eq!((lines(&daemon, AWAY).len(), lines(&daemon, BACK).len()), (1, 1), "{}", daemon.log.text());
}

#[test]
fn the_log_says_the_cause_as_it_is_and_what_was_sent() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let site = site("commit_within: 300ms");
    let daemon = start(&site, &server.url("postgres"));
    server.kill();
    assert!(is_alone(&record(&daemon, 70)) && is_alone(&record(&daemon, 66)));
    daemon.log.wait_for("cannot be reached");
    server.admit("local all all reject\n");
    server.restart();
    daemon.log.wait_for("the database server refuses the user");
    server.kill();
    server.admit("local all all trust\n");
    server.restart();
    assert_eq!(daemon.log.wait_for(BACK)["sent"], 136);
    let said = lines(&daemon, AWAY);
    assert!(said.len() <= 3, "{said:?}");
}

#[test]
fn a_schema_that_became_too_new_is_noticed_when_a_connection_is_lost() {
    let Some(server) = DatabaseServer::start() else { return };
    let site = site("commit_within: 10s");
    let daemon = start(&site, &server.url("postgres"));
    let cut_off =
        || server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'almanacd'");
    let newer = || {
        server.ask("INSERT INTO almanac.migrations (number) SELECT max(number) + 1 FROM almanac.migrations");
        cut_off();
    };
    newer();
    assert!(!is_alone(&record(&daemon, 1)), "one step newer is worked with");
    newer();
    assert!(is_alone(&record(&daemon, 1)));
    assert!(troubles(&daemon)[0].contains("written by a newer almanacd"), "{:?}", troubles(&daemon));
    assert_eq!(server.ask("SELECT count(*) FROM almanac.executions"), "1");
    server.ask("DELETE FROM almanac.migrations WHERE number = (SELECT max(number) FROM almanac.migrations)");
    wait_until("what waits is sent", || database(&daemon)["waiting"] == 0);
    assert_eq!(server.ask("SELECT count(*) FROM almanac.executions"), "2");
}
