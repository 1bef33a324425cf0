//! What a daemon says of a PostgreSQL that is away, refuses it, or has another schema, and of what waits for it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Reply, Site, document, wait_for, wait_until};
use crate::database::DatabaseServer;
use crate::fleet::{database, start};

const HOUR: Duration = Duration::from_secs(60 * 60);

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

fn spools(site: &Site) -> Vec<PathBuf> {
    let files = fs::read_dir(site.path("state")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "journal")).collect()
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

/// Records until that is refused.
fn fill(daemon: &Daemon) -> Reply {
    wait_for("a full spool", || {
        let reply = record(daemon, 100);
        (reply.status != 201).then_some(reply)
    })
}

fn assert_full(daemon: &Daemon, refused: &Reply) {
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.text().contains("as many as it may"), "{}", refused.text());
    assert_eq!(daemon.metric("almanac_store_usable"), Some(0.0));
    assert!(troubles(daemon)[0].starts_with("nothing can be stored: the spool has"), "{:?}", troubles(daemon));
    let said = daemon.log.wait_for("nothing can be stored");
    assert!(said["reason"].as_str().unwrap().contains("as many as it may"), "{said}");
}

#[test]
fn a_full_spool_is_said_and_stays_full_after_a_restart() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let site = site("commit_within: 300ms, spool_max: 65536");
    let url = server.url("postgres");
    let mut daemon = start(&site, &url);
    assert!(!is_alone(&record(&daemon, 1)));
    server.kill();
    assert_full(&daemon, &fill(&daemon));
    let figures = |daemon: &Daemon| {
        ["almanac_spool_records", "almanac_spool_bytes"].map(|figure| daemon.metric(figure).unwrap() as u64)
    };
    let full = figures(&daemon);
    assert!(full[0] >= 100 && full[1] >= 65536, "{full:?}");
    daemon.signal("TERM");
    daemon.wait();
    let left = daemon.log.wait_for("records are on this machine alone");
    assert_eq!(left["waiting"], full[0], "{left}");
    assert!(left["directory"].as_str().unwrap().ends_with("/state"), "{left}");
    drop(daemon);
    // What it has counts for the next start, and how long it has waited.
    for spool in spools(&site) {
        File::options().append(true).open(spool).unwrap().set_modified(SystemTime::now() - HOUR).unwrap();
    }
    let daemon = start(&site, &url);
    assert_full(&daemon, &record(&daemon, 1));
    assert_eq!(figures(&daemon), full);
    assert!(daemon.metric("almanac_spool_oldest_seconds").unwrap() >= HOUR.as_secs_f64());
    server.restart();
    wait_until("there is room", || daemon.metric("almanac_store_usable") == Some(1.0));
    wait_until("all is sent", || figures(&daemon) == [0, 0]);
    assert_eq!(daemon.metric("almanac_spool_oldest_seconds"), Some(0.0));
    assert!(!is_alone(&record(&daemon, 1)));
    daemon.log.wait_for("the store works again");
    assert_eq!(daemon.log.wait_for(BACK)["sent"], full[0]);
}

/// The daemon that a shell runs is killed, and the shell starts another on the same disk.
fn kill_below(daemon: &mut Daemon) {
    let shell = daemon.child.id();
    let below = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let killed = Command::new("kill").args(["-KILL", below.trim()]).status().unwrap();
    assert!(killed.success());
    let listening = || lines(daemon, "\"message\":\"listening\"");
    wait_until("the next", || listening().len() == 2);
    let line = listening().remove(1);
    let address = line["http"].as_str().unwrap().split(' ').next().unwrap();
    daemon.address = address.strip_prefix("http://").unwrap().parse().unwrap();
}

#[test]
fn a_start_on_a_full_disk_sends_what_fills_it() {
    let Some(mut server) = DatabaseServer::start() else { return };
    server.open_to_all();
    let site = site("commit_within: 300ms");
    fs::create_dir(site.path("state")).unwrap();
    let state = site.path("state").display().to_string();
    let disk = format!("mount -t tmpfs -o size=600k,mode=755 tmpfs {state} && \"$@\"; exec \"$@\"");
    let Some(mut command) = site.command_below(&["--mount"], &disk) else { return };
    command.arg("--admin-socket").arg(site.path("admin.sock")).env("ALMANAC_DATABASE_URL", server.url("postgres"));
    let mut daemon = Daemon::start(command, site.path("admin.sock"));
    assert!(!is_alone(&record(&daemon, 1)));
    server.kill();
    let refused = fill(&daemon);
    assert!(refused.status == 503 && refused.text().contains("No space left"), "{}", refused.text());
    let waiting = database(&daemon)["waiting"].as_u64().unwrap();
    assert_eq!(daemon.metric("almanac_store_usable"), Some(0.0));
    kill_below(&mut daemon);
    let seen = format!("/proc/{}/root{state}", daemon.child.id());
    let spools = || {
        let files = fs::read_dir(&seen).unwrap().map(|entry| entry.unwrap().file_name());
        files.filter(|name| name.to_string_lossy().starts_with("spool-")).count()
    };
    assert_eq!((database(&daemon)["waiting"].as_u64(), spools()), (Some(waiting), 1));
    for _ in 0..3 {
        let refused = record(&daemon, 1);
        assert!(refused.status == 503 && refused.text().contains("No space left"), "{}", refused.text());
    }
    assert_eq!(daemon.post("/v1/estimate", r#"{"tool_name":"a"}"#).status, 200);
    assert_eq!(spools(), 1, "no file is left of one that cannot be made");
    server.restart();
    wait_until("what fills it is sent", || database(&daemon)["waiting"] == 0);
    // Nobody has to write for that to be known.
    wait_until("there is room", || daemon.metric("almanac_store_usable") == Some(1.0));
    wait_until("nothing is in the way", || troubles(&daemon).is_empty());
    assert!(!is_alone(&record(&daemon, 1)));
    assert_eq!(server.ask("SELECT count(*) FROM almanac.executions"), (waiting + 2).to_string());
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
fn who_records_does_not_wait_until_all_that_waits_is_sent() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let site = site("commit_within: 400ms");
    let mut daemon = start(&site, &server.url("postgres"));
    let waiting = |daemon: &Daemon| database(daemon)["waiting"].as_u64().unwrap();
    let fill = |daemon: &Daemon| (0..30).for_each(|_| assert!(is_alone(&record(daemon, 1000))));
    // Records until nothing waits. Returns how often some of it was sent, and not all.
    let go_on = |daemon: &Daemon| {
        let mut between = 0;
        wait_until("all is sent", || {
            assert_eq!(record(daemon, 1).status, 201);
            let waiting = waiting(daemon);
            between += usize::from((1..30_000).contains(&waiting));
            waiting == 0
        });
        between
    };
    server.kill();
    fill(&daemon);
    assert_eq!(waiting(&daemon), 30_000);
    server.restart();
    assert!(go_on(&daemon) > 0);
    // Nor does a daemon that was started with what waits.
    server.kill();
    fill(&daemon);
    daemon.child.kill().unwrap();
    daemon.wait();
    drop(daemon);
    let daemon = start(&site, &server.url("postgres"));
    server.restart();
    assert!(go_on(&daemon) > 0);
    let asked = json!({"tool_name": "a", "mode": "m".repeat(100)}).to_string();
    let estimate = || daemon.post("/v1/estimate", &asked).json();
    let stored: u64 = server.ask("SELECT count(*) FROM almanac.executions").parse().unwrap();
    wait_until("all is counted once", || estimate()["timing"]["samples"] == stored);
}

#[test]
fn a_running_daemon_makes_no_schema_in_a_database_that_was_emptied() {
    let Some(server) = DatabaseServer::start() else { return };
    let site = site("commit_within: 300ms");
    let daemon = start(&site, &server.url("postgres"));
    assert!(!is_alone(&record(&daemon, 1)));
    let dump = server.dump();
    server.ask("DROP SCHEMA almanac CASCADE");
    server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'almanacd'");
    wait_until("it is noticed", || troubles(&daemon).iter().any(|trouble| trouble.contains("has schema 0 of")));
    assert!(is_alone(&record(&daemon, 1)));
    assert_eq!(server.ask("SELECT to_regnamespace('almanac') IS NULL"), "t");
    server.restore(&dump);
    wait_until("what waits is sent", || database(&daemon)["waiting"] == 0);
    assert_eq!(server.ask("SELECT count(*) FROM almanac.executions"), "2");
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
