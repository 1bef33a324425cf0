//! Questions about how it went with what was asked for: "did it go through?", "done yet?", "where are my tokens?".
//!
//! Whoever asks so wants to know, and nothing done: what is sent once more may be paid twice.

use super::form::Vocabulary;
use super::{SHORT, split};
use crate::qualify::word_list::is_in;

/// Words in front of such a question, and behind it, that change nothing.
const BEFORE: &str = "\
    ok okay k so and hey hi hmm hm um uh well wait but sorry lol cool great nice thanks thx perfect awesome please pls";
const BEHIND: &str = "yet now please pls then though lol finally still fully successfully";

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
    swap swapped stake staked bridge bridged post posted deploy deployed cancel delete deleted publish upload transfer \
    move moved withdraw place save write remove removed create merge claim mint";

/// What may be asked about by its name, beside what the request has names for.
const NAMES: &str = "\
    transaction tx transfer swap trade order payment money funds token tokens coins deposit withdrawal purchase \
    message email mail deployment build job task request file files";

/// The lists by their names in forms.
const LISTS: [(&str, &str); 8] = [
    ("DONE", DONE),
    ("WENT", WENT),
    ("GO", GO),
    ("DO", DO),
    ("WE", "you u ya i we he she they"),
    ("GOOD", "ok okay well fine good alright"),
    ("MONEY", "money funds token tokens coins payment transaction tx order package"),
    ("SHOWING", "phantom metamask wallet explorer solscan etherscan"),
];

/// Such questions, and what amounts to one.
const FORMS: [&str; 32] = [
    "did|does|didn|didnt t? IT not? GO DONE|out? GOOD?",
    "did|have|has|haven|havent t? WE not? DO|DONE IT twice|again?",
    "are? you|u sure you|u|it|its|IT DO|DONE|WENT IT|through|out?",
    "how did|s IT go|going",
    "what happened to|with? IT?",
    "can|could? you? check if|whether IT DONE|WENT through?",
    "has|have|hasn|hasnt t? IT not? been? DONE|WENT through|out?",
    "is|are|was|were|isn|isnt t? IT not|still|all? DONE",
    "IT s? not|still DONE",
    "its|thats not|still DONE",
    "IT says pending|failed|processing",
    "still|not DONE|waiting|nothing",
    "SHOWING shows|says|sees nothing|pending|failed",
    "nothing arrived|happened|came? through?",
    "i? still? don|dont t? see IT|anything there|anywhere?",
    "i? still? haven|havent|didn|didnt t? received|receive|got|get IT|anything",
    "IT didn|didnt|hasn|hasnt t? GO|DONE|WENT through|up|there?",
    "what|whats|hows s|is? the? status|state|progress of|on|with? IT?",
    "what|whats s|is? happening|going with|on with? IT?",
    "any updates|update|news|progress|luck on|with|about? IT?",
    "status|eta|progress|proof|receipt|now",
    "status|eta|progress|update of|on IT",
    "tx|transaction hash|id|link",
    "where|wheres s|is|are? it|that|they|those",
    "where|wheres s|is|are? my|the MONEY",
    "how long will|does|is|until|till? IT? usually? take|be|s|is DONE?",
    "how long left|more",
    "how much longer",
    "when will|does|is|s? IT be|GO DONE?",
    "when will|is|s? IT DONE",
    "why did|has|is|s|hasn|isn|didn t? IT not? GO|DONE|WENT|taking through|so? long?",
    "what went|is|s wrong with? IT?",
];

/// What is one only where it is asked: "Done" tells.
const ASKED: [&str; 8] = [
    "IT s? DONE",
    "its|thats DONE",
    "all? DONE",
    "WENT through|out",
    "transaction|tx|swap|transfer DONE",
    "everything|all|it GOOD",
    "you|u got IT",
    "update|updates",
];

/// Words that change nothing wherever they stand.
const ASIDE: &str = "already just really actually";

/// Does a message ask how it went with what was asked for before? `is_spoken_of` says of a word whether that has it.
pub(in crate::qualify) fn is_asked_for(text: &str, is_spoken_of: impl Fn(&str) -> bool) -> bool {
    if split(text).nth(SHORT).is_some() {
        return false;
    }
    let folded = text.to_lowercase();
    let mut said: Vec<&str> = split(&folded).map(|word| if word == "thru" { "through" } else { word }).collect();
    said.retain(|word| !is_in(ASIDE, word));
    for end in [&["or", "not"][..], &["by", "the", "way"]] {
        if said.ends_with(end) {
            said.truncate(said.len() - end.len());
        }
    }
    let before = said.iter().take_while(|word| is_in(BEFORE, word)).count();
    said.drain(..before);
    let mut is_asked = text.trim_end().ends_with('?');
    while said.len() > 1 && said.last().is_some_and(|last| is_in(BEHIND, last)) {
        is_asked |= said.pop() == Some("yet");
    }
    if let ["did" | "has" | "have" | "is", .., _, "on", _] = said.as_slice() {
        said.truncate(said.len() - 2);
    }
    let is_name = |word: &str| is_in(NAMES, word) || is_spoken_of(word);
    let vocabulary = Vocabulary { lists: &LISTS, is_name: &is_name };
    (is_asked || said.len() > 1) && vocabulary.fits_any(&FORMS, &said) || is_asked && vocabulary.fits_any(&ASKED, &said)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: bool) {
        let is_spoken_of = |word: &str| ["sol", "usdc"].contains(&word);
        assert_eq!(is_asked_for(text, is_spoken_of), expected, "{text:?}");
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
            "did u actually send it",
            "did it go out",
            "you sure you sent it?",
            "did you send it twice??",
            "has he received it",
            "and now?",
            "went through?",
            "phantom shows nothing",
            "proof?",
            "tx hash?",
            "everything ok?",
            "u got it?",
            "whats happening with it",
            "i still dont see my usdc",
            "transaction failed?",
            "still nothing",
            "it says pending",
            "have you already sent it?",
            "did it go thru?",
            "did that go through or not?",
            "did it go through, by the way?",
            "can you check if it went through?",
            "how did it go?",
            "what happened with my swap?",
            "did you cancel it?",
            "update on my swap",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn what_asks_something_else_is_not() {
        for text in [
            "",
            "done",
            "all done!",
            "it arrived",
            "it's paid",
            "that's done",
            "did the price go up?",
            "any news on bitcoin?",
            "update on BTC",
            "where is my car?",
            "have you got the time?",
            "is the oven ready?",
            "how long is the flight?",
            "did I pay the rent?",
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
            "update it",
            "update my order",
            "you got it!",
            "did it go up?",
            "has it gone up?",
            "where is the sol?",
            "are you sure?",
            "is it a good price?",
            "what's the fee?",
        ] {
            check(text, false);
        }
    }

    proptest! {
        #[test]
        fn hesitation_changes_nothing(text in "((did|it|is|the|not|t|done|through|go|i|\\PC{0,4})[ '?]{0,2}){0,18}") {
            let hesitant = format!("well, {text}");
            let is_asked_for = |text: &str| is_asked_for(text, |_| true);
            prop_assert!(!is_asked_for(&text) || is_asked_for(&hesitant) || split(&hesitant).nth(SHORT).is_some());
        }
    }
}
