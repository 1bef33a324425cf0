//! Clients of both eras that can misbehave, and their streams.
#![expect(clippy::needless_pass_by_value, reason = "what is asked is written in place by json!")]

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::daemon::{Connection, Daemon, Reply};

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";

/// What modern clients send.
pub const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("content-type", "application/json");

/// Posts a body with these headers beside those that every client sends.
pub fn post(daemon: &Daemon, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    daemon.send("POST", path, &[&[JSON, BOTH], headers].concat(), body.as_bytes())
}

/// The `_meta` of a modern request.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A modern request with the headers that it needs.
pub fn modern(daemon: &Daemon, method: &str, mut params: Value) -> Reply {
    params["_meta"] = meta();
    let name = params["name"].as_str().map(str::to_owned);
    let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
    headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    post(daemon, "/mcp", &headers, &body.to_string())
}

/// The result of an own tool, and whether it failed.
#[track_caller]
pub fn call(daemon: &Daemon, tool: &str, arguments: Value) -> (Value, bool) {
    let reply = modern(daemon, "tools/call", json!({"name": tool, "arguments": arguments}));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let result = reply.json()["result"].clone();
    let text = result["content"][0]["text"].as_str().unwrap();
    if result["isError"] == true {
        return (text.into(), true);
    }
    let told: Value = serde_json::from_str(text).unwrap();
    assert_eq!(told, result["structuredContent"], "the text says the same");
    (told, false)
}

/// A legacy session.
pub struct Session {
    pub id: String,
    pub headers: Vec<(String, String)>,
}

impl Session {
    /// Introduces itself.
    pub fn begin(daemon: &Daemon, headers: &[(&str, &str)], version: &str) -> Self {
        let (reply, session) = Self::try_begin(daemon, headers, version);
        assert_eq!(reply.status, 200, "{}", reply.text());
        session.unwrap()
    }

    pub fn try_begin(daemon: &Daemon, headers: &[(&str, &str)], version: &str) -> (Reply, Option<Self>) {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let body = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params});
        let reply = post(daemon, "/mcp", headers, &body.to_string());
        let id = reply.header("mcp-session-id").map(str::to_owned);
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        (reply, id.map(|id| Self { id, headers }))
    }

    fn headers<'s>(&'s self, more: &[(&'s str, &'s str)]) -> Vec<(&'s str, &'s str)> {
        let mut all: Vec<(&str, &str)> = vec![("mcp-session-id", &self.id)];
        all.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        all.extend(more);
        all
    }

    pub fn ask(&self, daemon: &Daemon, method: &str, params: Value) -> Reply {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        post(daemon, "/mcp", &self.headers(&[]), &body.to_string())
    }

    pub fn tell(&self, daemon: &Daemon, method: &str) -> Reply {
        post(daemon, "/mcp", &self.headers(&[]), &json!({"jsonrpc": "2.0", "method": method}).to_string())
    }

    pub fn send(&self, daemon: &Daemon, method: &str, more: &[(&str, &str)]) -> Reply {
        daemon.send(method, "/mcp", &self.headers(more), b"")
    }

    /// The stream of what is told beside answers.
    pub fn listen(&self, daemon: &Daemon) -> Stream<TcpStream> {
        let mut connection = daemon.connect();
        connection.request("GET", "/mcp", &self.headers(&[("accept", "text/event-stream")]), b"");
        Stream::of(connection)
    }
}

/// A stream of events as it comes, in chunks.
pub struct Stream<S> {
    pub head: Reply,
    chunks: Connection<S>,
    text: String,
}

impl<S: Read + Write> Stream<S> {
    pub fn of(mut connection: Connection<S>) -> Self {
        let head = connection.try_head().expect("an answer");
        Self { head, chunks: connection, text: String::new() }
    }

    /// The next event's message; nothing at the end. Comments are passed over.
    pub fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.text = rest.to_owned();
                match data.filter(|data| !data.is_empty()) {
                    Some(data) => return Some(serde_json::from_str(&data).unwrap()),
                    None => continue,
                }
            }
            self.text.push_str(std::str::from_utf8(&self.chunks.try_chunk()?).unwrap());
        }
    }
}
