//! The command line: translates arguments to [`Engine`](crate::Engine) calls, here or in the running daemon, and back
//! to text.

mod bar;
mod calibrate;
mod check;
mod client;
mod ctl;
mod ctl_fleet;
mod ctl_mcp;
mod database_args;
mod documents;
mod environment;
mod eval;
mod examples;
mod file;
mod import;
mod man;
mod mcp;
mod memory;
mod memory_door;
mod migrate;
mod output;
mod plot;
mod plugin;
mod qualify;
mod show;
mod spool;
mod suggest;
mod timing;
mod token;
mod tools;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::access;
use crate::catalog::schema;
use crate::config::{DaemonOverrides, Overrides, default_admin_socket};
use crate::daemon::{self, DaemonError, Ending};
use crate::mcp::stdio::WayError;
use crate::store::postgres::fault::DatabaseFault;
use crate::strict::LoadError;
use crate::telemetry::logging;
use client::{Client, ClientError};
use output::Output;

/// How a command ends. The numbers are a contract with service managers and scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Success,
    /// A check failed, or the command did.
    Failure,
    Usage,
    Configuration,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 64,
            Exit::Configuration => 78,
        })
    }
}

/// The metadata daemon for AI agents
#[derive(Debug, Parser)]
#[command(name = "almanacd", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon
    Serve(ServeArgs),
    /// Check configuration and tool documents; exits 1 if there is an error
    Check(check::CheckArgs),
    /// List tools, or rank them for a query
    Tools(tools::ToolsArgs),
    /// Show one tool's document
    Show(show::ShowArgs),
    /// Say which tools fit a message, and why
    Qualify(qualify::QualifyArgs),
    /// Say how long a call will take
    Estimate(timing::EstimateArgs),
    /// Say what should be called next
    Suggest(suggest::SuggestArgs),
    /// Record a call that ended
    Record(timing::RecordArgs),
    /// Show what was learnt of tools' durations
    Timing(show::TimingArgs),
    /// List the workflows that can be run
    Presets(show::PresetsArgs),
    /// Measure how long the tools take here; records the calls, and writes defaults
    Calibrate(calibrate::CalibrateArgs),
    /// Measure what is said against what happened
    Eval(eval::EvalArgs),
    /// Inspect, check, try and start rule libraries
    Plugin(plugin::PluginArgs),
    /// Keep a memory
    Remember(memory::RememberArgs),
    /// Find memories
    Recall(memory::RecallArgs),
    /// Copy the whole store while it is in use
    Backup(memory::BackupArgs),
    /// Move, save and remove memories
    Memory(memory::MemoryArgs),
    /// Bring the schema of the database that several daemons share up to date; copy a database there, or back
    Migrate(migrate::MigrateArgs),
    /// Send what a daemon left that does not start again
    Spool(spool::SpoolArgs),
    /// Take over what others know of tools
    Import(import::ImportArgs),
    /// Serve an MCP client over standard input and output, by a daemon
    Mcp(mcp::McpArgs),
    /// Control the running daemon
    Ctl(ctl::CtlArgs),
    /// Make tokens, list them and take them back
    Token(token::TokenArgs),
    /// Print the JSON Schema of a tool document, for editors and generators
    Schema,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write one page per command
    Man {
        /// Directory to write the pages to
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct ServeArgs {
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    daemon: DaemonOverrides,
}

/// Which daemon to ask.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Daemon")]
struct DaemonArgs {
    /// Admin socket of the daemon [default: that of ALMANAC_STATE_DIR; where it is not set state/admin.sock, else that
    /// of the user's own daemon, else /run/almanac/admin.sock]
    #[arg(long, env = "ALMANAC_ADMIN_SOCKET", value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Address of the daemon, such as <http://127.0.0.1:7311>
    #[arg(long, env = "ALMANAC_URL", value_name = "URL", global = true)]
    url: Option<String>,
    /// Token for the address
    #[arg(long, env = "ALMANAC_TOKEN", value_name = "TOKEN", hide_env_values = true, global = true)]
    token: Option<String>,
}

impl DaemonArgs {
    fn client(&self) -> Result<Client, ClientError> {
        match (&self.url, &self.socket) {
            (Some(url), _) if self.is_by_url() => Client::url(url, self.token.clone()),
            (_, Some(socket)) => Ok(Client::socket(socket)),
            (_, None) => Ok(Client::socket(&default_admin_socket())),
        }
    }

    /// Is it asked at an address? A socket on the command line beats one of the environment.
    fn is_by_url(&self) -> bool {
        self.url.is_some() && !(self.socket.is_some() && is_flag("--socket") && !is_flag("--url"))
    }

    /// Was a daemon named, so that files must not stand in for it?
    fn is_explicit(&self) -> bool {
        self.url.is_some() || self.socket.is_some()
    }

    /// Was it named on the command line?
    fn is_flag(&self) -> bool {
        self.is_explicit() && (is_flag("--url") || is_flag("--socket"))
    }

    /// Are files meant, of which `flags` or the environment name some, and no daemon? A flag beats the environment.
    fn gives_way_to(&self, names_files: bool, flags: &[&str]) -> bool {
        names_files && (!self.is_explicit() || !self.is_flag() && flags.iter().any(|flag| is_flag(flag)))
    }
}

impl Overrides {
    /// Do these say which documents are meant, whatever the daemon serves that `daemon` names?
    fn name_documents_before(&self, daemon: &DaemonArgs) -> bool {
        let names_documents = !self.tool_metadata.is_empty() || self.config.is_some();
        daemon.gives_way_to(names_documents, &["--tool-metadata", "--config"])
    }
}

/// Is the option on the command line, rather than in the environment?
fn is_flag(option: &str) -> bool {
    let mut arguments = std::env::args_os().take_while(|argument| argument != "--");
    arguments.any(|argument| {
        let value = argument.as_encoded_bytes().strip_prefix(option.as_bytes());
        value.is_some_and(|value| value.is_empty() || value.starts_with(b"="))
    })
}

#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the schema is not up to date: {0}")]
    Migrate(#[from] DatabaseFault),
    #[error(transparent)]
    Copy(#[from] migrate::MigrateCliError),
    #[error(transparent)]
    Spool(#[from] spool::SpoolCliError),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    #[error("cannot write {file}")]
    Write { file: String, source: io::Error },
    #[error("cannot add a token to {file}")]
    AddToken { file: String, source: access::issue::AddError },
    #[error("cannot take a token out of {file}")]
    RevokeToken { file: String, source: access::revoke::RevokeError },
    #[error("there is a token called `{name}` in {file} already; choose another name, or revoke that one first")]
    TokenExists { name: String, file: String },
    #[error("cannot read {file}")]
    Read { file: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot evaluate {file}")]
    Evaluate { file: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// Values of arguments that cannot be used.
    #[error("{0}")]
    Arguments(String),
    #[error("{0}")]
    Import(String),
    #[error("--context is a JSON object or a file with one; `{file}` cannot be read")]
    Context { file: String, source: io::Error },
    #[error("there is no tool `{tool}` in the catalog{}", near.as_ref().map(|near| format!("\n  did you mean \
        {near}?")).unwrap_or_default())]
    UnknownTool { tool: String, near: Option<String> },
    #[error("cannot run a command by /bin/sh")]
    Call(#[source] io::Error),
    #[error("interrupted; {recorded} samples were recorded, nothing was written")]
    Interrupted { recorded: usize },
    #[error("cannot use the rule library {file}")]
    Plugin { file: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot start the rule libraries")]
    Plugins(#[source] io::Error),
    #[error(
        "`{0}` is no name for a project: a-z, 0-9 and hyphens, a letter first, 64 at most, and no crate of the SDK"
    )]
    ProjectName(String),
    #[error("`{0}` is there already; choose another name, or move it away")]
    ProjectExists(String),
    #[error(transparent)]
    Memory(#[from] memory::MemoryCliError),
    #[error(transparent)]
    Mcp(#[from] WayError),
    #[error("cannot make a token")]
    Random(#[from] getrandom::Error),
}

impl CliError {
    fn exit(&self) -> Exit {
        match self {
            Self::Config(_) => Exit::Configuration,
            Self::Client(error) if error.is_usage() => Exit::Usage,
            Self::Memory(error) if error.is_usage() => Exit::Usage,
            Self::Mcp(_) | Self::ProjectName(_) | Self::Arguments(_) | Self::Context { .. } => Exit::Usage,
            // An argument, not a file.
            Self::Read { file, .. } if file.starts_with("--") => Exit::Usage,
            Self::Daemon(error) if error.is_configuration() => Exit::Configuration,
            Self::Migrate(fault) if fault.is_setting() => Exit::Configuration,
            Self::Spool(error) if error.is_configuration() => Exit::Configuration,
            Self::Copy(error) if error.is_configuration() => Exit::Configuration,
            Self::Copy(error) if error.is_usage() => Exit::Usage,
            _ => Exit::Failure,
        }
    }

    /// The error with its causes, on one line each.
    fn describe(&self) -> String {
        match self {
            Self::Config(error) | Self::Daemon(DaemonError::Config(error)) => return error.describe("\n  "),
            _ => {}
        }
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.ends_with(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            source = cause.source();
        }
        text
    }
}

/// Parses the command line and does what it says.
pub fn main() -> ExitCode {
    let command = examples::with_examples(Cli::command());
    let parsed = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let wrong = error.use_stderr();
            // If even that cannot be printed, the exit code still tells.
            let _ = error.print();
            if let Some(said) = environment::origin(&error, &Cli::command()) {
                Output::new(false).error(&said);
            }
            return if wrong { Exit::Usage } else { Exit::Success }.into();
        }
    };
    let mut output = Output::new(cli.json);
    let outcome = run(cli.command, &mut output);
    let exit = outcome.unwrap_or_else(|error| {
        // What reads the log is to find what ended the daemon in it.
        if logging::is_for_programs() && tracing::enabled!(tracing::Level::ERROR) {
            tracing::error!("{}", error.describe());
        } else {
            output.error(&error.describe());
        }
        error.exit()
    });
    if let Some(error) = output.failure() {
        let said = format!("cannot write to standard output: {error}");
        output.error(&said);
        return Exit::Failure.into();
    }
    exit.into()
}

fn run(command: Command, output: &mut Output) -> Result<Exit, CliError> {
    match command {
        Command::Serve(args) => match daemon::run(&args.overrides, &args.daemon)? {
            Ending::Drained => Ok(Exit::Success),
            Ending::CutShort => Ok(Exit::Failure),
        },
        Command::Check(args) => check::run(&args, output),
        Command::Migrate(args) => migrate::run(&args, output),
        Command::Spool(args) => spool::run(&args, output),
        Command::Tools(args) => tools::run(&args, output),
        Command::Show(args) => show::show(&args, output),
        Command::Timing(args) => show::timing(&args, output),
        Command::Presets(args) => show::presets(&args, output),
        Command::Schema => {
            output.raw(schema::text().as_bytes());
            Ok(Exit::Success)
        }
        Command::Qualify(args) => qualify::run(&args, output),
        Command::Estimate(args) => timing::estimate(&args, output),
        Command::Suggest(args) => suggest::run(&args, output),
        Command::Record(args) => timing::record(&args, output),
        Command::Calibrate(args) => calibrate::run(&args, output),
        Command::Eval(args) => eval::run(&args, output),
        Command::Plugin(args) => plugin::run(&args, output),
        Command::Remember(args) => memory::remember(&args, output),
        Command::Recall(args) => memory::recall(&args, output),
        Command::Backup(args) => memory::backup(&args, output),
        Command::Memory(args) => memory::run(&args, output),
        Command::Import(args) => import::run(&args, output),
        Command::Mcp(args) => mcp::run(&args),
        Command::Ctl(args) => ctl::run(&args, output),
        Command::Token(args) => token::run(&args, output),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "almanacd", &mut text);
            output.raw(&text);
            Ok(Exit::Success)
        }
        Command::Man { out } => man::man(examples::with_examples(Cli::command()), out.as_deref(), output),
    }
}

/// Runs a question to a daemon to its end.
fn block_on<T, E: Into<CliError>>(future: impl Future<Output = Result<T, E>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    runtime.block_on(future).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
