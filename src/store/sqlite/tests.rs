use std::time::Duration;
use std::{fs, thread};

use rusqlite::StatementStatus;
use tempfile::TempDir;

use super::*;
use crate::store::notes::TurnNote;
use crate::store::suite::records::{append, execution};
use crate::store::suite::{Site, keeps_the_contract};

fn start(options: Options) -> Sqlite {
    Sqlite::start(options, Box::new(|_, _| ())).unwrap()
}

impl Site for TempDir {
    fn start(&self) -> Box<dyn Store> {
        Box::new(start(recent(&Options::file(file_in(self.path())))))
    }
}

fn site() -> Box<dyn Site> {
    Box::new(TempDir::new().unwrap())
}

keeps_the_contract!(site);

fn recent(options: &Options) -> Options {
    let settings = Settings { retention: Duration::from_secs(100 * 365 * 24 * 60 * 60), ..options.settings.clone() };
    Options { settings, ..options.clone() }
}

#[test]
fn a_plan_is_made_once_for_all_values() {
    let connection = Connection::open_in_memory().unwrap();
    planned_once(&connection).unwrap();
    connection.execute_batch("CREATE TABLE t (tenant, value); CREATE INDEX i ON t (tenant, value)").unwrap();
    let mut statement = connection.prepare("SELECT max(value) FROM t WHERE tenant = ?1").unwrap();
    for tenant in [1, 2, 0, 1] {
        statement.query_row([tenant], |_| Ok(())).unwrap();
        statement.clear_bindings();
    }
    assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
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
    // Something was tried and failed before, as a start's own tidying may.
    let turn = TurnNote { tenant: "t".into(), session: "s".into(), number: 0, state: "{}".into(), kept: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let noted = runtime.block_on(store.note(vec![Note::Turn(turn)]).unwrap().durable());
    assert!(matches!(noted, Err(StoreError::Unavailable(_))), "{noted:?}");
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
        assert_eq!(history.transitions.len(), 4);
        assert_eq!(append(&store, batch.clone()).unwrap().samples, [None, Some(3)], "told long ago");
    }
}

#[test]
fn what_was_noted_is_there_when_leave_is_taken() {
    let directory = TempDir::new().unwrap();
    let options = Options::file(file_in(directory.path()));
    let store = start(options.clone());
    for number in 0..500 {
        let session = number.to_string();
        let turn = TurnNote { tenant: "t".into(), session, number: 0, state: "{}".into(), kept: None };
        store.note(vec![Note::Turn(turn)]).unwrap();
    }
    assert_eq!(store.trouble(), None);
    store.kept_choices("t").unwrap();
    store.take_leave();
    assert!(!directory.path().join("almanac.db-wal").exists(), "the file alone is all of it");
    let there = Connection::open(&options.path).unwrap();
    let noted = there.query_row("SELECT count(*) FROM turns", [], |row| row.get(0));
    assert_eq!(noted, Ok(500), "before the store is dropped");
    assert!(matches!(store.note(Vec::new()), Err(StoreError::Closed)));
    store.take_leave();
}

#[test]
fn what_cannot_be_looked_at_is_not_missing() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("file"), "").unwrap();
    std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
    let check = |name: &str, expected: Option<bool>| assert_eq!(is_there(&at(name)).ok(), expected, "{name}");
    check("file", Some(true));
    check("nothing", Some(false));
    check("file/almanac.db", Some(false));
    check(".", Some(false));
    // Also for root, whom no permission keeps from looking.
    check("loop/almanac.db", None);
}

#[test]
fn old_records_go_and_their_count_stays() {
    let directory = TempDir::new().unwrap();
    let path = file_in(directory.path());
    let options = Options::file(&path);
    let day = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
    append(&start(options.clone()), vec![execution("a", None, 1, Some("k"))]).unwrap();
    ageing::let_pass(&path, day(1));
    append(&start(options.clone()), vec![Execution { at_ms: i64::MAX / 2, ..execution("b", None, 1, None) }]).unwrap();
    let left = || -> Vec<String> {
        // Whoever writes looks for what is old before anything else is done.
        append(&start(options.clone()), Vec::new()).unwrap();
        let history = start(options.clone()).replay(ReplayLimits::default()).unwrap();
        assert_eq!(history.counts.len(), 2);
        history.executions.into_iter().map(|row| row.tool).collect()
    };
    assert_eq!(left(), ["a", "b"], "however old their stamps say that they are, they came just now");
    ageing::let_pass(&path, day(181));
    assert_eq!(left(), ["a", "b"]);
    ageing::let_pass(&path, day(1));
    let by_command = Options { is_pruned: false, ..options.clone() };
    append(&start(by_command), Vec::new()).unwrap();
    let kept = Connection::open(&path).unwrap().query_row("SELECT count(*) FROM executions", [], |row| row.get(0));
    assert_eq!(kept, Ok(2), "a command removes nothing");
    assert_eq!(left(), ["b"]);
    ageing::let_pass(&path, day(1));
    assert_eq!(left(), [""; 0]);
}

#[test]
fn more_old_records_than_are_removed_at_once_go_too() {
    let directory = TempDir::new().unwrap();
    let options = Options::file(file_in(directory.path()));
    let store = start(recent(&options));
    append(&store, (0..6000).map(|i| execution("a", None, i, None)).collect()).unwrap();
    drop(store);
    ageing::let_pass(&file_in(directory.path()), Duration::from_secs(184 * 24 * 60 * 60));
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
fn a_database_that_is_full_is_told_until_it_is_written_although_the_journal_takes_records() {
    let directory = TempDir::new().unwrap();
    let options = recent(&Options { max_pages: 400, ..Options::file(file_in(directory.path())) });
    let store = start(options.clone());
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let wait = |is_told: bool| {
        while store.trouble().is_some() != is_told {
            assert!(std::time::Instant::now() < deadline, "{:?}", store.trouble());
            thread::yield_now();
        }
    };
    let batch = || (0..50).map(|i| execution(&"long".repeat(10), None, i, None)).collect();
    while store.trouble().is_none() {
        append(&store, batch()).unwrap();
        assert!(std::time::Instant::now() < deadline, "the limit is never met");
    }
    let told = store.trouble().unwrap();
    assert!(told.contains("full") && told.ends_with("wait in the journal, as long as it has room"), "{told}");
    for _ in 0..20 {
        append(&store, batch()).unwrap();
        assert_eq!((store.trouble().as_ref(), store.takes_records()), (Some(&told), true));
    }
    assert!(!store.replay(ReplayLimits::default()).unwrap().executions.is_empty(), "what there is can be read");
    assert_eq!(store.unreadable(), None);
    // What else is wrong stands before it.
    let away = options.path.with_extension("away");
    fs::rename(&options.path, &away).unwrap();
    while append(&store, vec![execution("a", None, 1, None)]).is_ok() {
        assert!(std::time::Instant::now() < deadline, "a database that was moved away is written to");
    }
    assert!(store.trouble().unwrap().contains("removed or replaced"), "{:?}", store.trouble());
    fs::rename(&away, &options.path).unwrap();
    let make_room = || {
        let other = Connection::open(&options.path).unwrap();
        other.busy_timeout(Duration::from_secs(30)).unwrap();
        other.execute("DELETE FROM executions", []).unwrap();
    };
    // There is room again, and records come without a pause.
    make_room();
    while store.trouble().is_some() {
        append(&store, vec![execution("a", None, 1, None)]).unwrap();
        assert!(std::time::Instant::now() < deadline, "{:?}", store.trouble());
    }
    assert!(store.takes_records());
    // Or nobody comes.
    while store.trouble().is_none() {
        append(&store, batch()).unwrap();
        assert!(std::time::Instant::now() < deadline, "the limit is never met again");
    }
    make_room();
    wait(false);
    assert!(store.takes_records());
}

#[test]
fn what_cannot_be_opened_is_said_and_tried_again() {
    let directory = TempDir::new().unwrap();
    let path = file_in(directory.path());
    fs::write(&path, "this is no database, but long enough to be looked at as one, and found wanting.".repeat(20))
        .unwrap();
    let store = start(Options::file(&path));
    let trouble = store.trouble().unwrap();
    assert!(
        trouble.contains("not a database; it is damaged; stop the daemon, and put a backup in its place"),
        "{trouble}"
    );
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

/// Work that takes until it is released.
#[derive(Debug)]
struct Held {
    busy: std::sync::mpsc::Sender<()>,
    released: std::sync::mpsc::Receiver<()>,
}

impl writer::Task for Held {
    fn records(&self) -> usize {
        0
    }

    fn run(&mut self, _: &mut rusqlite::Transaction<'_>, _: &mut crate::store::clock::Clock) -> rusqlite::Result<()> {
        self.busy.send(()).unwrap();
        self.released.recv().unwrap();
        Ok(())
    }

    fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>) {
        outcome.unwrap();
    }
}

#[test]
fn a_full_queue_refuses_instead_of_growing() {
    let directory = TempDir::new().unwrap();
    let path = file_in(directory.path());
    let store = {
        let options = recent(&Options::file(&path));
        start(Options { settings: Settings { max_queue: 2, ..options.settings }, ..options })
    };
    // Everything else waits for it.
    let (release, released) = std::sync::mpsc::channel();
    let (busy, started) = std::sync::mpsc::channel();
    store.send(writer::task(Held { busy, released })).unwrap();
    started.recv().unwrap();
    let mut waiting = Vec::new();
    let refused = loop {
        match store.append(vec![execution("a", None, 1, None)]) {
            Ok(pending) => waiting.push(pending),
            Err(error) => break error,
        }
        assert!(waiting.len() < 10);
    };
    assert_eq!(refused, StoreError::Busy(2));
    assert_eq!(store.queued(), 3, "the queue is full, and one is worked on");
    release.send(()).unwrap();
    let outcomes: Vec<_> = waiting.into_iter().map(Pending::durable_blocking).collect();
    assert!(outcomes.iter().any(Result::is_ok), "{outcomes:?}");
}
