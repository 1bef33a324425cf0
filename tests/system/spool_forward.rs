//! A spool that outlives its machine: its records are sent by a command, once.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, document, wait_until};
use crate::database::DatabaseServer;
use crate::fleet::{database, start};

fn call(tool: &str, key: Option<&str>) -> String {
    json!({"tool_name": tool, "duration_ms": 700, "session_id": "s", "idempotency_key": key}).to_string()
}

fn forward(file: &Path, more: &[&str]) -> (i32, String) {
    let output = almanacd().args(["spool", "forward"]).arg(file).args(more).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn spool_of(site: &Site) -> PathBuf {
    let files = fs::read_dir(site.path("state")).unwrap().map(|entry| entry.unwrap().path());
    let is_spool = |path: &PathBuf| path.to_string_lossy().contains("spool-");
    files.filter(is_spool).max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

fn stored(daemon: &Daemon, tool: &str) -> usize {
    daemon.json(&format!("/v1/executions?tool={tool}&limit=100"))["items"].as_array().unwrap().len()
}

#[test]
fn what_a_lost_machine_left_is_sent_by_a_command() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let (lost, there) = (Site::new(), Site::new());
    for site in [&lost, &there] {
        site.save("a.yaml", &document("a", "Alpha"));
        site.save("b.yaml", &document("b", "Beta"));
    }
    lost.configure("store: {commit_within: 300ms, host: lost}\n");
    there.configure("store: {host: there}\n");
    let url = server.url("postgres");
    let mut dying = start(&lost, &url);
    assert_eq!(dying.post("/v1/executions", &call("a", None)).status, 201);
    server.kill();
    for (tool, key) in [("a", None), ("b", Some("same")), ("b", Some("reused")), ("a", None)] {
        let reply = dying.post("/v1/executions", &call(tool, key));
        assert_eq!((reply.status, &reply.json()["degraded"]), (201, &json!(["database unreachable: spooling"])));
    }
    let (code, said) = forward(&spool_of(&lost), &["--to", &url]);
    assert!(code == 1 && said.contains("the spool's daemon runs"), "{code}: {said}");
    dying.child.kill().unwrap();
    dying.wait();
    drop(dying);
    // The machine is gone; somebody has the file.
    let name = spool_of(&lost).file_name().unwrap().to_owned();
    fs::copy(spool_of(&lost), there.path("").join(&name)).unwrap();
    let file = there.path("").join(&name);

    let (code, said) = forward(&file, &["--to", &url]);
    assert!(code == 1 && said.contains("cannot be reached"), "{code}: {said}");
    server.restart();
    let other = start(&there, &url);
    assert_eq!(other.post("/v1/executions", &call("b", Some("same"))).status, 201);
    assert_eq!(other.post("/v1/executions", &call("a", Some("reused"))).status, 201);
    let (code, said) = forward(&file, &["--to", &url, "--json"]);
    let forwarded: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(code, 0);
    assert_eq!(forwarded, json!({"records": 4, "stored_before": 0, "told": 1, "refused": 1, "damaged_at": null}));
    assert_eq!((stored(&other, "a"), stored(&other, "b")), (4, 1));
    let refused = || fs::read_to_string(there.path("").join("spool.refused")).unwrap();
    assert_eq!(refused().lines().count(), 1, "{}", refused());
    // What follows from it is known beside, as of the host that was lost.
    wait_until("the others have learnt it", || {
        let said = other.post("/v1/estimate", &json!({"tool_name": "a"}).to_string()).json();
        said["timing"]["fleet_samples"] == 3
    });
    assert_eq!(database(&other)["behind"], 0);
    // Again, nothing is stored twice.
    let (code, said) = forward(&file, &["--to", &url]);
    assert!(code == 0 && said.contains("4 records, 4 of them from before"), "{code}: {said}");
    assert_eq!((stored(&other, "a"), stored(&other, "b"), refused().lines().count()), (4, 1, 1));
    // Its machine comes back after all.
    let back = start(&lost, &url);
    assert_eq!(stored(&back, "a"), 4);
    wait_until("all that it learnt before is its own again", || {
        let said = back.post("/v1/estimate", &json!({"tool_name": "a"}).to_string()).json();
        said["timing"]["samples"] == 3
    });
}

#[test]
fn a_damaged_spool_is_sent_as_far_as_it_can_be_read_and_kept() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let site = Site::new();
    site.save("a.yaml", &document("a", "Alpha"));
    site.configure("store: {commit_within: 300ms}\n");
    let url = server.url("postgres");
    let mut dying = start(&site, &url);
    server.kill();
    for key in ["one", "two", "three"] {
        assert_eq!(dying.post("/v1/executions", &call("a", Some(key))).status, 201);
    }
    dying.child.kill().unwrap();
    dying.wait();
    drop(dying);
    let file = spool_of(&site);
    let mut bytes = fs::read(&file).unwrap();
    let damaged = bytes.windows(3).position(|text| text == b"two").unwrap();
    bytes[damaged] ^= 1;
    fs::write(&file, &bytes).unwrap();
    server.restart();
    let (code, said) = forward(&file, &["--to", &url]);
    let is_said = said.contains("what can be read of the spool is in the database: 2 records")
        && said.contains("is damaged from byte")
        && !said.contains("may be removed");
    assert!(code == 1 && is_said, "{code}: {said}");
    let back = start(&site, &url);
    assert_eq!(stored(&back, "a"), 2);
    assert!(!file.exists());
    assert_eq!(fs::read(file.with_extension("journal.damaged")).unwrap(), bytes);
}

#[test]
fn what_is_no_spool_is_said() {
    let Some(server) = DatabaseServer::start() else { return };
    let site = Site::new();
    let url = server.url("postgres");
    let check = |name: &str, content: Option<&[u8]>, expected: &str| {
        let file = site.path("").join(name);
        if let Some(content) = content {
            fs::write(&file, content).unwrap();
        }
        let (code, said) = forward(&file, &["--to", &url]);
        assert!(code == 1 && said.contains(expected), "{name}: {code}: {said}");
    };
    let name = format!("spool-{}.journal", "ab".repeat(16));
    check(&name, None, "No such file");
    check("renamed.journal", Some(b""), "give it the one it had");
    check(&name, Some(b"something else, long enough to be looked at"), "it is no journal of almanacd");
}
