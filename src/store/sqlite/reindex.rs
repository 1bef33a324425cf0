//! Makes anew what memories are found by, when the program takes texts apart in another way than the one that made it.

use rusqlite::{Connection, OptionalExtension, Transaction};

use super::postings::Changes;
use super::row_cache::RowOf;
use crate::memory::text::{ANALYSIS, index_stored};
use crate::store::finding::row_cache::thread_number;
use crate::store::finding::term_counts;

/// Memories of one transaction.
const AT_ONCE: i64 = 1000;

/// Sees to it that all memories are found by this program's analysis. One that broke off goes on where it was.
pub(super) fn reindex(connection: &mut Connection) -> rusqlite::Result<()> {
    let select = "SELECT version FROM memory_analysis";
    let version: Option<i64> = connection.query_row(select, [], |row| row.get(0)).optional()?;
    if version == Some(ANALYSIS) {
        return Ok(());
    }
    // While it is made it has the negative number.
    if version != Some(-ANALYSIS) {
        let transaction = connection.transaction()?;
        forget(&transaction)?;
        set_version(&transaction, -ANALYSIS)?;
        transaction.commit()?;
    }
    let mut all = 0;
    loop {
        let transaction = connection.transaction()?;
        let rows = index_some(&transaction)?;
        if rows == 0 {
            set_version(&transaction, ANALYSIS)?;
        }
        transaction.commit()?;
        if rows == 0 {
            break;
        }
        if all == 0 {
            tracing::info!("what memories are found by is made anew");
        }
        all += rows;
    }
    if all > 0 {
        tracing::info!(memories = all, "what memories are found by was made anew");
    }
    Ok(())
}

fn set_version(transaction: &Transaction<'_>, version: i64) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM memory_analysis", [])?;
    transaction.execute("INSERT INTO memory_analysis (version) VALUES (?1)", [version]).map(drop)
}

/// Removes what there is, that of the first versions included: a full-text index for each tenant.
fn forget(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let names: Vec<String> = transaction
        .prepare(
            "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'
             AND (name GLOB 'memory_terms_[0-9]*' OR name GLOB 'memory_text_[0-9]*') ORDER BY name",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for name in names {
        transaction.execute_batch(&format!("DROP TABLE {name}"))?;
    }
    transaction.execute_batch("DELETE FROM memory_words; DELETE FROM memory_postings; DELETE FROM memory_rows;")
}

fn index_some(transaction: &Transaction<'_>) -> rusqlite::Result<usize> {
    let mut select = transaction.prepare_cached(
        "SELECT seq, tenant, kind, deleted, created_us, updated_us, chat_id, thread_id, position, metadata, content
         FROM memories WHERE seq > (SELECT coalesce(max(seq), 0) FROM memory_words) ORDER BY seq LIMIT ?1",
    )?;
    let (mut rows, mut changes, mut indexed) = (select.query([AT_ONCE])?, Changes::default(), 0);
    while let Some(row) = rows.next()? {
        let (seq, tenant, kind): (i64, i64, u8) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (created_us, updated_us): (i64, i64) = (row.get(4)?, row.get(5)?);
        let (chat, thread): (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
        let position: i64 = row.get::<_, Option<i64>>(8)?.unwrap_or_default();
        let keys = index_stored(kind, row.get_ref(9)?.as_str()?, row.get_ref(10)?.as_str()?);
        changes.replace(transaction, tenant, seq, Some(&keys))?;
        let row = RowOf {
            seq,
            tenant,
            // Nobody has read any yet, so that any moment before the next write will do.
            stamp: created_us.max(updated_us).max(1),
            kind,
            deleted: row.get(3)?,
            created_us,
            thread: thread.map(|thread| (thread_number(chat.as_deref(), &thread), position.cast_unsigned())),
            length: term_counts::length(&keys.words),
            vector: &keys.vector,
        };
        row.write(transaction)?;
        indexed += 1;
    }
    changes.write(transaction)?;
    Ok(indexed)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::memory::query::{Search, SortBy};
    use crate::store::sqlite::{Options, Sqlite, file_in};
    use crate::store::suite::memories::{KIND, add, all, draft, text};
    use crate::store::{Memories, Store};

    #[test]
    fn memories_of_another_analysis_are_found_again() {
        let directory = TempDir::new().unwrap();
        let start = || Sqlite::start(Options::file(file_in(directory.path())), Box::new(|_, _| ())).unwrap();
        let store = start();
        add(&store, "t", draft("alpha beta", &serde_json::json!({}))).unwrap();
        drop(store);
        let connection = Connection::open(file_in(directory.path())).unwrap();
        connection
            .execute_batch(
                "UPDATE memory_analysis SET version = 999; DELETE FROM memory_words; DELETE FROM memory_postings;
                 CREATE VIRTUAL TABLE memory_text_1 USING fts5(words);",
            )
            .unwrap();
        drop(connection);
        let store = start();
        assert_eq!(store.trouble(), None);
        let search = Search { text: Some(text(&["alpha"])), sort: SortBy::Score, ..all(KIND) };
        assert_eq!(store.search("t", &search).unwrap().total, 1);
        let connection = Connection::open(file_in(directory.path())).unwrap();
        let old = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'memory_text%'";
        assert_eq!(connection.query_row(old, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}
