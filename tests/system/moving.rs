//! A machine's own database is copied to the one that several daemons share.

use std::os::unix::fs::MetadataExt as _;
use std::thread;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, ask, document, wait_until};
use crate::database::DatabaseServer;
use crate::memory::{self, message, patch};

const MESSAGE: &str = "quarterly zebra figures";

fn site() -> Site {
    let site = Site::new();
    site.save("a.yaml", &document("a", "Alpha"));
    site.save("b.yaml", &document("b", "Beta"));
    site.configure("store: {host: here}\n");
    site
}

fn start_on(site: &Site, url: &str) -> Daemon {
    let mut command = site.command();
    command.env("ALMANAC_DATABASE_URL", url);
    Daemon::start(command, site.path("state/admin.sock"))
}

fn stop(mut daemon: Daemon) {
    daemon.signal("TERM");
    daemon.wait();
}

/// What the command says and its exit code.
fn migrate(site: &Site, from: &str, url: &str) -> (i32, Value) {
    migrate_with(site, from, url, &[])
}

fn migrate_with(site: &Site, from: &str, url: &str, more: &[&str]) -> (i32, Value) {
    let mut command = almanacd();
    command.arg("migrate").args(["--from", from, "--to", url, "--json", "--config"]).arg(site.path("almanac.yaml"));
    let output = command.args(more).output().unwrap();
    let (said, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let value = serde_json::from_str(&said).unwrap_or_else(|_| json!(errors));
    (output.status.code().unwrap(), value)
}

fn from(site: &Site) -> String {
    format!("sqlite://{}", site.path("state").display())
}

/// A session in which `a` and then `b` is called for a message.
fn session(daemon: &Daemon, name: &str) {
    ask(daemon, "/v1/qualify", &json!({"message": format!("{MESSAGE} of {name}"), "sessionId": name}));
    for (tool, duration) in [("a", 700), ("b", 90)] {
        let call = json!({"tool_name": tool, "duration_ms": duration, "session_id": name, "mode": "quick",
            "idempotency_key": format!("{name} {tool}")});
        assert_eq!(ask(daemon, "/v1/executions", &call)["recorded"], 1);
    }
}

/// What a daemon knows, each part by its name.
fn known(daemon: &Daemon) -> Vec<(&'static str, Value)> {
    let memories = daemon.admin("GET", "/-/memories/export", b"").json()["items"].clone();
    let timing = ask(daemon, "/v1/estimate", &json!({"tool_name": "a", "mode": "quick"}));
    let found = memory::search(daemon, "messages", &json!({"options": {"query": "kettle"}}));
    let metadata = ask(daemon, "/v1/metadata", &json!({"tool_name": "a"}));
    vec![
        ("calls", daemon.json("/v1/executions?limit=100")["items"].clone()),
        ("memories", memories),
        ("samples", timing["timing"]["samples"].clone()),
        ("median", timing["timing"]["p50_ms"].clone()),
        ("next", metadata["suggestions"]["next_tools"].clone()),
        ("scores", ask(daemon, "/v1/qualify", &json!({"message": MESSAGE, "scores": true}))["scores"].clone()),
        ("session", daemon.json("/v1/sessions/s1")["intentContext"].clone()),
        ("turns", daemon.json("/v1/sessions/s1/turns")["items"].clone()),
        ("found", json!(memory::contents(&found))),
    ]
}

fn assert_same(before: &[(&str, Value)], after: &[(&str, Value)]) {
    for ((name, one), (_, other)) in before.iter().zip(after) {
        assert_eq!(one, other, "{name}");
    }
}

fn rows(moved: &Value, sort: &str) -> [i64; 3] {
    ["here", "there", "written"].map(|side| moved[sort][side].as_i64().unwrap_or_else(|| panic!("{moved}")))
}

#[test]
fn a_machines_own_database_is_copied_while_it_is_worked_on() {
    let Some(server) = DatabaseServer::start() else { return };
    let (site, there) = (site(), site());
    let (url, from) = (server.url("postgres"), from(&site));
    let daemon = site.start();
    for name in ["s0", "s1", "s2"] {
        session(&daemon, name);
    }
    let add = |content: &str, position: u64| {
        memory::id(&memory::add(&daemon, "messages", &message(content, "th", position))).to_owned()
    };
    let ids = ["the kettle is on", "a blue kettle", "gone soon", "gone there", "deleted"]
        .iter()
        .zip(0..)
        .map(|(content, position)| add(content, position))
        .collect::<Vec<_>>();
    patch(&daemon, &ids[0], &[], &json!({"content": "the kettle is off", "metadata": {"relatedTo": [ids[1]]}}));
    // What only the journal has is copied once nobody works on it.
    wait_until("all is taken over", || daemon.json("/v1/executions?limit=100")["items"].as_array().unwrap().len() == 6);
    let (code, moved) = migrate(&site, &from, &url);
    assert_eq!((code, &moved["complete"]), (0, &json!(false)), "{moved}");
    assert_eq!((rows(&moved, "records"), rows(&moved, "memories")), ([6, 6, 6], [5, 5, 5]), "{moved}");
    assert_eq!((rows(&moved, "sessions"), rows(&moved, "choices")[2] > 0), ([3, 3, 3], true), "{moved}");
    let (code, moved) = migrate(&site, &from, &url);
    assert_eq!(code, 0);
    for sort in ["records", "memories", "sessions", "choices"] {
        let [here, there, written] = rows(&moved, sort);
        assert!(here == there && written == 0, "{sort}: {moved}");
    }

    // It goes on on both sides.
    let other = start_on(&there, &url);
    assert_eq!(other.admin("POST", "/-/memories/purge", json!({"ids": [ids[3]]}).to_string().as_bytes()).status, 200);
    session(&daemon, "s3");
    patch(&daemon, &ids[1], &[], &json!({"content": "a green kettle"}));
    assert_eq!(daemon.admin("POST", "/-/memories/purge", json!({"ids": [ids[2]]}).to_string().as_bytes()).status, 200);
    assert_eq!(daemon.send("DELETE", &format!("/v1/memories/{}", ids[4]), &[], b"").status, 200);
    // In the place of one that comes later in the order of ids, and has left it.
    let late = add("in its place", 4);
    patch(&daemon, &late, &[], &json!({"content": "in its place, again"}));
    let before = known(&daemon);
    stop(daemon);
    let (code, moved) = migrate(&site, &from, &url);
    assert_eq!((code, &moved["complete"], &moved["removed_there"]), (0, &json!(true), &json!(1)), "{moved}");
    assert_eq!((rows(&moved, "records"), rows(&moved, "memories")), ([8, 8, 2], [5, 4, 3]), "{moved}");
    assert_eq!(moved["refused"], json!([]));
    // The other daemon has it within the two seconds.
    wait_until("the other daemon follows", || {
        ask(&other, "/v1/estimate", &json!({"tool_name": "a", "mode": "quick"}))["timing"]["samples"] == 4
    });
    drop(other);

    let moved_daemon = start_on(&site, &url);
    let fleet = moved_daemon.json("/v1/fleet");
    assert_eq!(fleet["total"], 2, "what was copied is no daemon: {fleet:#}");
    let mut after = known(&moved_daemon);
    let removed = before[1].1.as_array().unwrap().iter().find(|memory| memory["id"] == json!(ids[3])).unwrap().clone();
    after[1].1.as_array_mut().unwrap().push(removed);
    let by_id = |parts: &mut Vec<(&str, Value)>| {
        parts[1].1.as_array_mut().unwrap().sort_by_key(|memory| memory["id"].to_string());
    };
    let mut before = before;
    by_id(&mut before);
    by_id(&mut after);
    assert_same(&before, &after);
    // A key that was told there is told.
    let again = json!({"tool_name": "a", "duration_ms": 700, "session_id": "s3", "mode": "quick",
        "idempotency_key": "s3 a"});
    assert_eq!(ask(&moved_daemon, "/v1/executions", &again)["recorded"], 0);
    // What it does from now on is added to what was learnt before.
    session(&moved_daemon, "s4");
    let samples = |daemon: &Daemon| {
        ask(daemon, "/v1/estimate", &json!({"tool_name": "a", "mode": "quick"}))["timing"]["samples"].clone()
    };
    assert_eq!(samples(&moved_daemon), 5);
    stop(moved_daemon);
    let (code, moved) = migrate(&site, &from, &url);
    assert_eq!((code, &moved["complete"]), (0, &json!(true)), "{moved}");
    let started = start_on(&site, &url);
    assert_eq!(samples(&started), 5);
    assert_eq!(started.json("/v1/executions?limit=100")["items"].as_array().unwrap().len(), 10);
}

#[test]
fn what_cannot_be_copied_is_said() {
    let Some(server) = DatabaseServer::start() else { return };
    let (one, two) = (site(), site());
    let url = server.url("postgres");
    let check = |site: &Site, from: &str, url: &str, code: i32, expected: &str| {
        let (got, said) = migrate(site, from, url);
        assert!(got == code && said.to_string().contains(expected), "{from}: {got}: {said}");
    };
    check(&one, &from(&one), &url, 1, "there is no database at");
    check(&one, "mysql://x", &url, 64, "names no database to copy");
    let daemons = [one.start(), two.start()];
    for (daemon, content) in daemons.iter().zip(["first", "second"]) {
        memory::add(daemon, "messages", &message(content, "th", 0));
        session(daemon, "s0");
    }
    daemons.into_iter().for_each(stop);
    check(&one, &from(&one), "postgres://postgres@127.0.0.1:1/postgres?sslmode=disable", 1, "cannot be reached");
    let (code, moved) = migrate(&one, &from(&one), &url);
    assert_eq!((code, &moved["complete"]), (0, &json!(true)), "{moved}");
    // Of two machines that kept the same place of a thread, the first has it.
    let (code, moved) = migrate(&two, &from(&two), &url);
    assert_eq!((code, &moved["complete"]), (0, &json!(true)), "{moved}");
    let refused = moved["refused"][0].as_str().unwrap();
    assert!(refused.contains("position 0 of the thread `th` is taken"), "{moved}");
    assert_eq!((rows(&moved, "records"), rows(&moved, "memories")), ([2, 2, 2], [1, 0, 0]), "{moved}");
    // An older copy of a database.
    let copy = site();
    std::fs::create_dir(copy.path("state")).unwrap();
    std::fs::copy(one.path("state/almanac.db"), copy.path("state/almanac.db")).unwrap();
    let daemon = one.start();
    session(&daemon, "s1");
    stop(daemon);
    let (code, _) = migrate(&one, &from(&one), &url);
    assert_eq!(code, 0);
    check(&copy, &from(&copy), &url, 1, "it is an older copy");
}

#[test]
fn two_copies_of_one_database_are_not_made_at_once() {
    let Some(server) = DatabaseServer::start() else { return };
    let site = site();
    let (url, from) = (server.url("postgres"), from(&site));
    let daemon = site.start();
    session(&daemon, "s0");
    stop(daemon);
    assert!(almanacd().args(["migrate", "--to", &url]).output().unwrap().status.success());
    let holder = server.hold("LOCK TABLE almanac.choices");
    let waiting = |count: &str| server.ask("SELECT count(*) FROM pg_locks WHERE NOT granted") == count;
    thread::scope(|scope| {
        wait_until("the lock", || server.ask("SELECT count(*) FROM pg_locks WHERE mode LIKE 'AccessEx%'") == "1");
        let first = scope.spawn(|| migrate(&site, &from, &url));
        wait_until("the first waits", || waiting("1"));
        let (code, said) = migrate(&site, &from, &url);
        assert!(code == 1 && said.to_string().contains("to that database is under way"), "{code}: {said}");
        assert!(!said.to_string().contains("daemon"), "{said}");
        drop(holder);
        let (code, moved) = first.join().unwrap();
        assert_eq!((code, &moved["complete"]), (0, &json!(true)), "{moved}");
    });
    let (code, moved) = migrate(&site, &from, &url);
    assert_eq!((code, &moved["complete"]), (0, &json!(true)), "{moved}");
    assert_eq!(server.ask("SELECT count(*) FROM almanac.choices"), rows(&moved, "choices")[0].to_string());
}

#[test]
fn what_was_learnt_stays_its_host_s_unless_another_is_said() {
    let Some(server) = DatabaseServer::start() else { return };
    let site = site();
    let (url, from) = (server.url("postgres"), from(&site));
    let daemon = site.start();
    session(&daemon, "s0");
    stop(daemon);
    let host = || server.ask("SELECT host FROM almanac.daemons");
    assert_eq!((migrate(&site, &from, &url).0, host().as_str()), (0, "here"));
    site.configure("store: {host: there}\n");
    let (code, said) = migrate(&site, &from, &url);
    let said = said.to_string();
    for part in ["the host here", "that of there", "--config FILE", "--host there"] {
        assert!(code == 78 && said.contains(part), "{part}: {code}: {said}");
    }
    assert_eq!(host(), "here", "nothing is changed");
    assert_eq!(migrate_with(&site, &from, &url, &["--host", "here"]).0, 0);
    assert_eq!((migrate_with(&site, &from, &url, &["--host", "there"]).0, host().as_str()), (0, "there"));
    assert_eq!(migrate(&site, &from, &url).0, 0);
    let back = format!("sqlite://{}", site.path("other").display());
    assert_eq!(migrate_with(&site, &url, &back, &["--host", "there"]).0, 64);
}

#[test]
fn what_daemons_share_is_copied_to_one_machine() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let (one, two, back) = (site(), site(), site());
    let (url, to) = (server.url("postgres"), from(&back));
    let daemons = [start_on(&one, &url), start_on(&two, &url)];
    // What is learnt depends on the order: each follows before the next session.
    for (done, (name, place)) in [("s0", 0), ("s1", 1), ("s2", 0), ("s3", 1)].into_iter().enumerate() {
        session(&daemons[place], name);
        wait_until("each follows the other", || {
            let samples = |daemon: &Daemon, tool: &str| {
                ask(daemon, "/v1/estimate", &json!({"tool_name": tool, "mode": "quick"}))["timing"]["samples"].clone()
            };
            daemons.iter().all(|daemon| ["a", "b"].iter().all(|tool| samples(daemon, tool) == done + 1))
        });
    }
    let ids = [("the kettle is on", 0), ("a blue kettle", 1), ("deleted", 2)].map(|(content, position)| {
        memory::id(&memory::add(&daemons[0], "messages", &message(content, "th", position))).to_owned()
    });
    patch(&daemons[1], &ids[0], &[], &json!({"content": "the kettle is off", "metadata": {"relatedTo": [ids[1]]}}));
    assert_eq!(daemons[0].send("DELETE", &format!("/v1/memories/{}", ids[2]), &[], b"").status, 200);
    let before = known(&daemons[1]);
    let check = |from: &str, to: &str, expected: &str| {
        let (code, said) = migrate(&back, from, to);
        assert!(code != 0 && said.to_string().contains(expected), "{code}: {said}");
        assert!(!back.path("state/almanac.db").exists());
    };
    check(&url, &url, "write `--to sqlite:///DIRECTORY`");
    check(&url, &to, "daemons work on the shared database, by");
    let [first, second] = daemons;
    stop(second);
    // One that is killed while the database is away leaves records.
    server.kill();
    let mut first = first;
    let call = json!({"tool_name": "a", "duration_ms": 700, "mode": "quick"});
    assert!(ask(&first, "/v1/executions", &call)["degraded"].is_array());
    first.child.kill().unwrap();
    first.wait();
    drop(first);
    server.restart();
    let mut left = std::fs::read_dir(one.path("state")).unwrap().map(|entry| entry.unwrap().path());
    let left = left.find(|path| path.extension().is_some_and(|extension| extension == "journal")).unwrap();
    std::fs::create_dir_all(back.path("state")).unwrap();
    let here = back.path("state").join(left.file_name().unwrap());
    std::fs::rename(left, &here).unwrap();
    wait_until("nobody looks any more", || {
        let (_, said) = migrate(&back, &url, &to);
        said.to_string().contains("has 1 record that the shared database lacks")
    });
    let sent = almanacd().args(["spool", "forward", "--to", &url]).arg(&here).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    std::fs::remove_file(here).unwrap();
    // What an earlier copy left unfinished is not in the way.
    std::fs::create_dir(back.path("state/copied")).unwrap();
    std::fs::write(back.path("state/copied/almanac.db"), "half").unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(back.path("state"), Some(65_534), Some(65_534)).unwrap();
    }
    let (code, moved) = migrate(&back, &url, &to);
    assert_eq!((code, &moved["complete"]), (0, &json!(true)), "{moved}");
    assert_eq!((rows(&moved, "records"), rows(&moved, "memories")), ([9, 9, 9], [3, 3, 3]), "{moved}");
    let owner = std::fs::metadata(back.path("state/almanac.db")).unwrap().uid();
    assert!(owner == 65_534 || !is_root, "the daemon's user could not read it: {owner}");
    assert!(!back.path("state/copied").exists());

    let daemon = back.start();
    assert_eq!(daemon.json("/v1/executions?limit=1")["items"][0]["session_id"], Value::Null);
    let after = known(&daemon);
    for (name, one) in before {
        let (_, other) = after.iter().find(|(other, _)| *other == name).unwrap();
        match name {
            // One more call was sent.
            "calls" => assert_eq!(one.as_array().unwrap(), &other.as_array().unwrap()[1..], "{name}"),
            "samples" => assert_eq!((one, other), (json!(4), &json!(5))),
            "median" => assert!(one.as_f64().unwrap() / other.as_f64().unwrap() > 0.99, "{one} {other}"),
            _ => assert_eq!(&one, other, "{name}"),
        }
    }
    let again = json!({"tool_name": "a", "duration_ms": 700, "session_id": "s3", "mode": "quick",
        "idempotency_key": "s3 a"});
    assert_eq!(ask(&daemon, "/v1/executions", &again)["recorded"], 0);
    stop(daemon);
    let (code, said) = migrate(&back, &url, &to);
    assert!(code == 1 && said.to_string().contains("there is a database at"), "{said}");
    let (code, said) = migrate(&back, &to, &url);
    assert!(code == 1 && said.to_string().contains("was copied from that database"), "{said}");
}
