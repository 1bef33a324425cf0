//! What changes something, and what only tells: requests by their words, and tools by their names.
//!
//! "How much USDC do I have on Base?" has the words of a transfer, and wants none made.

use std::sync::LazyLock;

use foldhash::HashSet;

use super::follow_up::split;
use super::said_names;
use super::word_list::{is_in, set};

type WordSet = LazyLock<HashSet<&'static str>>;

/// Verbs of requests that change something.
static CHANGING: WordSet = LazyLock::new(|| {
    set("\
        send swap buy sell bridge transfer stake unstake restake deposit withdraw mint claim pay move trade \
        convert exchange wire book order reserve schedule place post publish tweet share reply email mail \
        message submit upload deploy release merge push install restart create make add delete remove cancel \
        refund update write save run start build launch execute remind set note log record wrap unwrap \
        borrow repay lend revoke approve ape snipe dump purchase redeem put get grab ship change lock unlock \
        turn switch open close commit reboot rename invite zap donate top")
});

/// Words behind which such a verb orders: "can you send", "I want to book".
static BEFORE_VERB: WordSet = LazyLock::new(|| {
    set("\
        to and then please pls can could you u we will i ll let lets s help me just now or yes yeah yep yup \
        sure alright go first next quickly again not don t dont")
});

/// Words in front of a question.
static BEFORE: WordSet = LazyLock::new(|| {
    set("\
        ok okay so and hey hi hmm um well but sorry please pls quick check question can could would you u i \
        want wanna need to know like just tell me us")
});

/// Words with which a question begins, or an order to look at something.
static ASKING: WordSet = LazyLock::new(|| {
    set("\
        what whats how hows is are was were who which where wheres why does did show list find see view \
        count compare")
});

/// What is asked for in a word or two: "price of SOL", "SOL price".
const ASKED_FOR: &str = "price prices balance balances cost worth value holdings";

/// Verbs in the names of tools that change something; and words of those that tell, though they have such a verb.
static ACTING: WordSet = LazyLock::new(|| {
    set("\
        swap transfer bridge stake restake unstake withdraw deposit buy sell send create delete cancel write \
        mint claim publish upload deploy")
});
static TELLING: WordSet = LazyLock::new(|| {
    set("\
        get list search find check read show fetch query lookup view quote estimate simulate history status \
        info information details fee fees rate rates price prices balance balances logs log positions routes \
        limits count stats report track browse describe watch")
});

/// Words that a question has at most; more say what they want changed in words of their own.
const QUESTION: usize = 40;

/// Does a request order that something is changed? Most such verbs are nouns as well: "the latest email".
pub(super) fn changes_something(request: &str) -> bool {
    orders(request, is_changing)
}

/// Does a phrase, such as a title, have a word for a change?
pub(super) fn speaks_of_change(phrase: &str) -> bool {
    split(phrase).any(|word| is_changing(&word.to_lowercase()))
}

/// Is it, in lower case, a verb for a change?
pub(super) fn is_changing(word: &str) -> bool {
    CHANGING.contains(word)
}

/// Is what is ordered something that goes on, such as music or a vacuum cleaner? To stop that needs a tool.
pub(super) fn runs(request: &str) -> bool {
    orders(request, |word| is_in("start run play launch turn open", word))
}

/// Does such a verb stand where an order has its verb?
fn orders(request: &str, is_such: impl Fn(&str) -> bool) -> bool {
    request.split([',', '.', ';', '!', '?', ':', '\n']).any(|clause| {
        let mut is_verb = true;
        split(clause).map(str::to_lowercase).any(|word| {
            let is_one = is_verb && is_such(&word);
            is_verb = BEFORE_VERB.contains(&*word) || is_verb && BEFORE.contains(&*word);
            is_one
        })
    })
}

/// Words that a question in a few words has at most: "degen price base".
const IN_A_FEW_WORDS: usize = 4;

/// Does a message want something told, and nothing changed?
pub(super) fn only_asks(message: &str) -> bool {
    if split(message).nth(QUESTION).is_some() {
        return false;
    }
    let words: Vec<String> = split(message).map(str::to_lowercase).collect();
    let Some(first) = words.iter().position(|word| !BEFORE.contains(&**word)) else { return false };
    let words = &words[first..];
    let is_asked_for = |place: usize| {
        let is_end = place + 1 == words.len() || words.get(place + 1).is_some_and(|next| next == "of");
        is_in(ASKED_FOR, &words[place]) && (place == 0 || is_end || words.len() <= IN_A_FEW_WORDS)
    };
    let asks = ASKING.contains(&*words[0]) || words[0] == "when" && message.trim_end().ends_with('?');
    // "When did I last send …?"
    let is_past = asks && words.windows(2).any(|pair| is_in("did have", &pair[0]) && is_in("i we", &pair[1]));
    is_past || (asks || (0..words.len()).any(is_asked_for)) && !words.iter().any(|word| is_changing(word))
}

/// Does a tool of that name change something, as far as the name tells?
pub(super) fn acts(name: &str) -> bool {
    has_word_of(name, &ACTING) && !tells(name)
}

/// Does a tool of that name tell something?
pub(super) fn tells(name: &str) -> bool {
    has_word_of(name, &TELLING)
}

fn has_word_of(name: &str, words: &HashSet<&str>) -> bool {
    said_names::split(name).iter().any(|word| words.contains(&**word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_requests_change_something() {
        for text in [
            "Swap 1 SOL to USDC",
            "please deploy the api to staging",
            "I'd like to book a table",
            "let's swap 1 sol to usdc",
            "can we swap 1 sol",
            "help me buy 2 jup",
            "yes buy 2 of it",
            "50 usdc on base, swap some eth",
        ] {
            assert!(changes_something(text), "{text}");
        }
        assert!(speaks_of_change("Solana Token Swap") && !speaks_of_change("Token Price"));
        assert!(runs("start the vacuum") && !runs("swap 1 SOL before the bull run"));
        for text in ["", "Show me the latest email from Ann", "what is the weather?", "find me a good book on Rust"] {
            assert!(!changes_something(text), "{text}");
        }
    }

    #[test]
    fn questions_want_nothing_changed() {
        for text in [
            "how much USDC do I have on Base?",
            "price of toshi on base",
            "please show me my tokens",
            "is pepe a rug?",
            "quick check, sol price?",
            "when did I last send ETH to anyone?",
        ] {
            assert!(only_asks(text), "{text}");
        }
        for text in
            ["", "bridge 1 ETH to Base", "how do I send money to Ann?", "0.5 sol into WIF", "get $50 worth of pepe"]
        {
            assert!(!only_asks(text), "{text}");
        }
        for text in ["when sol hits 200 get me out", "zap my whole balance into WIF", "top up my balance with $50"] {
            assert!(!only_asks(text), "{text}");
        }
        assert!(!only_asks(&"what is ".repeat(QUESTION)));
    }

    #[test]
    fn a_tool_s_name_tells_whether_it_acts() {
        for name in ["solanaSwapTokens", "bridgeTokens", "create_issue", "mail.send", "file_write"] {
            assert!(acts(name), "{name}");
        }
        for name in [
            "getBridgeStatus",
            "list_transfers",
            "Post",
            "weather",
            "solanaGetSwapQuote",
            "claim_status",
            "bridgeFees",
            "",
        ] {
            assert!(!acts(name), "{name}");
        }
    }
}
