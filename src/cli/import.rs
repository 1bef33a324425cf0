//! `almanacd import`: what others know of tools, as documents and configuration.

mod clients;
mod documents;
mod functions;
mod openapi;
mod tools;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::Value;

use super::output::Output;
use super::{CliError, Exit};
use crate::catalog::ToolMetadata;
use crate::strict::read::{Limits, json, yaml};
use crate::strict::{Diagnostic, LoadError, file};
use documents::Written;

/// What a description of others may cost: those of large services have megabytes and hundreds of thousands of values.
const LIMITS: Limits = Limits { bytes: 64 << 20, depth: 128, nodes: 4_000_000 };

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Debug, Subcommand)]
enum ImportCommand {
    /// Write a document for each tool of an MCP server, or take servers over from clients' configurations
    Mcp(McpArgs),
    /// Write a document for each operation of an OpenAPI 3 description
    Openapi(FileArgs),
    /// Write a document for each function of a list for OpenAI, Anthropic or Gemini
    Functions(FileArgs),
    /// Write a document for each tool that an MCP server's tools/list answered with
    McpList(McpListArgs),
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
    /// Bring documents that are there up to date: description, schema and backend, and what is empty
    #[arg(long, conflicts_with = "clients")]
    update: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "clients")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
struct FileArgs {
    /// The file, JSON or YAML
    file: PathBuf,
    /// Directory for the documents
    #[arg(long, value_name = "DIR", default_value = "tool_metadata")]
    out: PathBuf,
    /// Bring documents that are there up to date: description, schema and backend, and what is empty
    #[arg(long)]
    update: bool,
}

#[derive(Debug, Args)]
struct McpListArgs {
    #[command(flatten)]
    file: FileArgs,
    /// The server's name in mcp.servers; tools are then called after it, as they are served
    #[arg(long, value_name = "NAME", default_value = "")]
    server: String,
}

pub(super) fn run(args: &ImportArgs, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        ImportCommand::Mcp(args) if args.clients.is_empty() => {
            tools::import(&args.command, args.name.as_deref(), &args.out, args.update, output)
        }
        ImportCommand::Mcp(args) => Ok(clients::import(&args.clients, output)),
        ImportCommand::Openapi(args) => {
            let read = openapi::openapi(&read(&args.file)?);
            write(args, read.map_err(|error| unusable(&args.file, error.into()))?, output)
        }
        ImportCommand::Functions(args) => {
            let read = functions::functions(&read(&args.file)?);
            let none =
                || unusable(&args.file, "it is no list of functions, and has none under `tools` or `functions`".into());
            write(args, read.ok_or_else(none)?, output)
        }
        ImportCommand::McpList(McpListArgs { file: args, server }) => {
            let read = functions::mcp_list(&read(&args.file)?, server);
            let none = || unusable(&args.file, "it is no list of tools, and has none under `tools`".into());
            write(args, read.ok_or_else(none)?, output)
        }
    }
}

fn write(
    args: &FileArgs,
    (documents, left): (Vec<ToolMetadata>, Vec<String>),
    output: &mut Output,
) -> Result<Exit, CliError> {
    let written = Written::write(documents, &args.out, args.update)?.without(left);
    Ok(written.tell(&args.file.display().to_string(), output))
}

fn unusable(file: &Path, source: Box<dyn std::error::Error + Send + Sync>) -> CliError {
    CliError::Read { file: file.display().to_string(), source }
}

/// The file as a value, JSON by its name or else YAML.
fn read(path: &Path) -> Result<Value, CliError> {
    let name = || path.display().to_string();
    let content = file::read(path, LIMITS.bytes)
        .map_err(|source| CliError::Config(LoadError::Unreadable { file: name(), source }))?;
    let node = if file::is_json(path) { json(&content, &LIMITS) } else { yaml(&content, &LIMITS) };
    let node = node.map_err(|error| {
        let diagnostics = vec![Diagnostic::unreadable(path, &content, &error)];
        CliError::Config(LoadError::Faulty { file: name(), diagnostics })
    })?;
    Ok(node.into())
}
