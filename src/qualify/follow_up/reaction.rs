//! Messages that only show what somebody feels, and those that call off what was said: "wow", "hmm", "don't do it".

use super::form::Vocabulary;
use super::{DECLINING, HESITATING, Kind, LAUGHING, SHORT, Word, split, starts_with};
use crate::qualify::change::is_changing;
use crate::qualify::word_list::is_in;

/// What people call out.
const EXCLAIMING: &str = "\
    wow whoa woah ouch oof ugh yikes yay hooray damn dang geez gosh boo bravo congrats insane crazy wild unreal \
    incredible unbelievable hilarious sick lit legendary";

/// What is called off has no name that is known here.
const FORMS: Vocabulary<'static> = Vocabulary { lists: &[], is_name: &|_| false };

/// Doubts that ask for no tool.
const DOUBTING: [&str; 2] = ["are|r? you|u|ya sure about? IT?", "really|seriously"];

/// Words before a matter is called off that do not change that, and words behind.
const BEFORE_CALLING_OFF: &str = "ok okay please pls no nope nah oh ah hmm hm wait actually sorry just lol";
const BEHIND_CALLING_OFF: &str = "please pls then thanks lol sorry";

/// How a matter is called off, without such words.
const CALLING_OFF: [&str; 19] = [
    "don|dont t? bother?",
    "do not",
    "not now|that|this",
    "nvm|nevermind",
    "never mind forget? it?",
    "nvm forget it",
    "forget about? it",
    "scratch|drop|skip|leave IT",
    "call IT off",
    "abort mission|everything|IT",
    "maybe|perhaps? later",
    "another time",
    "i? changed my mind",
    "i? id? d? rather not",
    "let|lets s? not do? IT?",
    "im|i m? out",
    "i? don|dont t? want IT anymore?",
    "i? said no|nope|stop",
    "i? didn|didnt t? mean IT",
];

/// What is wrong with a matter, so that it is not to be done as it was said.
const WRONG: [&str; 2] =
    ["wrong|bad address|amount|token|coin|wallet|person|recipient|one", "IT|thats|its s|is? wrong"];

/// Words that end what was begun.
const STOPPING: &str = "stop cancel abort";

/// Words beside them and those that decline.
const BESIDE_DECLINING: &str = "thanks thank you thx ty ok okay please pls sorry lol oh wait it that this";

/// "Hmm", "hold on" or "that's crazy!", but not "lit?" or "LIT", which may be names.
pub(super) fn reacts(text: &str, words: &[Word]) -> bool {
    if FORMS.fits_any(&DOUBTING, &words.iter().map(|word| &*word.folded).collect::<Vec<_>>()) {
        return true;
    }
    let may_be_names = text.trim_end().ends_with('?') || !text.contains(char::is_lowercase);
    let is_of = |lists: &[&str], word: &Word| lists.iter().any(|list| is_in(list, &word.folded));
    let feels = words.iter().any(|word| is_of(&[EXCLAIMING, LAUGHING], word));
    let holds_on = starts_with(words, &["hold"]) && words[1].folded == "on";
    let waits = holds_on || words.iter().any(|word| word.folded == "wait");
    let says_no_more = |word: &Word| {
        is_of(&[EXCLAIMING, LAUGHING, HESITATING], word)
            || feels && is_of(&["that s this is it so"], word)
            || waits && is_of(&["hold on a sec second moment"], word)
    };
    !may_be_names && !words.is_empty() && words.iter().all(|word| word.kind != Kind::Parameter && says_no_more(word))
}

/// "No, don't do it", "ok, forget it".
pub(super) fn calls_off(text: &str, words: &[Word]) -> bool {
    let said = without_fillers(words);
    let with_verb = match said.as_slice() {
        ["don", "t", verb, what] | ["do", "not", verb, what] => {
            (is_changing(verb) || is_in("do execute sign", verb))
                && is_in("it that this them", what)
                && is_one_clause(text)
        }
        _ => false,
    };
    !text.trim_end().ends_with('?') && (with_verb || FORMS.fits_any(&CALLING_OFF, &said))
}

/// "No", "nope, thanks", "stop": does it turn down what was proposed, or end it? `is_known` says of a word whether
/// tools are called so: where one cancels, "cancel" asks for it.
pub(in crate::qualify) fn declines(text: &str, is_known: impl Fn(&str) -> bool) -> bool {
    if split(text).nth(SHORT).is_some() {
        return false;
    }
    let folded = text.to_lowercase();
    let ends = |word: &str| is_in(DECLINING, word) || is_in(STOPPING, word) && !is_known(word);
    let says_no_more = |word: &str| ends(word) || is_in(BESIDE_DECLINING, word);
    !text.trim_end().ends_with('?') && split(&folded).any(ends) && split(&folded).all(says_no_more)
}

/// "Wrong address!" objects to what is to be done.
pub(in crate::qualify) fn objects(text: &str) -> bool {
    if split(text).nth(SHORT).is_some() {
        return false;
    }
    let folded = text.to_lowercase();
    let said: Vec<&str> = split(&folded).skip_while(|word| is_in(BEFORE_CALLING_OFF, word)).collect();
    !text.trim_end().ends_with('?') && FORMS.fits_any(&WRONG, &said)
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
    use super::{declines, objects};

    fn check(text: &str, expected: Leaning) {
        assert_eq!(Leaning::of(text, &[], |_| false), expected, "{text:?}");
    }

    #[test]
    fn what_is_declined_is_told() {
        for text in [
            "no",
            "nope, thanks",
            "No thank you!",
            "nah lol",
            "no no",
            "wait no",
            "no wait",
            "stop",
            "stop it please",
            "cancel that",
        ] {
            assert!(declines(text, |_| false), "{text}");
        }
        for text in ["", "no?", "thanks", "no, 20", "no, on Base", "not now", "stop the music", "no it isn't"] {
            assert!(!declines(text, |_| false), "{text}");
        }
        assert!(objects("wrong address!!") && objects("no, that's wrong") && !objects("wrong token, use usdt"));
        assert!(!declines("stop", |word| word == "stop") && declines("no", |_| true));
    }

    #[test]
    fn reactions_and_what_is_called_off_say_nothing() {
        for text in
            ["that's crazy!", "so insane", "so wild", "ouch", "hmm", "hold on", "wow!", "wait", "are you sure?", "lol"]
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
            "abort mission",
            "not that",
            "call it off",
            "i didnt mean that",
            "don't delete it",
            "i'd rather not",
            "lets not",
            "maybe later",
            "i said no",
            "i'm out",
            "i dont want this anymore",
            "nah leave it",
            "scratch that",
        ] {
            assert!(is_called_off(text), "{text}");
        }
        // Whatever it is said of; `objects` asks what that was.
        assert!(!is_called_off("wrong token") && !is_called_off("that's wrong"));
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
