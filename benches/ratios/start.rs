//! S2: from the start of the process to its first answer.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::family::{Family, Wanted};
use crate::row::{Bar, Measured, Row};
use crate::sample::Pairs;
use crate::{corpus, quiet};

pub(crate) const FAMILY: Family = Family { rows: &["S2"], needs: &[], run };

const TOOLS: usize = 200;
const ROUNDS: usize = 21;

fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    let home = TempDir::new()?;
    corpus::write(home.path(), TOOLS)?;
    let daemon = Daemon::of(home.path(), None)?;
    let mut pairs = Pairs::default();
    for _ in quiet::rounds(ROUNDS) {
        pairs.push(first_answer(&daemon)?, nothing()?);
    }
    Ok(vec![Row::new(
        "S2",
        format!("start → first answer, {TOOLS} tools"),
        Measured {
            ours: format!("{:.1} ms", pairs.ours()),
            theirs: format!("/bin/true {:.1} ms", pairs.theirs()),
            figure: pairs.difference(),
            bar: Bar::at_most(22.0).of(" ms"),
        },
    )])
}

/// Milliseconds until the daemon answers about a tool.
fn first_answer(daemon: &Daemon) -> Result<f64> {
    let path = format!("/v1/tools/{}", corpus::name(0));
    let start = Instant::now();
    let mut process = daemon.start()?;
    process.await_answer(daemon.address, &path)?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Milliseconds of a process that does nothing, from its start to its end.
fn nothing() -> Result<f64> {
    let start = Instant::now();
    Command::new("/bin/true").status().context("cannot run /bin/true")?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
