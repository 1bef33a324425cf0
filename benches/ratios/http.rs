//! H1, H2, H3: a tool's document over the network, beside nginx and beside a loop that only moves bytes.

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::client::Client;
use crate::cores::{self, Cores};
use crate::corpus;
use crate::daemon::Daemon;
use crate::family::{Family, Wanted};
use crate::peers::epoll::Floor;
use crate::peers::nginx::Nginx;
use crate::process::Process;
use crate::quiet;
use crate::row::{Bar, Measured, Row};
use crate::sample::Pairs;
use crate::wrk::{Target, load};

pub(crate) const FAMILY: Family = Family { rows: &["H1", "H2", "H3"], needs: &["nginx", "wrk"], run };

const TOOLS: usize = 200;
const ROUNDS: usize = 7;
/// Seconds under load in one round.
const SECONDS: u32 = 2;

/// The servers, one core for all of them, since only one is asked at a time.
struct Servers {
    cores: Cores,
    almanac: (Process, Target),
    nginx: (Nginx, Target),
    floor: (Floor, Target),
    body: usize,
    _home: (TempDir, Daemon),
}

fn run(wanted: Wanted<'_>) -> Result<Vec<Row>> {
    let servers = Servers::start()?;
    let mut rows = Vec::new();
    if wanted("H1") || wanted("H2") {
        rows.extend(servers.get()?.into_iter().filter(|row| wanted(row.id)));
    }
    if wanted("H3") {
        rows.push(servers.unchanged()?);
    }
    Ok(rows)
}

impl Servers {
    fn start() -> Result<Self> {
        let (cores, home) = (Cores::find()?, TempDir::new()?);
        corpus::write(home.path(), TOOLS)?;
        let path = format!("/v1/tools/{}", corpus::name(0));
        let target = |address| Target { address, path: path.clone(), etag: None };
        let daemon = Daemon::of(home.path(), Some(1))?;
        let almanac = cores::on(cores.server, || daemon.ready())?;
        let mut client = Client::connect(daemon.address)?;
        let answer = client.get(&path, "")?;
        let nginx = cores::on(cores.server, || Nginx::start(&path, answer.body()))?;
        let floor = cores::on(cores.server, || Floor::start(answer.bytes))?;
        Ok(Self {
            cores,
            almanac: (almanac, target(daemon.address)),
            nginx: {
                let target = target(nginx.address);
                (nginx, target)
            },
            floor: {
                let target = target(floor.address);
                (floor, target)
            },
            body: answer.body().len(),
            _home: (home, daemon),
        })
    }

    fn get(&self) -> Result<[Row; 3]> {
        let [mut nginx_cpu, mut floor_cpu, mut rate] = <[Pairs; 3]>::default();
        for _ in quiet::rounds(ROUNDS) {
            let nginx = load(&self.nginx.0.process, &self.nginx.1, self.cores, SECONDS)?;
            let almanac = load(&self.almanac.0, &self.almanac.1, self.cores, SECONDS)?;
            let floor = load(&self.floor.0.process, &self.floor.1, self.cores, SECONDS)?;
            nginx_cpu.push(almanac.cpu, nginx.cpu);
            floor_cpu.push(almanac.cpu, floor.cpu);
            rate.push(almanac.rate, nginx.rate);
        }
        let what = |rest: &str| format!("GET of a tool, {} B, {rest}", self.body);
        Ok([
            Row::new("H1", what("CPU a request, by nginx"), cpu(&nginx_cpu, "nginx", Bar::at_most(0.90))),
            Row::new("H1", what("CPU a request, by bare epoll"), cpu(&floor_cpu, "epoll", Bar::at_most(1.25))),
            Row::new(
                "H2",
                what("64 connections, one core"),
                Measured {
                    ours: format!("{:.0}/s", rate.ours()),
                    theirs: format!("nginx {:.0}/s", rate.theirs()),
                    figure: rate.ratio(),
                    bar: Bar::at_least(1.15),
                },
            ),
        ])
    }

    fn unchanged(&self) -> Result<Row> {
        let (ours, theirs) = (held(&self.almanac.1)?, held(&self.nginx.1)?);
        let mut pairs = Pairs::default();
        for _ in quiet::rounds(ROUNDS) {
            let nginx = load(&self.nginx.0.process, &theirs, self.cores, SECONDS)?;
            let almanac = load(&self.almanac.0, &ours, self.cores, SECONDS)?;
            pairs.push(almanac.cpu, nginx.cpu);
        }
        Ok(Row::new("H3", "If-None-Match → 304, CPU a request", cpu(&pairs, "nginx", Bar::at_most(1.0))))
    }
}

fn cpu(pairs: &Pairs, peer: &str, bar: Bar) -> Measured {
    Measured {
        ours: format!("{:.2} µs", pairs.ours()),
        theirs: format!("{peer} {:.2} µs", pairs.theirs()),
        figure: pairs.ratio(),
        bar,
    }
}

/// The same target, asked by somebody who has it.
fn held(target: &Target) -> Result<Target> {
    let mut client = Client::connect(target.address)?;
    let etag = client.get(&target.path, "")?.header("etag").context("the server sent no ETag")?.to_owned();
    let status = client.get(&target.path, &format!("If-None-Match: {etag}\r\n"))?.status();
    anyhow::ensure!(status == 304, "the server answered {status} to its own ETag");
    Ok(Target { etag: Some(etag), ..target.clone() })
}
