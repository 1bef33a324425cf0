//! `almanacd mcp`: lines on one side, a daemon on the other, which may restart or not be there yet.
#![expect(clippy::needless_pass_by_value, reason = "what is asked is written in place by json!")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::client::{LEGACY, meta};
use super::served::Served;
use super::tasks::able_for;
use crate::daemon::{Site, almanacd, document, serve_shipped, wait_for, wait_until};
use crate::mcp_fixture::server;

/// A client that starts its server.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn on(socket: &Path) -> Self {
        let mut command = almanacd();
        command.arg("mcp").arg("--socket").arg(socket);
        Self::start(command)
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next message.
    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the bridge ended");
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn introduce(&mut self) {
        let params =
            json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = self.ask(0, "initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Closes its side, upon which the bridge ends.
    fn end(mut self) {
        drop(self.input.take());
        let status = wait_for("the bridge's end", || self.child.try_wait().unwrap());
        assert!(status.success());
        let mut rest = String::new();
        while self.output.read_line(&mut rest).unwrap() > 0 {}
        assert_eq!(rest, "", "nothing but answers is on standard output");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clients_of_both_eras_are_served() {
    let (site, daemon) = serve_shipped();
    let socket = site.path("state/mcp.sock");
    let mut legacy = Client::on(&socket);
    legacy.introduce();
    assert_eq!(legacy.ask(1, "tools/list", json!({}))["result"]["tools"].as_array().unwrap().len(), 5);
    let kept = legacy.ask(2, "tools/call", json!({"name": "remember", "arguments": {"content": "Über: ✓"}}));
    assert_eq!(kept["result"]["structuredContent"]["kind"], "document", "{kept}");
    wait_until("the stream of notifications", || daemon.metric("almanac_mcp_streams") == Some(1.0));
    let mut modern = Client::on(&socket);
    let recall = json!({"_meta": meta(), "name": "recall", "arguments": {"query": "Über"}});
    let found = modern.ask(1, "tools/call", recall);
    assert_eq!(found["result"]["structuredContent"]["memories"][0]["content"], "Über: ✓", "{found}");
    assert_eq!(modern.ask(2, "no/such", json!({"_meta": meta()}))["error"]["code"], -32601);
    modern.send(&json!([]));
    assert_eq!(modern.read()["error"]["code"], -32600);
    let long = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"x": "x".repeat(5 << 20)}, "id": 7});
    modern.send(&long);
    let answer = modern.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)), "whoever asked is told");
    writeln!(modern.input.as_mut().unwrap(), "nonsense").unwrap();
    assert_eq!(modern.read()["error"]["code"], -32700);
    let listen = json!({"_meta": meta(), "notifications": {"toolsListChanged": true}});
    modern.send(&json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": listen}));
    assert_eq!(modern.read()["method"], "notifications/subscriptions/acknowledged");
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}});
    modern.send(&cancelled);
    wait_until("the stream's end", || daemon.metric("almanac_mcp_streams") == Some(1.0));
    modern.end();
    legacy.end();
    wait_until("all streams' end", || daemon.metric("almanac_mcp_streams") == Some(0.0));
}

#[test]
fn what_is_sent_at_once_behind_the_introduction_is_answered() {
    let (site, _daemon) = serve_shipped();
    let mut client = Client::on(&site.path("state/mcp.sock"));
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for id in 1..=5 {
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    }
    let mut answers: Vec<Value> = (0..=5).map(|_| client.read()).collect();
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert!(answers.iter().enumerate().all(|(id, answer)| answer["id"] == id), "{answers:?}");
    assert!(answers.iter().all(|answer| answer["result"].is_object()), "{answers:?}");
}

#[test]
fn the_socket_is_the_users_and_serves_nothing_else() {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    let (site, daemon) = serve_shipped();
    let socket = site.path("state/mcp.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let status = |request: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream
            .write_all(format!("{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer[9..12].to_owned()
    };
    for request in ["GET /v1/tools", "GET /-/status", "GET /live", "GET /v1/tools/decision"] {
        assert_eq!(status(request), "404", "{request}");
    }
    assert_eq!(status("GET /mcp"), "405");
    drop(daemon);
}

#[test]
fn a_restart_is_the_bridges_affair() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let socket = site.path("state/mcp.sock");
    let mut daemon = site.start();
    let mut client = Client::on(&socket);
    client.introduce();
    for (number, forget) in [(1, false), (2, true)] {
        daemon.signal("TERM");
        daemon.wait();
        if forget {
            // Another key: the daemon does not know the session, and the client is introduced again.
            std::fs::remove_file(site.path("state/mcp-sessions.key")).unwrap();
        }
        daemon = site.start();
        assert!(client.ask(number, "tools/list", json!({}))["result"]["tools"].is_array());
    }
    daemon.signal("TERM");
    daemon.wait();
    drop(daemon);
    let refused = client.ask(9, "tools/list", json!({}));
    assert_eq!(refused["error"]["code"], -32603);
    assert!(refused["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{refused}");
    let daemon = site.start();
    assert!(client.ask(10, "ping", json!({}))["result"].is_object());
    client.end();
    drop(daemon);
}

#[test]
fn without_a_daemon_one_is_started_shared_and_taken_over() {
    let site = Site::new();
    let home = site.path("home");
    let own = home.join(".config/almanac/tool_metadata");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("mine.yaml"), document("mine", "t")).unwrap();
    // A stranger's repository.
    let strange = site.path("strange/tool_metadata");
    std::fs::create_dir_all(&strange).unwrap();
    std::fs::write(strange.join("theirs.yaml"), document("theirs", "t")).unwrap();
    let start = || {
        let mut command = almanacd();
        command.arg("mcp").current_dir(site.path("strange")).env("HOME", &home).env("ALMANAC_LISTEN", "127.0.0.1:0");
        for variable in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "CREDENTIALS_DIRECTORY"] {
            command.env_remove(variable);
        }
        Client::start(command)
    };
    let (mut first, mut second) = (start(), start());
    first.introduce();
    second.introduce();
    let names = json!({"name": "find_tools", "arguments": {"names": ["mine", "theirs"], "detail": "names"}});
    for client in [&mut first, &mut second] {
        let found = client.ask(1, "tools/call", names.clone())["result"]["structuredContent"].clone();
        assert_eq!(
            (&found["tools"][0]["name"], found["tools"].as_array().unwrap().len()),
            (&json!("mine"), 1),
            "{found}"
        );
    }
    let state = home.join(".local/state/almanac");
    let holder = || std::fs::read_to_string(state.join("lock")).unwrap();
    assert!(holder().contains("until idle"));
    // Somebody serves for good.
    let mut command = almanacd();
    command.args(["serve", "--user", "--log-format", "json"]).env("HOME", &home);
    command.env("ALMANAC_LISTEN", "127.0.0.1:0").env("ALMANAC_PLUGINS", site.path("plugins"));
    for variable in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "CREDENTIALS_DIRECTORY"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let daemon = crate::daemon::Daemon::start(command, state.join("admin.sock"));
    assert_eq!(holder().lines().next().unwrap(), daemon.child.id().to_string());
    assert!(second.ask(2, "ping", json!({}))["result"].is_object());
    let mut status = almanacd();
    status.args(["ctl", "status"]).current_dir(&home).env("HOME", &home).env_remove("XDG_STATE_HOME");
    let status = status.output().unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    first.end();
    second.end();
}

#[test]
fn a_daemon_that_nobody_uses_ends() {
    let site = Site::new();
    let mut command = site.command();
    command.args(["--until-idle", "300ms"]);
    let mut daemon = crate::daemon::Daemon::start(command, site.path("state/admin.sock"));
    assert!(daemon.wait().success());
    assert!(!site.path("state/mcp.sock").exists());
}

#[test]
fn arguments_that_headers_repeat_reach_a_daemon_at_an_address() {
    let near = Served::one("legacy headers");
    let mut command = almanacd();
    command.args(["mcp", "--url", &format!("http://{}", near.daemon.address), "--view", "server/a"]);
    let mut client = Client::start(command);
    client.ask(1, "tools/list", json!({"_meta": meta()}));
    let arguments = json!({"region": "Zürich", "n": 3});
    let called = client.ask(2, "tools/call", json!({"name": "route", "arguments": arguments, "_meta": meta()}));
    assert!(called["result"]["content"].is_array(), "{called}");
    client.end();
}

#[test]
fn tasks_are_held_over_lines_too() {
    let served = Served::new(&format!("    a: {}, per_session: true}}\n", server("legacy")), "");
    let mut client = Client::on(&served.site.path("state/mcp.sock"));
    let able = |more: Value| {
        let mut params = json!({"_meta": meta()});
        params["_meta"].as_object_mut().unwrap().extend(able_for(200).as_object().unwrap().clone());
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let begin = |client: &mut Client, tool: &str, ms: u64| {
        let call = json!({"name": "call_tool", "arguments": {"name": tool, "arguments": {"ms": ms}}});
        let begun = client.ask(1, "tools/call", able(call))["result"].clone();
        assert_eq!(begun["resultType"], "task", "{begun}");
        begun["taskId"].clone()
    };
    let until = |client: &mut Client, id: &Value, status: &str| {
        wait_for(status, || {
            let task = client.ask(2, "tasks/get", able(json!({"taskId": id})))["result"].clone();
            (task["status"] == status).then_some(task)
        })
    };
    let id = begin(&mut client, "a_ask", 600);
    let asked = until(&mut client, &id, "input_required");
    assert_eq!(asked["inputRequests"]["question1"]["params"]["message"], "name?", "{asked}");
    let answer = json!({"action": "accept", "content": {"name": "Anna"}});
    let answers = able(json!({"taskId": id, "inputResponses": {"question1": answer}}));
    assert_eq!(client.ask(3, "tasks/update", answers)["result"]["resultType"], "complete");
    assert_eq!(until(&mut client, &id, "completed")["result"]["heard"]["result"], answer);
    let id = begin(&mut client, "a_sleep", 60_000);
    assert_eq!(client.ask(4, "tasks/cancel", able(json!({"taskId": id})))["result"]["resultType"], "complete");
    until(&mut client, &id, "cancelled");
    wait_until("the cancellation", || served.logs("a").contains("heard notifications/cancelled"));
    // A task is told of where it is listened for.
    let id = begin(&mut client, "a_sleep", 900);
    let listen = able(json!({"notifications": {"taskIds": [id]}}));
    client.send(&json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": listen}));
    assert_eq!(client.read()["params"]["notifications"], json!({"taskIds": [id]}));
    let mut told = client.read();
    while told["params"]["status"] != "completed" {
        assert_eq!((&told["method"], &told["params"]["taskId"]), (&json!("notifications/tasks"), &id), "{told}");
        told = client.read();
    }
    let mut legacy = Client::on(&served.site.path("state/mcp.sock"));
    legacy.introduce();
    assert_eq!(legacy.ask(1, "tasks/get", json!({"taskId": id}))["error"]["code"], -32601);
    legacy.end();
    drop(client);
}

/// More of them, one after the other, than a server has processes for sessions.
#[test]
fn a_client_that_goes_takes_its_server_s_process_along() {
    let served = Served::new(&format!("    a: {}, per_session: true}}\n", server("legacy")), "");
    for number in 0..20 {
        let mut client = Client::on(&served.site.path("state/mcp.sock"));
        client.introduce();
        let echo = json!({"name": "a_echo", "arguments": {"text": number.to_string()}});
        let answer = client.ask(1, "tools/call", echo);
        assert_eq!(answer["result"]["content"][0]["text"], number.to_string(), "{answer}");
        client.end();
    }
}

#[test]
fn what_is_given_up_is_not_answered() {
    let served = Served::one("legacy");
    let mut client = Client::on(&served.site.path("state/mcp.sock"));
    client.introduce();
    let sleep = json!({"name": "a_sleep", "arguments": {"ms": 60_000}});
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": sleep}));
    wait_until("the call", || served.logs("a").contains("slept 60000 ms"));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    wait_until("the cancellation", || served.logs("a").contains("heard notifications/cancelled"));
    // The next thing that is said is the answer to the next question.
    assert!(client.ask(2, "ping", json!({}))["result"].is_object());
    client.end();
}

#[test]
fn what_is_under_way_when_the_input_ends_is_answered() {
    let served = Served::one("legacy");
    let mut client = Client::on(&served.site.path("state/mcp.sock"));
    let listen = json!({"_meta": meta(), "notifications": {"toolsListChanged": true}});
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen}));
    assert_eq!(client.read()["method"], "notifications/subscriptions/acknowledged");
    let sleep = json!({"name": "a_sleep", "arguments": {"ms": 2500}, "_meta": meta()});
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": sleep}));
    drop(client.input.take());
    let answer = client.read();
    assert_eq!((&answer["id"], answer["result"].is_object()), (&json!(2), true), "{answer}");
    client.end();
    // A daemon that is not there is told of, too.
    let mut client = Client::on(&served.site.path("state/none.sock"));
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": meta()}}));
    drop(client.input.take());
    let answer = client.read();
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("cannot be reached") && said.contains("state/none.sock"), "{answer}");
    client.end();
}

#[test]
fn an_address_that_is_none_is_refused() {
    let refused = |url: &str| {
        let output = almanacd().args(["mcp", "--url", url]).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = refused("http://almanac.example");
    assert!(code == Some(64) && said.contains("needs https"), "{said}");
    let (code, said) = refused("http://127.0.0.1:7311/mcp/work");
    assert!(code == Some(64) && said.contains("--view"), "{said}");
    let none = almanacd().args(["mcp", "--client-timeout", "0s"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(none.status.code(), Some(64), "{}", String::from_utf8_lossy(&none.stderr));
    let (_site, daemon) = serve_shipped();
    for path in ["", "/mcp"] {
        let mut command = almanacd();
        command.args(["mcp", "--url", &format!("http://{}{path}", daemon.address)]);
        let mut client = Client::start(command);
        client.introduce();
        assert!(client.ask(1, "ping", json!({}))["result"].is_object());
        client.end();
    }
}
