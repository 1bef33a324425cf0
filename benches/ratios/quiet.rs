//! Waiting for a machine that others use too to be quiet.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// How long to look before deciding.
const LOOK: Duration = Duration::from_millis(100);

/// More looks than this are not taken before one round: a late figure is better than none.
const LOOKS: usize = 150;

/// A machine that is busier than this, of all its cores, is not quiet.
const BUSY: f64 = 0.15;

/// Counts `rounds`, each once the machine is quiet.
pub(crate) fn rounds(rounds: usize) -> impl Iterator<Item = usize> {
    (0..rounds).inspect(|_| wait())
}

fn wait() {
    let mut before = ticks();
    for _ in 0..LOOKS {
        sleep(LOOK);
        let after = ticks();
        let (all, idle) = (after.0 - before.0, after.1 - before.1);
        if all <= 0.0 || 1.0 - idle / all < BUSY {
            return;
        }
        before = after;
    }
}

/// Ticks of all cores since the machine started, and those of them that were idle.
fn ticks() -> (f64, f64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).take(8).filter_map(|tick| tick.parse().ok()).collect();
    // user, nice, system, idle, iowait, …
    (ticks.iter().sum(), ticks.iter().skip(3).take(2).sum())
}
