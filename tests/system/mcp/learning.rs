//! What is learnt of servers' tools by being called.

use std::thread;

use serde_json::{Value, json};

use super::served::Served;
use crate::daemon::wait_until;

const CALLS: u64 = 200;
const CALLERS: u64 = 4;

/// Longer than two of three calls.
const LIMIT_MS: u64 = 150;

/// Each length from 20 to 219 ms once, in no order.
fn length_ms(call: u64) -> u64 {
    20 + call * 77 % CALLS
}

/// How long the calls of a tool took, as they were recorded, shortest first.
fn lengths(served: &Served, tool: &str) -> Vec<f64> {
    let mut all = Vec::new();
    let mut page = served.daemon.json(&format!("/v1/executions?tool={tool}&limit=100"));
    loop {
        all.extend(page["items"].as_array().unwrap().iter().map(|call| call["duration_ms"].as_f64().unwrap()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        page = served.daemon.json(&format!("/v1/executions?tool={tool}&limit=100&cursor={next}"));
    }
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn two_hundred_calls_foretell_the_next() {
    let served = Served::one("legacy");
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let served = &served;
            scope.spawn(move || {
                for call in (caller..CALLS).step_by(CALLERS as usize) {
                    let arguments = json!({"ms": length_ms(call), "n": call});
                    served.call("call_tool", json!({"name": "a_sleep", "arguments": arguments}));
                }
            });
        }
    });
    wait_until("all records", || lengths(&served, "a_sleep").len() == CALLS as usize);
    // What the machine made of them, however busy it was.
    let taken = lengths(&served, "a_sleep");
    let middle = taken[taken.len() / 2];
    let beyond = taken.iter().filter(|taken| **taken > LIMIT_MS as f64).count() as f64 / CALLS as f64;
    let asked = json!({"tool_name": "a_sleep", "timeout_ms": LIMIT_MS});
    // What `predict_duration` says is held to this by a test of its own.
    let said = served.daemon.post("/v1/estimate", &asked.to_string()).json()["timing"].clone();
    let estimated = said["p50_ms"].as_f64().unwrap();
    assert!((estimated / middle - 1.0).abs() <= 0.2, "{estimated} ms of {middle} ms: {said}");
    let probability = said["timeout_probability"].as_f64().unwrap();
    assert!((probability - beyond).abs() <= 0.15, "{probability} of {beyond}: {said}");
}

#[test]
fn what_was_called_for_a_search_is_found_sooner() {
    let served = Served::one("legacy more");
    let search = || served.find("jot this down for later");
    let place = |found: &Value| {
        let tools = found["tools"].as_array().unwrap();
        tools.iter().position(|tool| tool["name"] == "a_write").unwrap_or(tools.len())
    };
    let before = place(&search());
    assert!(before > 0, "the words of the search are not the tool's");
    for _ in 0..10 {
        let search_id = search()["search_id"].clone();
        let call = json!({"name": "a_write", "arguments": {"path": "x"}, "search_id": search_id});
        served.call("call_tool", call);
    }
    wait_until("what was chosen to be known", || place(&search()) == 0);
}
