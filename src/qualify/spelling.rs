//! Mistyped words of a message, mended to words that the catalog's documents have: "brige" is "bridge" where tools
//! bridge. A word that English or any document knows is what it is.

use std::borrow::Cow;
use std::ops::Range;

use foldhash::HashSet;

use super::message::MAX_BYTES;
use crate::text::analysis;
use crate::text::embedding::Table;
use crate::text::near;

/// Letters of a word that may be mended: shorter ones are near too many others.
const LETTERS: Range<usize> = 5..24;

/// From so many letters on two may be wrong, else one.
const LONG: usize = 8;

/// Words of a message that are mended at most; of more it is not English, or nothing that anybody typed.
const MOST: usize = 6;

/// The words of a catalog.
#[derive(Debug)]
pub(super) struct Spelling {
    /// As they are written, in lower case; sorted.
    words: Box<[Box<str>]>,
    /// The terms that they are.
    terms: HashSet<Box<str>>,
}

impl Spelling {
    /// Of these texts.
    pub(super) fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut words: HashSet<Box<str>> = HashSet::default();
        for text in texts {
            for place in runs(text).filter(|place| LETTERS.contains(&place.len())) {
                let word = text[place].to_ascii_lowercase();
                if !words.contains(&*word) {
                    words.insert(word.into());
                }
            }
        }
        let mut terms = HashSet::default();
        for word in &words {
            analysis::terms(word, |term| {
                terms.insert(term.into());
            });
        }
        let mut words: Box<[Box<str>]> = words.into_iter().collect();
        words.sort_unstable();
        Self { words, terms }
    }

    /// The text with its mistyped words mended, if it is English as far as its words tell.
    pub(super) fn mended<'m>(&self, text: &'m str) -> Cow<'m, str> {
        if text.len() > MAX_BYTES {
            return text.into();
        }
        let (mut known, mut unknown) = (0, Vec::new());
        for place in runs(text).filter(|place| place.len() > 1) {
            if self.knows(&text[place.clone()].to_ascii_lowercase()) {
                known += 1;
            } else {
                unknown.push(place);
            }
        }
        if unknown.is_empty() || unknown.len() > MOST || unknown.len() > known + 1 {
            return text.into();
        }
        let (mut mended, mut copied) = (String::new(), 0);
        for place in unknown {
            if let Some(meant) = self.meant(text, &place) {
                mended.push_str(&text[copied..place.start]);
                mended.push_str(meant);
                copied = place.end;
            }
        }
        if copied == 0 { text.into() } else { (mended + &text[copied..]).into() }
    }

    /// Is it a word as it is, in lower case?
    fn knows(&self, word: &str) -> bool {
        if Table::shipped().is_word(word) || self.words.binary_search_by(|known| (**known).cmp(word)).is_ok() {
            return true;
        }
        let mut is_known = false;
        // "Bridges" where documents have "bridge", and "liking".
        analysis::terms(word, |term| is_known = self.terms.contains(term) || Table::shipped().is_word(term));
        is_known
    }

    /// The word of the catalog that a mistyped one is meant for.
    fn meant(&self, text: &str, place: &Range<usize>) -> Option<&str> {
        let (written, bytes) = (&text[place.clone()], text.as_bytes());
        // Names are spelt as their owners like, and what is joined to marks is no word.
        let is_plain = written.bytes().skip(1).all(|letter| letter.is_ascii_lowercase());
        let is_joined = |byte: Option<&u8>| byte.is_some_and(|byte| b"_-./@#$'\\".contains(byte) || !byte.is_ascii());
        let before = place.start.checked_sub(1).and_then(|before| bytes.get(before));
        // A full stop behind it ends the sentence.
        let ends = |after: usize| {
            bytes.get(after) == Some(&b'.') && !bytes.get(after + 1).is_some_and(u8::is_ascii_alphanumeric)
        };
        let after = bytes.get(place.end).filter(|_| !ends(place.end));
        if !is_plain || !LETTERS.contains(&written.len()) || is_joined(before) || is_joined(after) {
            return None;
        }
        let word = written.to_ascii_lowercase();
        let wrong = if word.len() < LONG { 1 } else { 2 };
        let first = &word[..1];
        let from = self.words.partition_point(|known| **known < *first);
        let same_letter = self.words[from..].iter().take_while(|known| known.starts_with(first));
        let candidates = same_letter.filter(|known| known.len().abs_diff(word.len()) <= wrong).map(|known| &**known);
        near::nearest_within(&word, candidates, wrong)
    }
}

/// Where runs of ASCII letters stand that no digit touches.
fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                at += 1;
            }
            if at == start {
                at += 1;
            } else if bytes[start..at].iter().all(u8::is_ascii_alphabetic) {
                return Some(start..at);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spelling() -> Spelling {
        Spelling::of(["Bridge tokens to Arbitrum", "liquidations of bitcoin", "remember a birthday", "getAzukiFloor"])
    }

    #[test]
    fn mistyped_words_are_mended() {
        let check = |text: &str, expected: &str| assert_eq!(spelling().mended(text), expected, "{text:?}");
        check("brige it to arbitrun, please", "bridge it to arbitrum, please");
        check("show me teh liqudations.", "show me teh liquidations.");
        check("Remembr my berthday", "remember my birthday");
        check("remdn me", "remdn me");
        // English, or a document, has it.
        check("bridges and fridge", "bridges and fridge");
        check("what is bitcoin worth", "what is bitcoin worth");
        // Names, and what is joined to marks.
        check("what is Brigde and BRIGE", "what is bridge and BRIGE");
        check("open the brige.md of brige-notes or a_brige", "open the brige.md of brige-notes or a_brige");
        check("ask for brige2 and nine", "ask for brige2 and nine");
        // Another language.
        check("quiero brigar todos juntos mañana por favor", "quiero brigar todos juntos mañana por favor");
        check("", "");
    }

    proptest! {
        #[test]
        fn what_the_catalog_has_stays(words in prop::collection::vec("[a-z]{2,12}", 1..6)) {
            let text = words.join(" ");
            prop_assert_eq!(Spelling::of([&*text]).mended(&text), text.as_str());
        }

        #[test]
        fn any_text_is_taken(text in "(\\PC|brige|[. _-]){0,80}") {
            let mended = spelling().mended(&text).into_owned();
            prop_assert_eq!(runs(&mended).count(), runs(&text).count());
        }
    }
}
