//! The console in a real browser (Debian's Chromium) against this daemon. Where the browser or its driver is missing
//! (`apt-get install chromium`, `npm ci --prefix tests/console`) that test says so and passes, unless
//! `ALMANAC_TEST_COUNTERPARTS` is set.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::daemon::{Daemon, Reply, Site, serve_shipped};

#[test]
fn the_console_shows_what_there_is_of_tools() {
    check_in_browser("tools.test.mjs");
}

#[test]
fn the_console_shows_what_was_said_and_done() {
    check_in_browser("conversations.test.mjs");
}

#[test]
fn the_console_shows_how_the_daemon_is() {
    check_in_browser("daemon.test.mjs");
}

/// Runs the tests of a file of `tests/console`.
fn check_in_browser(file: &str) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/console");
    let has_browser = std::env::var_os("CHROMIUM").is_some()
        || ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
            .iter()
            .any(|place| Path::new(place).exists());
    if !has_browser || !package.join("node_modules/playwright-core").is_dir() {
        assert!(std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "Chromium or its driver is not installed");
        let hint = "`npm ci --prefix tests/console` and `apt-get install chromium` get them";
        let _ = writeln!(std::io::stderr(), "skipped: no browser, or no driver in tests/console; {hint}");
        return;
    }
    let output = Command::new("node")
        .args(["--test", "--test-reporter=tap", file])
        .current_dir(package)
        .env("ALMANACD", env!("CARGO_BIN_EXE_almanacd"))
        .env("CONSOLE_LIBRARY", crate::fixtures::reasoning())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{errors}");
    let passed = said.lines().find_map(|line| line.trim_start_matches(['#', ' ']).strip_prefix("pass "));
    assert!(passed.is_some_and(|passed| passed != "0"), "no test ran: {said}");
}

fn get_with(daemon: &Daemon, path: &str, headers: &[(&str, &str)]) -> Reply {
    daemon.send("GET", path, headers, b"")
}

fn daemon_with(configuration: &str) -> (Site, Daemon) {
    let site = Site::new();
    site.configure(configuration);
    let daemon = site.start();
    (site, daemon)
}

#[test]
fn its_files_are_small_tagged_and_guarded() {
    let (_site, daemon) = daemon_with("");
    for (path, place) in [("/", "console/"), ("/console", "console/")] {
        let reply = daemon.get(path);
        assert_eq!((reply.status, reply.header("location")), (302, Some(place)), "{path}");
    }
    let page = daemon.get("/console/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe") && policy.contains("require-trusted-types-for 'script'"), "{policy}");
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(!page.text().contains("<script>") && !page.text().contains("style="), "{}", page.text());
    let script = get_with(&daemon, "/console/console.js", &[("accept-encoding", "gzip")]);
    assert_eq!((script.status, script.header("content-encoding")), (200, Some("gzip")));
    let tag = script.header("etag").unwrap();
    let again = get_with(&daemon, "/console/console.js", &[("accept-encoding", "gzip"), ("if-none-match", tag)]);
    assert_eq!(again.status, 304);
    let plain = daemon.get("/console/console.js");
    assert!(plain.header("content-encoding").is_none() && plain.header("etag") != Some(tag));
    assert_eq!(daemon.get("/console/nothing.js").status, 404);
    assert_eq!(daemon.get("/console/..%2f..%2fetc%2fpasswd").status, 404);
}

#[test]
fn without_tokens_it_is_not_shown_through_a_proxy() {
    let (_site, daemon) = daemon_with("");
    for header in ["forwarded", "via", "x-forwarded-for"] {
        let reply = get_with(&daemon, "/console/", &[(header, "x")]);
        assert_eq!(reply.status, 403, "{header}");
        assert!(reply.text().contains("auth.tokens_file"), "{}", reply.text());
        assert_eq!(get_with(&daemon, "/", &[(header, "x")]).status, 200, "the page with links");
    }
    let (_site, daemon) = daemon_with("http: {console: false}\n");
    assert_eq!(daemon.get("/console/").status, 404);
    assert_eq!(daemon.get("/").status, 200);
}

#[test]
fn it_says_how_all_is_in_one_answer() {
    let (site, daemon) = daemon_with("");
    site.save("broken.yaml", "name: [\n");
    daemon.log.wait_for("document not taken");
    for outcome in ["success", "timeout"] {
        let body = format!(r#"{{"tool_name":"a","duration_ms":5,"outcome":"{outcome}","session_id":"s"}}"#);
        assert_eq!(daemon.post("/v1/executions", &body).status, 201);
    }
    let overview = daemon.json("/v1/overview");
    assert_eq!(overview["status"]["errors"], 1, "{overview:#}");
    assert_eq!(overview["store"]["usable"], true);
    let minutes = overview["minutes"].as_array().unwrap();
    let sum = |field: &str| minutes.iter().map(|minute| minute[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("calls"), sum("timeouts"), sum("errors")), (2, 1, 0), "{overview:#}");
    let sessions = daemon.json("/v1/sessions");
    let session = &sessions["items"][0];
    assert_eq!((&session["sessionId"], &session["calls"], &session["timeouts"]), (&"s".into(), &2.into(), &1.into()));
}

#[test]
fn sessions_come_page_by_page() {
    let (_site, daemon) = daemon_with("");
    for session in ["a", "b", "c", "a"] {
        let body = format!(r#"{{"tool_name":"t","duration_ms":5,"session_id":"{session}"}}"#);
        assert_eq!(daemon.post("/v1/executions", &body).status, 201);
    }
    let mut found = Vec::new();
    let mut path = "/v1/sessions?limit=2".to_owned();
    loop {
        let page = daemon.json(&path);
        found.extend(
            page["items"].as_array().unwrap().iter().map(|item| item["sessionId"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/v1/sessions?limit=2&cursor={cursor}");
    }
    assert_eq!(found, ["a", "c", "b"]);
    assert_eq!(daemon.get("/v1/sessions?cursor=x").status, 422);
}

#[test]
fn usage_is_summed_by_day_and_session() {
    let (_site, daemon) = daemon_with("");
    for (session, tokens) in [("\"s\"", 40_000), ("\"s\"", 10), ("null", 5)] {
        let body = format!(r#"{{"sessionId":{session},"tokensIn":{tokens},"tokensOut":1,"costUsd":0.5}}"#);
        assert_eq!(daemon.post("/v1/usage", &body).status, 200);
    }
    let report = daemon.json("/v1/usage");
    let day = &report["days"][0];
    assert_eq!((&day["overThreshold"], &day["used"]["turns"]), (&1.into(), &3.into()), "{report:#}");
    assert_eq!(day["used"]["tokensIn"], 40_015);
    let session = &report["sessions"][0];
    assert_eq!((&session["sessionId"], &session["used"]["tokensIn"]), (&"s".into(), &40_010.into()));
}

#[test]
fn how_tools_hang_together_comes_in_one_answer() {
    let (_site, daemon) = serve_shipped();
    for tool in ["web_search", "http_request", "web_search", "http_request"] {
        let body = format!(r#"{{"tool_name":"{tool}","duration_ms":5,"session_id":"s"}}"#);
        assert_eq!(daemon.post("/v1/executions", &body).status, 201);
    }
    let graph = daemon.json("/v1/relations");
    let list = |name: &str| graph[name].as_array().unwrap().clone();
    let tools = list("tools");
    assert_eq!(tools.len() as u64, daemon.json("/v1/overview")["status"]["tools"].as_u64().unwrap());
    let is_tool = |name: &Value| tools.iter().any(|tool| tool["name"] == *name);
    assert!(list("relations").iter().all(|edge| is_tool(&edge["from"]) && is_tool(&edge["to"])));
    assert_eq!(graph["relations_total"], list("relations").len());
    let kinds: BTreeSet<String> =
        list("relations").iter().map(|edge| edge["kind"].as_str().unwrap().to_owned()).collect();
    assert!(kinds.contains("alternative") && kinds.contains("complement"), "{kinds:?}");
    // What a document says, the tool's own page says as well.
    let edge = list("relations").into_iter().find(|edge| edge["kind"] == "complement").unwrap();
    let own = daemon.json(&format!("/v1/tools/{}/relations", edge["from"].as_str().unwrap()));
    assert!(own["complements"].as_array().unwrap().iter().any(|other| other["tool"] == edge["to"]), "{own:#}");
    let follows = list("transitions").into_iter().find(|edge| edge["from"] == "web_search").unwrap();
    assert_eq!(
        (&follows["to"], &follows["calls"], &follows["share"]),
        (&"http_request".into(), &2.into(), &1.0.into())
    );
}
