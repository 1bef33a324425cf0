//! A daemon with servers behind it, and what its clients ask.
#![expect(clippy::needless_pass_by_value, reason = "what is asked is written in place by json!")]

use serde_json::{Value, json};

use super::client::{BOTH, MODERN, meta};
use crate::daemon::{Daemon, Reply, Site, wait_for, wait_until};
use crate::mcp_fixture::server;

/// A daemon whose callers need no token, with servers as YAML.
pub struct Served {
    pub site: Site,
    pub daemon: Daemon,
}

impl Served {
    /// One server `a` that does what `words` say.
    pub fn one(words: &str) -> Self {
        Self::new(&format!("    a: {}}}\n", server(words)), "  anonymous_calls: true\n")
    }

    /// Servers, and further keys of the section.
    pub fn new(servers: &str, more: &str) -> Self {
        let served = Self::start(Site::new(), servers, more);
        for name in servers.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(':')) {
            served.await_server(name.0);
        }
        served
    }

    pub fn start(site: Site, servers: &str, more: &str) -> Self {
        configure(&site, servers, more);
        let daemon = site.start();
        Self { site, daemon }
    }

    /// The same place with a daemon that was ended and started again, with these servers.
    pub fn restart(self, servers: &str, more: &str) -> Self {
        self.restart_after(servers, more, || ())
    }

    /// The same after something was done in between.
    pub fn restart_after(mut self, servers: &str, more: &str, between: impl FnOnce()) -> Self {
        self.daemon.signal("TERM");
        assert!(self.daemon.wait().success());
        between();
        Self::start(self.site, servers, more)
    }

    /// Waits until a server runs and its tools can be called.
    #[track_caller]
    pub fn await_server(&self, name: &str) {
        let sample = format!("almanac_mcp_upstream_up{{server=\"{name}\"}}");
        wait_until("the server", || self.daemon.metric(&sample) == Some(1.0));
        let path = format!("/mcp/server/{name}");
        wait_until("its tools", || {
            let listed = self.ask(&path, "tools/list", json!({}));
            listed["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty())
        });
    }

    /// What a modern request is answered, however it is.
    pub fn ask(&self, path: &str, method: &str, params: Value) -> Value {
        outcome(&ask(&self.daemon, path, method, params))
    }

    /// The result of a tool at the default view.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_with(tool, arguments, json!({}))
    }

    /// What is found for a query, once the index that is made beside what is served has anything for it.
    #[track_caller]
    pub fn find(&self, query: &str) -> Value {
        wait_for("a tool to be found", || {
            let found = self.call("find_tools", json!({"query": query}))["structuredContent"].take();
            found["tools"].as_array().is_some_and(|tools| !tools.is_empty()).then_some(found)
        })
    }

    /// The same with this in `_meta`.
    #[track_caller]
    pub fn call_with(&self, tool: &str, arguments: Value, meta: Value) -> Value {
        let answer = self.ask("/mcp", "tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Calls of a tool that were recorded.
    pub fn recorded(&self, tool: &str) -> usize {
        let listed = self.daemon.json(&format!("/v1/executions?tool={tool}"));
        listed["items"].as_array().unwrap().len()
    }

    /// What a server wrote.
    pub fn logs(&self, name: &str) -> String {
        self.daemon.admin("GET", &format!("/-/mcp/{name}/logs"), b"").text()
    }
}

/// Writes the configuration.
pub fn configure(site: &Site, servers: &str, more: &str) {
    let none = site.path("mcp.d");
    site.configure(&format!("mcp:\n  directory: {}\n{more}  servers:\n{servers}", none.display()));
}

/// What a modern request about a resource is answered.
pub fn ask_about(daemon: &Daemon, path: &str, method: &str, uri: &str) -> Value {
    outcome(&ask(daemon, path, method, json!({"uri": uri})))
}

/// A modern request with the headers that it needs.
pub fn ask(daemon: &Daemon, path: &str, method: &str, params: Value) -> Reply {
    ask_with(daemon, path, method, params, &[])
}

/// The same with further headers.
pub fn ask_with(daemon: &Daemon, path: &str, method: &str, mut params: Value, more: &[(String, String)]) -> Reply {
    let mut all = meta();
    if let Some(more) = params["_meta"].as_object() {
        all.as_object_mut().unwrap().extend(more.clone());
    }
    params["_meta"] = all;
    let subject = if method.starts_with("tasks/") { "taskId" } else { "name" };
    let name = params[subject].as_str().or(params["uri"].as_str()).map(str::to_owned);
    let mut headers =
        vec![("content-type", "application/json"), BOTH, ("mcp-protocol-version", MODERN), ("mcp-method", method)];
    headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
    headers.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    whole_reply(daemon, path, &headers, &body.to_string())
}

/// What is answered, to the end of the stream if it is one.
pub fn whole_reply(daemon: &Daemon, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut connection = daemon.connect();
    connection.request("POST", path, headers, body.as_bytes());
    let mut reply = connection.reply_to("POST");
    if reply.header("content-type") == Some("text/event-stream") {
        while let Some(chunk) = connection.try_chunk() {
            reply.body.extend(chunk);
        }
    }
    reply
}

/// The messages of an answer: one as JSON, or all of a stream.
pub fn messages(reply: &Reply) -> Vec<Value> {
    if reply.header("content-type") != Some("text/event-stream") {
        return vec![reply.json()];
    }
    let text = reply.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The last message of an answer, which ends it.
pub fn outcome(reply: &Reply) -> Value {
    messages(reply).pop().unwrap_or_default()
}

/// The text of a result.
#[track_caller]
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// Names of a list of tools.
pub fn names(listed: &Value) -> Vec<String> {
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
