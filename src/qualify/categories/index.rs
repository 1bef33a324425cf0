//! The categories as one catalog fills them.

use std::collections::BTreeMap;

use super::phrase::{Endings, Keyword, Phrase, Stems, Words, may_refer};
use super::{Categories, Category};
use crate::qualify::Index;
use crate::qualify::message::MAX_BYTES;
use crate::text::head::head;

/// So many tools may be offered whole, however few others there are.
const FEW: usize = 5;

/// The categories of a catalog, always ready to be compared with a message.
#[derive(Debug)]
pub struct CategoryIndex {
    categories: Box<[Held]>,
    networks: Box<[(String, Vec<Phrase>)]>,
    /// How addresses on them end.
    endings: Endings,
    /// Per tool, by number: its categories.
    of_tool: Box<[Vec<u16>]>,
    /// Per tool, by number: is one of them always offered?
    is_always: Box<[bool]>,
}

/// A category and its tools.
#[derive(Debug)]
pub(in crate::qualify) struct Held {
    pub(in crate::qualify) category: Category,
    /// Numbers in the index, ascending.
    pub(in crate::qualify) tools: Vec<usize>,
    names: Vec<Phrase>,
    keywords: Vec<Keyword>,
    /// Does it hold most of the catalog? Then it tells nothing of what a message needs.
    pub(in crate::qualify) is_wide: bool,
}

/// What a message says of a category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::qualify) struct Mention {
    /// The name by which it is called.
    pub(in crate::qualify) name: Option<Box<str>>,
    /// Words that speak for it.
    pub(in crate::qualify) keywords: Vec<Box<str>>,
}

impl CategoryIndex {
    /// Sorts the tools of `index` into `categories`. Those that hold none are not there; the ones always offered come
    /// first, then the file's order, then documents' own by name.
    pub fn new(categories: &Categories, index: &Index) -> Self {
        let tools: Vec<Placed> =
            index.entries.iter().enumerate().map(|(number, entry)| Placed::of(number, entry)).collect();
        let mut all: Vec<Held> = categories.categories.iter().map(|category| Held::new(category, &tools)).collect();
        let mut own: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for tool in &tools {
            let is_known = categories.categories.iter().any(|known| known.name == tool.category || known.holds(tool));
            if !is_known && !tool.category.is_empty() {
                own.entry(&tool.category).or_default().push(tool.number);
            }
        }
        all.extend(own.into_iter().map(|(name, tools)| {
            let category = Category { name: name.to_owned(), ..Category::default() };
            // Such a name may be an everyday word, like "file", and says no more than a keyword does.
            let keywords = Keyword::new(name).into_iter().collect();
            Held { names: Vec::new(), keywords, category, tools, is_wide: false }
        }));
        all.retain(|held| !held.tools.is_empty());
        for held in &mut all {
            held.is_wide = held.tools.len() > FEW && 2 * held.tools.len() > index.len();
        }
        all.sort_by_key(|held| !held.category.always);
        let mut of_tool = vec![Vec::new(); index.len()];
        for (number, held) in (0..).zip(&all) {
            held.tools.iter().for_each(|&tool| of_tool[tool].push(number));
        }
        let mut is_always = vec![false; index.len()];
        let always = all.iter().filter(|held| held.category.always).flat_map(|held| &held.tools);
        always.for_each(|&tool| is_always[tool] = true);
        let networks =
            categories.networks.iter().map(|network| (network.name.clone(), phrases(&network.name, &network.aliases)));
        let networks: Box<[(String, Vec<Phrase>)]> = networks.collect();
        let names = networks.iter().map(|(_, names)| names).chain(all.iter().map(|held| &held.names));
        Self {
            endings: Endings::of_names(names.flatten()),
            networks,
            categories: all.into(),
            of_tool: of_tool.into(),
            is_always: is_always.into(),
        }
    }

    /// The names of all categories, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.categories.iter().map(|held| held.category.name.as_str())
    }

    /// The names of all networks, in their order.
    pub fn networks(&self) -> impl Iterator<Item = &str> {
        self.networks.iter().map(|(name, _)| name.as_str())
    }

    /// The categories of a tool, by its number.
    pub fn of_tool(&self, number: usize) -> impl Iterator<Item = &str> {
        self.of_tool[number].iter().map(|&category| self.categories[usize::from(category)].category.name.as_str())
    }

    /// Is the tool, by its number, of a category that is always offered?
    pub(in crate::qualify) fn is_always(&self, number: usize) -> bool {
        self.is_always[number]
    }

    pub(in crate::qualify) fn all(&self) -> &[Held] {
        &self.categories
    }

    pub(in crate::qualify) fn places_of(&self, number: usize) -> impl Iterator<Item = usize> {
        self.of_tool[number].iter().map(|&category| usize::from(category))
    }

    /// The networks that the message names, in their order.
    pub(in crate::qualify) fn networks_in(&self, text: &str) -> Vec<String> {
        let words = Words::of_prose(head(text, MAX_BYTES), &self.endings);
        let named = |by_ending: bool| {
            let is_named = |name: &Phrase| name.is_ending() == by_ending && name.is_in(&words);
            let named = self.networks.iter().filter(|(_, names)| names.iter().any(is_named));
            named.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        // How an address ends counts where nothing else tells: `bob.eth` has one on Base, too.
        Some(named(false)).filter(|named| !named.is_empty()).unwrap_or_else(|| named(true))
    }

    /// For each word of a text, split as names are: is it of the name of a network?
    pub(in crate::qualify) fn network_words(&self, text: &str) -> Vec<bool> {
        self.marks_of_networks(&Words::of_prose(head(text, MAX_BYTES), &self.endings))
    }

    /// The same for the names of networks and categories.
    pub(in crate::qualify) fn words_of_names(&self, text: &str) -> Vec<bool> {
        let words = Words::of(head(text, MAX_BYTES));
        let mut marks = self.network_words(text);
        for name in self.categories.iter().flat_map(|held| &held.names) {
            name.places_in(&words).for_each(|place| marks[place].fill(true));
        }
        marks
    }

    fn marks_of_networks(&self, words: &Words) -> Vec<bool> {
        let mut marks = vec![false; words.len()];
        for name in self.networks.iter().flat_map(|(_, names)| names) {
            name.places_in(words).for_each(|place| marks[place].fill(true));
        }
        marks
    }

    /// The words of a text that are of no network's name.
    pub(in crate::qualify) fn without_networks(&self, text: &str) -> String {
        let words = Words::of(head(text, MAX_BYTES));
        let marks = self.network_words(text);
        let others = words.written().zip(marks).filter(|(_, is_network)| !is_network).map(|(word, _)| word);
        others.collect::<Vec<_>>().join(" ")
    }

    /// These categories, where other networks take the place of those that they serve: categories of other networks go,
    /// and if there were some, those of the new ones come.
    pub(in crate::qualify) fn moved_to(&self, networks: &[String], categories: &[String]) -> Vec<String> {
        let serves = |held: &Held| held.category.networks.iter().any(|network| networks.contains(network));
        let is_bound = |name: &String| {
            self.categories.iter().any(|held| held.category.name == *name && !held.category.networks.is_empty())
        };
        let new = self.categories.iter().filter(|held| serves(held)).map(|held| &held.category.name);
        let new: Vec<&String> = if categories.iter().any(is_bound) { new.collect() } else { Vec::new() };
        let stays = categories.iter().filter(|name| !is_bound(name));
        stays.chain(new).cloned().collect()
    }

    /// What the message says of each category, in their order.
    pub(in crate::qualify) fn mentions(&self, text: &str) -> Vec<Mention> {
        let text = head(text, MAX_BYTES);
        let (words, stems) = (Words::of(text), Stems::of(text));
        let apart = may_refer(text).then(|| Words::of_prose(text, &self.endings));
        let prose = apart.as_ref().unwrap_or(&words);
        let words_for = |held: &Held| if held.is_of_networks() { prose } else { &words };
        let on_network = |held: &&Held| held.is_of_networks();
        let in_full = |name: &Phrase| !name.is_ending() && name.is_in(prose);
        let says_network = self.categories.iter().filter(on_network).any(|held| held.names.iter().any(in_full));
        let counts = |name: &&Phrase| !(says_network && name.is_ending());
        let mention = |held: &Held| Mention {
            name: held
                .names
                .iter()
                .filter(counts)
                .find(|name| name.is_in(words_for(held)))
                .map(|name| name.text.clone()),
            keywords: held
                .keywords
                .iter()
                .filter(|keyword| keyword.is_in(&stems))
                .map(|keyword| keyword.text.clone())
                .collect(),
        };
        self.categories.iter().map(mention).collect()
    }
}

/// A tool as categories look at it.
struct Placed {
    number: usize,
    name: String,
    category: String,
    folders: Vec<String>,
}

/// Folders above a document that can be its family.
const FOLDERS: usize = 3;

impl Placed {
    fn of(number: usize, entry: &crate::catalog::Entry) -> Self {
        let folders = entry.file().ancestors().skip(1).take(FOLDERS).filter_map(|path| path.file_name());
        Self {
            number,
            name: entry.name().to_string(),
            category: entry.category(),
            folders: folders.map(|name| name.to_string_lossy().into_owned()).collect(),
        }
    }
}

/// What a message may call it: its aliases, and its name unless that is among them in capitals.
fn phrases(name: &str, aliases: &[String]) -> Vec<Phrase> {
    let is_spelt = aliases.iter().any(|alias| alias != name && alias.to_lowercase() == name.to_lowercase());
    let own = (!is_spelt).then_some(name).into_iter();
    own.chain(aliases.iter().map(String::as_str)).filter_map(Phrase::new).collect()
}

impl Category {
    fn holds(&self, tool: &Placed) -> bool {
        let own = if self.categories.is_empty() { std::slice::from_ref(&self.name) } else { &self.categories };
        own.contains(&tool.category)
            || self.tools.contains(&tool.name)
            || self.families.iter().any(|family| tool.folders.contains(family))
    }
}

impl Held {
    /// Does it serve some networks only?
    pub(in crate::qualify) fn is_of_networks(&self) -> bool {
        !self.category.networks.is_empty()
    }

    fn new(category: &Category, tools: &[Placed]) -> Self {
        Self {
            tools: tools.iter().filter(|tool| category.holds(tool)).map(|tool| tool.number).collect(),
            // Nobody names what is always there; its name may be an everyday word.
            names: if category.always { Vec::new() } else { phrases(&category.name, &category.aliases) },
            keywords: category.keywords.iter().filter_map(|keyword| Keyword::new(keyword)).collect(),
            category: category.clone(),
            is_wide: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn networks_are_known_by_what_they_are_called() {
        let index = CategoryIndex::new(&Categories::shipped(), &Index::build(&Arc::new(Catalog::default()), None));
        let check = |message: &str, expected: &[&str]| assert_eq!(index.networks_in(message), expected, "{message:?}");
        check("swap 2 SOL on Solana", &["solana"]);
        check("send 5 usdc to jesse.base.eth", &["base"]);
        check("send 5 usdc to bob.eth", &["ethereum"]);
        check("does bob.eth own jesse.base.eth?", &["ethereum", "base"]);
        check("send it to bob.eth on Base", &["base"]);
        check("and base?", &["base"]);
        check("what about base", &["base"]);
        check("bridge it via base, please", &["base"]);
        check("the base of the house", &[]);
        check("no ethereum, gas on polygon", &["polygon"]);
    }
}
