//! `almanacd suggest`: what should be called next.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use super::client::ClientError;
use super::output::Output;
use super::{CliError, DaemonArgs, Exit, block_on, documents};
use crate::access::Grant;
use crate::config::{DaemonOverrides, Overrides};
use crate::daemon::Config;
use crate::engine::proposer::{Proposer, RuleAnswers};
use crate::engine::{Engine, snapshot_of};
use crate::plugin_host::{Ask, Host, Settings, Snapshot};
use crate::strict::decode::decode;
use crate::strict::read::json;
use crate::strict::{Fault, Limits, Unreadable};
use crate::suggest::presets::directory::PresetDirectory;
use crate::telemetry::Metrics;
use crate::wire::metadata::{CallMetadata, MetadataRequest, SuggestionsAnswer};

/// Largest context, in bytes.
const MAX_CONTEXT_BYTES: usize = 1 << 20;

#[derive(Debug, Args)]
pub(super) struct SuggestArgs {
    /// The tool that was called
    tool: String,
    /// Its mode
    #[arg(long)]
    mode: Option<String>,
    /// What the call gave, as JSON or as a file of it: num_outputs, has_branches, session_id, complexity
    #[arg(long, value_name = "JSON|FILE")]
    context: Option<String>,
    /// The tools that were called before, oldest first [default: the session's last 20]
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',')]
    history: Option<Vec<String>>,
    /// What the session is about
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    daemon: DaemonArgs,
}

pub(super) fn run(args: &SuggestArgs, output: &mut Output) -> Result<Exit, CliError> {
    let body = body(args)?;
    // Whoever names files means these, whatever a daemon serves.
    let Overrides { tool_metadata, plugins, config, .. } = &args.overrides;
    let names_files = !tool_metadata.is_empty() || !plugins.is_empty() || config.is_some();
    let suggestions = if args.daemon.gives_way_to(names_files, &["--tool-metadata", "--plugins", "--config"]) {
        from_files(args, &body, output)?
    } else {
        let asked = args.daemon.client()?;
        match block_on(asked.ask::<CallMetadata>("POST", "/v1/metadata", Some(body.to_string().into()))) {
            Ok(metadata) => {
                if says_nothing(&metadata.suggestions) {
                    let path = format!("/v1/tools/{}", utf8_percent_encode(&args.tool, NON_ALPHANUMERIC));
                    // Refused with what may have been meant, if there is no such tool.
                    block_on(asked.ask::<Value>("GET", &path, None))?;
                }
                if !metadata.timing.known {
                    note_unknown(&args.tool, &metadata.timing.near, output);
                }
                metadata.suggestions
            }
            Err(CliError::Client(ClientError::Connect { .. })) if !args.daemon.is_explicit() => {
                from_files(args, &body, output)?
            }
            Err(error) => return Err(error),
        }
    };
    output.show(&suggestions, |out| print(&suggestions, out));
    Ok(Exit::Success)
}

/// Nothing to say of a tool that may not be there at all: calls of one that left the catalog still tell what came next.
fn says_nothing(suggestions: &SuggestionsAnswer) -> bool {
    suggestions.next_tools.is_empty() && suggestions.relevant_presets.is_empty()
}

/// What is suggested all the same follows any tool.
fn note_unknown(tool: &str, near: &[String], output: &mut Output) {
    let near = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
    output.note(&format!("note: there is no tool `{tool}`{near}"));
}

fn body(args: &SuggestArgs) -> Result<Value, CliError> {
    let mut body = Map::from_iter([("tool_name".to_owned(), json!(args.tool))]);
    if let Some(context) = &args.context {
        body.insert("result_context".to_owned(), self::context(context)?);
    }
    for (key, value) in
        [("mode_name", json!(args.mode)), ("tool_history", json!(args.history)), ("goal", json!(args.goal))]
    {
        body.insert(key.to_owned(), value);
    }
    Ok(Value::Object(body))
}

/// What starts like an object is one; anything else names a file.
fn context(text: &str) -> Result<Value, CliError> {
    let content = if text.trim_start().starts_with('{') {
        text.as_bytes().to_vec()
    } else {
        fs::read(Path::new(text)).map_err(|source| CliError::Context { file: text.to_owned(), source })?
    };
    let failed = |error: Unreadable| CliError::Read { file: "--context".to_owned(), source: error.into() };
    let node = json(&content, &Limits::of_bytes(MAX_CONTEXT_BYTES)).map_err(failed)?;
    Ok(node.into())
}

/// Without a daemon the files are opened here; what sessions did is not known then.
fn from_files(args: &SuggestArgs, body: &Value, output: &mut Output) -> Result<SuggestionsAnswer, CliError> {
    let config = Config::load(&args.overrides, &DaemonOverrides::default())?;
    let engine = Engine::new();
    let loaded = documents::open(config.documents(), output);
    let settings = config.plugin_host();
    let mut presets = PresetDirectory::new(config.presets);
    presets.read();
    let (offered, _) = presets.current(|tool| loaded.catalog.get(tool).is_some());
    engine.publish_with(&loaded, offered);
    let node = json(body.to_string().as_bytes(), &Limits::of_bytes(MAX_CONTEXT_BYTES));
    let node = node.map_err(|error| CliError::Arguments(error.to_string()))?;
    let request: MetadataRequest = decode(node).map_err(|faults| CliError::Arguments(explain(&faults)))?;
    let (generation, learnt, mut ask) = (engine.generation(), engine.learnt(), request.ask());
    let grant = Grant::anonymous();
    engine.complete(&learnt, &grant, &mut ask, request.tool_history);
    let proposals = block_on(propose(&engine, settings, snapshot_of(generation.number(), &loaded.catalog), &ask))?;
    let suggestions: SuggestionsAnswer = engine.suggest(&generation, &learnt, &grant, &ask, proposals).into();
    if generation.tool(&args.tool).is_none() {
        let near = generation.near_names(&args.tool);
        if says_nothing(&suggestions) {
            let near = (!near.is_empty()).then(|| near.join(" or "));
            return Err(CliError::UnknownTool { tool: args.tool.clone(), near });
        }
        note_unknown(&args.tool, &near, output);
    }
    Ok(suggestions)
}

/// What the rule libraries propose, which are started for this one call.
async fn propose(engine: &Engine, settings: Settings, snapshot: Snapshot, ask: &Ask) -> Result<RuleAnswers, CliError> {
    let metrics = Metrics::new().map_err(|error| CliError::Plugins(io::Error::other(error)))?;
    let host = Host::start(settings, Arc::new(metrics), Handle::current()).map_err(CliError::Plugins)?;
    let host = Arc::new(host);
    engine.install_proposer(Arc::clone(&host) as Arc<dyn Proposer>);
    host.publish(move || snapshot);
    host.settled().await;
    let proposals = engine.propose(ask).await;
    host.stop();
    Ok(proposals)
}

/// All faults with what may have been meant.
pub(super) fn explain(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn print(suggestions: &SuggestionsAnswer, out: &mut Output) {
    let time = |ms: u64| humantime::format_duration(std::time::Duration::from_millis(ms)).to_string();
    let SuggestionsAnswer { next_tools, relevant_presets, degraded } = suggestions;
    let width = next_tools.iter().map(|next| next.tool.chars().count()).max().unwrap_or(0);
    if next_tools.is_empty() {
        out.line("nothing is known to come next");
    }
    for next in next_tools {
        let tool = out.bold(&format!("{:width$}", next.tool));
        out.line(&format!("{tool}  {:>10}  {}", time(next.estimated_duration_ms), next.reason));
    }
    for preset in relevant_presets {
        let left = preset.remaining_steps.join(", ");
        let id = out.bold(&preset.preset_id);
        out.line(&format!("preset {id}: {left} ({} left)", time(preset.remaining_duration_ms)));
    }
    for missing in degraded {
        out.note(&format!("without {}: {}", missing.plugin, missing.reason));
    }
}
