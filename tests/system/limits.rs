//! Connections that take too much, and what closes them.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::daemon::{Daemon, Site, almanacd, document, wait_until};

fn start(http: &str) -> (Site, Daemon) {
    start_with(http, |_| ())
}

fn start_with(http: &str, save: impl FnOnce(&Site)) -> (Site, Daemon) {
    let site = Site::new();
    site.configure(&format!("http: {{{http}}}\n"));
    site.save("a.yaml", &document("a", "t"));
    save(&site);
    let daemon = site.start();
    (site, daemon)
}

fn closed_for(daemon: &Daemon, reason: &str) -> f64 {
    daemon.metric(&format!("almanac_http_connections_closed_total{{reason=\"{reason}\"}}")).unwrap_or(0.0)
}

#[test]
fn an_idle_connection_is_closed() {
    let (_site, daemon) = start("idle_timeout: 100ms");
    let mut silent = daemon.connect();
    silent.closed();
    let mut used = daemon.connect();
    used.request("GET", "/v1/tools/a", &[], b"");
    assert_eq!(used.reply().status, 200);
    used.closed();
    wait_until("both are counted", || closed_for(&daemon, "idle_timeout") >= 2.0);
}

#[test]
fn a_head_that_never_ends_is_closed() {
    let (_site, daemon) = start("header_read_timeout: 100ms, idle_timeout: 1h");
    let mut slow = daemon.connect();
    slow.raw(b"GET /v1/tools/a HTTP/1.1\r\nhost: local");
    let started = Instant::now();
    slow.closed();
    assert!(started.elapsed() >= Duration::from_millis(90));
    // A byte now and then does not buy time.
    let mut dripping = daemon.connect();
    let socket = dripping.socket().try_clone().unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut drops = 0;
    loop {
        dripping.raw(b"G");
        drops += 1;
        assert!(drops < 1000, "a dripping head is never closed");
        match (&socket).read(&mut [0; 64]) {
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            _ => break,
        }
    }
    wait_until("both are counted", || closed_for(&daemon, "header_read_timeout") >= 2.0);
}

#[test]
fn a_body_that_never_comes_is_answered_and_closed() {
    let (_site, daemon) = start("request_timeout: 100ms");
    let mut slow = daemon.connect();
    slow.raw(
        b"POST /v1/tools/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: \
        50\r\n\r\n{",
    );
    let reply = slow.reply();
    assert_eq!((reply.status, reply.code().as_str()), (408, "slow-body"));
    slow.closed();
}

#[test]
fn a_reader_that_stops_reading_is_closed() {
    let (_site, daemon) = start_with("request_timeout: 200ms, idle_timeout: 1h", |site| {
        site.save("big.yaml", &document("big", &format!("'{}'", "x".repeat(200_000))));
    });
    let mut stuck = daemon.connect();
    // More than all buffers between the two sides hold.
    stuck.raw(&b"GET /v1/tools/big HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(200));
    wait_until("it is closed", || closed_for(&daemon, "request_timeout") >= 1.0);
}

fn many_large_documents(site: &Site) {
    for number in 0..20 {
        let title = format!("'{}'", "x".repeat(200_000));
        site.save(&format!("big{number}.yaml"), &document(&format!("big{number}"), &title));
    }
}

#[test]
fn a_reader_that_drips_is_closed() {
    let (_site, daemon) = start_with("request_timeout: 300ms, idle_timeout: 1h", many_large_documents);
    let mut dripping = daemon.connect();
    dripping.raw(&b"GET /v1/tools?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(40));
    let mut socket = dripping.socket().try_clone().unwrap();
    wait_until("it is closed", || {
        let _ = socket.read(&mut [0; 16]);
        closed_for(&daemon, "request_timeout") >= 1.0
    });
}

#[test]
fn a_page_is_bounded_in_bytes() {
    let (_site, daemon) = start_with("", many_large_documents);
    let page = daemon.get("/v1/tools?limit=1000");
    assert!(page.body.len() < 1_500_000, "{}", page.body.len());
    assert!(page.json()["next_cursor"].is_string());
}

#[test]
fn large_heads_and_bodies_are_refused() {
    let (_site, daemon) = start("max_header_bytes: 8192, max_body_bytes: 2048");
    let long = "x".repeat(20_000);
    assert_eq!(daemon.send("GET", "/v1/tools/a", &[("x-long", &long)], b"").status, 431);
    let reply = daemon.post("/v1/tools/check", &format!(r#"{{"tools":["{}"]}}"#, "x".repeat(3000)));
    assert_eq!((reply.status, reply.code().as_str()), (413, "body-too-large"));
    let mut chunked = daemon.connect();
    chunked.raw(
        b"POST /v1/tools/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
        application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    chunked.raw(format!("{:x}\r\n{}\r\n0\r\n\r\n", 4000, "[".repeat(4000)).as_bytes());
    assert_eq!(chunked.reply().status, 413);
    let many: Vec<(String, &str)> = (0..200).map(|i| (format!("x-{i}"), "v")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(daemon.send("GET", "/v1/tools/a", &many, b"").status, 431);
    assert_eq!(daemon.get("/v1/tools/a").status, 200);
}

#[test]
fn garbage_is_answered_400_and_closed() {
    let (_site, daemon) = start("");
    for garbage in
        [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..], b"GET\r\n\r\n", b"GET /a\0b HTTP/1.1\r\n\r\n"]
    {
        let mut connection = daemon.connect();
        connection.raw(garbage);
        let rest = connection.closed();
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&rest));
    }
    wait_until("they are counted", || closed_for(&daemon, "malformed_request") >= 2.0);
    assert_eq!(daemon.get("/v1/tools/a").status, 200);
}

#[test]
fn connections_beyond_the_limit_are_told_so() {
    let (_site, daemon) = start("max_connections: 2");
    let mut first = daemon.connect();
    let mut second = daemon.connect();
    for connection in [&mut first, &mut second] {
        connection.request("GET", "/v1/tools/a", &[], b"");
        assert_eq!(connection.reply().status, 200);
    }
    let mut third = daemon.connect();
    third.request("GET", "/v1/tools/a", &[], b"");
    let reply = third.reply();
    assert_eq!((reply.status, reply.code().as_str()), (503, "too-many-connections"));
    assert_eq!(reply.header("retry-after"), Some("1"));
    third.closed();
    drop(first);
    wait_until("a place", || daemon.get("/v1/tools/a").status == 200);
    let refused = "almanac_http_connections_closed_total{reason=\"too_many_connections\"}";
    assert!(daemon.metric_as_admin(refused).unwrap() >= 1.0);
    assert_eq!(daemon.admin("GET", "/-/status", b"").status, 200, "the administrator is never shut out");
}

/// The administrator's socket has places of its own, and tells when they are taken.
#[test]
fn a_full_admin_socket_says_so() {
    let (_site, daemon) = start("");
    let idle: Vec<_> = (0..64).map(|_| std::os::unix::net::UnixStream::connect(&daemon.admin).unwrap()).collect();
    wait_until("all places to be taken", || daemon.admin("GET", "/-/status", b"").status == 503);
    let ctl = almanacd().args(["ctl", "status", "--socket"]).arg(&daemon.admin).output().unwrap();
    let said = String::from_utf8(ctl.stderr).unwrap();
    assert!(said.contains("as many connections as the daemon takes"), "{said}");
    drop(idle);
    wait_until("a place", || daemon.admin("GET", "/-/status", b"").status == 200);
}

#[test]
fn a_connection_that_sends_nothing_has_the_time_of_a_head() {
    let (_site, daemon) = start("header_read_timeout: 100ms, idle_timeout: 1h");
    daemon.connect().closed();
}

/// Clients that write all of a request before they read: Python's http.client, and with some bodies node's fetch.
#[test]
fn a_client_that_writes_first_reads_why_it_was_refused() {
    let (_site, daemon) = start("max_body_bytes: 2048");
    let check = |method: &str, path: &str, content_type: &str, status: u16| {
        let body = vec![b' '; 16 << 20];
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut client = daemon.connect();
        let mut socket = client.socket().try_clone().unwrap();
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(&body).expect("the daemon reads on until the client has written");
        let reply = client.reply_to(method);
        assert_eq!(reply.status, status, "{method} {path}");
    };
    check("POST", "/v1/tools/check", "application/json", 413);
    check("POST", "/v1/tools/check", "text/plain", 415);
    check("PUT", "/v1/tools/check", "application/json", 405);
    check("POST", "/v1/nothing", "application/json", 404);
    check("POST", "/v1/tools/check", "text/plain", 415);
}

/// With one thread that answers, whatever is computed there keeps everybody waiting.
#[test]
fn large_bodies_are_not_read_where_questions_are_answered() {
    let site = Site::new();
    site.configure("workers: 1\n").save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    let names: Vec<String> = (0..60_000).map(|number| format!("\"name_{number}\"")).collect();
    let body = format!(r#"{{"tools": [{}]}}"#, names.join(","));
    let answered_meanwhile = || {
        let mut client = daemon.connect();
        client.request("POST", "/v1/tools/check", &[("content-type", "application/json")], body.as_bytes());
        client.socket().set_nonblocking(true).unwrap();
        let mut asking = daemon.connect();
        let mut answered = 0;
        loop {
            asking.request("GET", "/v1/tools/a", &[], b"");
            assert_eq!(asking.reply().status, 200);
            match client.socket().peek(&mut [0]) {
                Ok(_) => return answered,
                Err(_) => answered += 1,
            }
        }
    };
    wait_until("questions to be answered meanwhile", || answered_meanwhile() >= 10);
}

#[test]
fn a_stream_that_stands_still_within_a_line_is_ended() {
    let (_site, daemon) = start("request_timeout: 200ms");
    let mut client = daemon.connect();
    client.raw(
        b"POST /v1/streams?protocol=ui-v1 HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/event-stream\r\n\
          transfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n",
    );
    let reply = client.reply_to("POST");
    assert_eq!((reply.status, reply.code().as_str()), (408, "slow-body"));
}

#[test]
fn what_was_fitted_to_the_limit_of_files_is_no_change() {
    let site = Site::new();
    let inner = site.command();
    let mut command = Command::new("prlimit");
    command.arg("--nofile=1000:1000").arg(inner.get_program()).args(inner.get_args());
    command.env("ALMANAC_LISTEN", "127.0.0.1:0").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    daemon.log.wait_for("room for fewer connections");
    let reload = daemon.admin("POST", "/-/reload", b"").json();
    assert_eq!(reload["waiting"].as_array().map_or(0, Vec::len), 0, "{reload}");
    assert!(!daemon.log.text().contains("changed keys"));
    site.configure("http: {max_connections: 300}\n");
    let reload = daemon.admin("POST", "/-/reload", b"").json();
    assert_eq!(reload["waiting"], json!(["http.max_connections"]), "{reload}");
}

#[test]
fn streams_have_a_limit_of_their_own() {
    let (_site, daemon) = start("max_streams: 1");
    let open = || {
        let mut client = daemon.connect();
        client.raw(
            b"POST /v1/streams?protocol=ui-v1 HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/event-stream\r\n\
              transfer-encoding: chunked\r\n\r\n",
        );
        client
    };
    let first = open();
    let refused = || {
        let mut client = open();
        client.socket().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        client.try_reply("POST").is_some_and(|reply| (reply.status, reply.code().as_str()) == (503, "too-many-streams"))
    };
    wait_until("the second to be refused", refused);
    drop(first);
    let ended = || {
        let mut client = open();
        client.raw(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
        client.reply_to("POST").status == 200
    };
    wait_until("another stream", ended);
}

#[test]
fn a_client_that_closed_its_own_side_is_answered() {
    let (_site, daemon) = start("");
    let record = br#"{"tool_name": "a", "duration_ms": 5}"#;
    let mut client = daemon.connect();
    client.request("POST", "/v1/executions", &[("content-type", "application/json")], record);
    client.socket().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.reply().status, 201);
    client.closed();
}
