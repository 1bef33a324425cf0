//! Few words that change the last message although they point at nothing: "cheaper?", "20 is better", "doge too".

use super::{
    ASKING_BEFORE_I, COURTEOUS, DECLINING, ENDING, GREETING, HESITATING, Kind, LAUGHING, POINTING, QUESTIONING,
    REDIRECTING, Word, ends_joining, greets, joining, split, starts_with, words,
};
use crate::qualify::clauses::is_verb;
use crate::qualify::word_list::is_in;

/// Words that a message has at most that changes the last one without pointing at it, such as "something calmer"; and
/// those of them that tell something.
const FRAGMENT: usize = 6;
const TELLING_OF_FRAGMENT: usize = 2;

/// What people say of what they heard, and ask no more with.
const REACTING: &str = "\
    really seriously honestly huh eh what wow nice interesting anyone correct pardon kidding joking ready later enough \
    done forget";

/// Words before an order: "now wake me", "can you water them".
const BEFORE_ORDERS: &str = "now ok okay please can could would will you";

/// May the message change the last one although it points at nothing, as "cheaper?" and "20 is better" do? Not if it
/// gives an order, asks, greets, or says what tools are called. Parameters as for [`super::Leaning::of`].
pub(in crate::qualify) fn is_fragment(text: &str, is_network: &[bool], is_known: impl Fn(&str) -> bool) -> bool {
    if split(text).nth(FRAGMENT).is_some() {
        return false;
    }
    let words = words(text, is_network, &is_known);
    let begins = joining(&words).max(usize::from(ends_joining(&words) && words[0].folded == "do"));
    let Some(first) = words.get(begins) else { return false };
    let lacks = first.folded == "no" && words.len() > begins + 1;
    let is_other = |(place, word): (usize, &Word)| {
        is_in(ENDING, &word.folded) && !(lacks && place == begins)
            || is_in(LAUGHING, &word.folded)
            || is_in(POINTING, &word.folded) && !is_in(REDIRECTING, &word.folded)
    };
    let telling: Vec<&Word> = words.iter().filter(|word| word.kind == Kind::Telling).collect();
    (1..=TELLING_OF_FRAGMENT).contains(&telling.len())
        && !orders(&words[begins..])
        && ![QUESTIONING, ASKING_BEFORE_I, GREETING].into_iter().any(|list| is_in(list, &first.folded))
        && !words.iter().enumerate().any(is_other)
        && !telling.iter().any(|word| is_known(&word.folded))
        && !greets(&words[begins..])
        && !telling.iter().all(|word| is_in(COURTEOUS, &word.folded))
}

/// Does its form say that a fragment changes the last message, whatever its words are: "what about wif", "doge too",
/// "doge?"?
pub(in crate::qualify) fn is_joined(text: &str) -> bool {
    let words = words(text, &[], |_| false);
    let hesitates = |word: &&Word| is_in(HESITATING, &word.folded) || is_in("ok okay", &word.folded);
    let from = words.iter().take_while(hesitates).count();
    let said = &words[from..];
    let begins = joining(said);
    // "I'm tired too" is about whoever says it.
    if said[begins..].iter().any(|word| is_in("i we you", &word.folded)) {
        return false;
    }
    let asks = said.len() == 1 && text.trim_end().ends_with('?') && !is_in(REACTING, &said[0].folded);
    asks || begins > 0 || starts_with(said, &["now"]) || ends_joining(said) || declines_for(text, said)
}

/// "No, doge": one thing for another, and not "no worries".
fn declines_for(text: &str, words: &[Word]) -> bool {
    let [first, second, rest @ ..] = words else { return false };
    let declines = is_in(DECLINING, &first.folded) && !is_in(REACTING, &second.folded) && rest.is_empty();
    declines && text.trim_start().get(first.folded.len()..).is_some_and(|rest| rest.starts_with(','))
}

/// "Now book dinner", but not "now Rome".
fn orders(words: &[Word]) -> bool {
    words.iter().find(|word| !is_in(BEFORE_ORDERS, &word.folded)).is_some_and(|word| is_verb(&word.folded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_message_says_that_it_changes_the_last() {
        for text in [
            "doge?",
            "and doge?",
            "what about doge",
            "ok and doge then",
            "now doge",
            "doge too",
            "do doge as well",
            "sry i meant doge",
            "oh, doge instead",
            "no, doge",
        ] {
            assert!(is_joined(text) && is_fragment(text, &[], |_| false), "{text}");
        }
        for text in [
            "cheaper",
            "really?",
            "doge",
            "haha doge?",
            "is it doge?",
            "no worries",
            "no, thanks",
            "no, later",
            "nice to meet you too",
            "I'm tired too",
            "now book dinner",
            "now I understand",
            "can you water the plants too",
            "ready?",
            "",
        ] {
            assert!(!(is_joined(text) && is_fragment(text, &[], |_| false)), "{text}");
        }
    }

    #[test]
    fn few_words_that_ask_for_nothing_may_change_what_was_said() {
        let check = |text: &str, expected: bool| {
            let is_known = |word: &str| word == "tvl";
            assert_eq!(is_fragment(text, &[], is_known), expected, "{text:?}");
        };
        for text in
            ["cheaper?", "20 is better", "something calmer", "older ones", "and naples?", "with less risk", "no onions"]
        {
            check(text, true);
        }
        for text in ["lit?", "LIT", "and lit", "no, boo", "something wild", "how about naples?"] {
            check(text, true);
        }
        for text in ["good night", "no problem", "just kidding", "to be honest", "you're welcome", "I don't care"] {
            check(text, false);
        }
        for text in ["TVL?", "who holds that", "send money", "hello there", "thanks, cheaper", "why not?", "so it is"] {
            check(text, false);
        }
        check("", false);
        check("and", false);
        check("a few words of something that is more", false);
    }
}
