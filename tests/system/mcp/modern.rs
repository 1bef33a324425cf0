//! Clients of 2026-07-28: everything stands in each request, and the headers must say the same.

use serde_json::{Value, json};

use super::client::{BOTH, MODERN, Stream, call, meta, modern, post};
use crate::daemon::{Site, document, serve_shipped, wait_until};

#[test]
fn a_client_discovers_lists_and_calls() {
    let (_site, daemon) = serve_shipped();
    let reply = modern(&daemon, "server/discover", json!({}));
    let found = reply.json()["result"].clone();
    assert_eq!(found["supportedVersions"], json!([MODERN]));
    assert_eq!(found["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(
        (&found["resultType"], &found["ttlMs"], &found["cacheScope"]),
        (&json!("complete"), &json!(300_000), &json!("public"))
    );
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "almanac");
    assert!(reply.header("mcp-session-id").is_none());
    let listed = modern(&daemon, "tools/list", json!({}));
    let tools = listed.json()["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["find_tools", "predict_duration", "suggest_next", "remember", "recall"]);
    let weight = listed.body.len() + found["instructions"].as_str().unwrap().len();
    assert!(weight <= 6000, "{weight} bytes are more than 1,500 tokens of 4");
    let (answer, failed) = call(&daemon, "predict_duration", json!({"tool_name": "decision"}));
    assert!(!failed && answer["timing"]["p90_ms"].as_u64().unwrap() > 0, "{answer}");
    let requests = r#"almanac_mcp_requests_total{era="modern",method="tools/call",outcome="result"}"#;
    assert_eq!(daemon.metric(requests), Some(1.0));
    assert_eq!(daemon.metric(r#"almanac_mcp_list_bytes{view="default"}"#).map(|bytes| bytes > 0.0), Some(true));
}

/// A request, and the status and code that refuse it.
type Refused = (&'static str, Vec<(&'static str, &'static str)>, Value, u16, i64);

#[test]
fn what_breaks_the_protocol_is_told_so() {
    let site = Site::new();
    let daemon = site.start();
    let without = |key: &str| {
        let mut meta = meta();
        meta.as_object_mut().unwrap().remove(&format!("io.modelcontextprotocol/{key}"));
        json!({"_meta": meta})
    };
    let with_version = |version: &str| {
        let mut meta = meta();
        meta["io.modelcontextprotocol/protocolVersion"] = version.into();
        json!({"_meta": meta})
    };
    let version = ("mcp-protocol-version", MODERN);
    let list = ("mcp-method", "tools/list");
    let call = json!({"_meta": meta(), "name": "recall", "arguments": {}});
    let cases: Vec<Refused> = vec![
        ("tools/list", vec![version, list], json!({}), 400, -32602),
        ("tools/list", vec![version, list], without("protocolVersion"), 400, -32602),
        ("tools/list", vec![version, list], without("clientCapabilities"), 400, -32602),
        ("tools/list", vec![version, list], without("clientInfo"), 200, 0),
        ("tools/list", vec![list], without("clientInfo"), 400, -32020),
        ("tools/list", vec![version], without("clientInfo"), 400, -32020),
        ("tools/list", vec![version, version, list], without("clientInfo"), 400, -32020),
        ("tools/list", vec![version, ("mcp-method", "tools/call")], without("clientInfo"), 400, -32020),
        ("tools/call", vec![version, ("mcp-method", "tools/call")], call.clone(), 400, -32020),
        (
            "tools/call",
            vec![version, ("mcp-method", "tools/call"), ("mcp-name", "remember")],
            call.clone(),
            400,
            -32020,
        ),
        ("tools/call", vec![version, ("mcp-method", "tools/call"), ("mcp-name", "=?base64?cmVjYWxs?=")], call, 200, 0),
        ("tools/list", vec![version, list], with_version("v999.0.0"), 400, -32020),
        ("tools/list", vec![("mcp-protocol-version", "v999.0.0"), list], with_version("v999.0.0"), 400, -32022),
        ("ping", vec![version, ("mcp-method", "ping")], without("clientInfo"), 404, -32601),
        ("initialize", vec![version, ("mcp-method", "initialize")], without("clientInfo"), 404, -32601),
        ("no/such", vec![version, ("mcp-method", "no/such")], without("clientInfo"), 404, -32601),
    ];
    for (method, headers, params, status, code) in cases {
        let body = json!({"jsonrpc": "2.0", "id": 11, "method": method, "params": params});
        let reply = post(&daemon, "/mcp", &headers, &body.to_string());
        let said = format!("{method} {headers:?} {params}: {}", reply.text());
        assert_eq!(reply.status, status, "{said}");
        let answer = reply.json();
        assert_eq!(answer["error"]["code"].as_i64().unwrap_or_default(), code, "{said}");
        assert_eq!(answer["id"], 11, "{said}");
        if code == -32022 {
            assert_eq!(answer["error"]["data"], json!({"supported": [MODERN], "requested": "v999.0.0"}));
        }
    }
    let refused = r#"almanac_mcp_requests_total{era="unknown",method="tools/list",outcome="refused"}"#;
    assert!(daemon.metric(refused).unwrap() > 5.0);
}

#[test]
fn what_is_no_message_is_told_so() {
    let site = Site::new();
    let daemon = site.start();
    let check = |headers: &[(&str, &str)], body: &[u8], status: u16, code: Option<i64>| {
        let reply = daemon.send("POST", "/mcp", headers, body);
        let said = format!("{headers:?} {}: {}", String::from_utf8_lossy(&body[..body.len().min(80)]), reply.text());
        assert_eq!(reply.status, status, "{said}");
        if let Some(code) = code {
            assert_eq!(reply.json()["error"]["code"], code, "{said}");
        }
    };
    let json = ("content-type", "application/json; charset=utf-8");
    check(&[json, BOTH], b"{", 400, Some(-32700));
    check(&[json, BOTH], b"\xff", 400, Some(-32700));
    check(&[json, BOTH], b"[{}]", 400, Some(-32600));
    check(&[json, BOTH], b"{}", 400, Some(-32600));
    check(&[json, BOTH], br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, Some(-32600));
    check(&[json, BOTH], br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, 400, Some(-32600));
    check(&[json, BOTH], br#"{"jsonrpc":"2.0","method":"notifications/whatever"}"#, 202, None);
    check(&[json, BOTH], br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 202, None);
    check(&[json, ("accept", "text/html")], b"{}", 406, None);
    check(&[("content-type", "text/plain"), BOTH], b"{}", 415, None);
    check(&[BOTH], b"{}", 415, None);
    check(&[json, BOTH, ("host", "evil.example")], b"{}", 421, None);
    check(&[json, BOTH, ("origin", "https://evil.example")], b"{}", 403, None);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    check(
        &[json, BOTH],
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":[{deep}]}}"#).as_bytes(),
        400,
        Some(-32600),
    );
    for path in ["/mcp/nope", "/mcp/server/nope"] {
        let ping = br#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#;
        let reply = daemon.send("POST", path, &[json, BOTH], ping);
        assert_eq!((reply.status, &reply.json()["id"]), (404, &json!("x")), "{}", reply.text());
    }
    let mut connection = daemon.connect();
    connection.raw(
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 4194305\r\n\r\n",
    );
    assert_eq!(connection.reply().status, 413);
    assert_eq!(daemon.send("GET", "/mcp", &[BOTH], b"").status, 405);
    assert_eq!(daemon.send("DELETE", "/mcp", &[], b"").status, 405);
    assert_eq!(daemon.send("PUT", "/mcp", &[], b"").status, 405);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}).to_string();
    let headers = [json, BOTH, ("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    for path in ["/mcp/none", "/mcp/server/none"] {
        assert_eq!(daemon.send("POST", path, &headers, body.as_bytes()).status, 404, "{path}");
    }
}

#[test]
fn a_listener_is_acknowledged_tagged_and_told_of_the_end() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let mut daemon = site.start();
    let params = json!({"_meta": meta(), "notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let body = json!({"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": params}).to_string();
    let headers = [
        ("content-type", "application/json"),
        BOTH,
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "subscriptions/listen"),
    ];
    let mut connection = daemon.connect();
    connection.request("POST", "/mcp", &headers, body.as_bytes());
    let mut stream = Stream::of(connection);
    assert_eq!(stream.head.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.head.header("cache-control"), Some("no-store"));
    assert_eq!(stream.head.header("x-accel-buffering"), Some("no"));
    let first = stream.next().unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    wait_until("the stream to be counted", || daemon.metric("almanac_mcp_streams") == Some(1.0));
    daemon.signal("TERM");
    let last = stream.next().unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("sub"), &json!("complete")));
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    assert!(stream.next().is_none());
    assert!(daemon.wait().success());
    let daemon = site.start();
    let json_only = [headers[0], ("accept", "application/json"), headers[2], headers[3]];
    assert_eq!(daemon.send("POST", "/mcp", &json_only, body.as_bytes()).status, 406);
}
