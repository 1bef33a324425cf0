//! Text to index terms, as people of its language look for them: names are split (`getUserName`, `get_user_name`),
//! words lower-cased, without accents, and stemmed; of scripts that write no spaces, each character and each pair of
//! them.

use frostem::{Algorithm, Stemmer};
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_canonical;

/// Terms of more bytes than this are cut: nobody types them, and they would only cost memory.
const LONGEST_TERM: usize = 40;

/// Calls `sink` with each term of `text`, in order, repeats kept.
pub fn terms(text: &str, sink: impl FnMut(&str)) {
    Words::to(sink, true).take(text);
}

/// The same, but that abbreviations are not known in the plural: `NFTs` is `nf` and `ts`, `nfts` no `nft`. For terms
/// that are kept, and were made so from the first.
pub fn terms_without_plurals_of_abbreviations(text: &str, sink: impl FnMut(&str)) {
    Words::to(sink, false).take(text);
}

/// The term's one character, of a script that writes no spaces.
pub fn lone(term: &str) -> Option<char> {
    let mut characters = term.chars();
    characters.next().filter(|first| is_unspaced(*first) && characters.next().is_none())
}

struct Words<F> {
    stemmer: Stemmer,
    word: String,
    /// The character before in a run of a script without spaces.
    before: Option<char>,
    /// Are `NFTs` and `nfts` the plural of `NFT`?
    knows_abbreviations: bool,
    sink: F,
}

impl<F: FnMut(&str)> Words<F> {
    fn to(sink: F, knows_abbreviations: bool) -> Self {
        let stemmer = Stemmer::new(Algorithm::English);
        Self { stemmer, word: String::new(), before: None, knows_abbreviations, sink }
    }

    fn take(mut self, text: &str) {
        if text.is_ascii() {
            self.split(text.chars());
        } else {
            // One form for characters that look the same, such as those of full width.
            self.split(text.nfkc());
        }
    }

    fn split(&mut self, text: impl Iterator<Item = char> + Clone) {
        let mut previous = ' ';
        let mut rest = text;
        while let Some(char) = rest.next() {
            if is_unspaced(char) {
                self.end_word();
                self.pair(char);
                previous = char;
                continue;
            }
            let starts_word = char.is_uppercase()
                && (previous.is_lowercase() || previous.is_uppercase() && self.begins_word(rest.clone()));
            // A vowel's sign in Hindi is no letter, but in the middle of a word.
            let is_of_word = char.is_alphanumeric() || !char.is_ascii() && !self.word.is_empty() && is_mark(char);
            if !is_of_word || starts_word {
                self.end_word();
            }
            self.before = None;
            if is_of_word && self.word.len() < LONGEST_TERM {
                self.push(char);
            }
            previous = char;
        }
        self.end_word();
    }

    /// Does the last of several capitals begin a word, which goes on with `rest`? Not before the `s` of their plural.
    fn begins_word(&self, mut rest: impl Iterator<Item = char>) -> bool {
        match rest.next() {
            Some('s') if self.knows_abbreviations => rest.next().is_some_and(char::is_lowercase),
            next => next.is_some_and(char::is_lowercase),
        }
    }

    /// A character of a script without spaces, and with the one before it a pair.
    fn pair(&mut self, char: char) {
        if let Some(before) = self.before {
            (self.sink)(String::from_iter([before, char]).as_str());
        }
        (self.sink)(char.encode_utf8(&mut [0; 4]));
        self.before = Some(char);
    }

    fn push(&mut self, char: char) {
        if char.is_ascii() {
            self.word.push(char.to_ascii_lowercase());
        } else {
            char.to_lowercase().for_each(|char| fold(char, &mut self.word));
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.knows_abbreviations && is_plural_abbreviation(&self.word) {
            self.word.pop();
        }
        if self.word.is_ascii() {
            (self.sink)(&self.stemmer.stem(&self.word));
        } else {
            (self.sink)(&self.word);
        }
        self.word.clear();
    }
}

/// The stemmer leaves the `s` of a word without vowels; of such English has abbreviations alone.
fn is_plural_abbreviation(word: &str) -> bool {
    let is_consonant = |letter: u8| letter.is_ascii_lowercase() && !b"aeiouy".contains(&letter);
    word.len() > 2 && word.ends_with('s') && !word.ends_with("ss") && word.bytes().all(is_consonant)
}

fn is_mark(char: char) -> bool {
    matches!(
        get_general_category(char),
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark
    )
}

/// Is it of a script that writes no spaces between words, or, as Korean, joins them to what only serves the sentence?
fn is_unspaced(char: char) -> bool {
    matches!(char,
        '\u{0e01}'..='\u{0e4e}' // Thai
        | '\u{0e81}'..='\u{0ecd}' // Lao
        | '\u{1000}'..='\u{103f}' // Burmese
        | '\u{1780}'..='\u{17d3}' // Khmer
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}' // Japanese
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Chinese
        | '\u{20000}'..='\u{3ffff}'
        | '\u{ac00}'..='\u{d7a3}' // Korean
    )
}

/// A lower-case letter as people type it who have no key for its accent. Of other scripts than Latin and Greek a mark
/// makes another letter.
fn fold(char: char, word: &mut String) {
    let spelt = match char {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ı' => "i",
        'ς' => "σ",
        // The mark that is left of a dotted capital, or was never joined to its letter.
        '\u{300}'..='\u{36f}' => "",
        '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}' => {
            let mut is_first = true;
            decompose_canonical(char, |part| {
                if is_first {
                    word.push(part);
                }
                is_first = false;
            });
            return;
        }
        _ => {
            word.push(char);
            return;
        }
    };
    word.push_str(spelt);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        terms(text, |term| all.push(term.to_owned()));
        all
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(collect(text), expected, "terms of {text:?}");
    }

    #[test]
    fn splits_names_and_stems_words() {
        check("getPolyMarketEvents", &["get", "poli", "market", "event"]);
        check("reasoning_tree", &["reason", "tree"]);
        check("HTTPRequest v2", &["http", "request", "v2"]);
        check("OSserver SQLstore", &["o", "sserver", "sq", "lstore"]);
        check("Searching, searches!", &["search", "search"]);
        check(" ...", &[]);
    }

    #[test]
    fn plurals_of_abbreviations_are_known() {
        check("NFTs, PDFs (URLs) nfts", &["nft", "pdf", "url", "nft"]);
        check("listAPIsUsed APIs IDs", &["list", "api", "use", "api", "id"]);
        check("RSS css As is 30s", &["rss", "css", "as", "is", "30s"]);
        let mut kept = Vec::new();
        terms_without_plurals_of_abbreviations("NFTs of nfts", |term| kept.push(term.to_owned()));
        assert_eq!(kept, ["nf", "ts", "of", "nfts"]);
    }

    #[test]
    fn words_are_found_without_their_accents() {
        check("Genève GENEVE ｇｅｎｅｖｅ", &["genev", "genev", "genev"]);
        check("Größe Straße", &["gross", "strass"]);
        check("Ελλάδα Ἑλλάς", &["ελλαδα", "ελλασ"]);
        check("łódź Øre", &["lodz", "ore"]);
        // Here a mark makes another letter.
        check("йод иод", &["йод", "иод"]);
        check("हिन्दी भाषा", &["हिन्दी", "भाषा"]);
    }

    #[test]
    fn scripts_without_spaces_give_characters_and_pairs() {
        check("绿茶", &["绿", "绿茶", "茶"]);
        check("東京へ", &["東", "東京", "京", "京へ", "へ"]);
        check("학교에", &["학", "학교", "교", "교에", "에"]);
        check("喝tea茶", &["喝", "tea", "茶"]);
        check("ﾃｽﾄ", &["テ", "テス", "ス", "スト", "ト"]);
        let pairs = collect("ภาษาไทย");
        assert!(pairs.contains(&"ไท".to_owned()), "{pairs:?}");
        assert_eq!([lone("茶"), lone("绿茶"), lone("a")], [Some('茶'), None, None]);
    }

    proptest! {
        #[test]
        fn any_text_is_split(text in "\\PC{0,60}") {
            for term in collect(&text) {
                prop_assert!(!term.is_empty() && !term.contains(char::is_whitespace));
            }
        }
    }
}
