//! The database's schema, as the steps that led to it. A step that shipped is never changed.

use rusqlite::Connection;

/// Each brings the schema from the version of its index to the next.
pub(super) const STEPS: &[&str] = &[
    include_str!("migrations/executions.sql"),
    include_str!("migrations/trails.sql"),
    include_str!("migrations/selection.sql"),
    include_str!("migrations/memories.sql"),
    include_str!("migrations/projection.sql"),
    include_str!("migrations/memory_words.sql"),
    include_str!("migrations/untimed.sql"),
    include_str!("migrations/memory_index.sql"),
    include_str!("migrations/ageing.sql"),
    include_str!("migrations/call_keys.sql"),
    include_str!("migrations/key_order.sql"),
    include_str!("migrations/predicted.sql"),
    include_str!("migrations/memory_fields.sql"),
    include_str!("migrations/kept_turns.sql"),
    include_str!("migrations/field_order.sql"),
    include_str!("migrations/origin.sql"),
];

/// The schema cannot be brought up to date.
#[derive(Debug, thiserror::Error)]
pub(super) enum MigrationError {
    #[error("the database was written by a newer almanacd (schema {found}, known up to {known}); start that one")]
    Newer { found: usize, known: usize },
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// Brings the schema up to date, all of it or nothing.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), MigrationError> {
    let transaction = connection.transaction()?;
    let found = version(&transaction)?;
    if found > STEPS.len() {
        return Err(MigrationError::Newer { found, known: STEPS.len() });
    }
    for step in &STEPS[found..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", STEPS.len() as i64)?;
    Ok(transaction.commit()?)
}

pub(super) fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).map(|version| version as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_schema_held_is_kept() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(STEPS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let row = "INSERT INTO executions (tenant, tool, failed, duration_ms, outcome, session, at_ms)
                   VALUES ('t', 'a', 0, 1, 'success', 's', 1)";
        connection.execute_batch(row).unwrap();
        migrate(&mut connection).unwrap();
        let count = |table: &str| -> i64 {
            connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count("executions"), count("trails")), (1, 0));
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(migrate(&mut connection), Err(MigrationError::Newer { found: 99, .. })));
    }
}
