//! The store on SQLite: a file in the state directory, in WAL mode.

pub mod backup;
mod memories;
mod pages;
mod readers;
mod search;
mod shelf;
mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use std::{io, thread};

use arc_swap::ArcSwapOption;
use rusqlite::{Connection, OpenFlags, Row};
use tokio::sync::oneshot;

use super::memories::Memories;
use super::migrations::{MigrationError, migrate};
use super::notes::{self, NotesPending, Noting};
use super::writer::{Batch, Job, Writer};
use super::{
    Durability, Execution, History, KeyCount, Measures, Note, Outcome, Pending, ReplayLimits, SessionCall, Store,
    StoreError, fold,
};
use readers::Readers;
use shelf::Shelves;

/// How the database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The file.
    pub path: PathBuf,
    /// What an acknowledgement is worth.
    pub durability: Durability,
    /// Batches that may wait.
    pub queue: usize,
    /// How long records are kept.
    pub retention: Duration,
    /// Largest size of the file in pages of 4 KiB; 0 for no limit but the disk's.
    pub max_pages: u32,
}

impl Options {
    /// Default number of batches that may wait.
    pub const QUEUE: usize = 1024;
    /// Default time for which records are kept: half a year.
    pub const RETENTION: Duration = Duration::from_secs(183 * 24 * 60 * 60);

    /// A file with defaults: power-safe.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: Durability::Power,
            queue: Self::QUEUE,
            retention: Self::RETENTION,
            max_pages: 0,
        }
    }
}

/// The store on SQLite. Dropping it writes what waits, then closes the file.
#[derive(Debug)]
pub struct Sqlite {
    options: Options,
    jobs: Option<SyncSender<Job>>,
    queued: Arc<AtomicUsize>,
    trouble: Arc<ArcSwapOption<String>>,
    /// Set once the database was opened, or was found not to be usable.
    opened: Arc<OnceLock<()>>,
    writer: Option<JoinHandle<()>>,
    readers: Readers,
    shelves: Shelves,
}

/// Called with the time each commit took and the number of records in it.
pub type OnCommit = Box<dyn FnMut(Duration, usize) + Send>;

impl Sqlite {
    /// Starts the writer. A database that cannot be opened is no error here: [`Store::trouble`] tells, and each later batch
    /// tries again.
    pub fn start(options: Options, on_commit: OnCommit) -> io::Result<Self> {
        let (sender, jobs) = sync_channel(options.queue);
        let (queued, trouble) = (Arc::new(AtomicUsize::new(0)), Arc::new(ArcSwapOption::empty()));
        let opened: Arc<OnceLock<()>> = Arc::default();
        let mut writer = Writer::new(options.clone(), Arc::clone(&queued), Arc::clone(&trouble), on_commit);
        let done = Arc::clone(&opened);
        // Opening flushes the disk, which need not be waited for while documents are read.
        let thread = Builder::new().name("store".into()).spawn(move || {
            writer.open();
            done.get_or_init(|| ());
            writer.run(&jobs);
        })?;
        let (readers, shelves) = (Readers::of(&options.path), Shelves::default());
        Ok(Self { options, jobs: Some(sender), queued, trouble, opened, writer: Some(thread), readers, shelves })
    }

    /// Puts a job in the queue.
    fn send(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        self.queued.fetch_add(1, Ordering::Relaxed);
        jobs.try_send(job).map_err(|error| {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => StoreError::Busy(self.options.queue),
                TrySendError::Disconnected(_) => StoreError::Closed,
            }
        })
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
            && !thread::panicking()
        {
            tracing::error!("the store's writer panicked");
        }
    }
}

impl Store for Sqlite {
    fn append(&self, batch: Vec<Execution>) -> Result<Pending, StoreError> {
        let (reply, pending) = oneshot::channel();
        self.send(Job::Batch(Batch { executions: batch, reply }))?;
        Ok(Pending(pending))
    }

    fn replay(&self, limits: ReplayLimits) -> Result<History, StoreError> {
        let read = || -> Result<History, rusqlite::Error> {
            let connection = Connection::open_with_flags(
                &self.options.path,
                OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            )?;
            Ok(History {
                executions: executions(&connection, limits)?,
                counts: counts(&connection)?,
                calls: calls(&connection, limits.of_sessions)?,
                followed: fold::read_trails(&connection)?,
                notes: notes::read_all(&connection)?,
            })
        };
        if let Some(trouble) = self.trouble() {
            return Err(StoreError::Unavailable(trouble));
        }
        read().map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    fn note(&self, notes: Vec<Note>) -> Result<NotesPending, StoreError> {
        let (noting, noted) = Noting::new(notes);
        self.send(Job::Task(Box::new(noting)))?;
        Ok(noted)
    }

    fn memories(&self) -> &dyn Memories {
        self
    }

    fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    fn trouble(&self) -> Option<String> {
        self.opened.wait();
        self.trouble.load().as_deref().cloned()
    }
}

/// Opens the file for writing, with the schema up to date.
pub(super) fn open(options: &Options) -> Result<Connection, MigrationError> {
    let mut connection = Connection::open_with_flags(
        &options.path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(Duration::from_secs(1))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    let synchronous = match options.durability {
        Durability::Power => "full",
        Durability::Crash => "normal",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // What is replaced is overwritten where that costs no write of its own, so that a purge need not look for it.
    connection.pragma_update(None, "secure_delete", "fast")?;
    if options.max_pages > 0 {
        connection.pragma_update(None, "max_page_count", options.max_pages)?;
    }
    migrate(&mut connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// The file where a state directory keeps the database.
pub fn file_in(state_dir: &Path) -> PathBuf {
    state_dir.join("almanac.db")
}

fn executions(connection: &Connection, limits: ReplayLimits) -> rusqlite::Result<Vec<Execution>> {
    // Each tool's keys are found in the index; of each the latest rows, without sorting the whole table.
    let mut select = connection.prepare(
        "WITH latest (id) AS (
            SELECT ranked.id FROM (
                SELECT id, row_number() OVER (PARTITION BY tool, mode, failed ORDER BY id DESC) AS of_key,
                           row_number() OVER (PARTITION BY tool ORDER BY id DESC) AS of_tool
                FROM executions WHERE duration_ms >= 0
            ) AS ranked
            WHERE of_key <= ?1 AND of_tool <= ?2
        )
        SELECT tenant, tool, mode, duration_ms, outcome, content_length, num_perspectives, num_branches,
               thinking_budget, context_tokens, session, at_ms
        FROM executions JOIN latest USING (id) ORDER BY id",
    )?;
    let rows = select.query_map([limits.per_key, limits.per_tool], execution)?;
    rows.collect()
}

fn execution(row: &Row<'_>) -> rusqlite::Result<Execution> {
    let outcome: String = row.get(4)?;
    Ok(Execution {
        tenant: row.get(0)?,
        tool: row.get(1)?,
        mode: row.get(2)?,
        duration_ms: u64::try_from(row.get::<_, i64>(3)?).ok(),
        // Only names that it parses are ever written.
        outcome: Outcome::parse(&outcome).unwrap_or(Outcome::Success),
        measures: Measures {
            content_length: measure(row, 5)?,
            num_perspectives: measure(row, 6)?,
            num_branches: measure(row, 7)?,
            thinking_budget: measure(row, 8)?,
            context_tokens: measure(row, 9)?,
        },
        session: row.get(10)?,
        at_ms: row.get(11)?,
        idempotency_key: None,
    })
}

fn measure(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(i64::cast_unsigned))
}

/// How many rows are looked at for one that belongs to a session.
const SPARSITY: u32 = 10;

fn calls(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<SessionCall>> {
    let mut select = connection.prepare(
        "SELECT tenant, session, tool FROM executions
         WHERE id > (SELECT coalesce(max(id), 0) FROM executions) - ?2 AND session IS NOT NULL
         ORDER BY id DESC LIMIT ?1",
    )?;
    let rows = select.query_map([limit, limit.saturating_mul(SPARSITY)], |row| {
        Ok(SessionCall { tenant: row.get(0)?, session: row.get(1)?, tool: row.get(2)? })
    })?;
    let mut calls: Vec<SessionCall> = rows.collect::<rusqlite::Result<_>>()?;
    calls.reverse();
    Ok(calls)
}

fn counts(connection: &Connection) -> rusqlite::Result<Vec<KeyCount>> {
    let mut select = connection.prepare(
        "SELECT tool, mode, failed, samples FROM execution_keys WHERE samples > 0 ORDER BY tool, mode, failed",
    )?;
    let rows = select.query_map([], |row| {
        let mode: String = row.get(1)?;
        Ok(KeyCount {
            tool: row.get(0)?,
            mode: Some(mode).filter(|mode| !mode.is_empty()),
            failed: row.get(2)?,
            samples: row.get::<_, i64>(3)?.cast_unsigned(),
        })
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::super::Stored;
    use super::super::trail::{Followed, Trail};
    use super::*;

    fn execution(tool: &str, mode: Option<&str>, duration_ms: u64, key: Option<&str>) -> Execution {
        Execution {
            tenant: "default".into(),
            tool: tool.into(),
            mode: mode.map(Into::into),
            duration_ms: Some(duration_ms),
            outcome: Outcome::Success,
            measures: Measures { content_length: Some(7), ..Measures::default() },
            session: Some("s".into()),
            at_ms: 1_700_000_000_000,
            idempotency_key: key.map(Into::into),
        }
    }

    fn start(options: Options) -> Sqlite {
        Sqlite::start(options, Box::new(|_, _| ())).unwrap()
    }

    fn append(store: &Sqlite, batch: Vec<Execution>) -> Result<Stored, StoreError> {
        store.append(batch)?.durable_blocking()
    }

    fn recent(options: &Options) -> Options {
        Options { retention: Duration::from_secs(100 * 365 * 24 * 60 * 60), ..options.clone() }
    }

    #[test]
    fn what_was_acknowledged_is_there_after_a_restart() {
        let directory = TempDir::new().unwrap();
        let options = recent(&Options::file(file_in(directory.path())));
        let batch = vec![execution("a", None, 1, Some("k1")), execution("a", Some("m"), 2, None)];
        let store = start(options.clone());
        let samples = |stored: Result<Stored, StoreError>| stored.unwrap().samples;
        assert_eq!(samples(append(&store, batch.clone())), [Some(1), Some(1)]);
        assert_eq!(samples(append(&store, batch.clone())), [None, Some(2)], "told again, and not");
        drop(store);
        let store = start(options);
        let history = store.replay(ReplayLimits::default()).unwrap();
        let without_key = |execution: &Execution| Execution { idempotency_key: None, ..execution.clone() };
        let expected = [&batch[0], &batch[1], &batch[1]].map(without_key);
        assert_eq!(history.executions, expected);
        let count = |mode: Option<&str>, samples| KeyCount {
            tool: "a".into(),
            mode: mode.map(Into::into),
            failed: false,
            samples,
        };
        assert_eq!(history.counts, [count(None, 1), count(Some("m"), 2)]);
    }

    #[test]
    fn a_start_reads_back_the_latest_of_each_key() {
        let directory = TempDir::new().unwrap();
        let options = recent(&Options::file(file_in(directory.path())));
        let rows = (0..30).map(|i| execution("a", Some(if i % 2 == 0 { "x" } else { "y" }), i, None));
        append(&start(options.clone()), rows.collect()).unwrap();
        let store = start(options);
        let durations = |limits| -> Vec<u64> {
            store.replay(limits).unwrap().executions.iter().filter_map(|execution| execution.duration_ms).collect()
        };
        assert_eq!(durations(ReplayLimits { per_key: 2, per_tool: 100, of_sessions: 9 }), [26, 27, 28, 29]);
        assert_eq!(durations(ReplayLimits { per_key: 100, per_tool: 3, of_sessions: 9 }), [27, 28, 29]);
    }

    #[test]
    fn a_call_of_unknown_duration_is_its_session_s_alone() {
        let directory = TempDir::new().unwrap();
        let options = recent(&Options::file(file_in(directory.path())));
        let store = start(options.clone());
        let untimed = Execution { duration_ms: None, ..execution("a", None, 0, Some("k")) };
        let batch = vec![execution("a", None, 5, None), untimed.clone(), execution("b", None, 6, None)];
        let stored = append(&store, batch).unwrap();
        assert_eq!(stored.samples, [Some(1), Some(1), Some(1)]);
        assert_eq!(append(&store, vec![untimed]).unwrap().samples, [None], "told again");
        drop(store);
        let limits = ReplayLimits { per_key: 1, ..ReplayLimits::default() };
        let history = start(options).replay(limits).unwrap();
        let rows: Vec<_> = history.executions.iter().map(|row| (row.tool.as_str(), row.duration_ms)).collect();
        assert_eq!(rows, [("a", Some(5)), ("b", Some(6))]);
        assert!(history.counts.iter().all(|count| count.samples == 1), "{:?}", history.counts);
        assert_eq!(history.calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(), ["a", "a", "b"]);
        assert!(history.followed.iter().any(|followed| followed.trail.before.as_deref() == Some("a")));
    }

    #[test]
    fn what_only_the_journal_has_is_there_after_the_loss_of_power() {
        let [directory, other] = std::array::from_fn(|_| TempDir::new().unwrap());
        let options = recent(&Options::file(file_in(directory.path())));
        let store = start(options.clone());
        append(&store, vec![execution("a", None, 1, Some("before"))]).unwrap();
        drop(store);
        let store = start(options.clone());
        assert_eq!(store.trouble(), None);
        // From now on the database can take nothing over.
        let holder = Connection::open(&options.path).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let batch = vec![execution("a", None, 2, Some("k")), execution("b", None, 3, None)];
        let stored = append(&store, [batch.clone(), batch.clone()].concat()).unwrap();
        assert_eq!(stored.samples, [Some(2), Some(1), None, Some(2)], "the third is the first, told again");
        // What a disk has that was flushed, and a copy that is made meanwhile.
        for file in ["almanac.db", "almanac.db-wal", "almanac.journal"] {
            fs::copy(directory.path().join(file), other.path().join(file)).unwrap();
        }
        let copied = TempDir::new().unwrap();
        backup::backup(&options.path, &file_in(copied.path())).unwrap();
        holder.execute_batch("COMMIT").unwrap();
        drop(store);
        for directory in [&directory, &other, &copied] {
            let store = start(recent(&Options::file(file_in(directory.path()))));
            let history = store.replay(ReplayLimits::default()).unwrap();
            let durations: Vec<u64> = history.executions.iter().filter_map(|row| row.duration_ms).collect();
            assert_eq!(durations, [1, 2, 3, 3], "each once");
            assert_eq!(history.counts.iter().map(|count| count.samples).collect::<Vec<_>>(), [2, 2]);
            assert_eq!(history.followed.len(), 4);
            assert_eq!(append(&store, batch.clone()).unwrap().samples, [None, Some(3)], "told long ago");
        }
    }

    #[test]
    fn what_sessions_call_next_is_counted_and_read_back() {
        let directory = TempDir::new().unwrap();
        let options = recent(&Options::file(file_in(directory.path())));
        let store = start(options.clone());
        let call = |session: Option<&str>, tool: &str, outcome| Execution {
            session: session.map(Into::into),
            outcome,
            ..execution(tool, None, 1, None)
        };
        let (good, bad) = (Outcome::Success, Outcome::Error);
        append(&store, vec![call(Some("s"), "a", good), call(Some("t"), "x", good), call(None, "y", good)]).unwrap();
        let stored = append(&store, vec![call(Some("s"), "b", bad), call(Some("s"), "a", good)]).unwrap();
        let trail = |before: Option<&str>, last: &str| Trail { before: before.map(Into::into), last: last.into() };
        let changed: Vec<&Trail> = stored.followed.iter().map(|followed| &followed.trail).collect();
        assert_eq!(changed, [&trail(None, "a"), &trail(Some("a"), "b"), &trail(None, "b")]);
        let b = stored.followed[0].followers.get("b").unwrap();
        assert_eq!((b.samples, b.successes), (1, 0));
        let other = Execution { tenant: "u".into(), ..call(Some("s"), "c", good) };
        assert!(append(&store, vec![other]).unwrap().followed.is_empty(), "another tenant's session");
        let again = append(&store, vec![call(Some("s"), "b", good)]).unwrap();
        assert_eq!(again.followed.last().unwrap().followers.get("b").unwrap().samples, 2);
        drop(store);
        let history = start(options).replay(ReplayLimits { of_sessions: 4, ..ReplayLimits::default() }).unwrap();
        let latest: Vec<Followed> = history.followed.iter().rev().take(2).rev().cloned().collect();
        assert_eq!(latest, *again.followed, "what is read back is what was handed out");
        assert_eq!(history.followed.len(), 4);
        let calls: Vec<&str> = history.calls.iter().map(|call| call.tool.as_str()).collect();
        assert_eq!(calls, ["b", "a", "c", "b"]);
    }

    #[test]
    fn old_records_go_and_their_count_stays() {
        let directory = TempDir::new().unwrap();
        let options = Options::file(file_in(directory.path()));
        let store = start(options.clone());
        append(&store, vec![execution("a", None, 1, Some("k"))]).unwrap();
        drop(store);
        let store = start(options);
        append(&store, vec![Execution { at_ms: i64::MAX / 2, ..execution("b", None, 1, None) }]).unwrap();
        drop(store);
        let store = start(Options::file(file_in(directory.path())));
        let history = store.replay(ReplayLimits::default()).unwrap();
        assert_eq!(history.executions.iter().map(|row| row.tool.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(history.counts.len(), 2);
    }

    #[test]
    fn more_old_records_than_are_removed_at_once_go_too() {
        let directory = TempDir::new().unwrap();
        let options = Options::file(file_in(directory.path()));
        let store = start(recent(&options));
        append(&store, (0..6000).map(|i| execution("a", None, i, None)).collect()).unwrap();
        drop(store);
        let _store = start(options.clone());
        let connection = Connection::open(&options.path).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while connection.query_row("SELECT count(*) FROM executions", [], |row| row.get::<_, i64>(0)).unwrap() > 0 {
            assert!(std::time::Instant::now() < deadline);
            thread::yield_now();
        }
    }

    #[test]
    fn a_full_disk_is_said_and_got_over() {
        let directory = TempDir::new().unwrap();
        let options = recent(&Options { max_pages: 40, ..Options::file(file_in(directory.path())) });
        let store = start(options.clone());
        let mut stored = 0;
        let refused = loop {
            let batch = (0..50).map(|i| execution(&format!("tool{i}{stored}"), None, i, None)).collect();
            match append(&store, batch) {
                Ok(_) => stored += 50,
                Err(error) => break error,
            }
            assert!(stored < 100_000, "the limit is never met");
        };
        assert!(matches!(&refused, StoreError::Unavailable(reason) if reason.contains("is full")), "{refused}");
        assert!(store.trouble().is_some());
        drop(store);
        let store = start(Options { max_pages: 0, ..options });
        let rows: u64 = store.replay(ReplayLimits::default()).unwrap().counts.iter().map(|count| count.samples).sum();
        assert_eq!(rows, stored, "nothing of the refused batch is there, all of the others is");
        append(&store, vec![execution("a", None, 1, None)]).unwrap();
        assert_eq!(store.trouble(), None);
    }

    #[test]
    fn what_cannot_be_opened_is_said_and_tried_again() {
        let directory = TempDir::new().unwrap();
        let path = file_in(directory.path());
        fs::write(&path, "this is no database, but long enough to be looked at as one, and found wanting.".repeat(20))
            .unwrap();
        let store = start(Options::file(&path));
        let trouble = store.trouble().unwrap();
        assert!(trouble.contains("not a database"), "{trouble}");
        assert!(matches!(append(&store, vec![execution("a", None, 1, None)]), Err(StoreError::Unavailable(_))));
        assert!(store.replay(ReplayLimits::default()).is_err());
        fs::remove_file(&path).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while append(&store, vec![execution("a", None, 1, None)]).is_err() {
            assert!(std::time::Instant::now() < deadline, "{:?}", store.trouble());
            thread::yield_now();
        }
        assert_eq!(store.trouble(), None);
    }

    #[test]
    fn files_that_are_taken_away_are_missed() {
        let directory = TempDir::new().unwrap();
        let path = file_in(directory.path());
        let store = start(recent(&Options::file(&path)));
        let until = |is_stored: bool, what: &str| {
            let deadline = std::time::Instant::now() + Duration::from_secs(30);
            while append(&store, vec![execution("a", None, 1, None)]).is_ok() != is_stored {
                assert!(std::time::Instant::now() < deadline, "{what}");
            }
        };
        until(true, "a first record");
        fs::remove_file(path.with_extension("journal")).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while !path.with_extension("journal").exists() {
            until(true, "a record into a journal that was removed");
            assert!(std::time::Instant::now() < deadline, "the journal is not made anew");
        }
        fs::rename(&path, path.with_extension("away")).unwrap();
        until(false, "a database that was moved away is written to");
        let trouble = store.trouble().unwrap();
        assert!(trouble.contains("removed or replaced") && trouble.contains("put it back"), "{trouble}");
        fs::rename(path.with_extension("away"), &path).unwrap();
        until(true, "a database that was put back is not written to");
        assert_eq!(store.trouble(), None);
    }

    #[test]
    fn a_full_queue_refuses_instead_of_growing() {
        let directory = TempDir::new().unwrap();
        let path = file_in(directory.path());
        let store = start(Options { queue: 2, ..recent(&Options::file(&path)) });
        let holder = Connection::open(&path).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        // Waits for the holder, and everything else for it.
        store.note(Vec::new()).unwrap();
        let mut waiting = Vec::new();
        let refused = loop {
            match store.append(vec![execution("a", None, 1, None)]) {
                Ok(pending) => waiting.push(pending),
                Err(error) => break error,
            }
            assert!(waiting.len() < 10);
        };
        assert_eq!(refused, StoreError::Busy(2));
        assert!(store.queued() >= 2);
        holder.execute_batch("COMMIT").unwrap();
        let outcomes: Vec<_> = waiting.into_iter().map(Pending::durable_blocking).collect();
        assert!(outcomes.iter().any(Result::is_ok), "{outcomes:?}");
    }
}
