//! A PostgreSQL of a test's own: made, started, killed and started again. Where it is not installed, the test says so
//! and passes, unless `ALMANAC_TEST_COUNTERPARTS` is set.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use parking_lot::Mutex;
use rustix::fs::statvfs;
use tempfile::TempDir;

use super::address::{DatabaseAddress, Origin};

/// Where Debian installs it.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// How long a start may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct TestServer {
    directory: TempDir,
    user: Option<(u32, u32)>,
    port: u16,
    process: Option<Child>,
}

impl TestServer {
    /// Makes one that listens at a socket in its own directory and at a port of 127.0.0.1, where `postgres` is let in
    /// without a password from both; nothing if it is not installed.
    pub(super) fn start() -> Option<Self> {
        Self::with("", "local all all trust\nhost all all 127.0.0.1/32 trust\n")
    }

    /// The same with lines of its configuration, and other rules who is let in.
    #[expect(clippy::print_stderr, reason = "it is said beside the outcome of the tests")]
    pub(super) fn with(settings: &str, rules: &str) -> Option<Self> {
        if !Path::new(PROGRAMS).join("initdb").exists() {
            assert!(env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "PostgreSQL 15 is not installed");
            eprintln!("skipped: PostgreSQL 15 is not installed");
            return None;
        }
        // It refuses to run as root.
        let user = rustix::process::geteuid().is_root().then(unprivileged);
        let directory = directory();
        if let Some((user, group)) = user {
            chown(directory.path(), Some(user), Some(group)).unwrap();
        }
        let port = free_port();
        let mut server = Self { directory, user, port, process: None };
        let mut make = server.command("initdb");
        make.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--pgdata"]);
        let made = make.arg(server.data()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let sockets = server.directory.path().display();
        let ours = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{sockets}'\nfsync = off\n\
             {settings}\n"
        );
        fs::write(server.data().join("postgresql.auto.conf"), ours).unwrap();
        fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
        server.restart();
        Some(server)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Where its sockets are.
    pub(super) fn sockets(&self) -> &Path {
        self.directory.path()
    }

    /// A file that the server may read and nobody else.
    pub(super) fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if let Some((user, group)) = self.user {
            chown(&path, Some(user), Some(group)).unwrap();
        }
        path
    }

    /// Runs a program as the server's user, in its directory. One without a path is the server's.
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(Path::new(PROGRAMS).join(program));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// What a URL without host says, of this server by its socket.
    pub(super) fn address(&self, user: &str, rest: &str) -> DatabaseAddress {
        self.address_at(self.port, user, rest)
    }

    /// The same of what else listens at a socket in its directory.
    pub(super) fn address_at(&self, port: u16, user: &str, rest: &str) -> DatabaseAddress {
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = if path.is_empty() { "/postgres" } else { path };
        let sockets = self.sockets().display();
        let url = format!("postgres://{path}?user={user}&host={sockets}&port={port}&{query}");
        DatabaseAddress::parse(&url, Origin::Configuration).unwrap()
    }

    /// Starts it, after a kill as well.
    pub(super) fn restart(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut start = self.command("postgres");
            let log = fs::File::create(self.directory.path().join("log")).unwrap();
            start.arg("-D").arg(self.data()).stdout(Stdio::null()).stderr(log);
            let mut process = start.spawn().unwrap();
            loop {
                if self.is_ready() {
                    self.process = Some(process);
                    return;
                }
                assert!(Instant::now() < deadline, "{}", self.log());
                // The processes of the one before may not have ended yet.
                if process.try_wait().unwrap().is_some() {
                    break;
                }
            }
        }
    }

    fn is_ready(&self) -> bool {
        let mut ask = self.command("pg_isready");
        let port = self.port.to_string();
        ask.args(["--quiet", "--dbname=postgres", "--port", &port, "--host"]).arg(self.directory.path());
        ask.status().is_ok_and(|status| status.success())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Kills all its processes at once.
    pub(super) fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let id = process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        process.kill().unwrap();
        for child in children.split_whitespace().filter_map(|id| rustix::process::Pid::from_raw(id.parse().ok()?)) {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        }
        process.wait().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In memory where there is room: to make one is to make a thousand files. What it keeps need not outlive the machine.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let has_room = statvfs(memory).is_ok_and(|free| free.f_bavail * free.f_frsize >= 1 << 30);
    if has_room { TempDir::new_in(memory) } else { TempDir::new() }.unwrap()
}

/// A port that nobody listens at.
pub(super) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Somebody who may do nothing: user and group.
fn unprivileged() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let of = |name: &str| {
        let fields: Vec<&str> = users.lines().map(|line| line.split(':').collect()).find(|f: &Vec<_>| f[0] == name)?;
        Some((fields[2].parse().ok()?, fields[3].parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody")).expect("a user that is not root")
}

/// Stands before a server, passes on what both sides say, and can stop to.
pub(super) struct Proxy {
    port: u16,
    swallows: Arc<Swallows>,
}

#[derive(Default)]
struct Swallows {
    questions: AtomicBool,
    answers: AtomicBool,
    commit: Mutex<Option<Loss>>,
    /// Nobody is let through any more.
    is_gone: AtomicBool,
}

/// What is lost of a commit, with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Question,
    Answer,
    /// Nor does anybody come through after it.
    AnswerAndServer,
}

impl Proxy {
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn before(server: &TestServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, target, swallows) =
            (listener.local_addr().unwrap().port(), server.port(), Arc::<Swallows>::default());
        let shared = Arc::clone(&swallows);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                if shared.is_gone.load(Ordering::SeqCst) {
                    continue;
                }
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (swallows, is_lost) = (Arc::clone(&shared), Arc::<AtomicBool>::default());
                let lost = Arc::clone(&is_lost);
                thread::spawn(move || {
                    pass_on(from, to, |question| {
                        let is_commit = question.windows(7).any(|text| text == b"COMMIT\0");
                        let loss = swallows.commit.lock().take_if(|_| is_commit);
                        lost.store(loss.is_some(), Ordering::SeqCst);
                        swallows.is_gone.fetch_or(loss == Some(Loss::AnswerAndServer), Ordering::SeqCst);
                        match loss {
                            Some(Loss::Question) => Passing::End,
                            Some(_) => Passing::Last,
                            None if swallows.questions.load(Ordering::SeqCst) => Passing::Swallow,
                            None => Passing::On,
                        }
                    });
                });
                let swallows = Arc::clone(&shared);
                thread::spawn(move || {
                    pass_on(server, client, |_| match swallows.answers.load(Ordering::SeqCst) {
                        _ if is_lost.load(Ordering::SeqCst) => Passing::End,
                        true => Passing::Swallow,
                        false => Passing::On,
                    });
                });
            }
        });
        Self { port, swallows }
    }

    pub(super) fn address(&self) -> DatabaseAddress {
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", self.port);
        DatabaseAddress::parse(&url, Origin::Configuration).unwrap()
    }

    /// The next commit is lost.
    pub(super) fn lose_commit(&self, loss: Loss) {
        *self.swallows.commit.lock() = Some(loss);
    }

    /// From now on, or no more, nothing reaches the server.
    pub(super) fn swallow_questions(&self, does: bool) {
        self.swallows.questions.store(does, Ordering::SeqCst);
    }

    /// From now on, or no more, nothing that the server says comes back.
    pub(super) fn swallow_answers(&self, does: bool) {
        self.swallows.answers.store(does, Ordering::SeqCst);
    }
}

/// What becomes of some bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    On,
    Swallow,
    /// The connection ends after them.
    Last,
    End,
}

/// Passes bytes on until one side ends.
fn pass_on(mut from: TcpStream, mut to: TcpStream, passing: impl Fn(&[u8]) -> Passing) {
    let mut bytes = [0; 8192];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let is_passed = match passing(&bytes[..length]) {
            Passing::Swallow => true,
            Passing::On => to.write_all(&bytes[..length]).is_ok(),
            Passing::Last => {
                let _ = to.write_all(&bytes[..length]);
                false
            }
            Passing::End => false,
        };
        if !is_passed {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
