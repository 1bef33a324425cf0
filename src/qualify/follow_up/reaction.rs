//! Messages that only show what somebody feels, and those that call off what was said: "wow", "hmm", "don't do it".

use super::{HESITATING, LAUGHING, Word, starts_with};
use crate::qualify::word_list::is_in;

/// What people call out.
pub(super) const EXCLAIMING: &str = "\
    wow whoa woah ouch oof ugh yikes yay hooray damn dang geez gosh boo bravo congrats insane crazy wild unreal \
    incredible unbelievable hilarious sick lit legendary";

/// Words beside which a matter is called off that do not change that.
const BESIDE_CALLING_OFF: &str = "\
    ok okay please pls no nope nah oh ah hmm hm wait actually sorry i just lol then thanks";

/// How a matter is called off, without such words.
const CALLING_OFF: [&[&str]; 16] = [
    &["don", "t"],
    &["do", "not"],
    &["don", "t", "bother"],
    &["not", "now"],
    &["not", "yet"],
    &["nvm"],
    &["nevermind"],
    &["never", "mind"],
    &["forget", "it"],
    &["forget", "that"],
    &["forget", "about", "it"],
    &["never", "mind", "forget", "it"],
    &["nvm", "forget", "it"],
    &["drop", "it"],
    &["changed", "my", "mind"],
    &["scrap", "that"],
];

/// The same with a verb between, and at their end a word for the matter: "don't send it".
const CALLING_OFF_WITH_VERB: [&[&str]; 2] = [&["don", "t"], &["do", "not"]];

/// "Hmm", "hold on" or "that's crazy!", but not "lit?" or "LIT", which may be names.
pub(super) fn reacts(text: &str, words: &[Word]) -> bool {
    let may_be_names = text.trim_end().ends_with('?') || !text.contains(char::is_lowercase);
    let is_reaction =
        |word: &Word| [EXCLAIMING, LAUGHING, HESITATING].into_iter().any(|list| is_in(list, &word.folded));
    let is_beside = |word: &Word| is_in("that s this is it so hold on a sec second moment", &word.folded);
    !may_be_names
        && (words.iter().any(is_reaction) || starts_with(words, &["hold"]))
        && words.iter().all(|word| is_reaction(word) || is_beside(word))
}

/// "No, don't do it", "ok, forget it".
pub(super) fn calls_off(words: &[Word]) -> bool {
    let said: Vec<&str> =
        words.iter().map(|word| &*word.folded).filter(|word| !is_in(BESIDE_CALLING_OFF, word)).collect();
    let with_verb = match said.as_slice() {
        [rest @ .., verb, "it" | "that" | "this" | "them"] => {
            CALLING_OFF_WITH_VERB.contains(&rest) && !is_in("forget lose miss stop cancel", verb)
        }
        _ => false,
    };
    with_verb || CALLING_OFF.contains(&said.as_slice())
}

#[cfg(test)]
mod tests {
    use super::super::Leaning::{self, CallsOff, Reacts};

    fn check(text: &str, expected: Leaning) {
        assert_eq!(Leaning::of(text, &[], |_| false), expected, "{text:?}");
    }

    #[test]
    fn reactions_and_what_is_called_off_say_nothing() {
        for text in ["that's crazy!", "so insane", "hmm", "hold on", "wow", "wait", "lol"] {
            check(text, Reacts);
        }
        for text in
            ["don't do it", "No, don't!", "do not send it", "not now", "ok, forget it", "nvm", "never mind thanks"]
        {
            check(text, CallsOff);
        }
        for text in [
            "don't stop",
            "don't forget it",
            "forget it and swap",
            "why not?",
            "no, the other one",
            "lit?",
            "wait for it",
            "wild, do it",
        ] {
            assert!(!matches!(Leaning::of(text, &[], |_| false), Reacts | CallsOff), "{text}");
        }
    }
}
