//! A daemon under test, and a client that can misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;
use tempfile::TempDir;

/// Far longer than anything takes; only a failing test waits so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a condition that announces itself in no other way.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until `condition` yields something.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "some things announce themselves in no way")]
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(LOOK);
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// The lines that a daemon logged, as JSON.
#[derive(Debug, Default)]
pub struct Log {
    lines: Mutex<Vec<String>>,
    grown: Condvar,
}

impl Log {
    /// The first line that contains `part`, once it is there.
    #[track_caller]
    pub fn wait_for(&self, part: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        let mut lines = self.lines.lock().unwrap();
        loop {
            if let Some(line) = lines.iter().find(|line| line.contains(part)) {
                return serde_json::from_str(line).unwrap();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no line with {part:?} in {lines:#?}");
            lines = self.grown.wait_timeout(lines, left).unwrap().0;
        }
    }

    pub fn text(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }
}

/// A directory of documents, a configuration and a state directory; daemons come and go on it.
#[derive(Debug)]
pub struct Site {
    root: TempDir,
}

impl Site {
    pub fn new() -> Self {
        let root = TempDir::with_prefix("almanac-").unwrap();
        for directory in ["tools", "plugins"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        fs::write(root.path().join("almanac.yaml"), "").unwrap();
        Self { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn tools(&self) -> PathBuf {
        self.path("tools")
    }

    pub fn configure(&self, text: &str) -> &Self {
        fs::write(self.path("almanac.yaml"), text).unwrap();
        self
    }

    /// Saves a document in one step, as editors do.
    pub fn save(&self, file: &str, text: &str) {
        let path = self.tools().join(file);
        let temporary = self.tools().join(format!(".{}.tmp", file.replace('/', "-")));
        fs::write(&temporary, text).unwrap();
        fs::rename(temporary, path).unwrap();
    }

    pub fn command(&self) -> Command {
        let mut command = almanacd();
        command
            .arg("serve")
            .arg("--config")
            .arg(self.path("almanac.yaml"))
            .arg("--tool-metadata")
            .arg(self.tools())
            .arg("--state-dir")
            .arg(self.path("state"))
            // By the environment, so that a test can say otherwise by a flag.
            .env("ALMANAC_LISTEN", "127.0.0.1:0")
            .env("ALMANAC_PLUGINS", self.path("plugins"))
            .args(["--log-format", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// The command, as [`below`] starts it.
    pub fn command_below(&self, flags: &[&str], script: &str) -> Option<Command> {
        below(&self.command(), flags, script)
    }

    pub fn start(&self) -> Daemon {
        Daemon::start(self.command(), self.path("state/admin.sock"))
    }

    /// A daemon that does not start: its exit code and what it said.
    pub fn fail(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command().args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

/// A command in a user namespace of its own, in which it is root: a shell runs `script`, which ends with `exec "$@"`.
/// Nothing where no such namespace can be made.
pub fn below(inner: &Command, flags: &[&str], script: &str) -> Option<Command> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user"]).args(flags).args(["sh", "-c", script, "sh"]);
        command
    };
    if !unshare().arg("true").output().is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "no user namespace can be made here");
        return None;
    }
    let mut command = unshare();
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Some(command)
}

/// The binary, with none of the developer's own settings.
pub fn almanacd() -> Command {
    unconfigured(env!("CARGO_BIN_EXE_almanacd"))
}

/// A program that sees none of the settings of whoever runs the tests.
pub fn unconfigured(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ALMANAC_") {
            command.env_remove(name);
        }
    }
    command.env_remove("JOURNAL_STREAM").env_remove("NOTIFY_SOCKET");
    command
}

/// A running daemon; killed if a test leaves it behind.
#[derive(Debug)]
pub struct Daemon {
    pub child: Child,
    pub address: SocketAddr,
    pub admin: PathBuf,
    pub log: Arc<Log>,
}

impl Daemon {
    pub fn start(command: Command, admin: PathBuf) -> Self {
        let (child, log) = spawn(command);
        let line = log.wait_for("\"message\":\"listening\"");
        let address = line["http"].as_str().unwrap().split(' ').next().unwrap();
        let address = address.strip_prefix("http://").unwrap().parse().unwrap();
        Self { child, address, admin, log }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    pub fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "GET {path}: {}", reply.text());
        reply.json()
    }

    pub fn post(&self, path: &str, body: &str) -> Reply {
        self.send("POST", path, &[("content-type", "application/json")], body.as_bytes())
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut connection = Connection::open(self.address);
        connection.request(method, path, headers, body);
        connection.reply_to(method)
    }

    /// The title of a tool, or nothing if there is no such tool.
    pub fn title(&self, tool: &str) -> Option<String> {
        let reply = self.get(&format!("/v1/tools/{tool}"));
        (reply.status == 200).then(|| reply.json()["title"].as_str().unwrap().to_owned())
    }

    pub fn connect(&self) -> Connection<TcpStream> {
        Connection::open(self.address)
    }

    pub fn admin(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        let stream = UnixStream::connect(&self.admin).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut connection = Connection { stream: BufReader::new(stream) };
        let headers: &[(&str, &str)] = if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
        connection.request(method, path, headers, body);
        connection.reply_to(method)
    }

    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(format!("-{signal}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the daemon's end", || self.child.try_wait().unwrap())
    }

    /// The same where a token is needed to look at the metrics.
    pub fn metric_as_admin(&self, sample: &str) -> Option<f64> {
        let text = self.admin("GET", "/metrics", b"").text();
        text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
    }

    /// The value of a metric's sample, named with its labels as rendered.
    pub fn metric(&self, sample: &str) -> Option<f64> {
        let text = self.get("/metrics").text();
        text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(mut command: Command) -> (Child, Arc<Log>) {
    let mut child = command.spawn().unwrap();
    let log = Arc::new(Log::default());
    let (errors, sink) = (child.stderr.take().unwrap(), Arc::clone(&log));
    thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            sink.lines.lock().unwrap().push(line);
            sink.grown.notify_all();
        }
    });
    (child, log)
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The problem's code.
    #[track_caller]
    pub fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        self.json()["code"].as_str().unwrap().to_owned()
    }
}

/// A connection that sends what it is told to.
#[derive(Debug)]
pub struct Connection<S> {
    stream: BufReader<S>,
}

impl Connection<TcpStream> {
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}

impl<S: Read + Write> Connection<S> {
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str("host: localhost\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.raw(&[head.as_bytes(), body].concat());
    }

    /// Sends bytes as they are; a peer that closed already is for the reply to find out.
    pub fn raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub fn reply(&mut self) -> Reply {
        self.reply_to("GET")
    }

    #[track_caller]
    pub fn reply_to(&mut self, method: &str) -> Reply {
        self.try_reply(method).expect("the connection was closed without an answer")
    }

    /// An answer, or nothing if the peer closed. Of events that come one by one, and may never end, only the head is
    /// read.
    pub fn try_reply(&mut self, method: &str) -> Option<Reply> {
        let mut reply = self.try_head()?;
        if method == "HEAD" || reply.status == 304 {
            return Some(reply);
        }
        if reply.header("transfer-encoding") == Some("chunked") {
            if reply.header("content-type") == Some("text/event-stream") {
                return Some(reply);
            }
            while let Some(chunk) = self.try_chunk() {
                reply.body.extend(chunk);
            }
        } else {
            let length: usize = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
            reply.body = vec![0; length];
            self.stream.read_exact(&mut reply.body).ok()?;
        }
        Some(reply)
    }

    /// The next chunk of a body that comes in chunks; nothing at its end.
    pub fn try_chunk(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim_end(), 16).ok().filter(|length| *length > 0)?;
        let mut chunk = vec![0; length + 2];
        self.stream.read_exact(&mut chunk).ok()?;
        chunk.truncate(length);
        Some(chunk)
    }

    /// The head of an answer, or nothing if the peer closed.
    pub fn try_head(&mut self) -> Option<Reply> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Some(Reply { status, headers, body: Vec::new() })
    }

    /// Waits for the peer to close.
    #[track_caller]
    pub fn closed(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => rest,
            Err(error) => panic!("the connection stays open: {error}"),
        }
    }
}

/// A document with everything that is required.
pub fn document(name: &str, title: &str) -> String {
    format!(
        "name: {name}\ntitle: {title}\ndescription: d\ncategory: test\ncapabilities: []\nkeywords: []\nuse_cases: []\n"
    )
}

/// The shipped documents.
pub fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tool_metadata")
}

/// A daemon on what ships.
pub fn serve_shipped() -> (Site, Daemon) {
    let site = Site::new();
    let daemon = serve_shipped_on(&site);
    (site, daemon)
}

/// The same on a site that is there.
pub fn serve_shipped_on(site: &Site) -> Daemon {
    let mut command = site.command();
    command.arg("--tool-metadata").arg(shipped());
    Daemon::start(command, site.path("state/admin.sock"))
}

/// Posts what must be answered well.
pub fn ask(daemon: &Daemon, path: &str, body: &Value) -> Value {
    let reply = daemon.post(path, &body.to_string());
    assert!(reply.status < 300, "{path} {body}: {}", reply.text());
    reply.json()
}
