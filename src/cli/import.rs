//! `almanacd import`: what others know of tools, as documents and configuration.

mod clients;
mod tools;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::Output;
use super::{CliError, Exit};

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Debug, Subcommand)]
enum ImportCommand {
    /// Write a document for each tool of an MCP server, or take servers over from clients' configurations
    Mcp(McpArgs),
}

#[derive(Debug, Args)]
struct McpArgs {
    /// Configurations of clients: JSON with mcpServers or servers, or Codex's TOML
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "command")]
    clients: Vec<PathBuf>,
    /// The server's name in mcp.servers [default: the program's]
    #[arg(long, value_name = "NAME", conflicts_with = "clients")]
    name: Option<String>,
    /// Directory for the documents
    #[arg(long, value_name = "DIR", default_value = "tool_metadata", conflicts_with = "clients")]
    out: PathBuf,
    /// Bring documents that are there up to date: description, schema and backend, nothing else
    #[arg(long, conflicts_with = "clients")]
    update: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "clients")]
    command: Vec<String>,
}

pub(super) fn run(args: &ImportArgs, output: &mut Output) -> Result<Exit, CliError> {
    let ImportCommand::Mcp(args) = &args.command;
    if args.clients.is_empty() {
        return tools::import(&args.command, args.name.as_deref(), &args.out, args.update, output);
    }
    clients::import(&args.clients, output)
}
