//! `almanacd eval recall FILE --memories FILE`: how well memories are found by a text, on a scratch store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use crate::access::DEFAULT_TENANT;
use crate::cli::memory::read_lines;
use crate::cli::output::Output;
use crate::cli::{CliError, Exit, block_on};
use crate::engine::Engine;
use crate::engine::memory::Archived;
use crate::memory::Kind;
use crate::memory::search::Recall;
use crate::store::memories::{Filter, SortBy};
use crate::store::sqlite::{self, file_in};
use crate::store::{Durability, Sqlite};
use crate::strict::decode::decode;
use crate::strict::read::{self, Limits};
use crate::strict::{At, FromNode, Node};
use crate::timing::Defaults;

/// Memories that are looked at for each query.
const DEPTH: usize = 10;

/// Memories that are loaded at once.
const BATCH: usize = 1000;

#[derive(Debug, Args)]
pub(super) struct RecallArgs {
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
    /// Memories in an answer.
    mean_loaded: f64,
    /// The share of the wanted ones that is among them.
    loaded_recall: f64,
    us_p50: f64,
    us_p99: f64,
}

struct Query {
    query: String,
    gold: Vec<String>,
}

impl FromNode for Query {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let query = Self { query: fields.required("query"), gold: fields.required("gold") };
            // Whatever else a line says is for people.
            fields.rest();
            query
        })
    }
}

pub(super) fn run(args: &RecallArgs, output: &mut Output) -> Result<Exit, CliError> {
    let queries = read_queries(&args.file)?;
    let memories = read_lines(&args.memories, false)?;
    let scratch = Scratch::new(&args.memories)?;
    let options = sqlite::Options { durability: Durability::Crash, ..sqlite::Options::file(file_in(&scratch.0)) };
    let store = Sqlite::start(options, Box::new(|_, _| ())).map_err(CliError::Runtime)?;
    let engine = Engine::with_store(Arc::new(store), Defaults::default(), 1);
    let figures = block_on(async {
        for batch in memories.chunks(BATCH) {
            let archive = batch.iter().map(|(_, line)| decode::<Archived>(line.clone().into()));
            let archive: Vec<Archived> =
                archive.collect::<Result<_, _>>().map_err(crate::engine::memory::RecallError::Faulty)?;
            engine.import_memories(DEFAULT_TENANT, archive).await?;
        }
        measure(&engine, &queries, memories.len()).await
    })?;
    output.show(&figures, |out| print(&figures, out));
    Ok(Exit::Success)
}

fn read_queries(file: &Path) -> Result<Vec<Query>, CliError> {
    let failed = |source| CliError::Evaluate { file: file.display().to_string(), source };
    let content = fs::read_to_string(file).map_err(|error| failed(error.into()))?;
    let mut queries = Vec::new();
    for (number, line) in content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let said = |what: String| failed(format!("line {}: {what}", number + 1).into());
        let node = read::json(line.as_bytes(), &Limits::of_bytes(1 << 20)).map_err(|error| said(error.to_string()))?;
        let query = decode::<Query>(node).map_err(|faults| {
            said(
                faults
                    .iter()
                    .map(|fault| format!("{}: {}", fault.pointer(), fault.message))
                    .collect::<Vec<_>>()
                    .join("; "),
            )
        })?;
        queries.push(query);
    }
    Ok(queries)
}

async fn measure(engine: &Engine, queries: &[Query], memories: usize) -> Result<Figures, CliError> {
    let (mut recall, mut mrr, mut ndcg, mut loaded) = ([0.0; 4], 0.0, 0.0, 0);
    let mut times = Vec::with_capacity(queries.len());
    for Query { query, gold } in queries {
        let asked = Recall {
            query: Some(query.clone()),
            sort: SortBy::Score,
            limit: DEPTH,
            ..Recall::all(Kind::Message, Filter::default())
        };
        let start = Instant::now();
        let page = engine.recall(DEFAULT_TENANT, &asked).await?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        let hits: Vec<bool> = page.memories.iter().map(|found| gold.contains(&found.memory.id)).collect();
        loaded += hits.len();
        let wanted = gold.len().max(1) as f64;
        for (sum, depth) in recall.iter_mut().zip([1, 3, 5, 10]) {
            *sum += hits.iter().take(depth).filter(|hit| **hit).count() as f64 / wanted;
        }
        mrr += hits.iter().position(|hit| *hit).map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let ideal: f64 = (0..gold.len().min(DEPTH)).map(gain).sum();
        let gained: f64 = hits.iter().enumerate().filter(|(_, hit)| **hit).map(|(rank, _)| gain(rank)).sum();
        ndcg += if ideal > 0.0 { gained / ideal } else { 0.0 };
    }
    times.sort_by(f64::total_cmp);
    let quantile =
        |share: f64| times.get(((times.len() as f64 - 1.0) * share).round() as usize).copied().unwrap_or_default();
    let count = queries.len().max(1) as f64;
    let share = |sum: f64| sum / count;
    let names = ["1", "3", "5", "10"];
    Ok(Figures {
        queries: queries.len(),
        memories,
        recall: names.into_iter().zip(recall.map(share)).collect(),
        mrr: share(mrr),
        ndcg10: share(ndcg),
        mean_loaded: loaded as f64 / count,
        loaded_recall: share(recall[3]),
        us_p50: quantile(0.5),
        us_p99: quantile(0.99),
    })
}

fn print(figures: &Figures, out: &mut Output) {
    out.line(&out.bold(&format!("{} queries over {} memories", figures.queries, figures.memories)));
    for depth in ["1", "3", "5", "10"] {
        out.line(&format!("{:22}{:8.1} %", format!("recall at {depth}"), 100.0 * figures.recall[depth]));
    }
    out.line(&format!("{:22}{:8.1} %", "MRR", 100.0 * figures.mrr));
    out.line(&format!("{:22}{:8.1} %", "NDCG at 10", 100.0 * figures.ndcg10));
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
