//! `almanacd recall`, `backup` and `memory`: to find memories, to move, save and remove them; and, beside, to keep one.

mod import;
mod remember;

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::file::OutputFile;
use super::memory_door::{DatabaseMode, MemoryDoor, own_state_dir, shared_by};
use super::output::Output;
use super::{CliError, DaemonArgs, Exit, block_on, is_flag};
use crate::config::DATABASE_URL;
use crate::daemon::StateError;
use crate::engine::memory::RecallError;
use crate::memory::criteria::takes_text;
use crate::memory::{Kind, StructuredId};
use crate::store::sqlite::{backup, file_in};
use crate::wire::memory::MemoryAnswer;
use crate::wire::memory_archive::PurgeRequest;
pub(super) use import::read_lines;
use import::{RefusedLines, import};
pub(super) use remember::{RememberArgs, remember};

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
    /// Neither an id nor a bare name.
    #[error("`{0}` is no id, which is like {1}:{1}:anna, and no bare name, such as anna")]
    NoId(String, String),
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
    #[error("--state-dir names a database, and --socket or --url a daemon with its own: give one of them")]
    TwoPlaces,
    /// What is removed for good must not be everybody's by mistake.
    #[error(
        "--state-dir names files, and {0} a database that daemons share, where it would be removed: leave --state-dir \
         out if that is meant, else take {0} away"
    )]
    PurgeOfShared(&'static str),
    /// Lines are faulty; nothing was taken.
    #[error("{file} is faulty; nothing was imported\n{faults}")]
    Faulty { file: String, faults: String },
    /// Some of the file was taken, then the daemon refused.
    #[error("{file}: {lines} refused; {imported} memories before were imported")]
    Refused { file: String, lines: RefusedLines, imported: u64, source: Box<CliError> },
    /// Nothing was ever kept there.
    #[error(
        "there is no database at {}; is it the state directory that was meant? --state-dir names another",
        .0.display()
    )]
    NoDatabase(PathBuf),
    /// It is somebody else's.
    #[error("{} cannot be read; do this as the daemon's user", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
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
                | Self::NoId(..)
                | Self::Metadata(_)
                | Self::NotByUrl(_)
                | Self::TwoPlaces
                | Self::PurgeOfShared(_)
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
    /// Use the database there, without a daemon; where the environment names it, ask the daemon that runs on it, if one
    /// does [default: state where it is a directory, else that of the machine's daemon, or of the user's own]
    #[arg(long, env = "ALMANAC_STATE_DIR", value_name = "DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    daemon: DaemonArgs,
}

impl Where {
    /// Refuses an address, before anything is read or written.
    fn for_administrators(&self, command: &'static str) -> Result<(), MemoryCliError> {
        let is_files = self.daemon.gives_way_to(self.state_dir.is_some(), &["--state-dir"]);
        if self.daemon.is_by_url() && !is_files { Err(MemoryCliError::NotByUrl(command)) } else { Ok(()) }
    }

    /// What is removed or written must not be a guess.
    fn refuse_two(&self) -> Result<(), MemoryCliError> {
        let is_both = self.state_dir.is_some() && is_flag("--state-dir") && self.daemon.is_flag();
        if is_both { Err(MemoryCliError::TwoPlaces) } else { Ok(()) }
    }

    /// The database that daemons share which is used although the command line names a state directory, by what names
    /// it.
    fn shared_despite(&self) -> Result<Option<&'static str>, CliError> {
        if !is_flag("--state-dir") {
            return Ok(None);
        }
        shared_by(self.state_dir.as_deref())
    }

    fn tell_of_shared(&self) -> Result<(), CliError> {
        if let Some(name) = self.shared_despite()? {
            let said = format!("note: the database that daemons share is used, which {name} names; not --state-dir");
            Output::new(false).note(&said);
        }
        Ok(())
    }

    async fn open(&self) -> Result<MemoryDoor, CliError> {
        self.refuse_two()?;
        self.tell_of_shared()?;
        MemoryDoor::open(&self.daemon, self.state_dir.as_deref(), self.tenant.as_deref(), DatabaseMode::Create).await
    }

    /// To read what is there, or remove it: a place that was mistyped is not made.
    async fn open_kept(&self) -> Result<MemoryDoor, CliError> {
        self.refuse_two()?;
        self.tell_of_shared()?;
        MemoryDoor::open(&self.daemon, self.state_dir.as_deref(), self.tenant.as_deref(), DatabaseMode::Existing).await
    }
}

#[derive(Debug, Args)]
pub(super) struct RecallArgs {
    /// messages, cognitive-processes, documents, tasks or all
    kind: String,
    /// What they are about
    query: Option<String>,
    /// What must hold, such as role=user, tags=x or minImportance=high; repeatable. A value is read as JSON where it is
    /// some: '"42"' is a text
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

/// A pair's key and value, which is read as JSON; what is none is a text, and so are numbers and truths where a memory
/// of the kind has one.
fn pair(kind: Option<Kind>, text: &str) -> Result<(&str, Value), MemoryCliError> {
    let parts = text.split_once('=').filter(|(key, _)| key.split('.').all(|key| !key.is_empty()));
    let (key, value) = parts.ok_or_else(|| MemoryCliError::Pair(text.to_owned()))?;
    let read = match serde_json::from_str(value) {
        Ok(Value::Number(_) | Value::Bool(_)) if takes_text(kind, key) => value.into(),
        Ok(read) => read,
        Err(_) => value.into(),
    };
    Ok((key, read))
}

/// A list, or the one that is in it.
fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        one => vec![one],
    }
}

/// An id, from that or from a bare name of one whose namespace and type are `namespace`. What begins as such an id does
/// is one that was mistyped.
fn id_of(name: &str, namespace: &str) -> Result<String, MemoryCliError> {
    if name.parse::<StructuredId>().is_ok() {
        return Ok(name.to_owned());
    }
    if name.to_lowercase().starts_with(&format!("{namespace}:")) {
        return Err(MemoryCliError::NoId(name.to_owned(), namespace.to_owned()));
    }
    Ok(StructuredId::new(namespace, namespace, name, None).map_or_else(|_| name.to_owned(), |id| id.to_string()))
}

pub(super) fn recall(args: &RecallArgs, output: &mut Output) -> Result<Exit, CliError> {
    let kind = if args.kind == "all" { None } else { Some(kind(&args.kind)?) };
    let mut criteria = Map::new();
    for text in &args.criteria {
        let (key, value) = pair(kind, text)?;
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
            at.refuse_two()?;
            if let Some(name) = at.shared_despite()? {
                return Err(MemoryCliError::PurgeOfShared(name).into());
            }
            let request = PurgeRequest {
                ids: Some(ids.clone()).filter(|ids| !ids.is_empty()),
                user_id: user.as_deref().map(|user| id_of(user, "user")).transpose()?,
                deleted_before: deleted_before.clone(),
                all: all.then_some(true),
            };
            let purged = block_on(purge(at, json!(request), output));
            output.progress("");
            let purged = purged?;
            output.show(&json!({"purged": purged}), |out| out.line(&format!("{purged} memories removed for good")));
            let unknown = (BTreeSet::from_iter(ids).len() as u64).saturating_sub(purged);
            if unknown == 0 {
                return Ok(Exit::Success);
            }
            let which = match &ids[..] {
                [id] => format!("`{id}` is"),
                _ => format!("{unknown} of these ids {}", if unknown == 1 { "is" } else { "are" }),
            };
            output.error(&format!("{which} no memory of the tenant: mistyped, another tenant's, or removed before"));
            Ok(Exit::Failure)
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
    File(OutputFile),
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
            Some(file) => ExportTo::File(OutputFile::begin(file, Some(0o600)).map_err(failed)?),
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
