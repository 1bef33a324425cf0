//! Text to index terms: names are split (`getUserName`, `get_user_name`), words lower-cased and stemmed.

use frostem::{Algorithm, Stemmer};

/// Terms of more characters than this are cut: nobody types them, and they would only cost memory.
const LONGEST_TERM: usize = 40;

/// Calls `sink` with each term of `text`, in order, repeats kept.
pub fn terms(text: &str, mut sink: impl FnMut(&str)) {
    let stemmer = Stemmer::new(Algorithm::English);
    let mut word = String::new();
    let mut previous = ' ';
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        let starts_word = char.is_uppercase()
            && (previous.is_lowercase()
                || previous.is_uppercase() && rest.peek().is_some_and(|next| next.is_lowercase()));
        if (!char.is_alphanumeric() || starts_word) && !word.is_empty() {
            emit(&stemmer, &mut word, &mut sink);
        }
        if char.is_alphanumeric() && word.len() < LONGEST_TERM {
            word.extend(char.to_lowercase());
        }
        previous = char;
    }
    if !word.is_empty() {
        emit(&stemmer, &mut word, &mut sink);
    }
}

fn emit(stemmer: &Stemmer, word: &mut String, sink: &mut impl FnMut(&str)) {
    if word.is_ascii() {
        sink(&stemmer.stem(word));
    } else {
        sink(word);
    }
    word.clear();
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
        check("Searching, searches!", &["search", "search"]);
        check("Größe Ελλάδα 東京", &["größe", "ελλάδα", "東京"]);
        check(" ...", &[]);
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
