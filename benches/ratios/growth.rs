//! G1 to G5: what grows with what is kept, at three sizes each.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use serde_yaml::Value;
use tempfile::TempDir;

use crate::client::{Client, request};
use crate::daemon::Daemon;
use crate::family::{Family, Wanted};
use crate::process::Process;
use crate::row::{Bar, Measured, Row};
use crate::sample::{Pairs, Spread};
use crate::{corpus, quiet};

pub(crate) const FAMILY: Family = Family { rows: &["G1", "G2", "G3", "G4", "G5"], needs: &[], run };

const TOOLS: [usize; 3] = [200, 2_000, 10_000];
const RECORDS: [usize; 3] = [10_000, 100_000, 1_000_000];
const CONNECTIONS: [usize; 3] = [100, 1_000, 9_000];
const STREAMS: [usize; 3] = [10, 100, 1_000];
const ROUNDS: usize = 5;

/// Records of one request, and requests of one figure.
const BATCH: usize = 1_000;
const BATCHES: usize = 8;

/// As many connections and streams as are opened.
const MANY: &str = "http:\n  max_connections: 12000\n  max_streams: 2000\n  idle_timeout: 10m\n";

fn run(wanted: Wanted<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if wanted("G1") {
        for tools in TOOLS {
            rows.push(start_among(tools)?);
        }
    }
    if wanted("G2") || wanted("G3") {
        rows.extend(records()?.into_iter().filter(|row| wanted(row.id)));
    }
    if wanted("G4") {
        rows.extend(held("G4", "an idle connection", &CONNECTIONS, "/live", 8.0)?);
    }
    if wanted("G5") {
        rows.extend(held("G5", "an open stream of events", &STREAMS, "/v1/events", 32.0)?);
    }
    Ok(rows)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn start_among(tools: usize) -> Result<Row> {
    let home = TempDir::new()?;
    corpus::write(home.path(), tools)?;
    let files: Vec<PathBuf> = (0..tools).map(|number| corpus::file(home.path(), number)).collect();
    let daemon = Daemon::of(home.path(), None)?;
    let mut pairs = Pairs::default();
    for _ in quiet::rounds(ROUNDS) {
        let start = Instant::now();
        let process = first_answer(&daemon)?;
        let ours = milliseconds(start);
        drop(process);
        pairs.push(ours, parsed_on_all_cores(&files)?);
    }
    let bar = if tools == TOOLS[TOOLS.len() - 1] { Bar::at_most(1.3) } else { Bar::OPEN };
    Ok(Row::new(
        "G1",
        format!("start → first answer, {tools} tools"),
        Measured {
            ours: format!("{:.0} ms", pairs.ours()),
            theirs: format!("parallel parse {:.0} ms", pairs.theirs()),
            figure: pairs.ratio(),
            bar,
        },
    ))
}

fn first_answer(daemon: &Daemon) -> Result<Process> {
    let mut process = daemon.start()?;
    process.await_answer(daemon.address, &format!("/v1/tools/{}", corpus::name(0)))?;
    Ok(process)
}

/// Milliseconds of reading and parsing, file by file, on all cores.
fn parsed_on_all_cores(files: &[PathBuf]) -> Result<f64> {
    let parts = thread::available_parallelism()?.get();
    let parse = |files: &[PathBuf]| -> Result<()> {
        for file in files {
            black_box(serde_yaml::from_slice::<Value>(&fs::read(file)?)?);
        }
        Ok(())
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let parts: Vec<_> =
            files.chunks(files.len().div_ceil(parts)).map(|part| scope.spawn(move || parse(part))).collect();
        parts.into_iter().try_for_each(|part| part.join().expect("parsing does not panic"))
    })?;
    Ok(milliseconds(start))
}

/// What a record costs, and then a start, after so many.
fn records() -> Result<Vec<Row>> {
    let tools = TempDir::new()?;
    corpus::write(tools.path(), TOOLS[0])?;
    let [mut costs, mut starts] = <[Vec<Row>; 2]>::default();
    let daemon = Daemon::of(tools.path(), None)?;
    let empty = starts_of(&daemon)?;
    let (mut stored, mut first) = (0, None);
    for size in RECORDS {
        let process = daemon.ready()?;
        let mut client = Client::connect(daemon.address)?;
        while stored < size - BATCH * BATCHES {
            stored += record(&mut client, stored)?;
        }
        let mut figures = Vec::new();
        let began = Instant::now();
        for _ in 0..BATCHES {
            let before = process.cpu()?;
            stored += record(&mut client, stored)?;
            figures.push(process.cpu()?.saturating_sub(before).as_secs_f64() * 1e6 / BATCH as f64);
        }
        let rate = (BATCH * BATCHES) as f64 / began.elapsed().as_secs_f64();
        let cost = Spread::of(figures);
        let of_first = *first.get_or_insert(cost.median);
        costs.push(Row::new(
            "G2",
            format!("CPU of a record with a key, {} stored", thousands(size)),
            Measured {
                ours: format!("{:.1} µs, {rate:.0}/s", cost.median),
                theirs: format!("after {} {of_first:.1} µs", thousands(RECORDS[0])),
                figure: Spread { median: cost.median / of_first, low: cost.low / of_first, high: cost.high / of_first },
                bar: Bar::at_most(1.15),
            },
        ));
        drop((client, process));
        let after = starts_of(&daemon)?;
        let more = |after: f64| after - empty.median;
        starts.push(Row::new(
            "G3",
            format!("start after {} records", thousands(size)),
            Measured {
                ours: format!("{:.0} ms", after.median),
                theirs: format!("after none {:.0} ms", empty.median),
                figure: Spread { median: more(after.median), low: more(after.low), high: more(after.high) },
                bar: Bar::at_most(100.0).of(" ms"),
            },
        ));
    }
    Ok(costs.into_iter().chain(starts).collect())
}

fn thousands(number: usize) -> String {
    format!("{} thousand", number / 1_000)
}

/// Milliseconds from a start to the first answer of what was learnt.
fn starts_of(daemon: &Daemon) -> Result<Spread> {
    let mut took = Vec::new();
    for _ in quiet::rounds(ROUNDS) {
        let start = Instant::now();
        let mut process = daemon.start()?;
        process.await_answer(daemon.address, "/v1/timing")?;
        took.push(milliseconds(start));
    }
    Ok(Spread::of(took))
}

/// Sends one batch, whose keys are in no order. Returns how many it had.
fn record(client: &mut Client, from: usize) -> Result<usize> {
    let records = (from..from + BATCH).map(|number| {
        let key = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        json!({
            "tool_name": corpus::name(number % TOOLS[0]),
            "duration_ms": 100 + number % 900,
            "session_id": format!("s{}", number / 20),
            "idempotency_key": format!("{key:016x}"),
        })
    });
    let answer = client.post("/v1/executions", &serde_json::to_string(&records.collect::<Vec<_>>())?)?;
    ensure!((200..300).contains(&answer.status()), "a batch was answered {}", answer.status());
    Ok(BATCH)
}

/// What each of so many connections takes that were answered and stay open.
fn held(id: &'static str, what: &str, sizes: &[usize], path: &str, most: f64) -> Result<Vec<Row>> {
    let tools = TempDir::new()?;
    corpus::write(tools.path(), TOOLS[0])?;
    let daemon = Daemon::of(tools.path(), None)?.with(MANY);
    let process = daemon.ready()?;
    let mut open = Vec::new();
    let before = settled(&process)?;
    let mut rows = Vec::new();
    for &size in sizes {
        while open.len() < size {
            let mut client = Client::connect(daemon.address)?;
            client.send(request(path, "").as_bytes())?;
            client.head()?;
            open.push(client);
        }
        let each = (settled(&process)? - before) / size as f64 / 1024.0;
        rows.push(Row::new(
            id,
            format!("memory of {what}, {size} of them"),
            Measured {
                ours: format!("{each:.1} KiB"),
                theirs: String::new(),
                figure: Spread::of([each]),
                bar: Bar::at_most(most).of(" KiB"),
            },
        ));
    }
    Ok(rows)
}

/// Private bytes, a moment after the last change.
fn settled(process: &Process) -> Result<f64> {
    thread::sleep(Duration::from_millis(500));
    Ok(process.private_memory()? as f64)
}
