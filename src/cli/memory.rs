//! `almanacd recall`, `backup` and `memory`: to find memories, to move, save and remove them; and, beside, to keep one.

mod remember;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use std::{fmt, mem};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::time::sleep;
use uuid::{Builder, Uuid, Version};

use super::client::ClientError;
use super::file::Replacement;
use super::memory_door::{DatabaseMode, MemoryDoor, own_state_dir};
use super::output::Output;
use super::{CliError, DaemonArgs, Exit, block_on};
use crate::config::DATABASE_URL;
use crate::daemon::StateError;
use crate::engine::memory::{Archived, RecallError};
use crate::memory::field::{Moment, rfc3339};
use crate::memory::legacy::Importer;
use crate::memory::{Kind, StructuredId};
use crate::store::memories::MemoryError;
use crate::store::sqlite::{backup, file_in};
use crate::strict::decode::decode;
use crate::strict::read::{self, Limits};
use crate::wire::memory::MemoryAnswer;
use crate::wire::memory_archive::PurgeRequest;
use crate::wire::problem::Code;
pub(super) use remember::{RememberArgs, remember};

/// Memories that are sent at once, and their size in bytes.
const BATCH: (usize, usize) = (200, 8 << 20);

/// Longest line of a file, in bytes.
const MAX_LINE: usize = 32 << 20;

/// Faulty lines that are shown.
const SHOWN_FAULTS: usize = 50;

/// A command about memories failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum MemoryCliError {
    #[error("{}", describe(.0))]
    Engine(RecallError),
    /// A daemon has the database, and is not where it was looked for.
    #[error("{0}, or ask that one with --socket or --url")]
    InUse(StateError),
    #[error("a kind is messages, cognitive-processes, documents or tasks (or all, to recall), not `{0}`")]
    Kind(String),
    /// One of kind and text was forgotten.
    #[error("{}", remember::forgotten(.0))]
    Forgotten(String),
    #[error("`{0}` is not KEY=VALUE")]
    Pair(String),
    /// A criterion that can hold one value only.
    #[error("`{0}` is given twice with --where, and has one value; of `tags` all that are given must be there")]
    Twice(String),
    /// Not whom a memory of the kind is about.
    #[error("--user is of messages and documents; whom a task is for is said by --set assignedTo=ID")]
    NoUser,
    /// Not a JSON object.
    #[error("--metadata is no JSON object, such as {{\"tags\":[\"x\"]}}: {0}")]
    Metadata(String),
    /// The metadata lacks what arguments or the environment may say.
    #[error("not kept; say {0}, or let the environment do it")]
    Unsaid(String, #[source] Box<CliError>),
    /// An address does not lead to what only the administrator may.
    #[error(
        "`memory {0}` is the administrator's and needs the admin socket: name it with --socket, or the files with \
             --state-dir, instead of --url or ALMANAC_URL"
    )]
    NotByUrl(&'static str),
    /// Lines are faulty; nothing was taken.
    #[error("{file} is faulty; nothing was imported\n{faults}")]
    Faulty { file: String, faults: String },
    /// Some of the file was taken, then the daemon refused.
    #[error("{file}: {lines} refused; {imported} memories before were imported")]
    Refused { file: String, lines: RefusedLines, imported: u64, source: Box<CliError> },
    /// Nothing was ever kept there.
    #[error("there is no database at {}; is it the state directory that was meant?", .0.display())]
    NoDatabase(PathBuf),
    /// Not readable or writable.
    #[error("cannot use {file}")]
    File { file: String, source: io::Error },
    #[error(transparent)]
    Backup(#[from] backup::BackupError),
    #[error(
        "all is kept in the PostgreSQL database that `store.url` or {DATABASE_URL} names, which its own tools copy \
         (pg_dump); what is in the state directory is of before"
    )]
    SharedDatabase,
}

/// Lines that were refused, and the word after them.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusedLines(usize, usize);

impl fmt::Display for RefusedLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(from, to) = self;
        if from == to { write!(formatter, "line {from} was") } else { write!(formatter, "lines {from} to {to} were") }
    }
}

impl MemoryCliError {
    /// Is the command line itself at fault?
    pub(super) fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Forgotten(_)
                | Self::Kind(_)
                | Self::Pair(_)
                | Self::Twice(_)
                | Self::NoUser
                | Self::Metadata(_)
                | Self::NotByUrl(_)
        )
    }
}

fn describe(error: &RecallError) -> String {
    let RecallError::Faulty(faults) = error else { return error.to_string() };
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
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
    /// Refuses an address, before anything is read or written.
    fn for_administrators(&self, command: &'static str) -> Result<(), MemoryCliError> {
        if self.daemon.url.is_some() { Err(MemoryCliError::NotByUrl(command)) } else { Ok(()) }
    }

    async fn open(&self) -> Result<MemoryDoor, CliError> {
        MemoryDoor::open(&self.daemon, self.state_dir.as_deref(), self.tenant.as_deref(), DatabaseMode::Create).await
    }

    /// To read what is there, or remove it: a place that was mistyped is not made.
    async fn open_kept(&self) -> Result<MemoryDoor, CliError> {
        MemoryDoor::open(&self.daemon, self.state_dir.as_deref(), self.tenant.as_deref(), DatabaseMode::Existing).await
    }
}

#[derive(Debug, Args)]
pub(super) struct RecallArgs {
    /// messages, cognitive-processes, documents, tasks or all
    kind: String,
    /// What they are about
    query: Option<String>,
    /// What must hold, such as role=user, tags=x or minImportance=high; repeatable
    #[arg(long = "where", value_name = "KEY=VALUE")]
    criteria: Vec<String>,
    /// At most so many, 1 to 200
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=200))]
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
#[command(long_about = "Copy the whole store while it is in use\n\n\
The copy holds recorded calls, what was learnt of messages, and memories. To restore, stop the daemon, put the copy in
the place of almanac.db in the state directory, and remove almanac.journal, almanac.db-wal and almanac.db-shm there.")]
pub(super) struct BackupArgs {
    /// The copy, which must not be there yet
    file: PathBuf,
    /// Where the store is [default: ./state, else /var/lib/almanac]
    #[arg(long, env = "ALMANAC_STATE_DIR", value_name = "DIR")]
    state_dir: Option<PathBuf>,
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
        /// The file; - is standard output [default: -]
        file: Option<PathBuf>,
        #[command(flatten)]
        at: Where,
    },
    /// Take memories from JSON lines; those that are there already are left alone
    Import {
        /// The file; - is standard input
        file: PathBuf,
        /// The lines are of the time before schema versions: ids are strings, threads `inResponseTo` and
        /// `isPartOfThread`
        #[arg(long)]
        legacy: bool,
        #[command(flatten)]
        at: Where,
    },
    /// Copy the database while it is in use; the same as `almanacd backup`
    Backup {
        /// The copy, which must not be there yet
        file: PathBuf,
        /// Where the database is [default: ./state, else /var/lib/almanac]
        #[arg(long, env = "ALMANAC_STATE_DIR", value_name = "DIR")]
        state_dir: Option<PathBuf>,
    },
    /// Remove memories for good
    #[command(group = clap::ArgGroup::new("which").required(true))]
    Purge {
        /// These memories
        #[arg(long = "id", value_name = "ID", group = "which")]
        ids: Vec<String>,
        /// Whatever has this person as `userId`, in any version: an id, or a bare name
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
    Kind::named(word).ok_or_else(|| MemoryCliError::Kind(word.to_owned()))
}

/// A pair's key and value; what is no JSON is a text.
fn pair(text: &str) -> Result<(&str, Value), MemoryCliError> {
    let parts = text.split_once('=').filter(|(key, _)| key.split('.').all(|key| !key.is_empty()));
    let (key, value) = parts.ok_or_else(|| MemoryCliError::Pair(text.to_owned()))?;
    Ok((key, serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

/// A list, or the one that is in it.
fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        one => vec![one],
    }
}

/// An id, from that or from a bare name of one whose namespace and type are `namespace`.
fn id_of(name: &str, namespace: &str) -> String {
    let is_bare = name.parse::<StructuredId>().is_err();
    let id = StructuredId::new(namespace, namespace, name, None).ok().filter(|_| is_bare);
    id.map_or_else(|| name.to_owned(), |id| id.to_string())
}

pub(super) fn recall(args: &RecallArgs, output: &mut Output) -> Result<Exit, CliError> {
    let kind = if args.kind == "all" { None } else { Some(kind(&args.kind)?) };
    let mut criteria = Map::new();
    for text in &args.criteria {
        let (key, value) = pair(text)?;
        match (key, criteria.get_mut(key)) {
            (_, None) => drop(criteria.insert(key.to_owned(), value)),
            ("tags", Some(tags)) => *tags = json!([listed(tags.take()), listed(value)].concat()),
            _ => return Err(MemoryCliError::Twice(key.to_owned()).into()),
        }
    }
    let direction = args.sort_by.as_ref().map(|_| if args.descending { "desc" } else { "asc" });
    let body = json!({"criteria": criteria, "options": {
        "query": args.query, "limit": args.limit, "offset": args.offset, "sortBy": args.sort_by,
            "sortDirection": direction,
        "includeDeleted": args.include_deleted,
    }});
    let found = block_on(async { args.at.open_kept().await?.recall(kind, body).await })?;
    output.show(&found, |out| {
        found.memories.iter().for_each(|memory| print(memory, out));
        if (found.memories.len() as u64) < found.total || found.total == 0 {
            out.note(&format!("{} of {} memories", found.memories.len(), found.total));
        }
    });
    Ok(Exit::Success)
}

/// Whose words, or whose work, a memory is.
fn speaker(memory: &MemoryAnswer) -> Option<&str> {
    let metadata = &memory.metadata;
    let is_user = metadata.get("role").is_none_or(|role| role == "user");
    let keys = ["senderAgentId", "assignedTo", if is_user { "userId" } else { "agentId" }, "agentId"];
    keys.into_iter().find_map(|key| metadata.get(key)?.get("id")?.as_str())
}

fn print(memory: &MemoryAnswer, out: &mut Output) {
    let score = memory.score.map(|score| format!("{score:6.2}  ")).unwrap_or_default();
    let text = |key: &str| memory.metadata.get(key).and_then(Value::as_str);
    let word = ["role", "processType", "status", "source"].into_iter().find_map(text).unwrap_or_default();
    let id = out.bold(&memory.id);
    let first: String = memory.content.lines().next().unwrap_or_default().chars().take(160).collect();
    let who = speaker(memory).map(|who| format!(" {who}")).unwrap_or_default();
    let when: String = memory.created_at.chars().take("2026-01-31T12:00".len()).collect();
    out.line(&format!("{score}{id}  {}  {word}{who}: {first}", when.replace('T', " ")));
}

/// Copies all that the store keeps, memories and records alike, while it is in use.
pub(super) fn backup(args: &BackupArgs, output: &mut Output) -> Result<Exit, CliError> {
    copy(&args.file, args.state_dir.as_deref(), output)
}

fn copy(file: &Path, state: Option<&Path>, output: &mut Output) -> Result<Exit, CliError> {
    let from = match (own_state_dir(state)?, state) {
        (Some(own), _) => file_in(&own),
        (None, Some(named)) if file_in(named).is_file() => {
            output.note(&MemoryCliError::SharedDatabase.to_string());
            file_in(named)
        }
        (None, _) => return Err(MemoryCliError::SharedDatabase.into()),
    };
    let bytes = backup::backup(&from, file).map_err(MemoryCliError::from)?;
    output.show(&json!({"file": file, "bytes": bytes}), |out| {
        out.line(&format!("{bytes} bytes to {}", file.display()));
    });
    Ok(Exit::Success)
}

pub(super) fn run(args: &MemoryArgs, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        MemoryCommand::Export { file, at } => {
            at.for_administrators("export")?;
            export(file.as_deref(), at, output)
        }
        MemoryCommand::Import { file, legacy, at } => {
            at.for_administrators("import")?;
            import(file, *legacy, at, output)
        }
        MemoryCommand::Backup { file, state_dir: given } => copy(file, given.as_deref(), output),
        MemoryCommand::Purge { ids, user, deleted_before, all, at } => {
            at.for_administrators("purge")?;
            let request = PurgeRequest {
                ids: Some(ids.clone()).filter(|ids| !ids.is_empty()),
                user_id: user.as_deref().map(|user| id_of(user, "user")),
                deleted_before: deleted_before.clone(),
                all: all.then_some(true),
            };
            let purged = block_on(purge(at, json!(request), output));
            output.progress("");
            let purged = purged?;
            output.show(&json!({"purged": purged}), |out| out.line(&format!("{purged} memories removed for good")));
            Ok(Exit::Success)
        }
    }
}

/// Between two words about how far a purge is.
const PURGE_PROGRESS: Duration = Duration::from_secs(1);

async fn purge(at: &Where, request: Value, output: &mut Output) -> Result<u64, CliError> {
    let door = at.open_kept().await?;
    let mut purge = pin!(door.purge(request));
    loop {
        tokio::select! {
            purged = &mut purge => return purged,
            () = sleep(PURGE_PROGRESS) => {
                // Whatever it is that keeps it from being counted, the purge itself will tell.
                if let Ok(left) = door.recall(None, json!({"options": {"limit": 1}})).await {
                    output.progress(&format!("removing; {} memories are left", left.total));
                }
            }
        }
    }
}

/// Where an export goes.
enum ExportTo {
    File(Replacement),
    StandardOutput(BufWriter<io::Stdout>),
}

impl ExportTo {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::File(file) => file,
            Self::StandardOutput(out) => out,
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.finish(),
            Self::StandardOutput(mut out) => out.flush(),
        }
    }
}

fn export(file: Option<&Path>, at: &Where, output: &mut Output) -> Result<Exit, CliError> {
    let file = file.filter(|file| *file != Path::new("-"));
    let name = file.map_or_else(|| "standard output".to_owned(), |file| file.display().to_string());
    let failed = |source| CliError::from(MemoryCliError::File { file: name.clone(), source });
    let written = block_on(async {
        let door = at.open_kept().await?;
        // An earlier export stays until there is a whole one to take its place.
        let mut out = match file {
            Some(file) => ExportTo::File(Replacement::begin(file, Some(0o600)).map_err(failed)?),
            None => ExportTo::StandardOutput(BufWriter::new(io::stdout())),
        };
        let (mut cursor, mut written) = (String::new(), 0_u64);
        loop {
            let page = door.export(&cursor).await?;
            for memory in &page.items {
                serde_json::to_writer(out.writer(), memory).map_err(|error| failed(error.into()))?;
                out.writer().write_all(b"\n").map_err(failed)?;
                written += 1;
            }
            output.progress(&format!("{written} memories"));
            let Some(next) = page.next_cursor else { break };
            cursor = next;
        }
        out.finish().map_err(failed)?;
        Ok::<_, CliError>(written)
    })?;
    output.progress("");
    output.note(&format!("{written} memories exported to {name}"));
    Ok(Exit::Success)
}

/// Lines of a file, read and checked: all faults are found before anything is sent.
pub(super) fn read_lines(file: &Path, legacy: bool) -> Result<Vec<(usize, Value)>, CliError> {
    let (is_standard, name) = (file == Path::new("-"), source_name(file));
    let failed = |source| CliError::from(MemoryCliError::File { file: name.clone(), source });
    let input: Box<dyn Read> =
        if is_standard { Box::new(io::stdin()) } else { Box::new(File::open(file).map_err(failed)?) };
    let (mut lines, mut faults) = (Vec::new(), Vec::new());
    let fault = |number: usize, said: String| format!("  line {number}: {said}");
    for (number, line) in BufReader::new(input).lines().enumerate() {
        let (number, line) = (number + 1, line.map_err(failed)?);
        if line.trim().is_empty() {
            continue;
        }
        match read::json(line.as_bytes(), &LINE_LIMITS) {
            Ok(node) => lines.push((number, Value::from(node))),
            Err(error) => faults.push(fault(number, error.to_string())),
        }
    }
    identify(&mut lines);
    if legacy {
        modernise(&mut lines);
    }
    for (number, value) in &lines {
        if faults.len() >= SHOWN_FAULTS {
            faults.push("  …".to_owned());
            break;
        }
        faults.extend(check(value).into_iter().map(|said| fault(*number, said)));
    }
    if faults.is_empty() {
        return Ok(lines);
    }
    Err(MemoryCliError::Faulty { file: name, faults: faults.join("\n") }.into())
}

const LINE_LIMITS: Limits = Limits { nodes: MAX_LINE / 64, depth: 64, ..Limits::of_bytes(MAX_LINE) };

/// What is wrong with a line.
fn check(value: &Value) -> Vec<String> {
    decode::<Archived>(value.clone().into()).err().iter().flatten().map(ToString::to_string).collect()
}

/// Gives each line without an id one that it has again when it is imported again: of its text, and of how many of the
/// same text are before it.
fn identify(lines: &mut [(usize, Value)]) {
    let mut before: HashMap<[u8; 16], u64> = HashMap::new();
    for (_, value) in lines {
        let text = sorted(value).to_string();
        let Some(line) = value.as_object_mut().filter(|line| !line.contains_key("id")) else { continue };
        let [text, _] = digest(&[text.as_bytes()]);
        let count = before.entry(text).or_default();
        let [id, _] = digest(&[&text, &count.to_be_bytes()]);
        *count += 1;
        line.insert("id".to_owned(), Builder::from_custom_bytes(id).into_uuid().to_string().into());
    }
}

/// The same with keys in order, as whoever writes the file anew may not keep theirs.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<&String, Value> = map.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(map.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// Is it an id that a line was given here?
fn is_derived(line: &Value) -> bool {
    let id = line.get("id").and_then(Value::as_str).and_then(|id| id.parse::<Uuid>().ok());
    id.is_some_and(|id| id.get_version() == Some(Version::Custom))
}

/// Both halves of a SHA-256.
fn digest(parts: &[&[u8]]) -> [[u8; 16]; 2] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    let whole: [u8; 32] = hash.finalize().into();
    let (mut first, mut second) = ([0; 16], [0; 16]);
    first.copy_from_slice(&whole[..16]);
    second.copy_from_slice(&whole[16..]);
    [first, second]
}

/// Brings lines from before schema versions up to date. All of them are told to the importer first: an answer may stand
/// before what it answers.
fn modernise(lines: &mut [(usize, Value)]) {
    let mut importer = Importer::default();
    let mut parted: Vec<(Option<Kind>, Map<String, Value>)> = Vec::with_capacity(lines.len());
    for (_, value) in lines.iter_mut() {
        let (kind, metadata) = value.as_object_mut().map(part).unwrap_or_default();
        if let Some(kind) = kind {
            importer.learn(kind, value.get("id").and_then(Value::as_str), &metadata);
        }
        parted.push((kind, metadata));
    }
    for ((_, value), (kind, mut metadata)) in lines.iter_mut().zip(parted) {
        let Some(line) = value.as_object_mut() else { continue };
        if let Some(kind) = kind {
            importer.modernise(kind, line.get("id").and_then(Value::as_str), &mut metadata);
            line.insert("kind".to_owned(), kind.as_str().into());
        }
        line.insert("metadata".to_owned(), Value::Object(metadata));
    }
}

/// Keys of a line that are not its metadata's.
const LINE_KEYS: [&str; 6] = ["id", "kind", "type", "content", "createdAt", "updatedAt"];

/// Takes a line's kind and metadata out of it; whatever else it has becomes metadata, but for its moments, which are
/// the memory's own wherever they stand.
fn part(line: &mut Map<String, Value>) -> (Option<Kind>, Map<String, Value>) {
    let mut metadata = match line.shift_remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let own: Vec<String> = line.keys().filter(|key| !LINE_KEYS.contains(&key.as_str())).cloned().collect();
    for key in own {
        if let Some(value) = line.shift_remove(&key) {
            metadata.entry(key).or_insert(value);
        }
    }
    for key in ["createdAt", "updatedAt"] {
        let within = metadata.get(key).and_then(moment);
        let moment = line.get(key).map(|value| moment(value).unwrap_or_else(|| value.clone()));
        if within.is_some() {
            metadata.shift_remove(key);
        }
        if let Some(moment) = moment.or(within) {
            line.insert(key.to_owned(), moment);
        }
    }
    let said = line.shift_remove("type").or_else(|| line.get("kind").cloned());
    let kind = said.as_ref().and_then(Value::as_str).and_then(|word| Kind::named(&word.to_lowercase()));
    (kind.or_else(|| Kind::of_metadata(&metadata)), metadata)
}

/// A moment in RFC 3339, from that or from milliseconds since the epoch.
fn moment(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Moment::parse(text).map(|moment| moment.as_str().into()),
        Value::Number(millis) => {
            millis.as_i64().and_then(|millis| millis.checked_mul(1000)).map(|us| rfc3339(us).into())
        }
        _ => None,
    }
}

/// Sends lines at once; one by one if they are refused so, until the one is found that is at fault.
async fn send(door: &MemoryDoor, lines: Vec<(usize, Value)>, file: &str, before: u64) -> Result<u64, CliError> {
    let refused = |from: usize, to: usize, imported: u64, source: CliError| MemoryCliError::Refused {
        file: file.to_owned(),
        lines: RefusedLines(from, to),
        imported,
        source: Box::new(source),
    };
    let (from, to) = (lines.first().map_or(0, |line| line.0), lines.last().map_or(0, |line| line.0));
    let failed = match door.import(lines.iter().map(|(_, value)| value.clone()).collect()).await {
        Ok(imported) => return Ok(imported),
        Err(error) => error,
    };
    if !is_of_a_line(&failed) {
        return Err(refused(from, to, before, failed).into());
    }
    let mut imported = 0;
    for (number, value) in lines {
        let is_derived = is_derived(&value);
        match door.import(vec![value]).await {
            Ok(one) => imported += one,
            // It was changed, or deleted, since it was imported.
            Err(error) if is_derived && is_there(&error) => {}
            Err(error) if is_of_a_line(&error) => return Err(refused(number, number, before + imported, error).into()),
            Err(error) => return Err(refused(number, to, before + imported, error).into()),
        }
    }
    Ok(imported)
}

/// Is it what a line says that was refused?
fn is_of_a_line(error: &CliError) -> bool {
    match error {
        CliError::Client(ClientError::Refused(problem)) => matches!(problem.status, 409 | 422),
        CliError::Memory(MemoryCliError::Engine(error)) => {
            matches!(error, RecallError::Faulty(_) | RecallError::Memory(_))
        }
        _ => false,
    }
}

/// Is there another memory of the id?
fn is_there(error: &CliError) -> bool {
    match error {
        CliError::Client(ClientError::Refused(problem)) => problem.code == Code::MemoryExists,
        CliError::Memory(MemoryCliError::Engine(RecallError::Memory(MemoryError::Exists(_)))) => true,
        _ => false,
    }
}

/// What a file is called where it is spoken of.
fn source_name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
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
            sent += batch.len();
            imported += send(&door, mem::take(&mut batch), &source_name(file), imported).await?;
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
