//! Connections for reading: a reader blocks its own thread, never the writer, and sees one state of the database
//! throughout.

use std::path::{Path, PathBuf};

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction};

use super::planned_once;
use super::queries::DamagedRow;
use crate::memory::field::micros;
use crate::store::StoreError;

/// Connections kept open for the next reader.
const MAX_IDLE: usize = 8;

/// A question that takes longer is given up: its asker has gone by then.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Steps of SQLite's machine between two looks at the clock: about a millisecond.
const STEPS: i32 = 100_000;

#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    most_time: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), most_time: MOST_TIME, idle: Mutex::default() }
    }

    /// Reads from one state of the database.
    pub(super) fn read<T>(&self, body: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let explain = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => StoreError::TooLong(self.most_time.as_secs()),
            _ => match DamagedRow::of(&error) {
                Some(DamagedRow { id, .. }) => StoreError::Damaged(id.clone()),
                None => StoreError::Unavailable(format!("{}: {error}", self.path.display())),
            },
        };
        let mut connection = self.take().map_err(explain)?;
        let answer = self.within(&mut connection, body).map_err(explain)?;
        // One that failed is not used again: it may be of a file that is gone.
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        Ok(answer)
    }

    /// Closes what is open for the next reader.
    pub(super) fn close(&self) {
        self.idle.lock().clear();
    }

    fn within<T>(
        &self,
        connection: &mut Connection,
        body: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let deadline = Instant::now() + self.most_time;
        connection.progress_handler(STEPS, Some(move || Instant::now() > deadline))?;
        let transaction = connection.transaction()?;
        let answer = body(&transaction)?;
        transaction.finish()?;
        Ok(answer)
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        if let Some(connection) = self.idle.lock().pop() {
            return Ok(connection);
        }
        let connection = Connection::open_with_flags(
            &self.path,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(Duration::from_secs(1))?;
        planned_once(&connection)?;
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
        connection.create_scalar_function("moment_us", 1, flags, |context| {
            Ok(context.get_raw(0).as_str().ok().and_then(micros))
        })?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_takes_too_long_is_given_up_and_harms_no_other() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("x.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        let readers = Readers { most_time: Duration::ZERO, ..Readers::of(&path) };
        let count = |to: i64| {
            let sql = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1)
                       SELECT count(*) FROM n";
            readers.read(|transaction| transaction.query_row(sql, [to], |row| row.get::<_, i64>(0)))
        };
        assert_eq!(count(i64::MAX), Err(StoreError::TooLong(0)));
        assert_eq!(count(10), Ok(10), "what takes no millisecond is not looked at");
    }
}
