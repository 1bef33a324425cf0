//! `almanacd plugin`: for the authors of rule libraries, and for whoever is handed one.

mod project;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::output::Output;
use super::suggest::explain;
use super::{CliError, Exit, block_on, documents};
use crate::catalog::document::check_name;
use crate::catalog::load::LoadOptions;
use crate::engine::snapshot_of;
use crate::plugin_host::{Ask, CALL_TIME, ComplexityLevel, Finding, Launch, Library, Trial, check};
use crate::strict::decode::decode;
use crate::strict::read::{Limits, json as read_json};
use crate::strict::{FromNode, Node};

#[derive(Debug, Args)]
pub(super) struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
    /// Say what a rule library is, without running any of it
    Inspect {
        /// The library
        file: PathBuf,
    },
    /// Try everything on a rule library that a host might do to it, and more; exits 1 if there is a fault
    Check {
        /// The library
        file: PathBuf,
        /// Its configuration, a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        settings: String,
        /// How long nine calls in ten may take
        #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = humantime::parse_duration)]
        deadline: Duration,
    },
    /// Ask a rule library what to call next
    Try(TryArgs),
    /// Write a project for a rule library
    New {
        /// Its name: letters, digits and hyphens
        name: String,
        /// In which language
        #[arg(long, value_enum, default_value = "rust")]
        lang: Language,
    },
}

#[derive(Debug, Args)]
struct TryArgs {
    /// The library
    file: PathBuf,
    /// The tool that was called
    #[arg(long)]
    tool: String,
    /// What is known of its result: a JSON object or a file with one, of mode, complexity, num_outputs, has_branches,
    /// session_id, goal, history, facts
    #[arg(long, value_name = "JSON|FILE", default_value = "{}")]
    context: String,
    /// Directory of tool documents that the library is told
    #[arg(long, value_name = "DIR")]
    tool_metadata: Option<PathBuf>,
    /// The library's configuration, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    settings: String,
    /// How long it may take before a note says that a daemon would not wait
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = humantime::parse_duration)]
    deadline: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    Rust,
    C,
}

/// Longest `--context`, in bytes.
const MAX_CONTEXT_BYTES: usize = 1 << 20;

pub(super) fn run(args: &PluginArgs, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        PluginCommand::Inspect { file } => inspect(file, output),
        PluginCommand::Check { file, settings, deadline } => run_check(file, settings, *deadline, output),
        PluginCommand::Try(args) => try_out(args, output),
        PluginCommand::New { name, lang } => project::write(name, *lang, output),
    }
}

fn refused(file: &Path, error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::Plugin { file: file.display().to_string(), source: Box::new(error) }
}

fn inspect(file: &Path, output: &mut Output) -> Result<Exit, CliError> {
    let Library { identity, hash, length, .. } = Library::open_anyway(file).map_err(|error| refused(file, error))?;
    let abi = format!("{}.{}", identity.abi.0, identity.abi.1);
    // A daemon run by the same user would say so as well.
    let trouble = Library::open(file, &[]).err().map(|error| error.to_string());
    let report = json!({
        "id": identity.id, "version": identity.version, "abi": abi, "sha256": hash.to_string(), "bytes": length,
        "refused": trouble,
    });
    output.show(&report, |out| {
        out.line(&out.bold(&format!("{} {}", identity.id, identity.version)));
        out.line(&format!("interface {abi}, {length} bytes"));
        out.line(&format!("sha256 {hash}"));
        if let Some(trouble) = &trouble {
            out.line(&format!("would be refused: {trouble}"));
        }
    });
    Ok(Exit::Success)
}

/// What the author is about to run may lie where a daemon would not take it from.
fn open(file: &Path, output: &mut Output) -> Result<Library, CliError> {
    let library = Library::open_anyway(file).map_err(|error| refused(file, error))?;
    if let Err(error) = Library::open(file, &[]) {
        output.note(&format!("note: a daemon would refuse it: {error}"));
    }
    Ok(library)
}

fn run_check(file: &Path, settings: &str, deadline: Duration, output: &mut Output) -> Result<Exit, CliError> {
    check_settings(settings)?;
    let library = open(file, output)?;
    let launch = Launch { deadline, ..Launch::default() };
    let report = |finding: &Finding| {
        if !output.is_json() {
            output.line(&describe(finding));
        }
    };
    // What it says while it is provoked is of no interest.
    let findings = block_on(async { Ok::<_, CliError>(check(&library, &launch, settings, report, |_| {}).await) })?;
    let faults = findings.iter().filter(|finding| finding.outcome.is_err()).count();
    let item = |finding: &Finding| {
        let (ok, detail) = match &finding.outcome {
            Ok(seen) => (true, seen.clone()),
            Err(flaw) => (false, flaw.to_string()),
        };
        json!({"tried": finding.what, "ok": ok, "detail": detail})
    };
    let report = json!({
        "id": library.identity.id, "version": library.identity.version, "sha256": library.hash.to_string(),
        "faults": faults, "findings": findings.iter().map(item).collect::<Vec<_>>(),
    });
    output.show(&report, |out| {
        let summary = match faults {
            0 => format!("{} {} passes", library.identity.id, library.identity.version),
            1 => "1 fault".to_owned(),
            faults => format!("{faults} faults"),
        };
        out.line(&out.bold(&summary));
    });
    Ok(if faults == 0 { Exit::Success } else { Exit::Failure })
}

fn describe(finding: &Finding) -> String {
    match &finding.outcome {
        Ok(seen) => format!("ok     {}: {seen}", finding.what),
        Err(fault) => format!("FAULT  {}: {fault}", finding.what),
    }
}

fn try_out(args: &TryArgs, output: &mut Output) -> Result<Exit, CliError> {
    check_name(&args.tool).map_err(|fault| CliError::Arguments(format!("--tool: {fault}")))?;
    check_settings(&args.settings)?;
    let ask = context(args)?;
    let library = open(&args.file, output)?;
    let catalog = args
        .tool_metadata
        .as_deref()
        .map(|directory| documents::open(LoadOptions::directory(directory), output).catalog);
    let snapshot = catalog.as_ref().map(|catalog| snapshot_of(1, catalog)).unwrap_or_default();
    let launch = Launch { deadline: args.deadline, ..Launch::default() };
    let (said, took) = block_on(async {
        let print = |line: &str| Output::new(false).note(line);
        let mut trial = Trial::start(&library, &launch, args.settings.clone(), &snapshot, print)
            .await
            .map_err(|fault| refused(&args.file, fault))?;
        let begun = Instant::now();
        let said = trial.ask(&ask, CALL_TIME).await;
        let took = begun.elapsed();
        trial.end().await;
        said.map(|said| (said, took)).map_err(|error| refused(&args.file, error))
    })?;
    let item = |proposal: &crate::plugin_host::Proposal| {
        json!({"tool": proposal.tool, "reason": proposal.reason,
        "score": proposal.score})
    };
    output.show(&json!({"suggestions": said.iter().map(item).collect::<Vec<Value>>()}), |out| {
        for proposal in &said {
            out.line(&format!("{} ({:.2}): {}", out.bold(&proposal.tool), proposal.score, proposal.reason));
        }
        if said.is_empty() {
            out.note("no suggestion");
        }
    });
    if took > args.deadline {
        let (took, deadline) = (took.as_millis(), args.deadline.as_millis());
        output.note(&format!("note: it took {took} ms; a daemon that waits {deadline} ms would answer without it"));
    }
    if let Some(catalog) = &catalog {
        for proposal in said.iter().filter(|proposal| catalog.get(&proposal.tool).is_none()) {
            output.note(&format!(
                "note: a daemon with these documents would leave out `{}`: no tool has that name",
                proposal.tool
            ));
        }
    }
    Ok(Exit::Success)
}

/// A library would take other text for what it is not.
fn check_settings(settings: &str) -> Result<(), CliError> {
    let wrong = |why: String| CliError::Arguments(format!("--settings is to be a JSON object, and {why}"));
    match read_json(settings.as_bytes(), &Limits::of_bytes(MAX_CONTEXT_BYTES)) {
        Ok(Node::Map(_)) => Ok(()),
        Ok(_) => Err(wrong("this is another kind of JSON".to_owned())),
        Err(error) => Err(wrong(format!("this is none: {error}"))),
    }
}

/// `--context` as JSON, or as a file with it.
fn context(args: &TryArgs) -> Result<Ask, CliError> {
    let text = if args.context.trim_start().starts_with('{') {
        args.context.clone().into_bytes()
    } else {
        let read = |source| CliError::Context { file: args.context.clone(), source };
        fs::read(&args.context).map_err(read)?
    };
    let wrong = |what: String| CliError::Read { file: "--context".to_owned(), source: what.into() };
    let node = read_json(&text, &Limits::of_bytes(MAX_CONTEXT_BYTES)).map_err(|error| wrong(error.to_string()))?;
    let context: Context = decode(node).map_err(|faults| wrong(explain(&faults)))?;
    Ok(context.ask(args.tool.clone()))
}

/// What is known of a result, as `--context` says it.
#[derive(FromNode)]
struct Context {
    mode: Option<String>,
    complexity: Option<ComplexityLevel>,
    #[node(default)]
    num_outputs: u64,
    #[node(default)]
    has_branches: bool,
    session_id: Option<String>,
    goal: Option<String>,
    #[node(default)]
    history: Vec<String>,
    #[node(default)]
    facts: Map<String, Value>,
}

impl Context {
    fn ask(self, tool: String) -> Ask {
        let Self { mode, complexity, num_outputs, has_branches, session_id, goal, history, facts } = self;
        let context = facts.into_iter().map(|(key, value)| (key, plain(value))).collect();
        Ask { tool, mode, complexity, num_outputs, has_branches, session_id, goal, history, context }
    }
}

/// A text as it is, anything else as JSON.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
