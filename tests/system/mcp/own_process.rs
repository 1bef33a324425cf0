//! Servers with a process for each session: whose it is, what it hears, and when it ends.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{BOTH, LEGACY, Session};
use super::served::{Served, ask, messages, names, whole_reply};
use crate::daemon::wait_until;
use crate::mcp_fixture::server;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn serve(words: &str) -> Served {
    Served::new(&format!("    a: {}, per_session: true}}\n", server(words)), "  anonymous_calls: true\n")
}

fn pid(served: &Served, capabilities: &Value) -> u64 {
    let meta = json!({CAPABILITIES: capabilities});
    served.call_with("call_tool", json!({"name": "a_echo", "arguments": {"text": ""}}), meta)["pid"].as_u64().unwrap()
}

#[test]
fn clients_without_a_session_share_a_process_with_those_that_can_the_same() {
    let served = serve("legacy");
    let (none, some) = (json!({}), json!({"elicitation": {}}));
    let first = pid(&served, &none);
    assert_ne!(pid(&served, &some), first);
    assert_eq!(pid(&served, &none), first);
    // Prompts and resources are asked for in the same one.
    let read = |capabilities: &Value| {
        let params = json!({"uri": "test://ask", "_meta": {CAPABILITIES: capabilities}});
        super::served::outcome(&ask(&served.daemon, "/mcp/server/a", "resources/read", params))
    };
    assert_eq!(read(&some)["result"]["resultType"], "input_required");
    assert!(read(&none).to_string().contains("cancel"));
    let processes = served.logs("a").matches("has a process for a session").count();
    assert_eq!(processes, 2, "{}", served.logs("a"));
}

#[test]
fn a_restart_ends_the_processes_of_sessions() {
    let served = serve("legacy");
    let pid = pid(&served, &json!({}));
    assert_eq!(served.daemon.admin("POST", "/-/mcp/a/restart", b"").status, 200);
    wait_until("the process to end", || !Path::new(&format!("/proc/{pid}")).exists());
    assert_ne!(self::pid(&served, &json!({})), pid);
}

#[test]
fn tools_for_clients_that_can_be_asked_are_listed() {
    for era in ["legacy", "modern"] {
        let check = |more: &str, expected: bool| {
            let servers = format!("    a: {}{more}}}\n", server(&format!("{era} picky")));
            let served = Served::new(&servers, "  anonymous_calls: true\n");
            let listed = names(&served.ask("/mcp/server/a", "tools/list", json!({})));
            assert_eq!(listed.contains(&"confide".to_owned()), expected, "{era} {more}: {listed:?}");
        };
        check("", false);
        check(", per_session: true", true);
    }
}

#[test]
fn a_client_hears_the_log_messages_that_it_wants() {
    let served = serve("legacy logs");
    let levels = |told: Vec<Value>| -> Vec<String> {
        let logged = told.into_iter().filter(|told| told["method"] == "notifications/message");
        logged.map(|told| told["params"]["level"].as_str().unwrap().to_owned()).collect()
    };
    let modern = |level: Option<&str>| {
        let meta = level.map_or_else(|| json!({}), |level| json!({"io.modelcontextprotocol/logLevel": level}));
        let params = json!({"name": "log", "arguments": {}, "_meta": meta});
        levels(messages(&ask(&served.daemon, "/mcp/server/a", "tools/call", params)))
    };
    assert_eq!(modern(None), [""; 0]);
    assert_eq!(modern(Some("warning")), ["error"]);
    assert_eq!(modern(Some("debug")), ["info", "error"]);
    let session = Session::begin(&served.daemon, &[], LEGACY);
    let legacy = || {
        let params = json!({"name": "a_log", "arguments": {}});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
        let headers = [("content-type", "application/json"), BOTH, ("mcp-session-id", session.id.as_str())];
        levels(messages(&whole_reply(&served.daemon, "/mcp", &headers, &body)))
    };
    assert_eq!(legacy(), ["info", "error"]);
    let set = session.ask(&served.daemon, "logging/setLevel", json!({"level": "error"}));
    assert_eq!(set.json()["result"], json!({}));
    assert_eq!(legacy(), ["error"]);
}
