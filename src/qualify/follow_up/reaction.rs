//! Messages that only show what somebody feels, and those that call off what was said: "wow", "hmm", "don't do it".

use super::{HESITATING, Kind, LAUGHING, Word, split, starts_with};
use crate::qualify::word_list::is_in;

/// What people call out.
const EXCLAIMING: &str = "\
    wow whoa woah ouch oof ugh yikes yay hooray damn dang geez gosh boo bravo congrats insane crazy wild unreal \
    incredible unbelievable hilarious sick lit legendary";

/// Words before a matter is called off that do not change that, and words behind.
const BEFORE_CALLING_OFF: &str = "ok okay please pls no nope nah oh ah hmm hm wait actually sorry just lol";
const BEHIND_CALLING_OFF: &str = "please pls then thanks lol sorry";

/// How a matter is called off, without such words.
const CALLING_OFF: [&[&str]; 12] = [
    &["don", "t"],
    &["do", "not"],
    &["don", "t", "bother"],
    &["not", "now"],
    &["nvm"],
    &["nevermind"],
    &["never", "mind"],
    &["forget", "it"],
    &["forget", "about", "it"],
    &["never", "mind", "forget", "it"],
    &["nvm", "forget", "it"],
    &["changed", "my", "mind"],
];

/// Words that turn down what was proposed, and words that end what was begun.
const DECLINING: &str = "no nope nah naw nay";
const STOPPING: &str = "stop cancel abort";

/// Words beside them.
const BESIDE_DECLINING: &str = "thanks thank you thx ty ok okay please pls sorry lol oh it that this";

/// What is not to be done with it: "don't send it".
const DOING: &str =
    "do send buy sell swap run stake bridge transfer trade book order start execute submit pay post sign";

/// "Hmm", "hold on" or "that's crazy!", but not "lit?" or "LIT", which may be names.
pub(super) fn reacts(text: &str, words: &[Word]) -> bool {
    let may_be_names = text.trim_end().ends_with('?') || !text.contains(char::is_lowercase);
    let is_of = |lists: &[&str], word: &Word| lists.iter().any(|list| is_in(list, &word.folded));
    let feels = words.iter().any(|word| is_of(&[EXCLAIMING, LAUGHING], word));
    let holds_on = starts_with(words, &["hold"]) && words[1].folded == "on";
    let waits = holds_on || words.iter().any(|word| word.folded == "wait");
    let says_no_more = |word: &Word| {
        is_of(&[EXCLAIMING, LAUGHING, HESITATING], word)
            || feels && is_of(&["that s this is it so"], word)
            || waits && is_of(&[DECLINING, "hold on a sec second moment"], word)
    };
    !may_be_names && !words.is_empty() && words.iter().all(|word| word.kind != Kind::Parameter && says_no_more(word))
}

/// "No, don't do it", "ok, forget it".
pub(super) fn calls_off(text: &str, words: &[Word]) -> bool {
    let said = without_fillers(words);
    let with_verb = match said.as_slice() {
        ["don", "t", verb, what] | ["do", "not", verb, what] => {
            is_in(DOING, verb) && is_in("it that this them", what) && is_one_clause(text)
        }
        _ => false,
    };
    !text.trim_end().ends_with('?')
        && (with_verb
            || CALLING_OFF.contains(&said.as_slice())
            || matches!(said.as_slice(), ["i", rest @ ..] if *rest == ["changed", "my", "mind"]))
}

/// "No", "nope, thanks", "stop": does it turn down what was proposed, or end it? `is_known` says of a word whether
/// tools are called so: where one cancels, "cancel" asks for it.
pub(in crate::qualify) fn declines(text: &str, is_known: impl Fn(&str) -> bool) -> bool {
    let folded = text.to_lowercase();
    let ends = |word: &str| is_in(DECLINING, word) || is_in(STOPPING, word) && !is_known(word);
    let says_no_more = |word: &str| ends(word) || is_in(BESIDE_DECLINING, word);
    !text.trim_end().ends_with('?') && split(&folded).any(ends) && split(&folded).all(says_no_more)
}

/// Does it begin with "don't"?
pub(super) fn begins_with_not(words: &[Word]) -> bool {
    matches!(without_fillers(words).as_slice(), ["don", "t", ..] | ["do", "not", ..])
}

fn without_fillers(words: &[Word]) -> Vec<&str> {
    let is_before = |word: &&&str| is_in(BEFORE_CALLING_OFF, word);
    let mut said: Vec<&str> = words.iter().map(|word| &*word.folded).collect();
    said.drain(..said.iter().take_while(is_before).count());
    while said.last().is_some_and(|last| is_in(BEHIND_CALLING_OFF, last)) {
        said.pop();
    }
    said
}

/// Is what is not to be done said in one go? "Don't, send it" sends.
fn is_one_clause(text: &str) -> bool {
    let folded = text.to_lowercase();
    let from = folded.find("do").unwrap_or_default();
    let said = folded[from..].trim_end_matches(|char: char| !char.is_alphanumeric());
    !said.contains([',', '.', ';', '!', ':', '?'])
}

#[cfg(test)]
mod tests {
    use super::super::Leaning::{self, Not, Reacts};
    use super::super::is_called_off;
    use super::declines;

    fn check(text: &str, expected: Leaning) {
        assert_eq!(Leaning::of(text, &[], |_| false), expected, "{text:?}");
    }

    #[test]
    fn what_is_declined_is_told() {
        for text in ["no", "nope, thanks", "No thank you!", "nah lol", "no no", "stop", "stop it please", "cancel that"]
        {
            assert!(declines(text, |_| false), "{text}");
        }
        for text in ["", "no?", "thanks", "no, 20", "no, on Base", "not now", "stop the music", "no it isn't"] {
            assert!(!declines(text, |_| false), "{text}");
        }
        assert!(!declines("stop", |word| word == "stop") && declines("no", |_| true));
    }

    #[test]
    fn reactions_and_what_is_called_off_say_nothing() {
        for text in
            ["that's crazy!", "so insane", "so wild", "ouch", "hmm", "hold on", "wow!", "wait", "no wait", "lol"]
        {
            check(text, Reacts);
        }
        for text in [
            "don't do it",
            "No, don't!",
            "do not send it please",
            "not now",
            "ok, forget it",
            "nvm",
            "I changed my mind",
        ] {
            assert!(is_called_off(text), "{text}");
        }
        for text in [
            "don't stop",
            "don't forget it",
            "don't wait, do it",
            "no, don't. Send it",
            "don't just list them",
            "I don't see it",
            "I don't",
            "don't I own it?",
            "not yet",
            "forget that",
            "forget it and swap",
            "why not?",
            "no, the other one",
            "lit?",
            "wait for it",
            "wild, do it",
            "something wild",
            "sorry, LIT",
            "wait is it on",
            "oops, that",
            "hold it",
        ] {
            assert!(Leaning::of(text, &[], |_| false) != Reacts && !is_called_off(text), "{text}");
        }
        for text in ["don't proceed", "do not continue", "don't go ahead", "don't do it yet"] {
            check(text, Not);
        }
    }
}
