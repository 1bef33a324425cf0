//! Full text: an FTS5 index for each tenant, which keeps no copy of the texts.
//!
//! What goes in are terms, split and stemmed before; what is asked for are such terms in quotes. They have letters and digits
//! only, so there is nothing in them that FTS5 could take for its syntax.
//!
//! FTS5 ranks by its own inverse document frequency, which calls a term of every second memory worthless. A speaker of two is
//! such a term. So each term is asked for alone, that factor is divided out, and a milder one multiplied in.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use crate::store::memories::Index;

/// Weight of a term in the speaker's name; in the text it is 1.
const SPEAKER: f64 = 0.4;

/// Rows that the terms of one query may have together. Terms beyond are the most frequent, and say least.
const MAX_ROWS: i64 = 200_000;

pub(super) fn create(connection: &Connection, tenant: i64) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE VIRTUAL TABLE memory_text_{tenant}
            USING fts5(words, speaker, content = '', contentless_delete = 1, tokenize = 'ascii');
         CREATE VIRTUAL TABLE memory_terms_{tenant} USING fts5vocab(memory_text_{tenant}, row);"
    ))
}

pub(super) fn insert(connection: &Connection, tenant: i64, seq: i64, index: &Index) -> rusqlite::Result<()> {
    connection
        .prepare_cached(&format!("INSERT INTO memory_text_{tenant} (rowid, words, speaker) VALUES (?1, ?2, ?3)"))?
        .execute(params![seq, index.words, index.speaker])
        .map(drop)
}

pub(super) fn remove(connection: &Connection, tenant: i64, seq: i64) -> rusqlite::Result<()> {
    connection.prepare_cached(&format!("DELETE FROM memory_text_{tenant} WHERE rowid = ?1"))?.execute([seq]).map(drop)
}

/// Rewrites the index without what was removed: until then its terms are still in the file.
pub(super) fn compact(connection: &Connection, tenant: i64) -> rusqlite::Result<()> {
    connection
        .execute(&format!("INSERT INTO memory_text_{tenant} (memory_text_{tenant}) VALUES ('optimize')"), [])
        .map(drop)
}

/// How well a row matches, and a bit for each term that it has.
pub(super) type Lexical = HashMap<i64, (f64, u64)>;

/// Rows that have one of `terms`, of which there are 64 at most; `rows` is how many there are in all.
pub(super) fn find(connection: &Connection, tenant: i64, terms: &[String], rows: usize) -> rusqlite::Result<Lexical> {
    let mut count = connection.prepare_cached(&format!("SELECT doc FROM memory_terms_{tenant} WHERE term = ?1"))?;
    let mut rare: Vec<(i64, usize)> = Vec::new();
    for (number, term) in terms.iter().enumerate().take(64) {
        let having: Option<i64> = count.query_row([term], |row| row.get(0)).optional()?;
        rare.extend(having.map(|having| (having, number)));
    }
    rare.sort_unstable();
    let mut found = Lexical::new();
    let mut left = MAX_ROWS;
    let mut select = connection.prepare_cached(&format!(
        "SELECT rowid, -bm25(memory_text_{tenant}, 1.0, {SPEAKER}) FROM memory_text_{tenant}
         WHERE memory_text_{tenant} MATCH ?1"
    ))?;
    for (having, number) in rare {
        left -= having;
        if left < 0 {
            break;
        }
        let (all, with) = (rows.max(having as usize) as f64, having as f64);
        // As FTS5 computes it, with its floor.
        let theirs = ((all - with + 0.5) / (with + 0.5)).ln().max(1e-6);
        let ours = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        let mut matching = select.query([format!("\"{}\"", terms[number])])?;
        while let Some(row) = matching.next()? {
            let entry = found.entry(row.get(0)?).or_default();
            entry.0 += row.get::<_, f64>(1)? / theirs * ours;
            entry.1 |= 1 << number;
        }
    }
    Ok(found)
}
