//! Mixed load for as long as is asked, a few seconds unless something is, while memory, descriptors, threads and files
//! are watched: none of them may grow.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::daemon::{Daemon, Site, document, serve_shipped_on, wait_until};
use crate::fixtures::hostile;

/// Share of the time that is to settle in: caches fill, allocators find their size.
const SETTLE: f64 = 0.3;

/// What the growth of each figure may be in an hour, on top of what the noise of its samples explains.
const ALLOWED: [(&str, f64); 4] =
    [("resident bytes", 2.0 * 1024.0 * 1024.0), ("descriptors", 1.0), ("threads", 1.0), ("journal bytes", 1024.0)];

/// Below so many seconds a slope tells nothing: what the load opened must be closed after it, and no more is asked.
const FROM: f64 = 60.0;

/// Descriptors that an idle daemon may have beside those of its start: a worker that was started anew, a file's lock.
const BESIDE: f64 = 16.0;

/// A figure as it was at moments, in hours.
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
}

fn figures(daemon: &Daemon, site: &Site) -> [f64; 4] {
    let process = format!("/proc/{}", daemon.child.id());
    let count = |directory: &str| fs::read_dir(Path::new(&process).join(directory)).unwrap().count() as f64;
    let pages = fs::read_to_string(format!("{process}/statm")).unwrap();
    let pages: f64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    let journal = fs::metadata(site.path("state/almanac.journal")).map_or(0, |file| file.len());
    [pages * 4096.0, count("fd"), count("task"), journal as f64]
}

/// One client: questions, records, faulty requests, and connections that are left.
fn ask_on(daemon: &Daemon, stop: &AtomicBool, number: usize, asked: &AtomicU64) {
    for turn in (number..).step_by(7) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let session = format!("s{}", turn % 500);
        let message = json!({"message": "what is the weather like", "sessionId": session}).to_string();
        let record = json!({"tool_name": "web_search", "duration_ms": turn % 900, "session_id": session}).to_string();
        let statuses = [
            daemon.get("/v1/tools/web_search").status,
            daemon.get("/v1/tools?q=compare&limit=5").status,
            daemon.post("/v1/qualify", &message).status,
            daemon.post("/v1/executions", &record).status,
            daemon.post("/v1/metadata", r#"{"tool": "trigger", "duration_ms": 1}"#).status,
            daemon.post("/v1/qualify", "{").status,
        ];
        assert!(statuses.iter().all(|status| (200..500).contains(status)), "{statuses:?}");
        let mut left = daemon.connect();
        left.raw(b"POST /v1/estimate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{");
        asked.fetch_add(statuses.len() as u64 + 1, Ordering::Relaxed);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "samples are taken at equal distances")]
#[expect(clippy::print_stdout, reason = "the figures are what it is run for")]
fn nothing_grows() {
    let seconds: f64 = std::env::var("ALMANAC_SOAK_SECONDS").map_or(3.0, |text| text.parse().unwrap());
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    hostile("segfault_suggest", &site.path("plugins"));
    let daemon = serve_shipped_on(&site);
    wait_until("it to be ready", || daemon.get("/ready").status == 200);
    let [_, idle, ..] = figures(&daemon, &site);
    let (stop, asked, start) = (AtomicBool::new(false), AtomicU64::new(0), Instant::now());
    let mut series: [Series; 4] = std::array::from_fn(|_| Series(Vec::new()));
    thread::scope(|scope| {
        for number in 0..3 {
            let (daemon, stop, asked) = (&daemon, &stop, &asked);
            scope.spawn(move || ask_on(daemon, stop, number, asked));
        }
        for round in 0.. {
            thread::sleep(Duration::from_secs_f64((seconds / 300.0).clamp(0.1, 10.0)));
            site.save(&format!("t{}.yaml", round % 50), &document(&format!("t{}", round % 50), &round.to_string()));
            if round % 10 == 0 {
                assert_eq!(daemon.admin("POST", "/-/reload", b"").status, 200);
                let _ = daemon.admin("POST", "/-/plugins/test.hostile.segfault-suggest/reset", b"");
            }
            let hours = start.elapsed().as_secs_f64() / 3600.0;
            if start.elapsed().as_secs_f64() >= seconds {
                stop.store(true, Ordering::Relaxed);
                return;
            }
            if start.elapsed().as_secs_f64() >= SETTLE * seconds {
                let now = figures(&daemon, &site);
                series.iter_mut().zip(now).for_each(|(series, value)| series.0.push((hours, value)));
            }
        }
    });
    wait_until("what was opened to be closed", || figures(&daemon, &site)[1] <= idle + BESIDE);
    println!("{} requests in {:.0} s", asked.into_inner(), start.elapsed().as_secs_f64());
    for (series, (what, allowed)) in series.iter().zip(ALLOWED) {
        let (slope, error) = series.slope();
        let last = series.0.last().map_or(0.0, |sample| sample.1);
        println!("{what}: {last:.0}, {slope:+.1} ± {:.1} an hour", 2.0 * error);
        assert!(
            seconds < FROM || slope - 3.0 * error <= allowed,
            "{what} grow by {slope:.1} ± {:.1} an hour",
            2.0 * error
        );
    }
}
