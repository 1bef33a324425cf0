//! Looking at recorded calls one by one.

use serde_json::{Value, json};

use crate::access::token;
use crate::daemon::{Site, ask};

#[test]
fn recorded_calls_are_listed_filtered_and_paged() {
    let site = Site::new();
    let daemon = site.start();
    let call = |number: u64| {
        json!({
            "tool_name": if number.is_multiple_of(2) { "even" } else { "odd" }, "duration_ms": number,
            "outcome": if number == 5 { "timeout" } else { "success" },
            "session_id": if number < 4 { json!("s") } else { Value::Null },
            "timestamp": 1_700_000_000_000_u64 + 1000 * number, "complexity": {"content_length": 10},
        })
    };
    ask(&daemon, "/v1/executions", &Value::from((0..10).map(call).collect::<Vec<_>>()));
    let check = |query: &str, expected: &[u64]| {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = daemon.json(&format!("/v1/executions?limit=3&{query}{cursor}"));
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= 3);
            found.extend(items.iter().map(|item| item["duration_ms"].as_u64().unwrap()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, expected, "{query}");
    };
    check("", &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    check("tool=odd", &[9, 7, 5, 3, 1]);
    check("session=s&tool=even", &[2, 0]);
    check("outcome=timeout", &[5]);
    check("since=1700000007000", &[9, 8, 7]);
    check("since=2023-11-14T22:13:22Z&until=2023-11-14T22:13:25Z", &[4, 3, 2]);
    check("tool=nothing", &[]);
    let first = daemon.json("/v1/executions?limit=1")["items"][0].clone();
    let expected = json!({
        "tool_name": "odd", "outcome": "success", "duration_ms": 9, "timestamp": "2023-11-14T22:13:29.000Z",
        "content_length": 10,
    });
    assert_eq!(first, expected);
    let refused = |query: &str, part: &str| {
        let reply = daemon.get(&format!("/v1/executions?{query}"));
        assert!((400..500).contains(&reply.status) && reply.text().contains(part), "{query}: {}", reply.text());
    };
    refused("since=yesterday", "2026-11-22T10:00:00Z");
    refused("outcome=late", "success, error, timeout, cancelled");
    refused("cursor=x", "is no cursor");
    refused("limit=0", "limit");
    refused("tol=a", "tol");
}

#[test]
fn a_tenant_sees_its_own_calls() {
    let site = Site::new();
    let (mine, other) = (token(&site, "mine", "read,record"), token(&site, "other", "read"));
    let file = site.path("tokens");
    let text = std::fs::read_to_string(&file).unwrap();
    let (first, rest) = text.split_once("other").unwrap();
    std::fs::write(&file, format!("{first}other{}", rest.replacen("\"default\"", "\"acme\"", 1))).unwrap();
    site.configure(&format!("auth: {{tokens_file: {}}}\n", file.display()));
    let daemon = site.start();
    let bearer = |token: &str| format!("Bearer {token}");
    let (mine, other) = (bearer(&mine), bearer(&other));
    let json = ("content-type", "application/json");
    let call = json!({"tool_name": "a", "duration_ms": 1}).to_string();
    let recorded = daemon.send("POST", "/v1/executions", &[("authorization", &mine), json], call.as_bytes());
    assert_eq!(recorded.status, 201, "{}", recorded.text());
    let listed = |token: &str| {
        let reply = daemon.send("GET", "/v1/executions", &[("authorization", token)], b"");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["items"].as_array().unwrap().len()
    };
    assert_eq!((listed(&mine), listed(&other)), (1, 0));
}
