//! Almanac's own tools, as an agent calls them.

use serde_json::{Value, json};

use super::client::{call, modern};
use crate::daemon::{Site, ask, serve_shipped};

#[test]
fn tools_are_found_described_and_missed() {
    let site = Site::new();
    let tool = |name: &str, description: &str, more: &str| {
        let text = format!(
            "name: {name}\ntitle: {name}\ndescription: {description}\ncategory: c\n\
             capabilities: []\nkeywords: []\nuse_cases: []\n{more}"
        );
        site.save(&format!("{name}.yaml"), &text);
    };
    let schema = "input_schema: {type: object, properties: {to: {type: string}}}\n";
    tool("send_email", "Send an email message to people.", schema);
    tool("read_email", "Read the email messages of a mailbox.", "");
    tool("web_search", "Search the web for pages and news.", "");
    let daemon = site.start();
    let (found, failed) = call(&daemon, "find_tools", json!({"query": "send an email to Anna"}));
    assert!(!failed);
    let first = &found["tools"][0];
    assert_eq!((&first["name"], &first["callable"]), (&json!("send_email"), &json!(false)), "{found}");
    assert_eq!(first["inputSchema"]["properties"]["to"]["type"], "string");
    assert!(first["score"].as_f64().unwrap() > 0.0 && first["seconds"][1].as_f64() >= first["seconds"][0].as_f64());
    let (named, _) =
        call(&daemon, "find_tools", json!({"query": "is web_search what I need to send an email?", "limit": 1}));
    assert_eq!(named["tools"][0]["name"], "web_search");
    assert_eq!(named["tools"].as_array().unwrap().len(), 1, "no more than the limit");
    assert!(named["more"].as_u64().unwrap() >= 1, "{named}");
    let (nothing, _) = call(&daemon, "find_tools", json!({"query": "qwertz uiop"}));
    assert_eq!(nothing["tools"], json!([]), "{nothing}");
    assert_eq!(nothing["nearest"].as_array().unwrap().len(), 3, "{nothing}");
    assert!(nothing.get("note").is_none(), "{nothing}");
    let (brief, _) = call(&daemon, "find_tools", json!({"query": "email", "detail": "names"}));
    assert!(brief["tools"][0].get("description").is_none(), "{brief}");
    let (described, _) =
        call(&daemon, "find_tools", json!({"names": ["send_email", "sned_email"], "detail": "schema"}));
    assert_eq!(described["tools"][0]["inputSchema"]["type"], "object");
    assert_eq!(described["unknown"]["sned_email"][0], "send_email");
}

#[test]
fn where_there_are_no_tools_that_is_said() {
    let site = Site::new();
    let daemon = site.start();
    for arguments in [json!({"query": "send an email"}), json!({"names": ["send_email"]})] {
        let (found, failed) = call(&daemon, "find_tools", arguments);
        let note = found["note"].as_str().unwrap_or_default();
        assert!(!failed && note.contains("tool_metadata") && note.contains("mcp.servers"), "{found}");
    }
}

#[test]
fn wrong_arguments_are_explained_to_the_model() {
    let (_site, daemon) = serve_shipped();
    let check = |tool: &str, arguments: Value, parts: &[&str]| {
        let (said, failed) = call(&daemon, tool, arguments.clone());
        assert!(failed, "{tool} {arguments}");
        for part in parts {
            assert!(said.as_str().unwrap().contains(part), "{tool} {arguments}: {said}");
        }
    };
    check("find_tools", json!({}), &["/query"]);
    check("find_tools", json!({"query": "x", "names": []}), &["not both"]);
    check("find_tools", json!({"query": "x", "limit": 26}), &["/limit", "1 to 25"]);
    check("find_tools", json!({"query": "x", "detail": "breif"}), &["did you mean `brief`?"]);
    check("find_tools", json!({"qurey": "x"}), &["did you mean `query`?"]);
    check("find_tools", json!({"query": "x".repeat(9000)}), &["8192"]);
    check("predict_duration", json!({"tool_nam": "a"}), &["did you mean `tool_name`?"]);
    check("suggest_next", json!({}), &["`tool_name` is missing"]);
    check("remember", json!({"content": "x", "kind": "task"}), &["`title` is missing", "/metadata"]);
    check("remember", json!({"content": "x", "metadata": {"importance": "hgih"}}), &["high"]);
    check("recall", json!({"limit": 1000}), &["/limit"]);
    check("recall", json!({"kind": "dokument"}), &["did you mean `document`?"]);
    let unknown = modern(&daemon, "tools/call", json!({"name": "find_tool", "arguments": {}}));
    assert_eq!(unknown.json()["error"]["code"], -32602);
    assert!(unknown.text().contains("did you mean `find_tools`?"), "{}", unknown.text());
}

#[test]
fn what_is_remembered_is_recalled() {
    let (_site, daemon) = serve_shipped();
    let metadata = json!({"title": "Deployment", "tags": ["ops"], "importance": "high"});
    let (kept, failed) =
        call(&daemon, "remember", json!({"content": "The database runs on port 5433.", "metadata": metadata}));
    assert!(!failed, "{kept}");
    let (found, _) = call(&daemon, "recall", json!({"query": "which port has the database?"}));
    assert_eq!(found["memories"][0]["id"], kept["id"], "{found}");
    assert_eq!(found["memories"][0]["metadata"]["agentId"]["id"], "mcp");
    let (tagged, _) = call(&daemon, "recall", json!({"criteria": {"tags": "ops"}, "limit": 1}));
    assert_eq!(tagged["total"], 1);
    let other = json!({"content": "hm", "kind": "cognitive_process", "metadata": {"processType": "thought"}});
    let spelt = json!({"content": "x", "metadata": {"agent_id": "agent:agent:spelt"}});
    let (memory, failed) = call(&daemon, "remember", spelt);
    assert!(!failed, "{memory}");
    let memory = daemon.json(&format!("/v1/memories/{}", memory["id"].as_str().unwrap()));
    assert_eq!(memory["metadata"]["agentId"]["id"], "spelt", "{memory}");
    let (thought, failed) = call(&daemon, "remember", other);
    assert!(!failed, "{thought}");
    let (thoughts, _) = call(&daemon, "recall", json!({"kind": "cognitive_process"}));
    assert_eq!(thoughts["memories"][0]["id"], thought["id"]);
    // The same engine answers behind the other door.
    let search = json!({"options": {"query": "port of the database"}});
    assert_eq!(ask(&daemon, "/v1/memories/documents/search", &search)["memories"][0]["id"], kept["id"]);
}

#[test]
fn both_doors_say_the_same() {
    let (_site, daemon) = serve_shipped();
    let asked = json!({"tool_name": "decision", "complexity": {"content_length": 500}, "timeout_ms": 1000});
    assert_eq!(call(&daemon, "predict_duration", asked.clone()).0, ask(&daemon, "/v1/estimate", &asked));
    let plan = json!({"steps": [{"tool_name": "decision"}, {"tool_name": "reflection"}]});
    assert_eq!(call(&daemon, "predict_duration", plan.clone()).0, ask(&daemon, "/v1/estimate", &plan));
    let asked = json!({"tool_name": "reasoning_decision", "tool_history": ["reasoning_reflection"]});
    assert_eq!(call(&daemon, "suggest_next", asked.clone()).0, ask(&daemon, "/v1/metadata", &asked)["suggestions"]);
    let (unknown, _) = call(&daemon, "suggest_next", json!({"tool_name": "reasoning_decisoin"}));
    assert_eq!(unknown["unknown"]["reasoning_decisoin"][0], "reasoning_decision", "{unknown}");
}
