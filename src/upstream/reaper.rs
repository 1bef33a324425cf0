//! Processes that nobody waits for: what servers started, and left behind.
//!
//! The daemon is the subreaper of all that it started, so that nothing escapes into the system unseen.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Between two looks. Whoever waits for a process of its own has done so by then.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// Takes note of the end of processes that nobody else does.
#[derive(Debug, Default)]
pub(super) struct Reaper {
    seen: BTreeSet<i32>,
}

impl Reaper {
    /// Takes note of the end of those that had ended when this was asked the last time already.
    pub(super) fn look(&mut self) {
        let ended: BTreeSet<i32> = children().into_iter().filter(|pid| has_ended(*pid)).collect();
        for pid in ended.intersection(&self.seen).filter_map(|pid| Pid::from_raw(*pid)) {
            // Only this one: whoever waits for another must find it.
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        self.seen = ended;
    }
}

/// The children of all threads of this process.
fn children() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(Result::ok);
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

fn has_ended(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

/// Has processes that lose their parent become children of this one.
pub(super) fn become_subreaper() {
    let own = Pid::from_raw(std::process::id().cast_signed());
    if let Err(error) = rustix::process::set_child_subreaper(own) {
        tracing::warn!(%error, "what servers leave behind cannot be followed");
    }
}
