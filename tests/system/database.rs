//! A PostgreSQL of a test's own. Where it is not installed, the test says so and passes, unless
//! `ALMANAC_TEST_COUNTERPARTS` is set.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::daemon::wait_until;

/// Where Debian installs it.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

pub struct DatabaseServer {
    directory: TempDir,
    user: Option<(u32, u32)>,
    port: u16,
    process: Option<Child>,
}

impl DatabaseServer {
    /// Makes one that lets `postgres` in without a password; nothing if it is not installed.
    pub fn start() -> Option<Self> {
        if !Path::new(PROGRAMS).join("initdb").exists() {
            assert!(std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "PostgreSQL 15 is not installed");
            let _ = writeln!(std::io::stderr(), "skipped: PostgreSQL 15 is not installed");
            return None;
        }
        // It refuses to run as root.
        let user = rustix::process::geteuid().is_root().then(unprivileged);
        let directory = TempDir::new().unwrap();
        if let Some((user, group)) = user {
            chown(directory.path(), Some(user), Some(group)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { directory, user, port, process: None };
        let data = server.directory.path().join("data");
        let mut make = server.command("initdb");
        make.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--pgdata"]);
        let made = make.arg(&data).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let sockets = server.directory.path().display();
        let settings =
            format!("port = {port}\nlisten_addresses = ''\nunix_socket_directories = '{sockets}'\nfsync = off\n");
        fs::write(data.join("postgresql.auto.conf"), settings).unwrap();
        server.restart();
        Some(server)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(Path::new(PROGRAMS).join(program));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// Where a daemon finds it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?user=postgres&host={}&port={}", self.directory.path().display(), self.port)
    }

    /// Starts it, after a kill as well.
    pub fn restart(&mut self) {
        let (directory, port) = (self.directory.path().to_owned(), self.port.to_string());
        wait_until("PostgreSQL", || {
            let has_ended = self.process.as_mut().is_none_or(|process| process.try_wait().unwrap().is_some());
            if has_ended {
                // The processes of the one before may not have ended yet.
                let mut start = self.command("postgres");
                start.arg("-D").arg(directory.join("data")).stdout(Stdio::null()).stderr(Stdio::null());
                self.process = Some(start.spawn().unwrap());
            }
            let mut ask = self.command("pg_isready");
            ask.args(["--quiet", "--dbname=postgres", "--port", &port, "--host"]).arg(&directory);
            ask.status().is_ok_and(|status| status.success())
        });
    }

    /// Kills all its processes at once: those that serve connections would go on for a moment.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let id = process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        process.kill().unwrap();
        for child in children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)) {
            // It may have ended by itself.
            let _ = kill_process(child, Signal::KILL);
        }
        process.wait().unwrap();
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        self.kill();
    }
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
