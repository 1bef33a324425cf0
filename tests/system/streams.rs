//! Chat streams: what an agent sends its user is listened to, and its tool calls are recorded.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::daemon::{Connection, Daemon, Reply, Site, wait_for, wait_until};

/// A stream that is sent piece by piece.
struct Sending(Connection<TcpStream>);

impl Sending {
    fn begin(daemon: &Daemon, query: &str) -> Self {
        let mut connection = daemon.connect();
        connection.socket().set_nodelay(true).unwrap();
        connection.raw(
            format!("POST /v1/streams?{query} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
                .as_bytes(),
        );
        Self(connection)
    }

    fn piece(&mut self, text: &str) -> &mut Self {
        self.0.raw(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes());
        self
    }

    fn end(mut self) -> Reply {
        self.0.raw(b"0\r\n\r\n");
        self.0.reply()
    }
}

/// Sends the pieces until each arrived by itself, as it does unless the machine is busy; the calls that ended.
fn timed(daemon: &Daemon, query: &str, pieces: &[&str]) -> (Reply, Vec<Value>) {
    wait_for("each piece of a stream arrives by itself", || {
        let mut sending = Sending::begin(daemon, query);
        for piece in pieces {
            sending.piece(piece);
            // A request on another connection lets the daemon read what came before.
            daemon.get("/live");
        }
        let reply = sending.end();
        let calls = reply.json()["calls"].as_array().cloned().unwrap_or_default();
        calls.iter().all(|call| call["duration_ms"].is_u64()).then_some((reply, calls))
    })
}

fn call(id: &str, tool: &str) -> String {
    format!("9:{}\n", json!({"toolCallId": id, "toolName": tool, "args": {}}))
}

fn result(id: &str) -> String {
    format!("a:{}\n", json!({"toolCallId": id, "result": {"ok": true}}))
}

#[test]
fn gaps_between_calls_and_results_are_recorded() {
    let site = Site::new();
    let daemon = site.start();
    let pieces = [
        &format!("f:{{\"messageId\":\"m\"}}\n0:\"hm\"\n{}", call("1", "alpha")),
        &call("2", "beta")[..],
        &result("2"),
        &result("1"),
        "d:{\"finishReason\":\"stop\"}\n",
    ];
    let (reply, calls) = timed(&daemon, "protocol=data-v1&session_id=s", &pieces);
    assert_eq!(reply.status, 201, "{}", reply.text());
    let told: Vec<_> = calls.iter().map(|call| (&call["tool_name"], &call["outcome"])).collect();
    assert_eq!(told, [(&json!("beta"), &json!("success")), (&json!("alpha"), &json!("success"))]);
    assert_eq!(reply.json()["recorded"], 2);
    let history = daemon.json("/v1/sessions/s")["toolHistory"].clone();
    let history: Vec<_> = history.as_array().unwrap().iter().rev().take(2).collect();
    assert_eq!(history, ["alpha", "beta"]);
    assert!(daemon.json("/v1/timing/alpha")["items"][0]["samples"].as_u64() >= Some(1));
}

#[test]
fn events_of_the_newer_protocol_are_heard_as_well() {
    let site = Site::new();
    let daemon = site.start();
    let event = |value: Value| format!("data: {value}\n\n");
    let intent = json!({"networks": [], "categories": ["a"], "turnsSinceUpdate": 0, "lastConfidence": 0.9});
    let pieces = [
        event(json!({"type": "tool-input-available", "toolCallId": "1", "toolName": "gamma", "input": {}}))
            + &event(json!({"type": "data-intent-context", "data": {"intentContext": intent}}))
            + &event(json!({"type": "data-token-usage", "data": {"type": "token_usage", "tokensIn": 3}})),
        event(json!({"type": "tool-output-error", "toolCallId": "1", "errorText": "no"})),
        "data: [DONE]\n\n".to_owned(),
    ];
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let (reply, calls) = timed(&daemon, "protocol=ui-v1&session_id=s", &pieces);
    assert_eq!(calls[0]["outcome"], "error");
    let told = reply.json();
    assert_eq!((&told["intent_context"], &told["usage"][0]["tokensIn"]), (&intent, &json!(3)));
    let session = daemon.json("/v1/sessions/s");
    assert_eq!(session["intentContext"], intent);
    // The stream may have been sent more than once until its pieces arrived apart.
    let turns = session["usage"]["turns"].as_u64().unwrap();
    assert!(turns >= 1 && session["usage"]["tokensIn"] == 3 * turns, "{session}");
    // The next message finds it there, and says that this catalog has no such category.
    let next = daemon.post("/v1/qualify", r#"{"message": "and that one?", "sessionId": "s"}"#).json();
    assert!(next["reasoning"].as_str().unwrap().contains("a is not in this catalog"), "{next}");
    assert_eq!(daemon.json("/v1/sessions/s")["usage"]["turns"], turns);
}

/// The stream of AI SDK 4 tells a failure without its call, and its own usage at the end.
#[test]
fn a_failed_tool_is_learnt_as_one() {
    let site = Site::new();
    let daemon = site.start();
    let end = r#"{"finishReason":"error","usage":{"promptTokens":30,"completionTokens":4}}"#;
    let pieces = [
        &call("1", "alpha")[..],
        "3:\"An error occurred.\"\n",
        &call("2", "beta"),
        &result("2"),
        &format!("e:{end}\nd:{end}\n"),
    ];
    let (reply, calls) = timed(&daemon, "protocol=data-v1&session_id=s", &pieces);
    let told: Vec<_> = calls.iter().map(|call| (&call["tool_name"], &call["outcome"])).collect();
    assert_eq!(told, [(&json!("beta"), &json!("success")), (&json!("alpha"), &json!("error"))]);
    let learnt = daemon.json("/v1/timing/alpha");
    let modes: Vec<_> = learnt["items"].as_array().unwrap().iter().map(|key| &key["mode"]).collect();
    assert_eq!(modes, ["#error"], "{learnt}");
    assert_eq!(reply.json()["usage"], json!([{"type": "token_usage", "tokensIn": 30, "tokensOut": 4}]));
    let used = daemon.json("/v1/sessions/s")["usage"].clone();
    assert_eq!(
        (&used["tokensIn"], used.get("costUsd")),
        (&json!(30 * used["turns"].as_u64().unwrap()), None),
        "{used}"
    );
}

#[test]
fn the_usage_of_the_newer_protocol_is_read() {
    let site = Site::new();
    let daemon = site.start();
    let event = |value: Value| format!("data: {value}\n\n");
    let usage = json!({"inputTokens": 30, "outputTokens": 4, "cachedInputTokens": 10});
    let tell = |session: &str, stream: &str| {
        let path = format!("/v1/streams?protocol=ui-v1&session_id={session}");
        assert_eq!(daemon.send("POST", &path, &[], stream.as_bytes()).status, 200);
        daemon.json(&format!("/v1/sessions/{session}"))["usage"].clone()
    };
    let expected = json!({"turns": 1, "tokensIn": 30, "tokensOut": 4, "cachedTokens": 10});
    let finish = event(json!({"type": "finish", "messageMetadata": {"totalUsage": usage}}));
    assert_eq!(tell("a", &finish), expected);
    let apart = event(json!({"type": "message-metadata", "messageMetadata": {"usage": usage, "costUsd": 0.5}}));
    let mut priced = expected.clone();
    priced["costUsd"] = json!(0.5);
    assert_eq!(tell("b", &apart), priced);
    // The application's own account is the account.
    let own = event(json!({"type": "data-token-usage", "data": {"type": "token_usage", "tokensIn": 3}}));
    assert_eq!(tell("c", &(own + &finish))["tokensIn"], 3);
}

#[test]
fn a_result_that_comes_with_its_call_has_no_duration() {
    let site = Site::new();
    let daemon = site.start();
    let stream = format!("{}{}{}", call("1", "alpha"), result("1"), call("2", "beta"));
    let header = ("x-vercel-ai-data-stream", "v1");
    let reply = daemon.send("POST", "/v1/streams", &[header], stream.as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let told = reply.json();
    assert_eq!(told["recorded"], 0);
    assert_eq!(told["calls"], json!([{"tool_call_id": "1", "tool_name": "alpha", "outcome": "success"}]));
    assert_eq!(told["unfinished"], json!([{"tool_call_id": "2", "tool_name": "beta"}]));
    assert_eq!(daemon.get("/v1/timing/alpha").status, 404);
}

#[test]
fn a_call_of_unknown_duration_is_in_its_session_s_history() {
    let site = Site::new();
    let mut daemon = site.start();
    let stream = ["alpha", "beta"].map(|tool| call(tool, tool) + &result(tool)).concat();
    let reply = daemon.send("POST", "/v1/streams?protocol=data-v1&session_id=s", &[], stream.as_bytes());
    assert_eq!((reply.status, &reply.json()["recorded"]), (200, &json!(0)), "{}", reply.text());
    for restarted in [false, true] {
        assert_eq!(daemon.json("/v1/sessions/s")["toolHistory"], json!(["alpha", "beta"]), "restarted: {restarted}");
        assert_eq!(daemon.get("/v1/timing/alpha").status, 404);
        daemon.signal("KILL");
        daemon.wait();
        daemon = site.start();
    }
    // A call that is measured later counts as the first.
    daemon.post("/v1/executions", r#"{"tool_name": "alpha", "duration_ms": 5}"#);
    assert_eq!(daemon.json("/v1/timing/alpha")["items"][0]["samples"], 1);
}

#[test]
fn chunks_that_come_together_are_no_gap() {
    let site = Site::new();
    let daemon = site.start();
    let mut connection = daemon.connect();
    let mut sent =
        "POST /v1/streams?protocol=data-v1 HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_owned();
    for piece in [call("1", "alpha"), result("1")] {
        sent += &format!("{:x}\r\n{piece}\r\n", piece.len());
    }
    connection.raw((sent + "0\r\n\r\n").as_bytes());
    let told = connection.reply().json();
    assert_eq!((&told["recorded"], &told["calls"][0].get("duration_ms")), (&json!(0), &None));
}

#[test]
fn what_is_told_again_is_bounded() {
    let site = Site::new();
    let daemon = site.start();
    let usage = |filler: usize| json!({"type": "token_usage", "reasoning": "x".repeat(filler)});
    let intent =
        |filler: usize| json!({"type": "intent_context", "intentContext": {"activeIntent": "x".repeat(filler)}});
    let values = json!([usage(10), usage(20_000), intent(10), intent(20_000)]);
    let stream = format!("2:{values}\n{}:0\n", "z".repeat(9000));
    let told = daemon.send("POST", "/v1/streams?protocol=data-v1", &[], stream.as_bytes()).json();
    assert_eq!((&told["usage"], &told["intent_context"]), (&json!([usage(10)]), &intent(10)["intentContext"]));
    assert_eq!(told["faults"][0]["message"].as_str().map(str::len), Some(200));
}

#[test]
fn the_end_does_not_wait_for_streams() {
    let site = Site::new();
    site.configure("drain_timeout: 1h");
    let mut daemon = site.start();
    let mut sending = Sending::begin(&daemon, "protocol=data-v1");
    sending.piece(&call("1", "alpha"));
    wait_until("the stream to be begun", || daemon.metric("almanac_http_connections").is_some_and(|open| open >= 2.0));
    daemon.get("/live");
    daemon.signal("TERM");
    let reply = sending.0.reply();
    assert_eq!((reply.status, reply.code().as_str()), (503, "stopping"));
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn a_stream_that_breaks_off_loses_nothing_it_told() {
    let site = Site::new();
    let daemon = site.start();
    wait_until("what a broken stream told is recorded", || {
        let mut sending = Sending::begin(&daemon, "protocol=data-v1&session_id=s");
        sending.piece(&(call("1", "alpha") + &call("2", "beta")));
        daemon.get("/live");
        sending.piece(&result("1"));
        daemon.get("/live");
        drop(sending);
        daemon.get("/v1/timing/alpha").status == 200
    });
}

#[test]
fn bad_lines_are_told_and_bad_requests_refused() {
    let site = Site::new();
    let daemon = site.start();
    let post = |path: &str, body: &[u8]| daemon.send("POST", path, &[("content-type", "text/plain")], body);
    let reply = post("/v1/streams?protocol=data-v1", b"nonsense\n0:\"hi\"\n1:2\n");
    let faults = json!([
        {"line": 1, "message": "Failed to parse stream string. No separator found."},
        {"line": 3, "message": "Failed to parse stream string. Invalid code 1."},
    ]);
    assert_eq!((reply.status, &reply.json()["faults"]), (200, &faults));
    let check = |path: &str, body: &[u8], status: u16, code: &str| {
        let reply = post(path, body);
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{path}");
    };
    check("/v1/streams?protocol=data-v1", b"{\"a\": 1}", 400, "malformed-stream");
    check("/v1/streams?protocol=v9", b"0:\"a\"\n", 422, "unknown-protocol");
    check("/v1/streams", b"0:\"a\"\n", 422, "missing-protocol");
    check("/v1/streams?protocol=ui-v1&session_id=%00", b"", 422, "invalid-parameter");
    check("/v1/streams?protocol=ui-v1", b"0:\"a\"\n", 400, "malformed-stream");
    let fine = |protocol: &str, body: &[u8]| {
        let reply = post(&format!("/v1/streams?protocol={protocol}"), body);
        assert_eq!((reply.status, &reply.json()["faults"]), (200, &json!([])), "{protocol}");
    };
    fine("data-v1", b"");
    fine("data-v1", b"0:\"a\"\r\n\r\n0:\"b\"\r\n");
    fine("ui-v1", b": nothing yet\r\n\r\nevent: x\nid: 1\nretry: 2\n\n");
    for (path, body) in [("/v1/streams?protocol=ui-v1", ""), ("/v1/usage", "{}")] {
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
        let reply = daemon.send("POST", path, &headers, body.as_bytes());
        assert_eq!((reply.status, reply.code().as_str()), (415, "encoded-body"), "{path}");
    }
}

#[test]
fn a_stream_is_bounded() {
    let site = Site::new();
    site.configure("http: {max_stream_bytes: 4096, stream_idle_timeout: 200ms, request_timeout: 100ms}");
    let daemon = site.start();
    let long = "0:\"x\"\n".repeat(1000);
    let reply = daemon.send("POST", "/v1/streams?protocol=data-v1", &[], long.as_bytes());
    assert_eq!((reply.status, reply.code().as_str()), (413, "body-too-large"));
    let mut sending = Sending::begin(&daemon, "protocol=data-v1");
    sending.piece("0:\"x\"\n");
    sending.0.socket().flush().unwrap();
    let reply = sending.0.reply();
    assert_eq!((reply.status, reply.code().as_str()), (408, "slow-body"));
}
