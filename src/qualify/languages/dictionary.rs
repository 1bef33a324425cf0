//! The words of ten languages, and what they mean in English.

use std::sync::LazyLock;

use foldhash::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::MOST_SUFFIX;

/// A meaning a line, with its words in each language.
const WORDS: &str = include_str!("words.txt");

/// Longest word of Chinese and Japanese that is looked for, in characters.
const LONGEST: usize = 12;

/// Fewest letters of a stem; shorter ones would be the beginnings of too many words.
const LEAST_STEM: usize = 3;

/// Fewest letters of what is left of an Arabic word without the small words that are written with it.
const LEAST_ARABIC: usize = 3;

/// Small words that Arabic writes together with the next one.
const ARABIC_PREFIXES: [&str; 9] = ["وال", "بال", "كال", "فال", "ال", "لل", "و", "ب", "ل"];

/// A language that messages come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Chinese,
    Spanish,
    Hindi,
    Arabic,
    Bengali,
    Portuguese,
    Russian,
    Japanese,
    German,
    French,
}

impl Language {
    /// In the order of the table's columns.
    const ALL: [Self; 10] = [
        Self::Chinese,
        Self::Spanish,
        Self::Hindi,
        Self::Arabic,
        Self::Bengali,
        Self::Portuguese,
        Self::Russian,
        Self::Japanese,
        Self::German,
        Self::French,
    ];

    /// Those that English shares its letters with.
    pub(super) const LATIN: [Self; 4] = [Self::Spanish, Self::Portuguese, Self::German, Self::French];

    pub(super) fn is_latin(self) -> bool {
        Self::LATIN.contains(&self)
    }

    /// Does it write spaces between words?
    pub(super) fn has_spaces(self) -> bool {
        !matches!(self, Self::Chinese | Self::Japanese)
    }
}

/// A word's meaning, and whether other endings may follow it.
#[derive(Debug, Clone, Copy)]
struct Meaning {
    english: &'static str,
    is_stem: bool,
}

/// The words of all languages.
pub(super) struct Dictionary {
    words: [HashMap<String, Meaning>; 10],
    /// How those of the Latin script begin, as far as stems must be known: most words of English begin otherwise.
    beginnings: HashSet<[u8; LEAST_STEM]>,
    /// First words of those of the Latin script that are written apart.
    apart: HashSet<String>,
}

static SHIPPED: LazyLock<Dictionary> = LazyLock::new(|| Dictionary::read(WORDS));

impl Dictionary {
    pub(super) fn shipped() -> &'static Self {
        &SHIPPED
    }

    fn read(text: &'static str) -> Self {
        let mut words: [HashMap<String, Meaning>; 10] = std::array::from_fn(|_| HashMap::default());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut columns = line.split('|');
            let english = columns.next().filter(|english| *english != "-").unwrap_or_default();
            for (words, column) in words.iter_mut().zip(columns) {
                for word in column.split_whitespace() {
                    let (stem, is_stem) = word.strip_suffix('*').map_or((word, false), |stem| (stem, true));
                    // Of two meanings the first stands.
                    words.entry(fold(stem)).or_insert(Meaning { english, is_stem });
                }
            }
        }
        let latin = Language::ALL.iter().zip(&words).filter(|(language, _)| language.is_latin());
        let latin: Vec<&String> = latin.flat_map(|(_, words)| words.keys()).collect();
        let beginnings = latin.iter().filter_map(|word| beginning_of(word)).collect();
        let apart = latin.iter().filter_map(|word| Some(word.split_once('-')?.0.to_owned())).collect();
        Self { words, beginnings, apart }
    }

    /// May a folded word be the first of one that is written apart, such as `vas` of `vas-y`?
    pub(super) fn may_go_on(&self, word: &str) -> bool {
        self.apart.contains(word)
    }

    /// Has any language of the Latin script this very word?
    pub(super) fn is_latin_word(&self, word: &str) -> bool {
        Language::LATIN.into_iter().any(|language| self.words(language).contains_key(word))
    }

    /// May a folded word be of a language in the Latin script? Most that are not are told here.
    pub(super) fn may_be_latin(&self, word: &str) -> bool {
        beginning_of(word).is_none_or(|beginning| self.beginnings.contains(&beginning))
    }

    fn words(&self, language: Language) -> &HashMap<String, Meaning> {
        &self.words[Language::ALL.iter().position(|one| *one == language).unwrap_or_default()]
    }

    /// What a folded word means; empty for what only serves the sentence.
    pub(super) fn meaning(&self, language: Language, word: &str) -> Option<&'static str> {
        self.beginning(language, word, MOST_SUFFIX).map(|(english, _)| english)
    }

    /// The same, where a word may be joined from several: the meanings of its parts.
    pub(super) fn meaning_of_any(&self, language: Language, word: &str) -> Option<String> {
        if let Some(english) = self.meaning(language, word) {
            return Some(english.to_owned());
        }
        match language {
            Language::Arabic => {
                let bare = ARABIC_PREFIXES.iter().filter_map(|prefix| word.strip_prefix(prefix));
                let mut bare = bare.filter(|bare| bare.chars().count() >= LEAST_ARABIC);
                bare.find_map(|bare| self.meaning(language, bare)).map(str::to_owned)
            }
            Language::German => {
                let (english, length) = self.beginning(language, word, usize::MAX)?;
                let rest = &word[length..];
                let rest = self.meaning(language, rest).or_else(|| self.meaning(language, rest.strip_prefix('s')?));
                Some(format!("{english} {}", rest.unwrap_or_default()).trim().to_owned())
            }
            _ => None,
        }
    }

    /// The longest beginning of the word that is known, with so many letters behind it at most, and its length in
    /// bytes.
    fn beginning(&self, language: Language, word: &str, most: usize) -> Option<(&'static str, usize)> {
        let words = self.words(language);
        if let Some(whole) = words.get(word) {
            return Some((whole.english, word.len()));
        }
        let ends = word.char_indices().skip(LEAST_STEM).map(|(at, _)| at).collect::<Vec<_>>();
        ends.into_iter().rev().take(most).find_map(|end| {
            let stem = words.get(&word[..end]).filter(|stem| stem.is_stem)?;
            Some((stem.english, end))
        })
    }

    /// The meanings of the words of a text that is written without spaces, the longest first.
    pub(super) fn cut(&self, language: Language, run: &str) -> Vec<&'static str> {
        let words = self.words(language);
        let run = fold(run);
        let (mut rest, mut meanings) = (run.as_str(), Vec::new());
        while !rest.is_empty() {
            let ends = rest.char_indices().map(|(at, char)| at + char.len_utf8()).take(LONGEST).collect::<Vec<_>>();
            let known = ends.iter().rev().find_map(|&end| Some((words.get(&rest[..end])?.english, end)));
            let (english, end) = known.unwrap_or(("", ends[0]));
            meanings.push(english);
            rest = &rest[end..];
        }
        meanings.retain(|english| !english.is_empty());
        meanings
    }
}

/// How a word of plain letters begins; nothing of a shorter or another one, which may be anything.
fn beginning_of(word: &str) -> Option<[u8; LEAST_STEM]> {
    word.as_bytes().first_chunk().copied().filter(|_| word.is_ascii())
}

/// Lower-case, without the accents of Latin letters and the vowel marks of Arabic; its letters are written in one way.
pub(super) fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(word.len());
    let keeps_marks = word.chars().any(|char| matches!(char, '\u{900}'..='\u{9ff}' | '\u{3041}'..='\u{30fe}'));
    if keeps_marks {
        return word.nfc().collect();
    }
    for char in word.to_lowercase().nfd().filter(|char| !is_combining_mark(*char)) {
        match char {
            'ß' => folded.push_str("ss"),
            'أ' | 'إ' | 'آ' => folded.push('ا'),
            'ة' => folded.push('ه'),
            'ى' => folded.push('ي'),
            _ => folded.push(char),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_all_languages() {
        for line in WORDS.lines().filter(|line| !line.starts_with('#')) {
            assert_eq!(line.split('|').count(), 1 + Language::ALL.len(), "{line}");
            assert!(line.split('|').all(|column| !column.trim().is_empty()), "{line}");
        }
    }

    #[test]
    fn whatever_a_language_of_the_latin_script_knows_passes() {
        let dictionary = Dictionary::shipped();
        for word in Language::LATIN.into_iter().flat_map(|language| dictionary.words(language).keys()) {
            // Endings follow stems only.
            let endings = if word.len() < LEAST_STEM { &[""][..] } else { &["", "es", "ing"] };
            assert!(endings.iter().all(|ending| dictionary.may_be_latin(&format!("{word}{ending}"))), "{word}");
        }
        assert!(!dictionary.may_be_latin("weather"));
    }

    fn check(language: Language, word: &str, expected: Option<&str>) {
        let meaning = Dictionary::shipped().meaning_of_any(language, &fold(word));
        assert_eq!(meaning.as_deref(), expected, "{word}");
    }

    #[test]
    fn endings_and_joined_words_are_understood() {
        check(Language::Spanish, "envíame", Some("send"));
        check(Language::German, "Wettervorhersage", Some("weather forecast"));
        check(Language::Russian, "погоду", Some("weather"));
        check(Language::Arabic, "والطقس", Some("weather"));
        check(Language::French, "xyzzy", None);
    }
}
