//! The daemon is killed at random under many writers, again and again: every acknowledged record is there afterwards.
//!
//! Few rounds by default; `make fault` makes many (`ALMANAC_FAULT_ROUNDS`).

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::daemon::{Connection, Daemon, Site, wait_until};
use crate::memory::message;

const WRITERS: usize = 16;

#[test]
fn nothing_acknowledged_is_lost() {
    let rounds: usize = std::env::var("ALMANAC_FAULT_ROUNDS").map_or(5, |rounds| rounds.parse().unwrap());
    let site = Site::new();
    let acknowledged: Mutex<HashSet<String>> = Mutex::default();
    for round in 0..rounds {
        let mut daemon = site.start();
        check(&daemon, &acknowledged.lock().unwrap());
        let (address, count) = (daemon.address, AtomicUsize::new(0));
        // Killed after a different number of acknowledgements each time.
        let until = 1 + round * 37 % 200;
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (acknowledged, count) = (&acknowledged, &count);
                scope.spawn(move || {
                    let mut connection = Connection::open(address);
                    for number in 0.. {
                        let key = format!("r{round}w{writer}n{number}");
                        let body = format!(r#"{{"tool_name":"{key}","duration_ms":1,"idempotency_key":"{key}"}}"#);
                        connection.request(
                            "POST",
                            "/v1/executions",
                            &[("content-type", "application/json")],
                            body.as_bytes(),
                        );
                        match connection.try_reply("POST") {
                            Some(reply) if reply.status == 201 => {
                                acknowledged.lock().unwrap().insert(key);
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                            Some(reply) => panic!("refused: {}", reply.text()),
                            None => return,
                        }
                    }
                });
            }
            wait_until("some acknowledgements", || count.load(Ordering::Relaxed) >= until);
            daemon.child.kill().unwrap();
            daemon.wait();
        });
    }
    check(&site.start(), &acknowledged.lock().unwrap());
}

/// Everything acknowledged so far is there, and nothing is there twice.
fn check(daemon: &crate::daemon::Daemon, acknowledged: &HashSet<String>) {
    let mut found = HashSet::new();
    let mut path = "/v1/timing?limit=1000".to_owned();
    loop {
        let page = daemon.json(&path);
        for key in page["items"].as_array().unwrap() {
            assert_eq!(key["samples"], 1, "{key}");
            found.insert(key["tool"].as_str().unwrap().to_owned());
        }
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/timing?limit=1000&cursor={cursor}");
    }
    let lost: Vec<&String> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged records are lost: {lost:?}", lost.len(), acknowledged.len());
}

/// Memories are added, changed and deleted by many writers while the daemon is killed: what was acknowledged is there
/// as it was, and there is nothing half-written.
#[test]
fn no_acknowledged_memory_is_lost() {
    let rounds: usize = std::env::var("ALMANAC_FAULT_ROUNDS").map_or(5, |rounds| rounds.parse().unwrap());
    let site = Site::new();
    // By id, as it was acknowledged last.
    let acknowledged: Mutex<HashMap<String, Value>> = Mutex::default();
    for round in 0..rounds {
        let mut daemon = site.start();
        // Those of the round before now, all of them at the end.
        let before = format!("r{}w", round.wrapping_sub(1));
        check_memories(&daemon, &acknowledged.lock().unwrap(), &before);
        let (address, count) = (daemon.address, AtomicUsize::new(0));
        let until = 1 + round * 37 % 200;
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (acknowledged, count) = (&acknowledged, &count);
                scope.spawn(move || {
                    let mut connection = Connection::open(address);
                    let mut latest: Option<String> = None;
                    for number in 0_u64.. {
                        let (method, path, body) = match (&latest, number % 4) {
                            (Some(id), 2) => {
                                ("PATCH", format!("/v1/memories/{id}"), json!({"metadata": {"n": number}}))
                            }
                            (Some(id), 3) => ("DELETE", format!("/v1/memories/{id}"), json!(null)),
                            _ => {
                                let body = message("some words", &format!("r{round}w{writer}"), number);
                                ("POST", "/v1/memories/messages".to_owned(), body)
                            }
                        };
                        let body = if body.is_null() { String::new() } else { body.to_string() };
                        // What is under way when the daemon is killed may have been done or not.
                        if let Some(id) = latest.as_ref().filter(|_| method != "POST") {
                            acknowledged.lock().unwrap().remove(id);
                        }
                        connection.request(method, &path, &[("content-type", "application/json")], body.as_bytes());
                        match connection.try_reply(method) {
                            Some(reply) if reply.status < 300 => {
                                let memory = reply.json();
                                let id = memory["id"].as_str().unwrap().to_owned();
                                acknowledged.lock().unwrap().insert(id.clone(), memory);
                                latest = Some(id).filter(|_| method != "DELETE");
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                            Some(reply) => panic!("refused: {}", reply.text()),
                            None => return,
                        }
                    }
                });
            }
            wait_until("some acknowledgements", || count.load(Ordering::Relaxed) >= until);
            daemon.child.kill().unwrap();
            daemon.wait();
        });
    }
    check_memories(&site.start(), &acknowledged.lock().unwrap(), "");
}

/// What was acknowledged in threads that begin like that is there as it was, every change has its history, and all of
/// it is found by its text.
fn check_memories(daemon: &Daemon, acknowledged: &HashMap<String, Value>, threads: &str) {
    let is_meant = |memory: &Value| memory["metadata"]["thread"]["id"].as_str().unwrap().starts_with(threads);
    for (id, memory) in acknowledged.iter().filter(|(_, memory)| is_meant(memory)) {
        let path = format!("/v1/memories/{id}");
        assert_eq!(&daemon.json(&format!("{path}?includeDeleted=true")), memory, "{id}");
        let history = daemon.json(&format!("{path}/history?includeDeleted=true"));
        assert_eq!(history["total"].as_u64().unwrap() + 1, memory["version"].as_u64().unwrap(), "{id}");
    }
    let total = |options: Value| {
        let body = json!({"options": options}).to_string();
        daemon.post("/v1/memories/messages/search", &body).json()["total"].as_u64().unwrap()
    };
    let (all, with_text) = (total(json!({})), total(json!({"query": "words"})));
    // A search by text looks at 500 candidates at least.
    assert!(with_text == all || with_text >= 500, "{with_text} of {all} are found by their text");
    let left = acknowledged.values().filter(|memory| memory["metadata"].get("is_deleted").is_none()).count() as u64;
    assert!(all >= left, "{all} of {left}");
}
