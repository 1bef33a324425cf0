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
    include_str!("migrations/memory_counts.sql"),
    include_str!("migrations/memory_key_order.sql"),
    include_str!("migrations/purge_order.sql"),
    include_str!("migrations/gone_rows.sql"),
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

    /// A database of the schema before the step that says this, with one tenant.
    fn before(step: &str) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let before = STEPS.iter().position(|sql| sql.contains(step)).unwrap();
        for step in &STEPS[..before] {
            connection.execute_batch(step).unwrap();
        }
        connection.pragma_update(None, "user_version", before as i64).unwrap();
        connection.execute("INSERT INTO memory_tenants (name) VALUES ('t')", []).unwrap();
        connection
    }

    #[test]
    fn versions_of_an_older_schema_are_found_in_their_tenant() {
        let mut connection = before("CREATE INDEX memory_history_by_user ON memory_history (tenant");
        let rows = r#"INSERT INTO memory_tenants (name) VALUES ('u');
            INSERT INTO memories (seq, tenant, id, kind, deleted, created_us, updated_us, version, metadata, content)
                VALUES (7, 2, 'a', 1, 0, 1, 1, 4, '{}', '');
            INSERT INTO memory_history (seq, version, updated_us, metadata, content, user_id) VALUES
                (7, 1, 1, '{"userId": "user:user:a"}', '', NULL), (7, 2, 1, '{"userId": {}}', '', 'user:user:b'),
                (7, 3, 1, 'damaged', '', NULL);"#;
        connection.execute_batch(rows).unwrap();
        migrate(&mut connection).unwrap();
        let versions: Vec<(i64, Option<String>)> =
            (connection.prepare("SELECT tenant, user_id FROM memory_history ORDER BY version").unwrap())
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
        let user = |id: &str| Some(format!("user:user:{id}"));
        assert_eq!(versions, [(2, user("a")), (2, user("b")), (2, None)]);
    }

    #[test]
    fn memories_of_an_older_schema_are_counted_as_they_come_change_and_go() {
        let mut connection = before("CREATE TABLE memory_counts");
        let put = |connection: &Connection, id: &str, kind: i64| {
            let sql =
                "INSERT INTO memories (tenant, id, kind, deleted, created_us, updated_us, version, agent_id, content,
                           metadata) VALUES (1, ?1, ?2, 0, 0, 0, 1, 'a', '', '{}')";
            connection.execute(sql, rusqlite::params![id, kind]).unwrap();
        };
        for id in ["a", "b", "c"] {
            put(&connection, id, 1);
        }
        migrate(&mut connection).unwrap();
        let check = |expected: &[(i64, i64, i64)]| {
            let sql = "SELECT kind, deleted, memories FROM memory_counts WHERE memories <> 0 ORDER BY kind, deleted";
            let counted: Vec<_> = (connection.prepare(sql).unwrap())
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            assert_eq!(counted, expected);
        };
        check(&[(1, 0, 3)]);
        put(&connection, "d", 2);
        connection.execute("UPDATE memories SET deleted = 1, version = 2 WHERE id = 'a'", []).unwrap();
        connection.execute("UPDATE memories SET version = 2 WHERE id = 'b'", []).unwrap();
        check(&[(1, 0, 2), (1, 1, 1), (2, 0, 1)]);
        connection.execute("DELETE FROM memories WHERE id IN ('b', 'd')", []).unwrap();
        check(&[(1, 0, 1), (1, 1, 1)]);
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
