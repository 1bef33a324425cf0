//! A disk that loses, tears and reorders what was not flushed: what the daemon does to its files is written down while
//! it records, takes its journal over, purges and ends; then the power goes at each moment of it, and a store is opened
//! on what a disk may have then.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use almanac::store::sqlite::{Options, file_in};
use almanac::store::{ExecutionFilter, Sqlite, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, Site, ask};
use crate::fixtures::compile;
use crate::memory::{self, message};

/// What a program did to a file.
#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
    Sync,
    Unlink,
}

#[derive(Debug, Clone)]
struct Step {
    path: PathBuf,
    change: Change,
    /// Where it ends in what was written down.
    end: u64,
}

impl Step {
    /// A flush of a file has its content reach the disk, one of a directory that a file is gone from it.
    fn flushes(&self, other: &Step) -> bool {
        match other.change {
            Change::Unlink => other.path.parent() == Some(&self.path),
            _ => other.path == self.path,
        }
    }

    /// Is it about what the store keeps?
    fn is_of_store(&self) -> bool {
        self.path.is_dir() || self.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("almanac"))
    }
}

/// The steps that were written down.
fn steps(log: &Path) -> Vec<Step> {
    let bytes = fs::read(log).unwrap();
    let number = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let (mut steps, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let length = number(at + 1) as usize;
        let path = PathBuf::from(std::str::from_utf8(&bytes[at + 9..at + 9 + length]).unwrap());
        let place = at + 9 + length;
        let (position, count) = (number(place), number(place + 8) as usize);
        let data = &bytes[place + 16..place + 16 + count];
        let change = match bytes[at] {
            b'w' => Change::Write(position, data.to_vec()),
            b't' => Change::Truncate(position),
            b's' => Change::Sync,
            b'u' => Change::Unlink,
            other => panic!("{other} at {at}"),
        };
        at = place + 16 + count;
        steps.push(Step { path, change, end: at as u64 });
    }
    steps
}

/// What stands on a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Disk(BTreeMap<PathBuf, Vec<u8>>);

impl Disk {
    fn apply(&mut self, step: &Step) {
        match &step.change {
            Change::Write(at, bytes) => {
                let file = self.0.entry(step.path.clone()).or_default();
                let (at, end) = (*at as usize, *at as usize + bytes.len());
                file.resize(file.len().max(end), 0);
                file[at..end].copy_from_slice(bytes);
            }
            Change::Truncate(length) => self.0.entry(step.path.clone()).or_default().resize(*length as usize, 0),
            Change::Sync => {}
            Change::Unlink => drop(self.0.remove(&step.path)),
        }
    }

    fn with<'s>(&self, steps: impl IntoIterator<Item = &'s Step>) -> Self {
        let mut disk = self.clone();
        steps.into_iter().for_each(|step| disk.apply(step));
        disk
    }

    fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// What a disk writes whole, in bytes.
const SECTOR: usize = 512;

/// A step of which only the first sectors reached the disk, if it has several.
fn torn(step: &Step) -> Option<Step> {
    let Change::Write(at, bytes) = &step.change else { return None };
    let middle = *at as usize + bytes.len() / 2;
    let end = (middle / SECTOR * SECTOR).checked_sub(*at as usize).filter(|length| *length > 0)?;
    Some(Step { change: Change::Write(*at, bytes[..end].to_vec()), ..step.clone() })
}

/// What may stand on the disk when the power goes behind each step: all that was done until then, or the last of it
/// torn; and before each flush, none of what was not flushed, all but one of it, or one alone. With each, how much was
/// written down by then.
fn disks(steps: &[Step], mut look: impl FnMut(&Disk, u64)) {
    let (mut flushed, mut pending): (Disk, Vec<&Step>) = Default::default();
    for step in steps {
        if let Change::Sync = step.change {
            look(&flushed, step.end - 1);
            for (place, alone) in pending.iter().enumerate() {
                let others = pending.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, step)| *step);
                look(&flushed.with(others), step.end - 1);
                look(&flushed.with([*alone]), step.end - 1);
            }
            let (of_step, others): (Vec<&Step>, Vec<&Step>) =
                pending.into_iter().partition(|pending| step.flushes(pending));
            flushed = flushed.with(of_step);
            pending = others;
            continue;
        }
        if let Some(torn) = torn(step) {
            look(&flushed.with(pending.iter().copied().chain([&torn])), step.end - 1);
        }
        pending.push(step);
        look(&flushed.with(pending.iter().copied()), step.end);
    }
}

fn records(store: &dyn Store) -> Vec<u64> {
    let wanted = ExecutionFilter { tenant: "default".into(), limit: 10_000, ..ExecutionFilter::default() };
    store.executions(&wanted).unwrap().calls.iter().map(|call| call.execution.duration_ms.unwrap()).collect()
}

/// Opens a store on the disk: all that was acknowledged is there once, nothing else twice, and the file is whole.
fn check(disk: &Disk, root: &Path, kept: &[u64], memories: &[String], what: &str) {
    let directory = TempDir::new_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
    for (path, bytes) in &disk.0 {
        let name = path.strip_prefix(root).unwrap();
        // No disk keeps what is shared between the processes of one start.
        if !name.to_string_lossy().ends_with("-shm") {
            fs::write(directory.path().join(name), bytes).unwrap();
        }
    }
    let file = file_in(directory.path());
    let store = Sqlite::start(Options::file(&file), Box::new(|_, _| ())).unwrap();
    assert_eq!(store.trouble(), None, "{what}");
    let found = records(&store);
    let once: HashSet<u64> = found.iter().copied().collect();
    assert_eq!(once.len(), found.len(), "{what}: something is there twice");
    let lost: Vec<&u64> = kept.iter().filter(|record| !once.contains(record)).collect();
    assert!(lost.is_empty(), "{what}: {lost:?} of {} are lost", kept.len());
    for id in memories {
        assert!(store.memories().get("default", id).unwrap().is_some(), "{what}: the memory {id} is lost");
    }
    drop(store);
    let connection = rusqlite::Connection::open(&file).unwrap();
    let whole: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok", "{what}");
}

#[test]
fn what_was_acknowledged_survives_any_disk() {
    let site = Site::new();
    let (shim, log, state) = (site.path("disk.so"), site.path("disk.log"), site.path("state"));
    compile("../disk", &[], &shim);
    let mut command = site.command();
    command.env("LD_PRELOAD", &shim).env("DISK_LOG", &log).env("DISK_ROOT", &state);
    let mut daemon = Daemon::start(command, site.path("state/admin.sock"));
    let told = || fs::metadata(&log).unwrap().len();
    // With each, how much was written down when it was acknowledged.
    let mut kept: Vec<(u64, u64)> = Vec::new();
    let mut memories: Vec<(u64, String)> = Vec::new();
    let mut next = 0;
    for round in 0..14 {
        let batch: Vec<Value> = (0..=round % 3)
            .map(|_| {
                next += 1;
                json!({"tool_name": "a", "duration_ms": next, "session_id": "x".repeat(round * 18)})
            })
            .collect();
        let from = next - batch.len() as u64;
        ask(&daemon, "/v1/executions", &Value::from(batch));
        kept.extend((from + 1..=next).map(|record| (told(), record)));
        match round % 7 {
            // A list has the journal taken over.
            2 | 6 => drop(daemon.json("/v1/executions?limit=1")),
            3 => {
                let added = memory::add(&daemon, "messages", &message("the kettle", "th", round as u64));
                memories.push((told(), memory::id(&added).to_owned()));
            }
            4 => {
                let gone = memory::add(&daemon, "messages", &message("nobody keeps this", "th", round as u64));
                let which = json!({"ids": [memory::id(&gone)]}).to_string();
                assert_eq!(daemon.admin("POST", "/-/memories/purge", which.as_bytes()).status, 200);
            }
            _ => {}
        }
    }
    daemon.signal("TERM");
    daemon.wait();
    let steps: Vec<Step> = steps(&log).into_iter().filter(Step::is_of_store).collect();
    let syncs = steps.iter().filter(|step| matches!(step.change, Change::Sync)).count();
    assert!(syncs > 20, "{syncs} flushes of {} steps were written down", steps.len());
    let (mut seen, mut number) = (HashSet::new(), 0);
    let state = fs::canonicalize(state).unwrap();
    disks(&steps, |disk, end| {
        if seen.insert((disk.number(), kept.iter().filter(|(at, _)| *at <= end).count())) {
            number += 1;
            let by_then = |at: u64| at <= end;
            let kept: Vec<u64> = kept.iter().filter(|(at, _)| by_then(*at)).map(|(_, record)| *record).collect();
            let memories: Vec<String> =
                memories.iter().filter(|(at, _)| by_then(*at)).map(|(_, id)| id.clone()).collect();
            check(disk, &state, &kept, &memories, &format!("disk {number}, at {end}"));
        }
    });
    let _ = writeln!(std::io::stderr(), "{number} disks of {} steps", steps.len());
    assert!(number > 100, "{number}");
}
