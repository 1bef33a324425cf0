//! D1 and D2: what an acknowledgement that survives the loss of power costs, beside the disk's own flush.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use almanac::store::{Sqlite, Store, sqlite};
use almanac::timing::{Execution, Measures, Outcome};
use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::family::{Family, Wanted};
use crate::quiet;
use crate::row::{Bar, Measured, Row};
use crate::sample::{Pairs, Spread};

pub(crate) const FAMILY: Family = Family { rows: &["D1", "D2"], needs: &[], run };

const ROUNDS: usize = 7;
const WRITES: u64 = 200;
const WRITERS: u64 = 16;

/// About what one record takes.
const RECORD: [u8; 200] = [7; 200];

fn run(wanted: Wanted<'_>) -> Result<Vec<Row>> {
    // Beside the build, since a temporary directory may be memory.
    let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let raw = preallocated(&home.path().join("raw"))?;
    let store = Sqlite::start(sqlite::Options::file(home.path().join("store.db")), Box::new(|_, _| ()))?;
    let [mut one, mut many] = <[Pairs; 2]>::default();
    for _ in quiet::rounds(ROUNDS) {
        let floor = flushes(&raw)?;
        one.push(acknowledgements(&store)?, floor);
        many.push(rate(&store)?, 1e6 / floor);
    }
    let mut rows = Vec::new();
    if wanted("D1") {
        let measured = Measured {
            ours: format!("{:.0} µs", one.ours()),
            theirs: format!("pwrite + fdatasync {:.0} µs", one.theirs()),
            figure: one.ratio(),
            bar: Bar::at_most(1.5),
        };
        rows.push(Row::new("D1", "durable acknowledgement, 1 writer, p50", measured));
    }
    if wanted("D2") {
        let measured = Measured {
            ours: format!("{:.0}/s", many.ours()),
            theirs: format!("fdatasync {:.0}/s", many.theirs()),
            figure: many.ratio(),
            bar: Bar::at_least(4.5),
        };
        rows.push(Row::new("D2", "durable records, 16 waiting writers", measured));
    }
    Ok(rows)
}

/// A file whose size does not change while it is written, so that a flush is one of data only.
fn preallocated(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    file.write_all_at(&vec![0; WRITES as usize * RECORD.len()], 0)?;
    file.sync_all()?;
    Ok(file)
}

/// Median microseconds of a write and its flush.
fn flushes(file: &File) -> Result<f64> {
    let mut took = Vec::new();
    for number in 0..WRITES {
        let start = Instant::now();
        file.write_all_at(&RECORD, number * RECORD.len() as u64)?;
        file.sync_data()?;
        took.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Spread::of(took).median)
}

/// Median microseconds from a record to its acknowledgement, when nobody else writes.
fn acknowledgements(store: &Sqlite) -> Result<f64> {
    let mut took = Vec::new();
    for number in 0..WRITES {
        let start = Instant::now();
        store.append(vec![execution(number)])?.durable_blocking()?;
        took.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Spread::of(took).median)
}

/// Records a second of writers that each wait for their acknowledgement.
fn rate(store: &Sqlite) -> Result<f64> {
    let failed = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let failed = &failed;
            scope.spawn(move || {
                for number in 0..WRITES {
                    let stored = store.append(vec![execution(writer * WRITES + number)]);
                    let durable = stored.and_then(almanac::store::Pending::durable_blocking);
                    failed.fetch_add(durable.is_err().into(), Ordering::Relaxed);
                }
            });
        }
    });
    let rate = (WRITERS * WRITES) as f64 / start.elapsed().as_secs_f64();
    (failed.into_inner() == 0).then_some(rate).context("the store refused records")
}

fn execution(number: u64) -> Execution {
    Execution {
        tenant: "default".to_owned(),
        tool: format!("tool_{}", number % 50),
        mode: None,
        duration_ms: Some(number),
        outcome: Outcome::Success,
        measures: Measures { content_length: Some(number), ..Measures::default() },
        session: Some("session".to_owned()),
        // Fresh enough to be kept.
        at_ms: i64::MAX / 2,
        idempotency_key: None,
    }
}
