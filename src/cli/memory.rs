//! `almanacd remember`, `recall` and `memory`: to keep memories, to find them, to move, save and remove them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::memory_door::{Door, state_dir};
use super::output::Output;
use super::{CliError, DaemonArgs, Exit, block_on};
use crate::daemon::StateError;
use crate::engine::memory::{Archived, RecallError};
use crate::http::wire_memory::MemoryAnswer;
use crate::http::wire_memory_archive::PurgeRequest;
use crate::memory::Kind;
use crate::memory::legacy::Importer;
use crate::memory::merge::merge_patch;
use crate::store::sqlite::{backup, file_in};
use crate::strict::decode::decode;
use crate::strict::read::{self, Limits};

/// Memories that are sent at once, and their size in bytes.
const BATCH: (usize, usize) = (200, 8 << 20);

/// Longest line of a file, in bytes.
const MAX_LINE: usize = 32 << 20;

/// Faulty lines that are shown.
const SHOWN_FAULTS: usize = 50;

/// A command about memories failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum MemoryCliError {
    /// The engine refused.
    #[error("{}", describe(.0))]
    Engine(RecallError),
    /// A daemon has the database, and is not where it was looked for.
    #[error("{0}, or ask that one with --socket or --url")]
    InUse(StateError),
    /// Not a kind.
    #[error("a kind is messages, cognitive-processes, documents or tasks, not `{0}`")]
    Kind(String),
    /// Not `PATH=VALUE`.
    #[error("`{0}` is not KEY=VALUE")]
    Pair(String),
    /// Lines are faulty; nothing was taken.
    #[error("{file} is faulty; nothing was imported\n{faults}")]
    Faulty { file: String, faults: String },
    /// Some of the file was taken, then the daemon refused.
    #[error("{file}: lines {from} to {to} were refused; {imported} memories before them were imported")]
    Refused { file: String, from: usize, to: usize, imported: u64, source: Box<CliError> },
    /// Not readable or writable.
    #[error("cannot use {file}")]
    File { file: String, source: io::Error },
    /// No copy.
    #[error(transparent)]
    Backup(#[from] backup::BackupError),
}

fn describe(error: &RecallError) -> String {
    let RecallError::Faulty(faults) = error else { return error.to_string() };
    faults.iter().map(|fault| format!("{}: {}", fault.pointer(), fault.message)).collect::<Vec<_>>().join("\n  ")
}

#[derive(Debug, Args)]
struct Where {
    /// Whose memories [default: the token's tenant, else default]
    #[arg(long)]
    tenant: Option<String>,
    /// Use the database there, without a daemon
    #[arg(long, env = "ALMANAC_STATE_DIR", value_name = "DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    daemon: DaemonArgs,
}

impl Where {
    async fn open(&self) -> Result<Door, CliError> {
        Door::open(&self.daemon, self.state_dir.as_deref(), self.tenant.as_deref()).await
    }
}

#[derive(Debug, Args)]
pub(super) struct RememberArgs {
    /// messages, cognitive-processes, documents or tasks
    kind: String,
    /// The text
    content: String,
    /// Its metadata, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    metadata: String,
    /// One value of it, such as role=user or thread.position=0; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    at: Where,
}

#[derive(Debug, Args)]
pub(super) struct RecallArgs {
    /// messages, cognitive-processes, documents or tasks
    kind: String,
    /// What they are about
    query: Option<String>,
    /// What must hold, such as role=user, tags=x or minImportance=high; repeatable
    #[arg(long = "where", value_name = "KEY=VALUE")]
    criteria: Vec<String>,
    /// At most so many, 1 to 200
    #[arg(long, default_value_t = 10)]
    limit: u16,
    /// So many left out
    #[arg(long, default_value_t = 0)]
    offset: u32,
    /// A path in the metadata, createdAt, updatedAt or score
    #[arg(long, value_name = "PATH")]
    sort_by: Option<String>,
    /// Largest first
    #[arg(long, requires = "sort_by")]
    descending: bool,
    /// Also what was deleted softly
    #[arg(long)]
    include_deleted: bool,
    #[command(flatten)]
    at: Where,
}

#[derive(Debug, Args)]
pub(super) struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// Write all memories with their history as JSON lines
    Export {
        /// The file [default: standard output]
        file: Option<PathBuf>,
        #[command(flatten)]
        at: Where,
    },
    /// Take memories from JSON lines; those that are there already are left alone
    Import {
        /// The file
        file: PathBuf,
        /// The lines are of the time before schema versions: ids are strings, threads `inResponseTo` and `isPartOfThread`
        #[arg(long)]
        legacy: bool,
        #[command(flatten)]
        at: Where,
    },
    /// Copy the database while it is in use
    Backup {
        /// The copy, which must not be there yet
        file: PathBuf,
        /// Where the database is [default: ./state, else /var/lib/almanac]
        #[arg(long, env = "ALMANAC_STATE_DIR", value_name = "DIR")]
        state_dir: Option<PathBuf>,
    },
    /// Remove memories for good
    Purge {
        /// These memories
        #[arg(long = "id", value_name = "ID", group = "which")]
        ids: Vec<String>,
        /// All that is known of this person, such as user:user:x
        #[arg(long, value_name = "ID", group = "which")]
        user: Option<String>,
        /// What was deleted softly before this, in RFC 3339
        #[arg(long, value_name = "TIME", group = "which")]
        deleted_before: Option<String>,
        /// Everything of the tenant, with what was learnt of it as for a person
        #[arg(long, group = "which")]
        all: bool,
        #[command(flatten)]
        at: Where,
    },
}

fn kind(word: &str) -> Result<Kind, MemoryCliError> {
    Kind::parse(word).ok_or_else(|| MemoryCliError::Kind(word.to_owned()))
}

/// A pair's key and value; what is no JSON is a text.
fn pair(text: &str) -> Result<(&str, Value), MemoryCliError> {
    let (key, value) = text.split_once('=').ok_or_else(|| MemoryCliError::Pair(text.to_owned()))?;
    Ok((key, serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

pub(super) fn remember(args: &RememberArgs, output: &mut Output) -> Result<Exit, CliError> {
    let kind = kind(&args.kind)?;
    let parsed = serde_json::from_str(&args.metadata).ok().filter(Value::is_object);
    let mut metadata: Value = parsed.ok_or_else(|| MemoryCliError::Pair(args.metadata.clone()))?;
    for text in &args.set {
        let (path, value) = pair(text)?;
        let patch = path.rsplit('.').fold(value, |value, key| json!({key: value}));
        metadata = merge_patch(metadata, patch);
    }
    let body = json!({"content": args.content, "metadata": metadata});
    let memory = block_on(async { args.at.open().await?.remember(kind, body).await })?;
    output.show(&memory, |out| out.line(&format!("{}, durably", memory.id)));
    Ok(Exit::Success)
}

pub(super) fn recall(args: &RecallArgs, output: &mut Output) -> Result<Exit, CliError> {
    let kind = kind(&args.kind)?;
    let mut criteria = Map::new();
    for text in &args.criteria {
        let (key, value) = pair(text)?;
        criteria.insert(key.to_owned(), value);
    }
    let direction = args.sort_by.as_ref().map(|_| if args.descending { "desc" } else { "asc" });
    let body = json!({"criteria": criteria, "options": {
        "query": args.query, "limit": args.limit, "offset": args.offset, "sortBy": args.sort_by, "sortDirection": direction,
        "includeDeleted": args.include_deleted,
    }});
    let found = block_on(async { args.at.open().await?.recall(kind, body).await })?;
    output.show(&found, |out| {
        found.memories.iter().for_each(|memory| print(memory, out));
        if (found.memories.len() as u64) < found.total || found.total == 0 {
            out.note(&format!("{} of {} memories", found.memories.len(), found.total));
        }
    });
    Ok(Exit::Success)
}

fn print(memory: &MemoryAnswer, out: &mut Output) {
    let score = memory.score.map(|score| format!("{score:6.2}  ")).unwrap_or_default();
    let text = |key: &str| memory.metadata.get(key).and_then(Value::as_str);
    let word = ["role", "processType", "status", "source"].into_iter().find_map(text).unwrap_or_default();
    let id = out.bold(&memory.id);
    let first: String = memory.content.lines().next().unwrap_or_default().chars().take(160).collect();
    out.line(&format!("{score}{id}  {word}: {first}"));
}

pub(super) fn run(args: &MemoryArgs, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        MemoryCommand::Export { file, at } => export(file.as_deref(), at, output),
        MemoryCommand::Import { file, legacy, at } => import(file, *legacy, at, output),
        MemoryCommand::Backup { file, state_dir: given } => {
            let from = file_in(&state_dir(given.as_deref())?);
            let bytes = backup::backup(&from, file).map_err(MemoryCliError::from)?;
            output.show(&json!({"file": file, "bytes": bytes}), |out| {
                out.line(&format!("{bytes} bytes to {}", file.display()));
            });
            Ok(Exit::Success)
        }
        MemoryCommand::Purge { ids, user, deleted_before, all, at } => {
            let request = PurgeRequest {
                ids: Some(ids.clone()).filter(|ids| !ids.is_empty()),
                user_id: user.clone(),
                deleted_before: deleted_before.clone(),
                all: all.then_some(true),
            };
            let purged = block_on(async { at.open().await?.purge(json!(request)).await })?;
            output.show(&json!({"purged": purged}), |out| out.line(&format!("{purged} memories removed for good")));
            Ok(Exit::Success)
        }
    }
}

fn export(file: Option<&Path>, at: &Where, output: &mut Output) -> Result<Exit, CliError> {
    let name = file.map_or_else(|| "standard output".to_owned(), |file| file.display().to_string());
    let failed = |source| CliError::from(MemoryCliError::File { file: name.clone(), source });
    let mut out: Box<dyn Write> = match file {
        Some(file) => Box::new(BufWriter::new(File::create(file).map_err(failed)?)),
        None => Box::new(BufWriter::new(io::stdout())),
    };
    let written = block_on(async {
        let door = at.open().await?;
        let (mut cursor, mut written) = (String::new(), 0_u64);
        loop {
            let page = door.export(&cursor).await?;
            for memory in &page.items {
                serde_json::to_writer(&mut out, memory).map_err(|error| failed(error.into()))?;
                out.write_all(b"\n").map_err(failed)?;
                written += 1;
            }
            output.progress(&format!("{written} memories"));
            let Some(next) = page.next_cursor else { break };
            cursor = next;
        }
        out.flush().map_err(failed)?;
        Ok::<_, CliError>(written)
    })?;
    output.progress("");
    output.note(&format!("{written} memories exported to {name}"));
    Ok(Exit::Success)
}

/// Lines of a file, read and checked: all faults are found before anything is sent.
pub(super) fn read_lines(file: &Path, legacy: bool) -> Result<Vec<(usize, Value)>, CliError> {
    let name = file.display().to_string();
    let failed = |source| CliError::from(MemoryCliError::File { file: name.clone(), source });
    let mut importer = legacy.then(Importer::default);
    let (mut lines, mut faults) = (Vec::new(), Vec::new());
    for (number, line) in BufReader::new(File::open(file).map_err(failed)?).lines().enumerate() {
        let (number, line) = (number + 1, line.map_err(failed)?);
        if line.trim().is_empty() {
            continue;
        }
        match read_line(&line, importer.as_mut()) {
            Ok(value) => lines.push((number, value)),
            Err(said) => faults.extend(said.into_iter().map(|said| format!("  line {number}: {said}"))),
        }
        if faults.len() >= SHOWN_FAULTS {
            faults.push("  …".to_owned());
            break;
        }
    }
    if faults.is_empty() {
        return Ok(lines);
    }
    Err(MemoryCliError::Faulty { file: name, faults: faults.join("\n") }.into())
}

fn read_line(line: &str, importer: Option<&mut Importer>) -> Result<Value, Vec<String>> {
    let limits = Limits { nodes: MAX_LINE / 64, depth: 64, ..Limits::of_bytes(MAX_LINE) };
    let node = read::json(line.as_bytes(), &limits).map_err(|error| vec![error.to_string()])?;
    let mut value = Value::from(node);
    if let Some(importer) = importer {
        modernise(&mut value, importer);
    }
    let checked = decode::<Archived>(value.clone().into());
    checked.map(|_| value).map_err(|faults| {
        let say = |fault: &crate::strict::Fault| {
            let hint = fault.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("{}: {}{hint}", fault.pointer(), fault.message)
        };
        faults.iter().map(say).collect()
    })
}

/// Brings a line from before schema versions up to date; what it has beside the four keys it may have becomes metadata.
fn modernise(value: &mut Value, importer: &mut Importer) {
    let Some(line) = value.as_object_mut() else { return };
    let mut metadata = match line.shift_remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let own: Vec<String> =
        line.keys().filter(|key| !["id", "kind", "type", "content"].contains(&key.as_str())).cloned().collect();
    for key in own {
        if let Some(value) = line.shift_remove(&key) {
            metadata.entry(key).or_insert(value);
        }
    }
    let said = line.shift_remove("type").or_else(|| line.get("kind").cloned());
    let kind = said.as_ref().and_then(Value::as_str).and_then(|word| Kind::parse(&word.to_lowercase()));
    let Some(kind) = kind.or_else(|| Kind::of_metadata(&metadata)) else {
        line.insert("metadata".to_owned(), Value::Object(metadata));
        return;
    };
    let id = line.get("id").and_then(Value::as_str).map(str::to_owned);
    importer.modernise(kind, id.as_deref(), &mut metadata);
    line.insert("kind".to_owned(), kind.as_str().into());
    line.insert("metadata".to_owned(), Value::Object(metadata));
}

fn import(file: &Path, legacy: bool, at: &Where, output: &mut Output) -> Result<Exit, CliError> {
    let lines = read_lines(file, legacy)?;
    let total = lines.len();
    let imported = block_on(async {
        let door = at.open().await?;
        let (mut imported, mut sent) = (0, 0);
        let mut batch: Vec<(usize, Value)> = Vec::new();
        let mut bytes = 0;
        let mut lines = lines.into_iter().peekable();
        while let Some((number, value)) = lines.next() {
            bytes += value.to_string().len();
            batch.push((number, value));
            if batch.len() < BATCH.0 && bytes < BATCH.1 && lines.peek().is_some() {
                continue;
            }
            let (from, to) = (batch.first().map_or(0, |line| line.0), batch.last().map_or(0, |line| line.0));
            sent += batch.len();
            let memories = batch.drain(..).map(|(_, value)| value).collect();
            let refused = |source| MemoryCliError::Refused {
                file: file.display().to_string(),
                from,
                to,
                imported,
                source: Box::new(source),
            };
            imported += door.import(memories).await.map_err(refused)?;
            output.progress(&format!("{sent} of {total} memories"));
            bytes = 0;
        }
        Ok::<_, CliError>(imported)
    })?;
    output.progress("");
    let known = total as u64 - imported;
    output.show(&json!({"imported": imported, "known": known}), |out| {
        out.line(&format!("{imported} memories imported, {known} were there already"));
    });
    Ok(Exit::Success)
}
