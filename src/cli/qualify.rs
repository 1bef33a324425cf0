//! `almanacd qualify`: which tools fit a message, told as the people who build agents see it.

use std::collections::BTreeSet;
use std::time::SystemTime;

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::client::{Client, ClientError};
use super::output::Output;
use super::{CliError, DaemonArgs, Exit, block_on, documents};
use crate::access::Grant;
use crate::config::{DaemonOverrides, Overrides};
use crate::daemon::Config;
use crate::engine::Engine;

use crate::qualify::Question;
use crate::qualify::categories::file::CategoryFile;
use crate::wire::problem::Code;
use crate::wire::qualify::QualifyAnswer;
use crate::wire::timing::SessionAnswer;

#[derive(Debug, Args)]
pub(super) struct QualifyArgs {
    /// What the user wrote
    message: String,
    /// The conversation it belongs to; the running daemon keeps its context
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Tools at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    max_tools: Option<u16>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    daemon: DaemonArgs,
}

pub(super) fn run(args: &QualifyArgs, output: &mut Output) -> Result<Exit, CliError> {
    let (answer, used) = if args.overrides.name_documents_before(&args.daemon) {
        (from_files(args, output)?, Vec::new())
    } else {
        match block_on(ask(args)) {
            Err(CliError::Client(ClientError::Connect { .. })) if !args.daemon.is_explicit() => {
                (from_files(args, output)?, Vec::new())
            }
            asked => asked?,
        }
    };
    output.show(&answer, |out| print(&answer, &used, out));
    Ok(Exit::Success)
}

/// The answer, and the tools that the session called for its message before, or for this one if it is asked again.
async fn ask(args: &QualifyArgs) -> Result<(QualifyAnswer, Vec<String>), ClientError> {
    let client = args.daemon.client()?;
    let body = json!({"message": args.message, "sessionId": args.session, "maxTools": args.max_tools, "scores": true});
    // The message ends the turn before it, of which this is the account.
    let used = match &args.session {
        Some(session) => turn_tools(&client, session).await?,
        None => Vec::new(),
    };
    Ok((client.ask("POST", "/v1/qualify", Some(body.to_string().into())).await?, used))
}

fn each_once(names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}

async fn turn_tools(client: &Client, session: &str) -> Result<Vec<String>, ClientError> {
    let path = format!("/v1/sessions/{}", utf8_percent_encode(session, NON_ALPHANUMERIC));
    match client.ask::<SessionAnswer>("GET", &path, None).await {
        Ok(session) => Ok(session.turn_tools.unwrap_or_else(|| each_once(session.tool_history))),
        Err(ClientError::Refused(problem)) if problem.code == Code::UnknownSession => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Without a daemon the files are opened here; no session is known, and nothing is learnt.
fn from_files(args: &QualifyArgs, output: &mut Output) -> Result<QualifyAnswer, CliError> {
    let config = Config::load(&args.overrides, &DaemonOverrides::default())?;
    let engine = Engine::new();
    let mut categories = CategoryFile::new(config.categories.clone());
    categories.read();
    engine.offer_categories(categories.current().0);
    engine.publish(&documents::open(config.documents(), output));
    let question = Question {
        message: &args.message,
        max_tools: args.max_tools.map_or(config.qualifier.selection.max_tools, usize::from),
        rules: config.qualifier.selection.rules(),
        ..Question::default()
    };
    let found = engine.qualify(&engine.generation(), &Grant::anonymous(), None, &question);
    Ok(QualifyAnswer::new(found, true, false, humantime::format_rfc3339_millis(SystemTime::now()).to_string()))
}

fn print(answer: &QualifyAnswer, used: &[String], out: &mut Output) {
    let title = format!("\u{25bc} Used {} tool{}", used.len(), if used.len() == 1 { "" } else { "s" });
    out.line(&out.bold(&title));
    let mut paragraph = |name: &str, text: &str| {
        out.line("");
        out.line(&format!("{name}: {text}"));
    };
    paragraph("Reasoning", &answer.reasoning);
    if let Some(intent) = &answer.active_intent {
        paragraph("Intent", &format!("{intent} ({:.0} % sure)", 100.0 * answer.confidence));
    }
    paragraph("Categories", &answer.categories.join(", "));
    if !answer.networks.is_empty() {
        paragraph("Networks", &answer.networks.join(", "));
    }
    if answer.no_tool_needed {
        paragraph("No tool needed", &format!("{:.0} % sure", 100.0 * answer.no_tool_probability));
    }
    paragraph("Available", &format!("{} tools of {}", answer.tool_count, answer.tools_total));
    if !answer.tool_hints.is_empty() {
        paragraph("Best", &answer.tool_hints.join(", "));
    }
    if !used.is_empty() {
        paragraph("Used", &used.join(", "));
    }
    if let Some(degraded) = &answer.degraded {
        out.note(degraded);
    }
}
