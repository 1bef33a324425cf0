//! Questions for a time, and the words that an answer to one has.
//!
//! "When did you move?" shares no word with "we got the keys last week", which is the answer to it more likely than
//! "I'd love to move" is: it names a time. Both are read in English.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::date_token::words;
use super::named_date::MONTHS;
use super::text::term_set;

/// A longer text asks for this and that.
pub(super) const MOST_WORDS: usize = 40;

/// Does a text ask when something was, or will be?
pub fn asks_for_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = words(&text);
    words.len() <= MOST_WORDS && (0..words.len()).any(|at| asks(&words[..at], &words[at..]))
}

/// Do the words from here on, which these stand before?
fn asks(before: &[&str], words: &[&str]) -> bool {
    match words {
        ["when"]
        | ["when", "exactly" | "precisely" | "else", ..]
        | ["when", "and" | "or", "where", ..]
        | ["how", "soon", ..]
        | ["how", "long", "ago", ..]
        | ["how", "long", "has", "it", "been", ..] => true,
        // "When we met" is no question, but what one is asked to say.
        ["when", next, ..] => ASKING.contains(next) || is_to_be_told(before),
        ["what" | "which", noun, rest @ ..] => NOUNS.contains(noun) && rest.first().is_none_or(|next| goes_on(next)),
        ["how", "many", noun, "ago", ..] => NOUNS.contains(noun),
        ["date", "of", "birth", ..] => before.contains(&"what"),
        ["date" | "dates" | "day" | "month" | "year", rest @ ..] => {
            is_asked_for(before) && rest.first().is_none_or(|next| matches!(*next, "for" | "again") || goes_on(next))
        }
        _ => false,
    }
}

/// "Tell me", "do you know", but not "what did she tell me".
fn is_to_be_told(before: &[&str]) -> bool {
    let is_asked = matches!(before, [.., "know"] | [.., "tell" | "remind" | "show" | "ask", "me" | "us"]);
    is_asked && !before.iter().any(|word| matches!(*word, "what" | "who" | "which" | "why" | "how" | "did"))
}

/// May this follow the noun of a question? "What time the meeting is", but not "what time zone".
fn goes_on(next: &str) -> bool {
    const SUBJECTS: [&str; 15] =
        ["of", "that", "this", "the", "i", "we", "you", "he", "she", "it", "they", "my", "our", "your", "to"];
    SUBJECTS.contains(&next) || ASKING.contains(&next)
}

/// "What is the", with a word more at most.
fn is_asked_for(before: &[&str]) -> bool {
    let before = before.strip_suffix(&["the"]).or_else(|| before.split_last()?.1.strip_suffix(&["the"]));
    before.is_some_and(|before| matches!(before, [.., "what", "is" | "s" | "are" | "was" | "were"]))
}

/// What follows "when" in a question.
const ASKING: [&str; 24] = [
    "am", "are", "can", "could", "d", "did", "do", "does", "had", "has", "have", "is", "ll", "may", "might", "must",
    "re", "s", "shall", "should", "was", "were", "will", "would",
];

const NOUNS: [&str; 11] =
    ["date", "dates", "day", "days", "month", "months", "time", "week", "weekend", "year", "years"];

/// Terms that name a time, as memories are found by them.
///
/// `may` is none: it mostly says something else.
pub fn time_terms() -> &'static HashSet<String> {
    static TERMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let words = "yesterday today tonight tomorrow last ago next recently week weekend month year \
            monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter \
            jan feb apr jun jul aug sep sept oct nov dec \
            morning afternoon evening noon midnight oclock pm";
        let months = MONTHS.into_iter().filter(|month| *month != "may").map(str::to_owned);
        let years = (1800..2100).map(|year: u16| year.to_string());
        let decades = (180..210).map(|decade: u16| format!("{decade}0s"));
        let hours = (1..=12).flat_map(|hour: u16| [format!("{hour}am"), format!("{hour}pm")]);
        let all = [words.to_owned()].into_iter().chain(months).chain(years).chain(decades).chain(hours);
        term_set(&all.collect::<Vec<_>>().join(" "))
    });
    &TERMS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::analysis;

    #[test]
    fn a_question_for_a_time_is_told_from_one_for_something_else() {
        for text in [
            "When did Anna move?",
            "when?",
            "When exactly was that",
            "When and where did they marry?",
            "when would you like to meet",
            "Since when have you known her",
            "And when's the party?",
            "do you know when Anna moved?",
            "remind me when my flight leaves",
            "do you know what time the meeting is?",
            "remind me what day we said",
            "what was the date we met?",
            "In which month was the race?",
            "what year did they marry",
            "What years were they in Rome?",
            "which day?",
            "what time is the meeting?",
            "How long ago was that?",
            "how many years ago did they move",
            "how soon is the launch?",
            "What was the date of the trip?",
            "what's the due date",
            "what were the exact dates?",
            "What is Anna's date of birth?",
            "WHEN WILL we meet",
        ] {
            assert!(asks_for_time(text), "{text}");
        }
        for text in [
            "What did you say when we met?",
            "when we met, who was there?",
            "do you remember when it rained?",
            "what did Anna tell me when we met?",
            "who helped me when I moved?",
            "What is the name of his dog?",
            "whenever is fine",
            "How long is the river?",
            "what time zone is Anna in",
            "which time series database do we use",
            "what date format should I use",
            "what is the day rate",
            "what was the day in Rome like",
            "tell me of the day in Rome",
            "what did she do in the summer?",
            "",
        ] {
            assert!(!asks_for_time(text), "{text}");
        }
        assert!(!asks_for_time(&format!("{} when did we move?", "word ".repeat(MOST_WORDS))));
    }

    #[test]
    fn a_time_is_named_by_its_words_in_any_form() {
        let has = |text: &str| {
            let mut has = false;
            analysis::terms_without_plurals_of_abbreviations(text, |term| has |= time_terms().contains(term));
            has
        };
        for text in [
            "we got the keys last week",
            "Yesterday!",
            "two years ago",
            "on Fridays",
            "born in 1948",
            "in the 1990s",
            "recently",
            "at 3pm",
            "Oct 3",
            "in October",
        ] {
            assert!(has(text), "{text}");
        }
        for text in ["I'd love to move", "you may", "I am late", "the sun", "5 apples", "room 12345", ""] {
            assert!(!has(text), "{text}");
        }
    }
}
