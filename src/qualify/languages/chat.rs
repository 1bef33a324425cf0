//! English as it is typed in a chat, written out: "gm", "tysm", "whats ur tvl".
//!
//! Neither a table of meanings nor a document knows such words, so "tysm" would be the name of an asset, and "u" what
//! the message is about.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldhash::HashMap;

/// Words of a text that is typed in a chat, at most; of a longer one they may be names of a program's variables.
const MOST: usize = 30;

/// What is typed, and what it stands for wherever it stands.
const TYPED: [(&str, &str); 44] = [
    ("afaik", "as far as I know"),
    ("arent", "aren't"),
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
    ("gonna", "going to"),
    ("gotta", "have to"),
    ("havent", "haven't"),
    ("hbu", "how about you"),
    ("hows", "how is"),
    ("idc", "I don't care"),
    ("idk", "I don't know"),
    ("isnt", "isn't"),
    ("ive", "I've"),
    ("lemme", "let me"),
    ("lets", "let's"),
    ("lmk", "let me know"),
    ("ngl", "honestly"),
    ("omw", "on my way"),
    ("rofl", "haha"),
    ("smth", "something"),
    ("tbh", "to be honest"),
    ("thats", "that's"),
    ("thnx", "thanks"),
    ("thx", "thanks"),
    ("tmr", "tomorrow"),
    ("tmrw", "tomorrow"),
    ("tnx", "thanks"),
    ("ttyl", "bye"),
    ("tysm", "thanks so much"),
    ("tyvm", "thanks so much"),
    ("ur", "your"),
    ("wanna", "want to"),
    ("wdym", "what do you mean"),
    ("whats", "what is"),
    ("wheres", "where is"),
    ("whos", "who is"),
];

/// The same of what means something else beside other words: "10 gm of salt", `import numpy as np`.
const ALONE: [(&str, &str); 6] = [
    ("gm", "good morning"),
    ("gn", "good night"),
    ("np", "no problem"),
    ("nvm", "never mind"),
    ("ty", "thanks"),
    ("yw", "you're welcome"),
];

/// The text as it would be written; the text itself if nothing in it is typed so.
pub(super) fn written_out(text: &str) -> Cow<'_, str> {
    static ANYWHERE: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| HashMap::from_iter(TYPED));
    static ALL: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| TYPED.into_iter().chain(ALONE).collect());
    if text.contains('`') || text.split_whitespace().nth(MOST).is_some() {
        return text.into();
    }
    let is_typed = |words: &HashMap<&str, &str>, word: &str| words.contains_key(&*in_small(bare(word)));
    let are_all = text.split_whitespace().all(|word| is_typed(&ALL, word));
    let words = if are_all { &ALL } else { &ANYWHERE };
    if !text.split_whitespace().any(|word| is_typed(words, word)) {
        return text.into();
    }
    let write_out = |word| {
        let bare = bare(word);
        words.get(&*in_small(bare)).map_or_else(|| word.into(), |written| Cow::Owned(word.replacen(bare, written, 1)))
    };
    text.split_inclusive(char::is_whitespace).map(write_out).collect::<Vec<_>>().concat().into()
}

/// A word without the marks of the sentence around it.
fn bare(word: &str) -> &str {
    word.trim_start_matches(['(', '"']).trim_end().trim_end_matches([',', '.', '!', '?', ';', ':', ')', '"', '…'])
}

/// A word that begins with a capital, as telephones write the first of a sentence, without it; names in capitals stay.
fn in_small(word: &str) -> Cow<'_, str> {
    let is_capital = |byte: &u8| byte.is_ascii_uppercase();
    match word.as_bytes() {
        [first, rest @ ..] if is_capital(first) && !rest.is_empty() && !rest.iter().any(is_capital) => {
            word.to_ascii_lowercase().into()
        }
        _ => word.into(),
    }
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
        check("Gm! Ty", "good morning! thanks");
        check("tysm!!", "thanks so much!!");
        check("Whats ur tvl?", "what is your tvl?");
        check("gimme more (lmk)", "give me more (let me know)");
        check("dont\tbuy,  cant\n", "don't\tbuy,  can't\n");
    }

    #[test]
    fn names_and_code_stay() {
        for text in ["GM", "buy $gm", "@ty", "read ur.txt", "run `thx`", "utility", "", "plot ur=3"] {
            check(text, text);
        }
        for text in ["10 gm of salt", "price of gm", "np.zeros", "import numpy as np", "ty idziesz", "gm fam"] {
            check(text, text);
        }
        let listing = "for ur in users ".repeat(20);
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
