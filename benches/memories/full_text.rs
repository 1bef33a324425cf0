//! The floor: the same texts in SQLite's own full-text index.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rusqlite::Connection;

pub(crate) struct FullText(Connection);

impl FullText {
    /// An empty index in a file.
    pub(crate) fn create(file: &Path) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = off; CREATE VIRTUAL TABLE texts USING fts5(content);",
        )?;
        Ok(Self(connection))
    }

    pub(crate) fn add<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> Result<()> {
        let transaction = self.0.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO texts (content) VALUES (?1)")?;
            texts.into_iter().try_for_each(|text| insert.execute([text]).map(drop))?;
        }
        Ok(transaction.commit()?)
    }

    /// Seconds that the ten best of those with any of the words take.
    pub(crate) fn search(&self, words: &str) -> Result<f64> {
        let any = words.split(' ').collect::<Vec<_>>().join(" OR ");
        let mut best = self
            .0
            .prepare_cached("SELECT rowid, content FROM texts WHERE texts MATCH ?1 ORDER BY bm25(texts) LIMIT 10")?;
        let start = Instant::now();
        let rows = best.query_map([any], |row| row.get::<_, String>(1))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(start.elapsed().as_secs_f64())
    }
}
