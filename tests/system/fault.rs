//! The daemon is killed at random under many writers, again and again: every acknowledged record is there afterwards.
//!
//! Few rounds by default; `make fault` makes many (`ALMANAC_FAULT_ROUNDS`).

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::daemon::{Connection, Site, wait_until};

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
