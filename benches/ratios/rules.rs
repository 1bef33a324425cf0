//! P1: a call of a rule library through its worker, beside a byte to another process and back. And what its worker's
//! life costs.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use almanac::daemon::Config;
use almanac::plugin_host::{Ask, ComplexityLevel, Host, Snapshot, State, Tool};
use almanac::telemetry::Metrics;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::family::{Family, Wanted};
use crate::quiet;
use crate::row::{Bar, Measured, Row};
use crate::sample::{Pairs, Spread};

pub(crate) const FAMILY: Family = Family { rows: &["P1", "P2"], needs: &[], run };

const ROUNDS: usize = 9;
const CALLS: usize = 3000;
const LIVES: usize = 15;

/// The shipped library, as it is built for the benches.
pub(crate) fn library() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_almanacd")).with_file_name("deps").join("libalmanac_reasoning.so")
}

/// A host with the shipped library, and the directory that holds it.
struct Rules {
    host: Arc<Host>,
    runtime: Runtime,
    directory: TempDir,
}

impl Rules {
    fn start() -> Result<Self> {
        let directory = TempDir::new()?;
        fs::copy(library(), directory.path().join("rules.so")).context("the shipped library is not built")?;
        let mut config = Config::default();
        config.plugins.paths = vec![directory.path().to_owned()];
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let settings = config.plugin_host().with_program(Path::new(env!("CARGO_BIN_EXE_almanacd")));
        let host = Arc::new(Host::start(settings, Arc::new(Metrics::new()?), runtime.handle().clone())?);
        let tool = |name: &str| Tool { name: name.to_owned(), ..Tool::default() };
        let names = ["reasoning_checkpoint", "reasoning_decision", "reasoning_divergent", "reasoning_reflection"];
        host.publish(move || Snapshot { generation: 1, tools: names.map(tool).into() });
        runtime.block_on(host.settled());
        let rules = Self { host, runtime, directory };
        ensure!(rules.is_ready(), "the shipped library is not ready: {:?}", rules.host.list());
        Ok(rules)
    }

    fn is_ready(&self) -> bool {
        self.host.list().iter().all(|listed| listed.status.state == State::Ready)
    }

    fn pid(&self) -> Option<u32> {
        self.host.list().first()?.status.pid
    }

    /// Median microseconds of a call, made where the daemon makes it: in a task.
    fn calls(&self) -> Result<f64> {
        let host = Arc::clone(&self.host);
        let task = self.runtime.spawn(async move {
            let mut took = Vec::with_capacity(CALLS);
            for _ in 0..CALLS {
                let start = Instant::now();
                let answer = host.propose(ask()).await;
                took.push(start.elapsed().as_secs_f64() * 1e6);
                if answer.lists.first().is_none_or(|(_, list)| list.len() != 3) {
                    return Err(anyhow::anyhow!("not three proposals: {answer:?}"));
                }
            }
            Ok(Spread::of(took).median)
        });
        self.runtime.block_on(task)?
    }

    /// Milliseconds until `done`, which is looked at without a pause.
    fn until(&self, done: impl Fn(&Self) -> bool) -> f64 {
        let start = Instant::now();
        while !done(self) {
            std::hint::spin_loop();
        }
        start.elapsed().as_secs_f64() * 1e3
    }
}

fn ask() -> Ask {
    Ask {
        tool: "reasoning_divergent".to_owned(),
        complexity: Some(ComplexityLevel::Complex),
        num_outputs: 4,
        session_id: Some("session".to_owned()),
        history: vec!["reasoning_linear".to_owned(); 20],
        ..Ask::default()
    }
}

/// A process that sends back what it is sent.
struct Echo {
    child: Child,
    socket: UnixStream,
}

impl Echo {
    fn start() -> Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let child = Command::new("cat")
            .stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .spawn()?;
        Ok(Self { child, socket })
    }

    /// Median microseconds of a byte there and back.
    fn round_trips(&mut self) -> Result<f64> {
        let mut took = Vec::with_capacity(CALLS);
        let mut byte = [0];
        for _ in 0..CALLS {
            let start = Instant::now();
            self.socket.write_all(&[1])?;
            self.socket.read_exact(&mut byte)?;
            took.push(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(Spread::of(took).median)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(wanted: Wanted<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let rules = Rules::start()?;
    if wanted("P1") {
        let (mut echo, mut pairs) = (Echo::start()?, Pairs::default());
        for _ in quiet::rounds(ROUNDS) {
            let floor = echo.round_trips()?;
            pairs.push(rules.calls()?, floor);
        }
        let measured = Measured {
            ours: format!("{:.1} µs", pairs.ours()),
            theirs: format!("a byte there and back {:.1} µs", pairs.theirs()),
            figure: pairs.ratio(),
            bar: Bar::at_most(1.6),
        };
        rows.push(Row::new("P1", "a rule call through its worker", measured));
    }
    if wanted("P2") {
        rows.extend(lives(&rules)?);
    }
    Ok(rows)
}

/// From a killed worker to another, and from a saved file to the new version.
fn lives(rules: &Rules) -> Result<Vec<Row>> {
    let [mut respawn, mut reload] = <[Pairs; 2]>::default();
    let path = rules.directory.path().join("rules.so");
    let content = fs::read(&path)?;
    for life in 0..LIVES {
        let floor = spawn()?;
        let old = rules.pid().context("no worker")?;
        let pid = Pid::from_raw(old.cast_signed()).context("no process")?;
        kill_process(pid, Signal::KILL)?;
        respawn.push(rules.until(|rules| rules.pid().is_some_and(|pid| pid != old) && rules.is_ready()), floor);
        rules.host.reset("dev.almanac.reasoning")?;
        rules.runtime.block_on(rules.host.reload(None))?;
        let old = rules.pid();
        // Bytes behind the end change the sum and nothing else.
        let temporary = path.with_extension("new");
        fs::write(&temporary, [content.as_slice(), &[life as u8]].concat())?;
        fs::rename(&temporary, &path)?;
        let start = Instant::now();
        rules.runtime.block_on(rules.host.reload(None))?;
        reload.push(start.elapsed().as_secs_f64() * 1e3, floor);
        ensure!(rules.pid() != old, "the new version does not serve");
    }
    let row = |what: &str, pairs: &Pairs| {
        let measured = Measured {
            ours: format!("{:.2} ms", pairs.ours()),
            theirs: format!("start of a process {:.2} ms", pairs.theirs()),
            figure: pairs.ratio(),
            bar: Bar::OPEN,
        };
        Row::new("P2", what, measured)
    };
    Ok(vec![
        row("a killed worker: noticed, replaced, ready", &respawn),
        row("a saved library: read, started, in the old one's place", &reload),
    ])
}

/// Milliseconds from the start of a process that does nothing to its end.
fn spawn() -> Result<f64> {
    let start = Instant::now();
    Command::new("true").status()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
