//! Questions for a time, and the words that an answer to one has.
//!
//! "When did you move?" shares no word with "we got the keys last week", which is the answer to it more likely than
//! "I'd love to move" is: it names a time. Both are read in English.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::named_date::year;
use crate::text::analysis;

/// Does a text ask when something was, or will be?
pub fn asks_for_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    (0..words.len()).any(|at| match &words[at..] {
        ["when"] | ["how", "long", "ago", ..] => true,
        // "When we met" is no question.
        ["when", next, ..] => ASKING.contains(next),
        ["what" | "which", noun, ..] => NOUNS.contains(noun),
        ["date" | "day" | "month" | "year", ..] => {
            matches!(&words[..at], [.., "what", "is" | "s" | "was" | "were", "the"])
        }
        _ => false,
    })
}

/// Does a term, as memories are found by it, name a time?
pub fn names_time(term: &str) -> bool {
    TIME_WORDS.contains(term) || year(term).is_some()
}

/// What follows "when" in a question.
const ASKING: [&str; 22] = [
    "am", "are", "can", "could", "d", "did", "do", "does", "had", "has", "have", "is", "ll", "may", "might", "must",
    "re", "s", "should", "was", "were", "will",
];

const NOUNS: [&str; 9] = ["date", "day", "month", "months", "season", "time", "week", "weekend", "year"];

/// Stemmed.
static TIME_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mut words = HashSet::new();
    analysis::terms(
        "yesterday today tonight tomorrow last ago next recently lately week weekend month year \
         monday tuesday wednesday thursday friday saturday sunday spring summer winter \
         january february march april june july august september october november december",
        |term| {
            words.insert(term.to_owned());
        },
    );
    words
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_for_a_time_is_told_from_one_for_something_else() {
        for text in [
            "When did Anna move?",
            "when?",
            "Since when have you known her",
            "And when's the party?",
            "In which month was the race?",
            "what year did they marry",
            "How long ago was that?",
            "What was the date of the trip?",
            "WHEN WILL we meet",
        ] {
            assert!(asks_for_time(text), "{text}");
        }
        for text in [
            "What did you say when we met?",
            "when we met, who was there?",
            "What is the name of his dog?",
            "whenever is fine",
            "How long is the river?",
            "tell me of the day in Rome",
            "what did she do in the summer?",
            "",
        ] {
            assert!(!asks_for_time(text), "{text}");
        }
    }

    #[test]
    fn a_time_is_named_by_its_words_in_any_form() {
        let has = |text: &str| {
            let mut has = false;
            analysis::terms(text, |term| has |= names_time(term));
            has
        };
        for text in ["we got the keys last week", "Yesterday!", "two years ago", "on Fridays", "in 2022", "recently"] {
            assert!(has(text), "{text}");
        }
        for text in ["I'd love to move", "you may", "the sun", "5 apples", "room 12345", ""] {
            assert!(!has(text), "{text}");
        }
    }
}
