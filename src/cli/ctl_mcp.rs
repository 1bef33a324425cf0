//! `almanacd ctl mcp`: the MCP servers behind the daemon.

use clap::Subcommand;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::client::Client;
use super::output::Output;
use super::{CliError, Exit, block_on};
use crate::wire::upstream::{McpServerApproved, McpServerDiff, McpServerList, McpServerLogs, McpServerRestarted};

#[derive(Debug, Subcommand)]
pub(super) enum CtlMcpCommand {
    /// List the servers; exits 1 if one does not answer
    List,
    /// End a server and start it again
    Restart {
        /// Its name
        server: String,
    },
    /// Show what a server wrote of late, and what became of it
    Logs {
        /// Its name
        server: String,
    },
    /// Show which definitions wait for an approval; exits 1 if some do
    Diff {
        /// Its name
        server: String,
        /// One tool, by its name there
        tool: Option<String>,
    },
    /// Approve definitions that wait for it
    Approve {
        /// Its name
        server: String,
        /// One tool, by its name there [default: all]
        tool: Option<String>,
    },
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

pub(super) fn run(command: &CtlMcpCommand, client: &Client, output: &mut Output) -> Result<Exit, CliError> {
    match command {
        CtlMcpCommand::List => list(client, output),
        CtlMcpCommand::Restart { server } => {
            let path = format!("/-/mcp/{}/restart", encoded(server));
            let answer: McpServerRestarted = block_on(client.ask("POST", &path, None))?;
            output.show(&answer, |out| out.line(&format!("{} is being restarted", answer.restarted)));
            Ok(Exit::Success)
        }
        CtlMcpCommand::Logs { server } => {
            let answer: McpServerLogs = block_on(client.ask("GET", &format!("/-/mcp/{}/logs", encoded(server)), None))?;
            output.show(&answer, |out| answer.lines.iter().for_each(|line| out.line(line)));
            Ok(Exit::Success)
        }
        CtlMcpCommand::Diff { server, tool } => diff(client, server, tool.as_deref(), output),
        CtlMcpCommand::Approve { server, tool } => {
            let query = tool.as_ref().map(|tool| format!("?tool={}", encoded(tool))).unwrap_or_default();
            let path = format!("/-/mcp/{}/approve{query}", encoded(server));
            let answer: McpServerApproved = block_on(client.ask("POST", &path, None))?;
            output.show(&answer, |out| match answer.approved.as_slice() {
                [] => out.line("nothing waits for an approval"),
                names => out.line(&format!("approved: {}", names.join(", "))),
            });
            Ok(Exit::Success)
        }
    }
}

fn list(client: &Client, output: &mut Output) -> Result<Exit, CliError> {
    let answer: McpServerList = block_on(client.ask("GET", "/-/mcp", None))?;
    output.show(&answer, |out| {
        for item in &answer.items {
            let tools = item.tools.map_or_else(|| "never listed".to_owned(), |tools| format!("{tools} tools"));
            let version = item.version.as_ref().map(|version| format!(", {version}")).unwrap_or_default();
            let pid = item.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            let waiting = match item.waiting {
                0 => String::new(),
                waiting => format!(", {waiting} to approve: almanacd ctl mcp diff {}", item.name),
            };
            out.line(&format!(
                "{:<11} {} {tools}{version}{pid}, {} starts{waiting}",
                item.state, item.name, item.starts
            ));
            if let Some(problem) = &item.problem {
                out.line(&format!("          {problem}"));
            }
        }
        if answer.items.is_empty() {
            out.line("no MCP servers are configured");
        }
    });
    let all_up = answer.items.iter().all(|item| ["up", "idle"].contains(&&*item.state));
    Ok(if all_up { Exit::Success } else { Exit::Failure })
}

fn diff(client: &Client, server: &str, tool: Option<&str>, output: &mut Output) -> Result<Exit, CliError> {
    let mut answer: McpServerDiff = block_on(client.ask("GET", &format!("/-/mcp/{}/diff", encoded(server)), None))?;
    answer.items.retain(|item| tool.is_none_or(|tool| tool == item.tool));
    output.show(&answer, |out| {
        let lines = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap_or_default();
        for item in &answer.items {
            let old = item.approved.as_ref().map(lines).unwrap_or_default();
            let new = lines(&item.offered);
            out.line(&out.bold(&item.tool));
            for (mark, text, other) in [('-', &old, &new), ('+', &new, &old)] {
                let others: Vec<&str> = other.lines().collect();
                text.lines().filter(|line| !others.contains(line)).for_each(|line| out.line(&format!("{mark} {line}")));
            }
        }
        if answer.items.is_empty() {
            out.line("nothing waits for an approval");
        }
    });
    Ok(if answer.items.is_empty() { Exit::Success } else { Exit::Failure })
}
