//! `almanacd ctl`: controls the running daemon through its admin socket.

use clap::{Args, Subcommand};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Output, counted};
use super::{CliError, DaemonArgs, Exit, block_on};
use crate::plugin_host::confinement;
use crate::wire::catalog::{LogLevelAnswer, ReloadAnswer, StatusAnswer};
use crate::wire::plugin::{PluginList, PluginReset};

#[derive(Debug, Args)]
pub(super) struct CtlArgs {
    #[command(subcommand)]
    command: CtlCommand,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Debug, Subcommand)]
enum CtlCommand {
    /// Read configuration, tokens, documents and rule libraries again
    Reload {
        /// Wait for the outcome; exits 1 if there is an error
        #[arg(long)]
        wait: bool,
    },
    /// Show how the daemon is
    Status,
    /// List the daemons that share the database; exits 1 if something is wrong with one
    Fleet,
    /// Look at rule libraries, and forgive them
    Plugin {
        #[command(subcommand)]
        command: CtlPluginCommand,
    },
    /// Look at the MCP servers behind the daemon, and approve what they changed
    Mcp {
        #[command(subcommand)]
        command: super::ctl_mcp::CtlMcpCommand,
    },
    /// Set the log's level until the next restart
    LogLevel {
        /// error, warn, info, debug, trace, or directives such as info,almanac::http=debug
        level: String,
    },
}

#[derive(Debug, Subcommand)]
enum CtlPluginCommand {
    /// List the rule libraries; exits 1 if one is not ready
    List,
    /// Forgive a rule library its faults, and try it again at once
    Reset {
        /// Its id
        id: String,
    },
}

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Exit, CliError> {
    let client = args.daemon.client()?;
    match &args.command {
        CtlCommand::Reload { wait: false } => {
            let answer: Value = block_on(client.ask("POST", "/-/reload?wait=false", None))?;
            output.show(&answer, |out| {
                out.line("reload begun");
                out.note("whether it succeeds is in the log and in `almanacd ctl status`; --wait waits for it");
            });
            Ok(Exit::Success)
        }
        CtlCommand::Reload { wait: true } => {
            let answer: ReloadAnswer = block_on(client.ask("POST", "/-/reload", None))?;
            output.show(&answer, |out| {
                let shown: Vec<_> = answer.diagnostics.iter().filter(|finding| finding.is_error()).collect();
                for finding in &shown {
                    out.note(&format!("{}: {}", finding.place(), finding.message));
                }
                if shown.len() < answer.errors {
                    out.note(&format!("and {} more errors: see GET /v1/catalog", answer.errors - shown.len()));
                }
                for failed in &answer.plugins_failed {
                    out.note(&format!("rule library {}: {}", failed.id, failed.reason));
                }
                if !answer.waiting.is_empty() {
                    out.note(&format!("waits for a restart: {}", answer.waiting.join(", ")));
                }
                let ReloadAnswer { outcome, generation, tools, errors, plugins_ready, plugins_failed, .. } = &answer;
                let said = |count: usize, what: &str| counted(count as u64, what);
                let (tools, errors) = (said(*tools, "tool"), said(*errors, "error"));
                let mut line = format!("catalog {outcome}: generation {generation}, {tools}, {errors}");
                if plugins_ready + plugins_failed.len() > 0 {
                    let (ready, failed) = (said(*plugins_ready, "plugin"), plugins_failed.len());
                    line.push_str(&format!(", {ready} ready, {failed} failed"));
                }
                out.line(&line);
            });
            Ok(if answer.errors == 0 && answer.plugins_failed.is_empty() { Exit::Success } else { Exit::Failure })
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
                for trouble in &answer.troubles {
                    out.line(&format!("trouble: {trouble}"));
                }
                let uptime = std::time::Duration::from_secs(answer.uptime_seconds as u64);
                out.line(&format!("up {}, catalog of {}", humantime::format_duration(uptime), answer.loaded_at));
                if answer.errors + answer.warnings > 0 {
                    let (errors, warnings) =
                        (counted(answer.errors as u64, "error"), counted(answer.warnings as u64, "warning"));
                    out.line(&format!("{errors}, {warnings}: see GET /v1/catalog"));
                }
            });
            Ok(if answer.ready { Exit::Success } else { Exit::Failure })
        }
        CtlCommand::Plugin { command: CtlPluginCommand::List } => list_plugins(&client, output),
        CtlCommand::Plugin { command: CtlPluginCommand::Reset { id } } => {
            let name = utf8_percent_encode(id, NON_ALPHANUMERIC);
            let answer: PluginReset = block_on(client.ask("POST", &format!("/-/plugins/{name}/reset"), None))?;
            output.show(&answer, |out| out.line(&format!("{} is forgiven, and tried again", answer.reset)));
            Ok(Exit::Success)
        }
        CtlCommand::Fleet => super::ctl_fleet::run(&client, output),
        CtlCommand::Mcp { command } => super::ctl_mcp::run(command, &client, output),
        CtlCommand::LogLevel { level } => {
            let body = json!({"level": level}).to_string().into();
            let answer: LogLevelAnswer = block_on(client.ask("PUT", "/-/log-level", Some(body)))?;
            output.show(&answer, |out| {
                out.line(&format!("log level {}", answer.level));
                answer.warnings.iter().for_each(|warning| out.note(&format!("warning: {warning}")));
            });
            Ok(Exit::Success)
        }
    }
}

fn list_plugins(client: &Client, output: &mut Output) -> Result<Exit, CliError> {
    let answer: PluginList = block_on(client.ask("GET", "/v1/plugins", None))?;
    output.show(&answer, |out| {
        for item in &answer.items {
            let version = item.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
            let calls = &item.calls;
            let missed = calls.failed + calls.timeout + calls.busy + calls.fault + calls.unavailable;
            // What does not run is in no sandbox, which would look like a fault of it.
            let runs = item.state == "ready" || item.pid.is_some();
            let sandbox = runs.then(|| format!(", sandbox: {}", confinement(&item.sandbox, &item.sandbox_lacks)));
            let sandbox = sandbox.unwrap_or_default();
            let state = match &item.update_refused {
                Some(_) => format!("{}, update refused", item.state),
                None => item.state.clone(),
            };
            out.line(&format!(
                "{:<12} {}{version}, {} calls, {missed} missed, {} restarts{sandbox}",
                state, item.id, calls.answered, item.restarts
            ));
            // What a version did that is gone is in the log.
            let past =
                item.last_fault.as_ref().filter(|fault| item.hash.as_ref().is_none_or(|hash| *hash == fault.hash));
            let mark = if item.state == "ready" { "last fault: " } else { "" };
            let past = past.map(|fault| format!("{mark}{}", fault.message));
            let reason = item.update_refused.clone().or(item.refusal.clone()).or(past);
            if let Some(reason) = reason {
                out.line(&format!("             {reason}"));
            }
        }
        if answer.items.is_empty() {
            out.note("there are no rule libraries where `plugins.paths` says");
        }
        if !answer.sandbox_available {
            out.note("this kernel has no Landlock: rule libraries can read every file that the daemon can");
        }
    });
    let all_ready = answer.items.iter().all(|item| item.state == "ready" && item.update_refused.is_none());
    Ok(if all_ready { Exit::Success } else { Exit::Failure })
}
