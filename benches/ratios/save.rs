//! R2: from the save of a file to the first answer that says what it says now.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use tempfile::TempDir;

use crate::client::Client;
use crate::corpus::{self, Words};
use crate::daemon::Daemon;
use crate::family::{Family, Wanted};
use crate::peers::inotify::Watched;
use crate::row::{Bar, Measured, Row};
use crate::sample::{Pairs, Spread};

pub(crate) const FAMILY: Family = Family { rows: &["R2"], needs: &[], run };

const SAVES: usize = 80;
/// One save in so many comes after a long pause.
const LONG_PAUSE: usize = 8;

fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    [200, 2_000, 10_000].into_iter().map(measure).collect()
}

fn measure(tools: usize) -> Result<Row> {
    let home = TempDir::new()?;
    let [served, watched] = ["served", "watched"].map(|name| home.path().join(name));
    corpus::write(&served, tools)?;
    fs::create_dir(&watched)?;
    let daemon = Daemon::of(&served, None)?;
    let _process = daemon.ready()?;
    let floor = Watched::start(&watched)?;
    let mut client = Client::connect(daemon.address)?;
    let mut saver = Saver { staged: home.path().join("staged"), random: Words::new(tools as u64), tools };
    let mut pairs = Pairs::default();
    for round in 0..SAVES {
        let number = saver.random.number(tools);
        let mark = format!("save {round}");
        let saved = saver.save(&served, number, &mark)?;
        let answered = poll(&mut client, number, &mark)?;
        let moved = saver.save(&watched, number, &mark)?;
        let parsed = floor.parsed()?;
        pairs.push(milliseconds(answered - saved), milliseconds(parsed - moved));
    }
    // The bar is of medians: what is late once in a while shows in the quartiles of the pairs.
    let ratio = pairs.ours() / pairs.theirs();
    Ok(Row::new(
        "R2",
        format!("save → first new answer, {tools} tools, p50"),
        Measured {
            ours: format!("{:.2} ms", pairs.ours()),
            theirs: format!("event + parse {:.2} ms", pairs.theirs()),
            figure: Spread { median: ratio, ..pairs.ratio() },
            bar: Bar::at_most(3.0),
        },
    ))
}

struct Saver {
    /// A file in no watched directory.
    staged: PathBuf,
    random: Words,
    tools: usize,
}

impl Saver {
    /// Renames a new version of a document into `directory`, after a pause. Returns when.
    fn save(&mut self, directory: &Path, number: usize, mark: &str) -> Result<Instant> {
        fs::write(&self.staged, corpus::document(number, self.tools, mark))?;
        // The daemon is met while it waits, and while it looks over the directory after the save before.
        let pause = if self.random.number(LONG_PAUSE) == 0 { 200 } else { 5 + self.random.number(25) };
        sleep(Duration::from_millis(pause as u64));
        let now = Instant::now();
        fs::rename(&self.staged, corpus::file(directory, number))?;
        Ok(now)
    }
}

/// Asks until the answer has the mark. Returns when it had.
fn poll(client: &mut Client, number: usize, mark: &str) -> Result<Instant> {
    let (path, mark) = (format!("/v1/tools/{}", corpus::name(number)), format!(", {mark}\""));
    while !client.get(&path, "")?.contains(&mark) {}
    Ok(Instant::now())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
