//! Questions of servers to clients, in each of the four pairs of eras.

use serde_json::{Value, json};

use super::client::{BOTH, LEGACY, MODERN, Stream, meta, post};
use super::served::{Served, messages, whole_reply};
use crate::daemon::wait_until;
use crate::mcp_fixture::server;

/// What servers ask, and what is answered.
fn questions() -> [(&'static str, Value); 3] {
    [
        ("elicitation/create", json!({"action": "accept", "content": {"name": "Anna"}})),
        (
            "sampling/createMessage",
            json!({"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}),
        ),
        ("roots/list", json!({"roots": [{"uri": "file:///here"}]})),
    ]
}

/// One server that speaks this era alone, with a process for each session.
fn serve(era: &str) -> Served {
    Served::new(&format!("    a: {}, per_session: true}}\n", server(era)), "  anonymous_calls: true\n")
}

fn all() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

/// What a modern client that can answer everything is told.
fn ask(served: &Served, capabilities: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
    served.ask("/mcp/server/a", "tools/call", params)
}

#[test]
fn a_modern_client_answers_a_legacy_server() {
    let served = serve("legacy");
    for (method, answer) in questions() {
        let params = json!({"name": "ask", "arguments": {"method": method}});
        let asked = ask(&served, &all(), params.clone())["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(asked["inputRequests"]["question"], json!({"method": method, "params": {"message": "name?"}}));
        let back = |state: &Value, responses: Value| {
            let mut params = params.clone();
            (params["requestState"], params["inputResponses"]) = (state.clone(), responses);
            ask(&served, &all(), params)
        };
        // Who comes back without the answer is asked again; the state is good once.
        let again = back(&asked["requestState"], json!({"other": {}}))["result"].clone();
        assert_eq!(again["inputRequests"], asked["inputRequests"], "{again}");
        let tampered = format!("{}x", again["requestState"].as_str().unwrap());
        assert_eq!(back(&json!(tampered), json!({"question": answer}))["error"]["code"], -32602);
        let result = back(&again["requestState"], json!({"question": answer}))["result"].clone();
        assert_eq!(result["heard"]["result"], answer, "{result}");
        let late = back(&again["requestState"], json!({"question": answer}))["result"].clone();
        assert_eq!(late["isError"], true, "{late}");
    }
    wait_until("the records", || served.recorded("a_ask") == 3);
}

#[test]
fn who_cannot_answer_is_not_asked() {
    let served = serve("legacy");
    let result = ask(&served, &json!({}), json!({"name": "ask", "arguments": {}}))["result"].clone();
    assert_eq!(result["heard"]["result"]["action"], "cancel", "{result}");
}

#[test]
fn a_modern_client_answers_a_modern_server() {
    let served = serve("modern");
    for (method, answer) in questions() {
        let params = json!({"name": "ask", "arguments": {"method": method}});
        let asked = ask(&served, &all(), params.clone())["result"].clone();
        assert_eq!(asked["inputRequests"]["who"]["method"], method, "{asked}");
        assert_ne!(asked["requestState"], "s1", "it is sealed");
        let back = |state: &Value| {
            let mut params = params.clone();
            (params["requestState"], params["inputResponses"]) = (state.clone(), json!({"who": answer}));
            ask(&served, &all(), params)
        };
        assert_eq!(back(&json!("s1"))["error"]["code"], -32602);
        let result = back(&asked["requestState"])["result"].clone();
        assert_eq!(result["heard"], json!({"responses": {"who": answer}, "state": "s1"}), "{result}");
        // The tool that calls others hands questions and answers on as well.
        let found = json!({"name": "call_tool", "arguments": {"name": "a_ask", "arguments": {"method": method}}});
        let mut found = found;
        found["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": all()});
        let asked = served.ask("/mcp", "tools/call", found.clone())["result"].clone();
        (found["requestState"], found["inputResponses"]) = (asked["requestState"].clone(), json!({"who": answer}));
        let result = served.ask("/mcp", "tools/call", found)["result"].clone();
        assert_eq!(result["heard"]["responses"]["who"], answer, "{result}");
    }
    wait_until("the records", || served.recorded("a_ask") == 6);
}

/// A legacy client calls, is asked on the stream of its call, and answers.
fn answers_on_its_stream(era: &str, heard: impl Fn(&Value) -> Value) {
    let served = serve(era);
    let path = "/mcp/server/a";
    let session = begin(&served);
    for (method, answer) in questions() {
        let params = json!({"name": "ask", "arguments": {"method": method}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", session.as_str()),
        ];
        let mut connection = served.daemon.connect();
        connection.request("POST", path, &headers, body.as_bytes());
        let mut stream = Stream::of(connection);
        let asked = stream.next().unwrap();
        assert_eq!((&asked["method"], &asked["params"]["message"]), (&json!(method), &json!("name?")), "{asked}");
        let answered = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).to_string();
        let reply = post(&served.daemon, path, &[("mcp-session-id", &session)], &answered);
        assert_eq!(reply.status, 202, "{}", reply.text());
        let result = stream.next().unwrap()["result"].clone();
        assert_eq!(heard(&result["heard"]), answer, "{result}");
        assert!(result.get("resultType").is_none() && result.get("requestState").is_none(), "{result}");
    }
    wait_until("the records", || served.recorded("a_ask") == 3);
}

#[test]
fn a_legacy_client_answers_a_legacy_server_on_its_stream() {
    answers_on_its_stream("legacy", |heard| heard["result"].clone());
}

#[test]
fn a_legacy_client_answers_a_modern_server_on_its_stream() {
    answers_on_its_stream("modern", |heard| heard["responses"]["who"].clone());
}

/// A session at the server's own address.
fn begin(served: &Served) -> String {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": LEGACY, "capabilities": all(), "clientInfo": client});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    post(&served.daemon, "/mcp/server/a", &[], &body.to_string()).header("mcp-session-id").unwrap().to_owned()
}

#[test]
fn a_modern_client_answers_a_legacy_server_about_prompts_and_resources() {
    let served = serve("legacy");
    for (method, about) in [("prompts/get", json!({"name": "ask"})), ("resources/read", json!({"uri": "test://ask"}))] {
        let ask = |capabilities: Value, more: Value| {
            let mut params = about.clone();
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
            served.ask("/mcp/server/a", method, params)
        };
        let asked = ask(all(), json!({}))["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let question = json!({"method": "elicitation/create", "params": {"message": "name?"}});
        assert_eq!(asked["inputRequests"], json!({"question": question}), "{asked}");
        let answer = json!({"action": "accept", "content": {"name": "Anna"}});
        let back =
            |state: Value, responses: Value| ask(all(), json!({"requestState": state, "inputResponses": responses}));
        let again = back(asked["requestState"].clone(), json!({}))["result"].clone();
        assert_eq!(again["inputRequests"], asked["inputRequests"], "{again}");
        let tampered = json!(format!("{}x", again["requestState"].as_str().unwrap()));
        assert_eq!(back(tampered, json!({"question": answer}))["error"]["code"], -32602);
        let result = back(again["requestState"].clone(), json!({"question": answer}))["result"].clone();
        assert_eq!(result["resultType"], "complete", "{result}");
        assert!(result.to_string().contains("Anna"), "{result}");
        let late = back(again["requestState"].clone(), json!({"question": answer}));
        assert!(late["error"]["message"].as_str().unwrap().contains("was given up"), "{late}");
        // Who cannot answer is not asked.
        let refused = ask(json!({}), json!({}))["result"].clone();
        assert!(refused.to_string().contains("cancel"), "{refused}");
    }
}

#[test]
fn a_modern_client_hears_a_legacy_servers_progress_and_gives_up_its_calls() {
    let served = serve("legacy");
    let call = |name: &str, arguments: Value| {
        let mut all = meta();
        all["progressToken"] = json!("p");
        let params = json!({"name": name, "arguments": arguments, "_meta": all});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    let headers = |name: &'static str| {
        let said = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", name)];
        [[("content-type", "application/json"), BOTH].as_slice(), &said].concat()
    };
    let body = call("progress", json!({}));
    let told = messages(&whole_reply(&served.daemon, "/mcp/server/a", &headers("progress"), &body));
    let [progress, result] = &told[..] else { panic!("{told:?}") };
    let expected = json!({"progressToken": "p", "progress": 0.5, "total": 1});
    assert_eq!((&progress["method"], &progress["params"]), (&json!("notifications/progress"), &expected));
    assert_eq!(result["result"]["resultType"], "complete", "{result}");
    let mut connection = served.daemon.connect();
    let body = call("sleep", json!({"ms": 60_000}));
    connection.request("POST", "/mcp/server/a", &headers("sleep"), body.as_bytes());
    wait_until("the call", || served.logs("a").contains("slept 60000 ms"));
    drop(connection);
    wait_until("the cancellation", || served.logs("a").contains("heard notifications/cancelled"));
    wait_until("the record", || served.recorded("a_sleep") == 1);
}

#[test]
fn a_legacy_client_hears_a_modern_servers_progress_and_gives_up_its_calls() {
    let served = serve("modern");
    let session = begin(&served);
    let headers = [("content-type", "application/json"), BOTH, ("mcp-session-id", session.as_str())];
    let params = json!({"name": "progress", "arguments": {}, "_meta": {"progressToken": 7}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let told = messages(&whole_reply(&served.daemon, "/mcp/server/a", &headers, &body));
    let [progress, result] = &told[..] else { panic!("{told:?}") };
    let expected = json!({"progressToken": 7, "progress": 0.5, "total": 1});
    assert_eq!((&progress["method"], &progress["params"]), (&json!("notifications/progress"), &expected));
    assert_eq!(result["result"]["content"], json!([]), "{result}");
    assert!(result["result"].get("resultType").is_none(), "{result}");
    let params = json!({"name": "sleep", "arguments": {"ms": 60_000}});
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string();
    let mut connection = served.daemon.connect();
    connection.request("POST", "/mcp/server/a", &headers, body.as_bytes());
    wait_until("the call", || served.logs("a").contains("slept 60000 ms"));
    let mut stream = Stream::of(connection);
    let params = json!({"requestId": 2});
    let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string();
    assert_eq!(post(&served.daemon, "/mcp/server/a", &[("mcp-session-id", &session)], &body).status, 202);
    assert_eq!(stream.next(), None, "what is given up is not answered");
    wait_until("the cancellation", || served.logs("a").contains("heard notifications/cancelled"));
    wait_until("the record", || served.recorded("a_sleep") == 1);
}
