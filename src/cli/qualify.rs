//! `almanacd qualify`: which tools fit a message, told as the people who build agents see it.

use std::time::SystemTime;

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::client::ClientError;
use super::output::Output;
use super::{CliError, DaemonArgs, Exit, block_on, documents};
use crate::access::DEFAULT_TENANT;
use crate::catalog::load::Options;
use crate::config::{Config, DaemonOverrides, Overrides};
use crate::engine::Engine;
use crate::http::qualify::say;
use crate::http::wire_qualify::QualifyAnswer;
use crate::http::wire_timing::SessionAnswer;
use crate::qualify::categories::shelf::CategoryShelf;
use crate::qualify::{Question, Rules};

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
    // Whoever names documents means these, whatever a daemon serves.
    let names_documents = !args.overrides.tool_metadata.is_empty() || args.overrides.config.is_some();
    let (answer, used) = if names_documents && !args.daemon.is_explicit() {
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

/// The answer, and the tools that the session has called, each once, in order.
async fn ask(args: &QualifyArgs) -> Result<(QualifyAnswer, Vec<String>), ClientError> {
    let client = args.daemon.client()?;
    let body = json!({"message": args.message, "sessionId": args.session, "maxTools": args.max_tools, "scores": true});
    let answer = client.ask("POST", "/v1/qualify", Some(body.to_string().into())).await?;
    let Some(session) = &args.session else { return Ok((answer, Vec::new())) };
    let path = format!("/v1/sessions/{}", utf8_percent_encode(session, NON_ALPHANUMERIC));
    let session: SessionAnswer = client.ask("GET", &path, None).await?;
    let mut used: Vec<String> = Vec::new();
    for tool in session.tool_history {
        if !used.contains(&tool) {
            used.push(tool);
        }
    }
    Ok((answer, used))
}

/// Without a daemon the files are opened here; no session is known, and nothing is learnt.
fn from_files(args: &QualifyArgs, output: &mut Output) -> Result<QualifyAnswer, CliError> {
    let config = Config::load(&args.overrides, &DaemonOverrides::default())?;
    let engine = Engine::new();
    let mut categories = CategoryShelf::new(config.categories.clone());
    categories.read();
    engine.offer_categories(categories.offer().0);
    engine.publish(&documents::open(Options::from(&config), output));
    let question = Question {
        message: &args.message,
        max_tools: args.max_tools.map_or(config.qualifier.max_tools, usize::from),
        rules: Rules { new_context: config.qualifier.new_context as f32, max_turns: config.qualifier.max_turns },
        ..Question::default()
    };
    let found = engine.qualify(&engine.generation(), DEFAULT_TENANT, None, &question);
    Ok(say(found, true, humantime::format_rfc3339_millis(SystemTime::now()).to_string()))
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
    paragraph("Available", &format!("{} tools of {}", answer.tool_count, answer.tools_total));
    if !answer.tool_hints.is_empty() {
        paragraph("Best", &answer.tool_hints.join(", "));
    }
    if !used.is_empty() {
        paragraph("Used", &used.join(", "));
    }
}
