//! `almanacd eval timing FILE`: how good the forecasts would have been on a recorded history.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::Output;
use super::{CliError, Exit};
use crate::timing::Defaults;
use crate::timing::evaluate::{Figures, Stream, evaluate};

#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    #[command(subcommand)]
    command: EvalCommand,
}

#[derive(Debug, Subcommand)]
enum EvalCommand {
    /// Replay calls from a CSV file: each is forecast from those before it, then learnt
    Timing {
        /// Columns ts_ms, host, tool, mode, duration_ms, outcome, content_length, num_perspectives, num_branches,
        /// thinking_budget and, if there is one, context_tokens
        file: PathBuf,
    },
}

pub(super) fn run(args: &EvalArgs, output: &mut Output) -> Result<Exit, CliError> {
    let EvalCommand::Timing { file } = &args.command;
    let failed = |source| CliError::Evaluate { file: file.display().to_string(), source };
    let content = fs::read(file).map_err(|error| failed(error.into()))?;
    let stream = Stream::parse(&content).map_err(|error| failed(error.into()))?;
    let figures = evaluate(&stream, &Defaults::default());
    output.show(&figures, |out| print(&figures, out));
    Ok(Exit::Success)
}

fn print(figures: &Figures, out: &mut Output) {
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.3}"));
    let Figures { rows, censored, hosts, keys, timeout, baselines, .. } = figures;
    out.line(&out.bold(&format!("{rows} calls that ended, {censored} given up; {keys} keys on {hosts} hosts")));
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
    out.line(&row("the same, worst key", share(figures.worst_key_coverage90), none(), none()));
    out.line(&row("pinball loss, of the history's", number(figures.pinball_ratio), none(), none()));
    out.line(&row("called high", share(figures.high_share), none(), none()));
    out.line(&row("of these within 20 % or 50 ms", share(figures.high_hit_rate), none(), none()));
    out.line(&row(
        &format!("timeout at {} ms: log-loss ratio", timeout.limit_ms),
        number(timeout.logloss_ratio),
        none(),
        none(),
    ));
    out.line(&row("called likely that timed out", share(timeout.likely_precision), none(), none()));
    out.line(&row("timeouts called unlikely", share(timeout.unlikely_share_of_timeouts), none(), none()));
    out.line(&row("bytes a key", format!("{:.0}", figures.bytes_per_key), none(), none()));
    out.line(&row(
        "predict, observe, µs",
        format!("{:.1}, {:.1}", figures.predict_us, figures.observe_us),
        none(),
        none(),
    ));
}
