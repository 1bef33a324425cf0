//! Words that say how somebody asks, not what for: "hey, can you please help me find …".
//!
//! They are rare in tool documents, so that inverse document frequency takes them for the most telling of a message,
//! and they are most of its word pieces. Counting them for less is worth five points of NDCG@10 on messages as people
//! write them.

use std::sync::LazyLock;

use crate::text::embedding::{Piece, Table};
use crate::text::stop_words;
pub(super) use crate::text::stop_words::is_stop_word;

/// Marks that stand between words.
const MARKS: &str = "? ! . , ' \" ( ) - : ; /";

/// What a plain word counts among the terms of a message.
const TERM: f32 = 0.3;

/// What a plain word counts in the meaning of a message.
const PIECE: f32 = 0.15;

/// Terms of days and months that are no plain words; "may" is one.
const DAYS: [&str; 21] = [
    "tomorrow",
    "tonight",
    "yesterday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "januari",
    "februari",
    "march",
    "april",
    "june",
    "juli",
    "august",
    "septemb",
    "octob",
    "novemb",
    "decemb",
];

/// By number what each word piece counts.
static PIECES: LazyLock<Box<[f32]>> = LazyLock::new(|| {
    let table = Table::shipped();
    let mut weights = vec![1.0; table.len()];
    for word in stop_words::WORDS.split_whitespace().chain(MARKS.split_whitespace()) {
        let mut pieces = Vec::new();
        table.pieces(word, 2, |piece| pieces.push(piece));
        // A word of several pieces shares them with others that are not plain.
        if let [piece] = pieces[..] {
            weights[piece.index()] = PIECE;
        }
    }
    weights.into()
});

/// What a term of a message counts, 1 for all but plain ones.
pub(super) fn term_weight(term: &str) -> f32 {
    if is_stop_word(term) || is_value(term) { TERM } else { 1.0 }
}

/// Is it a number, a letter or a day, which a document has in an example and none is about?
fn is_value(term: &str) -> bool {
    term.len() == 1 && term.is_ascii() || term.bytes().all(|byte| byte.is_ascii_digit()) || is_day(term)
}

/// Is it the name of a day or a month?
pub(super) fn is_day(term: &str) -> bool {
    DAYS.contains(&term)
}

/// What a word piece of a message counts, 1 for all but plain ones.
pub(super) fn piece_weight(piece: Piece) -> f32 {
    PIECES[piece.index()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::analysis;

    fn check(text: &str, expected: &[&str]) {
        let mut telling = Vec::new();
        analysis::terms(text, |term| {
            if !is_stop_word(term) {
                telling.push(term.to_owned());
            }
        });
        assert_eq!(telling, expected, "what {text:?} is about");
    }

    #[test]
    fn what_is_left_tells() {
        check("Hey, can you please help me find a dentist?", &["dentist"]);
        check("What's hot on Polymarket?", &["hot", "polymarket"]);
        check("I'd like to swap 2 SOL for USDC", &["swap", "2", "sol", "usdc"]);
    }
}
