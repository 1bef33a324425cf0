//! `almanacd estimate` and `almanacd record`: what a call will take, what it took.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::bar::{Marks, bar};
use super::output::{Output, counted};
use super::{CliError, DaemonArgs, Exit, block_on};
use crate::wire::timing::{EstimateAnswer, RecordAnswer, Timing};

#[derive(Debug, Args)]
pub(super) struct EstimateArgs {
    /// The tool
    tool: String,
    #[command(flatten)]
    call: CallArgs,
    /// When the caller gives up, in ms [default: the daemon's timing.factory_timeout_ms]
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// How long the call has run already, in ms
    #[arg(long, value_name = "MS")]
    elapsed_ms: Option<u64>,
    /// Draw the forecast and the limit on a line
    #[arg(long)]
    plot: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(super) struct RecordArgs {
    /// The tool
    tool: String,
    /// How long the call took, in ms; fractions are rounded
    #[arg(value_parser = duration)]
    duration_ms: f64,
    /// How it ended
    #[arg(long, value_enum, default_value = "success")]
    outcome: OutcomeArg,
    /// The session it belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A second record with this key is the same call told again
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    call: CallArgs,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutcomeArg {
    Success,
    Error,
    Timeout,
    Cancelled,
}

/// What a call was.
#[derive(Debug, Args)]
#[command(next_help_heading = "Call")]
struct CallArgs {
    /// The tool's mode
    #[arg(long)]
    mode: Option<String>,
    /// Characters of the input
    #[arg(long, value_name = "N")]
    content_length: Option<u64>,
    /// Perspectives asked for
    #[arg(long, value_name = "N")]
    num_perspectives: Option<u64>,
    /// Branches asked for
    #[arg(long, value_name = "N")]
    num_branches: Option<u64>,
    /// Thinking budget, in tokens
    #[arg(long, value_name = "N")]
    thinking_budget: Option<u64>,
    /// Tokens of context
    #[arg(long, value_name = "N")]
    context_tokens: Option<u64>,
}

impl CallArgs {
    fn body(&self, tool: &str, more: Value) -> Value {
        let complexity = json!({
            "content_length": self.content_length,
            "num_perspectives": self.num_perspectives,
            "num_branches": self.num_branches,
            "thinking_budget": self.thinking_budget,
            "context_tokens": self.context_tokens,
        });
        let mut body = Map::from_iter([("tool_name".to_owned(), tool.into())]);
        body.insert("mode_name".to_owned(), self.mode.clone().into());
        body.insert("complexity".to_owned(), complexity);
        if let Value::Object(more) = more {
            body.extend(more);
        }
        Value::Object(body)
    }
}

pub(super) fn estimate(args: &EstimateArgs, output: &mut Output) -> Result<Exit, CliError> {
    let more = json!({"timeout_ms": args.timeout_ms, "elapsed_ms": args.elapsed_ms});
    let body = args.call.body(&args.tool, more).to_string().into();
    let answer: EstimateAnswer = block_on(args.daemon.client()?.ask("POST", "/v1/estimate", Some(body)))?;
    output.show(&answer, |out| {
        print(&args.tool, &answer.timing, out);
        if args.plot {
            draw(&answer.timing, out);
        }
    });
    Ok(Exit::Success)
}

fn draw(timing: &Timing, out: &mut Output) {
    let marks = Marks {
        interval: timing.interval_ms,
        median: timing.p50_ms,
        p90: timing.p90_ms,
        limit: timing.factory_timeout_ms,
    };
    for line in bar(&marks) {
        out.line(&line);
    }
}

fn print(tool: &str, timing: &Timing, out: &mut Output) {
    let time = |ms: u64| humantime::format_duration(std::time::Duration::from_millis(ms)).to_string();
    let estimate = out.bold(&time(timing.estimated_duration_ms));
    out.line(&format!("{tool}: about {estimate}, {} confidence", timing.confidence));
    let [low, high] = timing.interval_ms.map(time);
    out.line(&format!("nine calls in ten: {low} to {high}; half under {}", time(timing.p50_ms)));
    let percent = timing.timeout_probability * 100.0;
    out.line(&format!("timeout at {}: {} ({percent:.0} %)", time(timing.factory_timeout_ms), timing.timeout));
    if let Some(left) = &timing.remaining {
        out.line(&format!("left of it: half under {}, nine in ten under {}", time(left.p50_ms), time(left.p90_ms)));
    }
    let others = timing.fleet_samples.map(|samples| format!(", {samples} on other hosts")).unwrap_or_default();
    out.line(&format!("from {}{others} ({})", counted(timing.samples, "sample"), timing.basis));
    if let Some(why) = &timing.degraded {
        out.line(why);
    }
    if !timing.known {
        let hint =
            if timing.near.is_empty() { String::new() } else { format!("; near names: {}", timing.near.join(", ")) };
        out.line(&format!("nobody ever heard of {tool}{hint}"));
    }
}

/// JSON has no other numbers.
fn duration(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "a call takes so many ms: a number of 0 or more, such as 1200".to_owned())
}

pub(super) fn record(args: &RecordArgs, output: &mut Output) -> Result<Exit, CliError> {
    let outcome = args.outcome.to_possible_value().map(|value| value.get_name().to_owned());
    let more = json!({
        "duration_ms": args.duration_ms,
        "outcome": outcome,
        "session_id": args.session,
        "idempotency_key": args.idempotency_key,
    });
    let body = args.call.body(&args.tool, more).to_string().into();
    let answer: RecordAnswer = block_on(args.daemon.client()?.ask("POST", "/v1/executions", Some(body)))?;
    output.show(&answer, |out| {
        out.line(if answer.recorded == 0 { "told before; nothing new" } else { "recorded, durably" });
        for why in &answer.degraded {
            out.note(why);
        }
    });
    Ok(Exit::Success)
}
