//! A PostgreSQL of a test's own. Where it is not installed, the test says so and passes, unless
//! `ALMANAC_TEST_COUNTERPARTS` is set.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::fs::statvfs;
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
        let mut server = Self::without_data();
        let mut make = server.command("initdb");
        make.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--pgdata"]);
        run(make.arg(server.data()));
        server.settle();
        server.restart();
        Some(server)
    }

    /// Where one may be made.
    fn without_data() -> Self {
        // It refuses to run as root.
        let user = rustix::process::geteuid().is_root().then(unprivileged);
        let directory = directory();
        if let Some((user, group)) = user {
            chown(directory.path(), Some(user), Some(group)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { directory, user, port, process: None }
    }

    /// A copy of it that follows it. From now on each commit waits until it stands there, too.
    pub fn standby(&mut self) -> Self {
        let mut standby = Self::without_data();
        let mut copy = standby.command("pg_basebackup");
        copy.args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "--username=postgres", "--pgdata"]);
        run(copy.arg(standby.data()).arg("--host").arg(self.directory.path()).arg("--port").arg(self.port.to_string()));
        standby.settle();
        // Told to one that runs, it would hold from some moment on.
        self.kill();
        self.set("synchronous_standby_names = '*'");
        self.restart();
        standby.restart();
        wait_until("the standby follows", || self.ask("SELECT sync_state FROM pg_stat_replication") == "sync");
        standby
    }

    /// Has it follow nobody any more, and be written.
    pub fn promote(&self) {
        run(self.command("pg_ctl").args(["promote", "--wait", "--pgdata"]).arg(self.data()));
    }

    /// Has it be read only from its next start on, as one that is to follow another.
    pub fn demote(&self) {
        fs::write(self.data().join("standby.signal"), "").unwrap();
    }

    /// What it answers, a row a line.
    pub fn ask(&self, sql: &str) -> String {
        let mut ask = self.command("psql");
        ask.args(["--no-psqlrc", "--tuples-only", "--no-align", "--username=postgres", "--dbname=postgres", "--port"]);
        ask.arg(self.port.to_string()).arg("--host").arg(self.directory.path()).arg("--command").arg(sql);
        run(&mut ask).trim().to_owned()
    }

    /// Says who is let in from its next start on, as `pg_hba.conf` does.
    pub fn admit(&self, rules: &str) {
        fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
    }

    /// Has a transaction that did this stay open until what is returned is dropped.
    pub fn hold(&self, sql: &str) -> ChildStdin {
        let mut ask = self.command("psql");
        ask.arg("--host").arg(self.directory.path()).args(["--port", &self.port.to_string(), "postgres", "postgres"]);
        let mut holder = ask.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap().stdin.unwrap();
        writeln!(holder, "BEGIN; {sql};").unwrap();
        holder
    }

    /// What it has, as a file.
    pub fn dump(&self) -> PathBuf {
        let file = self.directory.path().join("dump");
        self.by_tool("pg_dump", &["--format=custom", "--file"], &file);
        file
    }

    /// Puts back what it had; nothing of it may be there.
    pub fn restore(&self, dump: &Path) {
        self.by_tool("pg_restore", &["--exit-on-error", "--dbname=postgres"], dump);
    }

    fn by_tool(&self, program: &str, arguments: &[&str], file: &Path) {
        let mut command = self.command(program);
        command.args(["--username=postgres", "--port", &self.port.to_string(), "--host"]).arg(self.directory.path());
        run(command.args(arguments).arg(file));
    }

    /// Lets users of the machine come to its socket who are neither root nor its own.
    pub fn open_to_all(&self) {
        fs::set_permissions(self.directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Says where it listens; what was said before, as of one that it is a copy of, holds no more.
    fn settle(&self) {
        let (port, sockets) = (self.port, self.directory.path().display());
        self.set(&format!("port = {port}\nlisten_addresses = ''\nunix_socket_directories = '{sockets}'\nfsync = off"));
    }

    /// Adds lines to its configuration, of which the later stand.
    fn set(&self, lines: &str) {
        let mut file = OpenOptions::new().append(true).open(self.data().join("postgresql.auto.conf")).unwrap();
        writeln!(file, "{lines}").unwrap();
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
        Self::url_of(&[self], database)
    }

    /// Where a daemon finds that of them which may be written.
    pub fn url_of(servers: &[&Self], database: &str) -> String {
        let hosts: Vec<String> = servers.iter().map(|server| server.directory.path().display().to_string()).collect();
        let ports: Vec<String> = servers.iter().map(|server| server.port.to_string()).collect();
        format!("postgres:///{database}?user=postgres&host={}&port={}", hosts.join(","), ports.join(","))
    }

    /// Starts it, after a kill as well.
    pub fn restart(&mut self) {
        let (directory, data, port) = (self.directory.path().to_owned(), self.data(), self.port.to_string());
        wait_until("PostgreSQL", || {
            let has_ended = self.process.as_mut().is_none_or(|process| process.try_wait().unwrap().is_some());
            if has_ended {
                // The processes of the one before may not have ended yet.
                let mut start = self.command("postgres");
                start.arg("-D").arg(&data).stdout(Stdio::null()).stderr(Stdio::null());
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

/// Runs a program that has to succeed. Returns what it says.
fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// In memory where there is room: to make one is to make a thousand files. What it keeps need not outlive the machine.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let has_room = statvfs(memory).is_ok_and(|free| free.f_bavail * free.f_frsize >= 1 << 30);
    if has_room { TempDir::new_in(memory) } else { TempDir::new() }.unwrap()
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
