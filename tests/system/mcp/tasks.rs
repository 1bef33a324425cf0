//! Calls as tasks: to clients that can hold them, of servers that make them, and of tools that demand them.

use serde_json::{Value, json};

use super::client::{BOTH, MODERN, Session, Stream, meta};
use super::served::{Served, ask, configure, messages, outcome, text};
use crate::access::tokens_of_two_tenants;
use crate::daemon::{Site, wait_for, wait_until};
use crate::mcp_fixture::server;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What a client declares that can hold tasks and answer everything.
fn able() -> Value {
    json!({"extensions": {TASKS: {}}, "elicitation": {}, "sampling": {}, "roots": {}})
}

/// The `_meta` of such a client, which waits for so long.
pub fn able_for(ms: u64) -> Value {
    json!({"io.modelcontextprotocol/clientCapabilities": able(), "dev.almanac/timeoutMs": ms})
}

fn one(words: &str) -> Served {
    Served::new(&format!("    a: {}, per_session: true}}\n", server(words)), "  anonymous_calls: true\n")
}

/// What is answered about a task.
fn about(served: &Served, method: &str, id: &Value, more: &Value) -> Value {
    let mut params = json!({"taskId": id, "_meta": able_for(60_000)});
    params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    served.ask("/mcp", method, params)
}

/// The task once it stands like this.
#[track_caller]
fn until(served: &Served, id: &Value, status: &str) -> Value {
    wait_for(status, || {
        let task = about(served, "tasks/get", id, &json!({}))["result"].clone();
        assert_eq!((&task["taskId"], &task["resultType"]), (id, &json!("complete")), "{task}");
        (task["status"] == status).then_some(task)
    })
}

/// The task that a call is answered with.
#[track_caller]
fn begun(result: &Value) -> Value {
    assert_eq!(result["resultType"], "task", "{result}");
    for absent in ["result", "error", "inputRequests", "requestState", "task"] {
        assert!(result.get(absent).is_none(), "{result}");
    }
    assert!(result["createdAt"].as_str().unwrap().contains('T') && result["ttlMs"].is_u64(), "{result}");
    result["taskId"].clone()
}

fn found(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

#[test]
fn a_call_that_outlasts_its_client_is_a_task_where_others_get_a_handle() {
    let served = Served::one("legacy");
    let call = || found("a_sleep", &json!({"ms": 1500}));
    let id = begun(&served.call_with("call_tool", call(), able_for(400)));
    assert!(id.as_str().unwrap().starts_with("c_"));
    let task = about(&served, "tasks/get", &id, &json!({}))["result"].clone();
    assert_eq!((&task["status"], &task["resultType"]), (&json!("working"), &json!("complete")), "{task}");
    let poll = task["pollIntervalMs"].as_u64().unwrap();
    assert!((250..=30_000).contains(&poll) && task["ttlMs"].as_u64().unwrap() >= 3_600_000, "{task}");
    assert!(task["statusMessage"].as_str().unwrap().contains("at most in nine of ten cases"), "{task}");
    // It is answered at once, and the call goes on.
    let task = until(&served, &id, "completed");
    assert_eq!((&task["result"]["content"], &task["result"]["resultType"]), (&json!([]), &json!("complete")), "{task}");
    let told = &task["result"]["_meta"]["dev.almanac/metadata"];
    assert_eq!(told["call"]["handle"], id, "{task}");
    assert!(told["timing"]["duration_ms"].as_u64().unwrap() >= 1500, "{task}");
    // One store: what is a task here is a handle there.
    assert_eq!(served.call("get_result", json!({"handle": id}))["content"], json!([]));
    assert_eq!(served.logs("a").matches("slept 1500 ms").count(), 1);
    wait_until("the record", || served.recorded("a_sleep") == 1);
    assert_eq!(served.daemon.metric("almanac_mcp_saved_calls_total"), Some(1.0));
    let acknowledged = about(&served, "tasks/cancel", &id, &json!({}))["result"].clone();
    assert!(acknowledged["resultType"] == "complete" && acknowledged.get("taskId").is_none(), "{acknowledged}");
    assert_eq!(about(&served, "tasks/get", &id, &json!({}))["result"]["status"], "completed");
}

#[test]
fn tasks_are_refused_to_whoever_does_not_hold_them() {
    let served = Served::one("legacy");
    let call = found("a_sleep", &json!({"ms": 60_000}));
    let id = begun(&served.call_with("call_tool", call, able_for(200)));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let undeclared = ask(&served.daemon, "/mcp", method, json!({"taskId": id, "inputResponses": {}}));
        assert_eq!(undeclared.status, 400, "{}", undeclared.text());
        let error = &undeclared.json()["error"];
        assert_eq!(error["code"], -32021, "{error}");
        assert!(error["data"]["requiredCapabilities"]["extensions"][TASKS].is_object(), "{error}");
        let unknown = about(&served, method, &json!("c_00"), &json!({"inputResponses": {}}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    assert_eq!(about(&served, "tasks/update", &id, &json!({}))["error"]["code"], -32602);
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(about(&served, method, &id, &json!({}))["error"]["code"], -32601, "{method}");
    }
    let mut all = meta();
    all["io.modelcontextprotocol/clientCapabilities"] = able();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": id, "_meta": all}});
    let headers = [
        ("content-type", "application/json"),
        BOTH,
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tasks/get"),
        ("mcp-name", "c_other"),
    ];
    let other = served.daemon.send("POST", "/mcp", &headers, body.to_string().as_bytes());
    assert_eq!((other.status, &other.json()["error"]["code"]), (400, &json!(-32020)));
    let legacy = Session::begin(&served.daemon, &[], "2025-11-25");
    let refused = legacy.ask(&served.daemon, "tasks/get", json!({"taskId": id})).json();
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let discovered = served.ask("/mcp", "server/discover", json!({}));
    assert!(discovered["result"]["capabilities"]["extensions"][TASKS].is_object(), "{discovered}");
    let acknowledged = about(&served, "tasks/cancel", &id, &json!({}))["result"].clone();
    assert!(acknowledged.get("status").is_none(), "{acknowledged}");
    let task = until(&served, &id, "cancelled");
    assert!(task.get("result").is_none() && task.get("pollIntervalMs").is_none(), "{task}");
    wait_until("the cancellation", || served.logs("a").contains("heard notifications/cancelled"));
}

#[test]
fn a_task_is_its_tenants_own() {
    let site = Site::new();
    let tokens = tokens_of_two_tenants(&site, "read,call");
    configure(&site, &format!("    a: {}}}\n", server("legacy")), "");
    let known = std::fs::read_to_string(site.path("almanac.yaml")).unwrap();
    site.configure(&format!("{known}auth: {{tokens_file: {}}}\n", site.path("tokens").display()));
    let daemon = site.start();
    let ask = |token: &str, method: &str, mut params: Value| {
        let bearer = [("authorization".to_owned(), format!("Bearer {token}"))];
        params["_meta"] = able_for(300);
        outcome(&super::served::ask_with(&daemon, "/mcp", method, params, &bearer))
    };
    let call = json!({"name": "call_tool", "arguments": found("a_sleep", &json!({"ms": 60_000}))});
    let id = wait_for("the server", || {
        let begun = ask(&tokens[0], "tools/call", call.clone())["result"]["taskId"].clone();
        begun.is_string().then_some(begun)
    });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = ask(&tokens[1], method, json!({"taskId": id, "inputResponses": {}}));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert_eq!(ask(&tokens[0], "tasks/get", json!({"taskId": id}))["result"]["status"], "working");
}

#[test]
fn a_server_that_asks_during_a_task_is_answered_by_an_update() {
    for (era, heard) in [("legacy", "/heard/result"), ("modern", "/heard/responses/who")] {
        let served = one(era);
        let call = found("a_ask", &json!({"ms": 600}));
        let id = begun(&served.call_with("call_tool", call, able_for(200)));
        let asked = until(&served, &id, "input_required");
        let question = json!({"method": "elicitation/create", "params": {"message": "name?"}});
        assert_eq!(asked["inputRequests"], json!({"question1": question}), "{asked}");
        let answer = json!({"action": "accept", "content": {"name": "Anna"}});
        let update = |key: &str| {
            let answered = about(&served, "tasks/update", &id, &json!({"inputResponses": {key: answer}}));
            assert_eq!(answered["result"]["resultType"], "complete", "{answered}");
        };
        update("other");
        assert_eq!(until(&served, &id, "input_required")["inputRequests"], asked["inputRequests"]);
        update("question1");
        let task = until(&served, &id, "completed");
        assert_eq!(task["result"].pointer(heard), Some(&answer), "{task}");
        wait_until("the record", || served.recorded("a_ask") == 1);
    }
}

#[test]
fn a_tool_that_demands_a_task_is_called_as_one_and_waited_for() {
    let served = one("legacy tasks");
    let listed = served.ask("/mcp/server/a", "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let job = tools.iter().find(|tool| tool["name"] == "job").unwrap();
    assert!(job.get("execution").is_none(), "{job}");
    assert_eq!(text(&served.call("a_job", json!({}))), "the job is done");
    // By its server's own clock.
    wait_until("the record", || served.recorded("a_job") == 1);
    let record = served.daemon.json("/v1/executions?tool=a_job")["items"][0].clone();
    assert_eq!((&record["duration_ms"], &record["outcome"]), (&json!(40), &json!("success")), "{record}");
    // Older clients do not know either that it is a task.
    let session = Session::begin(&served.daemon, &[], "2025-11-25");
    let call = json!({"name": "a_job", "arguments": {}, "task": {"ttl": 5}});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}).to_string();
    let headers = [("content-type", "application/json"), BOTH, ("mcp-session-id", session.id.as_str())];
    let reply = super::served::whole_reply(&served.daemon, "/mcp", &headers, &body);
    assert_eq!(text(&outcome(&reply)["result"]), "the job is done", "{}", reply.text());
    // Whoever gives it up does so at its server.
    let call = found("a_job", &json!({"looks": 1_000_000}));
    let handle = served.call_with("call_tool", call, json!({"dev.almanac/timeoutMs": 300}));
    let handle = handle["structuredContent"]["handle"].clone();
    served.call("get_result", json!({"handle": handle, "cancel": true}));
    wait_until("the cancellation", || served.logs("a").contains("heard tasks/cancel job-"));
    wait_until("the records", || served.recorded("a_job") == 3);
    // What it asks reaches the client.
    let mut call = json!({"name": "a_job", "arguments": {"asks": ["name"]}, "_meta": able_for(60_000)});
    let capabilities = &mut call["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    capabilities.as_object_mut().unwrap().remove("extensions");
    let asked = served.ask("/mcp", "tools/call", call.clone())["result"].clone();
    assert_eq!(asked["inputRequests"]["question"]["params"]["message"], "name", "{asked}");
    let answer = json!({"action": "decline"});
    (call["requestState"], call["inputResponses"]) = (asked["requestState"].clone(), json!({"question": answer}));
    let result = served.ask("/mcp", "tools/call", call)["result"].clone();
    assert_eq!(result["heard"], json!({"name": answer}), "{result}");
    // It is a task of ours to who can hold one, and asks there.
    let call = found("a_job", &json!({"asks": ["name"], "looks": 10}));
    let id = begun(&served.call_with("call_tool", call, able_for(200)));
    let asked = until(&served, &id, "input_required");
    assert_eq!(asked["inputRequests"]["question1"]["params"]["message"], "name", "{asked}");
    assert!(asked.get("ttl").is_none() && asked["ttlMs"].is_u64(), "{asked}");
    about(&served, "tasks/update", &id, &json!({"inputResponses": {"question1": answer}}));
    assert_eq!(until(&served, &id, "completed")["result"]["heard"], json!({"name": answer}));
}

#[test]
fn what_a_server_tells_of_its_task_reaches_clients_of_both_eras() {
    // Shared, and one that is told what its client can do.
    for more in ["}\n", ", per_session: true}\n"] {
        let served = Served::new(&format!("    a: {}{more}", server("legacy tasks")), "  anonymous_calls: true\n");
        let steps = |told: &[Value], token: Value| {
            let (result, told) = told.split_last().unwrap();
            assert_eq!(text(&result["result"]), "the job is done", "{result}");
            let told: Vec<_> = told.iter().filter(|told| told["method"] != "notifications/message").collect();
            assert!(told.iter().all(|told| told["params"]["progressToken"] == token), "{told:?}");
            let progress: Vec<f64> = told.iter().map(|told| told["params"]["progress"].as_f64().unwrap()).collect();
            assert!(progress.is_sorted_by(|one, next| one < next), "{told:?}");
            let said = told.iter().filter_map(|told| told["params"]["message"].as_str());
            said.filter(|said| said.starts_with("step")).map(str::to_owned).collect::<Vec<_>>()
        };
        let all = ["step 1", "step 2", "step 3", "step 4"];
        let params = json!({"name": "job", "arguments": {"looks": 3}, "_meta": {"progressToken": "mine"}});
        let told = messages(&ask(&served.daemon, "/mcp/server/a", "tools/call", params));
        assert_eq!(steps(&told, json!("mine")), all);
        let session = Session::begin(&served.daemon, &[], "2025-11-25");
        let params = json!({"name": "a_job", "arguments": {"looks": 3}, "_meta": {"progressToken": 7}});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
        let headers = [("content-type", "application/json"), BOTH, ("mcp-session-id", session.id.as_str())];
        let told = messages(&super::served::whole_reply(&served.daemon, "/mcp", &headers, &body));
        assert_eq!(steps(&told, json!(7)), all);
    }
}

#[test]
fn what_a_server_logs_between_two_looks_at_its_task_reaches_whoever_may_have_it() {
    let lines = |told: &[Value]| -> Vec<String> {
        let logged = told.iter().filter(|told| told["method"] == "notifications/message");
        let logged = logged.inspect(|told| assert_eq!(told["params"]["logger"], "jobs", "{told}"));
        logged.map(|told| told["params"]["data"].as_str().unwrap().to_owned()).collect()
    };
    let all = ["line 1", "line 2", "line 3", "line 4"];
    for (more, is_own) in [("}\n", false), (", per_session: true}\n", true)] {
        let served = Served::new(&format!("    a: {}{more}", server("legacy tasks")), "  anonymous_calls: true\n");
        let arguments = json!({"looks": 3});
        // Clients of the older eras hear them from a process of their own; of a shared one nobody knows whose they are.
        let session = Session::begin(&served.daemon, &[], "2025-11-25");
        let params = json!({"name": "a_job", "arguments": arguments, "_meta": {"progressToken": 7}});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
        let headers = [("content-type", "application/json"), BOTH, ("mcp-session-id", session.id.as_str())];
        let told = messages(&super::served::whole_reply(&served.daemon, "/mcp", &headers, &body));
        assert_eq!(lines(&told), if is_own { &all[..] } else { &[] }, "{told:?}");
        if !is_own {
            // They stand in the server's own log then.
            wait_until("the lines", || all.iter().all(|line| served.logs("a").contains(line)));
        }
        // A modern client did not ask for a level.
        let params = json!({"name": "job", "arguments": arguments, "_meta": {"progressToken": "mine"}});
        let told = messages(&ask(&served.daemon, "/mcp/server/a", "tools/call", params));
        assert_eq!(lines(&told), [""; 0], "{told:?}");
        assert_eq!(text(&told.last().unwrap()["result"]), "the job is done");
    }
}

#[test]
fn a_servers_own_task_passes_through_under_a_name_of_ours() {
    let served = one("modern tasks");
    let begin = |arguments: Value| {
        let begun_task = served.call_with("a_job", arguments, able_for(60_000));
        assert_eq!((&begun_task["pollIntervalMs"], &begun_task["statusMessage"]), (&json!(50), &json!("at it")));
        begun(&begun_task)
    };
    let id = begin(json!({"asks": ["name", "age"], "looks": 3}));
    assert!(id.as_str().unwrap().starts_with("c_"), "its server's is none of ours: {id}");
    let asked = until(&served, &id, "input_required");
    assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 2, "{asked}");
    let answer =
        |key: &str| about(&served, "tasks/update", &id, &json!({"inputResponses": {key: {"action": "accept"}}}));
    assert_eq!(answer("name")["result"]["resultType"], "complete");
    // Seen at once by whoever looks.
    let left = about(&served, "tasks/get", &id, &json!({}))["result"].clone();
    assert_eq!(left["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["age"], "{left}");
    answer("age");
    let task = until(&served, &id, "completed");
    assert_eq!(text(&task["result"]), "the job is done");
    assert_eq!(task["result"]["heard"], json!({"name": {"action": "accept"}, "age": {"action": "accept"}}));
    wait_until("the record", || served.recorded("a_job") == 1);
    let failed = until(&served, &begin(json!({"ends": "failed"})), "failed");
    assert_eq!(failed["error"], json!({"code": -32000, "message": "it broke"}), "{failed}");
    assert!(failed.get("result").is_none(), "{failed}");
    let id = begin(json!({"looks": 1_000_000}));
    about(&served, "tasks/cancel", &id, &json!({}));
    until(&served, &id, "cancelled");
    wait_until("the cancellation", || served.logs("a").contains("heard tasks/cancel job-3"));
    // Who cannot hold one is told so by its server.
    let refused = served.ask("/mcp", "tools/call", json!({"name": "a_job", "arguments": {}}));
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}

#[test]
fn a_task_of_a_server_that_is_such_a_daemon_passes_through_both() {
    let near = Served::new(
        &format!("    a: {}, on_timeout: handle}}\n", server("legacy")),
        "  anonymous_calls: true\n  client_timeout: 300ms\n",
    );
    let url = format!("http://{}/mcp/server/a", near.daemon.address);
    let far = Served::new(&format!("    far: {{url: '{url}'}}\n"), "  anonymous_calls: true\n");
    let id = begun(&far.call_with("far_sleep", json!({"ms": 1200}), able_for(60_000)));
    let task = until(&far, &id, "completed");
    assert_eq!(task["result"]["content"], json!([]), "{task}");
    let id = begun(&far.call_with("far_sleep", json!({"ms": 60_000}), able_for(60_000)));
    about(&far, "tasks/cancel", &id, &json!({}));
    wait_until("the cancellation", || near.logs("a").contains("heard notifications/cancelled"));
}

#[test]
fn a_listener_is_told_how_its_tasks_stand() {
    let served = Served::one("legacy");
    let call = found("a_sleep", &json!({"ms": 900}));
    let id = begun(&served.call_with("call_tool", call, able_for(200)));
    let listen = |capabilities: Value| {
        let mut all = meta();
        all["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        let params = json!({"_meta": all, "notifications": {"taskIds": [id, "c_none"]}});
        let body = json!({"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": params});
        let headers = [
            ("content-type", "application/json"),
            BOTH,
            ("mcp-protocol-version", MODERN),
            ("mcp-method", "subscriptions/listen"),
        ];
        let mut connection = served.daemon.connect();
        connection.request("POST", "/mcp", &headers, body.to_string().as_bytes());
        connection
    };
    let refused = listen(json!({})).reply_to("POST");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32021)));
    let mut stream = Stream::of(listen(able()));
    assert_eq!(stream.next().unwrap()["params"]["notifications"], json!({"taskIds": [id]}));
    let mut last = json!({});
    while last["status"] != "completed" {
        let told = stream.next().unwrap();
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        last = told["params"].clone();
        assert_eq!((&last["taskId"], last.get("resultType")), (&id, None), "{last}");
        assert_eq!(last["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub", "{last}");
    }
    assert_eq!(last["result"]["content"], json!([]), "{last}");
}
