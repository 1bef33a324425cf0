//! The daemon as a service: start, supervision, restart, end.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use command_fds::{CommandFdExt, FdMapping};

use crate::daemon::{Daemon, Site, almanacd, document, wait_for, wait_until};

fn site() -> Site {
    let site = Site::new();
    site.save("a.yaml", &document("a", "one"));
    site
}

/// What the supervisor was told, in order.
struct Supervisor {
    socket: UnixDatagram,
}

impl Supervisor {
    fn new(site: &Site) -> Self {
        let socket = UnixDatagram::bind(site.path("notify")).unwrap();
        socket.set_read_timeout(Some(crate::daemon::PATIENCE)).unwrap();
        Self { socket }
    }

    /// The next message that contains `part`.
    #[track_caller]
    fn hears(&self, part: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            let length = self.socket.recv(&mut buffer).unwrap_or_else(|error| panic!("never told {part}: {error}"));
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if message.contains(part) {
                return message;
            }
        }
    }
}

#[test]
fn the_supervisor_is_told() {
    let site = site();
    let supervisor = Supervisor::new(&site);
    let mut command = site.command();
    command.env("NOTIFY_SOCKET", site.path("notify")).env("WATCHDOG_USEC", "300000");
    let mut daemon = Daemon::start(command, site.path("state/admin.sock"));
    let ready = supervisor.hears("READY=1");
    assert!(ready.contains("STATUS=generation 1, 1 tool"), "{ready}");
    supervisor.hears("WATCHDOG=1");
    site.save("b.yaml", &document("b", "one"));
    daemon.signal("HUP");
    let reloading = supervisor.hears("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    let ready = supervisor.hears("READY=1");
    assert!(ready.contains("2 tools"), "{ready}");
    assert!(daemon.metric(r#"almanac_watchdog_probes_total{outcome="answered"}"#).unwrap() >= 1.0);
    daemon.signal("TERM");
    supervisor.hears("STOPPING=1");
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn a_daemon_that_cannot_be_reached_does_not_ping() {
    let site = site();
    let supervisor = Supervisor::new(&site);
    let mut command = site.command();
    command.env("NOTIFY_SOCKET", site.path("notify")).env("WATCHDOG_USEC", "300000");
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    supervisor.hears("WATCHDOG=1");
    fs::remove_file(&daemon.admin).unwrap();
    wait_until("a probe to fail", || {
        daemon.metric(r#"almanac_watchdog_probes_total{outcome="failed"}"#).is_some_and(|failed| failed >= 1.0)
    });
    daemon.log.wait_for("does not answer itself");
    let failures = |least: f64| {
        wait_until("more probes to fail", || {
            daemon.metric(r#"almanac_watchdog_probes_total{outcome="failed"}"#).is_some_and(|failed| failed >= least)
        });
    };
    // What was told before the failure may still be on its way; after two more failures nothing of it is.
    failures(3.0);
    supervisor.socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 4096];
    while supervisor.socket.recv(&mut buffer).is_ok() {}
    failures(5.0);
    while let Ok(length) = supervisor.socket.recv(&mut buffer) {
        let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(!message.contains("WATCHDOG=1"), "{message}");
    }
}

/// Places for connections are for clients; the watchdog needs none.
#[test]
fn clients_that_hold_every_place_do_not_have_the_daemon_killed() {
    let site = site();
    let supervisor = Supervisor::new(&site);
    let mut command = site.command();
    command.env("NOTIFY_SOCKET", site.path("notify")).env("WATCHDOG_USEC", "300000");
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    supervisor.hears("READY=1");
    let idle: Vec<UnixStream> = (0..100).map(|_| UnixStream::connect(&daemon.admin).unwrap()).collect();
    let answered = || daemon.metric(r#"almanac_watchdog_probes_total{outcome="answered"}"#).unwrap_or_default();
    let before = answered();
    wait_until("more probes to be answered", || answered() >= before + 3.0);
    let failed = daemon.metric(r#"almanac_watchdog_probes_total{outcome="failed"}"#);
    assert!(failed.unwrap_or_default() < 1.0);
    drop(idle);
}

/// What is left of a service whose tasks something else has used up. Root has no such limit, so the daemon is somebody.
#[test]
fn a_daemon_that_gets_no_more_threads_answers() {
    let site = site();
    let mut command = site.command();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if is_root {
        let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(site.path(".")).status().unwrap();
        assert!(owned.success());
        command.uid(65534).gid(65534);
    }
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    wait_until("it to be ready", || daemon.get("/ready").status == 200);
    let mut limit = Command::new("prlimit");
    limit.args(["--nproc=1", "--pid", &daemon.child.id().to_string()]);
    if is_root {
        limit.uid(65534).gid(65534);
    }
    assert!(limit.status().unwrap().success());
    for _ in 0..20 {
        let list = daemon.connect();
        let mut estimate = daemon.connect();
        for mut connection in [list, daemon.connect()] {
            connection.request("GET", "/v1/tools", &[], b"");
            assert_eq!(connection.reply().status, 200);
        }
        let body = br#"{"tool": "a"}"#;
        estimate.request("POST", "/v1/estimate", &[("content-type", "application/json")], body);
        assert_eq!(estimate.reply_to("POST").status, 200);
        let reply = daemon.post("/v1/qualify", r#"{"message": "find it"}"#);
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[test]
fn a_body_that_does_not_come_does_not_hold_up_the_end() {
    let site = site();
    let mut daemon = site.start();
    let mut slow = daemon.connect();
    slow.raw(
        b"POST /v1/tools/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
          content-length: 13\r\n\r\n{\"tools\"",
    );
    wait_until("the request to be begun", || daemon.metric("almanac_http_connections").is_some_and(|open| open >= 2.0));
    daemon.signal("TERM");
    let reply = slow.reply_to("POST");
    assert_eq!((reply.status, reply.code().as_str()), (503, "stopping"));
    drop(slow);
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn requests_in_flight_are_finished_and_new_ones_refused() {
    let site = site();
    let mut daemon = site.start();
    let mut in_flight = daemon.connect();
    in_flight.raw(
        b"POST /v1/tools/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
        application/json\r\ncontent-length: 13\r\n\r\n{\"tools\"",
    );
    wait_until("the request to be begun", || daemon.metric("almanac_http_connections").is_some_and(|open| open >= 2.0));
    let mut idle = daemon.connect();
    idle.request("GET", "/v1/tools/a", &[], b"");
    assert_eq!(idle.reply().status, 200);
    daemon.signal("TERM");
    idle.closed();
    wait_until("the door to be shut", || TcpStream::connect(daemon.address).is_err());
    assert!(daemon.child.try_wait().unwrap().is_none(), "it waits for the request in flight");
    in_flight.raw(b":[] }");
    let reply = in_flight.reply();
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!daemon.admin.exists(), "its socket is gone");
}

#[test]
fn the_deadline_and_a_second_signal_cut_short() {
    for signals in [1, 2] {
        let site = site();
        site.configure(if signals == 1 { "drain_timeout: 50ms" } else { "drain_timeout: 1h" });
        let mut daemon = site.start();
        let mut in_flight = daemon.connect();
        in_flight.raw(
            b"POST /v1/tools/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
            application/json\r\ncontent-length: 13\r\n\r\n{",
        );
        wait_until("the request to be begun", || {
            daemon.metric("almanac_http_connections").is_some_and(|open| open >= 2.0)
        });
        daemon.signal("TERM");
        daemon.log.wait_for("\"message\":\"stopping\"");
        if signals == 2 {
            daemon.signal("INT");
        }
        assert_eq!(daemon.wait().code(), Some(1));
    }
}

#[test]
fn readiness_follows_the_end() {
    let site = site();
    let daemon = site.start();
    wait_until("the daemon to be ready", || daemon.get("/ready").status == 200);
    let mut watcher = daemon.connect();
    watcher.raw(
        b"POST /v1/tools/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
        application/json\r\ncontent-length: 13\r\n\r\n{",
    );
    // The administrator's connection is open before the end, and asks after it.
    let mut asking = daemon.connect();
    asking.raw(b"GET /ready HTTP/1.1\r\nhost: local");
    wait_until("both to be open", || daemon.metric("almanac_http_connections").is_some_and(|open| open >= 3.0));
    daemon.signal("TERM");
    daemon.log.wait_for("\"message\":\"stopping\"");
    asking.raw(b"host\r\n\r\n");
    let reply = asking.reply();
    assert_eq!((reply.status, reply.json()["missing"][0].as_str()), (503, Some("running")));
}

#[test]
fn a_second_daemon_on_the_same_state_says_so() {
    let site = site();
    let daemon = site.start();
    let (code, said) = site.fail(&[]);
    assert_eq!(code, 1);
    assert!(said.contains(&format!("in use by another almanacd (pid {})", daemon.child.id())), "{said}");
    assert_eq!(daemon.admin("GET", "/live", b"").status, 200, "the first one's socket is untouched");
}

#[test]
fn what_a_killed_daemon_left_is_replaced() {
    let site = site();
    let mut daemon = site.start();
    daemon.child.kill().unwrap();
    daemon.wait();
    assert!(daemon.admin.exists());
    let again = site.start();
    assert_eq!(again.admin("GET", "/live", b"").status, 200);
}

#[test]
fn what_stands_at_the_path_of_the_admin_socket_stays() {
    let site = site();
    let check = |path: &str, part: &str| {
        let output = site.command().arg("--admin-socket").arg(site.path(path)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(part), "{said}");
    };
    fs::write(site.path("precious.txt"), "precious").unwrap();
    check("precious.txt", "cannot listen on");
    assert_eq!(fs::read_to_string(site.path("precious.txt")).unwrap(), "precious");
    let _live = UnixListener::bind(site.path("live.sock")).unwrap();
    check("live.sock", "in use");
}

#[test]
fn a_second_request_on_its_way_is_answered_at_the_end() {
    let site = site();
    let mut daemon = site.start();
    let mut connection = daemon.connect();
    connection.request("GET", "/v1/tools/a", &[], b"");
    assert_eq!(connection.reply().status, 200);
    connection.raw(b"GET /v1/tools/a HTTP/1.1\r\nhost: local");
    let mut other = daemon.connect();
    other.request("GET", "/v1/tools/a", &[], b"");
    assert_eq!(other.reply().status, 200);
    daemon.signal("TERM");
    daemon.log.wait_for("\"message\":\"stopping\"");
    connection.raw(b"host\r\n\r\n");
    let reply = connection.reply();
    assert_eq!(reply.status, 200);
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn a_taken_address_is_said() {
    let site = site();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = site.fail(&["--listen", &address]);
    assert_eq!(code, 1);
    assert!(said.contains(&format!("cannot listen on {address}")) && said.contains("in use"), "{said}");
}

#[test]
fn faulty_configurations_exit_78() {
    let check = |text: &str, part: &str| {
        let site = site();
        let (code, said) = site.configure(text).fail(&[]);
        assert_eq!(code, 78, "{said}");
        assert!(said.contains(part), "{said}");
    };
    check("listn: 1\n", "did you mean `listen`?");
    check("http:\n  idle_timeout: soon\n", "almanac.yaml:2:");
    check("a: [\n", "almanac.yaml:2:");
    let site = site();
    let output = almanacd().args(["serve", "--config", "/nowhere.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(78));
    let (code, said) = site.fail(&["--no-such-flag"]);
    assert_eq!(code, 64, "{said}");
}

/// Starts a daemon as systemd does: sockets from descriptor 3 on, named by the environment.
fn activated(site: &Site, sockets: Vec<OwnedFd>) -> Daemon {
    let inner = site.command();
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("LISTEN_FDS", sockets.len().to_string())
        // It must not be used: the sockets are passed.
        .env("ALMANAC_LISTEN", "127.0.0.1:1")
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let mappings = (3..).zip(sockets).map(|(child_fd, parent_fd)| FdMapping { parent_fd, child_fd }).collect();
    command.fd_mappings(mappings).unwrap();
    Daemon::start(command, site.path("admin.sock"))
}

#[test]
fn restarts_under_load_refuse_nobody() {
    let site = site();
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = UnixListener::bind(site.path("admin.sock")).unwrap();
    let address = http.local_addr().unwrap();
    let start = || activated(&site, vec![http.try_clone().unwrap().into(), admin.try_clone().unwrap().into()]);
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    // It lives until the clients have ended.
    let last = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut connection = crate::daemon::Connection::open(address);
                    connection.request("GET", "/v1/tools/a", &[("connection", "close")], b"");
                    assert_eq!(connection.reply().status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..10 {
            let mut daemon = start();
            assert_eq!(daemon.address, address);
            let before = answered.load(Ordering::Relaxed);
            wait_until("some answers", || answered.load(Ordering::Relaxed) > before + 50);
            assert_eq!(daemon.admin("GET", "/live", b"").status, 200);
            daemon.signal("TERM");
            assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log.text());
        }
        let last = start();
        stop.store(true, Ordering::Relaxed);
        last
    });
    drop(last);
    assert!(site.path("admin.sock").exists(), "a socket that was passed in stays");
}

#[test]
fn passed_sockets_that_let_in_too_many_are_refused() {
    let site = site();
    let check = |socket: OwnedFd, name: &str, part: &str| {
        let inner = site.command();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh"]).arg(inner.get_program()).args(inner.get_args());
        command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", name).stderr(Stdio::piped());
        command.fd_mappings(vec![FdMapping { parent_fd: socket, child_fd: 3 }]).unwrap();
        let mut child = command.spawn().unwrap();
        let status = wait_for("the refusal", || child.try_wait().unwrap());
        let mut said = String::new();
        child.stderr.unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(78), "{said}");
        // What ended it stands in the log, whose lines are JSON here.
        let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert!(last["level"] == "ERROR" && last["message"].as_str().unwrap().contains(part), "{said}");
    };
    check(TcpListener::bind("0.0.0.0:0").unwrap().into(), "", "so tokens are needed");
    for (number, name) in ["mcp-clients", "MCP", "almanacd-mcp.socket"].iter().enumerate() {
        let socket = UnixListener::bind(site.path(&format!("{number}.sock"))).unwrap();
        check(socket.into(), name, "FileDescriptorName=mcp");
    }
}

#[test]
fn the_log_level_is_set_while_it_runs() {
    let site = site();
    let daemon = site.start();
    daemon.get("/v1/tools/a");
    assert!(!daemon.log.text().contains("\"message\":\"request\""));
    let output = almanacd().args(["ctl", "log-level", "debug", "--socket"]).arg(&daemon.admin).output().unwrap();
    assert!(output.status.success());
    daemon.get("/v1/tools/a");
    daemon.log.wait_for("\"message\":\"request\"");
    let refused = daemon.admin("PUT", "/-/log-level", br#"{"level":"a=b=c"}"#);
    assert_eq!((refused.status, refused.code().as_str()), (422, "invalid-level"));
    let output = almanacd().args(["ctl", "log-level", "wran", "--socket"]).arg(&daemon.admin).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("`wran` is no log level"));
    let output =
        almanacd().args(["ctl", "log-level", "almanac::htpp=debug", "--socket"]).arg(&daemon.admin).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("did you mean `almanac::http`?") && said.contains("not even errors"), "{said}");
    daemon.log.wait_for("did you mean `almanac::http`?");
}

#[test]
fn what_names_the_database_that_daemons_share_is_logged() {
    let site = site();
    let mut command = site.command();
    command.env("ALMANAC_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none?sslmode=disable");
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    let said = daemon.log.wait_for("all is kept in the database that");
    assert_eq!((&said["named_by"], &said["database"]), (&"ALMANAC_DATABASE_URL".into(), &"none".into()));
}

#[test]
fn what_has_no_effect_is_a_warning_at_the_start() {
    let site = site();
    site.configure(concat!(
        "log: {level: 'almanac::htpp=warn,info'}\n",
        "plugins: {settings: {org.example.rules: {a: 1}}}\n",
    ));
    let mut command = site.command();
    command.env("ALMANAC_STATE_DRI", "x").env("ALMANAC_LLM_KEY", "y");
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    for part in [
        "ALMANAC_STATE_DRI is in the environment and no variable of the daemon; did you mean ALMANAC_STATE_DIR?",
        "nothing logs under `almanac::htpp`; did you mean `almanac::http`?",
        "`plugins.settings` has `org.example.rules`, the id of no library that is there",
    ] {
        assert_eq!(daemon.log.wait_for(part)["level"], "WARN", "{part}");
    }
    assert!(!daemon.log.text().contains("LLM_KEY"));
}

#[test]
fn signals_that_rotate_logs_elsewhere_end_nothing() {
    let site = site();
    let mut daemon = site.start();
    for signal in ["USR1", "USR2"] {
        daemon.signal(signal);
        daemon.log.wait_for(&format!("SIG{signal} means nothing here"));
    }
    assert_eq!(daemon.get("/live").status, 200);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
}
