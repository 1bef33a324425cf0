//! Tools of servers, as clients list, find and call them.

use serde_json::{Value, json};

use super::client::{BOTH, LEGACY, Session, Stream, meta, post};
use super::served::{Served, ask, messages, names, outcome, text};
use crate::daemon::{Site, wait_until};
use crate::mcp_fixture::server;

const META: &str = "dev.almanac/metadata";

#[test]
fn a_tool_is_listed_found_and_called_in_both_eras() {
    for words in ["legacy more", "modern more"] {
        let served = Served::one(words);
        let listed = names(&served.ask("/mcp", "tools/list", json!({})));
        assert_eq!(listed[..4], ["find_tools", "call_tool", "call_tool_read_only", "get_result"], "{listed:?}");
        assert!(listed[4..].is_sorted() && listed.contains(&"a_echo".to_owned()), "{listed:?}");
        assert_eq!(served.daemon.json("/v1/tools/a_echo")["backend"], "mcp:a");
        let arguments = json!({"text": "hällo"});
        let meta = json!({"traceparent": "00-1", "dev.almanac/session": "s1"});
        let result = served.call_with("a_echo", arguments.clone(), meta);
        assert_eq!((text(&result), &result["isError"]), ("hällo", &json!(false)));
        // What nobody knows passes; what is between a client and the daemon does not.
        assert_eq!(result["sent"]["traceparent"], "00-1", "{result}");
        assert!(result["pid"].is_u64() && result["sent"]["dev.almanac/session"].is_null(), "{result}");
        let told = &result["_meta"][META];
        assert_eq!((&told["call"]["server"], &told["call"]["joined"]), (&json!("a"), &Value::Null), "{result}");
        assert!(told["timing"]["duration_ms"].is_u64() && told.to_string().len() <= 4096, "{told}");
        assert_eq!(result["resultType"], "complete");
        wait_until("the record", || served.recorded("a_echo") == 1);
        let session = Session::begin(&served.daemon, &[], LEGACY);
        let called = session.ask(&served.daemon, "tools/call", json!({"name": "a_echo", "arguments": arguments}));
        let result = outcome(&called)["result"].clone();
        assert_eq!((text(&result), &result["resultType"]), ("hällo", &Value::Null), "{result}");
        wait_until("the record", || served.recorded("a_echo") == 2);
    }
}

#[test]
fn a_found_tool_is_called_as_models_call() {
    let served = Served::one("legacy more");
    let found = served.find("write a file to the disk");
    let first = &found["tools"][0];
    assert_eq!((&first["name"], &first["callable"]), (&json!("a_write"), &Value::Null), "{found}");
    assert_eq!(first["inputSchema"]["required"], json!(["path"]));
    let arguments = json!({"name": "a_write", "arguments": {"path": "x"}, "search_id": found["search_id"]});
    let result = served.call("call_tool", arguments);
    assert_eq!(text(&result), "done");
    assert_eq!(result["big"].to_string(), "12345678901234567890");
    // A text of JSON, and a client's prefix.
    let result = served.call("call_tool", json!({"name": "mcp__almanac__a_write", "arguments": "{\"path\": \"x\"}"}));
    assert_eq!(text(&result), "done");
    let check = |arguments: Value, parts: &[&str]| {
        let result = served.call("call_tool", arguments.clone());
        assert_eq!(result["isError"], true, "{arguments}: {result}");
        for part in parts {
            assert!(text(&result).contains(part), "{arguments}: {result}");
        }
    };
    check(json!({"name": "write"}), &["there is no tool `write`", "did you mean `a_write`?"]);
    check(json!({"name": "find_tools"}), &["`find_tools` is called by its own name"]);
    check(json!({"name": "a_wriet"}), &["there is no tool `a_wriet`", "did you mean `a_write`"]);
    check(json!({}), &["/name is missing"]);
    check(json!({"name": "a_write", "arguments": {}}), &["`path` is missing", "its schema: {", "required"]);
    check(json!({"name": "a_write", "arguments": {"path": 1}}), &["/path: must be string, not number"]);
    check(json!({"name": "a_write", "arguments": []}), &["/arguments must be an object"]);
    check(json!({"name": "a_fail"}), &["it failed"]);
    check(json!({"name": "a_refuse"}), &[r#"a answered with error -32002: not there; data: {"uri":"a://x"}"#]);
    // None of what was wrong reached the server but the last two.
    wait_until("the records", || served.recorded("a_write") == 2 && served.recorded("a_fail") == 1);
    let unknown = served.ask("/mcp", "tools/call", json!({"name": "a_wriet"}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("did you mean `a_write`"), "{unknown}");
    // Called directly, an error stays an error, in the words of the client's era.
    assert_eq!(served.ask("/mcp", "tools/call", json!({"name": "a_refuse"}))["error"]["code"], -32602);
    let session = Session::begin(&served.daemon, &[], LEGACY);
    let refused = session.ask(&served.daemon, "tools/call", json!({"name": "a_refuse"}));
    assert_eq!(outcome(&refused)["error"]["code"], -32002);
}

#[test]
fn what_is_read_only_can_be_told_apart() {
    let servers =
        format!("    a: {}}}\n    b: {}, trust_annotations: true}}\n", server("legacy more"), server("legacy more"));
    let served = Served::new(&servers, "  anonymous_calls: true\n");
    let refused = served.call("call_tool_read_only", json!({"name": "a_read", "arguments": {"path": "x"}}));
    assert!(text(&refused).contains("not known to change nothing"), "{refused}");
    let result = served.call("call_tool_read_only", json!({"name": "b_read", "arguments": {"path": "x"}}));
    assert_eq!(text(&result), "done");
    let described = served.call("find_tools", json!({"names": ["b_read", "a_read"]}));
    let described = &described["structuredContent"]["tools"];
    assert_eq!((&described[0]["read_only"], &described[1]["read_only"]), (&json!(true), &Value::Null), "{described}");
}

#[test]
fn a_document_is_laid_over_a_tool() {
    let site = Site::new();
    let document = |more: &str| {
        format!(
            "name: a_echo\ntitle: Parrot\ndescription: by hand\ncategory: birds\ncapabilities: []\n\
             keywords: [cockatoo]\nuse_cases: []\nread_only: true\nmode_argument: text\n{more}"
        )
    };
    site.save("a_echo.yaml", &document(""));
    let served = Served::start(site, &format!("    a: {}}}\n", server("legacy")), "  anonymous_calls: true\n");
    served.await_server("a");
    let merged = served.daemon.json("/v1/tools/a_echo");
    assert_eq!((&merged["description"], &merged["title"]), (&json!("plain"), &json!("Parrot")), "{merged}");
    let found = served.find("cockatoo");
    assert_eq!(found["tools"][0]["name"], "a_echo", "{found}");
    let result = served.call("call_tool_read_only", json!({"name": "a_echo", "arguments": {"text": "loud"}}));
    assert_eq!(result["_meta"][META]["context"]["mode_used"], "loud", "{result}");
    let of_echo = |listed: Value| {
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools.into_iter().find(|tool| tool["name"] == "a_echo").unwrap()["description"].clone()
    };
    assert_eq!(of_echo(served.ask("/mcp", "tools/list", json!({}))), "plain");
    served.site.save("a_echo.yaml", &document("override: [description]\n"));
    wait_until("the description", || of_echo(served.ask("/mcp", "tools/list", json!({}))) == "by hand");
}

#[test]
fn calls_need_a_scope_of_their_own() {
    let site = Site::new();
    let served = Served::start(site, &format!("    a: {}}}\n", server("legacy")), "");
    served.await_server("a");
    // Lists are the same, and what is refused tells the model where to go.
    assert!(names(&served.ask("/mcp", "tools/list", json!({}))).contains(&"a_echo".to_owned()));
    for refused in [served.call("a_echo", json!({})), served.call("call_tool", json!({"name": "a_echo"}))] {
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).contains("mcp.anonymous_calls: true") && text(&refused).contains("`almanacd mcp`"));
    }
    assert_eq!(served.recorded("a_echo"), 0);
    // What has no result that a model reads is refused in the same words, and no client is sent to log in.
    for (method, about) in [("prompts/get", json!({"name": "greet"})), ("resources/read", json!({"uri": "test://a"}))] {
        let refused = ask(&served.daemon, "/mcp/server/a", method, about);
        assert_eq!((refused.status, refused.header("www-authenticate")), (200, None), "{}", refused.text());
        let message = refused.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains("mcp.anonymous_calls: true"), "{message}");
    }
}

#[test]
fn progress_is_told_by_the_clients_token() {
    let served = Served::one("legacy");
    let params = json!({"name": "a_progress", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let told = messages(&ask(&served.daemon, "/mcp", "tools/call", params));
    assert_eq!(told[0]["method"], "notifications/progress", "{told:?}");
    assert_eq!(told[0]["params"], json!({"progressToken": "mine", "progress": 0.5, "total": 1}));
    assert!(told[1]["result"].is_object(), "{told:?}");
}

#[test]
fn who_leaves_cancels_at_the_server() {
    let served = Served::one("legacy");
    let params = json!({"name": "a_sleep", "arguments": {"ms": 60_000}, "_meta": meta()});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        ("content-type", "application/json"),
        BOTH,
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "a_sleep"),
    ];
    let mut connection = served.daemon.connect();
    connection.request("POST", "/mcp", &headers, body.as_bytes());
    let stream = Stream::of(connection);
    assert_eq!(stream.head.header("content-type"), Some("text/event-stream"));
    drop(stream);
    wait_until("the cancellation", || served.logs("a").contains("heard notifications/cancelled"));
    let cancelled = r#"almanac_mcp_calls_total{outcome="cancelled",server="a"}"#;
    wait_until("the record", || served.daemon.metric(cancelled) == Some(1.0) && served.recorded("a_sleep") == 1);
    // A legacy client says so.
    let session = Session::begin(&served.daemon, &[], LEGACY);
    let params = json!({"name": "a_sleep", "arguments": {"ms": 60_000}});
    let mut connection = served.daemon.connect();
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}).to_string();
    let headers = [headers[0], BOTH, ("mcp-session-id", session.id.as_str())];
    connection.request("POST", "/mcp", &headers, body.as_bytes());
    let mut stream = Stream::of(connection);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}});
    assert_eq!(post(&served.daemon, "/mcp", &[headers[2]], &cancel.to_string()).status, 202);
    wait_until("the record", || served.daemon.metric(cancelled) == Some(2.0));
    let last = stream.next();
    assert!(last.is_none_or(|last| last["error"]["message"].as_str().unwrap().contains("cancelled")));
}

#[test]
fn what_is_suggested_comes_with_the_result() {
    let site = Site::new();
    let tools = "complements: [{tool: a_echo, scenario: afterwards}]\n";
    let head = "title: t\ndescription: d\ncategory: c\ncapabilities: []\nkeywords: []\nuse_cases: []\n";
    site.save("a_sleep.yaml", &format!("name: a_sleep\n{head}{tools}"));
    let served = Served::start(site, &format!("    a: {}}}\n", server("legacy")), "  anonymous_calls: true\n");
    served.await_server("a");
    let result = served.call("a_sleep", json!({"ms": 400}));
    let told = &result["_meta"][META];
    assert_eq!(told["suggestions"]["next_tools"][0]["tool"], "a_echo", "{result}");
    assert!(told["timing"]["duration_ms"].as_u64().unwrap() >= 400, "{told}");
    assert!(result.get("metadata").is_none() && result.get("structuredContent").is_none(), "{result}");
}
