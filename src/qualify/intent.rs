//! What the user is after, as a phrase: of a tool's document, where one says what the message does, else the message's
//! own.
//!
//! A use case's title is what somebody else wanted of the tool. It is true to a message if each says what the other
//! does, word by word: by the same stem, or by a like meaning; or if all of the case says what the message does. Names
//! of networks, categories and assets are left out of that, since "buy a token with SOL" and "the price of SOL" share
//! nothing else.

use super::explanation::matching_case;
use super::follow_up;
use super::message::{MAX_BYTES, Message};
use super::stop_words;
use crate::catalog::Entry;
use crate::text::analysis;
use crate::text::embedding::Vector;
use crate::text::head::head;

/// Characters of a message that can stand for its intent; a longer one is no phrase.
const LONGEST: usize = 100;

/// How true a phrase must be, 0 to 1. Below, titles say what nobody asked for; above, hardly one is left.
const LEAST_TRUE: f32 = 0.5;

/// What each further tool's phrases must be truer.
const LATER_TOOL: f32 = 0.03;

/// How much of the message a use case must have, 0 to 1, for its title to stand for it.
const LEAST_TOLD: f32 = 0.8;

/// Telling words of a text that are compared.
const MOST_WORDS: usize = 24;

/// The text that an intent is looked for.
pub(super) struct Wish<'a> {
    pub(super) text: &'a str,
    /// The same, analysed.
    pub(super) message: &'a Message,
    /// For each of its words, split at whatever is no letter and no digit: is it of a name that says where, not what?
    pub(super) names: &'a [bool],
    /// Does it go on with what was said before? Then it is no phrase of its own.
    pub(super) is_follow_up: bool,
}

/// A word that tells what a text is about.
struct Telling {
    term: String,
    meaning: Vector,
}

/// The truest phrase of the best tools, the best first. `names` marks the words of a phrase as [`Wish::names`] does.
pub(super) fn intent<'e>(
    wish: &Wish<'_>,
    best: impl IntoIterator<Item = &'e Entry>,
    names: impl Fn(&str) -> Vec<bool>,
) -> Option<String> {
    let said = telling(wish.text, wish.names);
    let mut truest: Option<(f32, String)> = None;
    let (mut told, mut title) = (None, None);
    for (place, entry) in (0_u8..).zip(best) {
        let document = entry.document();
        let phrases = document.use_cases.iter().map(|case| &case.title).chain([&document.title]);
        for phrase in phrases.map(|phrase| trimmed(phrase)).filter(|phrase| !phrase.is_empty()) {
            let truth = truth(&telling(phrase, &names(phrase)), &said) - LATER_TOOL * f32::from(place);
            if truth >= LEAST_TRUE && truest.as_ref().is_none_or(|(most, _)| truth > *most) {
                truest = Some((truth, phrase.to_owned()));
            }
        }
        told = told.or_else(|| {
            let case = matching_case(entry, wish.message)?;
            let whole = format!("{} {} {}", case.title, case.when_to_use, case.example);
            let tells = !said.is_empty() && covered(&said, &telling(&whole, &names(&whole))) >= LEAST_TOLD;
            tells.then(|| trimmed(&case.title).to_owned()).filter(|title| !title.is_empty())
        });
        title = title.or(Some(document.title));
    }
    let own = || {
        let own = if wish.is_follow_up { title.unwrap_or_default() } else { wish.text.to_owned() };
        let own = trimmed(&own);
        let is_phrase = !own.is_empty() && own.chars().count() <= LONGEST && !own.contains(char::is_control);
        is_phrase.then(|| own.to_owned())
    };
    truest.map(|(_, phrase)| phrase).or(told).or_else(own)
}

fn trimmed(phrase: &str) -> &str {
    phrase.trim().trim_end_matches(['.', '?', '!']).trim_end()
}

/// How far each says what the other does, 0 to 1; 0 if one says nothing.
fn truth(phrase: &[Telling], said: &[Telling]) -> f32 {
    if phrase.is_empty() || said.is_empty() {
        return 0.0;
    }
    f32::midpoint(covered(phrase, said), covered(said, phrase))
}

/// How far the words of `one` are in `other`, on average.
fn covered(one: &[Telling], other: &[Telling]) -> f32 {
    let similarity = |a: &Telling, b: &Telling| if a.term == b.term { 1.0 } else { a.meaning.dot(&b.meaning) };
    let nearest = |word: &Telling| other.iter().map(|other| similarity(word, other)).fold(0.0, f32::max);
    one.iter().map(nearest).sum::<f32>() / one.len() as f32
}

fn telling(text: &str, names: &[bool]) -> Vec<Telling> {
    let has_plain_words = text.chars().any(char::is_lowercase);
    let mut words: Vec<Telling> = Vec::new();
    for (place, word) in follow_up::split(head(text, MAX_BYTES)).enumerate() {
        let is_name =
            word.starts_with(|char: char| char.is_ascii_digit()) || follow_up::is_asset(word, has_plain_words);
        if words.len() >= MOST_WORDS || is_name || names.get(place).copied().unwrap_or_default() {
            continue;
        }
        let mut term = String::new();
        analysis::terms(word, |part| term.push_str(part));
        if !stop_words::is_stop_word(&term) && !words.iter().any(|known| known.term == term) {
            words.push(Telling { term, meaning: Message::new(word).vector });
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::catalog::ToolMetadata;
    use crate::catalog::document::UseCase;

    fn check(text: &str, is_follow_up: bool, expected: Option<&str>) {
        let entry = |title: &str, case: &str, example: &str| {
            let case = UseCase { title: case.into(), example: example.into(), ..UseCase::default() };
            let document = ToolMetadata { title: title.into(), use_cases: vec![case], ..ToolMetadata::default() };
            Entry::new(&document, Path::new("x").into())
        };
        let tools = [
            entry("Token Swap", "Buy a token with SOL", "ape 1 SOL into it"),
            entry("Token Price", "Price of one coin", ""),
            entry("Events", "Finding trending prediction market events.", "what is hot on Polymarket"),
        ];
        let names =
            |text: &str| follow_up::split(text).map(|word| ["SOL", "Polymarket"].contains(&word)).collect::<Vec<_>>();
        let wish = Wish { text, message: &Message::new(text), names: &names(text), is_follow_up };
        assert_eq!(intent(&wish, &tools, names).as_deref(), expected, "{text:?}");
    }

    #[test]
    fn a_phrase_is_true_to_the_message() {
        check("What's the price of SOL?", false, Some("Price of one coin"));
        check("What's hot on Polymarket?", false, Some("Finding trending prediction market events"));
        check("I want to buy a token", false, Some("Buy a token with SOL"));
    }

    #[test]
    fn without_one_the_message_speaks_for_itself() {
        check("Compose a lullaby in Welsh!", false, Some("Compose a lullaby in Welsh"));
        check("Compose a lullaby in Welsh!", true, Some("Token Swap"));
        check("", false, None);
        check(&"lullaby ".repeat(50), false, None);
    }
}
