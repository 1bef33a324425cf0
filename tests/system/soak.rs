//! Mixed load for as long as is asked, a few seconds unless something is, while memory, descriptors, threads and files
//! are watched: none of them may grow. Meanwhile documents are saved, all is reloaded, a library crashes, the disk is
//! full now and then, and the clock leaps. And ninety days, each of a start with a clock that is a day later.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::clocks::{self, DAY_S};
use crate::daemon::{Daemon, Site, ask, document, shipped, wait_until};
use crate::fixtures::hostile;

/// Share of the time that is to settle in: caches fill, allocators find their size.
const SETTLE: f64 = 0.3;

const MIB: f64 = 1024.0 * 1024.0;

/// What is watched, and what its growth may be in an hour on top of what the noise of its samples explains; in less
/// time as much as in half an hour, since an allocator's last step is no leak.
const FIGURES: [(&str, f64); 7] = [
    ("resident bytes", 2.0 * MIB),
    // Without pages of files, which the kernel takes and gives as it likes.
    ("anonymous bytes", 2.0 * MIB),
    ("descriptors", 1.0),
    ("threads", 1.0),
    ("journal bytes", 1024.0),
    ("log bytes beyond 16 MiB", 0.0),
    ("database bytes a record", 8.0),
];

/// Below so many seconds a slope tells nothing: what the load opened must be closed after it, and no more is asked.
const FROM: f64 = 60.0;

/// Descriptors that an idle daemon may have beside those of its start: a worker that was started anew, a file's lock.
const BESIDE: f64 = 16.0;

/// How far ahead the clock is, one after the other.
const LEAPS_S: [i64; 5] = [200 * DAY_S, -2 * 60 * 60, 400 * DAY_S, DAY_S, 0];

fn seconds() -> f64 {
    std::env::var("ALMANAC_SOAK_SECONDS").map_or(3.0, |text| text.parse().unwrap())
}

/// A figure as it was at moments, in whatever is to be the unit of time.
#[derive(Default)]
struct Series(Vec<(f64, f64)>);

impl Series {
    /// The slope of the least squares line, and its standard error.
    fn slope(&self) -> (f64, f64) {
        let count = self.0.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| self.0.iter().map(of).sum::<f64>() / count;
        let (at, value) = (mean(|sample| sample.0), mean(|sample| sample.1));
        let spread: f64 = self.0.iter().map(|sample| (sample.0 - at).powi(2)).sum();
        let slope = self.0.iter().map(|sample| (sample.0 - at) * (sample.1 - value)).sum::<f64>() / spread;
        let rest: f64 = self.0.iter().map(|sample| (sample.1 - value - slope * (sample.0 - at)).powi(2)).sum();
        (slope, (rest / (count - 2.0) / spread).sqrt())
    }

    /// Says the slope; grows it by more than is allowed and its noise explains?
    #[expect(clippy::print_stdout, reason = "the figures are what it is run for")]
    fn check(&self, what: &str, every: &str, allowed: f64) {
        let (slope, error) = self.slope();
        let last = self.0.last().map_or(0.0, |sample| sample.1);
        println!("{what}: {last:.0}, {slope:+.2} ± {:.2} {every}", 2.0 * error);
        let some: Vec<f64> = self.0.iter().step_by(self.0.len() / 20 + 1).map(|sample| sample.1).collect();
        assert!(slope - 3.0 * error <= allowed, "{what} grow by {slope:.2} ± {:.2} {every}: {some:.0?}", 2.0 * error);
    }
}

/// The daemon under load, and how to get at its files.
struct Load {
    site: Site,
    daemon: Daemon,
    clock: PathBuf,
    stop: AtomicBool,
    asked: AtomicU64,
    recorded: AtomicU64,
    /// Refused for want of space, or told that it might be kept.
    unsure: AtomicU64,
}

impl Load {
    /// A daemon whose state directory is a small disk of its own; nothing where none can be made.
    fn start(disk_bytes: u64) -> Option<Self> {
        let site = Site::new();
        for library in ["counter", "segfault_suggest"] {
            hostile(library, &site.path("plugins"));
        }
        let clock = site.path("clock");
        fs::write(&clock, 0_i64.to_ne_bytes()).unwrap();
        fs::create_dir(site.path("state")).unwrap();
        let state = site.path("state").display().to_string();
        let disk = format!("mount -t tmpfs -o size={disk_bytes},mode=700 tmpfs {state} && exec \"$@\"");
        let mut command = site.command_below(&["--mount"], &disk)?;
        command
            .arg("--tool-metadata")
            .arg(shipped())
            .arg("--admin-socket")
            .arg(site.path("admin.sock"))
            .env("LD_PRELOAD", clocks::preload(&site))
            .env("CLOCK_AHEAD_FILE", &clock);
        let daemon = Daemon::start(command, site.path("admin.sock"));
        wait_until("it to be ready", || daemon.get("/ready").status == 200);
        let counter = AtomicU64::default;
        let (stop, asked, recorded, unsure) = (AtomicBool::new(false), counter(), counter(), counter());
        Some(Self { site, daemon, clock, stop, asked, recorded, unsure })
    }

    /// A file of the state directory, as the daemon sees it.
    fn file(&self, name: &str) -> PathBuf {
        let seen = format!("/proc/{}/root", self.daemon.child.id());
        Path::new(&seen).join(self.site.path("state").strip_prefix("/").unwrap()).join(name)
    }

    fn figures(&self) -> [f64; FIGURES.len()] {
        let process = format!("/proc/{}", self.daemon.child.id());
        let count = |directory: &str| fs::read_dir(Path::new(&process).join(directory)).unwrap().count() as f64;
        let statm = fs::read_to_string(format!("{process}/statm")).unwrap();
        let pages: f64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        let shared: f64 = statm.split(' ').nth(2).unwrap().parse().unwrap();
        let size = |name| fs::metadata(self.file(name)).map_or(0, |file| file.len()) as f64;
        let records = self.recorded.load(Ordering::Relaxed).max(1) as f64;
        // A thousand pages, and those that the largest group writes.
        let (journal, log) = (size("almanac.journal"), (size("almanac.db-wal") - 16.0 * MIB).max(0.0));
        let (resident, anonymous) = (pages * 4096.0, (pages - shared) * 4096.0);
        [resident, anonymous, count("fd"), count("task"), journal, log, size("almanac.db") / records]
    }

    /// One client: questions, records, faulty requests, and connections that are left.
    fn ask_on(&self, number: usize) {
        let daemon = &self.daemon;
        for turn in (number..).step_by(7) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let session = format!("s{}", turn % 500);
            let message = json!({"message": "what is the weather like", "sessionId": session}).to_string();
            let record = json!({"tool_name": "web_search", "duration_ms": turn % 900, "session_id": session});
            let statuses = [
                daemon.get("/v1/tools/web_search").status,
                daemon.get("/v1/tools?q=compare&limit=5").status,
                daemon.post("/v1/qualify", &message).status,
                daemon.post("/v1/metadata", r#"{"tool": "trigger", "duration_ms": 1}"#).status,
                daemon.post("/v1/qualify", "{").status,
            ];
            assert!(statuses.iter().all(|status| (200..500).contains(status)), "{statuses:?}");
            self.record(&record);
            let mut left = daemon.connect();
            left.raw(b"POST /v1/estimate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{");
            self.asked.fetch_add(statuses.len() as u64 + 2, Ordering::Relaxed);
        }
    }

    /// Fills what is bounded by number, such as the latest calls: until then, memory grows as it is meant to.
    fn fill_memory(&self) {
        for batch in 0..60 {
            let call = |number: usize| {
                let session = format!("s{}", number % 500);
                json!({"tool_name": "web_search", "duration_ms": number % 900, "session_id": session})
            };
            let calls: Vec<Value> = (0..1000).map(|number| call(batch * 1000 + number)).collect();
            ask(&self.daemon, "/v1/executions", &Value::from(calls));
            self.recorded.fetch_add(1000, Ordering::Relaxed);
        }
    }

    fn record(&self, record: &Value) {
        let reply = self.daemon.post("/v1/executions", &record.to_string());
        match (reply.status, reply.status == 503 && reply.code() == "store-unavailable") {
            (201, _) => self.recorded.fetch_add(1, Ordering::Relaxed),
            (_, true) => self.unsure.fetch_add(1, Ordering::Relaxed),
            _ => panic!("{} {}", reply.status, reply.text()),
        };
    }

    /// Takes what is free on the disk, for so long.
    #[expect(clippy::disallowed_methods, reason = "the disk is full for a while")]
    fn fill_disk(&self, time: Duration) {
        let path = self.file("filler");
        let mut filler = File::create(&path).unwrap();
        for size in [1 << 20, 1 << 12, 1] {
            let block = vec![1; size];
            while filler.write_all(&block).is_ok() {}
        }
        thread::sleep(time);
        drop(filler);
        fs::remove_file(path).unwrap();
    }

    /// One round of what happens beside the questions.
    fn disturb(&self, round: usize, pause: Duration) {
        let name = format!("t{}", round % 50);
        self.site.save(&format!("{name}.yaml"), &document(&name, &format!("Round {round}")));
        match round % 20 {
            0 | 10 => {
                assert_eq!(self.daemon.admin("POST", "/-/reload", b"").status, 200);
                let _ = self.daemon.admin("POST", "/-/plugins/test.hostile.segfault-suggest/reset", b"");
            }
            5 => self.fill_disk(pause),
            15 => {
                // In its place: a mapped file that is cut ends who looks at it.
                let clock = File::options().write(true).open(&self.clock).unwrap();
                clock.write_all_at(&LEAPS_S[round / 20 % LEAPS_S.len()].to_ne_bytes(), 0).unwrap();
            }
            _ => {}
        }
    }

    /// Records in the database. Of a copy: SQLite takes links for what they say, and leaves the daemon's disk.
    fn kept(&self) -> u64 {
        let copy = TempDir::new().unwrap();
        for name in ["almanac.db", "almanac.db-wal"] {
            fs::copy(self.file(name), copy.path().join(name)).unwrap();
        }
        records(&copy.path().join("almanac.db"))
    }
}

fn records(database: &Path) -> u64 {
    let store = rusqlite::Connection::open(database).unwrap();
    let count: i64 = store.query_row("SELECT count(*) FROM executions", [], |row| row.get(0)).unwrap();
    count.cast_unsigned()
}

/// Sets it when it is dropped, also by a panic.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "samples are taken at equal distances")]
#[expect(clippy::print_stdout, reason = "the figures are what it is run for")]
fn nothing_grows() {
    let seconds = seconds();
    let Some(load) = Load::start((64.0 * MIB + seconds * MIB / 2.0) as u64) else { return };
    let [_, _, idle, ..] = load.figures();
    if seconds >= FROM {
        load.fill_memory();
    }
    let start = Instant::now();
    let mut series: [Series; FIGURES.len()] = Default::default();
    thread::scope(|scope| {
        for number in 0..3 {
            let load = &load;
            scope.spawn(move || load.ask_on(number));
        }
        let _stop = Stop(&load.stop);
        let pause = Duration::from_secs_f64((seconds / 300.0).clamp(0.1, 10.0));
        for round in 0.. {
            thread::sleep(pause);
            load.disturb(round, pause);
            let elapsed = start.elapsed().as_secs_f64();
            if elapsed >= seconds {
                return;
            }
            if elapsed >= SETTLE * seconds {
                let now = load.figures();
                series.iter_mut().zip(now).for_each(|(series, value)| series.0.push((elapsed / 3600.0, value)));
            }
        }
    });
    wait_until("what was opened to be closed", || load.figures()[2] <= idle + BESIDE);
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (recorded, unsure) = (of(&load.recorded), of(&load.unsure));
    println!("{} requests in {:.0} s", of(&load.asked), start.elapsed().as_secs_f64());
    println!("{recorded} records acknowledged, {unsure} refused while the disk was full");
    wait_until("all that was acknowledged", || (recorded..=recorded + unsure).contains(&load.kept()));
    if seconds >= FROM {
        let short = (3600.0 / 2.0 / ((1.0 - SETTLE) * seconds)).max(1.0);
        for (series, (what, allowed)) in series.iter().zip(FIGURES) {
            series.check(what, "an hour", allowed * short);
        }
    }
}

/// Each day calls take a little longer, as many as every day.
#[test]
fn ninety_days_leave_what_is_kept_for_thirty() {
    const CALLS: u64 = 200;
    let (days, kept_days) = (90, 30);
    let site = Site::new();
    site.configure(&format!("store: {{retention: {kept_days}d}}\n"));
    let took = |day: u64| 1000 * (1 + day);
    let (mut database, mut resident) = (Series::default(), Series::default());
    for day in 0..days {
        let mut daemon = clocks::start(&site, day as i64 * DAY_S);
        let calls: Vec<Value> = (0..CALLS).map(|_| json!({"tool_name": "a", "duration_ms": took(day)})).collect();
        ask(&daemon, "/v1/executions", &Value::from(calls));
        let estimate = clocks::estimate(&daemon)["estimated_duration_ms"].as_u64().unwrap();
        // To a bin of the grid.
        assert!(estimate >= took(day.saturating_sub(2)) * 9 / 10, "day {day}: {estimate}");
        let pages = fs::read_to_string(format!("/proc/{}/statm", daemon.child.id())).unwrap();
        let pages: f64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
        daemon.signal("TERM");
        assert!(daemon.wait().success());
        if day >= days * 2 / 3 {
            database.0.push((day as f64, fs::metadata(site.path("state/almanac.db")).unwrap().len() as f64));
            resident.0.push((day as f64, pages * 4096.0));
        }
    }
    let kept = records(&site.path("state/almanac.db"));
    assert!((kept_days * CALLS..=(kept_days + 3) * CALLS).contains(&kept), "{kept} records are kept");
    database.check("database bytes", "a day", 1024.0);
    resident.check("resident bytes at a start", "a day", 16.0 * 1024.0);
}
