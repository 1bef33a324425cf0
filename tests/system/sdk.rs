//! The published AI SDK, several releases of it, at the other end of the streams. Where its packages are not installed
//! (`npm ci --prefix tests/npm`) these tests say so and pass, unless `ALMANAC_TEST_COUNTERPARTS` is set.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::daemon::{Site, serve_shipped};

/// Releases, with the protocol that each speaks.
const RELEASES: [(&str, &str); 3] = [("4", "data-v1"), ("5", "ui-v1"), ("7", "ui-v1")];

fn packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/npm")
}

fn installed() -> bool {
    let found = packages().join("node_modules/ai-4").is_dir();
    assert!(found || std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "the npm packages are not installed");
    if !found {
        let _ = writeln!(std::io::stderr(), "skipped: no packages in tests/npm; `npm ci --prefix tests/npm` gets them");
    }
    found
}

/// Runs a script with `input`; what it printed.
fn node(script: &str, release: &str, input: &[u8]) -> Vec<u8> {
    let mut node = Command::new("node")
        .args([script, release])
        .current_dir(packages())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have had enough of the input before its end.
    let _ = node.stdin.take().unwrap().write_all(input);
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{script} {release}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn what_the_sdk_writes_is_read_whole() {
    if !installed() {
        return;
    }
    let site = Site::new();
    let daemon = site.start();
    for (release, protocol) in RELEASES {
        let stream = node("write.mjs", release, b"");
        assert!(stream.len() > 500, "{}", String::from_utf8_lossy(&stream));
        let reply = daemon.send("POST", &format!("/v1/streams?protocol={protocol}"), &[], &stream);
        let told = reply.json();
        assert_eq!(told["faults"], json!([]), "release {release}");
        let call = json!([{"tool_call_id": "call-1", "tool_name": "web_search", "outcome": "success"}]);
        assert_eq!((&told["calls"], &told["unfinished"]), (&call, &json!([])), "release {release}");
    }
}

#[test]
fn what_the_daemon_writes_is_read_by_the_sdk() {
    if !installed() {
        return;
    }
    let (_site, daemon) = serve_shipped();
    let body = json!({"message": "What's hot on Polymarket?"}).to_string();
    let plain = daemon.post("/v1/qualify", &body).json();
    for (release, protocol) in RELEASES {
        let reply = daemon.post(&format!("/v1/qualify?stream={protocol}"), &body);
        let header = if protocol == "data-v1" { "x-vercel-ai-data-stream" } else { "x-vercel-ai-ui-message-stream" };
        assert_eq!(reply.header(header), Some("v1"));
        let read: Value = serde_json::from_slice(&node("read.mjs", release, &reply.body)).unwrap();
        let event = |number: usize, name: &str| {
            if protocol == "data-v1" { read[number].clone() } else { read[number][format!("data-{name}")].clone() }
        };
        let (reasoning, intent, tools) =
            (event(0, "reasoning"), event(1, "intent-context"), event(2, "dev-tools-info"));
        assert_eq!((&reasoning["type"], &reasoning["categories"]), (&json!("reasoning"), &plain["categories"]));
        assert_eq!((&intent["type"], &intent["intentContext"]), (&json!("intent_context"), &plain["intentContext"]));
        assert_eq!((&tools["type"], &tools["toolCount"]), (&json!("dev_tools_info"), &plain["toolCount"]));
        assert_eq!(reasoning["timestamp"], tools["timestamp"], "release {release}");
        assert_eq!(reasoning["thinking"], tools["reasoning"], "release {release}");
    }
}
