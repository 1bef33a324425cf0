//! `almanacd remember`: to keep one memory, of which arguments and the environment say what its metadata leaves open.

use std::env;

use clap::Args;
use serde_json::{Value, json};

use super::{MemoryCliError, Where, id_of, kind, pair};
use crate::cli::client::ClientError;
use crate::cli::memory_door::MemoryDoor;
use crate::cli::output::Output;
use crate::cli::{CliError, Exit, block_on};
use crate::engine::memory::RecallError;
use crate::memory::merge::merge_patch;
use crate::memory::{Kind, StructuredId};
use crate::store::memories::MemoryError;
use crate::strict::decode::decode;
use crate::strict::read::{self, Limits};
use crate::wire::memory::MemoryAnswer;
use crate::wire::problem::Code;

/// Longest metadata that are read, in bytes.
const MAX_METADATA: usize = 16 << 20;

#[derive(Debug, Args)]
#[command(override_usage = "almanacd remember [OPTIONS] <KIND> <CONTENT>")]
pub(in crate::cli) struct RememberArgs {
    /// messages, cognitive-processes, documents or tasks
    kind: String,
    /// The text
    content: Option<String>,
    /// Its metadata, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    metadata: String,
    /// One value of it, such as role=user or thread.position=0; repeatable. It is read as JSON where it is some: '"42"'
    /// is a text
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Whom a message or document is about, unless the metadata says so: an id, or a bare name
    #[arg(long, env = "ALMANAC_USER_ID", value_name = "ID")]
    user: Option<String>,
    /// Which agent it is of, likewise
    #[arg(long, env = "ALMANAC_AGENT_ID", value_name = "ID")]
    agent: Option<String>,
    /// Of a message, which chat it is in, likewise; its thread has the chat's name unless the metadata says another
    #[arg(long, env = "ALMANAC_CHAT_ID", value_name = "ID")]
    chat: Option<String>,
    #[command(flatten)]
    at: Where,
}

/// What to say to whoever gave one word where a kind and a text belong.
pub(super) fn forgotten(given: &str) -> String {
    if Kind::named(given).is_some() {
        return format!("there is no text to keep: almanacd remember {given} TEXT");
    }
    let quoted = format!("'{}'", given.replace('\'', "'\\''"));
    format!(
        "what kind of memory is {quoted}? Say it first, messages, cognitive-processes, documents or tasks: \
         almanacd remember messages {quoted}"
    )
}

pub(in crate::cli) fn remember(args: &RememberArgs, output: &mut Output) -> Result<Exit, CliError> {
    let content = args.content.as_deref().ok_or_else(|| MemoryCliError::Forgotten(args.kind.clone()))?;
    let kind = kind(&args.kind)?;
    let mut metadata = args.metadata()?;
    for text in &args.set {
        let (path, value) = pair(Some(kind), text)?;
        let patch = path.rsplit('.').fold(value, |value, key| json!({key: value}));
        metadata = merge_patch(metadata, patch);
    }
    // Where nothing else says what it is, a variable was empty.
    let has_more = ["attachments", "title"].iter().any(|key| metadata.get(key).is_some());
    if content.trim().is_empty() && !has_more {
        return Err(MemoryCliError::Forgotten(args.kind.clone()).into());
    }
    if args.user.is_some() && !has_user(kind) && args.user != env::var("ALMANAC_USER_ID").ok() {
        return Err(MemoryCliError::NoUser.into());
    }
    let unsaid = args.fill(kind, &mut metadata)?;
    let kept = block_on(async {
        let door = args.at.open().await?;
        add(&door, kind, content, metadata).await
    });
    let memory = kept.map_err(|error| match unsaid.join(", ") {
        unsaid if !unsaid.is_empty() && is_faulty(&error) => MemoryCliError::Unsaid(unsaid, Box::new(error)).into(),
        _ => error,
    })?;
    output.show(&memory, |out| out.line(&format!("{}, durably", memory.id)));
    Ok(Exit::Success)
}

/// Is a memory of the kind about somebody?
fn has_user(kind: Kind) -> bool {
    matches!(kind, Kind::Message | Kind::Document)
}

impl RememberArgs {
    fn metadata(&self) -> Result<Value, MemoryCliError> {
        let text = self.metadata.as_bytes();
        let read = read::json(text, &Limits::of_bytes(MAX_METADATA));
        match Value::from(read.map_err(|error| {
            MemoryCliError::Metadata(format!("line {} column {}: {error}", error.line, error.column))
        })?) {
            Value::Object(metadata) => Ok(Value::Object(metadata)),
            _ => Err(MemoryCliError::Metadata("it is another value".to_owned())),
        }
    }

    /// Adds what the metadata leaves open and the arguments or the environment say. Returns the arguments that would
    /// have said what is missing still.
    fn fill(&self, kind: Kind, metadata: &mut Value) -> Result<Vec<&'static str>, MemoryCliError> {
        let Some(metadata) = metadata.as_object_mut() else { return Ok(Vec::new()) };
        let mut fill = |key: &str, name: Option<&str>, namespace: &str| -> Result<(), MemoryCliError> {
            if let Some(name) = name.filter(|_| !metadata.contains_key(key)) {
                metadata.insert(key.to_owned(), id_of(name, namespace)?.into());
            }
            Ok(())
        };
        if has_user(kind) {
            fill("userId", self.user.as_deref(), "user")?;
        }
        fill("agentId", self.agent.as_deref(), "agent")?;
        if kind == Kind::Message {
            fill("chatId", self.chat.as_deref(), "chat")?;
            metadata.entry("role").or_insert_with(|| "user".into());
            let chat = metadata.get("chatId").and_then(|chat| decode::<StructuredId>(chat.clone().into()).ok());
            let thread = metadata.entry("thread").or_insert_with(|| json!({}));
            if let (Some(thread), Some(chat)) = (thread.as_object_mut(), chat) {
                thread.entry("id").or_insert_with(|| chat.id().into());
            }
        }
        let needed: &[(&str, &str)] = match kind {
            Kind::Message => &[("userId", "--user"), ("agentId", "--agent"), ("chatId", "--chat")],
            _ => &[("agentId", "--agent")],
        };
        let missing = needed.iter().filter(|(key, _)| !metadata.contains_key(*key));
        Ok(missing.map(|(_, argument)| *argument).collect())
    }
}

/// Times that a place is looked for anew because somebody else took it.
const PLACES: usize = 20;

/// Keeps a memory; a message without a position at the end of its thread.
async fn add(door: &MemoryDoor, kind: Kind, content: &str, mut metadata: Value) -> Result<MemoryAnswer, CliError> {
    let place = metadata.get("thread").and_then(Value::as_object);
    let thread = place.filter(|place| !place.contains_key("position")).and_then(|place| place.get("id")?.as_str());
    let (Some(thread), Kind::Message) = (thread.map(str::to_owned), kind) else {
        return door.remember(kind, json!({"content": content, "metadata": metadata})).await;
    };
    let mut criteria = json!({"threadId": thread});
    if let Some(chat) = metadata.get("chatId") {
        criteria["chatId"] = chat.clone();
    }
    let last = json!({"criteria": criteria,
        "options": {"sortBy": "thread.position", "sortDirection": "desc", "limit": 1}});
    let mut tries = 0;
    loop {
        let found = door.recall(Some(kind), last.clone()).await?;
        let before = found.memories.first().and_then(|last| last.metadata.get("thread")?.get("position")?.as_u64());
        metadata["thread"]["position"] = before.map_or(0, |before| before + 1).into();
        tries += 1;
        match door.remember(kind, json!({"content": content, "metadata": metadata})).await {
            Err(error) if tries < PLACES && is_taken(&error) => {}
            done => return done,
        }
    }
}

/// Does the memory lack something?
fn is_faulty(error: &CliError) -> bool {
    match error {
        CliError::Client(ClientError::Refused(problem)) => problem.code == Code::InvalidBody,
        CliError::Memory(MemoryCliError::Engine(RecallError::Faulty(_))) => true,
        _ => false,
    }
}

/// Was somebody else faster?
fn is_taken(error: &CliError) -> bool {
    match error {
        CliError::Client(ClientError::Refused(problem)) => problem.code == Code::PositionTaken,
        CliError::Memory(MemoryCliError::Engine(RecallError::Memory(MemoryError::Taken { .. }))) => true,
        _ => false,
    }
}
