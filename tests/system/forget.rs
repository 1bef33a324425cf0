//! Forgetting a person: the memories, and what selection learnt from the messages among them.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, document, wait_until};
use crate::memory::{add, message};

const OURS: &str = "quarterly zebra figures";
const THEIRS: &str = "gardening with tulips";

fn ask(daemon: &Daemon, body: &Value) -> Value {
    let reply = daemon.post("/v1/qualify", &body.to_string());
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    reply.json()
}

fn score(daemon: &Daemon, message: &str) -> String {
    ask(daemon, &json!({"message": message, "scores": true}))["scores"].to_string()
}

/// A turn of a session in which `tool` is called for the message.
fn choose(daemon: &Daemon, message: &str, session: &str, tool: &str) {
    ask(daemon, &json!({"message": message, "sessionId": session}));
    let call = json!({"tool_name": tool, "duration_ms": 5, "session_id": session});
    assert_eq!(daemon.post("/v1/executions", &call.to_string()).status, 201);
}

fn is_known(daemon: &Daemon, session: &str) -> bool {
    let reply = daemon.get(&format!("/v1/sessions/{session}"));
    reply.status == 200 && !reply.json()["intentContext"].is_null()
}

#[test]
fn with_all_of_a_tenant_s_memories_goes_what_was_learnt_of_them() {
    for way in ["the admin socket", "the command line", "no daemon"] {
        let site = Site::new();
        site.save("alpha.yaml", &document("alpha", "Alpha"));
        site.save("beta.yaml", &document("beta", "Beta"));
        let mut daemon = site.start();
        let untaught = (score(&daemon, OURS), score(&daemon, THEIRS));
        add(&daemon, "messages", &message(OURS, "a-thread", 0));
        let thought =
            json!({"content": "whatever", "metadata": {"processType": "thought", "agentId": "agent:agent:a"}});
        add(&daemon, "cognitive-processes", &thought);
        let elsewhere = message("another's", "t", 0).to_string();
        assert_eq!(daemon.admin("POST", "/v1/memories/messages?tenant=other", elsewhere.as_bytes()).status, 201);
        choose(&daemon, OURS, "a-thread", "beta");
        choose(&daemon, THEIRS, "elsewhere", "alpha");
        wait_until("both are learnt", || score(&daemon, OURS) != untaught.0 && score(&daemon, THEIRS) != untaught.1);
        let taught = score(&daemon, OURS);
        let command = |more: &[&str]| {
            let output =
                almanacd().args(["memory", "purge", "--all", "--json"]).args(more).current_dir(site.path("")).output();
            serde_json::from_slice(&output.unwrap().stdout).unwrap()
        };
        let purged: Value = match way {
            "the admin socket" => daemon.admin("POST", "/-/memories/purge", br#"{"all":true}"#).json(),
            "the command line" => command(&[]),
            _ => {
                daemon.signal("TERM");
                daemon.wait();
                let purged = command(&["--state-dir", "state"]);
                daemon = site.start();
                purged
            }
        };
        assert_eq!(purged["purged"], 2, "{way}");
        assert!(!is_known(&daemon, "a-thread") && is_known(&daemon, "elsewhere"), "{way}");
        assert_ne!(score(&daemon, OURS), taught, "{way}");
        assert_ne!(score(&daemon, THEIRS), untaught.1, "{way}: what is no memory's stays");
        assert_eq!(files_with(&site, OURS), Vec::<String>::new(), "{way}");
        let left = daemon.admin("POST", "/v1/memories/messages/search?tenant=other", b"{}").json();
        assert_eq!(left["total"], 1, "{way}: another tenant's stay");
    }
}

/// Files of the database that hold the text.
fn files_with(site: &Site, text: &str) -> Vec<String> {
    let paths = fs::read_dir(site.path("state")).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.is_file() && path.display().to_string().contains("/almanac."))
        .filter(|path| fs::read(path).unwrap().windows(text.len()).any(|bytes| bytes == text.as_bytes()))
        .map(|path| path.display().to_string())
        .collect()
}

#[test]
fn what_was_learnt_from_a_person_s_messages_goes_with_the_person() {
    let site = Site::new();
    site.save("alpha.yaml", &document("alpha", "Alpha"));
    site.save("beta.yaml", &document("beta", "Beta"));
    let mut daemon = site.start();
    let untaught = (score(&daemon, OURS), score(&daemon, THEIRS));
    choose(&daemon, THEIRS, "elsewhere", "alpha");
    wait_until("theirs is learnt", || score(&daemon, THEIRS) != untaught.1);
    let mut ours = message(OURS, "a-thread", 0);
    ours["metadata"]["chatId"] = json!("chat:chat:a%3Achat");
    add(&daemon, "messages", &ours);
    let mut theirs = message(THEIRS, "another", 0);
    theirs["metadata"]["userId"] = json!("user:user:else");
    add(&daemon, "messages", &theirs);
    // Said once, corrected since; and a long one, of which selection keeps the beginning.
    let corrected = add(&daemon, "messages", &message("ostrich racing odds", "a-thread", 1));
    let change = json!({"content": "never mind"}).to_string();
    let path = format!("/v1/memories/{}", corrected["id"].as_str().unwrap());
    assert_eq!(daemon.send("PATCH", &path, &[("content-type", "application/json")], change.as_bytes()).status, 200);
    let long = format!("walrus {}", "ü".repeat(2000));
    add(&daemon, "messages", &message(&long, "a-thread", 2));
    let before = score(&daemon, OURS);
    for (message, session) in [(OURS, "s"), ("ostrich racing odds", "s2"), (&long, "s3"), (OURS, "s4")] {
        choose(&daemon, message, session, "beta");
    }
    // What a session is about goes with it, though something else was said last.
    choose(&daemon, OURS, "s5", "beta");
    ask(&daemon, &json!({"message": "go ahead", "sessionId": "s5"}));
    for session in ["a:chat", "a-thread", "chat:chat:a%253Achat"] {
        ask(&daemon, &json!({"message": "something else", "sessionId": session.replace("%25", "%")}));
    }
    wait_until("ours is learnt", || score(&daemon, OURS) != before);
    let taught = score(&daemon, OURS);
    let gone = ["s", "s2", "s3", "s4", "s5", "a:chat", "a-thread", "chat:chat:a%253Achat"];
    assert!(gone.iter().chain(&["elsewhere"]).all(|session| is_known(&daemon, session)));
    let purged = daemon.admin("POST", "/-/memories/purge", br#"{"userId":"user:user:john-doe"}"#).json();
    assert_eq!(purged["purged"], 3);
    for text in [OURS, "ostrich racing", "walrus"] {
        assert_eq!(files_with(&site, text), Vec::<String>::new(), "{text} is still there");
    }
    assert!(!files_with(&site, THEIRS).is_empty());
    let forgotten = |daemon: &Daemon| {
        for session in gone {
            assert!(!is_known(daemon, session), "{session}");
        }
        assert!(is_known(daemon, "elsewhere"), "another's session stays");
        (score(daemon, OURS), score(daemon, THEIRS))
    };
    let after = forgotten(&daemon);
    assert_ne!(after.0, taught);
    assert_ne!(after.1, untaught.1, "another's choice stays");
    daemon.signal("TERM");
    daemon.wait();
    drop(daemon);
    let daemon = site.start();
    assert_eq!(forgotten(&daemon), after, "a restart brings nothing back");
}

#[test]
fn who_is_forgotten_at_one_tenant_s_is_not_at_another_s() {
    let site = Site::new();
    site.save("alpha.yaml", &document("alpha", "Alpha"));
    site.save("beta.yaml", &document("beta", "Beta"));
    let daemon = site.start();
    let untaught = score(&daemon, OURS);
    choose(&daemon, OURS, "general", "beta");
    add(&daemon, "messages", &message(OURS, "t", 0));
    wait_until("it is learnt", || score(&daemon, OURS) != untaught);
    let taught = score(&daemon, OURS);
    let body = message(OURS, "t", 0).to_string();
    assert_eq!(daemon.admin("POST", "/v1/memories/messages?tenant=other", body.as_bytes()).status, 201);
    let purge = |tenant: &str| {
        let path = format!("/-/memories/purge?tenant={tenant}");
        daemon.admin("POST", &path, br#"{"userId":"user:user:john-doe"}"#).json()["purged"].clone()
    };
    assert_eq!(purge("other"), 1);
    assert_eq!((score(&daemon, OURS), is_known(&daemon, "general")), (taught, true));
    assert_eq!(purge("default"), 1);
    assert_eq!((score(&daemon, OURS), is_known(&daemon, "general")), (untaught, false), "as if it had never been");
}
