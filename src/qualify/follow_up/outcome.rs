//! Questions about how it went with what was asked for: "did it go through?", "done yet?", "where are my tokens?".
//!
//! Whoever asks so wants to know, and nothing done: what is sent once more may be paid twice.

use super::{SHORT, split};
use crate::qualify::word_list::is_in;

/// Words in front of such a question, and behind it, that change nothing.
const BEFORE: &str = "\
    ok okay k so and hey hi hmm hm um uh well wait but sorry lol cool great nice thanks thx perfect awesome please pls \
    actually just";
const BEHIND: &str = "yet now already please pls then though lol btw finally still ok okay fully successfully";

/// What was asked for, in a word, and what stands before its name.
const IT: &str = "it this that they those these everything";
const BEFORE_NAME: &str = "the my our that this those these";

/// What has been done is so.
const DONE: &str = "\
    done complete completed confirmed finished finalized finalised through sent filled executed processed settled in \
    successful arrived delivered received landed posted published deployed merged uploaded submitted sold bought \
    swapped bridged staked unstaked transferred deposited withdrawn minted claimed paid booked scheduled placed saved \
    created cancelled canceled refunded failed rejected pending stuck processing processed there ready";

/// It has so.
const WENT: &str = "worked succeeded happened gone cleared come went shown";

/// It is to do so.
const GO: &str = "\
    work succeed complete finish land arrive confirm execute fail happen post send fill clear settle process deploy \
    go get come make show";

/// What is done to it.
const DO: &str = "\
    do done send sent get got receive received buy bought sell sold make made submit submitted pay paid book booked \
    swap swapped stake staked bridge bridged post posted deploy deployed";

/// Such questions, and what amounts to one. A place is one of some words or of a list's, which `IT` names in
/// capitals; where it ends in a question mark, none may stand there.
const FORMS: [&str; 22] = [
    "did|does|didn|didnt t? IT not? GO DONE|up|ok|well|fine?",
    "did|have|has|haven|havent t? you|i|we not? really? DO IT",
    "has|have|hasn|hasnt t? IT not? been? DONE|WENT through|up?",
    "is|are|was|were|isn|isnt t? IT not|still|all? DONE",
    "IT s? not|still? DONE",
    "its|thats not|still? DONE",
    "all? DONE",
    "still|not DONE|waiting|nothing",
    "nothing arrived|happened|came? through?",
    "i? don|dont t? see IT|anything there|anywhere?",
    "i? haven|havent|didn|didnt t? received|receive|got|get IT|anything",
    "IT didn|didnt|hasn|hasnt t? GO|DONE|WENT through|up|there?",
    "what|whats s|is? the? status|state|progress of|on|with? IT?",
    "any updates|update|news|progress|luck on|with|about? IT?",
    "status|eta|update|progress of|on? IT?",
    "where|wheres s|is|are? IT",
    "how long will|does|until|till|is|left? IT? take|be|s|is? DONE?",
    "how much longer",
    "when will|does|is|s? IT be|GO DONE?",
    "when will|is|s? IT DONE",
    "why did|has|is|s|hasn|isn|didn t? IT not? GO|DONE|WENT|taking through|so? long?",
    "what went|is|s wrong with? IT?",
];

/// Does a message ask how it went with what was asked for before?
pub(in crate::qualify) fn is_asked_for(text: &str) -> bool {
    if split(text).nth(SHORT).is_some() {
        return false;
    }
    let folded = text.to_lowercase();
    let mut said: Vec<&str> = split(&folded).collect();
    let before = said.iter().take_while(|word| is_in(BEFORE, word)).count();
    said.drain(..before);
    let mut is_asked = said.len() > 1 || text.trim_end().ends_with('?');
    while said.len() > 1 && said.last().is_some_and(|last| is_in(BEHIND, last)) {
        said.pop();
        is_asked = true;
    }
    if let [.., _, "on", _] = said.as_slice() {
        said.truncate(said.len() - 2);
    }
    // "Done" tells.
    is_asked && FORMS.iter().any(|form| fits(&form.split(' ').collect::<Vec<_>>(), &said))
}

/// Do the words stand in the places, one after the other?
fn fits(places: &[&str], words: &[&str]) -> bool {
    let [place, places @ ..] = places else { return words.is_empty() };
    let (choices, may_lack) = place.strip_suffix('?').map_or((*place, false), |choices| (choices, true));
    may_lack && fits(places, words)
        || choices
            .split('|')
            .any(|choice| taken(choice, words).into_iter().any(|taken| taken > 0 && fits(places, &words[taken..])))
}

/// How many words such a choice takes, in each way it can.
fn taken(choice: &str, words: &[&str]) -> [usize; 2] {
    let is_first = |list: &str| words.first().is_some_and(|first| is_in(list, first));
    let is_named = choice == "IT" && words.len() > 1 && is_first(BEFORE_NAME);
    let list = match choice {
        "IT" => IT,
        "DONE" => DONE,
        "WENT" => WENT,
        "GO" => GO,
        "DO" => DO,
        word => word,
    };
    [usize::from(is_first(list)), if is_named { 2 } else { 0 }]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: bool) {
        assert_eq!(is_asked_for(text), expected, "{text:?}");
    }

    #[test]
    fn questions_about_the_outcome_are_told() {
        for text in [
            "did it go through?",
            "did it work",
            "Didn't it go through?",
            "did the swap go through ok",
            "did my transfer arrive yet?",
            "did you send it?",
            "have you done it yet",
            "did i get it",
            "has it arrived?",
            "have my tokens been sent yet?",
            "is it done?",
            "ok, is it there yet?",
            "is the swap complete?",
            "isn't it there yet?",
            "it's done?",
            "its still pending",
            "done?",
            "done yet",
            "all done?",
            "still pending?",
            "not there yet",
            "nothing arrived yet",
            "I don't see it yet",
            "i havent received anything",
            "it didn't go through",
            "it hasn't arrived",
            "what's the status?",
            "whats the status of my swap",
            "any update?",
            "any news on it?",
            "status?",
            "eta?",
            "where are my tokens?",
            "wheres my money",
            "how long will it take?",
            "how much longer?",
            "when will it be done?",
            "when will it arrive",
            "why did it fail?",
            "why is it stuck",
            "why is it taking so long?",
            "what went wrong?",
            "is it stuck?",
            "did it arrive on base?",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn what_asks_something_else_is_not() {
        for text in [
            "",
            "done",
            "ok",
            "ok?",
            "status",
            "yes, do it",
            "is it safe?",
            "is it a good time?",
            "how much do I get?",
            "where can I see the price?",
            "did it ever go above 200?",
            "what is the price now?",
            "do it",
            "send it",
            "try again",
            "how long have you been trading?",
            "why is SOL down?",
            "any other?",
        ] {
            check(text, false);
        }
    }

    proptest! {
        #[test]
        fn hesitation_changes_nothing(text in "((did|it|is|the|not|t|done|through|go|i|\\PC{0,4})[ '?]{0,2}){0,18}") {
            let hesitant = format!("well, {text}");
            prop_assert!(!is_asked_for(&text) || is_asked_for(&hesitant) || split(&hesitant).nth(SHORT).is_some());
        }
    }
}
