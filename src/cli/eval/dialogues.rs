//! `almanacd eval dialogues FILE`: is the tool that a conversation needs at last among those offered?

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::super::output::Output;
use super::super::{CliError, Exit, documents};
use super::read;
use crate::access::Grant;
use crate::config::{DaemonOverrides, Overrides};
use crate::daemon::Config;
use crate::engine::Engine;
use crate::qualify::categories::file::CategoryFile;
use crate::qualify::{IntentContext, Qualification, Question};
use crate::strict::FromNode;
use crate::strict::decode::decode;
use crate::strict::read::{Limits, json};
use crate::wire::qualify::IntentContextBody;

/// Largest line of a file of dialogues, in bytes.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Places that count as the first ones.
const FIRST: usize = 5;

/// And as the very first.
const VERY_FIRST: usize = 3;

#[derive(Debug, Args)]
pub(super) struct EvalDialoguesArgs {
    /// JSON lines, each `{"turns": [message, …], "needed": [tool, …]}`: one of the tools is needed after the last turn
    file: PathBuf,
    #[command(flatten)]
    overrides: Overrides,
}

/// A conversation whose last message needs one of some tools.
#[derive(Debug, Default, FromNode)]
struct Dialogue {
    /// What it is an example of, for whoever reads the file.
    #[node(default)]
    kind: String,
    /// What the user says, oldest first.
    turns: Vec<String>,
    /// Tools of which any will do.
    needed: Vec<String>,
}

/// A line that is no dialogue.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {message}; a line is {{\"turns\": [message, …], \"needed\": [tool, …]}}")]
struct DialogueError {
    line: usize,
    message: String,
}

/// How the last turns were answered.
#[derive(Debug, Serialize)]
struct DialogueFigures {
    dialogues: usize,
    /// Dialogues of which a needed tool was offered, and was among the first three or five.
    offered: usize,
    first_three: usize,
    first_five: usize,
    /// Tools that were offered, on average.
    mean_tools: f64,
    /// Dialogues that were said to need no tool.
    no_tool_needed: usize,
    /// What was said last where a needed tool was not among the first five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed: Vec<Missed>,
}

#[derive(Debug, Serialize)]
struct Missed {
    kind: String,
    message: String,
    /// The best needed tool's place, from 1; absent if none was offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<usize>,
    tools: usize,
}

/// The figures where the daemon keeps the session, and where the client sends the context back.
#[derive(Debug, Serialize)]
struct Report {
    session: DialogueFigures,
    echoed: DialogueFigures,
}

pub(super) fn run(args: &EvalDialoguesArgs, output: &mut Output) -> Result<Exit, CliError> {
    let config = Config::load(&args.overrides, &DaemonOverrides::default())?;
    let engine = Engine::new();
    let mut categories = CategoryFile::new(config.categories.clone());
    categories.read();
    engine.offer_categories(categories.current().0);
    engine.publish(&documents::open(config.documents(), output));
    let dialogues = read(&args.file, parse)?;
    let settings = &config.qualifier.selection;
    let rules = settings.rules();
    let ask = |message: &str, session: Option<&str>, context: Option<&IntentContext>| {
        let question = Question { message, context, max_tools: settings.max_tools, rules, ..Question::default() };
        engine.qualify(&engine.generation(), &Grant::anonymous(), session, &question)
    };
    let report = Report {
        session: DialogueFigures::of(&dialogues, |number, message, _| ask(message, Some(&number.to_string()), None)),
        echoed: DialogueFigures::of(&dialogues, |_, message, before| {
            // As it comes and goes over the wire.
            let sent = before.map(|before| IntentContext::from(IntentContextBody::from(&before.context)));
            ask(message, None, sent.as_ref())
        }),
    };
    output.show(&report, |out| print(&report, out));
    Ok(Exit::Success)
}

fn parse(content: &[u8]) -> Result<Vec<Dialogue>, DialogueError> {
    let lines = content.split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    let read = |(number, line): (usize, &[u8])| {
        let fault = |message: String| DialogueError { line: number + 1, message };
        let node = json(line, &Limits::of_bytes(MAX_LINE_BYTES)).map_err(|error| fault(error.to_string()))?;
        decode(node).map_err(|faults| {
            fault(faults.first().map(|first| format!("{} {}", first.pointer(), first.message)).unwrap_or_default())
        })
    };
    lines.map(read).collect()
}

impl DialogueFigures {
    /// Has each dialogue, by its number, with `answer`, which is given a message and the answer before it.
    fn of(dialogues: &[Dialogue], answer: impl Fn(usize, &str, Option<&Qualification>) -> Qualification) -> Self {
        let (mut offered, mut first_three, mut first_five, mut tools, mut no_tool_needed) = (0, 0, 0, 0, 0);
        let mut missed = Vec::new();
        for (number, dialogue) in dialogues.iter().enumerate() {
            let say = |before: Option<Qualification>, message: &String| Some(answer(number, message, before.as_ref()));
            let Some(last) = dialogue.turns.iter().fold(None, say) else { continue };
            let is_needed = |name: &str| dialogue.needed.iter().any(|needed| needed == name);
            let place = last.available.iter().position(|tool| is_needed(tool.entry.name()));
            offered += usize::from(place.is_some());
            let is_first = place.is_some_and(|place| place < FIRST);
            first_five += usize::from(is_first);
            first_three += usize::from(place.is_some_and(|place| place < VERY_FIRST));
            tools += last.available.len();
            no_tool_needed += usize::from(last.no_tool_needed);
            if !is_first {
                missed.push(Missed {
                    kind: dialogue.kind.clone(),
                    message: dialogue.turns.last().cloned().unwrap_or_default(),
                    place: place.map(|place| place + 1),
                    tools: last.available.len(),
                });
            }
        }
        let mean_tools = tools as f64 / dialogues.len().max(1) as f64;
        Self { dialogues: dialogues.len(), offered, first_three, first_five, mean_tools, no_tool_needed, missed }
    }
}

fn print(report: &Report, out: &mut Output) {
    let Report { session, echoed } = report;
    out.line(&out.bold(&format!("{} dialogues", session.dialogues)));
    out.line(&format!("{:34}{:>12}{:>12}", "", "session", "sent back"));
    let mut row = |name: &str, value: fn(&DialogueFigures) -> String| {
        out.line(&format!("{name:34}{:>12}{:>12}", value(session), value(echoed)));
    };
    row("needed tool offered", |figures| figures.offered.to_string());
    row("among the first three", |figures| figures.first_three.to_string());
    row("among the first five", |figures| figures.first_five.to_string());
    row("tools offered, mean", |figures| format!("{:.1}", figures.mean_tools));
    row("said to need no tool", |figures| figures.no_tool_needed.to_string());
    for (way, figures) in [("session", session), ("sent back", echoed)] {
        for Missed { kind, message, place, tools } in &figures.missed {
            let place = place.map_or_else(|| "not offered".to_owned(), |place| format!("place {place}"));
            out.line(&format!("{way}: {kind} \u{201c}{message}\u{201d}: {place} of {tools}"));
        }
    }
}
