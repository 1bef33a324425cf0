//! The OpenAPI document says what the handlers do.

use std::sync::atomic::{AtomicUsize, Ordering};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Reply, Site, document, shipped, wait_until};
use crate::fixtures::hostile;

/// A request for each operation: path, body, and whether it goes to the admin socket.
const REQUESTS: &[(&str, &str, &str)] = &[
    ("listTools", "/v1/tools?limit=3", ""),
    ("listTools", "/v1/tools?q=file&limit=2", ""),
    ("getTool", "/v1/tools/web_search", ""),
    ("getToolRelations", "/v1/tools/web_search/relations", ""),
    ("checkTools", "/v1/tools/check", r#"{"tools":["web_search","http_request","nope"],"env_vars":[]}"#),
    ("getCatalog", "/v1/catalog", ""),
    (
        "recordExecutions",
        "/v1/executions",
        r#"{"tool_name":"web_search","duration_ms":1200,"session_id":"s","timestamp":"2026-01-31T12:00:00Z"}"#,
    ),
    (
        "estimate",
        "/v1/estimate",
        r#"{"tool_name":"web_search","mode_name":"m","complexity":{"content_length":5},"timeout_ms":9,"elapsed_ms":3}"#,
    ),
    (
        "qualify",
        "/v1/qualify",
        r#"{"message":"search the web for news","sessionId":"s","maxTools":5,"scores":true,"explain":true,
            "networks":["base"]}"#,
    ),
    ("qualify", "/v1/qualify?stream=data-v1", r#"{"message":"and read the first hit","sessionId":"s"}"#),
    ("qualify", "/v1/qualify?stream=ui-v1", r#"{"message":"thanks"}"#),
    ("reportMiss", "/v1/qualify/miss", r#"{"toolName":"web_search","sessionId":"s"}"#),
    ("estimate", "/v1/estimate", r#"{"steps":[{"tool_name":"a"},{"tool_name":"b"}]}"#),
    ("getMetadata", "/v1/metadata", r#"{"tool_name":"web_search"}"#),
    ("enrich", "/v1/enrich", r#"{"request":{"tool_name":"web_search"},"response":{"a":1}}"#),
    ("readStream", "/v1/streams?protocol=data-v1&session_id=s", "0:\"hi\"\n"),
    ("reportUsage", "/v1/usage", r#"{"tokensIn":10,"tokensOut":5,"prices":{"input":1,"output":2}}"#),
    ("checkPlan", "/v1/plans/check", r#"{"steps":["web_search","reasoning_linear"],"goal":"g"}"#),
    ("listPresets", "/v1/presets?limit=2", ""),
    ("getPreset", "/v1/presets/decision_analysis", ""),
    (
        "matchPresets",
        "/v1/presets/match",
        r#"{"tool_history":["reasoning_divergent"],"goal":"a hard choice","session_id":"s"}"#,
    ),
    ("getMetadata", "/v1/metadata", r#"{"tool_name":"reasoning_divergent"}"#),
    ("listTiming", "/v1/timing", ""),
    ("listExecutions", "/v1/executions?limit=10", ""),
    ("getTiming", "/v1/timing/web_search", ""),
    ("listTimedCalls", "/v1/timing/web_search/calls", ""),
    ("listToolChoices", "/v1/tools/web_search/choices?limit=2", ""),
    ("getRelations", "/v1/relations", ""),
    ("listServers", "/v1/servers", ""),
    ("listServerChanges", "/v1/servers/absent/changes", ""),
    ("approveServerChanges", "/v1/servers/absent/approve", ""),
    ("listSessions", "/v1/sessions?limit=2", ""),
    ("getSession", "/v1/sessions/s", ""),
    ("listSessionTurns", "/v1/sessions/s/turns", ""),
    ("getUsage", "/v1/usage", ""),
    ("getOverview", "/v1/overview", ""),
    ("getFleet", "/v1/fleet", ""),
    ("listenToEvents", "/v1/events", ""),
    ("listPlugins", "/v1/plugins", ""),
    ("resetPlugin", "/-/plugins/test.hostile.counter/reset", ""),
    ("addMessage", "/v1/memories/messages", MESSAGE),
    (
        "addCognitiveProcess",
        "/v1/memories/cognitive-processes",
        r#"{"content":"c","metadata":{"processType":"thought","agentId":"agent:agent:a","relatedTo":"x"}}"#,
    ),
    (
        "addDocument",
        "/v1/memories/documents",
        r#"{"content":"d",
            "metadata":{"source":"web","agentId":"agent:agent:a","creationDate":"2026-01-01T00:00:00Z"}}"#,
    ),
    (
        "addTask",
        "/v1/memories/tasks",
        r#"{"content":"t","metadata":{"title":"t","status":"pending","priority":"low","agentId":"agent:agent:a"}}"#,
    ),
    (
        "searchMessages",
        "/v1/memories/messages/search",
        r#"{"criteria":{"role":"user"},"options":{"query":"m","explain":true,"limit":5}}"#,
    ),
    ("searchCognitiveProcesses", "/v1/memories/cognitive-processes/search", "{}"),
    ("searchDocuments", "/v1/memories/documents/search", r#"{"options":{"sortBy":"title"}}"#),
    ("searchTasks", "/v1/memories/tasks/search", r#"{"criteria":{"minImportance":"high"}}"#),
    ("searchMemories", "/v1/memories/search", r#"{"options":{"query":"tea","explain":true}}"#),
    ("getMemory", "/v1/memories/{memory}", ""),
    ("updateMemory", "/v1/memories/{memory}", r#"{"content":"n","metadata":{"importance":"high"}}"#),
    ("deleteMemory", "/v1/memories/{memory}", ""),
    ("getMemoryHistory", "/v1/memories/{memory}/history", ""),
    ("restoreMemory", "/v1/memories/{memory}/restore", ""),
    ("getMemoryRelations", "/v1/memories/{memory}/relations", ""),
    ("getThread", "/v1/threads/{thread}", ""),
    ("exportMemories", "/-/memories/export", ""),
    (
        "importMemories",
        "/-/memories/import",
        r#"{"memories":[{"content":"d","metadata":{"source":"web","agentId":"agent:agent:a"}}]}"#,
    ),
    ("purgeMemories", "/-/memories/purge", r#"{"ids":["none"]}"#),
    ("getLanding", "/", ""),
    ("getLive", "/live", ""),
    ("getReady", "/ready", ""),
    ("getMetrics", "/metrics", ""),
    ("getOpenapi", "/openapi.json", ""),
    ("reload", "/-/reload", ""),
    ("reload", "/-/reload?wait=false", ""),
    ("listMcpServers", "/-/mcp", ""),
    ("showMcpServerLogs", "/-/mcp/absent/logs", ""),
    ("diffMcpServer", "/-/mcp/absent/diff", ""),
    ("restartMcpServer", "/-/mcp/absent/restart", ""),
    ("approveMcpServer", "/-/mcp/absent/approve", ""),
    ("getStatus", "/-/status", ""),
    ("setLogLevel", "/-/log-level", r#"{"level":"info"}"#),
];

/// A message in a thread of its own.
const MESSAGE: &str = r#"{"content":"m","metadata":{
    "role":"user","userId":"user:user:u","agentId":"agent:agent:a","chatId":"chat:chat:c",
    "thread":{"id":"{new}","position":0}}}"#;

/// The path or body with what it speaks of made: `{new}` is a name that was not used before, `{memory}` and `{thread}`
/// are those of a message that is kept.
fn real(daemon: &Daemon, text: &str) -> String {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let name = format!("thread{}", NAMES.fetch_add(1, Ordering::Relaxed));
    let text = text.replace("{new}", &name);
    if !text.contains("{memory}") && !text.contains("{thread}") {
        return text;
    }
    let kept = daemon.post("/v1/memories/messages", &MESSAGE.replace("{new}", &name));
    text.replace("{memory}", kept.json()["id"].as_str().unwrap()).replace("{thread}", &name)
}

fn start() -> (Site, Daemon) {
    let site = Site::new();
    site.save("faulty.yaml", &document("faulty", "t").replace("title", "titel"));
    hostile("counter", &site.path("plugins"));
    site.configure("mcp: {directory: /nonexistent, servers: {absent: {socket: /nonexistent/socket}}}\n");
    let mut command = site.command();
    command.arg("--tool-metadata").arg(shipped());
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    wait_until("the rule library", || daemon.get("/ready").status == 200);
    (site, daemon)
}

struct Operation<'d> {
    method: String,
    document: &'d Value,
    described: &'d Value,
    admin: bool,
}

fn operations(document: &Value) -> Vec<(String, Operation<'_>)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.values().flat_map(|path| path.as_object().unwrap());
    all.map(|(method, described)| {
        let id = described["operationId"].as_str().unwrap().to_owned();
        let says_admin = |text: &str| text.contains("scope `admin`");
        let admin =
            described.get("x-almanac-door").is_some() || described["description"].as_str().is_some_and(says_admin);
        (id, Operation { method: method.to_uppercase(), document, described, admin })
    })
    .collect()
}

impl Operation<'_> {
    fn send(&self, daemon: &Daemon, path: &str, body: &str) -> Reply {
        let (path, body) = (&real(daemon, path), &real(daemon, body));
        if self.admin {
            return daemon.admin(&self.method, path, body.as_bytes());
        }
        let headers: &[(&str, &str)] = if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
        daemon.send(&self.method, path, headers, body.as_bytes())
    }

    /// The schema at `pointer` below the operation, with the document's components beside it.
    fn schema(&self, at: &Value) -> Validator {
        let schema = json!({"allOf": [at], "components": self.document["components"]});
        jsonschema::validator_for(&schema).unwrap()
    }

    #[track_caller]
    fn check(&self, path: &str, reply: &Reply) {
        let answers = &self.described["responses"];
        let answer = answers.get(reply.status.to_string()).unwrap_or(&answers["default"]);
        let given = reply.header("content-type").unwrap().split(';').next().unwrap();
        let described = &answer["content"][given]["schema"];
        assert!(!described.is_null(), "{path}: {} of {given} is not described", reply.status);
        if !given.contains("json") {
            return;
        }
        let body = reply.json();
        let faults: Vec<String> = self.schema(described).iter_errors(&body).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{path} answered {body:#}, against {faults:#?}");
    }
}

#[test]
fn every_answer_is_as_described() {
    let (_site, daemon) = start();
    let document = daemon.json("/openapi.json");
    let operations = operations(&document);
    daemon.post("/v1/executions", r#"{"tool_name":"web_search","duration_ms":1,"session_id":"s"}"#);
    // A stream that does not end is read by a test of its own.
    for (id, operation) in operations.iter().filter(|(id, _)| id != "listenToEvents") {
        let requests: Vec<_> = REQUESTS.iter().filter(|(of, _, _)| of == id).collect();
        assert!(!requests.is_empty(), "{id} is not tried");
        for (_, path, body) in requests {
            let reply = operation.send(&daemon, path, body);
            assert!(reply.status < 400, "{path}: {}", reply.text());
            operation.check(path, &reply);
        }
    }
    for (id, _, _) in REQUESTS {
        assert!(operations.iter().any(|(known, _)| known == id), "{id} is not described");
    }
}

#[test]
fn every_refusal_is_as_described() {
    let (_site, daemon) = start();
    let document = daemon.json("/openapi.json");
    for (id, operation) in operations(&document) {
        let (_, path, body) = REQUESTS.iter().find(|(of, _, _)| *of == id).unwrap();
        let path = format!("{}?no_such_parameter=1", path.split('?').next().unwrap());
        let reply = operation.send(&daemon, &path, body);
        assert_eq!((reply.status, reply.code().as_str()), (400, "unknown-parameter"), "{path}");
        operation.check(&path, &reply);
    }
}

/// A key in its other spelling: `tool_name` for `toolName`, and the reverse.
fn other_spelling(key: &str) -> String {
    let mut other = String::new();
    let mut is_after_line = false;
    for character in key.chars() {
        match character {
            '_' => is_after_line = true,
            _ if is_after_line => {
                other.push(character.to_ascii_uppercase());
                is_after_line = false;
            }
            _ if character.is_ascii_uppercase() => {
                other.push('_');
                other.push(character.to_ascii_lowercase());
            }
            _ => other.push(character),
        }
    }
    other
}

/// The same value with all keys in their other spelling.
fn respelt(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (other_spelling(key), respelt(value))).collect())
        }
        Value::Array(items) => items.iter().map(respelt).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_key_has_two_spellings() {
    let (_site, daemon) = start();
    let document = daemon.json("/openapi.json");
    let all = operations(&document);
    let mut respelt_keys = 0;
    for (id, path, body) in REQUESTS {
        let Ok(body) = serde_json::from_str::<Value>(body) else { continue };
        let (_, operation) = all.iter().find(|(of, _)| of == id).unwrap();
        let reply = operation.send(&daemon, path, &respelt(&body).to_string());
        assert!(reply.status < 300, "{id} in the other spelling: {}", reply.text());
        let Value::Object(keys) = body else { continue };
        for (key, value) in keys.iter().filter(|(key, _)| other_spelling(key) != **key) {
            respelt_keys += 1;
            let mut both = keys.clone();
            both.insert(other_spelling(key), value.clone());
            let reply = operation.send(&daemon, path, &Value::Object(both).to_string());
            let said = reply.json();
            let pointer = format!("/{}", other_spelling(key));
            assert_eq!((reply.status, &said["errors"][0]["code"]), (422, &json!("repeated-key")), "{id}: {said}");
            assert_eq!(said["errors"][0]["pointer"], pointer, "{id}: {said}");
        }
    }
    assert!(respelt_keys > 15, "{respelt_keys}");
}

#[test]
fn a_fault_is_told_where_it_was_written() {
    let (_site, daemon) = start();
    let check = |path: &str, body: &str, pointer: &str| {
        let reply = daemon.post(path, body);
        assert_eq!((reply.status, reply.json()["errors"][0]["pointer"].as_str()), (422, Some(pointer)), "{body}");
    };
    check("/v1/estimate", r#"{"toolName": 1}"#, "/toolName");
    check("/v1/estimate", r#"{"tool": "a", "modeName": "a\u0000"}"#, "/modeName");
    check("/v1/estimate", r#"{"tool": "a", "toolName": "a"}"#, "/tool");
    check("/v1/executions", r#"{"name": "a", "durationMs": 86400001}"#, "/durationMs");
    check("/v1/estimate", r#"{"tool": "a", "complexity": "complex"}"#, "/complexity");
    let taken = daemon.post("/v1/estimate", r#"{"steps": ["web_search", {"tool": "http_request"}]}"#);
    assert_eq!(taken.status, 200, "{}", taken.text());
    let taken = daemon.post("/v1/plans/check", r#"{"steps": [{"toolName": "web_search", "modeName": "m"}]}"#);
    assert_eq!(taken.status, 200, "{}", taken.text());
}

/// Keys that are spelt so in the document that they come from.
const ITS_OWN: [&str; 3] = ["importance_score", "is_deleted", "deletion_time"];

#[test]
fn no_answer_mixes_two_spellings() {
    fn keys(schema: &Value, document: &Value, seen: &mut Vec<String>, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get("$ref")
                    && !seen.contains(target)
                {
                    seen.push(target.clone());
                    keys(document.pointer(&target[1..]).unwrap(), document, seen, found);
                }
                if let Some(Value::Object(properties)) = map.get("properties") {
                    found.extend(properties.keys().cloned());
                }
                map.values().for_each(|value| keys(value, document, seen, found));
            }
            Value::Array(items) => items.iter().for_each(|value| keys(value, document, seen, found)),
            _ => {}
        }
    }
    let (_site, daemon) = start();
    let document = daemon.json("/openapi.json");
    for (id, operation) in operations(&document) {
        for (status, answer) in operation.described["responses"].as_object().unwrap() {
            let mut found = Vec::new();
            keys(answer, &document, &mut Vec::new(), &mut found);
            let camel: Vec<_> = found.iter().filter(|key| key.contains(|c: char| c.is_ascii_uppercase())).collect();
            let snake: Vec<_> =
                found.iter().filter(|key| key.contains('_') && !ITS_OWN.contains(&key.as_str())).collect();
            assert!(camel.is_empty() || snake.is_empty(), "{id} {status} mixes {camel:?} and {snake:?}");
        }
    }
}

#[test]
fn every_parameter_and_field_is_taken() {
    let (_site, daemon) = start();
    // What is asked about must have happened.
    daemon.post("/v1/executions", r#"{"tool_name":"web_search","duration_ms":1,"session_id":"s"}"#);
    let document = daemon.json("/openapi.json");
    for (id, operation) in operations(&document) {
        let (_, path, body) = REQUESTS.iter().find(|(of, _, _)| *of == id).unwrap();
        let path = path.split('?').next().unwrap();
        for parameter in operation.described["parameters"].as_array().unwrap() {
            if parameter["in"] == "query" {
                let name = parameter["name"].as_str().unwrap();
                let body = if operation.described.get("requestBody").is_some() { body } else { &"" };
                let reply = operation.send(&daemon, &format!("{path}?{name}="), body);
                let taken = reply.status < 300 || reply.code() != "unknown-parameter";
                assert!(taken, "{path} does not take {name}: {}", reply.text());
            }
        }
        if let Some(schema) = operation.described.pointer("/requestBody/content/application~1json/schema") {
            let schema = operation.schema(schema);
            let body: Value = serde_json::from_str(body).unwrap();
            assert!(schema.is_valid(&body), "{id}: {body}");
            let mut unknown = body.clone();
            unknown["no_such_field"] = json!(1);
            assert!(!schema.is_valid(&unknown), "{id} describes unknown fields as taken");
            let reply = operation.send(&daemon, path, &unknown.to_string());
            assert_eq!(reply.status, 422, "{id} takes unknown fields");
        }
    }
}
