//! `GET /v1/events`: what happens is told as it happens, to whom it concerns.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::access::tokens_of_two_tenants;
use crate::daemon::{Daemon, PATIENCE, Site, wait_until};

/// A stream of events that is listened to.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(daemon: &Daemon, query: &str, token: Option<&str>) -> Self {
        let mut socket = TcpStream::connect(daemon.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        write!(socket, "GET /v1/events{query} HTTP/1.1\r\nhost: localhost\r\n{token}\r\n").unwrap();
        let mut stream = Self(BufReader::new(socket));
        while stream.line() != ": listening" {}
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
        line.trim_end().to_owned()
    }

    /// The next event.
    fn next(&mut self) -> Value {
        loop {
            let line = self.line();
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The next event of a type.
    fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next();
            if event["type"] == kind {
                return event;
            }
        }
    }
}

fn record(daemon: &Daemon, tool: &str) {
    let body = format!(r#"{{"tool_name":"{tool}","duration_ms":5,"session_id":"s"}}"#);
    assert_eq!(daemon.post("/v1/executions", &body).status, 201);
}

#[test]
fn events_come_as_they_happen_and_those_of_late_first() {
    let site = Site::new();
    let daemon = site.start();
    record(&daemon, "before");
    let mut stream = Stream::open(&daemon, "?types=execution_recorded,catalog_reloaded&last=1", None);
    assert_eq!(stream.next()["tool"], "before");
    record(&daemon, "after");
    let event = stream.next();
    assert_eq!(
        (&event["tool"], &event["outcome"], &event["session_id"]),
        (&"after".into(), &"success".into(), &"s".into())
    );
    site.save("broken.yaml", "name: [\n");
    assert_eq!(stream.next_of("catalog_reloaded")["errors"], 1);
    assert_eq!(daemon.json("/v1/overview")["listeners"], 1);
    drop(stream);
    wait_until("the listener is forgotten", || {
        record(&daemon, "again");
        daemon.json("/v1/overview")["listeners"] == 0
    });
}

#[test]
fn what_is_no_type_is_refused() {
    let site = Site::new();
    let daemon = site.start();
    for query in ["?types=nothing", "?last=-1", "?last=100000"] {
        assert_eq!(daemon.get(&format!("/v1/events{query}")).status, 422, "{query}");
    }
}

#[test]
fn a_daemon_that_stops_ends_its_streams() {
    let site = Site::new();
    let mut daemon = site.start();
    let mut stream = Stream::open(&daemon, "", None);
    let started = Instant::now();
    daemon.signal("TERM");
    let mut line = String::new();
    while stream.0.read_line(&mut line).unwrap_or(0) > 0 {}
    daemon.wait();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn what_a_tenant_does_is_told_to_nobody_else() {
    let site = Site::new();
    let [mine, other] = tokens_of_two_tenants(&site, "read,record,memory");
    let daemon = site.start();
    let mut streams = [&mine, &other].map(|token| Stream::open(&daemon, "", Some(token)));
    let act = |token: &str, name: &str| {
        let document = format!(r#"{{"content":"{name}","metadata":{{"source":"user","agentId":"agent:agent:a"}}}}"#);
        let call = format!(r#"{{"tool_name":"{name}","duration_ms":5}}"#);
        let metadata = format!(r#"{{"tool_name":"{name}"}}"#);
        for (path, body) in [("/v1/memories/documents", document), ("/v1/metadata", metadata), ("/v1/executions", call)]
        {
            let authorization = format!("Bearer {token}");
            let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
            let reply = daemon.send("POST", path, &headers, body.as_bytes());
            assert!(reply.status < 300, "{path}: {}", reply.text());
        }
    };
    // An administrator's work is told to those whose memories they are.
    let document = br#"{"content":"c","metadata":{"source":"user","agentId":"agent:agent:a"}}"#;
    assert_eq!(daemon.admin("POST", "/v1/memories/documents?tenant=acme", document).status, 201);
    act(&mine, "first");
    act(&other, "second");
    // What each did comes in its order, and the call last: whatever of the other's were told, would come before.
    for (stream, (name, by_others)) in streams.iter_mut().zip([("first", 0), ("second", 1)]) {
        let mut told = Vec::new();
        loop {
            let event = stream.next();
            let kind = event["type"].as_str().unwrap().to_owned();
            if ["memory_operated", "tools_suggested", "execution_recorded"].contains(&&*kind) {
                told.push(kind);
            }
            if event["tool"].is_string() {
                assert_eq!(event["tool"], name);
                break;
            }
        }
        let own = ["memory_operated", "tools_suggested", "execution_recorded"];
        let expected: Vec<&str> = std::iter::repeat_n(own[0], by_others).chain(own).collect();
        assert_eq!(told, expected, "to {name}");
    }
}
