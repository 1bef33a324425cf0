//! Calls of the fixture that are tasks, in the words of both eras.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::say;

static JOBS: Mutex<BTreeMap<String, Job>> = Mutex::new(BTreeMap::new());

/// A task: it has ended once it was looked at so often, and what it asks was answered.
struct Job {
    looks: u64,
    /// What it still asks, by its key.
    asks: Vec<String>,
    heard: Value,
    /// How it ends.
    ends: String,
    /// Where its progress is told, and how often it was.
    token: Value,
    steps: u64,
    is_cancelled: bool,
}

impl Job {
    fn status(&self) -> &str {
        match (self.is_cancelled, self.looks, self.asks.is_empty()) {
            (true, ..) => "cancelled",
            (_, 0, false) => "input_required",
            (_, 0, true) => &self.ends,
            _ => "working",
        }
    }

    /// Tells of a step, after the answer, so that it is heard between two looks.
    fn tell(&mut self) {
        if self.token.is_null() {
            return;
        }
        self.steps += 1;
        let message = format!("step {}", self.steps);
        let params = json!({"progressToken": self.token, "progress": self.steps, "message": message});
        say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        let line = json!({"level": "info", "logger": "jobs", "data": format!("line {}", self.steps)});
        say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": line}));
    }
}

/// The tool that begins them.
pub fn tool(is_modern: bool) -> Value {
    let mut tool = json!({"name": "job", "description": "Does a job.", "inputSchema": {"type": "object"}});
    if !is_modern {
        tool["execution"] = json!({"taskSupport": "required"});
    }
    tool
}

fn state(id: &str, job: &Job, is_modern: bool) -> Value {
    let mut state = json!({
        "taskId": id, "status": job.status(), "statusMessage": "at it", "createdAt": "2026-11-01T10:00:00Z",
        "lastUpdatedAt": "2026-11-01T10:00:00.040Z",
    });
    let (ttl, poll) = if is_modern { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
    (state[ttl], state[poll]) = (json!(60_000), json!(50));
    if is_modern {
        state["resultType"] = json!("complete");
        let asked = |key: &String| (key.clone(), json!({"method": "elicitation/create", "params": {"message": key}}));
        match job.status() {
            "input_required" => state["inputRequests"] = Value::Object(job.asks.iter().map(asked).collect()),
            "completed" => state["result"] = result(job),
            "failed" => state["error"] = json!({"code": -32000, "message": "it broke"}),
            _ => {}
        }
    }
    state
}

fn result(job: &Job) -> Value {
    json!({"content": [{"type": "text", "text": "the job is done"}], "heard": job.heard})
}

/// Begins one.
pub fn begin(id: &Value, params: &Value, is_modern: bool) {
    let arguments = &params["arguments"];
    let can = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    if is_modern && !can["io.modelcontextprotocol/tasks"].is_object() {
        let data = json!({"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
        let error = json!({"code": -32021, "message": "this needs tasks", "data": data});
        return say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }
    if !is_modern && params["task"]["ttl"].as_u64() != Some(3_600_000) {
        let error = json!({"code": -32601, "message": "this needs a task"});
        return say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }
    let asks = arguments["asks"].as_array().into_iter().flatten().map(|key| key.as_str().unwrap().to_owned());
    let job = Job {
        looks: arguments["looks"].as_u64().unwrap_or(2),
        asks: asks.collect(),
        heard: json!({}),
        ends: arguments["ends"].as_str().unwrap_or("completed").to_owned(),
        token: params["_meta"]["progressToken"].clone(),
        steps: 0,
        is_cancelled: false,
    };
    let mut jobs = JOBS.lock().unwrap();
    let name = format!("job-{}", jobs.len() + 1);
    eprintln!("began {name}");
    let mut begun = state(&name, &job, is_modern);
    if is_modern {
        begun["resultType"] = json!("task");
    }
    jobs.insert(name.clone(), job);
    let result = if is_modern { begun } else { json!({"task": begun}) };
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    jobs.get_mut(&name).unwrap().tell();
}

/// Answers what is asked of one.
pub fn answer(id: &Value, method: &str, params: &Value, is_modern: bool) {
    let name = params["taskId"].as_str().unwrap_or_default();
    let mut jobs = JOBS.lock().unwrap();
    let Some(job) = jobs.get_mut(name) else {
        return say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no such task"}}));
    };
    let result = match method {
        "tasks/get" => {
            job.looks = job.looks.saturating_sub(1);
            say(&json!({"jsonrpc": "2.0", "id": id, "result": state(name, job, is_modern)}));
            return job.tell();
        }
        "tasks/result" => {
            for key in std::mem::take(&mut job.asks) {
                let params = json!({"message": key});
                say(&json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}));
                let mut line = String::new();
                io::stdin().read_line(&mut line).unwrap();
                job.heard[key] = serde_json::from_str::<Value>(&line).unwrap()["result"].clone();
            }
            result(job)
        }
        "tasks/update" => {
            for (key, answer) in params["inputResponses"].as_object().unwrap() {
                if job.asks.contains(key) {
                    job.asks.retain(|open| open != key);
                    job.heard[key] = answer.clone();
                }
            }
            json!({"resultType": "complete"})
        }
        _ => {
            eprintln!("heard tasks/cancel {name}");
            job.is_cancelled = true;
            if is_modern { json!({"resultType": "complete"}) } else { state(name, job, false) }
        }
    };
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}
