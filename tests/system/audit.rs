//! Looking at recorded calls one by one.

use serde_json::{Value, json};

use crate::access::{token, tokens_of_two_tenants};
use crate::daemon::{Daemon, Site, ask, serve_shipped_on, wait_until};

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
        "content_length": 10, "predicted_ms": first["predicted_ms"],
    });
    assert_eq!(first, expected);
    let quantiles: Vec<u64> = first["predicted_ms"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(quantiles.len() == 5 && quantiles.is_sorted(), "{first}");
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
    let [mine, other] = tokens_of_two_tenants(&site, "read,record");
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

/// What the security model says tokens do not protect.
#[test]
fn durations_and_names_of_tools_are_everybody_s() {
    let site = Site::new();
    let [mine, other] = tokens_of_two_tenants(&site, "read,record").map(|token| format!("Bearer {token}"));
    let daemon = site.start();
    let ask = |token: &str, method: &str, path: &str, body: &str| {
        let headers = [("authorization", token), ("content-type", "application/json")];
        let reply = daemon.send(method, path, &headers, body.as_bytes());
        assert!(reply.status < 300, "{path}: {}", reply.text());
        reply
    };
    let calls = json!(vec![json!({"tool_name": "mine_alone", "duration_ms": 7000}); 20]).to_string();
    ask(&mine, "POST", "/v1/executions", &calls);
    let timing = ask(&other, "GET", "/v1/timing", "").text();
    assert!(timing.contains("mine_alone"), "{timing}");
    let estimate = ask(&other, "POST", "/v1/estimate", r#"{"tool_name": "mine_alone"}"#).json();
    assert_eq!(estimate["timing"]["basis"], "history", "{estimate}");
}

#[test]
fn calls_come_as_points_with_what_was_said_of_them_before() {
    let site = Site::new();
    let daemon = site.start();
    let call = |mode: Option<&str>, duration_ms: u64, outcome: &str| {
        json!({"tool_name": "a b", "mode_name": mode, "duration_ms": duration_ms, "outcome": outcome,
            "timestamp": 1_700_000_000_000_u64 + duration_ms})
    };
    let said = ask(&daemon, "/v1/estimate", &json!({"tool_name": "a b"}))["timing"].clone();
    ask(&daemon, "/v1/executions", &call(None, 2000, "success"));
    let then = ask(&daemon, "/v1/estimate", &json!({"tool_name": "a b"}))["timing"].clone();
    for (mode, duration_ms, outcome) in [(None, 10, "timeout"), (Some("m"), 7, "success"), (None, 5, "error")] {
        ask(&daemon, "/v1/executions", &call(mode, duration_ms, outcome));
    }
    let points = |query: &str| daemon.json(&format!("/v1/timing/a%20b/calls{query}"));
    let all = points("");
    assert_eq!((&all["total"], &all["thinned"]), (&2.into(), &false.into()), "{all:#}");
    let [late, early] = [&all["items"][0], &all["items"][1]];
    assert_eq!((&late["duration_ms"], &late["outcome"]), (&10.into(), &"timeout".into()), "by time, not as recorded");
    let check = |point: &Value, said: &Value| {
        let predicted = &point["predicted_ms"];
        assert_eq!(json!([predicted[0], predicted[4]]), said["interval_ms"], "{point}");
        assert_eq!(predicted[2], said["p50_ms"], "{point}");
    };
    check(early, &said);
    check(late, &then);
    assert_eq!(points("?mode=m")["items"][0]["duration_ms"], 7);
    assert_eq!(points("?mode=%23error")["items"][0]["duration_ms"], 5);
    assert_eq!(points("?mode=none")["total"], 0);
}

#[test]
fn more_calls_than_can_be_looked_at_are_thinned_and_their_extremes_stay() {
    let site = Site::new();
    let daemon = site.start();
    for batch in 0..12_u64 {
        let call = |number: u64| {
            let duration_ms = if (batch, number) == (7, 500) { 80_000 } else { 1000 + number };
            let at = 1_700_000_000_000 + batch * 1000 + number;
            json!({"tool_name": "a", "duration_ms": duration_ms, "timestamp": at})
        };
        ask(&daemon, "/v1/executions", &Value::from((0..1000).map(call).collect::<Vec<_>>()));
    }
    let points = daemon.json("/v1/timing/a/calls");
    let durations: Vec<u64> =
        points["items"].as_array().unwrap().iter().filter_map(|point| point["duration_ms"].as_u64()).collect();
    assert_eq!((&points["total"], &points["thinned"]), (&12_000.into(), &true.into()));
    assert!((5000..=10_000).contains(&durations.len()), "{}", durations.len());
    assert_eq!((durations.iter().min(), durations.iter().max()), (Some(&1000), Some(&80_000)));
}

#[test]
fn a_session_s_turns_say_what_was_suggested_and_taken() {
    let site = Site::new();
    let reader = token(&site, "reader", "read,record");
    let [mine, other] = tokens_of_two_tenants(&site, "read,record,memory");
    let mut daemon = serve_shipped_on(&site);
    let bearer = |token: &str| format!("Bearer {token}");
    let post = |daemon: &Daemon, path: &str, body: &Value| {
        let headers = [("authorization", &*bearer(&mine)), ("content-type", "application/json")];
        let reply = daemon.send("POST", path, &headers, body.to_string().as_bytes());
        assert!(matches!(reply.status, 200 | 201), "{}", reply.text());
        reply.json()
    };
    let turns = |daemon: &Daemon, token: &str| {
        let reply = daemon.send("GET", "/v1/sessions/s/turns", &[("authorization", &*bearer(token))], b"");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["items"].clone()
    };
    for message in ["find news about the zirconium market on the web", "read the file zirconium.txt"] {
        post(&daemon, "/v1/qualify", &json!({"message": message, "sessionId": "s"}));
    }
    let ask = json!({"tool_name": "web_search", "result_context": {"session_id": "s"}});
    let said = post(&daemon, "/v1/metadata", &ask)["suggestions"]["next_tools"].clone();
    let suggested: Vec<&str> = said.as_array().unwrap().iter().map(|next| next["tool"].as_str().unwrap()).collect();
    assert!(suggested.len() > 1, "{said}");
    for (tool, outcome) in [(suggested[0], "success"), (suggested[1], "error"), ("elsewhere", "success")] {
        let call = json!({"tool_name": tool, "duration_ms": 5, "outcome": outcome, "session_id": "s"});
        post(&daemon, "/v1/executions", &call);
    }
    wait_until("the turns", || turns(&daemon, &mine)[0]["taken"] == json!(suggested[..2]));
    let check = |daemon: &Daemon| {
        let all = turns(daemon, &mine);
        assert_eq!((all.as_array().map(Vec::len), &all[0]["suggested"]), (Some(2), &json!(suggested)), "{all}");
        assert_eq!((&all[0]["number"], &all[1]["number"], &all[1]["suggested"]), (&json!(2), &json!(1), &json!([])));
        assert!(all[1]["intent"].is_string() && !all[1]["categories"].as_array().unwrap().is_empty(), "{all}");
        let without_intent = turns(daemon, &reader);
        assert_eq!((without_intent[1].get("intent"), &without_intent[1]["at"]), (None, &all[1]["at"]));
        assert_eq!(turns(daemon, &other), json!([]));
    };
    check(&daemon);
    drop(daemon);
    daemon = serve_shipped_on(&site);
    check(&daemon);
}

#[test]
fn choices_of_a_tool_are_its_tenant_s_and_their_texts_need_the_scope_memory() {
    let site = Site::new();
    let reader = token(&site, "reader", "read,record");
    let [mine, other] = tokens_of_two_tenants(&site, "read,record,memory");
    let daemon = serve_shipped_on(&site);
    let bearer = |token: &str| format!("Bearer {token}");
    let miss = json!({"toolName": "http_request", "message": "post it to the hook"}).to_string();
    let headers = [("authorization", &*bearer(&mine)), ("content-type", "application/json")];
    assert_eq!(daemon.send("POST", "/v1/qualify/miss", &headers, miss.as_bytes()).status, 200);
    let listed = |token: &str| {
        let headers = [("authorization", &*bearer(token))];
        let reply = daemon.send("GET", "/v1/tools/http_request/choices", &headers, b"");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["items"].clone()
    };
    let (all, without_text) = (listed(&mine), listed(&reader));
    assert_eq!(all[0]["message"], "post it to the hook", "{all}");
    assert!(all[0]["trust"].as_f64().unwrap() > 0.0 && all[0]["at"].is_string(), "{all}");
    assert_eq!((without_text[0].get("message"), &without_text[0]["at"]), (None, &all[0]["at"]));
    assert_eq!(listed(&other), json!([]));
}
