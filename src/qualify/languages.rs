//! What a message in another language says in English, as far as a small dictionary knows: documents are English, and
//! without a model nothing else would join the two.
//!
//! Words stand for words; no grammar is known, and none is needed to find a tool. The language is told by the script,
//! and within the Latin one by the words that only serve the sentence, so that English stays as it is. Chinese and
//! Japanese are cut into the longest words that the dictionary has. Words that it does not have are kept where they may
//! be names, and else left out; names in capitals stay what they are.

mod chat;
mod dictionary;

use std::borrow::Cow;

use dictionary::{Dictionary, Language};

use super::{clauses, follow_up};
use crate::text::embedding::Table;
use crate::text::{analysis, stop_words};

/// Letters that may follow a stem.
const MOST_SUFFIX: usize = 6;

/// Known words that tell a language where none only serves the sentence.
const TELLING_WORDS: usize = 3;

/// Meanings of words that stand alone in every language.
const ANSWERS: [&str; 4] = ["yes", "no", "more", "thanks"];

/// A stretch of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch<'t> {
    Word(&'t str),
    /// What stands between words.
    Between(&'t str),
}

impl<'t> Stretch<'t> {
    fn word(self) -> Option<&'t str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Between(_) => None,
        }
    }

    fn text(self) -> &'t str {
        let (Self::Word(text) | Self::Between(text)) = self;
        text
    }

    /// May it stand inside a word that is written apart?
    fn joins(self) -> bool {
        matches!(self, Self::Between(" " | "-" | "'" | "\u{2019}"))
    }
}

/// The same as [`dictionary::fold`], without a copy of most words.
fn folded(word: &str) -> Cow<'_, str> {
    let is_folded = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_folded { word.into() } else { dictionary::fold(word).into() }
}

/// A word of the dictionary's form: one that is written apart has hyphens.
fn fold(word: &str) -> String {
    const APART: [char; 3] = [' ', '\'', '\u{2019}'];
    let folded = dictionary::fold(word);
    if folded.contains(APART) { folded.replace(APART, "-") } else { folded }
}

/// The text in English, word by word; the text itself if it is written in English, or of a language that is not known.
pub(super) fn in_english(text: &str) -> Cow<'_, str> {
    match language(text) {
        Some(language) => translate(text, language).into(),
        None => chat::written_out(text),
    }
}

fn language(text: &str) -> Option<Language> {
    if !text.is_ascii()
        && let Some(language) = by_script(text)
    {
        return Some(language);
    }
    by_words(text)
}

/// The language of the script that most letters are of, if it is not the Latin one.
fn by_script(text: &str) -> Option<Language> {
    let (mut counts, mut latin, mut has_kana) = ([0_usize; 5], 0, false);
    for char in text.chars() {
        let place = match char {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => {
                latin += 1;
                continue;
            }
            '\u{3041}'..='\u{30fe}' => {
                has_kana = true;
                0
            }
            '\u{4e00}'..='\u{9fff}' => 0,
            '\u{900}'..='\u{97f}' => 1,
            '\u{600}'..='\u{6ff}' => 2,
            '\u{980}'..='\u{9ff}' => 3,
            '\u{400}'..='\u{4ff}' => 4,
            _ => continue,
        };
        counts[place] += 1;
    }
    let place = (0..counts.len()).max_by_key(|&place| counts[place])?;
    // Of scripts without spaces a letter is half a word.
    let weight = if place == 0 { 4 } else { 2 };
    if counts[place] * weight <= latin {
        return None;
    }
    Some(match place {
        0 if has_kana => Language::Japanese,
        0 => Language::Chinese,
        1 => Language::Hindi,
        2 => Language::Arabic,
        3 => Language::Bengali,
        _ => Language::Russian,
    })
}

/// The language that explains more of the words than English does. Single letters and names tell of none; nor do words
/// that are English as well, unless others bear them out.
fn by_words(text: &str) -> Option<Language> {
    let dictionary = Dictionary::shipped();
    let (mut words, mut english) = (0, 0);
    let (mut known, mut serving, mut telling) = ([0_usize; 4], [0_usize; 4], [0_usize; 4]);
    for word in stretches(text).into_iter().filter_map(Stretch::word) {
        words += 1;
        if word.len() < 2 || words > 1 && word.starts_with(char::is_uppercase) {
            continue;
        }
        let folded = fold(word);
        let is_english = stop_words::is_word(&folded) || is_said_in_english(&folded);
        if !dictionary.may_be_latin(&folded) {
            english += usize::from(is_english);
            continue;
        }
        let (mut is_foreign, mut may_be_english) = (false, None);
        for (place, language) in Language::LATIN.into_iter().enumerate() {
            let Some(meaning) = dictionary.meaning(language, &folded) else { continue };
            is_foreign = true;
            if !is_english && !is_cognate(&folded, meaning) {
                known[place] += 1;
                serving[place] += usize::from(meaning.is_empty());
                let may_be_english = *may_be_english.get_or_insert_with(|| is_known_in_english(word));
                telling[place] += usize::from(!may_be_english || ANSWERS.contains(&meaning));
            }
        }
        english += usize::from(is_english && !is_foreign);
    }
    // Of two that explain as much the first stands.
    let place = (0..known.len()).rev().max_by_key(|&place| (known[place], serving[place]))?;
    let (known, serving, is_telling) = (known[place], serving[place], telling[place] > 0);
    let is_told = match (english, serving) {
        (0, 0) => is_telling && (known >= TELLING_WORDS || !text.is_ascii() || known == words),
        _ => serving > 0 && (known >= 2 || known == words && is_telling),
    };
    (known > english && is_told).then_some(Language::LATIN[place])
}

/// Is a folded word one with which English asks, or agrees?
fn is_said_in_english(word: &str) -> bool {
    clauses::is_verb(word) || follow_up::is_word(word)
}

/// Is a word, or what it is a form of, one that the table of meanings has? It was made of English.
fn is_known_in_english(word: &str) -> bool {
    let table = Table::shipped();
    // Accents are of other languages.
    word.is_ascii()
        && (table.is_word(word) || {
            let (mut count, mut all) = (0, true);
            analysis::terms(word, |term| (count, all) = (count + 1, all && table.is_word(term)));
            count > 0 && all
        })
}

/// Is a word so like what it means that it may as well be English?
fn is_cognate(word: &str, meaning: &str) -> bool {
    meaning.split(' ').any(|meaning| meaning == word || word.get(..4).is_some_and(|stem| meaning.starts_with(stem)))
}

fn translate(text: &str, language: Language) -> String {
    let dictionary = Dictionary::shipped();
    let mut english = String::with_capacity(text.len());
    let mut is_first = true;
    for piece in stretches(text) {
        match piece {
            Stretch::Between(between) => english.push_str(&between.replace(['。', '？', '！', '؟', '।'], ". ")),
            Stretch::Word(word) if is_name(word, language, is_first) => push(&mut english, word),
            Stretch::Word(word) if language.has_spaces() => match dictionary.meaning_of_any(language, &fold(word)) {
                Some(meaning) => push(&mut english, &meaning),
                None if language.is_latin() => push(&mut english, word),
                None => {}
            },
            Stretch::Word(run) => {
                for meaning in dictionary.cut(language, run) {
                    push(&mut english, meaning);
                }
            }
        }
        is_first &= matches!(piece, Stretch::Between(_));
    }
    english
}

fn push(english: &mut String, word: &str) {
    if !word.is_empty() && english.ends_with(|last: char| !last.is_whitespace()) {
        english.push(' ');
    }
    english.push_str(word);
}

/// Words in capitals, and those of another script than the language's, are names; so are words with a capital inside a
/// sentence, but in German, where every noun has one.
fn is_name(word: &str, language: Language, is_first: bool) -> bool {
    if !language.is_latin() {
        return word.is_ascii();
    }
    let mut letters = word.chars();
    let begins = letters.next().is_some_and(char::is_uppercase);
    let capitals = begins && word.chars().count() > 1 && letters.clone().all(|letter| !letter.is_lowercase());
    capitals || begins && !is_first && language != Language::German && letters.any(char::is_lowercase)
}

/// Parts of a word that is written apart.
const PARTS: usize = 3;

/// The words of a text, and what stands between them; those that a language writes apart are one: `tipo de cambio`,
/// `d'accord`.
fn stretches(text: &str) -> Vec<Stretch<'_>> {
    let dictionary = Dictionary::shipped();
    let mut all: Vec<Stretch<'_>> = Vec::new();
    // Where each begins.
    let (mut starts, mut at) = (Vec::new(), 0);
    for piece in pieces(text) {
        starts.push(at);
        at += piece.text().len();
        all.push(piece);
        let joined = (2..=PARTS).rev().find_map(|parts| {
            let first = all.len().checked_sub(2 * parts - 1)?;
            let is_apart = all[first..].iter().all(|part| part.word().is_some() || part.joins());
            let begins = all[first].word().filter(|_| is_apart)?;
            let is_known = dictionary.may_go_on(&folded(begins)) && {
                let words: Vec<_> = all[first..].iter().filter_map(|part| part.word()).map(dictionary::fold).collect();
                dictionary.is_latin_word(&words.join("-"))
            };
            is_known.then_some(first)
        });
        if let Some(first) = joined {
            all.truncate(first + 1);
            starts.truncate(first + 1);
            all[first] = Stretch::Word(&text[starts[first]..at]);
        }
    }
    all
}

/// The words of a text, and what stands between them; the letters of one script in a row are a word.
fn pieces(text: &str) -> impl Iterator<Item = Stretch<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = kind(rest.chars().next()?);
        let end = rest.char_indices().find(|(_, char)| kind(*char) != first).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(if first == 0 { Stretch::Between(piece) } else { Stretch::Word(piece) })
    })
}

/// 0 for what is of no word, 1 for letters and digits of ASCII and of Latin, 2 for all others with their marks.
fn kind(char: char) -> u8 {
    match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '\u{c0}'..='\u{24f}' | '_' | '\u{300}'..='\u{36f}' => 1,
        '\u{900}'..='\u{963}' | '\u{980}'..='\u{9e3}' | '\u{64b}'..='\u{652}' | '\u{30fc}' => 2,
        _ if char.is_alphanumeric() => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let english = in_english(text);
        assert_eq!(english.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{text:?}");
    }

    #[test]
    fn what_is_typed_in_a_chat_is_put_into_english_too() {
        assert_eq!(in_english("tysm"), "thanks so much");
        assert_eq!(in_english("whats the tvl"), "what is the tvl");
    }

    #[test]
    fn ten_languages_are_read_word_by_word() {
        check("¿Qué tiempo hace mañana en Madrid?", "¿ weather hace tomorrow Madrid?");
        check("Wie wird das Wetter morgen in Berlin?", "weather tomorrow Berlin?");
        check("Traduis ce texte en anglais", "translate text english");
        check("Envie um email para a Ana", "send mail email Ana");
        check("Какая погода завтра в Москве?", "what weather tomorrow ?");
        check("明天北京的天气怎么样？", "tomorrow weather how.");
        check("東京の天気を教えて", "weather get");
        check("कल मौसम कैसा है", "tomorrow weather how");
        check("ما هو الطقس غدا", "weather tomorrow");
        check("আজ আবহাওয়া কেমন", "today weather how");
    }

    #[test]
    fn english_stays_as_it_is() {
        for text in [
            "",
            "What's hot on Polymarket?",
            "swap 2 SOL for USDC on Base",
            "die roll with an on site plan",
            "Translate 'buenos dias' to English for me please",
            "Find me a café near the Champs-Élysées",
            "base gas price",
            "hotels in Kyoto under a hundred dollars",
            "list c drive",
            "list file in desktop using dir Desktop",
            "tool prompt \"Find a recent news article\"",
            "Find me a hotel in Los Angeles.",
            "restaurants near me with Chinese cuisine in Seattle",
            "a man wearing a red dress",
            "rename src/main.rs to lib.rs",
            // Words that stand alone, though other languages have them, or begin with theirs.
            "lights",
            "Trending?",
            "leverage",
            "time",
            "plane",
            "louder",
            "location",
            "holders",
            "holdings and holidays",
            "articles",
            "trending holders location",
            "ai",
            "war",
        ] {
            assert!(matches!(in_english(text), Cow::Borrowed(_)), "{text:?} became {:?}", in_english(text));
        }
    }

    #[test]
    fn a_word_alone_is_understood_where_english_has_none_like_it() {
        check("Wetter", "weather");
        check("vuelos?", "flight?");
        check("precio", "price");
        check("notícias", "news");
        check("école", "school university");
        check("prix billets", "price ticket");
        check("sim", "yes");
        check("ja", "yes");
        check("vale", "yes");
        check("mas", "more");
        check("bitte", "");
    }

    #[test]
    fn names_are_no_words() {
        check("¿Cuál es el precio de SOL?", "¿ what price SOL?");
        check("我想买 SOL", "buy SOL");
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_bounded_one(text in "\\PC{0,80}") {
            prop_assert!(in_english(&text).len() <= 40 * text.len() + 40);
        }
    }
}
