//! English as it is typed in a chat, written out: "gm", "tysm", "whats the tvl".
//!
//! Neither a table of meanings nor a document knows such words, so "tysm" would be the name of an asset.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldhash::HashMap;

/// Words of a text that is typed in a chat, at most; of a longer one they may be names of a program's variables.
const MOST: usize = 30;

/// What is typed, and what it stands for wherever it stands.
const TYPED: [(&str, &str); 42] = [
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
    let written = |table: &HashMap<&str, &'static str>, (place, word): (usize, &str)| {
        // As telephones write the first word.
        let bare = if place == 0 { in_small(bare(word)) } else { bare(word).into() };
        table.get(&*bare).copied()
    };
    let words = || text.split_inclusive(char::is_whitespace).enumerate();
    let is_said = |word: &(usize, &str)| !word.1.trim().is_empty();
    let table = if words().filter(is_said).all(|word| written(&ALL, word).is_some()) { &ALL } else { &ANYWHERE };
    if !words().any(|word| written(table, word).is_some()) {
        return text.into();
    }
    let write_out = |(place, word): (usize, &str)| match written(table, (place, word)) {
        Some(written) => word.replacen(bare(word), written, 1),
        None => word.to_owned(),
    };
    words().map(write_out).collect::<String>().into()
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
        check("Gm! ty", "good morning! thanks");
        check("tysm!!", "thanks so much!!");
        check("Whats the tvl?", "what is the tvl?");
        check(" \n", " \n");
        check("gimme more (lmk)", "give me more (let me know)");
        check("dont\tbuy,  cant\n", "don't\tbuy,  can't\n");
    }

    #[test]
    fn names_and_code_stay() {
        for text in ["GM", "buy $gm", "@ty", "read thx.txt", "run `thx`", "utility", "", "plot rn=3", "who is Wanna?"] {
            check(text, text);
        }
        for text in ["10 gm of salt", "price of gm", "np.zeros", "import numpy as np", "ty idziesz", "gm fam"] {
            check(text, text);
        }
        let listing = "for thx in users ".repeat(20);
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
