//! H4: what the door costs above hyper.
//!
//! The real service and a trivial one stand side by side on one thread, and one client asks them in turns, many
//! connections at once. Both pay for the same system calls, bytes and parsing, so the difference in the thread's CPU
//! time is Almanac's: time limits, request identity, host check, lookup, ETag, metrics and disabled tracing. A
//! transport in memory was not used, since hyper then does other things than in production.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use almanac::catalog::reload::{Reloader, Sources};
use almanac::config::{DaemonOverrides, Overrides};
use almanac::control::{Control, Parts, Readiness};
use almanac::daemon::Config;
use almanac::http::Context as Door;
use almanac::http::server::Service;
use almanac::http::server::accept::{Listener, Listeners};
use almanac::mcp::{Mcp, McpParts};
use almanac::plugin_host::Host;
use almanac::telemetry::{Metrics, logging};
use almanac::upstream::{self, Upstreams};
use almanac::{Engine, catalog};
use anyhow::{Context, Result};
use bytes::Bytes;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::client::{Client, request};
use crate::cores::{self, Cores};
use crate::family::{Family, Wanted};
use crate::peers::bare_hyper;
use crate::process::on_core;
use crate::row::{Bar, Measured, Row};
use crate::sample::Pairs;
use crate::{corpus, quiet};

pub(crate) const FAMILY: Family = Family { rows: &["H4"], needs: &[], run };

const TOOLS: usize = 200;
const CONNECTIONS: usize = 32;
const ROUNDS: usize = 15;
/// Of each side in one round, short ones, since the difference is small beside what else the machine does.
const TURNS: usize = 25;
/// Requests on each connection in one turn.
const REQUESTS: usize = 30;

fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    let (cores, home) = (Cores::find()?, TempDir::new()?);
    corpus::write(home.path(), TOOLS)?;
    let servers = start(home.path(), cores)?;
    let path = format!("/v1/tools/{}", corpus::name(0));
    let pairs = cores::on(cores.client, || {
        let mut almanac = Asker::new(servers.almanac, &path)?;
        let mut hyper = Asker::new(servers.hyper, &path)?;
        let mut pairs = Pairs::default();
        for _ in quiet::rounds(ROUNDS) {
            for _ in 0..TURNS {
                pairs.push(almanac.cost(&servers.thread)?, hyper.cost(&servers.thread)?);
            }
        }
        Ok(pairs)
    })?;
    let measured = Measured {
        ours: format!("{:.2} µs", pairs.ours()),
        theirs: format!("hyper alone {:.2} µs", pairs.theirs()),
        figure: pairs.difference(),
        bar: Bar::at_most(0.7).of(" µs"),
    };
    Ok(vec![Row::new("H4", "the door above hyper, CPU a request", measured)])
}

/// Keeps connections to one server and asks on all of them at once.
struct Asker {
    clients: Vec<Client>,
    request: String,
}

impl Asker {
    fn new(address: SocketAddr, path: &str) -> Result<Self> {
        let clients = (0..CONNECTIONS).map(|_| Client::connect(address)).collect::<Result<_>>()?;
        Ok(Self { clients, request: request(path, "") })
    }

    /// CPU time of the server's thread for one request, in microseconds.
    fn cost(&mut self, thread: &Path) -> Result<f64> {
        let before = on_core(thread)?;
        for _ in 0..REQUESTS {
            self.ask()?;
        }
        let spent = on_core(thread)?.saturating_sub(before);
        Ok(spent.as_secs_f64() * 1e6 / (REQUESTS * CONNECTIONS) as f64)
    }

    fn ask(&mut self) -> Result<()> {
        for client in &mut self.clients {
            client.send(self.request.as_bytes())?;
        }
        for client in &mut self.clients {
            let status = client.receive()?.status();
            anyhow::ensure!(status == 200, "answered {status}");
        }
        Ok(())
    }
}

/// Two servers on one thread.
struct Servers {
    almanac: SocketAddr,
    hyper: SocketAddr,
    /// Where the kernel keeps the thread's account.
    thread: PathBuf,
}

fn start(tools: &Path, cores: Cores) -> Result<Servers> {
    let service = Arc::new(service(tools)?.context("the tool is not in its own catalog")?);
    let (sender, started) = channel();
    // It serves for ever, and so ends with the process.
    thread::spawn(move || {
        if let Err(error) = serve(&service.0, service.1.clone(), cores, &sender) {
            // If it fails, nobody waits for it any more.
            let _ = sender.send(Err(error));
        }
    });
    started.recv().context("the server's thread has ended")?
}

fn serve(service: &Arc<Service>, body: Bytes, cores: Cores, started: &Sender<Result<Servers>>) -> Result<()> {
    cores::pin(cores.server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (almanac, hyper) = (listen()?, listen()?);
        let thread = format!("/proc/self/task/{}", rustix::thread::gettid().as_raw_nonzero()).into();
        let servers = Servers { almanac: almanac.local_addr()?, hyper: hyper.local_addr()?, thread };
        let _doors = Listeners::open(service, vec![Listener::Tcp(almanac)])?;
        // If it fails, nobody is left to ask.
        let _ = started.send(Ok(servers));
        bare_hyper::serve(hyper, body).await;
        Ok(())
    })
}

fn listen() -> Result<tokio::net::TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    Ok(tokio::net::TcpListener::from_std(listener)?)
}

/// The service as the daemon makes it, and the body of the tool that is asked for.
fn service(tools: &Path) -> Result<Option<(Arc<Service>, Bytes)>> {
    let config = Config { tool_metadata: vec![tools.to_owned()], ..Config::default() };
    let engine = Arc::new(Engine::new());
    let metrics = Arc::new(Metrics::new()?);
    let published = Arc::clone(&engine);
    let settings = catalog::Settings { watch: false, ..config.catalog.clone() };
    let sources = Sources { settings, ..config.reloading() };
    let (reloader, catalog_thread) = Reloader::start(sources, move |report| {
        published.publish(&report.loaded);
    })?;
    let body = engine.generation().tool(&corpus::name(0)).map(|entry| entry.body());
    let tokens = Arc::default();
    let limits = config.http.clone();
    // It is told no catalog, so it starts no library, and needs its runtime for nothing.
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let rules = config.plugin_host();
    let plugins = Arc::new(Host::start(rules, Arc::clone(&metrics), runtime.handle().clone())?);
    let upstreams = upstream::Settings { directory: PathBuf::new(), ..upstream::Settings::default() };
    let launcher = config.plugins.launch.program.clone();
    let upstreams = Upstreams::start(upstreams, Arc::clone(&metrics), runtime.handle(), launcher)?;
    let door_settings = watch::Sender::new(Arc::default());
    let settings = door_settings.subscribe();
    let control = Arc::new(Control::new(Parts {
        level: logging::start(&config.log)?,
        prices: config.usage.prices.clone(),
        reconfigure: config.reconfigure(Overrides::default(), DaemonOverrides::default(), door_settings),
        reloader,
        catalog_thread,
        tokens: Arc::clone(&tokens),
        engine: Arc::clone(&engine),
        plugins,
        upstreams: upstreams.clone(),
        metrics: Arc::clone(&metrics),
        readiness: Arc::new(Readiness::default()),
        llm_fault: None,
    }));
    let state = tempfile::tempdir()?;
    let parts = McpParts {
        engine: Arc::clone(&engine),
        metrics: Arc::clone(&metrics),
        tokens: Arc::clone(&tokens),
        upstreams,
        settings,
    };
    let clients = Mcp::open(parts, state.path(), limits.max_streams)?;
    let service = Service::new(Door::new(engine, metrics, control, Arc::new(clients)), tokens, &limits)?;
    Ok(body.map(|body| (Arc::new(service), body)))
}
