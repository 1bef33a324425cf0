//! A process that is measured, and what the kernel keeps account of.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::Client;

/// Nothing that is measured takes longer than this to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running process; ends when this is dropped.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = quiet.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { child })
    }

    /// Waits until it answers a GET of `path` with 200.
    pub(crate) fn await_answer(&mut self, address: SocketAddr, path: &str) -> Result<()> {
        let start = Instant::now();
        while !answers(address, path) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended before it answered: {status}");
            }
            if start.elapsed() > PATIENCE {
                bail!("the server did not answer in time");
            }
        }
        Ok(())
    }

    /// The time that its threads, and those of its children, spent on a core. Exact to the nanosecond where utime and
    /// stime count ticks; what threads that ended have spent is missing, but no server here ends threads while it
    /// is measured.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        cpu_of_tree(self.child.id())
    }

    /// Memory in bytes that it shares with no other process.
    pub(crate) fn private_memory(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let private =
            text.lines().filter(|line| line.starts_with("Private_Clean:") || line.starts_with("Private_Dirty:"));
        let kilobytes = private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        Ok(kilobytes.sum::<u64>() * 1024)
    }
}

/// A process that answers HTTP.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    /// Its files, which live as long as it does.
    pub(crate) _home: TempDir,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Politely, since nginx leaves its workers behind when it is killed. What failed here has ended already.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

fn answers(address: SocketAddr, path: &str) -> bool {
    let status = Client::connect(address).and_then(|mut client| Ok(client.get(path, "")?.status()));
    status.is_ok_and(|status| status == 200)
}

fn cpu_of_tree(pid: u32) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        total += on_core(&task)?;
        let children = fs::read_to_string(task.join("children"))?;
        for child in children.split_whitespace() {
            total += cpu_of_tree(child.parse()?)?;
        }
    }
    Ok(total)
}

/// The time that the thread with this directory under /proc spent on a core.
pub(crate) fn on_core(task: &Path) -> Result<Duration> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    let nanoseconds = text.split_whitespace().next().and_then(|field| field.parse().ok());
    Ok(Duration::from_nanos(nanoseconds.context("the kernel keeps no schedstat")?))
}

/// An address on loopback where nothing listens.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot bind an address")?;
    Ok(listener.local_addr()?)
}
