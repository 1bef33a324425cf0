//! Daemons on one PostgreSQL answer with what the others were told, while they run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, ask, document, wait_until};
use crate::database::DatabaseServer;
use crate::memory::{self, message};

const MESSAGE: &str = "quarterly zebra figures";

/// Two seconds are promised; a machine that does much else at once may take longer.
const SOON: Duration = Duration::from_secs(10);

/// Daemons on one database, each on a site of its own; the last is on another host.
fn start(server: &DatabaseServer, sites: &[Site]) -> Vec<Daemon> {
    let start = |(number, site): (usize, &Site)| {
        for tool in ["a", "b"] {
            site.save(&format!("{tool}.yaml"), &document(tool, tool));
        }
        let host = if number + 1 < sites.len() { "here" } else { "there" };
        site.configure(&format!("store: {{host: {host}}}\n"));
        let mut command = site.command();
        command.env("ALMANAC_DATABASE_URL", server.url("postgres"));
        Daemon::start(command, site.path("state/admin.sock"))
    };
    sites.iter().enumerate().map(start).collect()
}

fn soon(what: &str, condition: impl FnMut() -> bool) {
    let start = Instant::now();
    wait_until(what, condition);
    assert!(start.elapsed() < SOON, "{what}: {:?}", start.elapsed());
}

fn record(daemon: &Daemon, session: &str, tool: &str) {
    let call = json!({"tool_name": tool, "duration_ms": 700, "session_id": session});
    assert_eq!(ask(daemon, "/v1/executions", &call)["recorded"], 1);
}

fn samples(daemon: &Daemon, tool: &str) -> u64 {
    ask(daemon, "/v1/estimate", &json!({"tool_name": tool}))["timing"]["samples"].as_u64().unwrap()
}

/// Daemons that say these hosts.
fn start_on(server: &DatabaseServer, sites: &[Site], hosts: &[&str]) -> Vec<Daemon> {
    let start = |(site, host): (&Site, &&str)| {
        site.configure(&format!("store: {{host: {host}}}\n"));
        let mut command = site.command();
        command.env("ALMANAC_DATABASE_URL", server.url("postgres"));
        Daemon::start(command, site.path("state/admin.sock"))
    };
    sites.iter().zip(hosts).map(start).collect()
}

fn timing(daemon: &Daemon, tool: &str) -> Value {
    ask(daemon, "/v1/estimate", &json!({"tool_name": tool}))["timing"].clone()
}

#[test]
fn a_host_without_calls_estimates_by_the_others() {
    const TRUTH_MS: u64 = 42_000;
    let Some(server) = DatabaseServer::start() else { return };
    let sites = [(); 4].map(|()| Site::new());
    let daemons = start_on(&server, &sites[..3], &["a", "b", "a"]);
    let [one, two, beside] = &daemons[..] else { panic!("three were started") };
    let call = |place: u64| json!({"tool_name": "solve", "duration_ms": TRUTH_MS + place * 20});
    let before = timing(two, "solve");
    assert!(before["basis"] == "default" && before["known"] == false, "{before}");
    assert_eq!(before["fleet_samples"], Value::Null, "{before}");
    for place in 0..30 {
        assert_eq!(ask(one, "/v1/executions", &call(place))["recorded"], 1);
    }
    soon("other hosts' calls", || timing(two, "solve")["fleet_samples"] == 30);
    let check = |daemon: &Daemon| {
        let said = timing(daemon, "solve");
        assert!(said["basis"] == "fleet" && said["samples"] == 0 && said["fleet_samples"] == 30, "{said}");
        assert!(said["known"] == true && said["confidence"] == "low", "{said}");
        for figure in ["estimated_duration_ms", "p50_ms"] {
            let ratio = said[figure].as_u64().unwrap() as f64 / TRUTH_MS as f64;
            assert!((0.8..1.25).contains(&ratio), "{figure} of {said}");
        }
    };
    check(two);
    let estimated = almanacd().args(["estimate", "solve", "--socket"]).arg(sites[1].path("state/admin.sock")).output();
    let said = String::from_utf8(estimated.unwrap().stdout).unwrap();
    assert!(said.contains("from 0 samples, 30 on other hosts (fleet)"), "{said}");
    // On the same host they are its own.
    soon("the host's calls", || timing(beside, "solve")["samples"] == 30);
    let said = timing(beside, "solve");
    assert!(said["basis"] == "history" && said["fleet_samples"] == Value::Null, "{said}");
    // A start reads them back.
    let late = start_on(&server, &sites[3..], &["c"]);
    check(&late[0]);
    // Its own calls take over.
    for _ in 0..20 {
        ask(two, "/v1/executions", &json!({"tool_name": "solve", "duration_ms": 9_000}));
    }
    let said = timing(two, "solve");
    assert!(said["basis"] == "history" && said["samples"] == 20 && said["fleet_samples"] == 30, "{said}");
    assert!((8_000..10_000).contains(&said["estimated_duration_ms"].as_u64().unwrap()), "{said}");
    soon("both other hosts' calls", || timing(&late[0], "solve")["fleet_samples"] == 50);
    soon("the other host's calls", || timing(one, "solve")["fleet_samples"] == 20);
    assert_eq!(timing(one, "solve")["basis"], "history");
}

/// The tools that are suggested after a call of `a`.
fn next_tools(daemon: &Daemon) -> Vec<String> {
    let metadata = ask(daemon, "/v1/metadata", &json!({"tool_name": "a"}));
    let next = metadata["suggestions"]["next_tools"].as_array().unwrap().clone();
    next.iter().map(|tool| tool["tool"].as_str().unwrap().to_owned()).collect()
}

fn score(daemon: &Daemon) -> String {
    ask(daemon, "/v1/qualify", &json!({"message": MESSAGE, "scores": true}))["scores"].to_string()
}

fn is_known(daemon: &Daemon, session: &str) -> bool {
    let reply = daemon.get(&format!("/v1/sessions/{session}"));
    reply.status == 200 && !reply.json()["intentContext"].is_null()
}

fn standing(daemon: &Daemon) -> Value {
    daemon.admin("GET", "/-/status", b"").json()["database"].clone()
}

#[test]
fn what_one_is_told_the_others_answer_with() {
    let Some(server) = DatabaseServer::start() else { return };
    let sites = [(); 3].map(|()| Site::new());
    let daemons = start(&server, &sites);
    let [one, two, three] = &daemons[..] else { panic!("three were started") };
    // The same suggestions, and the same durations on the same host, whoever recorded.
    for round in 0..4 {
        let session = format!("s{round}");
        record(one, &session, "a");
        record(if round % 2 == 0 { one } else { two }, &session, "b");
    }
    soon("transitions", || daemons.iter().all(|daemon| next_tools(daemon) == ["b"]));
    soon("durations", || samples(one, "b") == 4 && samples(two, "b") == 4 && samples(two, "a") == 4);
    assert_eq!(samples(three, "a"), 0, "another host's durations are another's");
    record(two, "s9", "b");
    assert_eq!(samples(two, "b"), 5, "its own is counted at once");
    soon("the count", || samples(one, "b") == 5);
    // A choice and a turn.
    let untaught: Vec<String> = daemons.iter().map(score).collect();
    memory::add(one, "messages", &message(MESSAGE, "a-thread", 0));
    ask(one, "/v1/qualify", &json!({"message": MESSAGE, "sessionId": "a-thread"}));
    soon("the turn", || daemons.iter().all(|daemon| is_known(daemon, "a-thread")));
    record(two, "a-thread", "b");
    let taught = |daemons: &[Daemon]| daemons.iter().zip(&untaught).all(|(daemon, before)| score(daemon) != *before);
    soon("the choice", || taught(&daemons));
    assert_eq!((score(one), score(two)), (score(three), score(three)));
    // A purge.
    assert_eq!(two.admin("POST", "/-/memories/purge", br#"{"all":true}"#).json()["purged"], 1);
    soon("the purge", || {
        !daemons.iter().any(|daemon| is_known(daemon, "a-thread"))
            && daemons.iter().zip(&untaught).all(|(daemon, before)| score(daemon) == *before)
    });
    soon("all of it", || daemons.iter().all(|daemon| standing(daemon)["behind"] == 0));
    assert_eq!(one.metric("almanac_following_behind"), Some(0.0));
    assert!(one.metric("almanac_following_lag_seconds").unwrap() < SOON.as_secs_f64());
}

/// A session that is in use at another daemon has what is purged in memory until that daemon follows.
#[test]
fn what_is_purged_at_one_is_not_written_again_by_another() {
    let Some(server) = DatabaseServer::start() else { return };
    let sites = [(); 2].map(|()| Site::new());
    let daemons = start(&server, &sites);
    let [one, two] = &daemons[..] else { panic!("two were started") };
    let untaught = score(two);
    for round in 0..5 {
        let session = format!("s{round}");
        memory::add(one, "messages", &message(MESSAGE, &session, 0));
        ask(two, "/v1/qualify", &json!({"message": MESSAGE, "sessionId": session}));
        assert_eq!(one.admin("POST", "/-/memories/purge", br#"{"all":true}"#).json()["purged"], 1);
        record(two, &session, "b");
        soon("the purge", || standing(two)["behind"] == 0 && !is_known(two, &session) && score(two) == untaught);
        record(two, &session, "a");
        let said = format!("SELECT count(*) FROM almanac.turns WHERE state LIKE '%{MESSAGE}%'");
        let chosen = format!("SELECT count(*) FROM almanac.choices WHERE message LIKE '%{MESSAGE}%'");
        assert_eq!([said, chosen].map(|count| server.ask(&count)), ["0", "0"], "round {round}");
    }
}

#[test]
fn nothing_is_missed_while_all_record_and_one_is_killed() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let sites = [(); 3].map(|()| Site::new());
    let mut daemons = start(&server, &sites);
    let stop = AtomicBool::new(false);
    let acknowledged: usize = thread::scope(|scope| {
        let recorders: Vec<_> = daemons
            .iter()
            .enumerate()
            .map(|(number, daemon)| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut count = 0;
                    while !stop.load(Ordering::SeqCst) {
                        record(daemon, &format!("{number}-{count}"), "a");
                        count += 1;
                    }
                    if number < 2 { count } else { 0 }
                })
            })
            .collect();
        wait_until("some are followed", || samples(&daemons[0], "a") > 50);
        server.kill();
        server.restart();
        let before = samples(&daemons[0], "a");
        wait_until("more are followed", || samples(&daemons[0], "a") > before + 50);
        stop.store(true, Ordering::SeqCst);
        recorders.into_iter().map(|recorder| recorder.join().unwrap()).sum()
    });
    let all = |daemons: &[Daemon]| daemons[..2].iter().all(|daemon| samples(daemon, "a") == acknowledged as u64);
    wait_until("all are counted", || all(&daemons));
    // One that is killed and comes back knows the same, and goes on being followed.
    daemons[1].child.kill().unwrap();
    daemons[1].wait();
    daemons.remove(1);
    let mut command = sites[1].command();
    command.env("ALMANAC_DATABASE_URL", server.url("postgres"));
    daemons.insert(1, Daemon::start(command, sites[1].path("state/admin.sock")));
    assert!(all(&daemons), "{} of {acknowledged}", samples(&daemons[1], "a"));
    record(&daemons[1], "last", "a");
    wait_until("the last", || samples(&daemons[0], "a") == acknowledged as u64 + 1);
    assert_eq!(samples(&daemons[1], "a"), acknowledged as u64 + 1);
}
