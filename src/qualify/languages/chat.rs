//! English as it is typed in a chat, written out: "gm", "tysm", "whats ur tvl".
//!
//! Neither a table of meanings nor a document knows such words, so "tysm" would be the name of an asset, and "u" what
//! the message is about.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldhash::HashMap;

/// Words of a text that is typed in a chat, at most; of a longer one they may be names of a program's variables.
const MOST: usize = 30;

/// What is typed, and what it stands for.
const TYPED: [(&str, &str); 62] = [
    ("afaik", "as far as I know"),
    ("arent", "aren't"),
    ("atm", "at the moment"),
    ("b4", "before"),
    ("bbl", "bye"),
    ("btw", "by the way"),
    ("cant", "can't"),
    ("coulda", "could have"),
    ("cuz", "because"),
    ("cya", "bye"),
    ("didnt", "didn't"),
    ("doesnt", "doesn't"),
    ("dont", "don't"),
    ("dunno", "don't know"),
    ("gimme", "give me"),
    ("gm", "good morning"),
    ("gn", "good night"),
    ("gonna", "going to"),
    ("gotta", "have to"),
    ("gtg", "bye"),
    ("havent", "haven't"),
    ("hbu", "how about you"),
    ("hows", "how is"),
    ("idc", "I don't care"),
    ("idk", "I don't know"),
    ("im", "I'm"),
    ("imo", "in my opinion"),
    ("isnt", "isn't"),
    ("ive", "I've"),
    ("jk", "just kidding"),
    ("lemme", "let me"),
    ("lets", "let's"),
    ("lmk", "let me know"),
    ("ngl", "honestly"),
    ("np", "no problem"),
    ("nvm", "never mind"),
    ("omw", "on my way"),
    ("pls", "please"),
    ("plz", "please"),
    ("rn", "right now"),
    ("rofl", "haha"),
    ("smth", "something"),
    ("sup", "what's up"),
    ("tbh", "to be honest"),
    ("thats", "that's"),
    ("thnx", "thanks"),
    ("thx", "thanks"),
    ("tmr", "tomorrow"),
    ("tmrw", "tomorrow"),
    ("tnx", "thanks"),
    ("ttyl", "bye"),
    ("ty", "thanks"),
    ("tysm", "thanks so much"),
    ("tyvm", "thanks so much"),
    ("u", "you"),
    ("ur", "your"),
    ("wanna", "want to"),
    ("wdym", "what do you mean"),
    ("whats", "what is"),
    ("wheres", "where is"),
    ("whos", "who is"),
    ("yw", "you're welcome"),
];

/// The text as it would be written; the text itself if nothing in it is typed so.
pub(super) fn written_out(text: &str) -> Cow<'_, str> {
    static WORDS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| HashMap::from_iter(TYPED));
    let is_typed = |word: &str| WORDS.contains_key(bare(word));
    if text.contains('`') || text.split_whitespace().nth(MOST).is_some() || !text.split_whitespace().any(is_typed) {
        return text.into();
    }
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let bare = bare(word);
        WORDS.get(bare).map_or_else(|| word.into(), |written| Cow::Owned(word.replacen(bare, written, 1)))
    });
    words.collect::<Vec<_>>().concat().into()
}

/// A word without the marks of the sentence around it.
fn bare(word: &str) -> &str {
    word.trim_start_matches(['(', '"']).trim_end().trim_end_matches([',', '.', '!', '?', ';', ':', ')', '"', '…'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(written_out(text), expected);
    }

    #[test]
    fn what_is_typed_in_a_chat_is_written_out() {
        check("gm", "good morning");
        check("tysm!!", "thanks so much!!");
        check("whats ur tvl?", "what is your tvl?");
        check("can u swap it rn (pls)", "can you swap it right now (please)");
        check("dont\tbuy,  cant\n", "don't\tbuy,  can't\n");
    }

    #[test]
    fn names_and_code_stay() {
        for text in ["what is GM at?", "buy $gm", "@ty", "read u.txt", "run `np`", "utility", "", "plot u=3"] {
            check(text, text);
        }
        let listing = "for u in users ".repeat(20);
        check(&listing, &listing);
    }

    proptest! {
        #[test]
        fn what_is_written_out_stays(text in "([a-z]{1,4}[ ,.!?]{1,2}){0,12}") {
            let once = written_out(&text);
            prop_assert_eq!(written_out(&once), once.clone());
        }
    }
}
