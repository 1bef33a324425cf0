use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::super::file_in;
use super::super::projection::read_trails;
use super::*;
use crate::timing::{Measures, Outcome};

/// A database in a directory of its own.
struct Site {
    directory: TempDir,
    database: Option<Database>,
}

impl Site {
    fn new() -> Self {
        let mut site = Self { directory: TempDir::new().unwrap(), database: None };
        site.restart();
        site
    }

    fn path(&self) -> PathBuf {
        file_in(self.directory.path())
    }

    /// Ends it as a kill does, and starts again.
    fn restart(&mut self) {
        self.database = None;
        let database = Database::open(&Options::file(self.path()), &KeptFiles::default()).unwrap();
        database.connection.busy_timeout(Duration::ZERO).unwrap();
        self.database = Some(database);
    }

    fn database(&mut self) -> &mut Database {
        self.database.as_mut().unwrap()
    }

    fn record(&mut self, executions: &[Execution]) -> Result<Vec<Option<u64>>, WriteError> {
        let batch = Batch { executions: executions.to_vec(), reply: oneshot::channel().0 };
        self.database().keep_place()?;
        Ok(self.database().record(&mut [batch])?.remove(0).unwrap().samples)
    }

    /// All that a start reads back.
    fn state(&mut self) -> String {
        self.restart();
        let connection = &self.database().connection;
        let column = |query: &str| -> Vec<String> {
            let mut select = connection.prepare(query).unwrap();
            select.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
        };
        let rows = column("SELECT concat_ws(' ', tenant, session, tool, failed) FROM executions ORDER BY id");
        let counts = column("SELECT concat_ws(' ', tool, failed, samples) FROM execution_keys");
        let keys = column("SELECT concat_ws(' ', tenant, key) FROM idempotency_keys ORDER BY tenant, key");
        format!("{rows:?}\n{counts:?}\n{keys:?}\n{:?}", read_trails(connection).unwrap())
    }
}

fn execution(tenant: u8, tool: &str, key: u8) -> Execution {
    Execution {
        tenant: format!("t{tenant}"),
        tool: tool.to_owned(),
        mode: None,
        duration_ms: Some(1),
        outcome: if key == 3 { Outcome::Error } else { Outcome::Success },
        measures: Measures::default(),
        session: (key != 2).then(|| "s".to_owned()),
        at_ms: 1,
        idempotency_key: (key > 2).then(|| format!("k{key}").into()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever happens between two records, and whatever is refused, all comes to what a quiet run gives.
    #[test]
    fn troubles_change_nothing(
        steps in prop::collection::vec((0u8..8, prop::collection::vec((0u8..2, "[a-c]", 0u8..9), 1..4)), 1..16),
    ) {
        let (mut quiet, mut site) = (Site::new(), Site::new());
        for (trouble, records) in &steps {
            let records: Vec<Execution> =
                records.iter().map(|(tenant, tool, key)| execution(*tenant, tool, *key)).collect();
            match trouble {
                0 => site.database().apply_journal().unwrap(),
                1 => site.database().tidy().unwrap(),
                2 => site.restart(),
                3 => fs::remove_file(journal_of(&site.path())).unwrap(),
                4 => {
                    // Another program holds it; the journal takes records all the same.
                    let holder = Connection::open(site.path()).unwrap();
                    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
                    prop_assert!(site.database().apply_journal().is_err());
                    let (taken, expected) = (site.record(&records), quiet.record(&records));
                    prop_assert_eq!(taken.unwrap(), expected.unwrap());
                    prop_assert!(site.database().apply_journal().is_err());
                    drop(holder);
                }
                5 | 6 => {
                    site.database().journal.fail_next();
                    prop_assert!(site.record(&[execution(0, "refused", 0)]).is_err());
                    if *trouble == 6 {
                        site.restart();
                    }
                }
                _ => {}
            }
            prop_assert_eq!(site.record(&records).unwrap(), quiet.record(&records).unwrap());
            quiet.database().tidy().unwrap();
        }
        prop_assert_eq!(site.state(), quiet.state());
    }
}

#[test]
fn a_database_made_anew_has_nothing_of_the_one_before() {
    let mut site = Site::new();
    for _ in 0..3 {
        site.record(&[execution(0, "a", 0)]).unwrap();
    }
    site.database().apply_journal().unwrap();
    site.database = None;
    fs::remove_file(site.path()).unwrap();
    site.restart();
    // As long as the first of those, so that the second would follow it.
    site.record(&[execution(0, "b", 0)]).unwrap();
    let state = site.state();
    assert!(state.starts_with("[\"t0 s b 0\"]\n"), "{state}");
}

#[test]
fn a_damaged_journal_is_kept_and_costs_no_other_record() {
    let mut site = Site::new();
    let mut ends = Vec::new();
    for tool in ["a", "b", "c"] {
        site.record(&[execution(0, tool, 0)]).unwrap();
        ends.push(site.database().journal.length() as usize);
    }
    site.database = None;
    let (path, kept) = (journal_of(&site.path()), journal::damaged_name(&journal_of(&site.path())));
    let mut bytes = fs::read(&path).unwrap();
    bytes[ends[1]] ^= 1;
    fs::write(&path, &bytes).unwrap();
    site.restart();
    assert_eq!(fs::read(&kept).unwrap(), bytes);
    site.record(&[execution(0, "d", 0)]).unwrap();
    let state = site.state();
    assert!(state.starts_with(r#"["t0 s a 0", "t0 s c 0", "t0 s d 0"]"#), "{state}");
    assert!(!journal::damaged_name(&path).ends_with(kept), "it is said once");
}

#[test]
fn a_log_that_is_gone_takes_nothing_with_it() {
    let (mut site, mut copy) = (Site::new(), Site::new());
    site.record(&[execution(0, "a", 0)]).unwrap();
    site.database().apply_journal().unwrap();
    fs::remove_file(log_of(&site.path())).unwrap();
    assert!(matches!(site.record(&[execution(0, "b", 0)]), Err(WriteError::Gone)));
    // What a kill leaves.
    copy.database = None;
    fs::copy(site.path(), copy.path()).unwrap();
    let state = copy.state();
    assert!(state.starts_with("[\"t0 s a 0\"]\n"), "{state}");
}

#[test]
fn a_log_is_emptied_once_nobody_reads_it() {
    let mut site = Site::new();
    let length = |site: &Site| fs::metadata(log_of(&site.path())).unwrap().len();
    let reader = Connection::open(site.path()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM executions").unwrap();
    let large = "INSERT INTO turns VALUES ('', 'large', hex(zeroblob(9 << 20)), 0)";
    site.database().connection.execute(large, []).unwrap();
    site.record(&[execution(0, "a", 0)]).unwrap();
    assert!(length(&site) > LONG_LOG, "an older state is read still");
    reader.execute_batch("ROLLBACK").unwrap();
    site.record(&[execution(0, "b", 0)]).unwrap();
    assert!(length(&site) > LONG_LOG, "it was tried a moment ago");
    site.database().log_tried = None;
    site.record(&[execution(0, "c", 0)]).unwrap();
    assert_eq!(length(&site), 0);
    assert!(site.state().starts_with("[\"t0 s a 0\", \"t0 s b 0\", \"t0 s c 0\"]\n"));
}

#[test]
fn a_database_that_is_gone_takes_nothing_until_it_is_back() {
    let mut site = Site::new();
    site.record(&[execution(0, "a", 0)]).unwrap();
    let away = site.path().with_extension("away");
    fs::rename(site.path(), &away).unwrap();
    assert!(matches!(site.record(&[execution(0, "b", 0)]), Err(WriteError::Gone)));
    fs::rename(&away, site.path()).unwrap();
    site.record(&[execution(0, "c", 0)]).unwrap();
    let state = site.state();
    assert!(state.starts_with("[\"t0 s a 0\", \"t0 s c 0\"]\n"), "{state}");
}

#[test]
fn old_keys_go_some_at_a_time() {
    let mut site = Site::new();
    let connection = &site.database().connection;
    let put = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?1)
               INSERT INTO memory_keys SELECT 1, x, x'', 'id', x FROM n";
    let many = i64::from(PRUNED_AT_ONCE) + 10;
    connection.execute(put, [many]).unwrap();
    connection.execute("INSERT INTO idempotency_keys VALUES ('t', 'a', 1, ''), ('t', 'b', 9, '')", []).unwrap();
    let forget = |before: i64| forget_keys(connection, before).unwrap();
    assert_eq!((forget(many - 1), forget(many - 1), forget(many - 1)), (PRUNED_AT_ONCE as usize, 8, 0));
    let left = |table: &str| -> i64 {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((left("memory_keys"), left("idempotency_keys")), (2, 0));
    for table in ["memory_keys", "idempotency_keys"] {
        let plan = format!("EXPLAIN QUERY PLAN SELECT tenant, key FROM {table} WHERE at_ms < 1 LIMIT 1");
        let plan: String = connection.query_row(&plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains(&format!("{table}_by_time")), "{plan}");
    }
}
