//! What a request carries along: "remind me to merge the pull request" asks for a reminder, and for no merge.
//!
//! Such content is material, as code and quotations are, but stands in the middle of a sentence: in quotation marks, or
//! behind words that tell, note or look for something. It is found by those words alone, so that what is not said in
//! one of these ways stays part of the request.

use std::ops::Range;

use super::word_list::is_in;

/// Words in quotation marks from which on they are content; fewer may as well be a name.
const LEAST_QUOTED: usize = 3;

/// Quotation marks that open, and those that close.
const QUOTES: [(char, char); 3] = [('"', '"'), ('“', '”'), ('«', '»')];

/// What may stand before the verb of an order.
const POLITE: &str = "please can could would will you hey hi just then also and so i we want need to like kindly";

/// Verbs of telling somebody something. Whoever has something written ("write tests for …") mostly tells nobody.
const TELLING: &str = "email mail tell text message ask notify inform ping dm warn";

/// Who begins to be told, unless it is a name; and who asks, and is told what is asked for.
const TOLD: &str = "the my our him her them everyone everybody";
const ASKING: &str = "me us you i";

/// What begins that which is asked.
const QUESTIONS: &str = "what how who where when why which";

/// What begins that which is told. "Tell the thermostat to …" wants it done, and "warn the team if …" watched.
const TOLD_WHAT: &str = "that whether";

/// How a sentence begins that is told without these: "email Tom the train is late".
const SENTENCE: &str = "the a an my our your his her their it it's i i'm i'll we we're he she they this there";

/// Verbs of keeping something in mind.
const KEEPING: &str = "remember note memorize memorise";

/// What begins that which is kept in mind.
const KEPT: &str = "that to i i'm my we our the he she they";

/// Verbs of writing something down, and what has its text behind a colon then: "file a bug: …".
const WRITING: &str = "file open create add write jot log note take make post leave";
const WRITTEN: &str = "bug issue ticket note memo reminder todo task tweet post comment entry later down";

/// Where things are put on.
const LISTS: &str = "list todos todo to-do to-dos tasks backlog agenda reminders notes";

/// Where something is looked for.
const PLACES: &str = "web internet online reddit twitter notes note mail mails email emails inbox messages chats \
    memories journal";

/// How that begins which is googled; what else stands there may be another thing of Google's.
const GOOGLED: &str = "the a an for how what who why where when best";

/// Words of what people say somewhere.
const SAYING: &str = "say saying says think thinking talk talking";

/// Before a quotation they make a name of it: "use \"create pull request\"".
const NAMING: &str = "use using call run tool invoke with";

/// Lists that are somebody's without a word for whose.
const OWN_LISTS: &str = "shopping todo to-do grocery task packing bucket";

/// What begins that which is looked for.
const LOOKED_FOR: &str = "for about regarding on";

/// Words within which a beginning stands, and those between its parts.
const NEAR: usize = 7;
const BETWEEN: usize = 5;

/// Where in a clause the content stands that it carries along, in bytes.
pub(super) fn carried(clause: &str) -> Option<Range<usize>> {
    let words = words(clause);
    let end = clause.trim_end().len();
    let rest = |from: usize| words.get(from).map(|word| word.start..end);
    quoted(clause)
        .or_else(|| on_a_list(&words))
        .or_else(|| reminded(&words).and_then(rest))
        .or_else(|| told(&words).and_then(rest))
        .or_else(|| kept(&words).and_then(rest))
        .or_else(|| written(clause, &words).and_then(rest))
        .or_else(|| looked_for(&words).and_then(rest))
}

struct Word {
    folded: String,
    start: usize,
    end: usize,
    is_capital: bool,
}

impl Word {
    fn is_in(&self, list: &str) -> bool {
        is_in(list, &self.folded)
    }
}

fn words(clause: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, char) in clause.char_indices().chain([(clause.len(), ' ')]) {
        let is_inner = char.is_alphanumeric() || matches!(char, '\'' | '’' | '-' | '_');
        match (start, is_inner) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                let written = &clause[from..at];
                let is_capital = written.starts_with(char::is_uppercase);
                let folded = written.to_lowercase().replace('’', "'");
                words.push(Word { folded, start: from, end: at, is_capital });
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// A quotation that is not the whole clause, nor a name.
fn quoted(clause: &str) -> Option<Range<usize>> {
    QUOTES.iter().find_map(|(open, close)| {
        let mark = clause.find(*open)?;
        let (before, start) = (&clause[..mark], mark + open.len_utf8());
        let end = start + clause[start..].find(*close)?;
        let after = &clause[end + close.len_utf8()..];
        // `13"` are inches.
        let is_apart = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        let is_named = words(before).last().is_some_and(|word| word.is_in(NAMING));
        let is_all = !(before.contains(char::is_alphanumeric) || after.contains(char::is_alphanumeric));
        let is_long = clause[start..end].split_whitespace().count() >= LEAST_QUOTED;
        (is_long && is_apart && !is_named && !is_all).then_some(start..end)
    })
}

/// Where the verb of an order stands, behind words of courtesy.
fn verb(words: &[Word]) -> Option<usize> {
    words.iter().take(NEAR).position(|word| !word.is_in(POLITE))
}

/// The first word of a list within the next few from a place on.
fn next_in(words: &[Word], from: usize, list: &str) -> Option<usize> {
    (from..words.len().min(from + BETWEEN)).find(|&place| words[place].is_in(list))
}

/// "Remind me at 9 to …", "so that I don't forget to …".
fn reminded(words: &[Word]) -> Option<usize> {
    let begins = words.iter().take(NEAR + BETWEEN).position(|word| word.is_in("remind forget"))?;
    let before = || words[..begins].iter();
    // "Don't forget to …" says to do it.
    let is_fear = before().any(|word| word.is_in("i we")) && before().any(|word| word.is_in("don't dont not never"));
    let what = next_in(words, begins + 1, "to that about")?;
    // "Remind me what we said about …" asks.
    let asks = words[begins..what].iter().any(|word| word.is_in(QUESTIONS));
    (!asks && (words[begins].folded == "remind" || is_fear)).then_some(what + 1)
}

/// "Email Tom that …", "ask the team whether …", "let Ann know that …".
fn told(words: &[Word]) -> Option<usize> {
    let verb = verb(words)?;
    let whom = words.get(verb + 1).filter(|whom| !whom.is_in(ASKING) && !whom.is_in(QUESTIONS))?;
    if words[verb].folded == "let" {
        let know = next_in(words, verb + 1, "know")?;
        return Some(know + 1 + usize::from(words.get(know + 1).is_some_and(is_that)));
    }
    // Where all words have capitals, none is a name for that.
    let is_name = whom.is_capital && words[verb + 2..].iter().any(|word| !word.is_capital);
    if !words[verb].is_in(TELLING) || !(is_name || whom.is_in(TOLD)) {
        return None;
    }
    let what = next_in(words, verb + 2, TOLD_WHAT).map(|what| what + 1);
    let says = is_name && words.len() >= verb + 5 && words[verb + 2].is_in(SENTENCE);
    what.or(says.then_some(verb + 2))
}

fn is_that(word: &Word) -> bool {
    word.folded == "that"
}

/// "Remember that …", "note that …".
fn kept(words: &[Word]) -> Option<usize> {
    let verb = verb(words).filter(|&verb| words[verb].is_in(KEEPING))?;
    let what = words.get(verb + 1).filter(|word| word.is_in(KEPT))?;
    Some(verb + 1 + usize::from(what.is_in("that to")))
}

/// "File a bug: …", "jot down: …".
fn written(clause: &str, words: &[Word]) -> Option<usize> {
    let colon = clause.find(": ")?;
    let what = words.iter().position(|word| word.start > colon).filter(|&what| what <= NEAR)?;
    let is_written = words[what.checked_sub(1)?].is_in(WRITTEN) && words[verb(words)?].is_in(WRITING);
    is_written.then_some(what)
}

/// "Add … to my list".
fn on_a_list(words: &[Word]) -> Option<Range<usize>> {
    let verb = verb(words).filter(|&verb| words[verb].is_in("add put"))?;
    let list = words.iter().rposition(|word| word.is_in(LISTS))?;
    let onto = (list.saturating_sub(4)..list).rev().find(|&place| words[place].is_in("to on onto in into"))?;
    let is_whose = words[onto + 1..=list].iter().any(|word| word.is_in("my our") || word.is_in(OWN_LISTS));
    (is_whose && onto > verb + 1).then(|| words[verb + 1].start..words[onto - 1].end)
}

/// "Search the web for …", "find my note about …", "google …", "what do people say about …".
fn looked_for(words: &[Word]) -> Option<usize> {
    let verb = verb(words)?;
    if words[verb].folded == "google" {
        return Some(verb + 1).filter(|&what| words.get(what).is_some_and(|word| word.is_in(GOOGLED)));
    }
    let asks = words[verb].is_in("what what's");
    if !asks && !words[verb].is_in("search look find browse") {
        return None;
    }
    let place = next_in(words, verb + 1, PLACES)?;
    let what = next_in(words, place + 1, LOOKED_FOR)?;
    let is_said = words[place..what].iter().any(|word| word.is_in(SAYING));
    (!asks || is_said).then_some(what + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn content_is_found_behind_what_carries_it() {
        let check = |clause: &str, expected: Option<&str>| {
            assert_eq!(carried(clause).map(|content| &clause[content]), expected, "what {clause:?} carries");
        };
        check("remind me to merge the pull request tomorrow", Some("merge the pull request tomorrow"));
        check("Could you remind Ann at 9 that the rent is due?", Some("the rent is due?"));
        check("set an alarm so I don't forget to lock the door", Some("lock the door"));
        check("don't forget to water the plants", None);
        check("that reminds me of the weather", None);
        check("email Tom the weather forecast is bad", Some("the weather forecast is bad"));
        check("please tell Sara by mail that the build is red", Some("the build is red"));
        check("ask the team whether we should deploy", Some("we should deploy"));
        check("let Ann know that I booked the flight", Some("I booked the flight"));
        check("let me know the price of gold", None);
        for text in [
            "tell me about the weather",
            "TELL ME THE PRICE OF BITCOIN",
            "Tell Me What The Weather Is In Paris",
            "tell the thermostat to heat to 21 degrees",
            "Ask Claude to summarize this PDF",
            "notify the channel if the price of ETH drops",
            "Write Python code for parsing CSV files",
            "write the query that returns the top ten customers",
            "Email Marketing campaign stats for last week please",
            "remind me what we said about the deployment",
            "I want to forget about the wifi",
            "Task: find flights to Rome",
            "Fix this issue: the login page crashes",
            "Google Calendar events for tomorrow",
            "check memory usage on the production server",
            "what's the target for Reddit on Polymarket",
            "add a new node to the linked list",
            "Add retry logic to the background tasks",
            "use \"create pull request\" for it",
            "\"swap 2 SOL for USDC\"",
            "buy a 13\" laptop with a 15\" sleeve",
        ] {
            check(text, None);
        }
        check("write a poem about the sea", None);
        check("write the code to sort a list", None);
        check("email Tom", None);
        check("ask Ann for the key of the house", None);
        check("remember that I like pizza", Some("I like pizza"));
        check("remember my main wallet is new", Some("my main wallet is new"));
        check("do you remember the weather?", None);
        check("jot down: run the export every month", Some("run the export every month"));
        check("file a bug: the forecast shows the wrong city", Some("the forecast shows the wrong city"));
        check("do the following: book a flight", None);
        check("add deploy the api to my todos", Some("deploy the api"));
        check("put milk and bread on the shopping list", Some("milk and bread"));
        check("add two numbers to the sum", None);
        check("search the web for election polls", Some("election polls"));
        check("find my note about the flight", Some("the flight"));
        check("google the best pizza in Rome", Some("the best pizza in Rome"));
        check("what do people on reddit say about bridges", Some("bridges"));
        check("find a flight to Rome", None);
        check("translate \"please cancel the meeting\" to German", Some("please cancel the meeting"));
        check("play \"Hey Jude\" by the Beatles", None);
        check("", None);
    }

    proptest! {
        #[test]
        fn it_is_a_part_of_any_clause(
            clause in "((remind|tell|add|to|my|list|Tom|that|\"|: |note|web|for|\\PC{0,3}) ?){0,12}",
        ) {
            prop_assert!(carried(&clause).is_none_or(|content| clause.get(content).is_some()));
        }
    }
}
