//! Who is let in.

use std::fs;
use std::process::Command;

use crate::daemon::{Daemon, Site, almanacd, document, serve_shipped_on, wait_until};
use crate::fixtures::hostile;

/// Makes a token in the site's file and returns it.
pub fn token(site: &Site, name: &str, scopes: &str) -> String {
    token_in(site, "tokens", name, scopes)
}

/// Makes two tokens of these scopes, the second of another tenant, and configures the site to ask for them.
pub fn tokens_of_two_tenants(site: &Site, scopes: &str) -> [String; 2] {
    let tokens = ["mine", "other"].map(|name| token(site, name, scopes));
    let file = site.path("tokens");
    let text = fs::read_to_string(&file).unwrap();
    let (first, rest) = text.split_once("other").unwrap();
    fs::write(&file, format!("{first}other{}", rest.replacen("\"default\"", "\"acme\"", 1))).unwrap();
    site.configure(&format!("auth: {{tokens_file: {}}}\n", file.display()));
    tokens
}

fn token_in(site: &Site, file: &str, name: &str, scopes: &str) -> String {
    let output = almanacd()
        .args(["token", "new", "--name", name, "--scopes", scopes, "--file"])
        .arg(site.path(file))
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn with_tokens(site: &Site) {
    site.configure(&format!("auth: {{tokens_file: {}}}\n", site.path("tokens").display()));
    site.save("a.yaml", &document("a", "t"));
}

#[test]
fn tokens_open_what_their_scopes_say() {
    let site = Site::new();
    let (reader, recorder) = (token(&site, "reader", "read"), token(&site, "recorder", "record"));
    with_tokens(&site);
    let daemon = site.start();
    let check = |authorization: Option<&str>, path: &str, status: u16, code: Option<&str>| {
        let headers: Vec<(&str, &str)> = authorization.map(|value| ("authorization", value)).into_iter().collect();
        let reply = daemon.send("GET", path, &headers, b"");
        assert_eq!(reply.status, status, "{authorization:?} {path}");
        if let Some(code) = code {
            assert_eq!(reply.code(), code);
        }
        reply
    };
    for path in ["/v1/tools/a", "/v1/tools", "/v1/tools/%61", "/metrics", "/openapi.json"] {
        let refused = check(None, path, 401, Some("no-token"));
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        check(Some("Bearer wrong"), path, 401, Some("unknown-token"));
        check(Some(&format!("Basic {reader}")), path, 401, Some("no-token"));
        check(Some(&format!("Bearer {recorder}")), path, 403, Some("missing-scope"));
        check(Some(&format!("bearer {reader}")), path, 200, None);
    }
    check(None, "/live", 200, None);
    wait_until("the daemon to be ready", || daemon.get("/ready").status == 200);
    assert_eq!(daemon.admin("GET", "/v1/tools/a", b"").status, 200, "the socket's permissions are the authority");
    assert!(!daemon.log.text().contains(&reader), "a token is in the log");
    let url = format!("http://{}", daemon.address);
    let asked = almanacd().args(["tools", "--url", &url]).env_remove("ALMANAC_TOKEN").output().unwrap();
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(said.contains("--token or ALMANAC_TOKEN"), "{said}");
}

#[test]
fn tokens_come_and_go_without_a_restart() {
    let site = Site::new();
    let first = token(&site, "first", "read");
    with_tokens(&site);
    let daemon = site.start();
    let status =
        |token: &str| daemon.send("GET", "/v1/tools/a", &[("authorization", &format!("Bearer {token}"))], b"").status;
    let second = token(&site, "second", "read");
    wait_until("the second token is let in", || status(&second) == 200);
    let text = fs::read_to_string(site.path("tokens")).unwrap();
    fs::write(site.path("tokens"), "tokens: nonsense\n").unwrap();
    daemon.log.wait_for("tokens not taken");
    assert_eq!((status(&first), status(&second)), (200, 200), "a faulty file takes no rights away");
    fs::write(site.path("tokens"), text.lines().filter(|line| !line.contains("first")).collect::<Vec<_>>().join("\n"))
        .unwrap();
    wait_until("the first token is refused", || status(&first) == 401);
    assert_eq!(status(&second), 200);
}

#[test]
fn an_emptied_tokens_file_lets_nobody_in() {
    let site = Site::new();
    let last = token(&site, "last", "read");
    with_tokens(&site);
    let daemon = site.start();
    fs::write(site.path("tokens"), "tokens: []\n").unwrap();
    let status = || daemon.send("GET", "/v1/tools/a", &[("authorization", &format!("Bearer {last}"))], b"").status;
    wait_until("the last token is refused", || status() == 401);
    assert_eq!(daemon.get("/v1/tools/a").status, 401);
}

/// As the README says: the daemon runs, and then the first token is made.
#[test]
fn the_first_token_takes_effect_while_the_daemon_runs() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let mut command = site.command();
    fs::create_dir(site.path("credentials")).unwrap();
    command.env("CREDENTIALS_DIRECTORY", site.path("credentials"));
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    let status = |headers: &[(&str, &str)]| daemon.send("GET", "/v1/tools/a", headers, b"").status;
    assert_eq!(status(&[]), 200);
    fs::write(site.path("credentials/tokens"), "tokens: nonsense\n").unwrap();
    let reload = almanacd().args(["ctl", "reload", "--wait", "--socket"]).arg(&daemon.admin).output().unwrap();
    let said = String::from_utf8(reload.stderr).unwrap();
    assert!(reload.status.code() == Some(1) && said.contains("credentials/tokens"), "{said}");
    fs::remove_file(site.path("credentials/tokens")).unwrap();
    let first = token_in(&site, "credentials/tokens", "first", "read");
    wait_until("a token to be needed", || status(&[]) == 401);
    assert_eq!(status(&[("authorization", &format!("Bearer {first}"))]), 200);
    fs::remove_file(site.path("credentials/tokens")).unwrap();
    wait_until("nobody to be let in", || status(&[("authorization", &format!("Bearer {first}"))]) == 401);
}

/// Who may only read cannot change what others are told; and a word alone does not put a tool first.
#[test]
fn teaching_needs_its_scope_and_more_than_words() {
    let site = Site::new();
    let (reader, recorder) = (token(&site, "reader", "read"), token(&site, "recorder", "read,record"));
    with_tokens(&site);
    site.save(
        "b.yaml",
        &document("storms", "'Storm warnings'").replace("description: d", "description: 'Storm warnings'"),
    );
    let daemon = site.start();
    let post = |token: &str, path: &str, body: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
        daemon.send("POST", path, &headers, body.as_bytes())
    };
    let miss = r#"{"toolName": "a", "message": "storm warnings for the coast"}"#;
    let refused = post(&reader, "/v1/qualify/miss", miss);
    assert_eq!((refused.status, refused.code().as_str()), (403, "missing-scope"));
    let choices = || {
        let store = rusqlite::Connection::open(site.path("state/almanac.db")).unwrap();
        store.query_row("SELECT count(*), max(trust) FROM choices", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    for _ in 0..8 {
        assert_eq!(post(&recorder, "/v1/qualify/miss", miss).status, 200);
    }
    let learnt: (i64, f64) = choices();
    assert_eq!(learnt, (3, 0.5), "of eight words");
}

/// What users said is for the scope `memory`, at every door and in every sentence; who said it is told it back.
#[test]
fn what_was_said_is_for_memory_only() {
    const SECRET: &str = "zanzibar";
    let site = Site::new();
    let writer = token(&site, "writer", "read,record");
    let (reader, other) = (token(&site, "reader", "read"), token(&site, "other", "read,record"));
    let keeper = token(&site, "keeper", "read,memory");
    with_tokens(&site);
    let daemon = serve_shipped_on(&site);
    let ask = |token: &str, method: &str, path: &str, body: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
        let reply = daemon.send(method, path, &headers, body.as_bytes());
        assert_eq!(reply.status, 200, "{method} {path} {}", reply.text());
        reply
    };
    let said = r#"{"message": "send 42 USDC to Zanzibar on Base", "sessionId": "s"}"#;
    let goes_on = r#"{"message": "yes, do it", "sessionId": "s", "explain": true}"#;
    let missed = r#"{"toolName": "web_search", "sessionId": "s"}"#;
    let check = |token: &str, (method, path, body): (&str, &str, &str), is_told: bool| {
        let reply = ask(token, method, path, body);
        assert_eq!(reply.text().to_lowercase().contains(SECRET), is_told, "{method} {path} {}", reply.text());
        reply
    };
    let (qualify, miss) = ("/v1/qualify", "/v1/qualify/miss");
    check(&writer, ("POST", qualify, said), true);
    let own = check(&writer, ("POST", qualify, goes_on), true).json();
    assert!(own["reasoning"].as_str().unwrap().contains("what was asked before is kept"), "{own}");
    // Nobody waits for what is noted of a turn.
    wait_until("the turns", || ask(&keeper, "GET", "/v1/sessions/s/turns", "").text().to_lowercase().contains(SECRET));
    for path in ["/v1/sessions/s", "/v1/sessions/s/turns"] {
        check(&keeper, ("GET", path, ""), true);
        for token in [&writer, &reader, &other] {
            check(token, ("GET", path, ""), false);
        }
    }
    let session = ask(&reader, "GET", "/v1/sessions/s", "").json();
    assert_eq!(session["intentContext"]["categories"], own["intentContext"]["categories"], "{session}");
    assert_eq!(session["turnTools"], serde_json::json!([]), "{session}");
    for streamed in [qualify, "/v1/qualify?stream=data-v1"] {
        check(&reader, ("POST", streamed, goes_on), false);
    }
    check(&writer, ("POST", miss, missed), true);
    check(&other, ("POST", miss, missed), false);
    check(&keeper, ("POST", qualify, goes_on), true);
    check(&other, ("POST", qualify, goes_on), false);
}

/// A session, its usage and what was suggested in it stay as they are whatever a token asks that may only read.
#[test]
fn who_may_only_read_leaves_sessions_as_they_are() {
    let site = Site::new();
    let (reader, agent) = (token(&site, "reader", "read"), token(&site, "agent", "read,record,memory"));
    with_tokens(&site);
    let daemon = serve_shipped_on(&site);
    let send = |token: &str, method: &str, path: &str, body: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
        daemon.send(method, path, &headers, body.as_bytes())
    };
    let used = r#"{"tokensIn": 1000, "tokensOut": 10, "sessionId": "s"}"#;
    let message = r#"{"message": "send 42 USDC to Zanzibar on Base", "sessionId": "s"}"#;
    let suggest = r#"{"tool_name": "web_search", "result_context": {"session_id": "s"}}"#;
    let state = || {
        let paths = ["/v1/sessions/s", "/v1/sessions/s/turns", "/v1/usage"];
        paths.map(|path| {
            let mut told = send(&agent, "GET", path, "").json();
            told.as_object_mut().unwrap().remove("since");
            told
        })
    };
    assert_eq!(send(&agent, "POST", "/v1/qualify", message).json().get("degraded"), None);
    assert_eq!(send(&agent, "POST", "/v1/usage", used).status, 200);
    // Nobody waits for what is noted of a turn; it is written in the order in which it was.
    let is_noted = |session: &str| {
        let turns = send(&agent, "GET", &format!("/v1/sessions/{session}/turns"), "").json();
        turns["items"].as_array().is_some_and(|turns| !turns.is_empty())
    };
    wait_until("the agent's turn", || is_noted("s"));
    let before = state();
    let other = r#"{"message": "what is the weather in Oslo tomorrow?", "sessionId": "s"}"#;
    let answer = send(&reader, "POST", "/v1/qualify", other);
    assert_eq!(answer.status, 200);
    assert!(answer.json()["degraded"].as_str().unwrap().contains("scope record"), "{}", answer.text());
    let streamed = send(&reader, "POST", "/v1/qualify?stream=data-v1", other).text();
    assert!(streamed.contains("\"degraded\":\"the session does not go on"), "{streamed}");
    let url = format!("http://{}", daemon.address);
    let mut command = almanacd();
    command.args(["qualify", "what is the weather?", "--session", "s", "--url", &url]).env("ALMANAC_TOKEN", &reader);
    let printed = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(printed.starts_with("the session does not go on"), "{printed}");
    let kept = send(&reader, "POST", "/v1/qualify", r#"{"message": "yes, do it", "sessionId": "s"}"#).json();
    assert_eq!(kept["intentContext"]["networks"], serde_json::json!(["base"]), "{kept}");
    let fresh = r#"{"message": "send 42 USDC to Zanzibar on Base", "sessionId": "fresh"}"#;
    assert_eq!(send(&reader, "POST", "/v1/qualify", fresh).status, 200);
    assert_eq!(send(&agent, "GET", "/v1/sessions/fresh", "").status, 404);
    for path in ["/v1/metadata", "/v1/enrich"] {
        let body = match path {
            "/v1/enrich" => format!(r#"{{"request": {suggest}, "response": {{}}}}"#),
            _ => suggest.to_owned(),
        };
        assert_eq!(send(&reader, "POST", path, &body).status, 200, "{path}");
    }
    let refused = send(&reader, "POST", "/v1/usage", used);
    assert_eq!((refused.status, refused.code().as_str()), (403, "missing-scope"), "{}", refused.text());
    assert_eq!(send(&reader, "POST", "/v1/usage", r#"{"tokensIn": 1000}"#).status, 200, "it is worked out");
    let later = r#"{"message": "search the web", "sessionId": "later"}"#;
    assert_eq!(send(&agent, "POST", "/v1/qualify", later).status, 200);
    wait_until("what came before it", || is_noted("later"));
    assert_eq!(state(), before);
    assert_eq!(send(&agent, "POST", "/v1/metadata", suggest).status, 200);
    wait_until("suggestions to the agent to be noted", || state() != before);
}

#[test]
fn a_stream_ends_with_its_token() {
    let site = Site::new();
    let streamer = token(&site, "streamer", "record");
    with_tokens(&site);
    let daemon = site.start();
    let mut stream = daemon.connect();
    let head = format!(
        "POST /v1/streams?protocol=ui-v1 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {streamer}\r\n\
         content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n8\r\ndata: {{}}\r\n"
    );
    stream.raw(head.as_bytes());
    wait_until("the stream", || daemon.metric_as_admin("almanac_http_connections").is_some_and(|open| open >= 2.0));
    fs::write(site.path("tokens"), "tokens: []\n").unwrap();
    let reply = stream.reply_to("POST");
    assert_eq!((reply.status, reply.code().as_str()), (401, "unknown-token"));
}

#[test]
fn a_reachable_address_needs_tokens() {
    let site = Site::new();
    let (code, said) = site.fail(&["--listen", "0.0.0.0:0"]);
    assert_eq!(code, 78, "{said}");
    assert!(said.contains("almanacd token new"), "{said}");
    let token = token(&site, "t", "read");
    with_tokens(&site);
    let mut command = site.command();
    command.args(["--listen", "0.0.0.0:0"]);
    let daemon = crate::daemon::Daemon::start(command, site.path("state/admin.sock"));
    let mut connection = crate::daemon::Connection::open(([127, 0, 0, 1], daemon.address.port()).into());
    connection.request(
        "GET",
        "/v1/tools/a",
        &[("host", "any.example"), ("authorization", &format!("Bearer {token}"))],
        b"",
    );
    assert_eq!(connection.reply().status, 200);
    connection.request("GET", "/v1/tools/a", &[], b"");
    assert_eq!(connection.reply().status, 401);
}

#[test]
fn a_faulty_tokens_file_is_no_start() {
    let site = Site::new();
    with_tokens(&site);
    let (code, said) = site.fail(&[]);
    assert_eq!(code, 78, "a missing file: {said}");
    fs::write(site.path("tokens"), "tokens:\n  - {name: x, sha256: zz, scopes: [read]}\n").unwrap();
    let (code, said) = site.fail(&[]);
    assert_eq!(code, 78, "{said}");
    assert!(said.contains("tokens:2:"), "{said}");
}

#[test]
fn pages_of_other_origins_are_refused() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    let check = |headers: &[(&str, &str)], status: u16| {
        let reply = daemon.send("GET", "/v1/tools/a", headers, b"");
        assert_eq!(reply.status, status, "{headers:?}");
    };
    check(&[("host", "rebound.example")], 421);
    check(&[("host", "localhost"), ("host", "localhost")], 400);
    check(&[("origin", "https://evil.example")], 403);
    check(&[("origin", "http://localhost:3000")], 200);
    let mut connection = daemon.connect();
    connection.raw(b"GET http://rebound.example/v1/tools/a HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(connection.reply().status, 421);
}

#[test]
fn the_admin_socket_is_for_its_group() {
    let site = Site::new();
    let daemon = site.start();
    let output = Command::new("stat").args(["-c", "%a"]).arg(&daemon.admin).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "660");
}

#[test]
fn a_faulty_tokens_file_keeps_no_library_from_being_reloaded() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let authorization = format!("Bearer {}", token(&site, "t", "read"));
    let configure = |plugins: &str| {
        let tokens = site.path("tokens");
        site.configure(&format!("auth: {{tokens_file: {}}}\nplugins: {{{plugins}}}\n", tokens.display()));
    };
    configure("");
    let daemon = site.start();
    let state = || {
        let reply = daemon.send("GET", "/v1/plugins", &[("authorization", &authorization)], b"");
        reply.json()["items"][0]["state"].clone()
    };
    wait_until("the rule library", || state() == "ready");
    fs::write(site.path("tokens"), "tokens: nonsense").unwrap();
    configure(&format!("allow: ['{}']", "0".repeat(64)));
    let reply = daemon.admin("POST", "/-/reload", b"");
    assert!(reply.status == 422 && reply.text().contains("tokens"), "{}", reply.text());
    assert_eq!(state(), "refused");
}
