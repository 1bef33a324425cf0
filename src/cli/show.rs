//! `almanacd show`, `presets` and `timing`: one tool, the workflows, and what was learnt, as people read them.

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::client::ClientError;
use super::output::{Output, counted};
use super::{CliError, DaemonArgs, Exit, block_on, documents};
use crate::catalog::check::near_names;
use crate::config::{DaemonOverrides, Overrides};
use crate::daemon::Config;
use crate::strict::write;
use crate::wire::presets::PresetPage;
use crate::wire::problem::Code;
use crate::wire::timing::TimingPage;

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The tool
    tool: String,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(super) struct PresetsArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(super) struct TimingArgs {
    /// The tool [default: all that were recorded]
    tool: Option<String>,
    #[command(flatten)]
    daemon: DaemonArgs,
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The document of a tool, as YAML; of the daemon, or of the files where none runs.
pub(super) fn show(args: &ShowArgs, output: &mut Output) -> Result<Exit, CliError> {
    let document = if args.overrides.name_documents_before(&args.daemon) {
        read(args, output)?
    } else {
        let path = format!("/v1/tools/{}", encoded(&args.tool));
        match block_on::<Value, _>(async { args.daemon.client()?.ask("GET", &path, None).await }) {
            Err(CliError::Client(ClientError::Connect { .. })) if !args.daemon.is_explicit() => read(args, output)?,
            asked => asked?,
        }
    };
    output.show(&document, |out| out.raw(write::yaml(&document).as_bytes()));
    Ok(Exit::Success)
}

fn read(args: &ShowArgs, output: &mut Output) -> Result<Value, CliError> {
    let config = Config::load(&args.overrides, &DaemonOverrides::default())?;
    let catalog = documents::open(config.documents(), output).catalog;
    let entry = catalog.get(&args.tool).ok_or_else(|| CliError::UnknownTool {
        tool: args.tool.clone(),
        near: near_names(&catalog, &args.tool).into_iter().next(),
    })?;
    Ok(serde_json::to_value(entry.document()).expect("a document holds only strings, finite numbers and string keys"))
}

/// The workflows that can be run with the tools that are there.
pub(super) fn presets(args: &PresetsArgs, output: &mut Output) -> Result<Exit, CliError> {
    let page: PresetPage = block_on(async { args.daemon.client()?.ask("GET", "/v1/presets?limit=1000", None).await })?;
    output.show(&page, |out| {
        for preset in &page.items {
            let name = out.bold(&preset.id);
            out.line(&format!("{name}  {}, about {}", preset.name, time(preset.estimated_duration_ms)));
            out.line(&format!("  {}", preset.tools.join(" → ")));
        }
    });
    Ok(Exit::Success)
}

/// What was learnt of a tool, by mode, or of all.
pub(super) fn timing(args: &TimingArgs, output: &mut Output) -> Result<Exit, CliError> {
    let tool = args.tool.as_ref().map(|tool| format!("/{}", encoded(tool))).unwrap_or_default();
    let limit = if args.tool.is_none() { "?limit=1000" } else { "" };
    let path = format!("/v1/timing{tool}{limit}");
    let asked: Result<TimingPage, CliError> = block_on(async { args.daemon.client()?.ask("GET", &path, None).await });
    let page = match asked {
        Err(CliError::Client(ClientError::Refused(problem))) if problem.code == Code::NoHistory => {
            output.note(&problem.detail);
            return Ok(Exit::Failure);
        }
        asked => asked?,
    };
    output.show(&page, |out| print(&page, out));
    Ok(Exit::Success)
}

fn print(page: &TimingPage, out: &mut Output) {
    if page.items.is_empty() {
        out.note("nothing was recorded yet; `almanacd record TOOL MS` records a call");
    }
    let name = |item: &crate::wire::timing::KeyTiming| match item.mode.as_str() {
        "" => item.tool.clone(),
        mode => format!("{} ({mode})", item.tool),
    };
    let width = page.items.iter().map(|item| name(item).chars().count()).max().unwrap_or_default();
    for item in &page.items {
        let [low, high] = item.interval_ms.map(time);
        let bold = out.bold(&format!("{:width$}", name(item)));
        let about = time(item.estimated_duration_ms);
        out.line(&format!(
            "{bold}  about {about}, {low} to {high}, {} ({})",
            counted(item.samples, "sample"),
            item.basis
        ));
    }
    if page.items.len() < page.total {
        out.note(&format!("{} of {} tools and modes", page.items.len(), page.total));
    }
}

fn time(ms: u64) -> String {
    humantime::format_duration(std::time::Duration::from_millis(ms)).to_string()
}
