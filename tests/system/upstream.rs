//! MCP servers behind the daemon: started, listed, asked, ended.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use almanac::strict::load;
use almanac::strict::read::Limits;
use almanac::telemetry::Metrics;
use almanac::upstream::{CallFault, CallReply, Caller, Outgoing, ServerEvent, ServerState, Settings, Upstreams};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::daemon::{Site, almanacd, wait_for, wait_until};
use crate::mcp_fixture::server;

/// Servers without a daemon around them.
struct Bench {
    runtime: Runtime,
    state: TempDir,
    servers: Upstreams,
}

fn settings(yaml: &str, state: &Path) -> Settings {
    let yaml = format!("directory: {}/mcp.d\nservers:\n{yaml}", state.display());
    let settings: Settings = load::parse(Path::new("x.yaml"), yaml.as_bytes(), &Limits::of_bytes(1 << 20)).unwrap();
    Settings { kept: state.join("mcp"), ..settings }
}

impl Bench {
    fn new(yaml: &str) -> Self {
        Self::on(TempDir::new().unwrap(), yaml)
    }

    fn on(state: TempDir, yaml: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (settings, metrics) = (settings(yaml, state.path()), Arc::new(Metrics::new().unwrap()));
        let program = env!("CARGO_BIN_EXE_almanacd").into();
        let servers = Upstreams::start(settings, metrics, runtime.handle(), program).unwrap();
        Self { runtime, state, servers }
    }

    fn state_of(&self, name: &str) -> Arc<ServerState> {
        self.servers.server(name).unwrap()
    }

    #[track_caller]
    fn up(&self, name: &str) -> Arc<ServerState> {
        wait_for("the server", || self.servers.server(name).filter(|state| state.is_up))
    }

    fn reload(&self, yaml: &str) {
        self.runtime.block_on(self.servers.reload(settings(yaml, self.state.path())));
    }

    async fn ask(
        &self,
        name: &str,
        tool: &str,
        arguments: Value,
        caller: Caller,
        limit: Option<Duration>,
    ) -> (Result<CallReply, CallFault>, Vec<ServerEvent>) {
        let params = to_raw_value(&json!({"name": tool, "arguments": arguments})).unwrap();
        let request = Outgoing { method: "tools/call".to_owned(), params: Some(params), caller, limit, sent: None };
        let (sender, mut events) = mpsc::channel(16);
        let reply = self.servers.request(name, request, sender).await;
        let mut heard = Vec::new();
        while let Some(event) = events.recv().await {
            heard.push(event);
        }
        (reply, heard)
    }

    fn call(&self, name: &str, tool: &str, arguments: Value) -> Result<Value, CallFault> {
        let reply = self.runtime.block_on(self.ask(name, tool, arguments, Caller::default(), None)).0?;
        let result: Box<RawValue> = reply.outcome.unwrap_or_else(|error| panic!("{error}"));
        Ok(serde_json::from_str(result.get()).unwrap())
    }

    fn stop(self) -> TempDir {
        self.runtime.block_on(self.servers.stop(Duration::ZERO));
        self.state
    }

    fn logs(&self, name: &str) -> String {
        self.servers.logs(name).unwrap().join("\n")
    }
}

fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Processes whose environment has this state directory's fixture word.
fn fixtures(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let marked = |path: &std::path::PathBuf| {
        fs::read(path.join("environ"))
            .is_ok_and(|environ| environ.windows(mark.len()).any(|part| part == mark.as_bytes()))
    };
    processes.filter(marked).count()
}

#[test]
fn a_server_is_listed_and_asked() {
    let check = |words: &str, version: &str, instructions: &str| {
        let bench = Bench::new(&format!("  a: {}}}", server(words)));
        let state = bench.up("a");
        let listed = state.listed.as_ref().unwrap();
        assert_eq!((listed.version.as_str(), listed.instructions.as_deref()), (version, Some(instructions)), "{words}");
        let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["echo", "sleep", "die", "noise", "ask", "progress"]);
        // Members that nobody knows stay.
        assert!(listed.tools[0].json.get().contains(r#""x-unknown":{"n":1}"#));
        let result = bench.call("a", "echo", json!({"text": "hällo"})).unwrap();
        assert_eq!(result["content"][0]["text"], "hällo");
        assert!(result["vars"].as_u64().unwrap() <= 12, "{result}");
        let pid = state.pid.unwrap();
        assert_eq!(result["pid"], pid);
        bench.stop();
        assert!(!alive(pid));
    };
    check("legacy", "2025-11-25", "legacy fixture");
    check("exits", "2025-11-25", "legacy fixture");
    check("modern", "2026-07-28", "modern fixture");
}

#[test]
fn lists_are_complete_before_a_server_answers() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy")));
    let before = bench.up("a").listed.clone().unwrap();
    let state = bench.stop();
    let bench = Bench::on(state, &format!("  a: {}}}", server("legacy start=3000")));
    let kept = bench.state_of("a");
    assert!(!kept.is_up);
    let shown = |listed: &almanac::upstream::Listed| serde_json::to_string(listed).unwrap();
    assert_eq!(shown(kept.listed.as_ref().unwrap()), shown(&before));
    // A call waits for the server.
    assert_eq!(bench.call("a", "echo", json!({"text": 1})).unwrap()["content"][0]["text"], 1);
    bench.stop();
}

#[test]
fn a_death_ends_the_calls_in_flight_at_once() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy")));
    bench.up("a");
    let ended = bench.runtime.block_on(async {
        let sleeps = (0..31).map(|_| bench.ask("a", "sleep", json!({"ms": 60_000}), Caller::default(), None));
        let dies = async {
            tokio::task::yield_now().await;
            bench.ask("a", "die", json!({}), Caller::default(), None).await
        };
        futures_util::future::join(futures_util::future::join_all(sleeps), dies).await.0
    });
    assert_eq!(ended.len(), 31);
    for (reply, _) in ended {
        let fault = reply.unwrap_err();
        assert!(matches!(fault, CallFault::Died { .. }), "{fault}");
    }
    // Its lists stay, and it comes back.
    assert_eq!(bench.state_of("a").listed.as_ref().unwrap().tools.len(), 6);
    assert_eq!(bench.call("a", "echo", json!({"text": 2})).unwrap()["content"][0]["text"], 2);
    assert_eq!(bench.state_of("a").starts, 2);
    bench.stop();
}

#[test]
fn noise_is_borne_to_a_point() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy")));
    bench.up("a");
    bench.call("a", "noise", json!({"lines": 90})).unwrap();
    let logs = bench.logs("a");
    assert!(logs.contains("wrote what is no message: this is no message"), "{logs}");
    let fault = bench.call("a", "noise", json!({"lines": 200})).unwrap_err();
    assert!(fault.to_string().contains("100 lines in a row that are no messages"), "{fault}");
    bench.call("a", "echo", json!({"text": ""})).unwrap();
    bench.stop();
}

#[test]
fn an_answer_that_cannot_be_read_ends_its_call() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy")));
    bench.up("a");
    for tool in ["nan", "deep"] {
        let fault = bench.call("a", tool, json!({})).unwrap_err();
        assert!(matches!(fault, CallFault::Unreadable { .. }), "{tool}: {fault}");
    }
    assert_eq!(bench.call("a", "echo", json!({"text": 2})).unwrap()["content"][0]["text"], 2);
    assert_eq!(bench.state_of("a").starts, 1);
    bench.stop();
}

#[test]
fn a_server_that_answers_between_its_deaths_is_not_given_up() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy")));
    bench.up("a");
    for _ in 0..6 {
        assert!(matches!(bench.call("a", "die", json!({})).unwrap_err(), CallFault::Died { .. }));
        assert_eq!(bench.call("a", "echo", json!({"text": 2})).unwrap()["content"][0]["text"], 2);
    }
    let logs = bench.logs("a");
    assert!(logs.contains("is started again in 1s") && !logs.contains("is started again in 2s"), "{logs}");
    bench.stop();
}

#[test]
fn a_flood_of_tools_is_cut_off() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy tools=5000")));
    assert_eq!(bench.up("a").listed.as_ref().unwrap().tools.len(), 1999);
    let logs = bench.logs("a");
    assert!(logs.contains("lists more than 2000 tools; the first 2000 are taken"), "{logs}");
    assert!(logs.contains("lists the tool `echo` twice"), "{logs}");
    bench.stop();
}

#[test]
fn silence_ends_at_the_limit_and_is_told_upstream() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy")));
    bench.up("a");
    let call = bench.ask("a", "sleep", json!({"ms": 60_000}), Caller::default(), Some(Duration::from_millis(50)));
    let fault = bench.runtime.block_on(call).0.unwrap_err();
    assert!(matches!(fault, CallFault::Timeout { .. }), "{fault}");
    wait_until("the cancellation", || bench.logs("a").contains("heard notifications/cancelled"));
    bench.call("a", "echo", json!({"text": ""})).unwrap();
    bench.stop();
}

#[test]
fn progress_and_questions_reach_the_caller() {
    let bench = Bench::new(&format!("  a: {}, per_session: true}}\n  b: {}}}", server("legacy"), server("legacy")));
    bench.up("a");
    let caller = |session: &str| Caller {
        session: Some(session.to_owned()),
        capabilities: Some(RawValue::from_string(r#"{"elicitation":{}}"#.to_owned()).unwrap()),
        wants_progress: true,
        ..Caller::default()
    };
    let (reply, events) = bench.runtime.block_on(bench.ask("a", "progress", json!({}), caller("x"), None));
    reply.unwrap();
    assert!(matches!(&events[..], [ServerEvent::Progress(params)] if params.get().contains("0.5")), "{events:?}");
    // Of a session's own process a question is its client's.
    let heard = bench.runtime.block_on(async {
        let params = to_raw_value(&json!({"name": "ask", "arguments": {}})).unwrap();
        let request = Outgoing {
            method: "tools/call".to_owned(),
            params: Some(params),
            caller: caller("y"),
            limit: None,
            sent: None,
        };
        let (sender, mut events) = mpsc::channel(4);
        let answers = async {
            let Some(ServerEvent::Question { method, params, answer }) = events.recv().await else { panic!() };
            assert_eq!((method.as_str(), params.unwrap().get()), ("elicitation/create", r#"{"message":"name?"}"#));
            answer.send(Ok(RawValue::from_string(r#"{"action":"accept"}"#.to_owned()).unwrap())).unwrap();
        };
        let (reply, ()) = tokio::join!(bench.servers.request("a", request, sender), answers);
        reply.unwrap().outcome.unwrap().get().to_owned()
    });
    assert!(heard.contains(r#""action":"accept""#), "{heard}");
    let pid = |session: &str| {
        let reply = bench.runtime.block_on(bench.ask("a", "echo", json!({}), caller(session), None)).0.unwrap();
        let result: Value = serde_json::from_str(reply.outcome.unwrap().get()).unwrap();
        result["pid"].as_u64().unwrap() as u32
    };
    let (first, second) = (pid("x"), pid("y"));
    assert_ne!(first, second);
    bench.servers.end_session("x");
    wait_until("the end of the session's process", || !alive(first));
    assert!(alive(second));
    // Of a process that all share nobody can say whose it is.
    bench.up("b");
    let heard = bench.call("b", "ask", json!({})).unwrap();
    assert_eq!(heard["heard"]["result"], json!({"action": "cancel"}));
    bench.stop();
    assert!(!alive(second));
}

#[test]
fn a_definition_that_changed_waits_for_an_approval() {
    let server = |says: &str| format!("  a: {}, on_change: block}}", server(&format!("legacy says={says}")));
    let bench = Bench::new(&server("old"));
    bench.up("a");
    bench.reload(&server("new\u{202e}"));
    let state = wait_for("the new definition", || bench.servers.server("a").filter(|state| !state.waiting.is_empty()));
    assert!(state.listed.as_ref().unwrap().tools[0].json.get().contains(r#""description":"old""#));
    let fault = bench.call("a", "echo", json!({})).unwrap_err();
    assert!(fault.to_string().contains("almanacd ctl mcp approve a echo"), "{fault}");
    let differences = bench.servers.differences("a").unwrap();
    assert!(differences.iter().any(|found| found.tool == "echo" && found.offered.get().contains(r#""new""#)));
    assert_eq!(bench.servers.approve("a", Some("echo")).unwrap(), ["echo"]);
    let state = wait_for("the approval", || bench.servers.server("a").filter(|state| !state.waiting.contains("echo")));
    assert!(state.listed.as_ref().unwrap().tool("echo").unwrap().json.get().contains(r#""new""#));
    bench.call("a", "echo", json!({})).unwrap();
    assert!(bench.call("a", "sleep", json!({"ms": 0})).is_err());
    bench.stop();
}

#[test]
fn a_failing_change_leaves_the_old_one() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy")));
    let pid = bench.up("a").pid;
    bench.reload(&format!("  a: {}, start_timeout: 5s}}", server("legacy fail")));
    let state = wait_for("the judgement", || bench.servers.server("a").filter(|state| state.problem.is_some()));
    assert_eq!((state.pid, state.is_up), (pid, true));
    assert!(state.problem.as_ref().unwrap().contains("the old one goes on"), "{:?}", state.problem);
    bench.call("a", "echo", json!({})).unwrap();
    bench.stop();
}

#[test]
fn a_hundred_reloads_leak_no_process() {
    let mark = format!("mark={}", std::process::id());
    let yaml = |round: usize| {
        format!("  a: {}}}\n  b: {}}}", server(&format!("legacy {mark}")), server(&format!("legacy {mark} r{round}")))
    };
    let bench = Bench::new(&yaml(0));
    let same = bench.up("a").pid;
    for round in 1..=100 {
        bench.reload(&yaml(round));
        if round % 20 == 0 {
            bench.call("b", "echo", json!({"text": round})).unwrap();
        }
    }
    // Servers that did not change were not touched.
    assert_eq!(bench.up("a").pid, same);
    wait_until("the end of all others", || fixtures(&mark) == 2);
    bench.stop();
    assert_eq!(fixtures(&mark), 0);
}

#[test]
fn what_is_idle_is_stopped_and_woken() {
    let bench = Bench::new(&format!("  a: {}, idle_stop: 1s}}", server("legacy")));
    let pid = bench.up("a").pid.unwrap();
    wait_until("the stop", || bench.state_of("a").is_idle);
    assert!(!bench.state_of("a").is_up);
    wait_until("the end of the process", || !alive(pid));
    assert_eq!(bench.state_of("a").listed.as_ref().unwrap().tools.len(), 6);
    bench.call("a", "echo", json!({})).unwrap();
    assert!(bench.state_of("a").is_up && !bench.state_of("a").is_idle);
    bench.stop();
}

#[test]
fn orders_are_heard_while_lists_are_asked_for() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy grows stuck")));
    bench.up("a");
    let stick = |starts: usize| {
        wait_until("the start", || bench.state_of("a").is_up && bench.state_of("a").starts == starts);
        bench.call("a", "grow", json!({"what": "tools"})).unwrap();
        wait_until("the question", || bench.logs("a").matches("is stuck").count() == starts);
    };
    let begun = Instant::now();
    stick(1);
    assert!(bench.servers.restart("a"));
    stick(2);
    bench.stop();
    assert!(begun.elapsed() < Duration::from_secs(50), "nothing waited for the lists, which take 60 s");
}

#[test]
fn an_end_waits_for_no_call_that_was_left_time() {
    let bench = Bench::new(&format!("  a: {}}}", server("legacy")));
    bench.up("a");
    let (servers, params) = (bench.servers.clone(), json!({"name": "sleep", "arguments": {"ms": 60_000}}));
    let request = Outgoing {
        method: "tools/call".to_owned(),
        params: Some(to_raw_value(&params).unwrap()),
        caller: Caller::default(),
        limit: None,
        sent: None,
    };
    let called = bench.runtime.spawn(async move { servers.request("a", request, mpsc::channel(1).0).await });
    wait_until("the call", || bench.logs("a").contains("slept 60000 ms"));
    // The call may go on for 30 s.
    bench.reload("  {}");
    assert!(!called.is_finished());
    let begun = Instant::now();
    bench.stop();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn an_idle_server_is_neither_down_nor_there_for_ever() {
    let site = Site::new();
    let configure = |servers: &str| {
        site.configure(&format!("mcp:\n  directory: {}\n  servers:{servers}\n", site.path("mcp.d").display()));
    };
    configure(&format!("\n    a: {}, idle_stop: 1s}}", server("legacy")));
    let daemon = site.start();
    wait_until("the stop", || daemon.admin("GET", "/-/mcp", b"").json()["items"][0]["state"] == "idle");
    let up = r#"almanac_mcp_upstream_up{server="a"}"#;
    assert_eq!(daemon.metric(up), Some(1.0));
    let listed = almanacd().args(["ctl", "mcp", "list", "--socket"]).arg(&daemon.admin).output().unwrap();
    assert_eq!(listed.status.code(), Some(0), "{}", String::from_utf8_lossy(&listed.stdout));
    configure(" {}");
    assert_eq!(daemon.admin("POST", "/-/reload", b"").status, 200);
    wait_until("its end", || daemon.metric(up).is_none());
    // Its keeper may end after that.
    wait_until("the next look", || daemon.admin("GET", "/-/mcp", b"").json()["items"] == json!([]));
    assert_eq!(daemon.metric(up), None);
}

#[test]
fn a_faulty_file_of_servers_is_told_for_as_long_as_it_is() {
    let site = Site::new();
    let directory = site.path("mcp.d");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("a.yaml"), "servers: {a: {comand: [x]}}").unwrap();
    site.configure(&format!("mcp: {{directory: {}}}\n", directory.display()));
    let daemon = site.start();
    let troubles = || daemon.admin("GET", "/-/status", b"").json()["troubles"].clone();
    let told = troubles().to_string();
    assert!(told.contains("MCP servers: ") && told.contains("a.yaml:1:") && told.contains("comand"), "{told}");
    fs::write(directory.join("a.yaml"), "servers: {}").unwrap();
    wait_until("the next look", || troubles() == json!([]));
}

#[test]
fn the_command_line_shows_and_restarts_servers() {
    let site = Site::new();
    site.configure(&format!(
        "mcp:\n  directory: {}\n  servers:\n    good: {}}}\n    bad: {{command: [/nonexistent/x]}}\n    \
         dies: {{command: [/bin/sh, -c, 'exit 7']}}\n",
        site.path("mcp.d").display(),
        server("legacy")
    ));
    let daemon = site.start();
    let list = || daemon.admin("GET", "/-/mcp", b"").json();
    let of =
        |list: &Value, name: &str| list["items"].as_array().unwrap().iter().find(|item| item["name"] == name).cloned();
    let good = wait_for("the server", || of(&list(), "good").filter(|item| item["state"] == "up"));
    assert_eq!((&good["tools"], &good["version"]), (&json!(6), &json!("2025-11-25")));
    let bad = wait_for("the failure", || of(&list(), "bad").filter(|item| item["state"] == "down"));
    assert!(bad["problem"].as_str().unwrap().contains("/nonexistent/x is not there"), "{bad}");
    let dies = wait_for("its death", || of(&list(), "dies").filter(|item| item["state"] == "down"));
    assert!(dies["problem"].as_str().unwrap().contains("exit status: 7"), "{dies}");
    assert_eq!(daemon.metric(r#"almanac_mcp_upstream_up{server="good"}"#), Some(1.0));
    assert_eq!(daemon.admin("POST", "/-/mcp/good/restart", b"").status, 200);
    wait_until("the restart", || of(&list(), "good").is_some_and(|item| item["starts"] == 2 && item["state"] == "up"));
    let unknown = daemon.admin("POST", "/-/mcp/gud/restart", b"");
    assert_eq!((unknown.status, unknown.code()), (404, "unknown-server".to_owned()));
    let near = |name: &str| daemon.admin("GET", &format!("/-/mcp/{name}/logs"), b"").json()["near"].clone();
    assert_eq!((near("goood"), near("nope")), (json!(["good"]), Value::Null));
    let refused = daemon.post("/v1/servers/good/approve?tool=echo", "");
    assert_eq!((refused.status, refused.code().as_str()), (403, "missing-scope"));
    assert!(refused.text().contains("almanacd token new --name me --scopes admin"), "{}", refused.text());
    let logs = daemon.admin("GET", "/-/mcp/good/logs", b"").json();
    assert!(logs.to_string().contains("fixture started"), "{logs}");
    // A file that is put into the directory is a server more.
    fs::create_dir(site.path("mcp.d")).unwrap();
    fs::write(site.path("mcp.d/more.yaml"), format!("servers:\n  more: {}}}\n", server("legacy"))).unwrap();
    wait_until("the server of the directory", || of(&list(), "more").is_some_and(|item| item["state"] == "up"));
    let pid = of(&list(), "more").unwrap()["pid"].as_u64().unwrap() as u32;
    fs::remove_file(site.path("mcp.d/more.yaml")).unwrap();
    wait_until("its end", || of(&list(), "more").is_none() && !alive(pid));
    // With the daemon all of them end, however it ends.
    let pid = of(&list(), "good").unwrap()["pid"].as_u64().unwrap() as u32;
    daemon.signal("KILL");
    wait_until("the end of the server", || !alive(pid));
}

#[test]
fn secrets_are_in_no_log() {
    let site = Site::new();
    let fixture = server("legacy").replace("env: {", "env: {SECRET: '${credential:key}', ");
    site.configure(&format!("mcp:\n  directory: {}\n  servers:\n    a: {fixture}}}\n", site.path("none").display()));
    fs::create_dir(site.path("credentials")).unwrap();
    fs::write(site.path("credentials/key"), "s3cret-value\n").unwrap();
    let mut command = site.command();
    command.env("CREDENTIALS_DIRECTORY", site.path("credentials"));
    let daemon = crate::daemon::Daemon::start(command, site.path("state/admin.sock"));
    let logged = daemon.log.wait_for("fixture started, token ***");
    assert!(!logged.to_string().contains("s3cret"));
    assert!(!daemon.log.text().contains("s3cret-value"));
    assert!(!daemon.admin("GET", "/-/mcp/a/logs", b"").text().contains("s3cret-value"));
}
