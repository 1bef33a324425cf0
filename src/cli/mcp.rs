//! `almanacd mcp`: the door of MCP clients for those that only start commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{CliError, Exit, block_on};
use crate::mcp::Waits;
use crate::mcp::stdio::{self, Target};

#[derive(Debug, Args)]
pub(super) struct McpArgs {
    /// The view of the tools; server/NAME is one server alone [default: the default view]
    #[arg(long, value_name = "VIEW")]
    view: Option<String>,
    /// How long the client waits for an answer, such as 300s [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = Waits::parse_limit)]
    client_timeout: Option<Duration>,
    /// The client waits longer while progress is told
    #[arg(long)]
    progress_resets: bool,
    /// The daemon's socket of MCP clients [default: that of the user's own daemon, else of the machine's; started if
    /// there is none]
    #[arg(long, env = "ALMANAC_MCP_SOCKET", value_name = "PATH", conflicts_with = "url")]
    socket: Option<PathBuf>,
    /// Address of the daemon, such as <https://almanac.example>
    #[arg(long, env = "ALMANAC_URL", value_name = "URL")]
    url: Option<String>,
    /// Token for the address
    #[arg(long, env = "ALMANAC_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
}

pub(super) fn run(args: &McpArgs) -> Result<Exit, CliError> {
    let target = match (&args.socket, &args.url) {
        (Some(socket), _) => Target::Socket(socket.clone()),
        (None, Some(url)) => Target::Url { url: url.clone(), token: args.token.clone() },
        (None, None) => Target::Any,
    };
    let waits = Waits { limit: args.client_timeout, progress_resets: args.progress_resets };
    let is_answered = block_on(stdio::run(target, args.view.as_deref(), waits))?;
    Ok(if is_answered { Exit::Success } else { Exit::Failure })
}
