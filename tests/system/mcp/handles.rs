//! Calls that outlast their clients' patience.
#![expect(clippy::disallowed_methods, reason = "a client that comes back when it was told to")]

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{BOTH, MODERN, Stream, meta};
use super::served::{Served, ask, messages, names, text};
use crate::daemon::wait_until;
use crate::mcp_fixture::server;

/// Makes the durations of a tool known.
fn teach(served: &Served, tool: &str, ms: u64) {
    let records: Vec<Value> =
        (0..30).map(|call| json!({"tool_name": tool, "duration_ms": ms + call % 7 * ms / 1000})).collect();
    let taught = served.daemon.post("/v1/executions", &Value::from(records).to_string());
    assert_eq!(taught.status, 201, "{}", taught.text());
}

fn patience(ms: u64) -> Value {
    json!({"dev.almanac/timeoutMs": ms})
}

#[test]
fn a_long_call_is_delivered_in_two_questions_and_executed_once() {
    let served = Served::one("legacy");
    teach(&served, "a_sleep", 8000);
    let asked = Instant::now();
    let first = served.call_with("call_tool", json!({"name": "a_sleep", "arguments": {"ms": 8000}}), patience(2000));
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    let told = &first["structuredContent"];
    let handle = told["handle"].as_str().unwrap();
    assert!(handle.starts_with("c_") && text(&first).contains(handle), "{first}");
    assert!(text(&first).contains("Still running after"), "{first}");
    thread::sleep(Duration::from_secs_f64(told["ask_in_seconds"].as_f64().unwrap()));
    let asked_again = Instant::now();
    let second = served.call_with("get_result", json!({"handle": handle}), patience(2000));
    assert!(asked_again.elapsed() < Duration::from_secs(2), "{:?}", asked_again.elapsed());
    assert_eq!(second["content"], json!([]), "{second}");
    assert_eq!(second["_meta"]["dev.almanac/metadata"]["call"]["handle"], handle);
    assert_eq!(served.logs("a").matches("slept 8000 ms").count(), 1);
    assert_eq!(served.daemon.metric("almanac_mcp_saved_calls_total"), Some(1.0));
    // With those that taught it.
    wait_until("the record", || served.recorded("a_sleep") == 31);
}

#[test]
fn a_handle_is_its_owners_and_can_be_given_up() {
    let served = Served::one("legacy");
    let call = json!({"name": "a_sleep", "arguments": {"ms": 60_000}, "wait_seconds": 0.05});
    let handle = served.call("call_tool", call)["structuredContent"]["handle"].clone();
    let waiting = served.call("get_result", json!({"handle": handle, "wait_seconds": 0}));
    assert_eq!(waiting["structuredContent"]["handle"], handle, "{waiting}");
    let other = served.daemon.admin("GET", "/-/status", b"");
    assert_eq!(other.status, 200);
    for foreign in ["c_00000000000000000000000000000000", "nonsense", ""] {
        let refused = served.call("get_result", json!({"handle": foreign}));
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).contains("kept for an hour"), "{refused}");
    }
    assert!(text(&served.call("get_result", json!({"handle": handle, "cancel": true}))).contains("being cancelled"));
    wait_until("the cancellation", || served.logs("a").contains("heard notifications/cancelled"));
    let ended = served.call("get_result", json!({"handle": handle}));
    assert_eq!(ended["isError"], true);
    assert!(text(&ended).contains("was cancelled"), "{ended}");
}

#[test]
fn nothing_is_left_beyond_the_limit() {
    let servers = format!("    a: {}, timeout: 20s}}\n", server("legacy"));
    let served = Served::new(&servers, "  anonymous_calls: true\n");
    teach(&served, "a_sleep", 60_000);
    let call = json!({"name": "a_sleep", "arguments": {"ms": 60_000}, "wait_seconds": 0.05});
    let told = served.call("call_tool", call)["structuredContent"].clone();
    let left = &told["seconds_left"];
    assert!([0, 1].iter().all(|at| (10.0..=20.0).contains(&left[at].as_f64().unwrap())), "{told}");
    assert!(told["ask_in_seconds"].as_f64().unwrap() <= 20.0, "{told}");
    let under_way = served.daemon.get("/v1/servers").json()["calls"][0].clone();
    assert!(under_way["p90_left_ms"].as_u64().unwrap() <= 20_000, "{under_way}");
    served.call("get_result", json!({"handle": told["handle"], "cancel": true}));
}

#[test]
fn the_same_question_asked_again_is_joined() {
    let served = Served::one("legacy");
    teach(&served, "a_sleep", 1500);
    let session = |ms: u64| json!({"dev.almanac/timeoutMs": ms, "dev.almanac/session": "s1"});
    let call = |arguments: Value| json!({"name": "a_sleep", "arguments": arguments});
    let first = served.call_with("call_tool", call(json!({"ms": 1500, "n": 1})), session(200));
    assert!(first["structuredContent"]["handle"].is_string(), "{first}");
    // The same in another order, with patience enough.
    let again = served.call_with("call_tool", call(json!({"n": 1, "ms": 1500})), session(60_000));
    assert_eq!(again["_meta"]["dev.almanac/metadata"]["call"]["joined"], true, "{again}");
    assert_eq!(again["content"], json!([]), "{again}");
    assert_eq!(served.logs("a").matches("slept 1500 ms").count(), 1);
    assert_eq!(served.daemon.metric("almanac_mcp_joined_total"), Some(1.0));
    // It was delivered: the next one is another call. And without a session each is.
    let fresh = served.call_with("call_tool", call(json!({"n": 1, "ms": 10})), session(60_000));
    let other = served.call_with("call_tool", call(json!({"n": 1, "ms": 10})), session(60_000));
    for result in [fresh, other] {
        assert!(result["_meta"]["dev.almanac/metadata"]["call"].get("joined").is_none(), "{result}");
    }
    assert_eq!(served.logs("a").matches("slept 10 ms").count(), 2);
}

#[test]
fn a_client_that_waits_longer_on_progress_is_kept_waiting() {
    let served = Served::one("legacy");
    teach(&served, "a_sleep", 2000);
    let mut told = patience(700);
    told["progressToken"] = json!("t");
    let call = json!({"name": "a_sleep", "arguments": {"ms": 2000}, "_meta": told});
    let reply = ask(&served.daemon, "/mcp?progress_resets=true", "tools/call", call);
    let told = messages(&reply);
    let (result, progress) = told.split_last().unwrap();
    assert_eq!(result["result"]["content"], json!([]), "{result}");
    assert!(progress.len() >= 5, "{} in 2 s, for a limit of 0.7 s", progress.len());
    let mut last = -1.0;
    for told in progress {
        let params = &told["params"];
        assert_eq!((&params["progressToken"], &params["total"]), (&json!("t"), &json!(1)), "{told}");
        let now = params["progress"].as_f64().unwrap();
        assert!(now > last && now <= 1.0, "{told} after {last}");
        last = now;
        assert!(params["message"].as_str().unwrap().contains("left"), "{told}");
    }
    assert!(served.daemon.metric("almanac_mcp_keepalives_total").unwrap() >= 5.0);
}

#[test]
fn a_direct_call_gets_a_handle_where_that_is_configured() {
    let servers = format!("    a: {}, on_timeout: handle}}\n    b: {}}}\n", server("legacy"), server("legacy"));
    let served = Served::new(&servers, "  anonymous_calls: true\n  client_timeout: 300ms\n");
    let given = served.call("a_sleep", json!({"ms": 60_000}));
    assert!(text(&given).contains("Call get_result with handle c_"), "{given}");
    // It is redeemed wherever it is given.
    for view in ["/mcp/all", "/mcp/server/a"] {
        assert!(names(&served.ask(view, "tools/list", json!({}))).contains(&"get_result".to_owned()), "{view}");
        let handle = &given["structuredContent"]["handle"];
        let fetch = json!({"name": "get_result", "arguments": {"handle": handle, "wait_seconds": 0}});
        let fetched = served.ask(view, "tools/call", fetch);
        assert_eq!(&fetched["result"]["structuredContent"]["handle"], handle, "{view}: {fetched}");
    }
    assert!(!names(&served.ask("/mcp/server/b", "tools/list", json!({}))).contains(&"get_result".to_owned()));
    // Else it goes on as long as its client waits.
    let params = json!({"name": "b_sleep", "arguments": {"ms": 900}, "_meta": meta()});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        ("content-type", "application/json"),
        BOTH,
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "b_sleep"),
    ];
    let mut connection = served.daemon.connect();
    connection.request("POST", "/mcp", &headers, body.as_bytes());
    let last = Stream::of(connection).next().unwrap();
    assert_eq!(last["result"]["content"], json!([]), "{last}");
}

#[test]
fn a_long_text_is_given_in_parts() {
    let served = Served::one("legacy more");
    let first = served.call("call_tool", json!({"name": "a_long", "arguments": {"tens": 10_000}}));
    let blocks = first["content"].as_array().unwrap();
    assert_eq!((blocks.len(), text(&first).len()), (2, 80_000));
    assert!(first.get("structuredContent").is_none());
    let hint = blocks[1]["text"].as_str().unwrap();
    assert!(hint.contains("bytes 0 to 80000 of 100000") && hint.contains("offset 80000"), "{hint}");
    let handle = hint.split_whitespace().find(|word| word.starts_with("c_")).unwrap();
    let rest = served.call("get_result", json!({"handle": handle, "offset": 80_000}));
    assert_eq!((rest["content"].as_array().unwrap().len(), text(&rest).len()), (1, 20_000));
    assert_eq!(served.call("get_result", json!({"handle": handle, "offset": 200_000}))["isError"], true);
    // Directly it comes whole.
    assert_eq!(text(&served.call("a_long", json!({"tens": 10_000}))).len(), 100_000);
}
