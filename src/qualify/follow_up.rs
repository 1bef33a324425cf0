//! How a message leans on the one before it: "yes, do it", "and for SOL?", "who holds it?".
//!
//! People do not repeat themselves. What such a message leaves out is told by the words that it has: those that agree
//! or ask for more, those that point at something, and, once both are taken away, what is left. If nothing is left, or
//! only names of networks and assets, the message before is meant; if something is, both are.

mod form;
pub(super) mod fragment;
pub(super) mod outcome;
pub(super) mod reaction;

use std::sync::LazyLock;

use foldhash::HashSet;

use self::reaction::{begins_with_not, calls_off, reacts};
use super::clauses::is_verb;
use super::stop_words;
use super::word_list::is_in;
use crate::text::analysis;

/// Words that tell to go on.
const AGREEING: &str = "\
    yes yeah yep yup yea ya y aye lgtm sure course go ahead do continue proceed \
    confirm confirmed approve approved accept \
    accepted agreed agree absolutely definitely certainly start begin run execute resume keep going \
    make change set use instead double half twice retry try repeat refresh check once";

/// Signs that agree.
const AGREEING_SIGNS: [char; 7] = ['👍', '👌', '✅', '✔', '☑', '🆗', '💯'];

/// Words that are content with what was said; with thanks they end a matter.
const CONTENT: &str = "\
    ok okay k right correct exactly fine good great perfect cool nice awesome amazing brilliant excellent \
    fantastic sounds alright please does only just again then now pls plz";

/// Words that ask for more of the same.
const MORE: &str = "more show list next previous else other others another rest further detail details elaborate \
    expand explain full all any few some about tell give happens page results result";

/// Words that point at what was said.
const POINTING: &str = "it its that this those these he him his she her them they their one ones former latter";

/// Words that choose among what was said.
const CHOOSING: &str = "same both there first second third fourth fifth last top above number option choice opposite";

/// Words that choose another than what was taken: "no, the other one" ends nothing.
const REDIRECTING: &str = "other another one ones first second third fourth fifth last latter former opposite";

/// Words that say nothing but that somebody thinks.
const HESITATING: &str = "wait hmm hm um uh oh ah actually sorry sry oops obviously meant";

/// Words that say it after the one before: "I mean", "I said", "my bad".
const HESITATING_AFTER: [(&str, &str); 4] = [("i", "mean"), ("i", "said"), ("you", "know"), ("my", "bad")];

/// Laughter: whoever laughs asks for nothing.
const LAUGHING: &str = "lol lmao haha hahaha hehe omg";

/// What is left of courtesies and asides beside words that say nothing: "no problem", "to be honest".
const COURTEOUS: &str = "problem kidding honest honestly welcome care luck";

/// Words that begin a compliment or a wish, which agree to nothing: "you're amazing", "have a great weekend".
const COMPLIMENTING: &str = "you have";

/// Words before "not" that deny something, and choose nothing: "Solana is not working".
const DENYING: &str = "is are was were be am m do does did has have had can could will would should may must";

/// Words beside a network's name that say nothing themselves: "wrong chain, Polygon".
const BESIDE_NETWORKS: &str = "chain network mainnet wrong switch not ugh oof damn dang";

/// Ends of a message that goes on with the last one: "doge too", "do it for wif as well".
const ENDS_OF_JOINING: [&[&str]; 5] = [&["too"], &["also"], &["instead"], &["next"], &["as", "well"]];

/// Times that bound what was asked, beside the names of days and months.
const TIMES: &str = "today noon midnight morning afternoon evening night weekend week month year";

/// Beginnings of a message that goes on with the last one.
const JOINING: [&[&str]; 11] = [
    &["and"],
    &["or"],
    &["also"],
    &["plus"],
    &["same"],
    &["what", "about"],
    &["how", "about"],
    &["what", "if"],
    &["now", "for"],
    &["i", "meant"],
    &["i", "mean"],
];

/// Words with which a question begins.
const QUESTIONING: &str = "what who whom whose which where when why how am is are was were";

/// Those that begin an order as well: "do I own one?", but "do it for me".
const ASKING_BEFORE_I: &str = "do did have";

/// Words for whoever asks.
const ONESELF: &str = "i me my mine myself";

/// Words of courtesy that end a matter, unless something else is said.
const ENDING: &str = "thanks thank thx ty cheers bye goodbye brb no nope nah stop cancel never nevermind nvm";

/// Those of them that only decline what was taken.
const DECLINING: &str = "no nope nah naw nay";

/// Words that begin what only bounds the last message, such as "in euros please" and "by volume".
const BOUNDING: &str = "in for with without by at since until per as from over within";

/// Words, with them, that such a message has at most.
const BOUNDS: usize = 4;

/// Words beside which a day or a time changes what was asked: "and in March?", but not "see you tomorrow".
const BESIDE_TIMES: &str = "\
    and or also plus same what about how if for on in at by until since from to over the this next last rather \
    instead actually sorry wait hmm oops obviously no make then now please pls plz";

/// Words of an agreement that repeats what is to be done: "yes, send it".
const AGREEMENT: usize = 4;

/// Words that begin small talk: "hi, how is it going?".
const GREETING: &str = "hi hello hey how who why";

/// Telling words that a message may have and still lean on the last one.
const FEW: usize = 4;

/// And words in all; who writes more says what is meant.
const SHORT: usize = 16;

/// Longest asset's name in capitals, such as USDC.
const ASSET: usize = 6;

/// How a message leans on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaning {
    /// It stands alone.
    Not,
    /// It shows what somebody feels, and says nothing: "wow", "hmm".
    Reacts,
    /// It calls off what was said, as [`is_called_off`] tells, however long ago that was.
    CallsOff,
    /// It asks how it went with what was said, as [`outcome::is_asked_for`] tells.
    AsksOutcome,
    /// It points at what was said, or joins it, and says something itself.
    Refers,
    /// It names other networks, assets, times or the like, and nothing else.
    Varies,
    /// It says nothing itself.
    Continues,
}

/// A word of a message, folded, and what it is.
struct Word {
    folded: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number, an amount, or what only says how one asks.
    Plain,
    /// The name of a network or asset.
    Parameter,
    /// A day or a time.
    Time,
    /// Any other.
    Telling,
}

impl Leaning {
    /// How `text` leans. `is_network` says of each of its words, split at whatever is no letter and no digit, whether a
    /// network is called so; `is_known` of a word whether tools are called so.
    pub(super) fn of(text: &str, is_network: &[bool], is_known: impl Fn(&str) -> bool) -> Self {
        if split(text).nth(SHORT).is_some() {
            return Self::Not;
        }
        let words = words(text, is_network, is_known);
        let has = |list: &str| words.iter().any(|word| is_in(list, &word.folded));
        let telling = words.iter().filter(|word| word.kind == Kind::Telling).count();
        let joins = joining(&words) > 0 || bounds(&words);
        if words.is_empty() {
            return if text.contains(AGREEING_SIGNS) { Self::Continues } else { Self::Not };
        }
        if reacts(text, &words) {
            return Self::Reacts;
        }
        let has_network = is_network.contains(&true);
        let says_more = |(place, word): (usize, &Word)| {
            word.kind == Kind::Telling && !(has_network && is_beside_network(&words[..place], word))
        };
        if words.iter().any(|word| word.kind == Kind::Parameter) && !words.iter().enumerate().any(says_more) {
            return Self::Varies;
        }
        if telling == 0 {
            let greets = greets(&words);
            if changes_time(&words) || declines_amount(&words) {
                return Self::Varies;
            }
            let says_end = (has(ENDING) || has(LAUGHING)) && !has(AGREEING);
            let ends = (says_end || begins_with_not(&words)) && !redirects(&words);
            let chooses = words.iter().all(|word| is_amount(&word.folded));
            if !greets && asks_of_oneself(&words) {
                return Self::Refers;
            }
            let agrees = has(AGREEING) && !asks_what_to_do(&words);
            let is_content = has(CONTENT) && !is_in(COMPLIMENTING, &words[0].folded);
            let leans = chooses || agrees || is_content || [MORE, POINTING, CHOOSING].into_iter().any(has);
            return if leans && !greets && !ends { Self::Continues } else { Self::Not };
        }
        if agrees_to_do(&words) {
            return Self::Varies;
        }
        let points = (has(POINTING) || ends_there(&words)) && !is_self_contained(&words);
        if telling <= FEW && (points || joins) { Self::Refers } else { Self::Not }
    }

    /// Does it go on with nothing?
    pub(super) fn is_alone(self) -> bool {
        matches!(self, Self::Not | Self::Reacts | Self::CallsOff)
    }

    /// Does the message before say all that this one means?
    pub(super) fn says_nothing_new(self) -> bool {
        matches!(self, Self::Varies | Self::Continues | Self::AsksOutcome)
    }
}

/// Does the message call off what was said?
pub(super) fn is_called_off(text: &str) -> bool {
    split(text).nth(SHORT).is_none() && calls_off(text, &words(text, &[], |_| false))
}

/// Does a word say nothing itself beside a network's name? What is turned down may be another network whose name is an
/// everyday word: "not base, Polygon", "Polygon instead of base".
fn is_beside_network(before: &[Word], word: &Word) -> bool {
    let asks = before.first().is_some_and(|first| is_in(QUESTIONING, &first.folded));
    let is_turned_down = match before {
        [.., before, last] if last.folded == "of" => before.folded == "instead",
        [.., before, last] if last.folded == "not" => !is_in(DENYING, &before.folded),
        [last] => last.folded == "not",
        _ => false,
    };
    is_turned_down && !asks && !is_verb(&word.folded) || is_in(BESIDE_NETWORKS, &word.folded)
}

/// Does a message that says nothing itself ask for more of what was said, such as "tell me more about the first one"?
pub(super) fn asks_for_details(text: &str) -> bool {
    let has = |list: &str| split(text).any(|word| is_in(list, &word.to_lowercase()));
    has(MORE) && (has(POINTING) || has(CHOOSING))
}

/// Does what it points at stand in it? "Read the file and explain it" does not lean.
fn is_self_contained(words: &[Word]) -> bool {
    let points = words.iter().position(|word| is_in(POINTING, &word.folded));
    // Else the last word does.
    let points = points.unwrap_or(words.len().saturating_sub(1));
    words[..points].iter().filter(|word| word.kind == Kind::Telling).count() >= 2
}

/// Does it end at a place that was named, as in "stake 3 there"? "How many are there?" asks.
fn ends_there(words: &[Word]) -> bool {
    let [.., before, last] = words else { return false };
    last.folded == "there" && !["is", "are", "was", "were"].contains(&before.folded.as_str())
}

/// How many words at its beginning join it to what was said.
fn joining(words: &[Word]) -> usize {
    JOINING.iter().find(|beginning| starts_with(words, beginning)).map_or(0, |beginning| beginning.len())
}

/// Does it end so, behind something?
fn ends_joining(words: &[Word]) -> bool {
    let is_end = |end: &&[&str]| {
        words.len() > end.len() && words.iter().rev().zip(end.iter().rev()).all(|(word, ends)| word.folded == **ends)
    };
    ENDS_OF_JOINING.iter().any(is_end)
}

/// "How is it going?" and "good morning", but not "how much do I have?".
fn greets(words: &[Word]) -> bool {
    if let [first, second, rest @ ..] = words
        && first.folded == "good"
        && is_in("morning afternoon evening night", &second.folded)
    {
        let goes_on = |word: &Word| {
            let says = |list: &str| is_in(list, &word.folded);
            [AGREEING, MORE, POINTING, CHOOSING].into_iter().any(says) && !says("all any some few")
        };
        return !rest.iter().any(goes_on);
    }
    // "Hey, go ahead" does more.
    let agrees = words.first().is_some_and(|first| is_in("hi hello hey", &first.folded))
        && words.iter().any(|word| is_in(AGREEING, &word.folded))
        && !words.iter().any(|word| is_in(QUESTIONING, &word.folded) || word.folded == "you");
    if agrees {
        return false;
    }
    let counts = words.get(1).is_some_and(|second| is_in("much many", &second.folded));
    !counts && words.first().is_none_or(|first| is_in(GREETING, &first.folded))
}

/// "What can you do?" agrees to nothing.
fn asks_what_to_do(words: &[Word]) -> bool {
    words.first().is_some_and(|first| is_in(QUESTIONING, &first.folded))
        && words.iter().all(|word| !is_in(AGREEING, &word.folded) || word.folded == "do")
}

/// Does it begin so, and go on?
fn starts_with(words: &[Word], beginning: &[&str]) -> bool {
    words.len() > beginning.len() && words.iter().zip(beginning).all(|(word, begins)| word.folded == **begins)
}

/// "And in March?": another time, and nothing else.
fn changes_time(words: &[Word]) -> bool {
    let is_plain =
        |word: &Word| word.kind == Kind::Time || is_amount(&word.folded) || is_in(BESIDE_TIMES, &word.folded);
    words.iter().any(|word| word.kind == Kind::Time) && words.iter().all(is_plain)
}

/// "No, 20": another amount, and nothing else.
fn declines_amount(words: &[Word]) -> bool {
    let [first, rest @ ..] = words else { return false };
    is_in(DECLINING, &first.folded) && !rest.is_empty() && rest.iter().all(|word| is_number(&word.folded))
}

/// "Yes, send it" says once more what is to be done.
fn agrees_to_do(words: &[Word]) -> bool {
    let [first, .., last] = words else { return false };
    words.len() <= AGREEMENT
        && is_in("yes yeah yep yup sure ok okay", &first.folded)
        && is_in("it that them", &last.folded)
        && words.iter().filter(|word| word.kind == Kind::Telling).count() == 1
}

/// Does it choose another, and decline nothing else? "No, the other one", but not "no, not that one".
fn redirects(words: &[Word]) -> bool {
    let is_other_end = |word: &Word| is_in(ENDING, &word.folded) && !is_in(DECLINING, &word.folded);
    words.iter().any(|word| is_in(REDIRECTING, &word.folded))
        && !words.iter().any(|word| is_other_end(word) || word.folded == "not")
}

/// Is it a question about whoever asks, such as "what do you know about me?"? Not "what can you tell me?".
fn asks_of_oneself(words: &[Word]) -> bool {
    let [first, second, ..] = words else { return false };
    let asks = is_in(QUESTIONING, &first.folded) || is_in(ASKING_BEFORE_I, &first.folded) && second.folded == "i";
    let is_given = |place: usize| place > 0 && is_in("tell show give get let for", &words[place - 1].folded);
    asks && words.iter().enumerate().any(|(place, word)| is_in(ONESELF, &word.folded) && !is_given(place))
}

/// "In which country is Berlin?" asks, and does not bound.
fn bounds(words: &[Word]) -> bool {
    let [first, rest @ ..] = words else { return false };
    let Some(second) = rest.first() else { return false };
    words.len() <= BOUNDS
        && rest.iter().filter(|word| word.kind == Kind::Telling).count() <= 1
        && is_in(BOUNDING, &first.folded)
        && !is_in("which what whose how who whom when where case order", &second.folded)
}

fn words(text: &str, is_network: &[bool], is_known: impl Fn(&str) -> bool) -> Vec<Word> {
    let has_plain_words = text.chars().any(char::is_lowercase);
    let mut before = String::new();
    let word = |(place, written): (usize, &str)| {
        let folded = written.to_lowercase();
        let hesitates = HESITATING_AFTER.contains(&(before.as_str(), folded.as_str()));
        before.clone_from(&folded);
        let is_network = is_network.get(place).copied().unwrap_or_default();
        let kind = if is_network || is_asset(written, has_plain_words) && !is_known(&folded) {
            Kind::Parameter
        } else if is_time(&folded) {
            Kind::Time
        } else if hesitates || says_nothing(&folded) {
            Kind::Plain
        } else {
            Kind::Telling
        };
        Word { folded, kind }
    };
    split(text).enumerate().map(word).collect()
}

/// The words of a text as networks' names are looked for in them.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Tickers stand in capitals.
pub(super) fn is_asset(word: &str, has_plain_words: bool) -> bool {
    let is_ticker = (2..=ASSET).contains(&word.len())
        && word.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit())
        && word.chars().any(|char| char.is_ascii_uppercase());
    is_ticker && has_plain_words
}

fn says_nothing(folded: &str) -> bool {
    is_amount(folded)
        || [AGREEING, CONTENT, MORE, POINTING, CHOOSING, ENDING, HESITATING, LAUGHING]
            .iter()
            .any(|list| is_in(list, folded))
        || is_stop_word(folded)
}

/// A number, an amount, or a letter that stands for a choice.
fn is_amount(folded: &str) -> bool {
    is_number(folded) || folded.len() == 1
}

fn is_time(folded: &str) -> bool {
    is_in(TIMES, folded) || {
        let mut all = true;
        analysis::terms(folded, |term| all &= stop_words::is_day(term));
        all
    }
}

fn is_number(folded: &str) -> bool {
    folded.starts_with(|char: char| char.is_ascii_digit())
}

/// Is it, in lower case, a word that goes on with what was said, or ends it?
pub(super) fn is_word(folded: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| [AGREEING, CONTENT, MORE, ENDING].into_iter().flat_map(str::split_ascii_whitespace).collect());
    WORDS.contains(folded)
}

fn is_stop_word(word: &str) -> bool {
    let mut all = true;
    analysis::terms(word, |term| all &= stop_words::is_stop_word(term));
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Leaning::{Continues, Not, Refers, Varies};
    use super::*;

    fn check(text: &str, expected: Leaning) {
        let networks = ["sol", "solana", "base", "eth", "ethereum"];
        let marks: Vec<bool> = split(text).map(|word| networks.contains(&word.to_lowercase().as_str())).collect();
        assert_eq!(Leaning::of(text, &marks, |word| word == "tvl"), expected, "{text:?}");
    }

    #[test]
    fn confirmations_and_calls_for_more_say_nothing_themselves() {
        for text in ["continue", "sure", "Go ahead!", "yes, do it", "make it 2", "no, make it 0.5", "ok", "yes please"]
        {
            check(text, Continues);
        }
        for text in
            ["👍", "✅ 👍🏻", "of course", "y", "check again", "once more", "could you check that again?", "repeat"]
        {
            check(text, Continues);
        }
        for text in ["no, the other one", "nope, the second one", "now the opposite", "no wait, make it 6"] {
            check(text, Continues);
        }
        for text in ["2", "#2", "number 2", "option B", "the second"] {
            check(text, Continues);
        }
        for text in ["show me more", "any others?", "tell me more about the first one", "what else?", "explain that"] {
            check(text, Continues);
        }
    }

    #[test]
    fn other_networks_and_assets_vary_what_was_said() {
        for text in
            ["and for SOL?", "and on Base?", "what about ETH", "same for DOGE", "on Solana please", "no, on Base"]
        {
            check(text, Varies);
        }
        check("sorry, on Solana obviously", Varies);
        for text in [
            "no i meant on base",
            "i said base",
            "on base i mean",
            "my bad, base",
            "wrong chain, base",
            "switch to base",
            "not eth, base",
            "not rome, base",
            "base, not rome",
            "base please, instead of rome",
            "ugh, base",
            "base lol",
        ] {
            check(text, Varies);
        }
        for text in ["tomorrow?", "actually tomorrow", "and in March?", "for the week", "no, 20"] {
            check(text, Varies);
        }
        for text in ["yep send it", "yes, deploy that"] {
            check(text, Varies);
        }
        let networks = ["sol", "solana", "base"];
        for text in [
            "do not buy on base",
            "base is not working",
            "why is solana not loading?",
            "I'm not happy with solana",
            "solana is insane",
            "show me solana, not buy it",
        ] {
            let marks: Vec<bool> = split(text).map(|word| networks.contains(&word)).collect();
            assert_ne!(Leaning::of(text, &marks, |_| false), Varies, "{text}");
        }
        for text in ["have a lovely weekend", "have a great evening", "you're amazing", "good night"] {
            check(text, Not);
        }
        check("hey, go ahead", Continues);
        check("tomorrow night?", Varies);
        check("good morning all", Not);
        check("how is it going today?", Not);
        check("good morning, please continue", Continues);
        for text in ["switch off the TV", "switch on the AC", "haha nice", "lol ok", "good morning", "good evening!"] {
            check(text, Not);
        }
        for text in [
            "thanks, have a great weekend!",
            "see you tomorrow",
            "bye, see you on Monday",
            "that's all for today, thanks",
            "not today",
            "no thanks, maybe tomorrow",
        ] {
            assert_ne!(Leaning::of(text, &[], |_| false), Varies, "{text}");
        }
    }

    #[test]
    fn what_points_or_joins_refers() {
        for text in [
            "buy that",
            "who holds it?",
            "is it safe?",
            "what positions does he have?",
            "and the liquidations?",
            "and the TVL?",
            "sell half of it",
            "stake 3 ETH there",
        ] {
            check(text, Refers);
        }
        check("what about on Polymarket?", Refers);
        for text in ["in euros please", "by volume", "since January"] {
            check(text, Refers);
        }
        check("what do you know about me?", Refers);
        check("do I own one?", Refers);
        check("what else can you tell me?", Continues);
        check("do it for me", Continues);
        check("who am I?", Not);
        check("how much do i have?", Refers);
        check("what can you do?", Not);
        check("what should I do?", Refers);
    }

    #[test]
    fn what_stands_alone_leans_on_nothing() {
        for text in ["", "👎", "hello", "thanks", "thanks a lot!", "no, thanks", "great, thanks!", "ty!"] {
            check(text, Not);
        }
        for text in ["ok thanks for it", "how are you?", "hi, how is it going"] {
            check(text, Not);
        }
        for text in [
            "how many dogs are there?",
            "read the file notes.txt",
            "read the file notes.txt and explain it",
            "swap 2 SOL for USDC",
            "in which country is Berlin?",
            "in Berlin find me a good hotel",
            "thanks, not the other one",
            "no, stop it",
            "no, not that one",
            "cancel the last one",
            "for Berlin weather please",
            "in how many countries?",
        ] {
            check(text, Not);
        }
        check("and then write a long poem about autumn leaves and rain for it", Not);
        check(&"and ".repeat(5000), Not);
    }

    proptest! {
        #[test]
        fn any_text_leans_in_one_way(text in "\\PC{0,80}", marks in prop::collection::vec(any::<bool>(), 0..20)) {
            let leaning = Leaning::of(&text, &marks, |_| false);
            let is_other = |word: &str| is_time(&word.to_lowercase()) || is_number(word);
            let may_vary = marks.contains(&true) || text.chars().any(char::is_uppercase) || split(&text).any(is_other);
            prop_assert!(leaning != Varies || may_vary);
        }
    }
}
