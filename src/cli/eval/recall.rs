//! `almanacd eval recall FILE --memories FILE`: how well memories are found by a text, on a scratch store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::access::DEFAULT_TENANT;
use crate::cli::memory::read_lines;
use crate::cli::output::Output;
use crate::cli::{CliError, Exit, block_on};
use crate::engine::Engine;
use crate::engine::memory::Archived;
use crate::memory::Kind;
use crate::memory::baseline::RecallBaseline;
use crate::memory::query::{Filter, SortBy};
use crate::memory::search::Recall;
use crate::store::sqlite::{self, file_in};
use crate::store::{Durability, Settings, Sqlite};
use crate::strict::FromNode;
use crate::strict::decode::decode;
use crate::strict::read::{self, Limits};

/// Memories that are looked at for each query.
const DEPTH: usize = 10;

/// Memories that are loaded at once.
const BATCH: usize = 1000;

#[derive(Debug, Args)]
pub(super) struct EvalRecallArgs {
    /// JSON lines of query and gold, a list of the ids of memories that answer it
    file: PathBuf,
    /// JSON lines of id, content and metadata
    #[arg(long, value_name = "FILE")]
    memories: PathBuf,
}

/// How well memories were found.
#[derive(Debug, Serialize)]
struct Figures {
    queries: usize,
    memories: usize,
    recall: BTreeMap<&'static str, f64>,
    mrr: f64,
    ndcg10: f64,
    /// What BM25 over the texts alone finds.
    bm25: Bm25Figures,
    /// Memories in an answer.
    mean_loaded: f64,
    /// The share of the wanted ones that is among them.
    loaded_recall: f64,
    us_p50: f64,
    us_p99: f64,
}

#[derive(Debug, Serialize)]
struct Bm25Figures {
    recall: BTreeMap<&'static str, f64>,
    mrr: f64,
    ndcg10: f64,
}

#[derive(FromNode)]
struct Asked {
    query: String,
    gold: Vec<String>,
    /// Whatever else a line says is for people.
    #[node(rest)]
    #[expect(dead_code, reason = "it is only let through")]
    other: Map<String, Value>,
}

pub(super) fn run(args: &EvalRecallArgs, output: &mut Output) -> Result<Exit, CliError> {
    let queries = read_queries(&args.file)?;
    let memories = read_lines(&args.memories, false)?;
    let scratch = Scratch::new(&args.memories)?;
    let settings = Settings { durability: Durability::Crash, ..Settings::default() };
    let options = sqlite::Options { settings, ..sqlite::Options::file(file_in(&scratch.0)) };
    let store = Sqlite::start(options, Box::new(|_, _| ())).map_err(CliError::Runtime)?;
    let engine = Engine::on(Arc::new(store));
    let figures = block_on(async {
        for batch in memories.chunks(BATCH) {
            let archive = batch.iter().map(|(_, line)| decode::<Archived>(line.clone().into()));
            let archive: Vec<Archived> =
                archive.collect::<Result<_, _>>().map_err(crate::engine::memory::RecallError::Faulty)?;
            engine.import_memories(DEFAULT_TENANT, archive).await?;
        }
        measure(&engine, &queries, &memories).await
    })?;
    output.show(&figures, |out| print(&figures, out));
    Ok(Exit::Success)
}

fn read_queries(file: &Path) -> Result<Vec<Asked>, CliError> {
    let failed = |source| CliError::Evaluate { file: file.display().to_string(), source };
    let content = fs::read_to_string(file).map_err(|error| failed(error.into()))?;
    let mut queries = Vec::new();
    for (number, line) in content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let said = |what: String| failed(format!("line {}: {what}", number + 1).into());
        let node = read::json(line.as_bytes(), &Limits::of_bytes(1 << 20)).map_err(|error| said(error.to_string()))?;
        let query = decode::<Asked>(node)
            .map_err(|faults| said(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
        queries.push(query);
    }
    Ok(queries)
}

async fn measure(engine: &Engine, queries: &[Asked], memories: &[(usize, Value)]) -> Result<Figures, CliError> {
    let text = |(_, line): &'_ (usize, Value), key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let texts: Vec<String> = memories.iter().map(|line| text(line, "content")).collect();
    let baseline = RecallBaseline::of(texts.iter().map(String::as_str));
    let (mut found, mut by_words, mut loaded) = (Sums::default(), Sums::default(), 0);
    let mut times = Vec::with_capacity(queries.len());
    for asked in queries {
        let recall = Recall {
            query: Some(asked.query.clone()),
            sort: SortBy::Score,
            limit: DEPTH,
            ..Recall::all(Kind::Message, Filter::default())
        };
        let start = Instant::now();
        let page = engine.recall(DEFAULT_TENANT, &recall).await?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        loaded += page.memories.len();
        found.add(&asked.gold, page.memories.iter().map(|found| found.memory.id.clone()));
        let best = baseline.best(&asked.query, DEPTH);
        by_words.add(&asked.gold, best.into_iter().map(|number| text(&memories[number], "id")));
    }
    times.sort_by(f64::total_cmp);
    let quantile =
        |share: f64| times.get(((times.len() as f64 - 1.0) * share).round() as usize).copied().unwrap_or_default();
    let count = queries.len().max(1) as f64;
    Ok(Figures {
        queries: queries.len(),
        memories: memories.len(),
        recall: found.recall(count),
        mrr: found.mrr / count,
        ndcg10: found.ndcg / count,
        bm25: Bm25Figures { recall: by_words.recall(count), mrr: by_words.mrr / count, ndcg10: by_words.ndcg / count },
        mean_loaded: loaded as f64 / count,
        loaded_recall: found.recall[3] / count,
        us_p50: quantile(0.5),
        us_p99: quantile(0.99),
    })
}

/// Sums over queries.
#[derive(Default)]
struct Sums {
    /// Of recall at each of [`DEPTHS`].
    recall: [f64; 4],
    mrr: f64,
    ndcg: f64,
}

const DEPTHS: [(&str, usize); 4] = [("1", 1), ("3", 3), ("5", 5), ("10", DEPTH)];

impl Sums {
    fn add(&mut self, gold: &[String], found: impl Iterator<Item = String>) {
        let hits: Vec<bool> = found.map(|id| gold.contains(&id)).collect();
        let wanted = gold.len().max(1) as f64;
        for (sum, (_, depth)) in self.recall.iter_mut().zip(DEPTHS) {
            *sum += hits.iter().take(depth).filter(|hit| **hit).count() as f64 / wanted;
        }
        self.mrr += hits.iter().position(|hit| *hit).map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let ideal: f64 = (0..gold.len().min(DEPTH)).map(gain).sum();
        let gained: f64 = hits.iter().enumerate().filter(|(_, hit)| **hit).map(|(rank, _)| gain(rank)).sum();
        self.ndcg += if ideal > 0.0 { gained / ideal } else { 0.0 };
    }

    fn recall(&self, count: f64) -> BTreeMap<&'static str, f64> {
        DEPTHS.into_iter().zip(self.recall).map(|((name, _), sum)| (name, sum / count)).collect()
    }
}

fn print(figures: &Figures, out: &mut Output) {
    let beside = &figures.bm25;
    out.line(&out.bold(&format!("{} queries over {} memories", figures.queries, figures.memories)));
    out.line(&format!("{:22}{:>10}{:>10}", "", "recalled", "BM25"));
    let mut line = |name: &str, found: f64, bm25: f64| {
        out.line(&format!("{name:22}{:8.1} %{:8.1} %", 100.0 * found, 100.0 * bm25));
    };
    for (depth, _) in DEPTHS {
        line(&format!("recall at {depth}"), figures.recall[depth], beside.recall[depth]);
    }
    line("MRR", figures.mrr, beside.mrr);
    line("NDCG at 10", figures.ndcg10, beside.ndcg10);
    out.line(&format!("{:22}{:8.0} µs, 99 in 100 under {:.0}", "a query", figures.us_p50, figures.us_p99));
}

/// A directory that goes when it is done with.
struct Scratch(PathBuf);

impl Scratch {
    fn new(of: &Path) -> Result<Self, CliError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)?;
        let directory = std::env::temp_dir().join(format!("almanacd-eval-{:016x}", u64::from_le_bytes(random)));
        fs::create_dir(&directory)
            .map_err(|error| CliError::Evaluate { file: of.display().to_string(), source: error.into() })?;
        Ok(Self(directory))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is in the system's temporary directory, which is cleaned anyway.
        let _ = fs::remove_dir_all(&self.0);
    }
}
