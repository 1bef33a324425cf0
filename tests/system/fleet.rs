//! Several daemons on one PostgreSQL, and one whose database goes away.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, document, wait_until};
use crate::database::DatabaseServer;
use crate::memory::{self, message};

pub fn start(site: &Site, url: &str) -> Daemon {
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

pub fn database(daemon: &Daemon) -> Value {
    daemon.admin("GET", "/-/status", b"").json()["database"].clone()
}

/// While the database is away, one of two daemons counts what is the other's; not for longer.
#[test]
fn a_key_that_two_daemons_were_told_is_counted_once() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let sites = [(); 2].map(|()| Site::new());
    let url = server.url("postgres");
    let daemons = sites.each_ref().map(|site| {
        site.save("a.yaml", &document("a", "Alpha"));
        site.configure("store: {commit_within: 300ms, host: here}\n");
        start(site, &url)
    });
    let samples =
        |daemon: &Daemon| daemon.post("/v1/estimate", r#"{"tool_name":"a"}"#).json()["timing"]["samples"].clone();
    assert_eq!(daemons[0].post("/v1/executions", &call("a", "before")).status, 201);
    for daemon in &daemons {
        wait_until("the first is known", || samples(daemon) == 1);
    }
    server.kill();
    let twice = json!({"tool_name": "a", "duration_ms": 900, "session_id": "s", "idempotency_key": "k"}).to_string();
    for daemon in &daemons {
        assert_eq!(daemon.post("/v1/executions", &twice).status, 201);
    }
    server.restart();
    for daemon in &daemons {
        wait_until("it counts once", || {
            let history = daemon.json("/v1/sessions/s")["toolHistory"].clone();
            tools(daemon).len() == 2 && samples(daemon) == 2 && history == json!(["a"])
        });
    }
    // What comes then is learnt as ever.
    assert_eq!(daemons[1].post("/v1/executions", &call("a", "s")).status, 201);
    for daemon in &daemons {
        wait_until("all of it is known", || {
            samples(daemon) == 3 && daemon.json("/v1/sessions/s")["toolHistory"] == json!(["a", "a"])
        });
    }
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
    let (mut one, mut other) = (start(&here, &url), start(&there, &url));
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
    // Another store than before is not begun in silence.
    other.signal("TERM");
    other.wait();
    let alone = there.start();
    alone.log.wait_for("a daemon of this directory shared a database with others");
    drop(alone);
    let other = start(&there, &url);
    other.log.wait_for("what this one has is there only if");
    // A command is a daemon for a moment, whose end is nothing to look after.
    let command = Site::new();
    let mut recall = almanacd();
    recall.args(["recall", "messages", "kettle", "--state-dir"]).arg(command.path("state"));
    let recalled = recall.env("ALMANAC_DATABASE_URL", &url).output().unwrap();
    assert!(recalled.status.success(), "{}", String::from_utf8_lossy(&recalled.stderr));
    let fleet = other.json("/v1/fleet")["items"].clone();
    let mut states: Vec<&str> = fleet.as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap()).collect();
    states.sort_unstable();
    assert_eq!(states, ["alive", "alive", "stopped"], "{fleet}");
}

/// Each call of the session goes to the other daemon, which knows of the one before.
#[test]
fn a_session_that_moves_teaches_what_it_called() {
    let Some(server) = DatabaseServer::start() else { return };
    let (here, there) = (Site::new(), Site::new());
    for site in [&here, &there] {
        for tool in ["p", "q", "r"] {
            site.save(&format!("{tool}.yaml"), &document(tool, "t"));
        }
    }
    let url = server.url("postgres");
    let daemons = [start(&here, &url), start(&there, &url)];
    let mut called = Vec::new();
    for round in 0..9 {
        let tool = ["p", "q", "r"][round % 3];
        assert_eq!(daemons[round % 2].post("/v1/executions", &call(tool, "s")).status, 201);
        called.push(tool);
        for daemon in &daemons {
            wait_until("the call to be heard of", || {
                let session = daemon.get("/v1/sessions/s");
                session.status == 200 && session.json()["toolHistory"] == json!(called)
            });
        }
    }
    for daemon in &daemons {
        for (tool, expected) in [("p", "q: observed 3 times"), ("q", "r: observed 3 times"), ("r", "p: observed twice")]
        {
            let observed = || -> Vec<String> {
                let answer = daemon.post("/v1/metadata", &json!({"tool_name": tool}).to_string()).json();
                let next = answer["suggestions"]["next_tools"].as_array().unwrap().iter();
                let next =
                    next.map(|next| [&next["tool"], &next["reason"]].map(|text| text.as_str().unwrap()).join(": "));
                next.filter(|next| !next.contains("never observed")).collect()
            };
            let is_learnt = |observed: &[String]| observed.len() == 1 && observed[0].starts_with(expected);
            wait_until("what was learnt to be heard of", || is_learnt(&observed()));
        }
    }
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
    daemon.log.wait_for("the database cannot be used; records wait on this machine");
    let troubles = || daemon.admin("GET", "/-/status", b"").json()["troubles"].clone();
    assert!(troubles()[0].as_str().unwrap().ends_with("records that wait on this machine: 3"), "{}", troubles());
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
    daemon.log.wait_for("the database can be used again");
    assert_eq!(troubles(), json!([]));
    // What waits is told to whoever forgets the URL.
    server.kill();
    assert_eq!(daemon.post("/v1/executions", &call("d", "s")).status, 201);
    daemon.signal("KILL");
    drop(daemon);
    let alone = site.start();
    alone.log.wait_for("records wait here for a database that several daemons share");
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

#[test]
fn the_schema_is_brought_up_to_date_by_a_command() {
    let Some(server) = DatabaseServer::start() else { return };
    let site = Site::new();
    site.save("a.yaml", &document("a", "Alpha"));
    site.configure("store: {migrate: never}");
    let migrate = |arguments: &[&str]| {
        let output = almanacd().arg("migrate").args(arguments).current_dir(site.path("")).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    };
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let (got, said) = migrate(arguments);
        assert!(got == code && said.contains(expected), "{arguments:?}: {got}: {said}");
    };
    let url = server.url("postgres");
    check(&[], 64, "no database is named");
    check(&["--to", &server.url("nowhere")], 78, "no such database");
    check(&["--to", "postgres://a:secret@localhost/b"], 78, "on the command line");
    check(&["--to", &url], 0, "brought from version 0 to ");
    check(&["--to", &url], 0, "is up to date");
    let (_, said) = migrate(&["--to", &url, "--json"]);
    let change: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(change["from"], change["to"], "{change}");
    assert_eq!(database(&start(&site, &url))["reachable"], true);
}
