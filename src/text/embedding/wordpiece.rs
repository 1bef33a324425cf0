//! Text to word pieces, as BERT does it, since the table's rows are for these.
//!
//! Words are lower-cased and lose their accents; each mark of punctuation and each Chinese character is a word; a word
//! is cut from its start into the longest pieces that are known, and is unknown if that fails. A piece costs at most
//! [`LONGEST_PIECE`] look-ups; those of a word that turns out to be unknown use up the limit, too, lest a text of such
//! words costs a hundred times what it counts.

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::char::decompose_canonical;

use super::table::{Hash, LONGEST_PIECE, Piece, Table};

/// Words of more characters are unknown, as in BERT.
const LONGEST_WORD: usize = 100;

/// What a piece starts with that does not start a word.
const INNER: &[u8] = b"##";
const INNER_HASH: Hash = Hash::EMPTY.then(INNER[0]).then(INNER[1]);

/// Calls `sink` with the pieces of `text`, `limit` at most.
pub(super) fn split(table: &Table, text: &str, limit: usize, sink: impl FnMut(Piece)) {
    let mut splitter = Splitter { table, word: String::new(), characters: 0, left: limit, sink };
    for char in text.chars() {
        if splitter.left == 0 {
            return;
        }
        splitter.take(char);
    }
    splitter.end_word();
}

struct Splitter<'t, S> {
    table: &'t Table,
    /// The word so far, up to [`LONGEST_WORD`] characters of it.
    word: String,
    characters: usize,
    left: usize,
    sink: S,
}

impl<S: FnMut(Piece)> Splitter<'_, S> {
    fn take(&mut self, char: char) {
        if char.is_ascii_alphanumeric() {
            self.push(char.to_ascii_lowercase());
        } else if matches!(char, ' ' | '\t' | '\n' | '\r') {
            self.end_word();
        } else if char.is_ascii_punctuation() {
            self.stand_alone(char);
        } else if !char.is_ascii() {
            self.take_beyond_ascii(char);
        }
    }

    fn take_beyond_ascii(&mut self, char: char) {
        if char.is_whitespace() {
            self.end_word();
        } else if is_chinese(char) {
            decompose_canonical(char, |part| self.stand_alone(part));
        } else if char != char::REPLACEMENT_CHARACTER && !is_other(char) {
            decompose_canonical(char, |part| {
                if get_general_category(part) != GeneralCategory::NonspacingMark {
                    part.to_lowercase().for_each(|lower| self.take_lowered(lower));
                }
            });
        }
    }

    fn take_lowered(&mut self, char: char) {
        if is_punctuation(char) { self.stand_alone(char) } else { self.push(char) }
    }

    fn push(&mut self, char: char) {
        self.characters += 1;
        if self.characters <= LONGEST_WORD {
            self.word.push(char);
        }
    }

    fn stand_alone(&mut self, char: char) {
        self.end_word();
        self.push(char);
        self.end_word();
    }

    fn end_word(&mut self) {
        if self.characters == 0 {
            return;
        }
        let mut pieces = [Piece::UNKNOWN; LONGEST_WORD];
        let fits = self.characters <= LONGEST_WORD;
        let cuts = if fits { cut(self.table, self.word.as_bytes(), &mut pieces) } else { Err(0) };
        let (Ok(spent) | Err(spent)) = cuts;
        let pieces = if cuts.is_ok() { &pieces[..spent] } else { &[Piece::UNKNOWN] };
        for &piece in pieces.iter().take(self.left) {
            (self.sink)(piece);
        }
        self.left = self.left.saturating_sub(spent.max(1));
        self.word.clear();
        self.characters = 0;
    }
}

/// Cuts a word into `pieces` and returns how many; as an error if what follows them is unknown.
fn cut(table: &Table, word: &[u8], pieces: &mut [Piece; LONGEST_WORD]) -> Result<usize, usize> {
    let (mut start, mut count) = (0, 0);
    while start < word.len() {
        let prefix = if start == 0 { &[][..] } else { INNER };
        let Some((piece, length)) = longest(table, prefix, &word[start..]) else { return Err(count) };
        // A piece is a character at least, so there is room for as many.
        pieces[count] = piece;
        start += length;
        count += 1;
    }
    Ok(count)
}

/// The longest piece that `rest` starts with, and how many bytes of it that is.
fn longest(table: &Table, prefix: &[u8], rest: &[u8]) -> Option<(Piece, usize)> {
    let mut hashes = [Hash::EMPTY; LONGEST_PIECE];
    let mut hash = if prefix.is_empty() { Hash::EMPTY } else { INNER_HASH };
    for (slot, &byte) in hashes.iter_mut().zip(rest) {
        hash = hash.then(byte);
        *slot = hash;
    }
    // A piece is whole characters, so no length is found that would end within one.
    (1..=rest.len().min(LONGEST_PIECE))
        .rev()
        .find_map(|length| Some((table.find(hashes[length - 1], prefix, &rest[..length])?, length)))
}

/// The blocks BERT takes for Chinese: CJK unified ideographs with their extensions, and compatibility ideographs.
fn is_chinese(char: char) -> bool {
    matches!(char,
        '\u{4E00}'..='\u{9FFF}' | '\u{3400}'..='\u{4DBF}' | '\u{20000}'..='\u{2A6DF}' | '\u{2A700}'..='\u{2B73F}'
        | '\u{2B740}'..='\u{2B81F}' | '\u{2B920}'..='\u{2CEAF}' | '\u{F900}'..='\u{FAFF}' | '\u{2F800}'..='\u{2FA1F}')
}

/// Controls, formats, unassigned and private characters, which are dropped.
fn is_other(char: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse, Surrogate, Unassigned};
    matches!(get_general_category(char), Control | Format | PrivateUse | Surrogate | Unassigned)
}

fn is_punctuation(char: char) -> bool {
    use GeneralCategory::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation, InitialPunctuation, OpenPunctuation,
        OtherPunctuation,
    };
    char.is_ascii_punctuation()
        || matches!(
            get_general_category(char),
            ClosePunctuation
                | ConnectorPunctuation
                | DashPunctuation
                | FinalPunctuation
                | InitialPunctuation
                | OpenPunctuation
                | OtherPunctuation
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(text: &str, limit: usize) -> Vec<&'static str> {
        let table = Table::shipped();
        let mut all = Vec::new();
        table.pieces(text, limit, |piece| all.push(str::from_utf8(table.piece(piece)).expect("a piece is text")));
        all
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(collect(text, 512).join(" "), expected, "pieces of {text:?}");
    }

    /// What the tokenizer of all-MiniLM-L6-v2 says of the same texts.
    #[test]
    fn words_are_cut_as_bert_cuts_them() {
        check("What's the weather?", "what ' s the weather ?");
        check("getUserName x_y", "get ##user ##name x _ y");
        check("Unaffable Café NAÏVE", "una ##ffa ##ble cafe naive");
        check("1,234.56$ C++ a=b", "1 , 234 . 56 $ c + + a = b");
        check("東京タワー is 333m", "東 京 タ ##ワ ##ー is 333 ##m");
        check("Größe — Ελλάδα… «да»", "gr ##o ##ße — ε ##λ ##λ ##α ##δ ##α … « д ##а »");
        check("İstanbul ﬁle", "istanbul ﬁ ##le");
        check("한국어", "ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ ##ᄋ ##ᅥ");
        check("हिन्दी ไทย", "ह ##ि ##न ##द ##ी [UNK]");
        check("😀 ok 👍🏽 Ⅷ ½ ²", "[UNK] ok [UNK] [UNK] ½ ²");
        check("a\u{ad}b c\u{200b}d e\u{a0}f\u{3000}g\u{b}h", "ab cd e f g ##h");
        check("e\u{301}te\u{301} n\u{303}", "et ##e n");
        check("\u{37e};\u{203d}", "; ; [UNK]");
        check("zxqv##ing", "z ##x ##q ##v # # ing");
        check(" \u{0}\u{FFFD}\t\n", "");
        // Unlike there, nobody can write the marks that the model puts around texts.
        check("[CLS]", "[ cl ##s ]");
    }

    #[test]
    fn work_is_bounded() {
        check(&"x".repeat(1_000_000), "[UNK]");
        check(&"x".repeat(LONGEST_WORD + 1), "[UNK]");
        assert_eq!(collect(&"x".repeat(LONGEST_WORD), 512).len(), LONGEST_WORD / 2, "xx, and ##xx on and on");
        check(&format!("q{}z", "\u{301}".repeat(300)), "q ##z");
        assert_eq!(collect("a b c d", 2), ["a", "b"]);
        assert_eq!(collect("unaffable", 2), ["una", "##ffa"]);
        assert_eq!(collect("a", 0), [""; 0]);
        assert_eq!(collect("a qqqqqq\u{1F600} b", 4), ["a", "[UNK]"], "the cuts of an unknown word count");
    }

    proptest! {
        #[test]
        fn any_text_is_cut(text in "\\PC{0,80}", limit in 0_usize..40) {
            let pieces = collect(&text, limit);
            prop_assert!(pieces.len() <= limit);
            let all = collect(&text, usize::MAX);
            prop_assert!(all.starts_with(&pieces));
            prop_assert!(pieces.len() == limit.min(all.len()) || all.contains(&"[UNK]"));
        }
    }
}
