//! `almanacd memory import`: lines are read and checked before any is sent, and those of before brought up to date.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::mem;
use std::path::Path;

use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid, Version};

use super::{MemoryCliError, Where};
use crate::cli::client::ClientError;
use crate::cli::memory_door::MemoryDoor;
use crate::cli::output::Output;
use crate::cli::{CliError, Exit, block_on};
use crate::engine::memory::{Archived, RecallError};
use crate::jsonrpc::canonical;
use crate::memory::Kind;
use crate::memory::field::{Moment, rfc3339};
use crate::memory::legacy::Importer;
use crate::store::memories::MemoryError;
use crate::strict::decode::decode;
use crate::strict::read::{self, Limits};
use crate::wire::problem::Code;

/// Memories that are sent at once, and their size in bytes.
const BATCH: (usize, usize) = (200, 8 << 20);

/// Longest line of a file, in bytes.
const MAX_LINE: usize = 32 << 20;

/// Faulty lines that are shown.
const SHOWN_FAULTS: usize = 50;

/// Lines that were refused, and the word after them.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct RefusedLines(usize, usize);

impl fmt::Display for RefusedLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(from, to) = self;
        if from == to { write!(formatter, "line {from} was") } else { write!(formatter, "lines {from} to {to} were") }
    }
}

/// Lines of a file, read and checked: all faults are found before anything is sent.
pub(in crate::cli) fn read_lines(file: &Path, legacy: bool) -> Result<Vec<(usize, Value)>, CliError> {
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
            Err(error) => faults.push(fault(number, format!("no JSON: column {}: {error}", error.column))),
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
        let text = canonical_text(value);
        let Some(line) = value.as_object_mut().filter(|line| !line.contains_key("id")) else { continue };
        let text = digest(&[text.as_bytes()]);
        let count = before.entry(text).or_default();
        let id = digest(&[&text, &count.to_be_bytes()]);
        *count += 1;
        line.insert("id".to_owned(), Builder::from_custom_bytes(id).into_uuid().to_string().into());
    }
}

/// The same for any order of keys, as whoever writes the file anew may not keep theirs.
fn canonical_text(value: &Value) -> String {
    canonical(&to_raw_value(value).expect("a value is JSON"))
}

/// Is it an id that a line was given here?
fn is_derived(line: &Value) -> bool {
    let id = line.get("id").and_then(Value::as_str).and_then(|id| id.parse::<Uuid>().ok());
    id.is_some_and(|id| id.get_version() == Some(Version::Custom))
}

/// The first half of a SHA-256.
fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    let whole: [u8; 32] = hash.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&whole[..16]);
    half
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

pub(super) fn import(file: &Path, legacy: bool, at: &Where, output: &mut Output) -> Result<Exit, CliError> {
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
