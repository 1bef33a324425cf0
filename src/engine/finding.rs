//! Finding tools by what is to be done, as an agent asks: without a session, within what the caller may call, and never
//! an empty hand.

use std::sync::Arc;

use super::{Engine, Generation};
use crate::catalog::Entry;
use crate::qualify::{Ranked, Ranking};
use crate::text::embedding::Table;

/// From this probability on a tool is found that shares no word with the query; what selection offers alone is less
/// sure of itself, since a model still chooses from it.
const LEAST_WITHOUT_WORDS: f32 = 0.1;

/// And only if it is that alike in meaning: of few tools the likeliest is likely whatever is asked. Words that have
/// nothing to do with a tool come to .1 at most, a task in other words than the tool's to .15 and more.
const LEAST_ALIKE: f32 = 0.12;

/// Tools that are looked through at most.
const MOST: usize = 200;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct ToolQuery<'q> {
    /// Whose choices count.
    pub tenant: &'q str,
    /// What is to be done.
    pub text: &'q str,
    /// Tools at most.
    pub limit: usize,
    /// So many stand in where nothing fits.
    pub nearest: usize,
}

/// A tool that was found.
#[derive(Debug, Clone)]
pub struct FoundTool {
    /// The tool.
    pub entry: Arc<Entry>,
    /// The probability that it is meant, 0 to 1; 1 of one that is named.
    pub score: f32,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct FoundTools {
    /// The tools, those that are named first, then the likeliest.
    pub tools: Vec<FoundTool>,
    /// How many more there are.
    pub more: usize,
    /// What comes nearest, if nothing fits.
    pub nearest: Vec<Arc<Entry>>,
}

impl Engine {
    /// Which tools do what is to be done? Of those that `is_offered`. A tool whose exact name stands in the query is
    /// first.
    pub fn find(
        &self,
        generation: &Generation,
        query: &ToolQuery<'_>,
        is_offered: impl Fn(&Entry) -> bool,
    ) -> FoundTools {
        let (selector, usage) = (self.selector(generation), self.qualifier.usage(query.tenant));
        let mut ranking = Ranking::new(selector.index(), &selector.index().message(query.text), &usage);
        let named = named(generation, query.text);
        // The index may be that of the catalog of a moment ago.
        let index = selector.index();
        let is_other = |number: &u32| {
            let entry = index.entry(*number as usize);
            let is_named = named.iter().any(|named| named.name() == entry.name());
            !is_named && generation.tool(entry.name()).is_some() && is_offered(entry)
        };
        let likely = ranking.matching().into_iter().take(MOST).filter(is_other);
        let likely = likely.map(|number| ranking.ranked(number as usize));
        let has_words = has_words(query.text);
        let is_alike = |number: usize| has_words && ranking.similarity(number) >= LEAST_ALIKE;
        let fits = |tool: &Ranked| {
            ranking.shares_words(tool.number)
                || is_alike(tool.number) && ranking.probability_if_any(tool.number) >= LEAST_WITHOUT_WORDS
        };
        let found = likely.filter(fits).map(|tool| FoundTool { entry: tool.entry, score: tool.confidence });
        let named = named.iter().filter(|entry| is_offered(entry));
        let mut tools: Vec<FoundTool> =
            named.map(|entry| FoundTool { entry: Arc::clone(entry), score: 1.0 }).chain(found).collect();
        let more = tools.len().saturating_sub(query.limit);
        tools.truncate(query.limit);
        let nearest = if tools.is_empty() {
            let all = ranking.best_numbers(index.len()).iter().filter(|number| is_other(number));
            all.take(query.nearest).map(|&number| Arc::clone(index.entry(number as usize))).collect()
        } else {
            Vec::new()
        };
        FoundTools { tools, more, nearest }
    }
}

/// Is there a word in the text whose meaning is known? What is cut into pieces of words is like anything.
fn has_words(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.into_iter().any(|word| !word.is_ascii() || Table::shipped().is_word(word))
}

/// The tools whose whole names stand in the text, in its order.
fn named(generation: &Generation, text: &str) -> Vec<Arc<Entry>> {
    let mut named: Vec<Arc<Entry>> = Vec::new();
    let is_mark = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-');
    let words = text.split_whitespace().map(|word| word.trim_matches(is_mark));
    for entry in std::iter::once(text.trim()).chain(words).filter_map(|word| generation.tool(word)) {
        if !named.iter().any(|known| known.name() == entry.name()) {
            named.push(Arc::clone(entry));
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::catalog::load::{LoadOptions, load};

    fn engine() -> Engine {
        let directory = tempfile::tempdir().unwrap();
        let tools = [
            ("web_search", "Search the web for pages, news and answers to questions."),
            ("send_email", "Send an email message to one or more recipients."),
            ("read_file", "Read the content of a file from the disk."),
        ];
        for (name, description) in tools {
            let text = format!(
                "name: {name}\ntitle: {name}\ndescription: {description}\ncategory: c\n\
                 capabilities: []\nkeywords: []\nuse_cases: []\n"
            );
            fs::write(directory.path().join(format!("{name}.yaml")), text).unwrap();
        }
        let engine = Engine::new();
        engine.publish(&load(LoadOptions::directory(directory.path())));
        engine
    }

    #[test]
    fn what_is_named_is_first_and_what_is_not_offered_is_not_found() {
        let engine = engine();
        let check = |text: &str, limit: usize, hidden: &str, first: Option<&str>| {
            let generation = Arc::clone(&engine.generation());
            let query = ToolQuery { tenant: "default", text, limit, nearest: 3 };
            let found = engine.find(&generation, &query, |entry| **entry.name() != *hidden);
            assert_eq!(found.tools.first().map(|tool| &**tool.entry.name()), first, "{text}");
            assert!(found.tools.len() <= limit && found.tools.iter().all(|tool| **tool.entry.name() != *hidden));
            assert_eq!(found.nearest.is_empty(), first.is_some(), "{text}");
        };
        check("send an email to Anna", 2, "", Some("send_email"));
        check("find news on the web about read_file, please", 3, "", Some("read_file"));
        check("send_email", 1, "", Some("send_email"));
        check("send_email", 3, "send_email", None);
    }

    #[test]
    fn what_says_nothing_finds_nothing_and_other_words_do() {
        let engine = engine();
        let check = |text: &str, first: Option<&str>| {
            let generation = Arc::clone(&engine.generation());
            let query = ToolQuery { tenant: "default", text, limit: 3, nearest: 3 };
            let found = engine.find(&generation, &query, |_| true);
            assert_eq!(found.tools.first().map(|tool| &**tool.entry.name()), first, "{text}");
            assert_eq!(found.nearest.len(), if first.is_none() { 3 } else { 0 }, "{text}");
        };
        for nothing in ["qwertz uiop", "asdf", "xkcd blorb zzz", "hjkl hjkl", "foo bar baz", "make coffee", ""] {
            check(nothing, None);
        }
        check("look something up online", Some("web_search"));
        check("google it", Some("web_search"));
        check("show me what is in notes.txt", Some("read_file"));
        check("tell Anna that I am late", Some("send_email"));
    }
}
