//! A PgBouncer in transaction mode before a test's server: started, killed and started again. Where it is not
//! installed, the test says so and passes, unless `ALMANAC_TEST_COUNTERPARTS` is set.

use std::env;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::address::DatabaseAddress;
use super::test_server::{TestServer, free_port};

/// Where Debian installs it.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// How long a start may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct TestPooler {
    port: u16,
    configuration: PathBuf,
    process: Option<Child>,
}

impl TestPooler {
    #[expect(clippy::print_stderr, reason = "it is said beside the outcome of the tests")]
    pub(super) fn is_installed() -> bool {
        let is_installed = Path::new(PROGRAM).exists();
        if !is_installed {
            assert!(env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "PgBouncer is not installed");
            eprintln!("skipped: PgBouncer is not installed");
        }
        is_installed
    }

    /// Makes one that has at most `size` connections to each of the server's databases.
    pub(super) fn before(server: &TestServer, size: usize) -> Self {
        Self::at(server, &format!("host={} port={}", server.sockets().display(), server.port()), size)
    }

    /// The same, with its connections to a port of this machine, behind which the server is.
    pub(super) fn before_port(server: &TestServer, port: u16, size: usize) -> Self {
        Self::at(server, &format!("host=127.0.0.1 port={port}"), size)
    }

    fn at(server: &TestServer, place: &str, size: usize) -> Self {
        let (port, sockets) = (free_port(), server.sockets().display());
        let users = server.put(&format!("pooler-{port}.users"), "\"postgres\" \"\"\n");
        let settings = format!(
            "[databases]\n* = {place}\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\nunix_socket_dir = {sockets}\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = {size}\n\
             server_login_retry = 1\nlogfile = {sockets}/pooler-{port}.log\n",
            users.display()
        );
        let configuration = server.put(&format!("pooler-{port}.ini"), &settings);
        let mut pooler = Self { port, configuration, process: None };
        pooler.restart(server);
        pooler
    }

    /// What a URL without host says, of the server through this pooler.
    pub(super) fn address(&self, server: &TestServer, user: &str, rest: &str) -> DatabaseAddress {
        server.address_at(self.port, user, rest)
    }

    /// Starts it, after a kill as well.
    pub(super) fn restart(&mut self, server: &TestServer) {
        let mut start = server.command(PROGRAM);
        start.arg("--quiet").arg(&self.configuration).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = start.spawn().unwrap();
        let (socket, deadline) = (server.sockets().join(format!(".s.PGSQL.{}", self.port)), Instant::now() + PATIENCE);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < deadline && process.try_wait().unwrap().is_none(), "PgBouncer does not start");
        }
        self.process = Some(process);
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for TestPooler {
    fn drop(&mut self) {
        self.kill();
    }
}
