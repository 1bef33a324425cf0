//! Clients of the versions with a handshake: sessions that cost nothing and outlive the daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::client::{BOTH, LEGACY, MODERN, Session, Stream, call, meta};
use crate::access::token;
use crate::daemon::{Site, serve_shipped, wait_until};

#[test]
fn a_session_is_begun_used_and_ended() {
    let (_site, daemon) = serve_shipped();
    for (wanted, agreed) in
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2026-07-28", LEGACY), ("1999-01-01", LEGACY)]
    {
        let (reply, session) = Session::try_begin(&daemon, &[], wanted);
        let result = reply.json()["result"].clone();
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(result["serverInfo"]["name"], "almanac");
        assert_eq!(result["capabilities"], json!({"tools": {"listChanged": true}, "logging": {}}));
        assert!(result.get("resultType").is_none() && result.get("_meta").is_none());
        let session = session.unwrap();
        assert_eq!(session.tell(&daemon, "notifications/initialized").status, 202);
        let listed = session.ask(&daemon, "tools/list", json!({})).json();
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 5);
        assert!(listed["result"].get("ttlMs").is_none());
        assert_eq!(session.ask(&daemon, "ping", json!({})).json()["result"], json!({}));
        assert_eq!(session.ask(&daemon, "logging/setLevel", json!({"level": "info"})).json()["result"], json!({}));
        let wrong = session.ask(&daemon, "logging/setLevel", json!({"level": "loud"}));
        assert_eq!((wrong.status, &wrong.json()["error"]["code"]), (200, &json!(-32602)));
        let unknown = session.ask(&daemon, "no/such", json!({}));
        assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (200, &json!(-32601)));
        let discover = session.ask(&daemon, "server/discover", json!({}));
        assert_eq!(discover.json()["error"]["code"], -32601);
        let result = session.ask(&daemon, "tools/call", json!({"name": "recall"})).json()["result"].clone();
        assert_eq!(result.get("structuredContent").is_some(), agreed >= "2025-06-18", "{agreed}");
        assert_eq!(session.send(&daemon, "DELETE", &[]).status, 204);
        assert_eq!(session.ask(&daemon, "ping", json!({})).status, 404);
        assert_eq!(session.send(&daemon, "DELETE", &[]).status, 404);
    }
    assert_eq!(daemon.metric("almanac_mcp_sessions"), Some(4.0));
}

#[test]
fn a_session_outlives_the_daemon_and_is_nobody_elses() {
    let site = Site::new();
    let (mine, other) = (token(&site, "mine", "read"), token(&site, "other", "read,memory"));
    site.configure(&format!("auth: {{tokens_file: {}}}\n", site.path("tokens").display()));
    let bearer = |token: &str| format!("Bearer {token}");
    let (mine, other) = (bearer(&mine), bearer(&other));
    let mut daemon = site.start();
    let session = Session::begin(&daemon, &[("authorization", &mine)], LEGACY);
    daemon.signal("TERM");
    daemon.wait();
    let daemon = site.start();
    assert_eq!(session.ask(&daemon, "ping", json!({})).status, 200);
    let foreign = Session { id: session.id.clone(), ..Session::begin(&daemon, &[("authorization", &other)], LEGACY) };
    assert_eq!(foreign.ask(&daemon, "ping", json!({})).status, 404);
    let (refused, _) = Session::try_begin(&daemon, &[], LEGACY);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    let refused = session.ask(&daemon, "tools/call", json!({"name": "recall"}));
    let challenge = r#"Bearer error="insufficient_scope", scope="memory""#;
    assert_eq!((refused.status, refused.header("www-authenticate")), (403, Some(challenge)));
    let key = site.path("state/mcp-sessions.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    drop(daemon);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = site.fail(&[]);
    assert!(code == 1 && said.contains("others can read"), "{code} {said}");
}

#[test]
fn a_stream_tells_of_nothing_until_the_daemon_ends() {
    let (_site, mut daemon) = serve_shipped();
    let session = Session::begin(&daemon, &[], LEGACY);
    assert_eq!(session.send(&daemon, "GET", &[("accept", "application/json")]).status, 406);
    let mut stream = session.listen(&daemon);
    assert_eq!((stream.head.status, stream.head.header("content-type")), (200, Some("text/event-stream")));
    wait_until("the stream to be counted", || daemon.metric("almanac_mcp_streams") == Some(1.0));
    assert!(!call(&daemon, "recall", json!({})).1, "others are answered meanwhile");
    daemon.signal("TERM");
    assert!(stream.next().is_none());
    assert!(daemon.wait().success());
}

#[test]
fn streams_end_with_their_token() {
    let site = Site::new();
    let bearer = format!("Bearer {}", token(&site, "mine", "read"));
    site.configure(&format!("auth: {{tokens_file: {}}}\n", site.path("tokens").display()));
    let daemon = site.start();
    let session = Session::begin(&daemon, &[("authorization", &bearer)], LEGACY);
    let mut told = session.listen(&daemon);
    let mut connection = daemon.connect();
    let headers = [
        ("content-type", "application/json"),
        BOTH,
        ("authorization", &bearer),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "subscriptions/listen"),
    ];
    let params = json!({"_meta": meta(), "notifications": {"toolsListChanged": true}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    connection.request("POST", "/mcp", &headers, body.to_string().as_bytes());
    let mut listening = Stream::of(connection);
    assert_eq!(listening.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
    fs::write(site.path("tokens"), "tokens: []\n").unwrap();
    assert!(told.next().is_none() && listening.next().is_none());
    wait_until("both to be given up", || daemon.metric_as_admin("almanac_mcp_streams") == Some(0.0));
}
