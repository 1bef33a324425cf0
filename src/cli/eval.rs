//! `almanacd eval timing FILE` and `eval next FILE`: how good what is said would have been on a recorded history. `eval
//! qualify` and `eval dialogues` stand beside it.

mod dialogues;
mod features;
mod qualify;
mod recall;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::output::Output;
use super::{CliError, Exit, file, plot};
use crate::suggest::evaluate as suggest;
use crate::timing::evaluate::agreement::{Agreement, agreement, answers};
use crate::timing::evaluate::{ForecastFigures, Stream, evaluate, track};
use crate::timing::{Defaults, Model};

/// Calls in a picture.
const PLOTTED: usize = 300;

#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    #[command(subcommand)]
    command: EvalCommand,
}

#[derive(Debug, Subcommand)]
enum EvalCommand {
    /// Replay calls from a CSV file: each is forecast from those before it, then learnt
    Timing(TimingArgs),
    /// Rank the tools for messages whose tools are known
    Qualify(qualify::EvalQualifyArgs),
    /// Have conversations whose last message needs a known tool
    Dialogues(dialogues::EvalDialoguesArgs),
    /// Search memories for queries whose answers are known
    Recall(recall::EvalRecallArgs),
    /// Replay sessions from JSON lines: each call is foretold from those before it, then learnt
    Next(NextArgs),
}

#[derive(Debug, Args)]
struct NextArgs {
    /// Lines of JSON, each with `session`, a name, and `tools`, a list of the tools that it called, oldest first
    file: PathBuf,
}

#[derive(Debug, Args)]
struct TimingArgs {
    /// Columns ts_ms (when the call began), host, tool, mode, duration_ms, outcome, content_length, num_perspectives,
    /// num_branches, thinking_budget and, if there is one, context_tokens
    file: PathBuf,
    /// Also write every call with what was said of it, as CSV
    #[arg(long, value_name = "OUT.csv", conflicts_with = "answers")]
    rows: Option<PathBuf>,
    /// Also write every forecast that can be corrected, with what a correction is read off, as CSV; nothing is
    /// corrected then
    #[arg(long, value_name = "OUT.csv", conflicts_with = "answers")]
    features: Option<PathBuf>,
    /// Also draw the forecasts of one tool and mode beside its last calls, as SVG
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,
    /// Whose calls to draw [default: those of the tool and mode with most calls on one host]
    #[arg(long, value_name = "TOOL[/MODE]", requires = "plot")]
    plot_key: Option<String>,
    /// Compare with another implementation's answers to the first calls instead; columns p05_ms, p50_ms, p90_ms,
    /// p95_ms, estimated_ms, p_over_30s, p_within_20pct, p_within_x2, confidence and, if there is one, hint_ms
    #[arg(long, value_name = "VECTORS", conflicts_with = "plot")]
    answers: Option<PathBuf>,
}

pub(super) fn run(args: &EvalArgs, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        EvalCommand::Timing(args) => timing(args, output),
        EvalCommand::Next(args) => next(args, output),
        EvalCommand::Qualify(args) => qualify::run(args, output),
        EvalCommand::Dialogues(args) => dialogues::run(args, output),
        EvalCommand::Recall(args) => recall::run(args, output),
    }
}

fn next(args: &NextArgs, output: &mut Output) -> Result<Exit, CliError> {
    let figures = suggest::evaluate(&read(&args.file, suggest::parse)?);
    output.show(&figures, |out| print_next(&figures, out));
    Ok(Exit::Success)
}

fn timing(args: &TimingArgs, output: &mut Output) -> Result<Exit, CliError> {
    let stream = read(&args.file, Stream::parse)?;
    if let Some(vectors) = &args.answers {
        let agreement = agreement(&stream, &read(vectors, answers)?, false);
        output.show(&agreement, |out| print_agreement(&agreement, out));
        return Ok(Exit::Success);
    }
    if let Some(picture) = &args.plot {
        let wanted = args.plot_key.as_deref();
        let track = track(&stream, &Defaults::default(), wanted, PLOTTED).ok_or_else(|| {
            let nothing =
                wanted.map_or_else(|| "it has no calls".to_owned(), |key| format!("it has no calls of {key}"));
            CliError::Evaluate { file: args.file.display().to_string(), source: nothing.into() }
        })?;
        file::replace(picture, &plot::svg(&track))?;
        output.note(&format!(
            "{} of {} calls of {}: {}",
            track.points.len(),
            track.calls,
            track.key,
            picture.display()
        ));
    }
    let mut rows = args.rows.as_ref().map(|_| rows::HEADER.to_owned());
    let mut features = args.features.as_ref().map(|_| features::header());
    let blank = if features.is_some() { Model::default().uncorrected() } else { Model::default() };
    let figures = evaluate(&stream, &Defaults::default(), &blank, |said| {
        if let Some(rows) = &mut rows {
            rows::add(rows, &said);
        }
        if let Some(features) = &mut features {
            features::add(features, &said);
        }
    });
    for (path, lines) in [(&args.rows, rows), (&args.features, features)] {
        if let (Some(path), Some(lines)) = (path, lines) {
            file::replace(path, &lines)?;
        }
    }
    output.show(&figures, |out| print(&figures, out));
    Ok(Exit::Success)
}

fn read<T, E>(file: &Path, parse: fn(&[u8]) -> Result<T, E>) -> Result<T, CliError>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let failed = |source| CliError::Evaluate { file: file.display().to_string(), source };
    let content = fs::read(file).map_err(|error| failed(error.into()))?;
    parse(&content).map_err(|error| failed(error.into()))
}

fn print_next(figures: &suggest::PredictionFigures, out: &mut Output) {
    let suggest::PredictionFigures { sessions, predictions, hit, hit_without_repeats, baseline } = figures;
    out.line(&out.bold(&format!("{predictions} calls foretold, of {sessions} sessions")));
    out.line(&format!("{:34}{:>12}{:>12}{:>12}", "among the first", "1", "3", "5"));
    let percent = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    for (what, hits) in [
        ("prediction", hit),
        ("what followed most often", &baseline.hit),
        ("prediction, without repeats", hit_without_repeats),
        ("most often, without repeats", &baseline.hit_without_repeats),
    ] {
        let [one, three, five] = [hits.at_1, hits.at_3, hits.at_5].map(percent);
        out.line(&format!("{what:34}{one:>12}{three:>12}{five:>12}"));
    }
}

fn print_agreement(agreement: &Agreement, out: &mut Output) {
    out.line(&out.bold(&format!("{} calls answered by both", agreement.rows)));
    out.line(&format!("{:34}{:>12}{:>12}", "distance", "99 in 100", "largest"));
    for (what, distance) in [
        ("P05, ln", agreement.p05),
        ("P50, ln", agreement.p50),
        ("P90, ln", agreement.p90),
        ("P95, ln", agreement.p95),
        ("estimate, ln", agreement.estimate),
        ("probability to exceed 30 s", agreement.timeout),
        ("probability within 20 %", agreement.within_20pct),
        ("probability within a factor of 2", agreement.within_x2),
    ] {
        out.line(&format!("{what:34}{:>12.6}{:>12.6}", distance.p99, distance.max));
    }
    out.line(&format!("{:34}{:>12}", "calls of another confidence", agreement.other_confidence));
}

fn print(figures: &ForecastFigures, out: &mut Output) {
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.3}"));
    let ForecastFigures { rows, failed, censored, hosts, keys, timeout, baselines, order, .. } = figures;
    let counts =
        format!("{rows} calls that ended ({failed} failed), {censored} given up; {keys} keys on {hosts} hosts");
    out.line(&out.bold(&counts));
    if *order != "time" {
        out.line("taken in the order of the file, since not every row has a ts_ms");
    }
    out.line(&format!("{:34}{:>12}{:>16}{:>12}", "", "forecast", "running median", "defaults"));
    let row = |name: &str, own: String, median: String, defaults: String| {
        format!("{name:34}{own:>12}{median:>16}{defaults:>12}")
    };
    let none = String::new;
    out.line(&row(
        "within 20 %",
        share(figures.within_20pct),
        share(baselines.running_median.within_20pct),
        share(baselines.defaults.within_20pct),
    ));
    out.line(&row(
        "median error, ln",
        format!("{:.3}", figures.median_abs_ln_error),
        format!("{:.3}", baselines.running_median.median_abs_ln_error),
        format!("{:.3}", baselines.defaults.median_abs_ln_error),
    ));
    out.line(&row("90 % interval covers", share(figures.coverage90), none(), none()));
    let worst = figures.worst_key_rows.map_or_else(String::new, |rows| format!(" ({rows} calls)"));
    out.line(&row(&format!("the same, worst key{worst}"), share(figures.worst_key_coverage90), none(), none()));
    out.line(&row("the same, asked without sizes", share(figures.unsized_coverage90), none(), none()));
    out.line(&row("pinball loss, of the history's", number(figures.pinball_ratio), none(), none()));
    out.line(&row("the same, asked without sizes", number(figures.unsized_pinball_ratio), none(), none()));
    out.line(&row("called high", share(figures.high_share), none(), none()));
    out.line(&row("of these within 20 % or 50 ms", share(figures.high_hit_rate), none(), none()));
    for band in &figures.high_by_band {
        let what = format!("  of {} estimates from {} ms", band.rows, band.from_ms);
        let right = share((band.high > 0).then(|| band.right as f64 / band.high as f64));
        out.line(&row(&what, format!("{} high", band.high), format!("{right} right"), none()));
    }
    for plan in &figures.plans {
        let what = format!("{} plans of {} calls: covered", plan.plans, plan.steps);
        let high = format!("high {}", share(plan.high_share));
        out.line(&row(&what, share(plan.coverage90), high, format!("{} right", share(plan.high_hit_rate))));
    }
    out.line(&row(
        &format!("timeout at {} ms: log-loss ratio", timeout.limit_ms),
        number(timeout.logloss_ratio),
        none(),
        none(),
    ));
    out.line(&row("called likely that timed out", share(timeout.likely_precision), none(), none()));
    out.line(&row("timeouts called unlikely", share(timeout.unlikely_share_of_timeouts), none(), none()));
    if let Some(given_up) = &figures.given_up {
        out.line(&row("given up there: Brier skill kept", number(given_up.skill_kept), none(), none()));
        out.line(&row("given up there: skill at twice that", number(given_up.skill_beyond), none(), none()));
    }
    if let Some(fleet) = &figures.fleet {
        out.line(&format!("{:34}{:>12}{:>16}", "", "of others", "prior"));
        out.line(&row(
            &format!("first 5 on a host, {} calls: error", fleet.calls),
            format!("{:.3}", fleet.median_abs_ln_error),
            format!("{:.3}", fleet.prior_median_abs_ln_error),
            none(),
        ));
    }
    out.line(&row("bytes a key", format!("{:.0}", figures.bytes_per_key), none(), none()));
    out.line(&row(
        "predict, observe, µs",
        format!("{:.1}, {:.1}", figures.predict_us, figures.observe_us),
        none(),
        none(),
    ));
}
