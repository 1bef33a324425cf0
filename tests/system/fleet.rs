//! Several daemons on one PostgreSQL, and one whose database goes away.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::daemon::{Connection, Daemon, Site, document, wait_until};
use crate::database::DatabaseServer;
use crate::memory::{self, message};

fn start(site: &Site, url: &str) -> Daemon {
    let mut command = site.command();
    command.env("ALMANAC_DATABASE_URL", url);
    Daemon::start(command, site.path("state/admin.sock"))
}

fn call(tool: &str, session: &str) -> String {
    json!({"tool_name": tool, "duration_ms": 500, "session_id": session}).to_string()
}

/// The tools of all recorded calls, the latest first.
fn tools(daemon: &Daemon) -> Vec<String> {
    let page = daemon.json("/v1/executions?limit=100");
    page["items"].as_array().unwrap().iter().map(|item| item["tool_name"].as_str().unwrap().to_owned()).collect()
}

fn database(daemon: &Daemon) -> Value {
    daemon.admin("GET", "/-/status", b"").json()["database"].clone()
}

#[test]
fn daemons_share_what_they_keep() {
    let Some(server) = DatabaseServer::start() else { return };
    let (here, there) = (Site::new(), Site::new());
    for site in [&here, &there] {
        site.save("a.yaml", &document("a", "Alpha"));
        site.save("b.yaml", &document("b", "Beta"));
    }
    let url = server.url("postgres");
    let (mut one, other) = (start(&here, &url), start(&there, &url));
    assert_eq!(database(&one)["reachable"], true);
    for tool in ["a", "b", "a", "b"] {
        let reply = one.post("/v1/executions", &call(tool, "s"));
        assert!(reply.status == 201 && reply.json().get("degraded").is_none(), "{}", reply.text());
    }
    assert_eq!(tools(&other), ["b", "a", "b", "a"]);
    assert_eq!(other.json("/v1/sessions")["items"][0]["calls"], 4);
    let added = memory::add(&one, "messages", &message("the kettle is on the stove", "th", 0));
    let looked_for = json!({"options": {"query": "kettle"}});
    let found = memory::search(&other, "messages", &looked_for);
    assert_eq!(memory::contents(&found), ["the kettle is on the stove"], "{found}");
    // At once, without any time to tidy up.
    one.child.kill().unwrap();
    one.wait();
    drop(one);
    let one = start(&here, &url);
    assert_eq!(tools(&one).len(), 4);
    let estimate = one.post("/v1/estimate", &json!({"tool_name": "a"}).to_string()).json()["timing"].clone();
    assert_eq!((&estimate["samples"], estimate["basis"].as_str()), (&json!(2), Some("history")), "{estimate}");
    assert_eq!(other.admin("POST", "/-/memories/purge", br#"{"all":true}"#).json()["purged"], 1);
    assert_eq!(one.get(&format!("/v1/memories/{}", memory::id(&added))).status, 404);
    assert_eq!(memory::contents(&memory::search(&one, "messages", &looked_for)), [""; 0]);
}

#[test]
fn a_database_that_goes_away_is_said_and_waited_for() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let (site, there) = (Site::new(), Site::new());
    site.save("a.yaml", &document("a", "Alpha"));
    site.configure("store: {commit_within: 300ms}\n");
    let daemon = start(&site, &server.url("postgres"));
    assert_eq!(daemon.post("/v1/executions", &call("a", "s")).status, 201);
    server.kill();
    for _ in 0..3 {
        let reply = daemon.post("/v1/executions", &call("b", "s"));
        assert_eq!((reply.status, &reply.json()["degraded"]), (201, &json!(["database unreachable: spooling"])));
    }
    assert_eq!(daemon.post("/v1/estimate", &json!({"tool_name": "a"}).to_string()).json()["timing"]["samples"], 1);
    let refused = daemon.post("/v1/memories/messages", &message("x", "th", 0).to_string());
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    let standing = database(&daemon);
    assert_eq!((&standing["reachable"], &standing["waiting"]), (&json!(false), &json!(3)), "{standing}");
    assert_eq!(daemon.metric("almanac_database_reachable"), Some(0.0));
    assert_eq!(daemon.metric("almanac_spool_records"), Some(3.0));
    // Who starts now starts without it.
    let later = start(&there, &server.url("postgres"));
    assert_eq!(later.post("/v1/executions", &call("c", "t")).json()["degraded"].as_array().unwrap().len(), 1);
    server.restart();
    wait_until("what waits is sent", || [&daemon, &later].iter().all(|daemon| database(daemon)["waiting"] == 0));
    let mut stored = tools(&daemon);
    stored.sort();
    assert_eq!(stored, ["a", "b", "b", "b", "c"]);
    wait_until("the history is read", || later.get("/ready").status == 200);
    assert_eq!(daemon.metric("almanac_database_reachable"), Some(1.0));
}

#[test]
fn a_wrong_setting_ends_the_start_with_a_sentence() {
    let Some(server) = DatabaseServer::start() else { return };
    let site = Site::new();
    let check = |url: &str, expected: &str| {
        let (code, said) = site.fail(&["--database-url", url]);
        assert!(code == 78 && said.contains(expected), "{code}: {said}");
    };
    check(&server.url("nowhere"), "no such database");
    check(&server.url("postgres").replace("user=postgres", "user=nobody"), "refuses the user");
    check("postgres://a:secret@localhost/b", "on the command line");
    check("mysql://localhost/b", "does not begin with `postgres://`");
    let (code, said) =
        site.configure("store: {url: 'postgres://localhost/b?sslmode=require', migrate: never}").fail(&[]);
    assert!(code == 78 && said.contains("verify-full"), "{code}: {said}");
    site.configure("store: {migrate: never}");
    check(&server.url("postgres"), "`store.migrate` is `never`");
}

/// Records calls until it is told to stop, or nobody answers. Returns those that were acknowledged.
fn keep_recording(address: SocketAddr, name: &str, stop: &AtomicBool) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let mut connection = Connection::open(address);
    for number in 0.. {
        let mode = format!("{name}-{number}");
        let body = json!({"tool_name": "a", "mode_name": mode, "duration_ms": 5, "session_id": name}).to_string();
        if stop.load(Ordering::SeqCst) {
            break;
        }
        connection.request("POST", "/v1/executions", &[("content-type", "application/json")], body.as_bytes());
        match connection.try_reply("POST") {
            Some(reply) if reply.status == 201 => acknowledged.push(mode),
            Some(_) => {}
            None => break,
        }
    }
    acknowledged
}

/// Whoever is killed, each record that was acknowledged is there once, and is counted once.
#[test]
fn whatever_was_acknowledged_is_there_once() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let sites = [(); 3].map(|()| Site::new());
    for site in &sites {
        site.save("a.yaml", &document("a", "Alpha"));
        site.configure("store: {commit_within: 300ms}\n");
    }
    let url = server.url("postgres");
    let mut daemons: Vec<Daemon> = sites.iter().map(|site| start(site, &url)).collect();
    let mut acknowledged = Vec::new();
    for round in 0..6 {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let recorders: Vec<_> = (0..6)
                .map(|place| {
                    let (address, stop) = (daemons[place % 3].address, &stop);
                    scope.spawn(move || keep_recording(address, &format!("{round}-{place}"), stop))
                })
                .collect();
            let recorded = |daemon: &Daemon| daemon.metric("almanac_store_commit_seconds_count").unwrap_or_default();
            let before = recorded(&daemons[0]);
            wait_until("some are recorded", || recorded(&daemons[0]) > before + 20.0);
            if round % 2 == 0 {
                let victim = 1 + round / 2 % 2;
                daemons[victim].child.kill().unwrap();
                daemons[victim].wait();
            } else {
                server.kill();
                let before = recorded(&daemons[0]);
                wait_until("some are spooled", || recorded(&daemons[0]) > before + 5.0);
            }
            stop.store(true, Ordering::SeqCst);
            acknowledged.extend(recorders.into_iter().flat_map(|recorder| recorder.join().unwrap()));
        });
        if round % 2 == 0 {
            let victim = 1 + round / 2 % 2;
            daemons[victim] = start(&sites[victim], &url);
        } else {
            server.restart();
        }
    }
    wait_until("what waits is sent", || daemons.iter().all(|daemon| database(daemon)["waiting"] == 0));
    let (mut stored, mut next) = (Vec::new(), String::new());
    loop {
        let page = daemons[0].json(&format!("/v1/executions?limit=100{next}"));
        stored.extend(
            page["items"].as_array().unwrap().iter().map(|item| item["mode_name"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    let count = stored.len();
    stored.sort();
    stored.dedup();
    assert_eq!(stored.len(), count, "none twice");
    let lost: Vec<&String> = acknowledged.iter().filter(|mode| stored.binary_search(mode).is_err()).collect();
    assert!(lost.is_empty(), "of {}: {lost:?}", acknowledged.len());
    // Counted once as well, whoever folded it: all of them are on one host.
    drop(daemons);
    let daemon = start(&sites[0], &url);
    let known = acknowledged.iter().step_by(acknowledged.len() / 40 + 1);
    for mode in known {
        let asked = json!({"tool_name": "a", "mode_name": mode}).to_string();
        assert_eq!(daemon.post("/v1/estimate", &asked).json()["timing"]["samples"], 1, "{mode}");
    }
}
