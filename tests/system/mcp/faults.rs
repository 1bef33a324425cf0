//! Servers that die, hang and lie, and what their clients are told.

use std::thread;

use serde_json::{Value, json};

use super::client::{BOTH, LEGACY, MODERN, Session, meta};
use super::served::{Served, ask, names, outcome, text};
use crate::daemon::{Daemon, Site, wait_for, wait_until};
use crate::mcp_fixture::server;

#[test]
fn a_death_is_an_error_to_each_call_and_recorded_once() {
    let served = Served::one("legacy");
    let before = served.ask("/mcp/all", "tools/list", json!({}));
    let sleep = || ask(&served.daemon, "/mcp", "tools/call", json!({"name": "a_sleep", "arguments": {"ms": 60_000}}));
    let answers: Vec<Value> = thread::scope(|scope| {
        let calls: Vec<_> = (0..31).map(|_| scope.spawn(|| outcome(&sleep()))).collect();
        let in_flight = r#"almanac_mcp_calls_in_flight{server="a"}"#;
        wait_until("the calls", || served.daemon.metric(in_flight) == Some(31.0));
        let dead = served.call("a_die", json!({}));
        assert_eq!(dead["isError"], true);
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for answer in &answers {
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        assert!(text(result).contains("the call may have run"), "{answer}");
    }
    wait_until("the records", || served.recorded("a_sleep") == 31 && served.recorded("a_die") == 1);
    let errors = r#"almanac_mcp_calls_total{outcome="error",server="a"}"#;
    assert_eq!(served.daemon.metric(errors), Some(32.0));
    assert_eq!(served.ask("/mcp/all", "tools/list", json!({})), before);
    // It comes back, and the next call goes on.
    assert_eq!(text(&served.call("a_echo", json!({"text": "again"}))), "again");
}

#[test]
fn a_call_that_a_stop_cuts_short_is_recorded() {
    let served = Served::one("legacy");
    let handed = served.call("call_tool", json!({"name": "a_sleep", "arguments": {"ms": 60_000}, "wait_seconds": 0}));
    assert_ne!(handed["isError"], true, "{handed}");
    let in_flight = r#"almanac_mcp_calls_in_flight{server="a"}"#;
    wait_until("the call", || served.daemon.metric(in_flight) == Some(1.0));
    let served = served.restart(&format!("    a: {}}}\n", server("legacy")), "  anonymous_calls: true\n");
    assert_eq!(served.recorded("a_sleep"), 1);
}

#[test]
fn whoever_asks_first_is_told_what_servers_list() {
    for _ in 0..4 {
        let served =
            Served::start(Site::new(), &format!("    a: {}}}\n", server("legacy")), "  anonymous_calls: true\n");
        let found = served.call("find_tools", json!({"names": ["a_echo"]}))["structuredContent"].take();
        assert_eq!(found["tools"][0]["name"], "a_echo", "{found}");
        let refused = served.call("call_tool", json!({"name": "a_echo", "argument": {"text": "x"}}));
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).contains("unknown key `argument`; did you mean `arguments`?"), "{refused}");
        assert_eq!(served.recorded("a_echo"), 0);
    }
}

/// A server that writes where it is told to.
const WRITER: &str = r#"#!/usr/bin/env python3
import json, sys
def write(path):
    try:
        open(path + "/written", "w").close()
        return "written"
    except OSError as error:
        return type(error).__name__
for line in sys.stdin:
    message = json.loads(line)
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "w", "version": "1"}},
        "tools/list": {"tools": [{"name": "write", "description": "Writes", "inputSchema": {"type": "object"}}]},
    }.get(message["method"], {})
    if message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": write(message["params"]["arguments"]["path"])}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

#[test]
fn a_server_with_files_writes_to_them_and_reads_its_program() {
    let site = Site::new();
    for directory in ["program", "home", "tmp", "listed", "other"] {
        std::fs::create_dir(site.path(directory)).unwrap();
    }
    let program = site.path("program/writer");
    std::fs::write(&program, WRITER).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = |name: &str| site.path(name).display().to_string();
    let home = path("home");
    let servers = format!(
        "    w: {{command: [{}], files: [{}], env: {{HOME: {home}}}, cwd: {home}}}\n",
        path("program/writer"),
        path("listed")
    );
    super::served::configure(&site, &servers, "  anonymous_calls: true\n");
    let mut command = site.command();
    command.env("TMPDIR", path("tmp"));
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    let served = Served { site, daemon };
    let up = r#"almanac_mcp_upstream_up{server="w"}"#;
    let is_decided = || served.daemon.metric(up) == Some(1.0) || served.logs("w").contains("Landlock");
    wait_until("the server", is_decided);
    if served.logs("w").contains("no Landlock") {
        return;
    }
    served.await_server("w");
    for (directory, expected) in [
        ("listed", "written"),
        ("home", "written"),
        ("tmp", "written"),
        ("program", "PermissionError"),
        ("other", "PermissionError"),
    ] {
        let path = served.site.path(directory).display().to_string();
        assert_eq!(text(&served.call("w_write", json!({"path": path}))), expected, "{directory}");
    }
}

#[test]
fn a_server_that_hangs_is_restarted_and_one_that_lives_is_not() {
    let timed = |name: &str, words: &str| format!("    {name}: {}, timeout: 100ms}}\n", server(words));
    let servers = timed("old", "legacy hangs")
        + &timed("new", "modern hangs")
        + &timed("talks", "legacy hangs talks")
        + &timed("dull", "legacy dull");
    let served = Served::new(&format!("{servers}    b: {}}}\n", server("legacy")), "  anonymous_calls: true\n");
    for name in ["dull", "old", "new", "talks"] {
        let tool = format!("{name}_echo");
        for _ in 0..3 {
            let result = served.call(&tool, json!({}));
            assert_eq!(result["isError"], true);
            let said = text(&result);
            assert!(said.contains("did not answer within") && said.contains("may have run"), "{result}");
            assert_eq!(text(&served.call("b_echo", json!({"text": "others go on"}))), "others go on");
        }
        wait_until("the records", || served.recorded(&tool) == 3);
        let items = served.daemon.json(&format!("/v1/executions?tool={tool}"))["items"].clone();
        assert_eq!(items[0]["outcome"], "timeout", "{items}");
    }
    let hung = |name: &str| format!(r#"almanac_mcp_upstream_starts_total{{reason="hung",server="{name}"}}"#);
    for name in ["old", "new", "talks"] {
        wait_until("the restart", || served.daemon.metric(&hung(name)) == Some(1.0));
    }
    // Its calls hang, but it answers when it is asked whether it lives; it was asked before the others were.
    assert!(served.daemon.metric(&hung("dull")).is_none_or(|hung| hung < 1.0));
}

#[test]
fn a_call_that_hangs_holds_up_no_other_call_of_its_server() {
    let served = Served::new(&format!("    a: {}, timeout: 2s}}\n", server("legacy")), "  anonymous_calls: true\n");
    thread::scope(|scope| {
        let hung = scope.spawn(|| served.call("a_sleep", json!({"ms": 60_000})));
        wait_until("the call", || served.logs("a").contains("slept 60000 ms"));
        assert_eq!(text(&served.call("a_echo", json!({"text": "meanwhile"}))), "meanwhile");
        assert!(!hung.is_finished(), "it hangs still");
        let result = hung.join().unwrap();
        assert!(text(&result).contains("did not answer within 2s"), "{result}");
    });
}

#[test]
fn servers_that_do_not_run_are_told() {
    let servers = format!(
        "    a: {}}}\n    gone: {{command: [/nonexistent/x]}}\n    \
                           missing: {{command: [/nonexistent/y]}}\n",
        server("legacy")
    );
    let served = Served::start(Site::new(), &servers, "  anonymous_calls: true\n");
    served.await_server("a");
    let found = wait_for("the failure", || {
        let found = served.call("find_tools", json!({"query": "echo"}))["structuredContent"].take();
        found["down"].is_object().then_some(found)
    });
    assert!(found["down"]["gone"].as_str().unwrap().contains("/nonexistent/x is not there"), "{found}");
    let refused = served.call("call_tool", json!({"name": "gone_x", "arguments": {}}));
    assert!(text(&refused).contains("the server `gone` does not run"), "{refused}");
    // At its own address its tools have no prefix, and no other server is spoken of.
    let own = served.ask("/mcp/server/gone", "tools/call", json!({"name": "x", "arguments": {}}));
    let said = own["error"]["message"].as_str().unwrap();
    assert!(said.contains("the server `gone` does not run") && !said.contains("`missing`"), "{own}");
    let other = served.ask("/mcp/server/a", "tools/call", json!({"name": "x", "arguments": {}}));
    assert_eq!(other["error"]["message"], "there is no tool `x` here", "{other}");
    for (path, expected) in [
        ("/mcp/server/gnoe", "there is no server `gnoe` here; did you mean `gone`?"),
        ("/mcp/server/nope-nope", "there is no server `nope-nope` here"),
        ("/mcp/al", "there is no view `al` here; did you mean `all`?"),
    ] {
        assert_eq!(served.ask(path, "tools/list", json!({}))["error"]["message"], expected);
    }
}

#[test]
fn a_misshapen_definition_hides_no_other() {
    let served = Served::one("legacy misshapen");
    let listed = served.ask("/mcp/all", "tools/list", json!({}))["result"]["tools"].clone();
    let of = |name: &str| listed.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone();
    for name in ["a_bare", "a_odd"] {
        let tool = of(name);
        assert_eq!(tool["inputSchema"], json!({"type": "object"}), "{tool}");
        assert!(["title", "description", "annotations"].iter().all(|member| !tool[member].is_number()), "{tool}");
        assert!(tool.get("annotations").is_none_or(Value::is_object), "{tool}");
    }
    let logs = served.logs("a");
    // Nor is what is no result passed on as one.
    for (result, why) in [(json!({}), "has no `content`"), (json!({"content": "hello"}), "is no list of blocks")] {
        let told = served.call("a_shapeless", result);
        assert!(told["isError"] == true && text(&told).contains(why), "{told}");
    }
    wait_until("the records", || served.recorded("a_shapeless") == 2);
    assert_eq!(served.daemon.json("/v1/executions?tool=a_shapeless")["items"][0]["outcome"], "error");
    assert!(logs.contains("`bare` (inputSchema)") && logs.contains("`odd` (title, "), "{logs}");
}

#[test]
fn a_flood_of_tools_is_cut_off_and_said() {
    let served = Served::one("legacy tools=50000");
    let (mut count, mut cursor) = (0, Value::Null);
    loop {
        let page = served.ask("/mcp/server/a", "tools/list", json!({"cursor": cursor}));
        count += names(&page).len();
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(count, 1999);
    let logs = served.logs("a");
    assert!(logs.contains("lists more than 2000 tools") && logs.contains("lists the tool `echo` twice"), "{logs}");
}

#[test]
fn a_server_that_is_down_is_said_to_be() {
    let site = Site::new();
    let servers = format!("    a: {}}}\n    down: {{command: [/nonexistent/x]}}\n", server("legacy"));
    let served = Served::start(site, &servers, "  anonymous_calls: true\n");
    served.await_server("a");
    // What was never listed holds nothing up, once it is known to be down.
    wait_until("the failure", || served.daemon.admin("GET", "/-/mcp", b"").text().contains("is not there"));
    assert_eq!(names(&served.ask("/mcp/server/down", "tools/list", json!({}))), Vec::<String>::new());
    assert_eq!(text(&served.call("a_echo", json!({"text": "1"}))), "1");
}

#[test]
fn a_definition_that_changed_is_refused_by_name() {
    let with = |says: &str| format!("    a: {}, on_change: block}}\n", server(&format!("legacy says={says}")));
    let served = Served::new(&with("old"), "  anonymous_calls: true\n");
    super::served::configure(&served.site, &with("new"), "  anonymous_calls: true\n");
    assert_eq!(served.daemon.admin("POST", "/-/reload", b"").status, 200);
    wait_until("the change", || served.daemon.metric(r#"almanac_mcp_blocked_tools{server="a"}"#) == Some(6.0));
    let refused = served.call("a_echo", json!({}));
    assert_eq!(refused["isError"], true);
    assert!(text(&refused).contains("almanacd ctl mcp approve a echo"), "{refused}");
    let listed = served.ask("/mcp/server/a", "tools/list", json!({})).to_string();
    assert!(listed.contains(r#""description":"old""#) && !listed.contains(r#""description":"new""#));
    assert_eq!(served.recorded("a_echo"), 0);
    assert_eq!(served.daemon.admin("POST", "/-/mcp/a/approve?tool=echo", b"").status, 200);
    wait_until("the approval", || served.call("a_echo", json!({"text": "1"}))["isError"] == false);
}

#[test]
fn a_client_that_reads_nothing_is_closed_and_its_call_cancelled() {
    let site = Site::new();
    let servers = format!("    a: {}}}\n", server("legacy more"));
    let more = "  anonymous_calls: true\n";
    super::served::configure(&site, &servers, more);
    let text = std::fs::read_to_string(site.path("almanac.yaml")).unwrap();
    site.configure(&format!("{text}http: {{stall_timeout: 1s}}\n"));
    let served = Served { daemon: site.start(), site };
    served.await_server("a");
    let mut call = meta();
    call["progressToken"] = json!(1);
    let params = json!({"name": "a_flood", "arguments": {}, "_meta": call});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        ("content-type", "application/json"),
        BOTH,
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "a_flood"),
    ];
    let mut connection = served.daemon.connect();
    connection.request("POST", "/mcp", &headers, body.as_bytes());
    let cancelled = r#"almanac_mcp_calls_total{outcome="cancelled",server="a"}"#;
    wait_until("the cancellation", || served.daemon.metric(cancelled) == Some(1.0));
    drop(connection);
}

#[test]
fn a_store_that_takes_nothing_stops_no_call() {
    let served = Served::one("legacy");
    let database = served.site.path("state/almanac.db");
    // What the store says of a file that is gone.
    for file in ["almanac.db", "almanac.db-wal", "almanac.db-shm"] {
        let _ = std::fs::remove_file(database.with_file_name(file));
    }
    let journals = std::fs::read_dir(served.site.path("state")).unwrap().filter_map(Result::ok);
    for journal in journals.filter(|file| file.file_name().to_string_lossy().contains("journal")) {
        let _ = std::fs::remove_file(journal.path());
    }
    let result = wait_for("the trouble", || {
        let result = served.call("a_echo", json!({"text": "on"}));
        assert_eq!(text(&result), "on", "{result}");
        let told = &result["_meta"]["dev.almanac/metadata"]["call"];
        (told["recorded"] == false).then_some(result)
    });
    assert_eq!(result["isError"], false);
    // The answer does not wait for the attempt to record it.
    wait_until("the count", || served.daemon.metric("almanac_mcp_unrecorded_total").unwrap() >= 1.0);
}

#[test]
fn after_a_kill_sessions_and_lists_are_there_and_handles_are_said_to_be_lost() {
    let mut served = Served::one("legacy");
    let session = Session::begin(&served.daemon, &[], LEGACY);
    let pid = served.call("a_echo", json!({}))["pid"].as_u64().unwrap();
    let before = served.ask("/mcp/all", "tools/list", json!({}));
    let arguments = json!({"name": "a_sleep", "arguments": {"ms": 60_000}, "wait_seconds": 0});
    let handle = served.call("call_tool", arguments)["structuredContent"]["handle"].clone();
    served.daemon.signal("KILL");
    served.daemon.wait();
    let gone = || !std::path::Path::new(&format!("/proc/{pid}/stat")).exists();
    wait_until("the end of the server", gone);
    let served = Served { daemon: served.site.start(), site: served.site };
    assert_eq!(served.ask("/mcp/all", "tools/list", json!({})), before);
    let listed = session.ask(&served.daemon, "tools/list", json!({}));
    assert_eq!(listed.status, 200, "{}", listed.text());
    let lost = served.call("get_result", json!({"handle": handle}));
    assert_eq!(lost["isError"], true);
    assert!(text(&lost).contains("and not over its restart; the tool may have run"), "{lost}");
}
