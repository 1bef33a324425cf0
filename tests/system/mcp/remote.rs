//! Servers at a URL: another daemon, and one of the older era.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::served::{Served, ask, ask_with, configure, messages, names, outcome, text};
use crate::access::token;
use crate::daemon::{Site, wait_for, wait_until};
use crate::mcp_fixture::server;

/// A daemon whose server `far` is the server `a` of another one.
fn behind(near: &Served, more: &str) -> Served {
    let url = format!("http://{}/mcp/server/a", near.daemon.address);
    Served::new(&format!("    far: {{url: '{url}'{more}}}\n"), "  anonymous_calls: true\n")
}

#[test]
fn a_modern_server_at_a_url_is_as_good_as_a_program() {
    let near = Served::one("legacy more");
    let far = behind(&near, "");
    assert!(names(&far.ask("/mcp/all", "tools/list", json!({}))).contains(&"far_echo".to_owned()));
    assert_eq!(text(&far.call("far_echo", json!({"text": "there and back"}))), "there and back");
    let result = far.call("far_write", json!({"path": "x"}));
    assert_eq!(result["big"].to_string(), "12345678901234567890");
    assert_eq!(far.call("far_fail", json!({}))["isError"], true);
    let progress = json!({"name": "far_progress", "arguments": {}, "_meta": {"progressToken": "p"}});
    let told = messages(&ask(&far.daemon, "/mcp", "tools/call", progress));
    assert_eq!(told[0]["params"]["progressToken"], "p", "{told:?}");
    // A call that takes a while comes as a stream, and one that is given up is cancelled over there.
    assert_eq!(far.call("far_sleep", json!({"ms": 500}))["content"], json!([]));
    let handle = far.call("call_tool", json!({"name": "far_sleep", "arguments": {"ms": 60_000}, "wait_seconds": 0.1}));
    let handle = handle["structuredContent"]["handle"].clone();
    far.call("get_result", json!({"handle": handle, "cancel": true}));
    wait_until("the cancellation", || near.logs("a").contains("heard notifications/cancelled"));
    wait_until("the records", || near.recorded("a_echo") == 1 && far.recorded("far_echo") == 1);
}

#[test]
fn a_changed_definition_of_a_url_is_refused_unless_it_is_approved() {
    let servers = |says: &str| format!("    a: {}}}\n", server(&format!("legacy says={says}")));
    let near = Served::new(&servers("old"), "  anonymous_calls: true\n");
    let far = behind(&near, "");
    configure(&near.site, &servers("new"), "  anonymous_calls: true\n");
    assert_eq!(near.daemon.admin("POST", "/-/reload", b"").status, 200);
    // It is told of the change.
    wait_until("the change", || far.daemon.metric(r#"almanac_mcp_blocked_tools{server="far"}"#) == Some(6.0));
    assert!(text(&far.call("far_echo", json!({}))).contains("almanacd ctl mcp approve far echo"));
}

#[test]
fn a_daemon_is_no_server_of_its_own() {
    let served = Served::one("legacy");
    let bridge =
        format!("command: ['{}', mcp, --url, 'http://{}']", env!("CARGO_BIN_EXE_almanacd"), served.daemon.address);
    for (name, own) in [("me", format!("url: 'http://{}/mcp/all'", served.daemon.address)), ("bridge", bridge)] {
        configure(&served.site, &format!("    {name}: {{{own}}}\n"), "  anonymous_calls: true\n");
        assert_eq!(served.daemon.admin("POST", "/-/reload", b"").status, 200);
        let problem = wait_for("the refusal", || {
            let servers = served.daemon.admin("GET", "/-/mcp", b"").json();
            assert!(servers["items"].as_array().unwrap().iter().all(|server| server["name"] == name), "{servers}");
            servers["items"][0]["problem"].as_str().map(ToOwned::to_owned)
        });
        assert!(problem.contains("this daemon itself"), "{problem}");
        let offered = names(&served.ask("/mcp/all", "tools/list", json!({})));
        assert!(offered.iter().all(|tool| !tool.starts_with(&format!("{name}_"))), "{offered:?}");
    }
}

#[test]
fn each_token_has_a_credential_of_its_own_and_none_is_passed_on() {
    let near = Site::new();
    let tokens: Vec<String> = ["shared", "anna"].iter().map(|name| token(&near, name, "read,call")).collect();
    let auth = format!("auth: {{tokens_file: {}}}\n", near.path("tokens").display());
    configure(&near, &format!("    a: {}}}\n", server("legacy")), "");
    let text_of = std::fs::read_to_string(near.path("almanac.yaml")).unwrap();
    near.configure(&format!("{text_of}{auth}"));
    let near_daemon = near.start();
    let url = format!("http://{}/mcp/server/a", near_daemon.address);
    let far = Site::new();
    let anna = token(&far, "anna", "read,call");
    let other = token(&far, "other", "read,call");
    let auth = format!("auth: {{tokens_file: {}}}\n", far.path("tokens").display());
    let servers = format!(
        "    far:\n      url: '{url}'\n      headers: {{Authorization: 'Bearer {}'}}\n      \
         headers_by_token: {{anna: {{Authorization: 'Bearer {}'}}}}\n",
        tokens[0], tokens[1]
    );
    configure(&far, &servers, "");
    let text_of = std::fs::read_to_string(far.path("almanac.yaml")).unwrap();
    far.configure(&format!("{text_of}{auth}"));
    let daemon = far.start();
    let call = |token: &str, word: &str| {
        let mut connection = daemon.connect();
        let meta = super::client::meta();
        let params = json!({"name": "far_echo", "arguments": {"text": word}, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "far_echo"),
        ];
        connection.request("POST", "/mcp", &headers, body.as_bytes());
        outcome(&connection.reply_to("POST"))
    };
    wait_until("the server", || call(&other, "other")["result"]["content"][0]["text"] == "other");
    assert_eq!(call(&anna, "anna")["result"]["content"][0]["text"], "anna");
    let relayed = near_daemon.log.text();
    let of = |token: &str| relayed.lines().filter(|line| line.contains("tool relayed") && line.contains(token)).count();
    assert_eq!(of(r#""token":"anna""#), 1, "{relayed}");
    assert!(of(r#""token":"shared""#) >= 1, "{relayed}");
    for secret in tokens.iter().chain([&anna, &other]) {
        assert!(!relayed.contains(secret.as_str()) && !daemon.log.text().contains(secret.as_str()));
    }
}

/// A server of the older era, which wants its session with each request and forgets it once.
fn old_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, sessions) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&sessions);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sessions = Arc::clone(&counted);
            thread::spawn(move || while serve_one(&stream, &sessions).is_some() {});
        }
    });
    (format!("http://{address}/mcp"), sessions)
}

fn serve_one(mut stream: &TcpStream, sessions: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).ok()? > 2 {
        head.push_str(&line.to_ascii_lowercase());
        line.clear();
    }
    let of = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned());
    let mut body = vec![0; of("content-length:").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let mut answer = |status: &str, more: &str, body: &str| {
        let head = format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).ok()
    };
    if head.starts_with("post /moved") {
        return answer("307 Temporary Redirect", "location: /mcp\r\n", "");
    }
    if head.starts_with("post /away") {
        return answer("308 Permanent Redirect", "location: http://localhost:1/mcp\r\n", "");
    }
    if !head.starts_with("post") {
        return answer("405 Method Not Allowed", "", "");
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let json = "content-type: application/json\r\n";
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let session = sessions.load(Ordering::Relaxed);
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let session = sessions.fetch_add(1, Ordering::Relaxed) + 1;
            let greeting = json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            });
            answer("200 OK", &format!("{json}mcp-session-id: s{session}\r\n"), &result(greeting))
        }
        "server/discover" => answer(
            "400 Bad Request",
            json,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#,
        ),
        _ if of("mcp-session-id:") != Some(format!("s{session}")) => answer("404 Not Found", "", ""),
        _ if of("mcp-protocol-version:").as_deref() != Some("2025-06-18") => answer("400 Bad Request", "", ""),
        "notifications/initialized" => answer("202 Accepted", "", ""),
        "tools/list" => {
            let tool = json!({"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}});
            answer("200 OK", json, &result(json!({"tools": [tool]})))
        }
        // As a stream, with something else before the answer.
        "tools/call" if message["params"]["arguments"]["forget"] != true || session > 1 => {
            let told =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
            let text = format!("hello in s{session}");
            let body = result(json!({"content": [{"type": "text", "text": text}]}));
            answer("200 OK", "content-type: text/event-stream\r\n", &format!("data: {told}\n\ndata: {body}\n\n"))
        }
        _ => answer("404 Not Found", "", ""),
    }
}

#[test]
fn a_server_of_the_older_era_has_a_session_that_is_made_anew() {
    let (url, sessions) = old_server();
    let far = Served::new(&format!("    far: {{url: '{url}'}}\n"), "  anonymous_calls: true\n");
    assert_eq!(text(&far.call("far_greet", json!({}))), "hello in s1");
    assert_eq!(sessions.load(Ordering::Relaxed), 1);
    // It forgets the session, and did nothing: the call is made in another.
    assert_eq!(text(&far.call("far_greet", json!({"forget": true}))), "hello in s2");
    assert_eq!(sessions.load(Ordering::Relaxed), 2);
    assert_eq!(text(&far.call("far_greet", json!({}))), "hello in s2");
}

#[test]
fn a_url_that_does_not_answer_is_said_to() {
    let site = Site::new();
    let servers = "    far: {url: 'http://127.0.0.1:9/mcp'}\n";
    let far = Served::start(site, servers, "  anonymous_calls: true\n");
    let listed = || far.daemon.admin("GET", "/-/mcp", b"").text();
    wait_until("the failure", || listed().contains("it cannot be reached"));
}

#[test]
fn a_call_that_never_reached_its_url_is_said_not_to_have_run() {
    let near = Served::one("legacy more");
    let far = behind(&near, "");
    assert_eq!(text(&far.call("far_echo", json!({"text": "x"}))), "x");
    wait_until("the record", || far.recorded("far_echo") == 1);
    drop(near);
    let result = far.call("far_write", json!({"path": "x"}));
    let said = text(&result);
    assert!(said.contains("cannot be reached") && said.contains("the call was not made"), "{said}");
    assert_eq!((far.recorded("far_echo"), far.recorded("far_write")), (1, 0));
}

#[test]
fn redirects_are_followed_within_their_origin_only() {
    let (url, _) = old_server();
    let moved = url.replace("/mcp", "/moved");
    let far = Served::new(&format!("    far: {{url: '{moved}'}}\n"), "  anonymous_calls: true\n");
    assert_eq!(text(&far.call("far_greet", json!({}))), "hello in s1");
    let away = url.replace("/mcp", "/away");
    let far = Served::start(Site::new(), &format!("    far: {{url: '{away}'}}\n"), "");
    let listed = || far.daemon.admin("GET", "/-/mcp", b"").text();
    wait_until("the refusal", || listed().contains("redirects to another origin"));
}

#[test]
fn headers_repeat_what_arguments_say() {
    let near = Served::one("legacy headers");
    let tools = names(&near.ask("/mcp/server/a", "tools/list", json!({})));
    assert!(tools.contains(&"route".to_owned()) && !tools.contains(&"broken".to_owned()), "{tools:?}");
    assert!(near.logs("a").contains("the schema of `broken` names the header of `region`"), "{}", near.logs("a"));
    // Clients must send them.
    let call = json!({"name": "route", "arguments": {"region": "Zürich", "n": 3}});
    let check = |headers: &[(&str, &str)], status: u16| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let reply = ask_with(&near.daemon, "/mcp/server/a", "tools/call", call.clone(), &headers);
        let said = outcome(&reply);
        assert_eq!(
            (reply.status, said["error"]["code"].as_i64()),
            (status, (status != 200).then_some(-32020)),
            "{said}"
        );
    };
    let region = ("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=");
    check(&[], 400);
    check(&[region], 400);
    check(&[region, ("Mcp-Param-N", "4")], 400);
    check(&[region, region, ("Mcp-Param-N", "3")], 400);
    check(&[region, ("Mcp-Param-N", "3.0")], 200);
    // The daemon sends them to servers at URLs, here another daemon; the names of meta tools have none.
    let far = behind(&near, "");
    for arguments in [json!({"region": "Zürich", "n": -3}), json!({"region": " ", "n": 0}), json!({})] {
        let called = far.call("call_tool", json!({"name": "far_route", "arguments": arguments}));
        assert_eq!(text(&called), arguments.to_string());
    }
}
