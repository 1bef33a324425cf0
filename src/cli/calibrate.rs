//! `almanacd calibrate`: how long the tools take here, as records of the daemon and as defaults.

mod command;
mod measured;
mod recorder;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::signal::unix::{SignalKind, signal};

use super::output::{Output, counted};
use super::{CliError, DaemonArgs, Exit, block_on, file};
use crate::catalog::Catalog;
use crate::catalog::document::{NameFault, check_name};
use crate::catalog::load::load;
use crate::config::{DaemonOverrides, Overrides};
use crate::daemon::Config;
use crate::text::near;
use crate::timing::evaluate::Stream;
use crate::timing::evaluate::stream::Row;
use crate::timing::{Complexity, Defaults};
use command::Measurement;
use measured::{Level, Measured, ToolFigures};
use recorder::{Recorder, body};

/// Calls of a history recorded at once.
const BATCH: usize = 250;
/// Characters of the bar between its brackets.
const BAR: usize = 10;

#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    /// Shell command that makes one call, which it finds in its environment: ALMANAC_TOOL, ALMANAC_MODE,
    /// ALMANAC_COMPLEXITY (simple, moderate, complex), ALMANAC_CONTENT_LENGTH, ALMANAC_NUM_PERSPECTIVES,
    /// ALMANAC_NUM_BRANCHES, ALMANAC_THINKING_BUDGET; if it fails, the call did
    #[arg(long, value_name = "CMD", required_unless_present = "from", conflicts_with = "from")]
    exec: Option<String>,
    /// Take the calls from this CSV file instead; its columns are those of `eval timing`
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Calls per tool and complexity
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "from",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Measure this tool; repeatable [default: all tools of the catalog]
    #[arg(long = "tool", value_name = "NAME", value_parser = tool_name)]
    tools: Vec<String>,
    /// The mode of all calls
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, conflicts_with = "from")]
    mode: String,
    /// Kill a call after so many ms; it counts as a timeout
    #[arg(long, value_name = "MS", default_value_t = 600_000, conflicts_with = "from",
        value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    timeout_ms: u64,
    /// Measure without recording the calls in the daemon
    #[arg(long)]
    no_record: bool,
    /// Write the measured defaults to this file; what was not measured stays as it is now
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    daemon: DaemonArgs,
}

fn tool_name(name: &str) -> Result<String, NameFault> {
    check_name(name).map(|()| name.to_owned())
}

pub(super) fn run(args: &CalibrateArgs, output: &mut Output) -> Result<Exit, CliError> {
    let config = Config::load(&args.overrides, &DaemonOverrides::default())?;
    let defaults = Defaults::read(config.timing_defaults.as_deref())?;
    let catalog = load(config.documents()).catalog;
    check_tools(args, &catalog, &defaults)?;
    let client = if args.no_record { None } else { Some(args.daemon.client()?) };
    let mut recorder = Recorder::new(client);
    let measured = match (&args.from, &args.exec) {
        (Some(history), _) => block_on(replay(args, history, &defaults, &mut recorder, output)),
        (None, Some(command)) => {
            let measurement = Measurement { command, mode: &args.mode, limit: Duration::from_millis(args.timeout_ms) };
            let tools = tools(args, &catalog);
            block_on(measure(args, &measurement, &tools, &mut recorder, output))
        }
        (None, None) => Ok(Measured::default()),
    };
    output.progress("");
    let figures = measured?.figures();
    let durations: Vec<_> = figures.iter().filter_map(|tool| Some((tool.tool.clone(), tool.default_ms?))).collect();
    let is_measured = !durations.is_empty();
    let changes = changes(&catalog, &defaults, &durations);
    if let Some(out) = args.out.as_deref().filter(|_| is_measured) {
        file::replace(out, &defaults.with_durations(durations).to_yaml())?;
    }
    output.show(&json!({"recorded": recorder.recorded, "tools": figures, "changes": changes}), |out| {
        print(&figures, out);
        for Change { tool, before_ms, after_ms } in changes.iter().filter(|_| args.out.is_some()) {
            out.line(&format!("{tool}: {before_ms} ms before, {after_ms} ms now"));
        }
        if is_measured {
            out.line(&format!("Calibration complete. {} recorded.", counted(recorder.recorded as u64, "sample")));
        }
    });
    if let Some((count, error)) = &recorder.lost {
        output.error(&format!("{count} calls were measured but not recorded: {error}"));
    }
    if !is_measured {
        output.error("nothing could be measured: for no tool did most of the simple calls succeed");
    }
    Ok(if is_measured && recorder.lost.is_none() { Exit::Success } else { Exit::Failure })
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    fs::read(path).map_err(|error| CliError::Read { file: path.display().to_string(), source: error.into() })
}

/// What is expected of a tool before its first call, as it was and as it is measured.
#[derive(Debug, Serialize)]
struct Change {
    tool: String,
    before_ms: u64,
    after_ms: u64,
}

/// What the measured durations change of what is expected of simple calls.
fn changes(catalog: &Catalog, defaults: &Defaults, durations: &[(String, u64)]) -> Vec<Change> {
    let before = |tool: &str| {
        let hint = catalog.get(tool).and_then(|entry| entry.hint_ms());
        defaults.prior(tool, hint, &Complexity::default()).ms
    };
    let change =
        |(tool, after_ms): &(String, u64)| Change { tool: tool.clone(), before_ms: before(tool), after_ms: *after_ms };
    durations.iter().map(change).filter(|change| change.before_ms != change.after_ms).collect()
}

/// A name that nobody knows, and that is nearly one that is known, is a mistake.
fn check_tools(args: &CalibrateArgs, catalog: &Catalog, defaults: &Defaults) -> Result<(), CliError> {
    for tool in args.tools.iter().filter(|tool| catalog.get(tool).is_none() && !defaults.names(tool)) {
        let known = catalog.iter().map(|entry| &**entry.name()).chain(defaults.tools().map(|(tool, _)| tool));
        if let Some(near) = near::nearest(tool, known) {
            return Err(CliError::UnknownTool { tool: tool.clone(), near: Some(near.to_owned()) });
        }
    }
    Ok(())
}

/// The tools to measure: each once, in order.
fn tools(args: &CalibrateArgs, catalog: &Catalog) -> Vec<String> {
    let mut tools = args.tools.clone();
    if tools.is_empty() {
        tools = catalog.iter().map(|entry| entry.name().to_string()).collect();
    }
    tools.sort_unstable();
    tools.dedup();
    tools
}

/// Makes all calls, unless interrupted.
async fn measure(
    args: &CalibrateArgs,
    measurement: &Measurement<'_>,
    tools: &[String],
    recorder: &mut Recorder,
    output: &mut Output,
) -> Result<Measured, CliError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::Runtime)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(CliError::Runtime)?;
    let calls = async {
        recorder.knock().await?;
        let mut measured = Measured::default();
        let all = tools.len() * Level::ALL.len() * args.runs as usize;
        let mut made = 0;
        for tool in tools {
            for level in Level::ALL {
                for _ in 0..args.runs {
                    output.progress(&bar(made, all, &format!("{tool} {}", level.as_str())));
                    let observation = measurement.run(tool, level).await.map_err(CliError::Call)?;
                    measured.add(tool, level, observation);
                    recorder.record(vec![body(tool, measurement.mode, &level.sizes(), observation, None)]).await?;
                    made += 1;
                }
            }
        }
        Ok(measured)
    };
    let measured = tokio::select! {
        measured = calls => Some(measured),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    measured.unwrap_or(Err(CliError::Interrupted { recorded: recorder.recorded }))
}

/// Takes the calls from a file. A call is simple if no factor of the defaults applies to it, else complex.
async fn replay(
    args: &CalibrateArgs,
    history: &Path,
    defaults: &Defaults,
    recorder: &mut Recorder,
    output: &mut Output,
) -> Result<Measured, CliError> {
    let content = read(history)?;
    let stream = Stream::parse(&content)
        .map_err(|error| CliError::Read { file: history.display().to_string(), source: error.into() })?;
    let is_wanted = |row: &Row| args.tools.is_empty() || args.tools.iter().any(|tool| **tool == *row.tool);
    let rows: Vec<(usize, &Row)> = stream.rows.iter().enumerate().filter(|(_, row)| is_wanted(row)).collect();
    // A file that is replayed again adds nothing.
    let digest = Sha256::digest(&content);
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let mut measured = Measured::default();
    for (batch, calls) in rows.chunks(BATCH).enumerate() {
        output.progress(&bar(batch * BATCH, rows.len(), ""));
        let mut bodies = Vec::with_capacity(calls.len());
        for (number, row) in calls {
            let is_simple = defaults.factor(&row.complexity).to_bits() == 1.0_f64.to_bits();
            measured.add(&row.tool, if is_simple { Level::Simple } else { Level::Complex }, row.observation);
            let key = format!("calibrate-{digest}-{number}");
            bodies.push(body(&row.tool, &row.mode, &row.complexity, row.observation, Some(&key)));
        }
        recorder.record(bodies).await?;
    }
    Ok(measured)
}

/// `[#####     ] 12/60 what`
pub(super) fn bar(done: usize, all: usize, what: &str) -> String {
    let filled = BAR * done / all.max(1);
    format!("[{:BAR$}] {done}/{all} {what}", "#".repeat(filled)).trim_end().to_owned()
}

fn print(figures: &[ToolFigures], out: &mut Output) {
    let width = figures.iter().map(|tool| tool.tool.chars().count()).max().unwrap_or(0).max(4);
    let head = format!(
        "{:width$}  {:10}{:>8}{:>8}{:>10}{:>12}",
        "tool", "complexity", "calls", "errors", "timeouts", "median"
    );
    out.line(&out.bold(&head));
    for tool in figures {
        for level in &tool.levels {
            let median = level.median_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
            out.line(&format!(
                "{:width$}  {:10}{:>8}{:>8}{:>10}{median:>12}",
                tool.tool,
                level.complexity.as_str(),
                level.calls,
                level.errors,
                level.timeouts,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills() {
        assert_eq!(bar(12, 24, "a simple"), "[#####     ] 12/24 a simple");
        assert_eq!(bar(0, 0, ""), "[          ] 0/0");
        assert_eq!(bar(7, 7, ""), "[##########] 7/7");
    }
}
