//! The text that a memory is found by, and the text that is looked for, as terms and as a vector.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::id::StructuredId;
use super::kind::{Kind, Metadata};
use super::schema;
use super::stored::SearchKeys;
use crate::strict::decode::decode_with;
use crate::text::embedding::{DOCUMENT_PIECES, Pool, QUERY_PIECES, Quantized, Table, Vector};
use crate::text::{analysis, irregular};

/// What the speaker's name weighs beside the text, whose weight is 1.
const SPEAKER: f32 = 0.4;

/// Terms of one query; more say nothing more, and each costs a look into the index or, with other forms, some.
const MAX_TERMS: usize = 64;

/// Which way of taking texts apart this is. Where another made what memories are found by, all of it is made anew.
pub const ANALYSIS: i64 = 1;

/// What a memory is found by that was stored before; its text alone if its metadata is damaged.
pub fn index_stored(kind: u8, metadata: &str, content: &str) -> SearchKeys {
    let read = || {
        let kind = Kind::of_number(kind)?;
        let mut metadata: Map<String, Value> = serde_json::from_str(metadata).ok()?;
        metadata.retain(|key, _| !matches!(key.as_str(), "is_deleted" | "deletion_time"));
        schema::migrate(kind, &mut metadata);
        decode_with(Value::Object(metadata).into(), |node, at| Metadata::read(kind, node, at)).ok()
    };
    match read() {
        Some(metadata) => index(&metadata, content),
        None => SearchKeys {
            words: words(content),
            speaker: String::new(),
            vector: Quantized::from(&meaning(content, DOCUMENT_PIECES)),
        },
    }
}

/// What a memory is found by.
pub fn index(metadata: &Metadata, content: &str) -> SearchKeys {
    let speaker = metadata.speaker().map(StructuredId::id).unwrap_or_default();
    let title = match metadata {
        Metadata::Document(document) => document.details.title.as_deref(),
        Metadata::Task(task) => Some(task.title.as_str()),
        Metadata::Message(_) | Metadata::CognitiveProcess(_) => None,
    };
    let description = match metadata {
        Metadata::Task(task) => task.details.description.as_deref(),
        _ => None,
    };
    let parts: Vec<&str> = title.into_iter().chain([content]).chain(description).collect();
    let text = parts.join("\n");
    let mut pool = Pool::default();
    pool.add(&meaning(&text, DOCUMENT_PIECES), 1.0);
    if !speaker.is_empty() {
        pool.add(&meaning(speaker, QUERY_PIECES), SPEAKER);
    }
    SearchKeys { words: words(&text), speaker: words(speaker), vector: Quantized::from(&pool.vector()) }
}

/// What is looked for: its terms, each once, and what it means.
pub fn query(text: &str) -> (Vec<String>, Quantized) {
    let (mut terms, mut seen) = (Vec::new(), HashSet::new());
    let (mut wins, mut after_won) = (0, false);
    analysis::terms_without_plurals_of_abbreviations(text, |term| {
        wins -= i32::from(after_won && term == "t");
        after_won = term == "won";
        wins += i32::from(after_won);
        if terms.len() < MAX_TERMS && seen.insert(term.to_owned()) {
            terms.push(term.to_owned());
        }
    });
    // A character of a pair says nothing more than the pair does.
    let paired: HashSet<char> =
        terms.iter().filter(|term| analysis::lone(term).is_none()).flat_map(|term| term.chars()).collect();
    terms.retain(|term| analysis::lone(term).is_none_or(|lone| !paired.contains(&lone)));
    // Nobody looks for `the`, unless for nothing else.
    if terms.iter().any(|term| !FUNCTION_WORDS.contains(term)) {
        terms.retain(|term| !FUNCTION_WORDS.contains(term));
    }
    if wins == 0 && terms.len() > 1 {
        // "Won't" is no form of "win".
        terms.retain(|term| term != "won");
    }
    (terms, Quantized::from(&meaning(text, QUERY_PIECES)))
}

/// The other forms of some terms, each with the place of its term, but for those that are terms themselves.
pub fn forms_of(terms: &[String]) -> Vec<(usize, &'static str)> {
    let forms = |(place, term)| irregular::other_forms(term).map(move |form| (place, form));
    let forms = terms.iter().map(String::as_str).enumerate().flat_map(forms);
    forms.filter(|(_, form)| !terms.iter().any(|term| term == form)).collect()
}

/// Words that hold a sentence together and say nothing of what it is about, stemmed.
static FUNCTION_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    term_set(
        "a about am an and any are as at be been but by can could did do does for from had has have he her hers him \
         his how \
         i if in into is it its me my of on or our s she should so t than that the their them then there these they \
         this \
         those to us was we were what when where which who whom whose why will with would you your",
    )
});

/// The terms of a text, as memories are found by them.
pub(super) fn term_set(text: &str) -> HashSet<String> {
    let mut terms = HashSet::new();
    analysis::terms_without_plurals_of_abbreviations(text, |term| {
        terms.insert(term.to_owned());
    });
    terms
}

fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    analysis::terms_without_plurals_of_abbreviations(text, |term| {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(term);
    });
    words
}

/// What a text means, rare pieces counting more. Where a word stands in the vocabulary, most common first, tells how
/// rare it is, without counts that would change while memories come and go: what was stored stays comparable.
fn meaning(text: &str, pieces: usize) -> Vector {
    Table::shipped().embed_weighted(text, pieces, |piece| idf(piece.index()))
}

/// The square root of the inverse document frequency that Zipf's law gives a word of that rank: found better than
/// either alone on requests for tools.
fn idf(index: usize) -> f32 {
    let rank = match index {
        ..FIRST_SIGN_END => 0,
        FIRST_SIGN_END..FIRST_WORD => SINGLE,
        _ => index - FIRST_WORD,
    };
    (2.0 + rank as f32).ln().sqrt()
}

/// Up to here the vocabulary has the ASCII signs, which mean next to nothing.
const FIRST_SIGN_END: usize = 16;

/// Single characters end here, and words begin.
const FIRST_WORD: usize = 998;

/// A rank for single characters, which are not sorted by it.
const SINGLE: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::message::MessageDetails;
    use crate::memory::vocabulary::MessageRole;
    use crate::memory::{create_message_metadata, create_thread_info};

    #[test]
    fn the_commonest_word_is_the_first_of_the_vocabulary() {
        let mut pieces = Vec::new();
        Table::shipped().pieces("the . 5 beagle", 9, |piece| pieces.push(piece.index()));
        assert_eq!(pieces[0], FIRST_WORD);
        let weights: Vec<f32> = pieces.iter().map(|&piece| idf(piece)).collect();
        assert!(weights[1] <= weights[0] && weights[0] < weights[2] && weights[2] < weights[3], "{weights:?}");
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(query(text).0, expected, "terms of {text:?}");
    }

    #[test]
    fn words_without_spaces_are_looked_for_by_pairs() {
        check("绿茶", &["绿茶"]);
        check("茶", &["茶"]);
        check("我 喜欢绿茶", &["我", "喜欢", "欢绿", "绿茶"]);
    }

    #[test]
    fn function_words_are_not_looked_for() {
        check("What is the name of his dog?", &["name", "dog"]);
        check("the what", &["the", "what"]);
        check("dogs dog DOG", &["dog"]);
        check("who won't come?", &["come"]);
        check("who won't come, and who won?", &["won", "come"]);
        check("won't", &["won"]);
        assert_eq!(forms_of(&query("who met me, or will meet me, and went?").0), [(2, "go"), (2, "goe"), (2, "gone")]);
        check("\" OR NEAR(x) *", &["near", "x"]);
        check("***", &[]);
        assert_eq!(query(&"word1 word2 ".repeat(9000)).0.len(), 2);
        let many: String = (0..100).map(|number| format!("word{number} ")).collect();
        assert_eq!(query(&many).0.len(), MAX_TERMS);
    }

    #[test]
    fn a_speaker_counts_for_words_and_meaning() {
        let id = |name: &str| StructuredId::new("agent", "agent", name, None).unwrap();
        let said = |role: MessageRole, sender: Option<&str>| {
            let details = MessageDetails { sender_agent_id: sender.map(id), ..MessageDetails::default() };
            let thread = create_thread_info("t", 0, None).unwrap();
            let metadata =
                create_message_metadata(role, id("gardener"), id("nurse"), id("chat"), thread, details).unwrap();
            index(&Metadata::Message(metadata), "hello")
        };
        let nobody = said(MessageRole::System, None);
        assert_eq!((nobody.words.as_str(), nobody.speaker.as_str()), ("hello", ""));
        for (role, sender, speaker) in [
            (MessageRole::User, None, "garden"),
            (MessageRole::Assistant, None, "nurs"),
            (MessageRole::Tool, Some("pilot"), "pilot"),
        ] {
            let index = said(role, sender);
            assert!(index.speaker.starts_with(speaker), "{role}: {}", index.speaker);
            let (similarity, before) = {
                let name = query(sender.unwrap_or(if role == MessageRole::User { "gardener" } else { "nurse" })).1;
                (index.vector.dot(&name), nobody.vector.dot(&name))
            };
            assert!(similarity > before, "{role}: {similarity} and {before}");
        }
    }
}
