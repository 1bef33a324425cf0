//! Questions of servers to clients, in each of the four pairs of eras.

use serde_json::{Value, json};

use super::client::{LEGACY, Stream, post};
use super::served::Served;
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
    crate::daemon::wait_until("the records", || served.recorded("a_ask") == 3);
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
    crate::daemon::wait_until("the records", || served.recorded("a_ask") == 6);
}

/// A legacy client calls, is asked on the stream of its call, and answers.
fn answers_on_its_stream(era: &str, heard: impl Fn(&Value) -> Value) {
    let served = serve(era);
    let path = "/mcp/server/a";
    let params = json!({
        "protocolVersion": LEGACY, "capabilities": all(), "clientInfo": {"name": "test", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let session = post(&served.daemon, path, &[], &body.to_string()).header("mcp-session-id").unwrap().to_owned();
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
    crate::daemon::wait_until("the records", || served.recorded("a_ask") == 3);
}

#[test]
fn a_legacy_client_answers_a_legacy_server_on_its_stream() {
    answers_on_its_stream("legacy", |heard| heard["result"].clone());
}

#[test]
fn a_legacy_client_answers_a_modern_server_on_its_stream() {
    answers_on_its_stream("modern", |heard| heard["responses"]["who"].clone());
}
