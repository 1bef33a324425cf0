//! Names inside a message: whole words in order, whatever stands between them.

use std::ops::Range;

use super::word_bits::WordBits;
use crate::text::analysis;

/// A message, or a name, as words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    all: Vec<Word>,
    bits: WordBits,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Word {
    written: Box<str>,
    folded: Box<str>,
    /// Does a mark part it from the next one?
    is_cut: bool,
}

/// Marks that no address, path or handle has.
const AROUND: [char; 17] = [
    ',', ';', '"', '\'', '(', ')', '[', ']', '<', '>', '`', '*', '\u{ff0c}', '\u{3002}', '\u{3001}', '\u{ff08}',
    '\u{ff09}',
];

/// Marks that may end a sentence with one.
const ENDS: [char; 4] = ['.', ':', '!', '?'];

/// Marks that part what is said before them from what is said behind.
const CUTS: [char; 13] =
    [',', ';', '.', ':', '!', '?', '\n', '\u{2013}', '\u{2014}', '\u{ff0c}', '\u{3002}', '\u{ff01}', '\u{ff1f}'];

/// Words between a name and what turns it down, and how many there may be.
const FILLERS: [&str; 21] = [
    "the", "a", "an", "any", "anything", "on", "in", "from", "to", "for", "with", "use", "using", "want", "need",
    "mean", "show", "me", "about", "looking", "asking",
];
const FILLERS_AT_MOST: usize = 3;

/// Orders to leave something, and what may stand before one.
const LEAVING: [&str; 4] = ["skip", "forget", "ignore", "avoid"];
const BEFORE_ORDERS: [&str; 8] = ["please", "just", "and", "but", "then", "so", "ok", "okay"];

/// Before "no" and "nothing" they tell what there is not: "I have no ETH left".
const HAVING: [&str; 27] = [
    "have", "has", "had", "is", "are", "was", "were", "s", "there", "own", "hold", "got", "see", "find", "found",
    "why", "show", "shows", "with", "get", "gets", "getting", "received", "left", "sent", "says", "having",
];

/// Words beside which an everyday word that is a network's name, too, can only be that: "and base?", "what about base".
const BESIDE: [&str; 26] = [
    "and", "or", "also", "plus", "what", "about", "how", "same", "for", "on", "with", "now", "then", "no", "yes", "ok",
    "okay", "please", "instead", "too", "try", "do", "it", "use", "using", "via",
];

/// Words of such a message, the name's included, at most.
const SHORT: usize = 6;

/// How addresses end that are looked for, such as `.base.eth`.
#[derive(Debug, Default)]
pub(super) struct Endings(Box<[Box<str>]>);

impl Endings {
    /// Those among `names`.
    pub(super) fn of_names<'p>(names: impl Iterator<Item = &'p Phrase>) -> Self {
        let mut all: Vec<Box<str>> = names.filter(|name| name.is_ending()).map(|name| name.text.clone()).collect();
        all.sort_by_key(|ending| std::cmp::Reverse(ending.len()));
        Self(all.into())
    }

    /// The ending of what is written; nothing if it has no dot.
    fn of<'w>(&self, written: &'w str) -> &'w str {
        let known = self.0.iter().find_map(|ending| {
            let at = written.len().checked_sub(ending.len())?;
            written.get(at..).filter(|end| end.eq_ignore_ascii_case(ending))
        });
        known.unwrap_or_else(|| &written[written.rfind('.').unwrap_or(written.len())..])
    }
}

/// A name to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Phrase {
    /// As written, for people.
    pub(super) text: Box<str>,
    words: Words,
    /// Does its spelling count? It does when it has capitals: `Base` is a network, `base` is a word.
    is_exact: bool,
}

impl Word {
    fn new(written: &str) -> Self {
        Self { written: written.into(), folded: written.to_lowercase().into(), is_cut: false }
    }

    /// Splits `text` at whatever is no letter and no digit.
    fn split(text: &str) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        // Each ends with one mark at most.
        for piece in text.split_inclusive(|char: char| !char.is_alphanumeric()) {
            let word = piece.trim_end_matches(|char: char| !char.is_alphanumeric());
            if !word.is_empty() {
                all.push(Self::new(word));
            }
            if let Some(last) = all.last_mut() {
                last.is_cut |= parts(piece);
            }
        }
        all
    }
}

impl Words {
    /// Splits `text` at whatever is no letter and no digit.
    pub(super) fn of(text: &str) -> Self {
        Self::new(Word::split(text))
    }

    fn new(all: Vec<Word>) -> Self {
        Self { bits: WordBits::of(all.iter().map(|word| &*word.folded)), all }
    }

    /// The same, but what refers to something by address, path or handle has no words that a name could be found in:
    /// `https://solana.com`, `eth-notes.md`, `@solana/web3.js`. Its ending is left, with the dot, as in `vitalik.eth`:
    /// the longest one of `endings`, or else the last.
    pub(super) fn of_prose(text: &str, endings: &Endings) -> Self {
        if !may_refer(text) {
            return Self::of(text);
        }
        let mut words: Vec<Word> = Vec::new();
        for piece in text.split_inclusive(|char: char| char.is_whitespace() || AROUND.contains(&char)) {
            let mut own = Word::split(piece);
            let written = piece.trim_end_matches(|char: char| char.is_whitespace() || AROUND.contains(&char));
            let written = written.trim_matches(ENDS);
            if is_reference(written) {
                let is_cut = own.last().is_some_and(|last| last.is_cut);
                own.fill(Word::default());
                if let Some(last) = own.last_mut() {
                    *last = Word { is_cut, ..Word::new(endings.of(written)) };
                }
            }
            if let Some(last) = words.last_mut().filter(|_| own.is_empty()) {
                last.is_cut |= parts(piece);
            }
            words.append(&mut own);
        }
        Self::new(words)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Is what begins at this word turned down, as in "rather than Solana", "not on Solana", "I don't want Solana", "no
    /// Solana please"? "No, Solana" chooses it.
    fn turns_down(&self, at: usize) -> bool {
        // Some may stand on both sides: "no need for".
        let longest = self.all[..at].iter().rev().take(FILLERS_AT_MOST);
        let fillers = longest.take_while(|word| FILLERS.contains(&&*word.folded) && !word.is_cut).count();
        (0..=fillers).any(|fillers| self.ends_turning_down(at - fillers, fillers))
    }

    /// Do the words before this one turn down what begins so many words behind?
    fn ends_turning_down(&self, at: usize, fillers: usize) -> bool {
        let before = &self.all[..at];
        if before.last().is_none_or(|last| last.is_cut) {
            return false;
        }
        let is_one_of = |words: &[&str], word: Option<&Word>| word.is_some_and(|word| words.contains(&&*word.folded));
        let behind = |count: usize| before.len().checked_sub(count + 1).and_then(|place| before.get(place));
        let begins_at =
            |count: usize| behind(count).is_none_or(|word| word.is_cut) || is_one_of(&BEFORE_ORDERS, behind(count));
        let is_wanting = |count: usize| !is_one_of(&HAVING, behind(count));
        let last: [&str; 2] = std::array::from_fn(|count| behind(count).map_or("", |word| &word.folded));
        match last {
            ["not", "why"] => false,
            ["of", "instead"]
            | ["than", "rather"]
            | ["interested", "not" | "t"]
            | ["not" | "without" | "except", _] => true,
            ["t", verb] => ["don", "doesn", "won", "isn"].contains(&verb),
            ["no", _] => fillers == 0 && is_wanting(1),
            ["need" | "more", "no"] => is_wanting(2),
            ["nothing", _] => fillers > 0 && is_wanting(1),
            ["mind", "never"] => begins_at(2),
            [order, _] => LEAVING.contains(&order) && begins_at(1),
        }
    }

    /// Does the message say nothing but a name of so many words, and what joins it to what was said?
    fn says_only(&self, length: usize) -> bool {
        let others = || self.all.iter().filter(|word| !BESIDE.contains(&&*word.folded));
        self.all.len() <= SHORT && others().count() == length
    }

    /// As they were written.
    pub(super) fn written(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|word| &*word.written)
    }
}

/// Does what ends a piece of a text part it from the next one? A hyphen does where it stands alone.
fn parts(piece: &str) -> bool {
    piece.ends_with(CUTS) || piece.starts_with('-')
}

/// Has a text a mark that addresses, paths and handles have? Most have none, and are split once.
pub(super) fn may_refer(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'.' | b'/' | b'@' | b'~'))
}

/// An address, a path or a handle: a dot or a slash stands inside that a letter follows, as no sentence ends.
fn is_reference(written: &str) -> bool {
    let dotted = |(at, _): (usize, &str)| {
        let before = written[..at].ends_with(char::is_alphanumeric);
        before && written[at + 1..].starts_with(|char: char| char.is_ascii_lowercase())
    };
    written.contains("://") || written.starts_with(['@', '/', '~']) || written.match_indices('.').any(dotted)
}

impl Phrase {
    pub(super) fn new(text: &str) -> Option<Self> {
        let words = if text.starts_with('.') { vec![Word::new(text)] } else { Word::split(text) };
        let words = Words::new(words);
        let is_exact = text.chars().any(char::is_uppercase);
        (!words.all.is_empty()).then(|| Self { text: text.into(), words, is_exact })
    }

    /// Is it how something else ends, such as `.eth`?
    pub(super) fn is_ending(&self) -> bool {
        self.text.starts_with('.')
    }

    /// Does the message have it, and not only to turn it down?
    pub(super) fn is_in(&self, message: &Words) -> bool {
        self.places_in(message).any(|place| !message.turns_down(place.start))
    }

    /// Where the message has it: the words that it consists of there.
    pub(super) fn places_in<'w>(&'w self, message: &'w Words) -> impl Iterator<Item = Range<usize>> + 'w {
        let length = self.words.all.len();
        let is_same = move |window: &[Word]| {
            let mut pairs = self.words.all.iter().zip(window);
            pairs.clone().all(|(own, other)| own.folded == other.folded)
                && (!self.is_exact
                    || pairs.all(|(own, other)| own.written == other.written)
                    || message.says_only(length))
        };
        let searched = if message.bits.may_have(self.words.bits) { message.all.as_slice() } else { &[] };
        searched.windows(length).enumerate().filter_map(move |(at, window)| is_same(window).then_some(at..at + length))
    }
}

/// A keyword to look for: its stems in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keyword {
    pub(super) text: Box<str>,
    stems: Stems,
}

impl Keyword {
    pub(super) fn new(text: &str) -> Option<Self> {
        let stems = Stems::of(text);
        (!stems.all.is_empty()).then(|| Self { text: text.into(), stems })
    }

    pub(super) fn is_in(&self, message: &Stems) -> bool {
        let (own, bits) = (&self.stems.all, self.stems.bits);
        message.bits.may_have(bits) && message.all.windows(own.len()).any(|window| window == own)
    }
}

/// The stems of a text in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stems {
    all: Vec<Box<str>>,
    bits: WordBits,
}

impl Stems {
    pub(super) fn of(text: &str) -> Self {
        let mut all: Vec<Box<str>> = Vec::new();
        analysis::terms(text, |term| all.push(term.into()));
        Self { bits: WordBits::of(all.iter().map(|stem| &**stem)), all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, message: &str, expected: bool) {
        let phrase = Phrase::new(name).unwrap();
        assert_eq!(phrase.is_in(&Words::of(message)), expected, "{name:?} in {message:?}");
    }

    #[test]
    fn names_are_found_as_whole_words() {
        check("polymarket", "What's hot on Polymarket?", true);
        check("sol", "swap 2 SOL", true);
        check("sol", "solve this", false);
        check("cross-chain", "a cross chain swap", true);
        check("Base", "the base price", false);
        check("Base", "and on Base?", true);
        check("on base", "and ON base?", true);
        for only in ["and base?", "what about base", "no, base please", "try it on base instead", "base"] {
            check("Base", only, true);
        }
        for more in ["and the base fee?", "what about the base", "no base please", "use it as the base", "base price"] {
            check("Base", more, false);
        }
        for turned_down in [
            "swap on Ethereum instead of Solana",
            "instead of Solana swap it on Ethereum",
            "use Ethereum rather than Solana to swap 1 token",
            "I do NOT want Solana, I want Ethereum",
            "don't show me Solana",
            "not on Solana",
            "no Solana please, just the web",
            "search the web, no solana",
            "please no more Solana",
            "no need for Solana",
            "I'm not interested in Solana",
            "skip Solana, search the web",
            "ok, forget about Solana",
            "never mind Solana",
            "but please ignore the Solana one",
            "avoid using Solana",
            "nothing from Solana please",
        ] {
            check("solana", turned_down, false);
        }
        for named in [
            "why not Solana?",
            "not only on Solana",
            "I don't know, Solana",
            "not Solana? Yes, Solana!",
            "no, Solana",
            "no - Solana",
            "no. Solana!",
            "never mind, Solana",
            "don't forget Solana",
            "how do I avoid Solana scams?",
            "I have no Solana left",
            "why is there nothing on Solana?",
            "nothing, Solana is down",
        ] {
            check("solana", named, true);
        }
        assert_eq!(Phrase::new("--"), None);
    }

    #[test]
    fn what_refers_to_something_names_nothing() {
        let check = |message: &str, expected: bool| {
            let words = Words::of_prose(message, &Endings::default());
            assert_eq!(words.len(), Words::of(message).len(), "{message:?}");
            assert_eq!(Phrase::new("eth").unwrap().is_in(&words), expected, "{message:?}");
        };
        for reference in [
            "read https://eth.org/en",
            "save it to eth-notes.md, please",
            "who is vitalik.eth?",
            "run npm install @eth/web3.js",
            "open /srv/eth/log",
            "(see eth.txt)",
        ] {
            check(reference, false);
        }
        for named in [
            "on [ETH](https://eth.org)",
            "ETH,see notes.md",
            "ETH\u{ff0c}https://x.org",
            "swap 0.5 ETH.",
            "ETH/USDC",
            "(eth)",
            "gas on eth...",
            "Eth.Then what?",
            "0.0.12 eth",
            "ETH-PERP",
        ] {
            check(named, true);
        }
        let known = [".eth", ".base.eth"].map(|ending| Phrase::new(ending).unwrap());
        let endings = Endings::of_names(known.iter());
        let ends = |message: &str| {
            let words = Words::of_prose(message, &endings);
            known.iter().filter(|ending| ending.is_in(&words)).map(|ending| &*ending.text).collect::<Vec<_>>().join(" ")
        };
        for (message, expected) in [
            ("who is vitalik.eth?", ".eth"),
            ("(bob.base.ETH)", ".base.eth"),
            ("bob.eth, or jesse.base.eth?", ".eth .base.eth"),
            ("database.eth", ".eth"),
            ("eth", ""),
            ("eth.md", ""),
            ("https://eth.org", ""),
        ] {
            assert_eq!(ends(message), expected, "{message:?}");
        }
    }

    #[test]
    fn keywords_are_found_by_their_stems() {
        let keyword = Keyword::new("prediction market").unwrap();
        assert!(keyword.is_in(&Stems::of("which prediction markets are there?")));
        assert!(!keyword.is_in(&Stems::of("a market without a prediction")));
    }
}
