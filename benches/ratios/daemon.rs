//! The daemon, as its users start it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::Result;
use tempfile::TempDir;

use crate::process::{Process, Server, free_address};

/// How to start a daemon.
pub(crate) struct Daemon {
    pub(crate) address: SocketAddr,
    tools: PathBuf,
    workers: Option<usize>,
    /// Further lines of its configuration.
    more: String,
    home: TempDir,
}

impl Daemon {
    /// One that serves the documents in `tools`, with default settings but for `workers`.
    pub(crate) fn of(tools: &Path, workers: Option<usize>) -> Result<Self> {
        Ok(Self {
            address: free_address()?,
            tools: tools.to_owned(),
            workers,
            more: String::new(),
            home: TempDir::new()?,
        })
    }

    /// The same with these lines in its configuration.
    pub(crate) fn with(self, more: &str) -> Self {
        Self { more: more.to_owned(), ..self }
    }

    /// Where it keeps what it knows.
    pub(crate) fn state(&self) -> Result<PathBuf> {
        let state = self.home.path().join("state");
        fs::create_dir_all(&state)?;
        Ok(state)
    }

    /// Where it keeps what it is told, so that it can be filled beforehand.
    pub(crate) fn database(&self) -> Result<PathBuf> {
        Ok(self.state()?.join("almanac.db"))
    }

    /// Starts it, without waiting for anything.
    pub(crate) fn start(&self) -> Result<Process> {
        let configuration = self.home.path().join("almanac.yaml");
        let workers = self.workers.map(|workers| format!("workers: {workers}\n")).unwrap_or_default();
        fs::write(&configuration, format!("drain_timeout: 1s\n{workers}{}", self.more))?;
        let mut command = Command::new(binary());
        command.arg("serve").arg("--config").arg(configuration);
        command.arg("--state-dir").arg(self.home.path().join("state"));
        command.arg("--tool-metadata").arg(&self.tools).arg("--listen").arg(self.address.to_string());
        Process::start(command.stderr(Stdio::null()))
    }

    /// The same, as a server among others.
    pub(crate) fn serve(self) -> Result<Server> {
        Ok(Server { process: self.ready()?, address: self.address, _home: self.home })
    }

    /// Starts it, and waits until it answers.
    pub(crate) fn ready(&self) -> Result<Process> {
        let mut process = self.start()?;
        process.await_answer(self.address, "/ready")?;
        Ok(process)
    }
}

/// Another build can be named, such as one of the `dist` profile.
pub(crate) fn binary() -> PathBuf {
    env::var_os("ALMANACD").map_or_else(|| env!("CARGO_BIN_EXE_almanacd").into(), PathBuf::from)
}
