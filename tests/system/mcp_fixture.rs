//! An MCP server that misbehaves on demand: this test binary, started again by the daemon.
//!
//! What it is to do stands in its environment. The harness prints lines before the server speaks, which every such
//! test thereby proves to be borne.
#![expect(clippy::disallowed_methods, reason = "a server that ends in the middle is what is tested")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a server speaks on its standard streams")]

mod jobs;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, io, thread};

use serde_json::{Value, json};

/// The variable that makes the test below a server.
const WORDS: &str = "FIXTURE";

/// A server of the configuration, which does what `words` say, as YAML; further keys of it may follow.
pub fn server(words: &str) -> String {
    let program = env::current_exe().unwrap();
    let arguments = ["mcp_fixture::serve", "--exact", "--nocapture", "--test-threads=2"];
    format!("{{command: [{}, {}], env: {{{WORDS}: '{words}'}}", program.display(), arguments.join(", "))
}

#[test]
fn serve() {
    let Ok(words) = env::var(WORDS) else { return };
    let words: BTreeMap<&str, &str> = words.split(' ').map(|word| word.split_once('=').unwrap_or((word, ""))).collect();
    Fixture { words }.run();
    std::process::exit(0);
}

/// Was it called? One that hangs says nothing from then on.
static CALLED: AtomicBool = AtomicBool::new(false);

/// Did whoever greeted it say that it can be asked?
static ASKABLE: AtomicBool = AtomicBool::new(false);

/// Lists that have grown by an item.
static GROWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A list with one more item, if it has grown.
fn grown(what: &str, mut list: Value, more: Value) -> Value {
    if GROWN.lock().unwrap().iter().any(|grown| grown == what) {
        list.as_array_mut().unwrap().push(more);
    }
    list
}

struct Fixture<'a> {
    words: BTreeMap<&'a str, &'a str>,
}

fn say(message: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

impl Fixture<'_> {
    fn number(&self, word: &str) -> Option<u64> {
        Some(self.words.get(word)?.parse().unwrap())
    }

    #[expect(clippy::disallowed_methods, reason = "a slow server is what is tested")]
    fn run(&self) {
        // The harness may not have ended its line.
        println!();
        if self.words.contains_key("fail") {
            eprintln!("token is {}", env::var("SECRET").unwrap_or_default());
            std::process::exit(3);
        }
        if let Some(millis) = self.number("start") {
            thread::sleep(Duration::from_millis(millis));
        }
        eprintln!("fixture started, token {}", env::var("SECRET").unwrap_or_default());
        let mut line = String::new();
        // Not locked meanwhile: a call may read the answer to its own question.
        while io::stdin().read_line(&mut line).unwrap() > 0 {
            if let Ok(message) = serde_json::from_str::<Value>(&line) {
                self.take(&message);
            }
            line.clear();
        }
    }

    fn take(&self, message: &Value) {
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        let params = &message["params"];
        let meta = &params["_meta"];
        let is_modern = self.words.contains_key("modern");
        let can = if is_modern { &meta["io.modelcontextprotocol/clientCapabilities"] } else { &params["capabilities"] };
        if method == "initialize" || is_modern {
            ASKABLE.store(can["elicitation"].is_object(), Ordering::Relaxed);
        }
        let hangs = self.words.contains_key("hangs");
        let result = match method {
            "server/discover" if hangs && CALLED.load(Ordering::Relaxed) => return,
            "server/discover" if is_modern => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}}, "instructions": "modern fixture",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fixture", "version": "2"}},
            }),
            "server/discover" if self.words.contains_key("exits") => std::process::exit(9),
            "server/discover" if self.words.contains_key("silent") => return,
            "ping" if hangs => return,
            "tools/call" if self.words.contains_key("talks") => return talk(),
            "tools/call" if hangs || self.words.contains_key("dull") => return CALLED.store(true, Ordering::Relaxed),
            "initialize" if !is_modern => json!({
                "protocolVersion": params["protocolVersion"], "serverInfo": {"name": "fixture", "version": "1"},
                "capabilities": {
                    "tools": {"listChanged": true}, "prompts": {}, "resources": {},
                    "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}},
                },
                "instructions": "legacy\u{200b} fixture",
            }),
            "ping" => json!({}),
            "tools/list" if is_modern && meta["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" => {
                return say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no version"}}));
            }
            "tools/list" if self.words.contains_key("stuck") && !GROWN.lock().unwrap().is_empty() => {
                eprintln!("is stuck");
                return;
            }
            "tools/list" => self.page(params["cursor"].as_str()),
            "prompts/list" => {
                json!({"prompts": grown("prompts", json!([{"name": "greet"}]), json!({"name": "part"}))})
            }
            "resources/list" => {
                let first = json!([{"uri": "test://a", "name": "a"}]);
                json!({"resources": grown("resources", first, json!({"uri": "test://new", "name": "new"}))})
            }
            "prompts/get" | "resources/read" if params["name"] == "ask" || params["uri"] == "test://ask" => {
                let answer = asked("elicitation/create");
                let text = answer["result"].to_string();
                json!({
                    "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
                    "contents": [{"uri": "test://ask", "text": text}],
                })
            }
            "resources/templates/list" => json!({"resourceTemplates": [{"uriTemplate": "test://{x}", "name": "x"}]}),
            "prompts/get" => {
                let text = format!("hello {}", params["arguments"]["who"].as_str().unwrap_or_default());
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
            }
            "resources/read" if params["uri"] == "test://none" => {
                let error = json!({"code": -32002, "message": "not there"});
                return say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            "resources/read" => {
                let text = format!("content of {}", params["uri"].as_str().unwrap_or_default());
                json!({"contents": [{"uri": params["uri"], "text": text}]})
            }
            "tools/call" if is_modern && params["name"] == "ask" => ask_by_result(params),
            "tools/call" if params["name"] == "job" => return jobs::begin(id, params, is_modern),
            "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel" => {
                return jobs::answer(id, method, params, is_modern);
            }
            "tools/call" => return call(id, params),
            "subscriptions/listen" | "notifications/initialized" | "notifications/cancelled" => {
                eprintln!("heard {method} {}", params["requestId"]);
                return;
            }
            _ if id.is_null() || message.get("result").is_some() => return,
            _ => return say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})),
        };
        say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// A page of at most 700 tools.
    fn page(&self, cursor: Option<&str>) -> Value {
        let description = self.words.get("says").copied().unwrap_or("plain");
        let tool = |name: String| {
            json!({
                "name": name, "description": description, "inputSchema": {"type": "object"}, "x-unknown": {"n": 1},
            })
        };
        let mut tools: Vec<Value> =
            ["echo", "sleep", "die", "noise", "ask", "progress"].map(|name| tool(name.to_owned())).into();
        tools.push(tool("echo".to_owned()));
        if self.words.contains_key("tasks") {
            tools.push(jobs::tool(self.words.contains_key("modern")));
        }
        if self.words.contains_key("grows") {
            tools.push(tool("grow".to_owned()));
        }
        if self.words.contains_key("logs") {
            tools.push(tool("log".to_owned()));
        }
        if self.words.contains_key("picky") && ASKABLE.load(Ordering::Relaxed) {
            tools.push(tool("confide".to_owned()));
        }
        if self.words.contains_key("more") {
            let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
            tools.extend([
                json!({"name": "write", "description": "Writes a file to the disk.", "inputSchema": path}),
                json!({
                    "name": "read", "description": "Reads a file from the disk.", "inputSchema": path,
                    "annotations": {"readOnlyHint": true},
                }),
                json!({"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}}),
                json!({"name": "refuse", "description": "Refuses.", "inputSchema": {"type": "object"}}),
                json!({"name": "flood", "description": "Never ends.", "inputSchema": {"type": "object"}}),
                json!({"name": "long", "description": "Says much.", "inputSchema": {"type": "object"}}),
            ]);
        }
        if self.words.contains_key("misshapen") {
            let odd = json!({"title": 7, "description": null, "inputSchema": {"type": "array"}, "annotations": null});
            tools.push(json!({"name": "bare"}));
            tools.push(tool("shapeless".to_owned()));
            tools.push(odd);
            tools.last_mut().unwrap()["name"] = "odd".into();
        }
        if self.words.contains_key("headers") {
            let annotated = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
            let route = json!({"region": annotated("string", "Region"), "n": annotated("integer", "N")});
            let broken = json!({"region": annotated("string", "Not A Token")});
            for (name, properties) in [("route", route), ("broken", broken)] {
                tools.push(json!({"name": name, "inputSchema": {"type": "object", "properties": properties}}));
            }
        }
        tools.extend((0..self.number("tools").unwrap_or(0)).map(|number| tool(format!("t{number}"))));
        let start: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let end = tools.len().min(start + 700);
        let mut page = json!({"tools": tools[start..end]});
        if end < tools.len() {
            page["nextCursor"] = json!(end.to_string());
        }
        page
    }
}

/// Asks the client, and waits for what it answers.
fn asked(method: &str) -> Value {
    say(&json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": {"message": "name?"}}));
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Hangs from now on, but goes on telling of a resource.
#[expect(clippy::disallowed_methods, reason = "a server that talks all the time is what is tested")]
fn talk() {
    if CALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    thread::spawn(|| {
        loop {
            let params = json!({"uri": "test://a"});
            say(&json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}));
            thread::sleep(Duration::from_millis(100));
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "a server that asks late is what is tested")]
fn wait(arguments: &Value) {
    thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default()));
}

/// A modern server asks by its result, and is asked again with the answer.
fn ask_by_result(params: &Value) -> Value {
    if params["inputResponses"]["who"].is_object() {
        let heard = json!({"responses": params["inputResponses"], "state": params["requestState"]});
        return json!({"resultType": "complete", "content": [], "heard": heard});
    }
    wait(&params["arguments"]);
    let method = params["arguments"]["method"].as_str().unwrap_or("elicitation/create");
    let asked = json!({"method": method, "params": {"message": "name?"}});
    json!({"resultType": "input_required", "inputRequests": {"who": asked}, "requestState": "s1"})
}

#[expect(clippy::disallowed_methods, reason = "a slow server is what is tested")]
fn call(id: &Value, params: &Value) {
    let (id, arguments) = (id.clone(), params["arguments"].clone());
    let answer = |result: Value| say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    match params["name"].as_str().unwrap() {
        "echo" => answer(json!({
            "content": [{"type": "text", "text": arguments["text"]}], "isError": false, "sent": params["_meta"],
            "pid": std::process::id(), "home": env::var("HOME").unwrap_or_default(), "vars": env::vars().count(),
        })),
        "sleep" => {
            let millis = arguments["ms"].as_u64().unwrap();
            eprintln!("slept {millis} ms");
            let line = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}).to_string();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(millis));
                let _ = writeln!(io::stdout().lock(), "{line}");
            });
        }
        "route" => answer(json!({"content": [{"type": "text", "text": arguments.to_string()}]})),
        "progress" => {
            let params = json!({"progressToken": params["_meta"]["progressToken"], "progress": 0.5, "total": 1});
            say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
            answer(json!({"content": []}));
        }
        "log" => {
            for level in ["info", "error"] {
                let params = json!({"level": level, "data": level});
                say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
            }
            answer(json!({"content": []}));
        }
        "die" => std::process::exit(4),
        "nan" => println!(r#"{{"jsonrpc": "2.0", "id": {id}, "result": {{"content": [], "x": NaN}}}}"#),
        "deep" => println!(r#"{{"result": {}1{}, "jsonrpc": "2.0", "id": {id}}}"#, "[".repeat(200), "]".repeat(200)),
        "shapeless" => answer(arguments),
        "write" | "read" => answer(json!({
            "content": [{"type": "text", "text": "done"}], "structuredContent": [1],
            "big": serde_json::from_str::<Value>("12345678901234567890").unwrap(),
        })),
        "flood" => {
            let token = params["_meta"]["progressToken"].clone();
            thread::spawn(move || {
                for progress in 0..60_000 {
                    let params = json!({"progressToken": token, "progress": progress, "message": "x".repeat(4000)});
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        "fail" => answer(json!({"content": [{"type": "text", "text": "it failed"}], "isError": true})),
        "refuse" => {
            let error = json!({"code": -32002, "message": "not there", "data": {"uri": "a://x"}});
            say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        "long" => {
            let text = "0123456789".repeat(arguments["tens"].as_u64().unwrap() as usize);
            answer(json!({"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}}));
        }
        "noise" => {
            for _ in 0..arguments["lines"].as_u64().unwrap() {
                println!("this is no message");
            }
            answer(json!({"content": []}));
        }
        "ask" => {
            wait(&arguments);
            let heard = asked(arguments["method"].as_str().unwrap_or("elicitation/create"));
            answer(json!({"content": [], "heard": heard}));
        }
        "grow" => {
            let what = arguments["what"].as_str().unwrap();
            GROWN.lock().unwrap().push(what.to_owned());
            say(&json!({"jsonrpc": "2.0", "method": format!("notifications/{what}/list_changed")}));
            answer(json!({"content": []}));
        }
        other => say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": other}})),
    }
}
