//! Records on this machine until the server has them: a journal for each start of a daemon, named after its
//! incarnation.
//!
//! What a daemon left when it ended is sent under its own incarnation, with the numbers it had, so that whatever of it
//! the server has already is stored once. A journal is removed when the server has all of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::fault::DatabaseFault;
use super::group::{Incarnation, Numbered};
use crate::store::Durability;
use crate::store::journal::{self, Journal, JournalError};
use crate::timing::Execution;

/// How the files are called.
const PREFIX: &str = "spool-";
const SUFFIX: &str = ".journal";

/// Where records stand that the server refuses.
const REFUSED: &str = "spool.refused";

/// Records cannot be kept on this machine.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error("{}: {source}", path.display())]
    Journal { path: PathBuf, source: JournalError },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the spool has {0} bytes, as many as it may; the database has to come back first")]
    Full(u64),
    #[error("the system has no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    #[error("{}: its name is not `{PREFIX}….journal`, which says whose records it has; give it the one it had",
        .0.display())]
    Nameless(PathBuf),
}

/// The records of this start.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    writer: Incarnation,
    path: PathBuf,
    journal: Journal,
    waiting: Vec<Numbered>,
    next: i64,
    /// Bytes it may have.
    limit: u64,
}

/// What an earlier start left.
#[derive(Debug)]
pub struct LeftSpool {
    pub writer: Incarnation,
    pub records: Vec<Numbered>,
    path: PathBuf,
}

impl Spool {
    /// Begins one in a directory that nobody else uses. Returns what earlier ones left there.
    pub fn open(directory: &Path, limit: u64) -> Result<(Self, Vec<LeftSpool>), SpoolError> {
        let left = left_in(directory)?;
        let writer = Incarnation::random()?;
        let path = directory.join(format!("{PREFIX}{}{SUFFIX}", writer.to_hex()));
        // It is flushed when somebody is told, not with each record.
        let (journal, _) = Journal::open(&path, Durability::Crash)
            .map_err(|source| SpoolError::Journal { path: path.clone(), source })?;
        let spool =
            Self { directory: directory.to_owned(), writer, path, journal, waiting: Vec::new(), next: 1, limit };
        Ok((spool, left))
    }

    pub fn writer(&self) -> Incarnation {
        self.writer
    }

    /// Bytes of its journal.
    pub fn length(&self) -> u64 {
        self.journal.length()
    }

    /// What the server does not have, as far as is known.
    pub fn waiting(&self) -> &[Numbered] {
        &self.waiting
    }

    /// Takes records, which survive the end of the daemon from then on. Returns the number of the first.
    ///
    /// # Errors
    /// If none of them is kept.
    pub fn put(&mut self, records: Vec<Execution>) -> Result<i64, SpoolError> {
        if self.journal.length() >= self.limit {
            return Err(SpoolError::Full(self.journal.length()));
        }
        let first = self.next;
        if !records.is_empty() {
            self.journal.append(first, &records).map_err(|source| failed(&self.path, source))?;
        }
        self.next += records.len() as i64;
        self.waiting.extend((first..).zip(records));
        Ok(first)
    }

    /// What was put survives the loss of power when this returns.
    pub fn flush(&mut self) -> Result<(), SpoolError> {
        self.journal.flush().map_err(|source| failed(&self.path, source))
    }

    /// The server has the first `count` of those that wait.
    pub fn done(&mut self, count: usize) {
        self.waiting.drain(..count);
        if self.waiting.is_empty() {
            self.journal.rewind();
        }
    }

    /// Gives up all that waits, which nobody was told of. The numbers are not used again.
    pub fn give_up(&mut self) {
        self.done(self.waiting.len());
    }

    /// Keeps a record that the server refuses where people find it, with the reason.
    pub fn put_aside(&self, writer: Incarnation, record: &Numbered, why: &DatabaseFault) -> Result<(), SpoolError> {
        put_aside(&self.directory, writer, record, why)
    }
}

impl Drop for Spool {
    /// One that has nothing leaves no file.
    fn drop(&mut self) {
        if self.waiting.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl LeftSpool {
    /// One whose daemon does not start again.
    ///
    /// # Errors
    /// Also if its name does not say whose records it has.
    pub fn read(path: &Path) -> Result<Self, SpoolError> {
        let Some(writer) = writer_of(path) else { return Err(SpoolError::Nameless(path.to_owned())) };
        // One that is not there is no empty one here.
        fs::metadata(path).map_err(|source| failed(path, source))?;
        Self::of(writer, path)
    }

    fn of(writer: Incarnation, path: &Path) -> Result<Self, SpoolError> {
        let records = journal::peek(path).map_err(|source| SpoolError::Journal { path: path.to_owned(), source })?;
        Ok(Self { writer, records, path: path.to_owned() })
    }

    /// Keeps a record of it that the server refuses beside it, with the reason, unless an earlier try did.
    pub fn put_aside(&self, record: &Numbered, why: &DatabaseFault) -> Result<(), SpoolError> {
        let directory = self.path.parent().unwrap_or_else(|| Path::new(""));
        let path = directory.join(REFUSED);
        let lines = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|source| failed(&path, source))?,
        };
        let begin = format!("{{\"incarnation\":\"{}\",\"number\":{},", self.writer.to_hex(), record.0);
        if lines.lines().any(|line| line.starts_with(&begin)) {
            return Ok(());
        }
        put_aside(directory, self.writer, record, why)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The server has all of it.
    pub fn remove(self) -> Result<(), SpoolError> {
        fs::remove_file(&self.path).map_err(|source| failed(&self.path, source))
    }
}

/// A line of the file of those that were refused.
#[derive(Serialize)]
struct RefusedRecord<'r> {
    incarnation: String,
    number: i64,
    reason: String,
    record: &'r Execution,
}

fn failed(path: &Path, source: io::Error) -> SpoolError {
    SpoolError::Io { path: path.to_owned(), source }
}

fn put_aside(directory: &Path, writer: Incarnation, record: &Numbered, why: &DatabaseFault) -> Result<(), SpoolError> {
    let path = directory.join(REFUSED);
    let line =
        RefusedRecord { incarnation: writer.to_hex(), number: record.0, reason: why.to_string(), record: &record.1 };
    let append = || {
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        file.write_all(format!("{}\n", serde_json::to_string(&line)?).as_bytes())?;
        file.sync_data()
    };
    append().map_err(|source| failed(&path, source))
}

/// Whose records a spool of this name has.
fn writer_of(path: &Path) -> Option<Incarnation> {
    let name = path.file_name()?.to_str()?;
    Incarnation::from_hex(name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?)
}

/// What earlier starts left, in the order in which they were last written.
pub fn left_in(directory: &Path) -> Result<Vec<LeftSpool>, SpoolError> {
    let unreadable = |source| failed(directory, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(writer) = writer_of(&path) else { continue };
        let written = File::open(&path).and_then(|file| file.metadata()?.modified());
        let written = written.map_err(|source| failed(&path, source))?;
        found.push((written, LeftSpool::of(writer, &path)?));
    }
    found.sort_by(|(one, a), (other, b)| one.cmp(other).then_with(|| a.path.cmp(&b.path)));
    Ok(found.into_iter().map(|(_, left)| left).collect())
}

/// How many records wait in a directory for a database.
pub fn waiting_in(directory: &Path) -> Result<usize, SpoolError> {
    Ok(left_in(directory)?.iter().map(|left| left.records.len()).sum())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::store::suite::records::execution;

    fn record(tool: &str) -> Execution {
        execution(tool, None, 1, Some("k"))
    }

    fn left(directory: &TempDir) -> Vec<Vec<(i64, String)>> {
        let all = left_in(directory.path()).unwrap().into_iter();
        all.map(|left| left.records.into_iter().map(|(number, record)| (number, record.tool)).collect()).collect()
    }

    fn named(records: &[(i64, &str)]) -> Vec<(i64, String)> {
        records.iter().map(|(number, tool)| (*number, (*tool).to_owned())).collect()
    }

    #[test]
    fn what_waits_is_there_for_the_next() {
        let directory = TempDir::new().unwrap();
        let (mut spool, before) = Spool::open(directory.path(), u64::MAX).unwrap();
        assert!(before.is_empty());
        assert_eq!(spool.put(vec![record("a"), record("b")]).unwrap(), 1);
        assert_eq!(left(&directory), [named(&[(1, "a"), (2, "b")])]);
        spool.done(2);
        assert_eq!(left(&directory), [[]], "the server has them");
        assert_eq!(spool.put(vec![record("c")]).unwrap(), 3, "numbers rise all the time");
        assert_eq!(spool.put(vec![record("d")]).unwrap(), 4);
        spool.done(1);
        spool.flush().unwrap();
        let writer = spool.writer();
        drop(spool);
        let (other, left_before) = Spool::open(directory.path(), u64::MAX).unwrap();
        let [left_spool] = <[LeftSpool; 1]>::try_from(left_before).unwrap();
        assert_eq!(left_spool.writer, writer);
        assert_ne!(other.writer(), writer);
        assert_eq!(left_spool.records.last(), Some(&(4, record("d"))));
        left_spool.remove().unwrap();
        drop(other);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left of what nobody needs");
    }

    #[test]
    fn what_is_given_up_is_not_sent_later() {
        let directory = TempDir::new().unwrap();
        let (mut spool, _) = Spool::open(directory.path(), u64::MAX).unwrap();
        spool.put(vec![record("a"), record("b")]).unwrap();
        spool.give_up();
        assert_eq!((left(&directory), spool.waiting().len()), (vec![Vec::new()], 0));
        assert_eq!(spool.put(vec![record("c")]).unwrap(), 3, "the first try may come late");
        assert_eq!(left(&directory), [named(&[(3, "c")])]);
    }

    #[test]
    fn it_is_bounded() {
        let directory = TempDir::new().unwrap();
        let (mut spool, _) = Spool::open(directory.path(), 100).unwrap();
        let taken = (0..100).take_while(|_| spool.put(vec![record("a")]).is_ok()).count();
        assert!((1..10).contains(&taken), "{taken}");
        assert!(matches!(spool.put(vec![record("a")]), Err(SpoolError::Full(_))));
        assert_eq!(spool.waiting().len(), taken);
        spool.done(taken);
        spool.put(vec![record("a")]).unwrap();
    }

    #[test]
    fn what_is_refused_is_found_by_people() {
        let directory = TempDir::new().unwrap();
        let (spool, _) = Spool::open(directory.path(), 100).unwrap();
        for number in [3, 4] {
            spool.put_aside(spool.writer(), &(number, record("a")), &DatabaseFault::Record("no".into())).unwrap();
        }
        let text = fs::read_to_string(directory.path().join(REFUSED)).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[1]["number"], &lines[1]["record"]["tool"]), (&4.into(), &"a".into()));
        assert_eq!(lines[0]["reason"], "the server refuses a record: no");
    }
}
