//! The OpenAPI document says what the handlers do.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Reply, Site, document, shipped};

/// A request for each operation: path, body, and whether it goes to the admin socket.
const REQUESTS: &[(&str, &str, &str)] = &[
    ("listTools", "/v1/tools?limit=3", ""),
    ("listTools", "/v1/tools?q=file&limit=2", ""),
    ("getTool", "/v1/tools/web_search", ""),
    ("getToolRelations", "/v1/tools/web_search/relations", ""),
    ("checkTools", "/v1/tools/check", r#"{"tools":["web_search","http_request","nope"],"envVars":[]}"#),
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
    ("estimate", "/v1/estimate", r#"{"steps":[{"tool_name":"a"},{"tool_name":"b"}]}"#),
    ("getMetadata", "/v1/metadata", r#"{"tool_name":"web_search"}"#),
    ("enrich", "/v1/enrich", r#"{"request":{"tool_name":"web_search"},"response":{"a":1}}"#),
    ("readStream", "/v1/streams?protocol=data-v1&session_id=s", "0:\"hi\"\n"),
    ("reportUsage", "/v1/usage", r#"{"tokensIn":10,"tokensOut":5,"prices":{"input":1,"output":2}}"#),
    ("checkPlan", "/v1/plans/check", r#"{"steps":["web_search","reasoning_linear"],"goal":"g"}"#),
    ("listTiming", "/v1/timing", ""),
    ("getTiming", "/v1/timing/web_search", ""),
    ("getSession", "/v1/sessions/s", ""),
    ("getLive", "/live", ""),
    ("getReady", "/ready", ""),
    ("getMetrics", "/metrics", ""),
    ("getOpenapi", "/openapi.json", ""),
    ("reload", "/-/reload", ""),
    ("reload", "/-/reload?wait=false", ""),
    ("getStatus", "/-/status", ""),
    ("setLogLevel", "/-/log-level", r#"{"level":"info"}"#),
];

fn start() -> (Site, Daemon) {
    let site = Site::new();
    site.save("faulty.yaml", &document("faulty", "t").replace("title", "titel"));
    let mut command = site.command();
    command.arg("--tool-metadata").arg(shipped());
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
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
        let admin = described.get("x-almanac-door").is_some();
        (id, Operation { method: method.to_uppercase(), document, described, admin })
    })
    .collect()
}

impl Operation<'_> {
    fn send(&self, daemon: &Daemon, path: &str, body: &str) -> Reply {
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
    for (id, operation) in &operations {
        let requests: Vec<_> = REQUESTS.iter().filter(|(of, _, _)| of == id).collect();
        assert!(!requests.is_empty(), "{id} is not tried");
        for (_, path, body) in requests {
            let reply = operation.send(&daemon, path, body);
            assert!(reply.status < 300, "{path}: {}", reply.text());
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
        if body.is_empty() {
            let reply = operation.send(&daemon, &path, "");
            assert_eq!(reply.status, 400, "{path}");
            operation.check(&path, &reply);
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
                let reply = operation.send(&daemon, &format!("{path}?{name}="), "");
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
