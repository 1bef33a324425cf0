//! What changes something, and what only tells: requests by their words, and tools by their names.
//!
//! "How much USDC do I have on Base?" has the words of a transfer, and wants none made.

use super::follow_up::split;
use super::said_names;
use super::word_list::is_in;

/// Verbs of requests that change something.
const CHANGING: &str = "\
    send swap buy sell bridge transfer stake unstake restake deposit withdraw mint claim pay move trade convert \
    exchange wire book order reserve schedule place post publish tweet share reply email mail message submit upload \
    deploy release merge push install restart create make add delete remove cancel refund update write save run start \
    build launch execute remind set note log record wrap unwrap borrow repay lend revoke approve ape snipe dump \
    purchase redeem";

/// Words in front of a question.
const BEFORE: &str = "\
    ok okay so and hey hi hmm um well but sorry please pls quick check question can could would you u i want wanna \
    need to know like just tell me us";

/// Words with which a question begins, or an order to look at something.
const ASKING: &str = "\
    what whats how hows is are was were who which where wheres when why does did do show list find see view count \
    compare";

/// What is asked for in a word or two: "price of SOL".
const ASKED_FOR: &str = "price prices balance balances cost worth value holdings";

/// Verbs in the names of tools that change something, none of which is often a noun there; and of those that tell.
const ACTING: &str = "\
    swap transfer bridge stake restake unstake withdraw deposit buy sell send create delete cancel write mint claim \
    publish upload deploy";
const TELLING: &str = "get list search find check read show fetch query lookup view quote estimate simulate history";

/// Words that a question has at most; more say what they want changed in words of their own.
const QUESTION: usize = 40;

/// Does a request want something changed?
pub(super) fn changes_something(request: &str) -> bool {
    split(request).any(|word| is_in(CHANGING, &word.to_lowercase()))
}

/// Does a message want something told, and nothing changed?
pub(super) fn only_asks(message: &str) -> bool {
    let asks = || {
        let first = split(message).map(str::to_lowercase).find(|word| !is_in(BEFORE, word));
        first.is_some_and(|first| is_in(ASKING, &first))
            || split(message).any(|word| is_in(ASKED_FOR, &word.to_lowercase()))
    };
    split(message).nth(QUESTION).is_none() && asks() && !changes_something(message)
}

/// Does a tool of that name change something, as far as the name tells?
pub(super) fn acts(name: &str) -> bool {
    let words = said_names::split(name);
    let has = |list: &str| words.iter().any(|word| is_in(list, word));
    has(ACTING) && !has(TELLING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_requests_change_something() {
        for text in ["Swap 1 SOL to USDC", "please deploy the api to staging", "I'd like to book a table"] {
            assert!(changes_something(text), "{text}");
        }
        for text in ["", "Show me trending tokens on Solana", "what is the weather in Paris?"] {
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
        ] {
            assert!(only_asks(text), "{text}");
        }
        for text in ["", "bridge 1 ETH to Base", "how do I send money to Ann?", "0.5 sol into WIF", "milk, please"] {
            assert!(!only_asks(text), "{text}");
        }
        assert!(!only_asks(&"what is ".repeat(QUESTION)));
    }

    #[test]
    fn a_tool_s_name_tells_whether_it_acts() {
        for name in ["solanaSwapTokens", "bridgeTokens", "create_issue", "mail.send", "file_write"] {
            assert!(acts(name), "{name}");
        }
        for name in ["getBridgeStatus", "list_transfers", "Post", "weather", "solanaGetSwapQuote", ""] {
            assert!(!acts(name), "{name}");
        }
    }
}
