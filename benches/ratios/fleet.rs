//! F1 to F4: what daemons that share a PostgreSQL cost, beside bare inserts, one daemon alone, and SQLite.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_postgres::types::Type;
use tokio_postgres::{Config, NoTls};

use crate::client::Client;
use crate::cores::{self, Cores};
use crate::daemon::Daemon;
use crate::family::{Family, Wanted};
use crate::peers::postgres::Postgres;
use crate::process::Server;
use crate::quiet;
use crate::row::{Bar, Measured, Row};
use crate::sample::Pairs;
use crate::wrk::{Request, load};

pub(crate) const FAMILY: Family = Family { rows: &["F1", "F2", "F3", "F4"], needs: &["wrk", "initdb"], run };

const ROUNDS: usize = 5;
/// Seconds under load in one round.
const SECONDS: u32 = 2;
/// What each of two daemons is told a second while a third follows them: their part of 10,000 of three.
const RECORDS_EACH: usize = 3333;
/// Records of one request there.
const BATCH: usize = 333;

fn run(wanted: Wanted<'_>) -> Result<Vec<Row>> {
    let (cores, postgres) = (Cores::find()?, Postgres::start()?);
    let daemons = ["a", "b", "c"].map(|host| on_postgres(&postgres, host, None)?.serve());
    let [a, b, c] = daemons;
    let daemons = [a?, b?, c?];
    let mut rows = Vec::new();
    if wanted("F1") {
        rows.push(beside_bare_inserts(&postgres, &daemons[0], cores)?);
    }
    if wanted("F2") {
        rows.push(three_beside_one(&daemons, cores)?);
    }
    if wanted("F4") {
        rows.push(following(&daemons)?);
    }
    drop(daemons);
    if wanted("F3") {
        rows.push(beside_sqlite(&postgres, cores)?);
    }
    rows.sort_by_key(|row| row.id);
    Ok(rows)
}

fn on_postgres(postgres: &Postgres, host: &str, workers: Option<usize>) -> Result<Daemon> {
    Ok(shipped(workers)?.with(&format!("store: {{url: '{}', host: {host}}}\n", postgres.url())))
}

fn shipped(workers: Option<usize>) -> Result<Daemon> {
    Daemon::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tool_metadata"), workers)
}

/// One record of a request.
fn record() -> Result<Request> {
    Request::post("/v1/executions", &json!({"tool_name": "web_search", "duration_ms": 1225, "session_id": "s"}))
}

fn beside_bare_inserts(postgres: &Postgres, daemon: &Server, cores: Cores) -> Result<Row> {
    let (record, bare) = (record()?, BareInserts::open(postgres)?);
    let mut pairs = Pairs::default();
    let mut group = 0.0;
    for _ in quiet::rounds(ROUNDS) {
        let before = groups(daemon)?;
        let ours = load(daemon, &record, cores, SECONDS)?;
        group = (ours.rate * f64::from(SECONDS) / (groups(daemon)? - before)).max(1.0);
        pairs.push(ours.rate, bare.rate(group.round() as usize)?);
    }
    let measured = Measured {
        ours: format!("{:.0}/s in groups of {group:.1}", pairs.ours()),
        theirs: format!("bare inserts {:.0}/s", pairs.theirs()),
        figure: pairs.ratio(),
        bar: Bar::at_least(0.8),
    };
    Ok(Row::new("F1", "durable records on PostgreSQL, 16 writers", measured))
}

/// How many groups of records a daemon has made durable.
fn groups(daemon: &Server) -> Result<f64> {
    let mut client = Client::connect(daemon.address)?;
    let text = String::from_utf8_lossy(client.get("/metrics", "")?.body()).into_owned();
    let count = text.lines().find_map(|line| line.strip_prefix("almanac_store_commit_seconds_count "));
    count.and_then(|count| count.parse().ok()).context("groups are not counted")
}

/// One connection that inserts group after group into a table like the daemon's.
struct BareInserts {
    runtime: Runtime,
    client: tokio_postgres::Client,
}

impl BareInserts {
    fn open(postgres: &Postgres) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let mut config = Config::new();
        config.host_path(postgres.socket()).user("postgres").dbname("postgres");
        let (client, connection) = runtime.block_on(config.connect(NoTls))?;
        // Its end is seen by whoever asks.
        runtime.spawn(connection);
        runtime.block_on(client.batch_execute("CREATE TABLE bare (LIKE almanac.executions INCLUDING ALL)"))?;
        Ok(Self { runtime, client })
    }

    /// Records a second.
    fn rate(&self, group: usize) -> Result<f64> {
        let insert = "INSERT INTO bare (tenant, incarnation, sequence, tool, outcome, duration_ms, session, at_ms)
            SELECT 'default', '', sequence, tool, 'success', duration_ms, 's', sequence
            FROM unnest($1::int8[], $2::text[], $3::int8[]) AS called (sequence, tool, duration_ms)";
        let numbers: Vec<i64> = (0..group as i64).collect();
        let (tools, durations) = (vec!["web_search"; group], vec![1225_i64; group]);
        let (start, mut groups) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(SECONDS.into()) {
            let values = [
                (&numbers as _, Type::INT8_ARRAY),
                (&tools as _, Type::TEXT_ARRAY),
                (&durations as _, Type::INT8_ARRAY),
            ];
            self.runtime.block_on(self.client.query_typed(insert, &values))?;
            groups += 1;
        }
        Ok((groups * group) as f64 / start.elapsed().as_secs_f64())
    }
}

fn three_beside_one(daemons: &[Server; 3], cores: Cores) -> Result<Row> {
    let record = record()?;
    let mut pairs = Pairs::default();
    for _ in quiet::rounds(ROUNDS) {
        let one = load(&daemons[0], &record, cores, SECONDS)?.rate;
        let rates = thread::scope(|scope| {
            let loads = daemons.each_ref().map(|daemon| scope.spawn(|| load(daemon, &record, cores, SECONDS)));
            let rates = loads.into_iter().map(|load| Some(load.join().ok()?.ok()?.rate));
            rates.sum::<Option<f64>>()
        });
        pairs.push(rates.context("a daemon was not asked")?, one);
    }
    let measured = Measured {
        ours: format!("{:.0}/s", pairs.ours()),
        theirs: format!("one {:.0}/s", pairs.theirs()),
        figure: pairs.ratio(),
        bar: Bar::at_least(0.9),
    };
    Ok(Row::new("F2", "durable records of three daemons, 16 writers each", measured))
}

fn beside_sqlite(postgres: &Postgres, cores: Cores) -> Result<Row> {
    let serve = |daemon: Daemon| cores::on(cores.server, || daemon.serve());
    let (shared, alone) = (serve(on_postgres(postgres, "a", Some(1))?)?, serve(shipped(Some(1))?)?);
    let requests = [
        Request::post("/v1/estimate", &json!({"toolName": "web_search"}))?,
        Request::post("/v1/qualify", &json!({"message": "What is the weather in Paris tomorrow?"}))?,
    ];
    let cpu = |server: &Server| -> Result<f64> {
        requests.iter().map(|request| Ok(load(server, request, cores, 1)?.cpu)).sum()
    };
    let mut pairs = Pairs::default();
    for _ in quiet::rounds(ROUNDS) {
        pairs.push(cpu(&shared)?, cpu(&alone)?);
    }
    let measured = Measured {
        ours: format!("{:.1} µs", pairs.ours()),
        theirs: format!("on SQLite {:.1} µs", pairs.theirs()),
        figure: pairs.ratio(),
        bar: Bar::at_most(1.15),
    };
    Ok(Row::new("F3", "an estimate and a selection on PostgreSQL, CPU", measured))
}

/// What a daemon spends while two others are told records, beside what it spends while nobody is told any.
fn following(daemons: &[Server; 3]) -> Result<Row> {
    let [told_first, told_second, follower] = daemons;
    let lasts = Duration::from_secs(5);
    let mut pairs = Pairs::default();
    let mut told = 0.0;
    for _ in quiet::rounds(ROUNDS) {
        let idle = share_of_core(follower, || {
            thread::sleep(lasts);
            Ok(())
        })?;
        let busy = share_of_core(follower, || {
            let start = Instant::now();
            let records = thread::scope(|scope| {
                let tell = [told_first, told_second].map(|daemon| scope.spawn(move || tell(daemon, lasts)));
                tell.into_iter().map(|tell| tell.join().ok()?.ok()).sum::<Option<usize>>()
            });
            told = records.context("a daemon was not told")? as f64 / start.elapsed().as_secs_f64();
            Ok(())
        })?;
        pairs.push(busy, idle);
    }
    let measured = Measured {
        ours: format!("{:.3} cores at {told:.0}/s", pairs.ours()),
        theirs: format!("idle {:.3}", pairs.theirs()),
        figure: pairs.difference(),
        bar: Bar::at_most(0.15).of(" cores"),
    };
    Ok(Row::new("F4", "following two daemons, of three that are told 10,000/s", measured))
}

fn share_of_core(server: &Server, action: impl FnOnce() -> Result<()>) -> Result<f64> {
    let (before, start) = (server.process.cpu()?, Instant::now());
    action()?;
    Ok(server.process.cpu()?.saturating_sub(before).as_secs_f64() / start.elapsed().as_secs_f64())
}

/// Records at a steady rate. Returns how many were acknowledged.
fn tell(daemon: &Server, lasts: Duration) -> Result<usize> {
    let mut client = Client::connect(daemon.address)?;
    let record = |number: usize| {
        let tool = format!("tool_{}", number % 50);
        json!({"tool_name": tool, "duration_ms": 400 + number, "session_id": format!("s{}", number % 20)})
    };
    let batch = Value::from((0..BATCH).map(record).collect::<Vec<_>>()).to_string();
    let pause = Duration::from_secs_f64(BATCH as f64 / RECORDS_EACH as f64);
    let (start, mut batches) = (Instant::now(), 0);
    while start.elapsed() < lasts {
        let answer = client.post("/v1/executions", &batch)?;
        anyhow::ensure!(answer.status() < 300, "a batch was refused: {}", String::from_utf8_lossy(answer.body()));
        batches += 1;
        thread::sleep((pause * batches as u32).saturating_sub(start.elapsed()));
    }
    Ok(batches * BATCH)
}
