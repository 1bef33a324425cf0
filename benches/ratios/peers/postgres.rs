//! A PostgreSQL of a measurement's own, which flushes as it does out of the box.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::family;
use crate::process::Process;

const PORT: u16 = 5432;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Postgres {
    // Ends before its files go.
    _process: Process,
    directory: TempDir,
}

impl Postgres {
    pub(crate) fn start() -> Result<Self> {
        // Beside the build, since a temporary directory may be memory.
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let user = owner()?;
        if let Some((user, group)) = user {
            chown(directory.path(), Some(user), Some(group))?;
        }
        let command = |program: &str| -> Result<Command> {
            let mut command = Command::new(family::find(program).context("PostgreSQL is not installed")?);
            command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if let Some((user, group)) = user {
                command.uid(user).gid(group);
            }
            Ok(command)
        };
        let made = command("initdb")?
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--pgdata=data"])
            .status()?;
        if !made.success() {
            bail!("initdb failed: {made}");
        }
        let mut server = command("postgres")?;
        server.args(["-D", "data", "-c", "listen_addresses=", "-c"]);
        server.arg(format!("unix_socket_directories={}", directory.path().display()));
        let process = Process::start(&mut server)?;
        let until = Instant::now() + PATIENCE;
        loop {
            let mut ask = command("pg_isready")?;
            if ask.args(["--quiet", "--dbname=postgres", "--host"]).arg(directory.path()).status()?.success() {
                return Ok(Self { _process: process, directory });
            }
            if Instant::now() > until {
                bail!("PostgreSQL does not answer");
            }
        }
    }

    /// Where its socket is.
    pub(crate) fn socket(&self) -> &Path {
        self.directory.path()
    }

    /// What a daemon's configuration says of it.
    pub(crate) fn url(&self) -> String {
        format!("postgres:///postgres?user=postgres&host={}&port={PORT}", self.directory.path().display())
    }
}

/// It refuses to run as root: then somebody who may do nothing, by user and group.
fn owner() -> Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let nobody = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == "nobody");
    let fields = nobody.context("there is no user nobody")?;
    Ok(Some((fields[2].parse()?, fields[3].parse()?)))
}
