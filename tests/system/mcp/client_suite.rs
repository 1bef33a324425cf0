//! The published conformance suite's scenarios for clients: its server is one of the daemon's at a URL, and what it
//! wants called is called through the daemon. The client that the suite starts is this test binary, which starts a
//! daemon. Skipped as the other half of the suite is, where Node's packages are missing.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{env, thread};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::conformance::{node, packages};
use super::served::{Served, ask_with, outcome};
use crate::daemon::{Site, wait_until};

/// Makes the test below a client.
const CLIENT: &str = "CONFORMANCE_CLIENT";

/// Where the suite's server has all that it offers.
const FAR: &str = "/mcp/server/far";

/// Scenarios that a gateway can pass: the others want a person who logs in, or answers in our stead.
const SCENARIOS: [&str; 12] = [
    "initialize",
    "tools_call",
    "sse-retry",
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "sep-2322-client-request-state",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
];

/// Scenarios that run at once.
const AT_ONCE: usize = 4;

#[derive(Deserialize)]
struct ExpectedFailures {
    #[serde(default)]
    client: BTreeMap<String, String>,
}

/// What the suite says of one scenario, and whether all is well.
fn run(packages: &std::path::Path, scenario: &str) -> (bool, String) {
    let client = format!("{} mcp::client_suite::act --exact --nocapture", env::current_exe().unwrap().display());
    let output = Command::new(node(packages))
        .arg(packages.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["client", "--scenario", scenario, "--timeout", "60000", "--command", &client])
        .env(CLIENT, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let passed = said.split("Passed: ").nth(1).and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
    (output.status.success() && passed.is_some_and(|passed| passed > 0), said)
}

#[test]
fn what_the_suite_wants_of_clients_is_done() {
    let Some(packages) = packages() else { return };
    let expected = std::fs::read_to_string(packages.join("mcp/expected-failures.yaml")).unwrap();
    let expected: ExpectedFailures = serde_yaml::from_str(&expected).unwrap();
    let (waiting, faults) = (Mutex::new(SCENARIOS.to_vec()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = waiting.lock().unwrap().pop() else { return };
                    let (is_well, said) = run(&packages, scenario);
                    if is_well == expected.client.contains_key(scenario) {
                        faults.lock().unwrap().push(format!("{scenario}: passed is {is_well}\n{said}"));
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// What the suite starts as its client: a daemon in front of the server whose URL is the last argument.
#[test]
fn act() {
    if env::var_os(CLIENT).is_none() {
        return;
    }
    let url = env::args().next_back().unwrap();
    let context: Value = env::var("MCP_CONFORMANCE_CONTEXT").map_or(Value::Null, |text| text.parse().unwrap());
    let server = format!("    far: {{url: '{url}'{}}}\n", credentials(&context));
    let served = Served::start(Site::new(), &server, "  anonymous_calls: true\n");
    wait_until("the server", || served.daemon.metric("almanac_mcp_upstream_up{server=\"far\"}") == Some(1.0));
    let list = |what: &str, member: &str| {
        let listed = served.ask(FAR, &format!("{what}/list"), json!({}))["result"][member].clone();
        listed.as_array().cloned().unwrap_or_default()
    };
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap();
    // These two servers list nothing.
    if !["initialize", "request-metadata"].contains(&scenario.as_str()) {
        wait_until("its tools", || !list("tools", "tools").is_empty());
    }
    let tools = list("tools", "tools");
    let schema_of = |name: &str| tools.iter().find(|tool| tool["name"] == name).map(|tool| &tool["inputSchema"]);
    let wanted = context["toolCalls"].as_array().cloned().unwrap_or_else(|| {
        let arguments = |tool: &Value| match tool["name"].as_str().unwrap() {
            "add_numbers" => json!({"a": 5, "b": 3}),
            "json_schema_echo" => json!({"schema": schema_of("json_schema_2020_12_tool").unwrap()}),
            "valid_tool" => json!({"region": "us-west1"}),
            _ => json!({}),
        };
        tools.iter().map(|tool| json!({"name": tool["name"], "arguments": arguments(tool)})).collect()
    });
    for call in wanted {
        let headers = annotated(schema_of(call["name"].as_str().unwrap()).unwrap(), &call["arguments"]);
        let answer = called(&served, call.clone(), &headers);
        if answer["result"]["resultType"] != "input_required" {
            // The server whose schema leads elsewhere lists its tool only.
            assert!(answer["result"].is_object() || scenario == "json-schema-ref-no-deref", "{answer}");
            continue;
        }
        // Another call in between has nothing of the first.
        called(&served, json!({"name": "test_mrtr_unrelated", "arguments": {}}), &[]);
        let asked = answer["result"]["inputRequests"].as_object().unwrap().keys();
        let accept = json!({"action": "accept", "content": {"confirmed": true}});
        let mut again = call;
        again["inputResponses"] = asked.map(|key| (key.clone(), accept.clone())).collect();
        if let Some(state) = answer["result"].get("requestState") {
            again["requestState"] = state.clone();
        }
        called(&served, again, &[]);
    }
    for resource in list("resources", "resources") {
        super::served::ask_about(&served.daemon, FAR, "resources/read", resource["uri"].as_str().unwrap());
    }
    for prompt in list("prompts", "prompts") {
        served.ask(FAR, "prompts/get", json!({"name": prompt["name"], "arguments": {}}));
    }
}

/// What the suite's authorization server knows of us, if there is one. Text in JSON is text in YAML, too.
fn credentials(context: &Value) -> String {
    let Some(id) = context.get("client_id") else { return String::new() };
    let secret = |key: &str, name: &str| context.get(name).map(|value| format!(", {key}: {value}"));
    let secrets = [secret("client_secret", "client_secret"), secret("private_key", "private_key_pem")];
    format!(", client_credentials: {{client_id: {id}{}}}", secrets.into_iter().flatten().collect::<String>())
}

fn called(served: &Served, mut params: Value, headers: &[(String, String)]) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    outcome(&ask_with(&served.daemon, FAR, "tools/call", params, headers))
}

/// The headers that repeat arguments, all of them encoded.
fn annotated(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    let header = |(name, property): (&String, &Value)| {
        let value = &arguments[name];
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let header = format!("Mcp-Param-{}", property["x-mcp-header"].as_str()?);
        (!value.is_null()).then(|| (header, format!("=?base64?{}?=", BASE64_STANDARD.encode(text))))
    };
    schema["properties"]
        .as_object()
        .map(|properties| properties.iter().filter_map(header).collect())
        .unwrap_or_default()
}
