//! How good the selection is on messages whose tools are known.

mod abstention;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde::Serialize;

pub use self::abstention::{AbstentionFigures, evaluate_abstention};
use super::{Index, Ranking, Settings, Usage};
use crate::strict::FromNode;
use crate::strict::decode::decode;
use crate::strict::read::{Limits, json};

/// Largest line of a file of cases, in bytes.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Cut-offs at which recall is told.
const CUTS: [usize; 4] = [1, 3, 5, 10];

/// Bins of the calibration error.
const BINS: usize = 10;

/// A message and the tools that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Default, FromNode)]
pub struct Case {
    pub query: String,
    /// The tools; a message that needs none is not judged by the ranking.
    pub gold: Vec<String>,
}

/// A line that is no case.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {message}; a line is {{\"query\": text, \"gold\": [tool, …]}}")]
pub struct CaseError {
    line: usize,
    message: String,
}

/// Reads JSON lines; empty ones are passed over.
pub fn parse(content: &str) -> Result<Vec<Case>, CaseError> {
    let lines = content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(number, line): (usize, &str)| {
        let fault = |message: String| CaseError { line: number + 1, message };
        let node =
            json(line.as_bytes(), &Limits::of_bytes(MAX_LINE_BYTES)).map_err(|error| fault(error.to_string()))?;
        decode(node).map_err(|faults| {
            fault(faults.first().map(|first| format!("{} {}", first.pointer(), first.message)).unwrap_or_default())
        })
    };
    lines.map(read).collect()
}

/// How good the selection was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankingFigures {
    /// Messages that need a tool.
    pub queries: usize,
    /// Share of the needed tools among the first 1, 3, 5 and 10.
    pub recall: BTreeMap<String, f64>,
    /// Mean of the inverse rank of the first needed tool, 0 to 1.
    pub mrr: f64,
    /// Normalised discounted cumulative gain of the first ten, 0 to 1.
    pub ndcg10: f64,
    /// Tools that passed the threshold, on average.
    pub mean_loaded: f64,
    /// Share of the needed tools among them.
    pub loaded_recall: f64,
    /// Expected calibration error of the best tool's confidence, in ten bins, 0 to 1.
    pub ece: f64,
    /// Median microseconds of a message.
    pub us_p50: f64,
    /// 99 in 100 messages take less, in microseconds.
    pub us_p99: f64,
}

#[derive(Default)]
struct Sums {
    queries: usize,
    recall: [f64; CUTS.len()],
    mrr: f64,
    ndcg: f64,
    loaded: usize,
    loaded_recall: f64,
    bins: [(f64, f64, f64); BINS],
    took_us: Vec<f64>,
}

/// Judges the ranking on `cases`. The only thing here that looks at a clock.
pub fn evaluate(index: &Index, usage: &Usage, cases: &[Case]) -> RankingFigures {
    let mut sums = Sums::default();
    for case in cases.iter().filter(|case| !case.gold.is_empty()) {
        let start = Instant::now();
        let message = index.message(&case.query);
        let mut ranking = Ranking::new(index, &message, usage);
        let loaded = ranking.loaded(Settings::default().max_tools);
        let best = ranking.best(CUTS[CUTS.len() - 1]);
        sums.took_us.push(start.elapsed().as_secs_f64() * 1e6);
        let is_gold = |name: &str| case.gold.iter().any(|gold| gold == name);
        let hits: Vec<bool> = best.iter().map(|tool| is_gold(tool.entry.name())).collect();
        let needed = case.gold.len() as f64;
        for (sum, cut) in sums.recall.iter_mut().zip(CUTS) {
            *sum += hits.iter().take(cut).filter(|hit| **hit).count() as f64 / needed;
        }
        sums.mrr += first_rank(&mut ranking, case).map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        sums.ndcg += ndcg(&hits, case.gold.len());
        sums.loaded += loaded.len();
        sums.loaded_recall += loaded.iter().filter(|tool| is_gold(tool.entry.name())).count() as f64 / needed;
        if let (Some(first), Some(hit)) = (best.first(), hits.first()) {
            let confidence = f64::from(first.confidence);
            let bin = &mut sums.bins[((confidence * BINS as f64) as usize).min(BINS - 1)];
            *bin = (bin.0 + 1.0, bin.1 + confidence, bin.2 + f64::from(u8::from(*hit)));
        }
        sums.queries += 1;
    }
    sums.figures()
}

fn first_rank(ranking: &mut Ranking<'_>, case: &Case) -> Option<usize> {
    let all = ranking.best(ranking.index().len());
    all.iter().position(|tool| case.gold.iter().any(|gold| **gold == **tool.entry.name()))
}

pub(super) fn ndcg(hits: &[bool], needed: usize) -> f64 {
    let gain = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
    let ideal: f64 = (0..needed.min(10)).map(gain).sum();
    hits.iter().enumerate().filter(|(_, hit)| **hit).map(|(rank, _)| gain(rank)).sum::<f64>() / ideal
}

impl Sums {
    fn figures(mut self) -> RankingFigures {
        let queries = self.queries.max(1) as f64;
        self.took_us.sort_unstable_by(f64::total_cmp);
        let quantile = |share: f64| {
            let last = self.took_us.len().saturating_sub(1);
            self.took_us.get((share * last as f64).round() as usize).copied().unwrap_or_default()
        };
        RankingFigures {
            queries: self.queries,
            recall: CUTS.iter().zip(self.recall).map(|(cut, sum)| (cut.to_string(), sum / queries)).collect(),
            mrr: self.mrr / queries,
            ndcg10: self.ndcg / queries,
            mean_loaded: self.loaded as f64 / queries,
            loaded_recall: self.loaded_recall / queries,
            ece: self.bins.iter().map(|(_, confidences, hits)| (confidences - hits).abs()).sum::<f64>() / queries,
            us_p50: quantile(0.5),
            us_p99: quantile(0.99),
        }
    }
}

/// What of a stream is learnt.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Lesson {
    /// At most so many choices.
    pub choices: Option<usize>,
    /// At most so many of a tool.
    pub of_tool: Option<usize>,
    /// Share of choices that are replaced by a random tool, 0 to 1.
    pub noise: f64,
    /// Only of the first so many tools of a fixed shuffle; the others are never chosen.
    pub tools: Option<usize>,
}

impl Lesson {
    /// The tools that may be chosen, if not all.
    pub fn chosen(self, index: &Index) -> Option<BTreeSet<String>> {
        let most = self.tools?;
        let mut names: Vec<&str> = (0..index.len()).map(|number| &**index.entry(number).name()).collect();
        let mut random = Random(0x2545_F491_4F6C_DD1D);
        for place in (1..names.len()).rev() {
            names.swap(place, random.below(place as u64 + 1) as usize);
        }
        Some(names.into_iter().take(most).map(str::to_owned).collect())
    }
}

/// Learns from `cases` in their order, as a daemon would from what is called after messages: every needed tool is.
pub fn learn(index: &Index, cases: &[Case], lesson: Lesson) -> Usage {
    let mut usage = Usage::new();
    let chosen = lesson.chosen(index);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut taken = 0;
    for (case, gold) in cases.iter().flat_map(|case| case.gold.iter().map(move |gold| (case, gold))) {
        if chosen.as_ref().is_some_and(|chosen| !chosen.contains(&**gold)) {
            continue;
        }
        let of_tool = seen.entry(gold).or_default();
        if lesson.of_tool.is_some_and(|most| *of_tool >= most) {
            continue;
        }
        if lesson.choices.is_some_and(|most| taken >= most) {
            break;
        }
        *of_tool += 1;
        taken += 1;
        let is_wrong = random.below(1000) < (lesson.noise * 1000.0) as u64;
        let other = random.below(index.len().max(1) as u64) as usize;
        let message = index.message(&case.query);
        let tool = if is_wrong && !index.is_empty() { index.entry(other).name() } else { gold.as_str() };
        usage.learn(index, &message, tool);
    }
    usage
}

/// The same numbers every time (`xorshift64`, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
