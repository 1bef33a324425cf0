//! The inverted index: for each tenant and term the rows that have it, in blocks of a range of rows each.
//!
//! A row's words are kept beside it, so that a change touches only the terms that came or went, and a removal takes
//! every one of them: nothing of a memory stays in the index until some later merge.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};

use crate::memory::stored::SearchKeys;
use crate::store::finding::term_counts::{Count, MOST_SPOKEN, counts};

/// Rows of a block, as a power of two. A block of a term that every memory has takes some 2 kB.
const BLOCK_BITS: u32 = 10;

/// Two bits are enough for [`MOST_SPOKEN`].
fn code(count: Count) -> u64 {
    u64::from(count.words) << 2 | u64::from(count.speaker.min(MOST_SPOKEN))
}

fn of_code(code: u64) -> Count {
    Count { words: u32::try_from(code >> 2).unwrap_or(u32::MAX), speaker: (code & 3) as u32 }
}

/// Changes of the index that are written together, so that a block that many of them touch is written once.
#[derive(Debug, Default)]
pub(super) struct Changes(BTreeMap<(i64, String, i64), BTreeMap<u64, Option<Count>>>);

impl Changes {
    /// How many blocks they touch.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The row has these words from now on; none if it goes.
    pub(super) fn replace(
        &mut self,
        connection: &Connection,
        tenant: i64,
        seq: i64,
        keys: Option<&SearchKeys>,
    ) -> rusqlite::Result<()> {
        let before: Option<(String, String)> = connection
            .prepare_cached("SELECT words, speaker FROM memory_words WHERE seq = ?1")?
            .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let gone = before.as_ref().map(|(words, speaker)| counts(words, speaker)).unwrap_or_default();
        let come = keys.map(|keys| counts(&keys.words, &keys.speaker)).unwrap_or_default();
        for term in gone.keys().filter(|term| !come.contains_key(*term)) {
            self.put(tenant, term, seq, None);
        }
        for (term, count) in come.iter().filter(|(term, count)| gone.get(*term) != Some(count)) {
            self.put(tenant, term, seq, Some(*count));
        }
        match keys {
            Some(keys) => connection
                .prepare_cached("INSERT OR REPLACE INTO memory_words (seq, words, speaker) VALUES (?1, ?2, ?3)")?
                .execute(params![seq, keys.words, keys.speaker])
                .map(drop),
            None => connection.prepare_cached("DELETE FROM memory_words WHERE seq = ?1")?.execute([seq]).map(drop),
        }
    }

    fn put(&mut self, tenant: i64, term: &str, seq: i64, count: Option<Count>) {
        let (block, offset) = (block_of(seq), seq.cast_unsigned() & ((1 << BLOCK_BITS) - 1));
        self.0.entry((tenant, term.to_owned(), block)).or_default().insert(offset, count);
    }

    /// Writes them.
    pub(super) fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        let mut select = connection
            .prepare_cached("SELECT rows FROM memory_postings WHERE tenant = ?1 AND term = ?2 AND block = ?3")?;
        let mut put = connection.prepare_cached(
            "INSERT INTO memory_postings (tenant, term, block, rows) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET rows = excluded.rows",
        )?;
        let mut remove =
            connection.prepare_cached("DELETE FROM memory_postings WHERE tenant = ?1 AND term = ?2 AND block = ?3")?;
        for ((tenant, term, block), changed) in self.0 {
            let known: Option<Vec<u8>> = select.query_row(params![tenant, term, block], |row| row.get(0)).optional()?;
            let rows = merged(known.as_deref().unwrap_or_default(), changed);
            if rows.is_empty() {
                remove.execute(params![tenant, term, block])?;
            } else {
                put.execute(params![tenant, term, block, rows])?;
            }
        }
        Ok(())
    }
}

/// The bytes of a block after its changes; none if nothing is left.
fn merged(known: &[u8], mut changed: BTreeMap<u64, Option<Count>>) -> Vec<u8> {
    decode(known, |offset, count| {
        changed.entry(offset).or_insert(Some(count));
    });
    let (mut bytes, mut next) = (Vec::with_capacity(known.len() + 4), 0);
    for (offset, count) in changed {
        let Some(count) = count else { continue };
        varint(&mut bytes, offset - next);
        varint(&mut bytes, code(count));
        next = offset + 1;
    }
    bytes
}

/// Rows of a block: how many were passed over since the one before, and how often it has the term.
fn decode(mut bytes: &[u8], mut sink: impl FnMut(u64, Count)) {
    let mut next = 0_u64;
    while let (Some(gap), Some(code)) = (read_varint(&mut bytes), read_varint(&mut bytes)) {
        let offset = next.saturating_add(gap);
        sink(offset, of_code(code));
        next = offset.saturating_add(1);
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that there are more.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f).checked_shl(shift)?;
        if *first < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

/// Calls `sink` with each row that has the term, in order.
pub(super) fn find(
    connection: &Connection,
    tenant: i64,
    term: &str,
    mut sink: impl FnMut(i64, Count),
) -> rusqlite::Result<()> {
    let mut select = connection
        .prepare_cached("SELECT block, rows FROM memory_postings WHERE tenant = ?1 AND term = ?2 ORDER BY block")?;
    let mut rows = select.query(params![tenant, term])?;
    while let Some(row) = rows.next()? {
        rows_of(row.get(0)?, row.get_ref(1)?.as_blob()?, &mut sink);
    }
    Ok(())
}

/// The same in some blocks alone, which are those of [`block_of`] in order.
pub(super) fn find_in(
    connection: &Connection,
    tenant: i64,
    term: &str,
    blocks: &[i64],
    mut sink: impl FnMut(i64, Count),
) -> rusqlite::Result<()> {
    let mut select =
        connection.prepare_cached("SELECT rows FROM memory_postings WHERE tenant = ?1 AND term = ?2 AND block = ?3")?;
    for block in blocks {
        let mut rows = select.query(params![tenant, term, block])?;
        if let Some(row) = rows.next()? {
            rows_of(*block, row.get_ref(0)?.as_blob()?, &mut sink);
        }
    }
    Ok(())
}

/// The block that a row is in.
pub(super) fn block_of(seq: i64) -> i64 {
    seq >> BLOCK_BITS
}

fn rows_of(block: i64, bytes: &[u8], sink: &mut impl FnMut(i64, Count)) {
    let first = block << BLOCK_BITS;
    decode(bytes, |offset, count| sink(first.saturating_add_unsigned(offset), count));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_were_not_written_say_nothing() {
        let check = |bytes: &[u8], expected: usize| {
            let mut rows = 0;
            decode(bytes, |_, _| rows += 1);
            assert_eq!(rows, expected, "{bytes:?}");
        };
        check(&[], 0);
        check(&[1], 0);
        check(&[0x80], 0);
        check(&[0xff; 40], 0);
        check(&[1, 4, 0], 1);
    }

    proptest! {
        #[test]
        fn a_block_is_what_its_changes_say(
            steps in prop::collection::vec((0_u64..1024, prop::option::of((0_u32..300, 0_u32..=3))), 0..60)
        ) {
            let (mut bytes, mut model) = (Vec::new(), BTreeMap::new());
            for (offset, count) in steps {
                let count = count.map(|(words, speaker)| Count { words, speaker });
                bytes = merged(&bytes, BTreeMap::from([(offset, count)]));
                match count {
                    Some(count) => model.insert(offset, count),
                    None => model.remove(&offset),
                };
                let mut rows = BTreeMap::new();
                decode(&bytes, |offset, count| {
                    rows.insert(offset, count);
                });
                prop_assert_eq!(&rows, &model);
            }
            prop_assert_eq!(bytes.is_empty(), model.is_empty());
        }

        #[test]
        fn some_blocks_have_what_the_whole_index_has_of_them(
            written in prop::collection::btree_set(0_i64..5000, 0..60),
            asked in prop::collection::btree_set(0_i64..6, 0..6),
        ) {
            let mut connection = Connection::open_in_memory().unwrap();
            super::super::migrations::migrate(&mut connection).unwrap();
            let mut changes = Changes::default();
            for seq in written {
                changes.put(1, "tea", seq, Some(Count { words: 1 + (seq % 7) as u32, speaker: 0 }));
                changes.put(2, "tea", seq + 1, Some(Count::default()));
            }
            changes.write(&connection).unwrap();
            let asked: Vec<i64> = asked.into_iter().collect();
            let (mut whole, mut some) = (Vec::new(), Vec::new());
            find(&connection, 1, "tea", |seq, count| whole.push((seq, count))).unwrap();
            find_in(&connection, 1, "tea", &asked, |seq, count| some.push((seq, count))).unwrap();
            whole.retain(|(seq, _)| asked.contains(&block_of(*seq)));
            prop_assert_eq!(some, whole);
        }
    }
}
