//! One call of the command that is measured.

use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::measured::Level;
use crate::timing::{Observation, Outcome};

/// A shell command, with the call in its environment.
#[derive(Debug)]
pub(super) struct Measurement<'a> {
    pub(super) command: &'a str,
    pub(super) mode: &'a str,
    pub(super) limit: Duration,
}

impl Measurement<'_> {
    /// Runs the command to its end, or to the limit. If the caller stops waiting, it is killed.
    pub(super) async fn run(&self, tool: &str, level: Level) -> io::Result<Observation> {
        let sizes = level.sizes();
        let number = |size: Option<u32>| size.unwrap_or(0).to_string();
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", self.command])
            .env("ALMANAC_TOOL", tool)
            .env("ALMANAC_MODE", self.mode)
            .env("ALMANAC_COMPLEXITY", level.as_str())
            .env("ALMANAC_CONTENT_LENGTH", sizes.content_length.unwrap_or_default().to_string())
            .env("ALMANAC_NUM_PERSPECTIVES", number(sizes.num_perspectives))
            .env("ALMANAC_NUM_BRANCHES", number(sizes.num_branches))
            .env("ALMANAC_THINKING_BUDGET", number(sizes.thinking_budget))
            .stdin(Stdio::null())
            // What it answers is its own affair; what it complains of is the operator's.
            .stdout(Stdio::null())
            // Its children are killed with it.
            .process_group(0);
        let started = Instant::now();
        let mut running = Running(command.spawn()?);
        let outcome = match timeout(self.limit, running.0.wait()).await {
            Ok(status) => {
                if status?.success() {
                    Outcome::Success
                } else {
                    Outcome::Error
                }
            }
            Err(_) => Outcome::Timeout,
        };
        let waited = started.elapsed();
        if outcome == Outcome::Timeout {
            running.kill();
            running.0.wait().await?;
        }
        Ok(Observation { duration_ms: (waited.as_secs_f64() * 1000.0).round() as u64, outcome })
    }
}

/// A command that does not outlive whoever waits for it.
struct Running(Child);

impl Running {
    fn kill(&self) {
        // There is no id once it was waited for.
        let id = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            // If it ended meanwhile, there is nobody to kill.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
