//! S1: what ten thousand tools take when nobody asks.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use almanac::catalog::load::{LoadOptions, load};
use anyhow::Result;
use tempfile::TempDir;

use crate::corpus;
use crate::daemon::Daemon;
use crate::family::{Family, Wanted};
use crate::process::Process;
use crate::row::{Bar, Measured, Row};
use crate::sample::Pairs;

pub(crate) const FAMILY: Family = Family { rows: &["S1"], needs: &[], run };

const TOOLS: usize = 10_000;
const ROUNDS: usize = 5;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    let home = TempDir::new()?;
    corpus::write(home.path(), TOOLS)?;
    let bodies = bodies(home.path());
    let mut pairs = Pairs::default();
    for _ in 0..ROUNDS {
        let process = Daemon::of(home.path(), None)?.ready()?;
        pairs.push(settled(&process)?, bodies);
    }
    Ok(vec![Row::new(
        "S1",
        format!("idle private memory, {TOOLS} tools"),
        Measured {
            ours: format!("{:.1} MiB", pairs.ours() / MEBIBYTE),
            theirs: format!("bodies {:.1} MiB", pairs.theirs() / MEBIBYTE),
            figure: pairs.ratio(),
            bar: Bar::at_most(1.5),
        },
    )])
}

/// Bytes of all documents as they are answered.
fn bodies(directory: &Path) -> f64 {
    let loaded = load(LoadOptions::directory(directory));
    loaded.catalog.iter().map(|entry| entry.body().len()).sum::<usize>() as f64
}

/// Bytes that the process holds once that no longer changes.
fn settled(process: &Process) -> Result<f64> {
    const EQUAL: usize = 6;
    let mut readings = Vec::new();
    loop {
        readings.push(process.private_memory()?);
        if let Some(last) = readings.last_chunk::<EQUAL>()
            && last.iter().all(|reading| *reading == last[0])
        {
            return Ok(last[0] as f64);
        }
        sleep(Duration::from_millis(500));
    }
}
