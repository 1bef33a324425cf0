//! Records on this machine until the server has them: a journal for each start of a daemon, named after its
//! incarnation.
//!
//! What a daemon left when it ended is sent under its own incarnation, with the numbers it had, so that whatever of it
//! the server has already is stored once. A journal is removed when the server has all of it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::fault::DatabaseFault;
use super::group::{Incarnation, Numbered};
use crate::store::Durability;
use crate::store::journal::{self, Journal, JournalContent, JournalDamage, JournalError};
use crate::strict::replacement::sync_directory_of;
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
    /// Made with the first record: at a start the disk may be full until what is left is sent.
    journal: Option<Journal>,
    waiting: Vec<Numbered>,
    /// Of these, those in front that the server has by now: they are removed together.
    done: usize,
    next: i64,
    /// Bytes that may wait, with those of earlier starts.
    limit: u64,
    /// Bytes of what earlier starts left.
    left: u64,
    /// Why the last records were not kept, if they were not.
    trouble: Option<String>,
}

/// What an earlier start left.
#[derive(Debug)]
pub struct LeftSpool {
    pub writer: Incarnation,
    pub records: Vec<Numbered>,
    /// How many of them the server has by now.
    done: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// How long the first of them had waited when it was read, as far as it and its file say.
    pub waited: Duration,
    /// From which byte on records cannot be read that may have been acknowledged.
    pub damaged_at: Option<u64>,
    /// Where its last records begin if they were not written whole, or are damaged.
    torn_at: Option<u64>,
    /// When it was written last.
    written: SystemTime,
    path: PathBuf,
}

impl Spool {
    /// Begins one in a directory that nobody else uses. Returns what earlier ones left there.
    pub fn open(directory: &Path, limit: u64) -> Result<(Self, Vec<LeftSpool>), SpoolError> {
        let left = left_in(directory)?;
        left.iter().for_each(LeftSpool::say_damage);
        let writer = Incarnation::random()?;
        let spool = Self {
            directory: directory.to_owned(),
            writer,
            path: directory.join(format!("{PREFIX}{}{SUFFIX}", writer.to_hex())),
            journal: None,
            waiting: Vec::new(),
            done: 0,
            next: 1,
            limit,
            left: left.iter().map(|left| left.bytes).sum(),
            trouble: None,
        };
        Ok((spool, left))
    }

    pub fn writer(&self) -> Incarnation {
        self.writer
    }

    /// Bytes that wait, with those of earlier starts.
    pub fn bytes(&self) -> u64 {
        self.left + self.journal.as_ref().map_or(0, Journal::length)
    }

    /// So many bytes of what earlier starts left are at the server.
    pub fn sent_left(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Why no record is kept now, if so.
    pub fn refusal(&self) -> Option<String> {
        self.fullness().map(|full| full.to_string()).or_else(|| self.trouble.clone())
    }

    fn fullness(&self) -> Option<SpoolError> {
        let bytes = self.bytes();
        (bytes >= self.limit).then_some(SpoolError::Full(bytes))
    }

    /// What the server does not have, as far as is known.
    pub fn waiting(&self) -> &[Numbered] {
        &self.waiting[self.done..]
    }

    /// Takes records, which survive the end of the daemon from then on. Returns the number of the first.
    ///
    /// # Errors
    /// If none of them is kept.
    pub fn put(&mut self, records: Vec<Execution>) -> Result<i64, SpoolError> {
        if let Some(full) = self.fullness() {
            return Err(full);
        }
        let first = self.next;
        if !records.is_empty() {
            let kept = self.append(first, &records);
            self.noted(kept)?;
        }
        self.next += records.len() as i64;
        self.waiting.extend((first..).zip(records));
        Ok(first)
    }

    fn append(&mut self, first: i64, records: &[Execution]) -> Result<(), SpoolError> {
        let appended = self.journal()?.append(first, records);
        appended.map_err(|source| failed(&self.path, source))
    }

    fn journal(&mut self) -> Result<&mut Journal, SpoolError> {
        match &mut self.journal {
            Some(journal) => Ok(journal),
            none => Ok(none.insert(begin(&self.path)?)),
        }
    }

    /// After a failure: can records be kept again? Who is refused may not come back to find out.
    pub fn prove(&mut self) {
        if self.trouble.is_some() {
            let path = self.path.clone();
            let proved = self.journal().and_then(|journal| {
                let proved = journal.prove().and_then(|()| journal.flush());
                proved.map_err(|source| failed(&path, source))
            });
            // It is the trouble.
            let _ = self.noted(proved);
        }
    }

    /// What was put survives the loss of power when this returns.
    pub fn flush(&mut self) -> Result<(), SpoolError> {
        let flushed = self.journal.as_mut().map_or(Ok(()), Journal::flush);
        self.noted(flushed.map_err(|source| failed(&self.path, source)))
    }

    /// Takes note of whether records can be kept.
    fn noted(&mut self, kept: Result<(), SpoolError>) -> Result<(), SpoolError> {
        self.trouble = kept.as_ref().err().map(ToString::to_string);
        kept
    }

    /// The server has the first `count` of those that wait.
    pub fn done(&mut self, count: usize) {
        self.done += count;
        if 2 * self.done >= self.waiting.len() {
            self.waiting.drain(..self.done);
            self.done = 0;
        }
        if self.waiting.is_empty()
            && let Some(journal) = &mut self.journal
        {
            journal.rewind();
        }
    }

    /// Gives up all that waits, which nobody was told of. The numbers are not used again.
    pub fn give_up(&mut self) {
        self.done(self.waiting().len());
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
        Self::of(writer, path)
    }

    fn of(writer: Incarnation, path: &Path) -> Result<Self, SpoolError> {
        // One that is not there is no empty one here.
        let looked = fs::metadata(path).and_then(|file| Ok((file.modified()?, file)));
        let (written, file) = looked.map_err(|source| failed(path, source))?;
        let read = journal::peek_content(path);
        let JournalContent { records, length: bytes, damage, torn_at } =
            read.map_err(|source| SpoolError::Journal { path: path.to_owned(), source })?;
        let damaged_at = damage.map(|damage: JournalDamage| damage.offset);
        let began = began(records.first(), file.created().unwrap_or(written), written);
        let waited = SystemTime::now().duration_since(began).unwrap_or_default();
        Ok(Self { writer, records, done: 0, bytes, waited, damaged_at, torn_at, written, path: path.to_owned() })
    }

    /// What the server does not have, as far as is known.
    pub fn waiting(&self) -> &[Numbered] {
        &self.records[self.done..]
    }

    /// The server has the first `count` of those that wait.
    pub fn done(&mut self, count: usize) {
        self.done += count;
    }

    /// Keeps a record of it that the server refuses beside it, with the reason, unless an earlier try did. Is it new
    /// there?
    pub fn put_aside(&self, record: &Numbered, why: &DatabaseFault) -> Result<bool, SpoolError> {
        let directory = self.path.parent().unwrap_or_else(|| Path::new(""));
        let path = directory.join(REFUSED);
        let lines = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|source| failed(&path, source))?,
        };
        let begin = format!("{{\"incarnation\":\"{}\",\"number\":{},", self.writer.to_hex(), record.0);
        // A line without its end was cut off by a loss of power, and is no record.
        if lines.split_inclusive('\n').any(|line| line.starts_with(&begin) && line.ends_with('\n')) {
            return Ok(false);
        }
        put_aside(directory, self.writer, record, why).map(|()| true)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The server has all of it that can be read. What cannot be is kept for people to look at.
    pub fn remove(self) -> Result<(), SpoolError> {
        if self.damaged_at.is_none() && self.torn_at.is_none() {
            return fs::remove_file(&self.path).map_err(|source| failed(&self.path, source));
        }
        let kept = journal::damaged_name(&self.path);
        fs::rename(&self.path, &kept).map_err(|source| failed(&self.path, source))?;
        tracing::warn!(file = %self.path.display(), kept = %kept.display(), "a spool is sent but for what is damaged");
        Ok(())
    }

    fn say_damage(&self) {
        let (file, records) = (self.path.display(), self.records.len());
        match (self.damaged_at, self.torn_at) {
            (Some(offset), _) => tracing::error!(
                %file,
                offset,
                records,
                "the spool is damaged from this byte on, and records that were acknowledged may be lost; those that \
                 can be read are sent, and the file is kept as `*.damaged`: look for the cause, and send another copy \
                 of it by `almanacd spool forward`, if there is one"
            ),
            (None, Some(offset)) => tracing::warn!(
                %file,
                offset,
                records,
                "the last records of the spool are not whole: a write that was cut short, of which nobody was told, or \
                 damage; the file is kept as `*.damaged`"
            ),
            (None, None) => {}
        }
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

/// Makes a journal. Of one that cannot be made nothing is left, which would take room, and look like a spool.
fn begin(path: &Path) -> Result<Journal, SpoolError> {
    // It is flushed when somebody is told, not with each record.
    let made = Journal::open(path, Durability::Crash);
    if made.is_err() {
        let _ = fs::remove_file(path);
    }
    made.map(|(journal, _)| journal).map_err(|source| SpoolError::Journal { path: path.to_owned(), source })
}

fn failed(path: &Path, source: io::Error) -> SpoolError {
    SpoolError::Io { path: path.to_owned(), source }
}

fn put_aside(directory: &Path, writer: Incarnation, record: &Numbered, why: &DatabaseFault) -> Result<(), SpoolError> {
    let path = directory.join(REFUSED);
    let line =
        RefusedRecord { incarnation: writer.to_hex(), number: record.0, reason: why.to_string(), record: &record.1 };
    let append = || {
        let mut file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(&path)?;
        let end = file.metadata()?.len();
        let mut last = *b"\n";
        file.read_exact_at(&mut last[..end.min(1) as usize], end.saturating_sub(1))?;
        let break_off = if last == *b"\n" { "" } else { "\n" };
        let line = format!("{break_off}{}\n", serde_json::to_string(&line)?);
        let mut written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        if written.is_ok() && end == 0 {
            written = sync_directory_of(&path);
        }
        if written.is_err() {
            // Part of a line would be taken for the record, and spoil the next.
            let _ = file.set_len(end);
        }
        written
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
        found.push(LeftSpool::of(writer, &path)?);
    }
    found.sort_by(|a, b| a.written.cmp(&b.written).then_with(|| a.path.cmp(&b.path)));
    Ok(found)
}

/// Since when the first record of a file waits. Its stamp is its caller's, who may tell of calls long ago, so it counts
/// only between the moments that the file was made and written last.
fn began(first: Option<&Numbered>, made: SystemTime, written: SystemTime) -> SystemTime {
    let stamp = first.and_then(|(_, record)| u64::try_from(record.at_ms).ok()).unwrap_or_default();
    (UNIX_EPOCH + Duration::from_millis(stamp)).max(made).min(written)
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
    fn what_is_damaged_is_kept_and_costs_no_other_record() {
        let check =
            |damage: &dyn Fn(&mut Vec<u8>, &[usize]), expected: &[(i64, &str)], is_said: bool, is_kept: bool| {
                let directory = TempDir::new().unwrap();
                let (mut spool, _) = Spool::open(directory.path(), u64::MAX).unwrap();
                let mut ends = Vec::new();
                for tool in ["a", "b", "c"] {
                    spool.put(vec![record(tool)]).unwrap();
                    ends.push(spool.bytes() as usize);
                }
                let path = spool.path.clone();
                drop(spool);
                let mut bytes = fs::read(&path).unwrap();
                damage(&mut bytes, &ends);
                fs::write(&path, &bytes).unwrap();
                assert_eq!(left(&directory), [named(expected)]);
                let left_spool = LeftSpool::read(&path).unwrap();
                assert_eq!(left_spool.damaged_at.is_some(), is_said, "{:?}", left_spool.damaged_at);
                left_spool.remove().unwrap();
                assert!(left(&directory).is_empty());
                let kept = fs::read(path.with_extension("journal.damaged")).ok();
                assert_eq!(kept, is_kept.then_some(bytes));
            };
        check(&|_, _| {}, &[(1, "a"), (2, "b"), (3, "c")], false, false);
        check(&|bytes, ends| bytes[ends[1]] ^= 1, &[(1, "a"), (3, "c")], true, true);
        check(&|bytes, ends| bytes[ends[0]] ^= 1, &[(2, "b"), (3, "c")], true, true);
        check(&|bytes, ends| bytes.truncate(ends[1] + 3), &[(1, "a")], true, true);
        // As a write that was cut short, too.
        check(&|bytes, ends| bytes[ends[2]] ^= 1, &[(1, "a"), (2, "b")], false, true);
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
    fn what_is_sent_waits_no_more() {
        let directory = TempDir::new().unwrap();
        let (mut spool, _) = Spool::open(directory.path(), u64::MAX).unwrap();
        spool.put(vec![record("a"); 10]).unwrap();
        for sent in [1, 2, 4, 2] {
            let (first, waiting) = (spool.waiting()[0].0, spool.waiting().len());
            spool.done(sent);
            assert_eq!((spool.waiting()[0].0, spool.waiting().len()), (first + sent as i64, waiting - sent));
        }
        assert_eq!(spool.put(vec![record("b")]).unwrap(), 11);
        spool.done(2);
        assert_eq!((spool.waiting().len(), spool.bytes()), (0, 0));
    }

    #[test]
    fn what_could_not_be_kept_is_no_trouble_for_ever() {
        let directory = TempDir::new().unwrap();
        let (mut spool, _) = Spool::open(directory.path(), u64::MAX).unwrap();
        spool.put(vec![record("a")]).unwrap();
        spool.journal.as_mut().unwrap().fail_next();
        spool.put(vec![record("b")]).unwrap_err();
        assert!(spool.refusal().is_some());
        spool.prove();
        assert_eq!((spool.refusal(), left(&directory)), (None, vec![named(&[(1, "a")])]));
        // Nor is a file that could not be made.
        let gone = directory.path().join("gone");
        let (mut other, _) = Spool::open(directory.path(), u64::MAX).unwrap();
        other.path = gone.join("spool-x.journal");
        other.put(vec![record("a")]).unwrap_err();
        other.prove();
        assert!(other.refusal().unwrap().contains("gone/spool-x.journal"), "{:?}", other.refusal());
        fs::create_dir(gone).unwrap();
        other.prove();
        assert_eq!(other.refusal(), None);
    }

    #[test]
    fn it_is_bounded() {
        let directory = TempDir::new().unwrap();
        let (mut spool, _) = Spool::open(directory.path(), 100).unwrap();
        let taken = (0..100).take_while(|_| spool.put(vec![record("a")]).is_ok()).count();
        assert!((1..10).contains(&taken), "{taken}");
        assert!(matches!(spool.put(vec![record("a")]), Err(SpoolError::Full(_))));
        assert_eq!(spool.waiting().len(), taken);
        assert!(spool.refusal().unwrap().contains("as many as it may"), "{:?}", spool.refusal());
        let bytes = spool.bytes();
        drop(spool);
        // What is left counts at the next start, until the server has it.
        let (mut next, left) = Spool::open(directory.path(), 100).unwrap();
        assert_eq!((next.bytes(), left[0].bytes, left[0].records.len()), (bytes, bytes, taken));
        assert!(matches!(next.put(vec![record("a")]), Err(SpoolError::Full(full)) if full == bytes));
        next.sent_left(bytes);
        assert_eq!((next.bytes(), next.refusal()), (0, None));
        next.put(vec![record("a")]).unwrap();
        next.done(1);
        next.put(vec![record("a")]).unwrap();
    }

    #[test]
    fn how_long_the_first_has_waited_is_known_after_a_restart() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let check = |stamp_s: i64, made: u64, written: u64, expected: u64| {
            let first = (1, Execution { at_ms: stamp_s * 1000, ..record("a") });
            assert_eq!(began(Some(&first), at(made), at(written)), at(expected), "{stamp_s} {made} {written}");
        };
        check(150, 100, 200, 150);
        // A call of long ago, one of a clock that is ahead, and a copy of a file, which is younger than what it has.
        check(-5, 100, 200, 100);
        check(900, 100, 200, 200);
        check(150, 300, 200, 200);
        assert_eq!(began(None, at(100), at(200)), at(100));
        let directory = TempDir::new().unwrap();
        let (mut spool, _) = Spool::open(directory.path(), u64::MAX).unwrap();
        spool.put(vec![record("a")]).unwrap();
        let hour = Duration::from_secs(60 * 60);
        spool.journal.as_ref().unwrap().touch(SystemTime::now() - hour);
        drop(spool);
        let waited = left_in(directory.path()).unwrap()[0].waited;
        assert!((hour..2 * hour).contains(&waited), "{waited:?}");
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

    #[test]
    fn a_line_that_was_cut_off_is_no_record() {
        let directory = TempDir::new().unwrap();
        let (mut spool, _) = Spool::open(directory.path(), u64::MAX).unwrap();
        spool.put(vec![record("a")]).unwrap();
        let [left] = <[LeftSpool; 1]>::try_from(left_in(directory.path()).unwrap()).unwrap();
        let put = || left.put_aside(&left.records[0], &DatabaseFault::Record("no".into())).unwrap();
        let (path, read) =
            (directory.path().join(REFUSED), || fs::read_to_string(directory.path().join(REFUSED)).unwrap());
        assert!(put());
        let whole = read();
        let torn = &whole[..whole.len() - 5];
        fs::write(&path, torn).unwrap();
        assert!(put());
        assert_eq!(read(), format!("{torn}\n{whole}"));
        assert!(!put(), "once is enough");
    }
}
