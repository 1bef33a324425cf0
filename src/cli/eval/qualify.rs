//! `almanacd eval qualify FILE`: how good the selection is on messages whose tools are known.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::super::output::Output;
use super::super::{CliError, Exit};
use crate::catalog::load::{LoadOptions, load};
use crate::config::{DaemonOverrides, Overrides};
use crate::daemon::Config;
use crate::qualify::categories::file::CategoryFile;
use crate::qualify::evaluate::{
    AbstentionFigures, Case, Lesson, RankingFigures, evaluate, evaluate_abstention, learn, parse,
};
use crate::qualify::fit::{self, Set};
use crate::qualify::{Index, Selector, Usage};

#[derive(Debug, Args)]
pub(super) struct EvalQualifyArgs {
    /// JSON lines, each `{"query": text, "gold": [tool, …]}`
    file: PathBuf,
    /// Learn from the first half, as a stream of choices; the figures are of the second half, with that and without
    #[arg(long)]
    learn: bool,
    /// Learn at most so many choices
    #[arg(long, value_name = "N", requires = "learn")]
    choices: Option<usize>,
    /// Learn at most so many choices of a tool
    #[arg(long, value_name = "N", requires = "learn")]
    of_tool: Option<usize>,
    /// Learn only choices of so many tools; the figures are then of the messages that need one of the others
    #[arg(long, value_name = "N", requires = "learn")]
    tools: Option<usize>,
    /// Replace this share of the choices by random tools
    #[arg(long, value_name = "SHARE", requires = "learn", default_value_t = 0.0)]
    noise: f64,
    /// Fit the ranking's constants on this file and further ones, and print them; one that begins with `@` is only
    /// judged
    #[arg(long, hide = true, value_name = "QUERIES=DIR", num_args = 0.., conflicts_with = "learn")]
    fit: Option<Vec<String>>,
    #[command(flatten)]
    overrides: Overrides,
}

/// The figures, and those without what was learnt.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    figures: RankingFigures,
    /// The same messages before anything was learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<RankingFigures>,
    /// Choices that were learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<u64>,
    /// How well messages that need no tool are told apart, if there are some in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_tool: Option<AbstentionFigures>,
}

pub(super) fn run(args: &EvalQualifyArgs, output: &mut Output) -> Result<Exit, CliError> {
    let config = Config::load(&args.overrides, &DaemonOverrides::default())?;
    let mut categories = CategoryFile::new(config.categories.clone());
    categories.read();
    let selector = Selector::build(&load(config.documents()).catalog, &categories.current().0.into(), None);
    let index = selector.index();
    let cases = read(&args.file)?;
    tell_unknown(index, &cases, output);
    if let Some(more) = &args.fit {
        let own = args.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let index = Index::build(index.catalog(), None);
        let mut sets = vec![Set { name: own, index, cases, is_fitted: true }];
        for pair in more {
            let is_fitted = !pair.starts_with('@');
            let (file, directory) = pair.trim_start_matches('@').split_once('=').unwrap_or((pair, "."));
            let index = Index::build(&load(LoadOptions::directory(directory)).catalog, None);
            let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            sets.push(Set { name, index, cases: read(Path::new(file))?, is_fitted });
        }
        output.raw(fit::fit(&sets).as_bytes());
        return Ok(Exit::Success);
    }
    let report = if args.learn {
        let (first, second) = cases.split_at(cases.len() / 2);
        let lesson = Lesson { choices: args.choices, of_tool: args.of_tool, noise: args.noise, tools: args.tools };
        let usage = learn(index, first, lesson);
        let second = never_chosen(second, lesson.chosen(index).as_ref());
        Report {
            figures: evaluate(index, &usage, &second),
            without: Some(evaluate(index, &Usage::new(), &second)),
            choices: Some(usage.choices()),
            no_tool: None,
        }
    } else {
        let no_tool = evaluate_abstention(&selector, &cases, config.qualifier.selection.rules());
        Report { figures: evaluate(index, &Usage::new(), &cases), without: None, choices: None, no_tool }
    };
    output.show(&report, |out| print(&report, index.len(), out));
    Ok(Exit::Success)
}

/// How many names are shown of those that are missing.
const SHOWN: usize = 5;

/// Says which needed tools the catalog lacks: the wrong catalog would pass for a bad ranking.
fn tell_unknown(index: &Index, cases: &[Case], output: &mut Output) {
    let is_unknown = |tool: &&String| index.catalog().get(tool).is_none();
    let asking = cases.iter().filter(|case| case.gold.iter().any(|tool| is_unknown(&tool))).count();
    if asking == 0 {
        return;
    }
    let unknown: BTreeSet<&String> = cases.iter().flat_map(|case| &case.gold).filter(is_unknown).collect();
    let names: Vec<&str> = unknown.iter().take(SHOWN).map(|tool| tool.as_str()).collect();
    let more = if unknown.len() > SHOWN { ", \u{2026}" } else { "" };
    let (all, names) = (cases.len(), names.join(", "));
    output.note(&format!(
        "{asking} of {all} messages need tools that the catalog lacks, which count as not found: {names}{more}"
    ));
}

/// The cases of which no needed tool could be chosen; all, if any could be.
fn never_chosen(cases: &[Case], chosen: Option<&BTreeSet<String>>) -> Vec<Case> {
    let may = |case: &&Case| chosen.is_none_or(|chosen| !case.gold.iter().any(|tool| chosen.contains(tool)));
    cases.iter().filter(may).cloned().collect()
}

fn read(file: &Path) -> Result<Vec<Case>, CliError> {
    let failed = |source| CliError::Evaluate { file: file.display().to_string(), source };
    let content = fs::read_to_string(file).map_err(|error| failed(error.into()))?;
    parse(&content).map_err(|error| failed(error.into()))
}

fn print(report: &Report, tools: usize, out: &mut Output) {
    let Report { figures, without, choices, no_tool } = report;
    out.line(&out.bold(&format!("{} messages, {tools} tools", figures.queries)));
    if let (Some(choices), Some(_)) = (choices, without) {
        out.line(&format!("{:34}{:>12}{:>12}", format!("after {choices} choices"), "learnt", "not learnt"));
    }
    let mut row = |name: &str, value: fn(&RankingFigures) -> String| {
        let before = without.as_ref().map(value).unwrap_or_default();
        out.line(format!("{name:34}{:>12}{before:>12}", value(figures)).trim_end());
    };
    row("recall at 1", |figures| percent(figures.recall["1"]));
    row("recall at 3", |figures| percent(figures.recall["3"]));
    row("recall at 5", |figures| percent(figures.recall["5"]));
    row("recall at 10", |figures| percent(figures.recall["10"]));
    row("mean reciprocal rank", |figures| format!("{:.3}", figures.mrr));
    row("NDCG at 10", |figures| percent(figures.ndcg10));
    row("tools loaded, mean", |figures| format!("{:.1}", figures.mean_loaded));
    row("needed tools among them", |figures| percent(figures.loaded_recall));
    row("calibration error of the best", |figures| format!("{:.3}", figures.ece));
    row("µs a message, median", |figures| format!("{:.0}", figures.us_p50));
    row("µs a message, 99 in 100", |figures| format!("{:.0}", figures.us_p99));
    if let Some(told) = no_tool {
        out.line(&format!("{:34}{:>12}", "messages that need no tool", told.alone));
        out.line(&format!("{:34}{:>12.3}", "told apart (AUROC)", told.auroc));
        out.line(&format!("{:34}{:>12}", "of them told so", percent(told.caught)));
        out.line(&format!("{:34}{:>12}", "of the others told so", percent(told.false_alarms)));
        out.line(&format!("{:34}{:>12.3}", "calibration error of that", told.ece));
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
