//! The shipped rows, read in place.
//!
//! Thirty thousand words in a map would cost megabytes of memory and milliseconds of every start. The file holds the
//! hash table ready made instead, so that opening it is arithmetic that the compiler does, and the kernel only loads
//! the pages that a text asks for.
//!
//! Little-endian: [`MAGIC`]; five u32 (rows, dimensions, slots, bytes of the longest piece, bytes of all pieces); per
//! slot a u16, the number of a row or [`VACANT`]; per row a u32, where its piece ends; the pieces; per row an f32, its
//! scale, and its numbers, two in a byte. A piece lies in the first vacant slot at or after its hash; slots are a power
//! of two.

use super::vector::Nibbles;
use super::{DIMENSIONS, Pool, Vector, wordpiece};

const MAGIC: &[u8; 16] = b"ALMANAC-EMBED-1\n";
const VACANT: u16 = u16::MAX;

/// Bytes of a row.
const ROW: usize = 4 + size_of::<Nibbles>();

/// No piece of a table is longer, in bytes. It bounds the look-ups for one word.
pub(super) const LONGEST_PIECE: usize = 20;

/// The number of a word piece, below [`Table::len`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece(u16);

impl Piece {
    /// Stands for every word that is not made of known pieces. Its row is zero: such a word says nothing.
    pub const UNKNOWN: Self = Self(0);

    /// Its number, for counts kept in a list.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Word pieces and their rows.
#[derive(Debug)]
pub struct Table {
    slots: &'static [[u8; 2]],
    ends: &'static [[u8; 4]],
    text: &'static [u8],
    rows: &'static [[u8; ROW]],
}

static SHIPPED: Table = Table::open(include_bytes!("table.bin"));

impl Table {
    /// The table inside this binary.
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// Finds the sections of a file; a panic, which stops the build, if they are not there.
    const fn open(file: &'static [u8]) -> Self {
        let (magic, file) = file.split_at(MAGIC.len());
        let mut at = 0;
        while at < MAGIC.len() {
            assert!(magic[at] == MAGIC[at], "the file is a table of this version");
            at += 1;
        }
        let (header, file) = file.split_at(5 * 4);
        let (numbers, _) = header.as_chunks::<4>();
        let [rows, dimensions, slots] = [size(numbers[0]), size(numbers[1]), size(numbers[2])];
        assert!(dimensions == DIMENSIONS && size(numbers[3]) <= LONGEST_PIECE, "its sizes are this version's");
        assert!(slots.is_power_of_two() && slots > rows && rows < VACANT as usize, "slots outnumber rows");
        let (slots, file) = file.split_at(2 * slots);
        let (ends, file) = file.split_at(4 * rows);
        let (text, file) = file.split_at(size(numbers[4]));
        let table = Self { slots: slots.as_chunks().0, ends: ends.as_chunks().0, text, rows: file.as_chunks().0 };
        assert!(table.rows.len() == rows && file.len() == rows * ROW, "the file ends with its last row");
        table
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Calls `sink` with the pieces of `text`, in order, `limit` at most.
    pub fn pieces(&self, text: &str, limit: usize, sink: impl FnMut(Piece)) {
        wordpiece::split(self, text, limit, sink);
    }

    /// Is this a word of its own, and not put together from pieces?
    pub fn is_word(&self, word: &str) -> bool {
        let mut count = 0;
        self.pieces(word, 2, |_| count += 1);
        count == 1 && word.len() > 1
    }

    /// What a message means, by its first [`super::QUERY_PIECES`].
    #[cfg(test)]
    pub fn embed(&self, text: &str) -> Vector {
        self.embed_weighted(text, super::QUERY_PIECES, |_| 1.0)
    }

    /// What the first `limit` pieces of `text` mean, each counting as `weight` says: finite and not negative, such as
    /// its inverse document frequency.
    pub fn embed_weighted(&self, text: &str, limit: usize, weight: impl Fn(Piece) -> f32) -> Vector {
        self.pool(text, limit, weight).vector()
    }

    /// The sum of which [`Table::embed_weighted`] is the direction: texts can be added up.
    pub fn pool(&self, text: &str, limit: usize, weight: impl Fn(Piece) -> f32) -> Pool {
        let mut pool = Pool::default();
        self.pieces(text, limit, |piece| {
            let (scale, numbers) = self.row(piece);
            pool.add_nibbles(numbers, weight(piece) * scale);
        });
        pool
    }

    fn row(&self, piece: Piece) -> (f32, &'static Nibbles) {
        let (scale, numbers) = self.rows[piece.index()].split_first_chunk().expect("a row is longer than its scale");
        (f32::from_le_bytes(*scale), numbers.first_chunk().expect("the rest of a row is its numbers"))
    }

    /// The piece that is `prefix` and then `rest`; `hash` is theirs.
    pub(super) fn find(&self, hash: Hash, prefix: &[u8], rest: &[u8]) -> Option<Piece> {
        let mask = self.slots.len() - 1;
        let mut slot = hash.0 as usize & mask;
        for _ in 0..=mask {
            let row = u16::from_le_bytes(self.slots[slot]);
            if row == VACANT {
                return None;
            }
            if self.piece(Piece(row)).strip_prefix(prefix) == Some(rest) {
                return Some(Piece(row));
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// The bytes of a piece; none if the file is damaged.
    pub(super) fn piece(&self, piece: Piece) -> &'static [u8] {
        let end = |index: usize| self.ends.get(index).map_or(0, |&end| size(end));
        let start = piece.index().checked_sub(1).map_or(0, end);
        self.text.get(start..end(piece.index())).unwrap_or_default()
    }
}

const fn size(bytes: [u8; 4]) -> usize {
    u32::from_le_bytes(bytes) as usize
}

/// FNV-1a of 32 bits: its value for a word passes through those for every beginning of the word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash(u32);

impl Hash {
    pub(super) const EMPTY: Self = Self(0x811c_9dc5);

    /// Of what it was of, and `byte`.
    #[must_use]
    pub(super) const fn then(self, byte: u8) -> Self {
        Self((self.0 ^ byte as u32).wrapping_mul(0x0100_0193))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_piece_is_found() {
        let table = Table::shipped();
        for index in 0..table.len() {
            let piece = table.piece(Piece(index as u16));
            assert!(!piece.is_empty() && piece.len() <= LONGEST_PIECE, "piece {index}");
            let hash = piece.iter().fold(Hash::EMPTY, |hash, &byte| hash.then(byte));
            assert_eq!(table.find(hash, b"", piece), Some(Piece(index as u16)));
            let (scale, _) = table.row(Piece(index as u16));
            assert!(scale.is_finite() && scale >= 0.0, "row {index}");
        }
        assert_eq!(table.piece(Piece::UNKNOWN), b"[UNK]");
        assert!(table.embed("\u{1F9FF}").is_zero());
    }

    /// Texts and their vectors as the fit computes them, with another tokenizer and other arithmetic.
    #[test]
    fn vectors_are_those_of_the_fit() {
        let golden: Vec<(String, Vec<f32>)> = serde_json::from_str(include_str!("golden.json")).unwrap();
        assert!(golden.len() >= 12);
        for (text, expected) in golden {
            let vector = Table::shipped().embed(&text);
            for (dimension, (got, expected)) in vector.as_array().iter().zip(&expected).enumerate() {
                assert!((got - expected).abs() < 2e-4, "{text:?}: {got} for {expected} in dimension {dimension}");
            }
            assert_eq!(expected.len(), DIMENSIONS);
        }
    }

    /// The similarity of `a` to `b` is at least .1 more than to `c`.
    fn check(a: &str, b: &str, c: &str) {
        let [near, far] = [b, c].map(|text| Table::shipped().embed(a).dot(&Table::shipped().embed(text)));
        assert!(near > far + 0.1, "{a:?}: {near} to {b:?}, {far} to {c:?}");
    }

    #[test]
    fn what_means_the_same_is_near() {
        check("what's the weather like in Paris?", "forecast for a city", "send an email");
        check("remind me to call mum tomorrow", "create a calendar reminder", "image resizing");
        check("purchase tokens", "buy cryptocurrency", "read a file from the disk");
        check("car", "automobile", "banana");
    }

    #[test]
    fn weights_decide_what_counts() {
        let table = Table::shipped();
        let (mut weather, mut count) = (None, 0);
        table.pieces("weather email", 9, |piece| {
            weather.get_or_insert(piece);
            count += 1;
        });
        assert_eq!(count, 2);
        let only = table.embed_weighted("weather email", 9, |piece| f32::from(u8::from(Some(piece) == weather)));
        assert_eq!(only, table.embed("weather"));
        assert!(table.embed_weighted("weather", 9, |_| 0.0).is_zero());
    }

    proptest! {
        #[test]
        fn any_text_has_a_direction_or_none(text in "\\PC{0,80}") {
            let vector = Table::shipped().embed(&text);
            prop_assert!(vector.is_zero() || (vector.dot(&vector) - 1.0).abs() < 1e-5);
        }
    }
}
