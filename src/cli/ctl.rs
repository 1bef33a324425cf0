//! `almanacd ctl`: controls the running daemon through its admin socket.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::output::Output;
use super::{CliError, DaemonArgs, Exit, block_on};
use crate::http::wire::{LogLevelAnswer, ReloadAnswer, StatusAnswer};

#[derive(Debug, Args)]
pub(super) struct CtlArgs {
    #[command(subcommand)]
    command: CtlCommand,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Debug, Subcommand)]
enum CtlCommand {
    /// Read configuration, tokens and documents again
    Reload {
        /// Wait for the outcome; exits 1 if there is an error
        #[arg(long)]
        wait: bool,
    },
    /// Show how the daemon is
    Status,
    /// Set the log's level until the next restart
    LogLevel {
        /// error, warn, info, debug, trace, or directives such as info,almanac::http=debug
        level: String,
    },
}

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Exit, CliError> {
    let client = args.daemon.client()?;
    match &args.command {
        CtlCommand::Reload { wait: false } => {
            let answer: Value = block_on(client.ask("POST", "/-/reload?wait=false", None))?;
            output.show(&answer, |out| out.line("reload begun"));
            Ok(Exit::Success)
        }
        CtlCommand::Reload { wait: true } => {
            let answer: ReloadAnswer = block_on(client.ask("POST", "/-/reload", None))?;
            output.show(&answer, |out| {
                for finding in answer.diagnostics.iter().filter(|finding| finding.is_error()) {
                    out.note(&format!("{}: {}", finding.place(), finding.message));
                }
                let ReloadAnswer { outcome, generation, tools, errors, .. } = &answer;
                out.line(&format!("{outcome}: generation {generation}, {tools} tools, {errors} errors"));
            });
            Ok(if answer.errors == 0 { Exit::Success } else { Exit::Failure })
        }
        CtlCommand::Status => {
            let answer: StatusAnswer = block_on(client.ask("GET", "/-/status", None))?;
            output.show(&answer, |out| {
                let state = if answer.ready {
                    "ready".to_owned()
                } else {
                    format!("waiting for {}", answer.missing.join(", "))
                };
                out.line(&format!("almanacd {}: {state}", answer.version));
                out.line(&answer.status);
                let uptime = std::time::Duration::from_secs(answer.uptime_seconds as u64);
                out.line(&format!("up {}, catalog of {}", humantime::format_duration(uptime), answer.loaded_at));
                if answer.errors + answer.warnings > 0 {
                    out.line(&format!("{} errors, {} warnings: see GET /v1/catalog", answer.errors, answer.warnings));
                }
            });
            Ok(if answer.ready { Exit::Success } else { Exit::Failure })
        }
        CtlCommand::LogLevel { level } => {
            let body = json!({"level": level}).to_string().into();
            let answer: LogLevelAnswer = block_on(client.ask("PUT", "/-/log-level", Some(body)))?;
            output.show(&answer, |out| out.line(&format!("log level {}", answer.level)));
            Ok(Exit::Success)
        }
    }
}
