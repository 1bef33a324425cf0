//! H1, H2, H3: a tool's document over the network, beside nginx and beside a loop that only moves bytes.

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::client::Client;
use crate::cores::{self, Cores};
use crate::daemon::Daemon;
use crate::family::{Family, Wanted};
use crate::peers::nginx;
use crate::peers::own::Kind;
use crate::process::Server;
use crate::row::{Bar, Measured, Row};
use crate::sample::Pairs;
use crate::wrk::{Request, load};
use crate::{corpus, quiet};

pub(crate) const FAMILY: Family = Family { rows: &["H1", "H2", "H3"], needs: &["nginx", "wrk"], run };

const TOOLS: usize = 200;
const ROUNDS: usize = 7;
/// Seconds under load in one round.
const SECONDS: u32 = 2;

/// The servers, one core for all of them, since only one is asked at a time.
struct Servers {
    cores: Cores,
    almanac: Server,
    nginx: Server,
    epoll: Server,
    hyper: Server,
    path: String,
    body: usize,
    _tools: TempDir,
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
        let (cores, tools) = (Cores::find()?, TempDir::new()?);
        corpus::write(tools.path(), TOOLS)?;
        let path = format!("/v1/tools/{}", corpus::name(0));
        cores::on(cores.server, || {
            let almanac = Daemon::of(tools.path(), Some(1))?.serve()?;
            let mut client = Client::connect(almanac.address)?;
            let answer = client.get(&path, "")?;
            let nginx = nginx::start(&path, answer.body())?;
            let epoll = Kind::Epoll.start(answer.bytes)?;
            let hyper = Kind::Hyper.start(answer.body())?;
            Ok(Self { cores, almanac, nginx, epoll, hyper, body: answer.body().len(), path, _tools: tools })
        })
    }

    fn get(&self) -> Result<[Row; 4]> {
        let [mut by_nginx, mut by_epoll, mut by_hyper, mut rate] = <[Pairs; 4]>::default();
        let request = Request::get(&self.path);
        for _ in quiet::rounds(ROUNDS) {
            let [nginx, almanac, epoll, hyper] = [&self.nginx, &self.almanac, &self.epoll, &self.hyper]
                .map(|server| load(server, &request, self.cores, SECONDS));
            let almanac = almanac?;
            rate.push(almanac.rate, nginx.as_ref().map_or(f64::NAN, |nginx| nginx.rate));
            by_nginx.push(almanac.cpu, nginx?.cpu);
            by_epoll.push(almanac.cpu, epoll?.cpu);
            by_hyper.push(almanac.cpu, hyper?.cpu);
        }
        let what = format!("GET of a tool, {} B, CPU a request", self.body);
        let rates = Measured {
            ours: format!("{:.0}/s", rate.ours()),
            theirs: format!("nginx {:.0}/s", rate.theirs()),
            figure: rate.ratio(),
            bar: Bar::at_least(1.15),
        };
        Ok([
            Row::new("H1", what.clone(), cpu(&by_nginx, "nginx", Bar::at_most(0.68))),
            Row::new("H1", what.clone(), cpu(&by_epoll, "bare epoll", Bar::at_most(1.25))),
            Row::new("H1", what, cpu(&by_hyper, "bare hyper", Bar::OPEN)),
            Row::new("H2", "the same, 64 connections, one core", rates),
        ])
    }

    fn unchanged(&self) -> Result<Row> {
        let (ours, theirs) = (self.held(&self.almanac)?, self.held(&self.nginx)?);
        let mut pairs = Pairs::default();
        for _ in quiet::rounds(ROUNDS) {
            let nginx = load(&self.nginx, &theirs, self.cores, SECONDS)?;
            let almanac = load(&self.almanac, &ours, self.cores, SECONDS)?;
            pairs.push(almanac.cpu, nginx.cpu);
        }
        Ok(Row::new("H3", "If-None-Match → 304, CPU a request", cpu(&pairs, "nginx", Bar::at_most(1.0))))
    }

    /// The request of somebody who has the document of that server.
    fn held(&self, server: &Server) -> Result<Request> {
        let mut client = Client::connect(server.address)?;
        let answer = client.get(&self.path, "")?;
        let etag = answer.header("etag").context("the server sent no ETag")?.to_owned();
        let status = client.get(&self.path, &format!("If-None-Match: {etag}\r\n"))?.status();
        ensure!(status == 304, "the server answered {status} to its own ETag");
        Ok(Request::get(&self.path).unchanged_since(etag))
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
