//! Names of tools that a message says: whoever writes `getUserName` means that tool.
//!
//! A name with an inner mark, digit or capital is nobody's everyday word; one without counts only where it is marked as
//! a name: in code marks, after "use" or "call", before "tool". The last part of a qualified name (`api.get_user`), and
//! the words of a name in a row ("get user name"), stand for it less surely.

use foldhash::{HashMap, HashSet};

/// How surely a name is meant, 0 to 1.
const WHOLE: f32 = 1.0;
pub(super) const LAST_PART: f32 = 0.8;
const IN_WORDS: f32 = 0.7;
const PART_IN_WORDS: f32 = 0.5;

/// Words after which a plain word is a name, and before which.
const BEFORE_NAMES: [&str; 9] = ["use", "using", "call", "calling", "run", "invoke", "via", "execute", "tool"];
const AFTER_NAMES: [&str; 6] = ["tool", "tools", "function", "plugin", "endpoint", "command"];

/// Words of a message that are looked at.
const MAX_WORDS: usize = 2000;

/// What a message says, as names are looked up in it.
#[derive(Debug, Clone, Default)]
pub(super) struct SaidWords {
    /// Runs without spaces, in lower case, with whether they are marked as names.
    runs: Vec<(Box<str>, bool)>,
    /// Words of letters and digits, in lower case; inner capitals and marks begin new ones.
    words: Vec<Box<str>>,
}

/// The forms in which names may be said.
#[derive(Debug, Default)]
pub(super) struct SaidNames {
    /// By the name, or its last part, in lower case: the tools, how surely, and whether only where it is marked.
    runs: HashMap<Box<str>, Vec<(u32, f32, bool)>>,
    /// By the words in a row, a space between them.
    words: HashMap<Box<str>, Vec<(u32, f32)>>,
    /// First words of those, and how many words the longest has.
    firsts: HashSet<Box<str>>,
    longest: usize,
}

impl SaidWords {
    /// Adds the words of a further text.
    pub(super) fn add(&mut self, text: &str) {
        let is_inner = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | ':');
        let mut in_code = false;
        let first = self.runs.len();
        for piece in text.split_inclusive(|char: char| !is_inner(char)) {
            if self.runs.len() >= MAX_WORDS {
                return;
            }
            let run = piece.trim_matches(|char: char| !char.is_alphanumeric() && char != '_');
            if !run.is_empty() {
                let folded: Box<str> = run.to_lowercase().into();
                let follows = self.runs[first..].last().is_some_and(|(before, _)| is_one_of(&BEFORE_NAMES, before));
                if let Some((_, is_marked)) = self.runs[first..].last_mut() {
                    *is_marked |= is_one_of(&AFTER_NAMES, &folded);
                }
                self.words.extend(split(run).into_iter().map(Box::from));
                self.runs.push((folded, in_code || follows));
            }
            in_code ^= piece.ends_with('`');
        }
    }
}

fn is_one_of(words: &[&str], word: &str) -> bool {
    words.contains(&word)
}

impl SaidNames {
    /// The forms of all names, in the order of their numbers.
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut all = Self::default();
        for (number, name) in (0..).zip(names) {
            all.add(number, name, WHOLE, IN_WORDS);
            if let Some((_, last)) = name.rsplit_once(['.', '/', ':']) {
                all.add(number, last, LAST_PART, PART_IN_WORDS);
            }
        }
        all
    }

    fn add(&mut self, number: u32, name: &str, run: f32, in_words: f32) {
        let words = split(name);
        let is_plain = words.len() < 2 && !name.contains(|char: char| char.is_ascii_digit() || char == '_');
        self.runs.entry(name.to_lowercase().into()).or_default().push((number, run, is_plain));
        if words.len() >= 2 {
            self.firsts.insert(words[0].as_str().into());
            self.longest = self.longest.max(words.len());
            self.words.entry(words.join(" ").into()).or_default().push((number, in_words));
        }
    }

    /// The tools whose names are said, with how surely they are meant; one may come more than once.
    pub(super) fn find(&self, said: &SaidWords) -> Vec<(usize, f32)> {
        let mut found = Vec::new();
        for (run, is_marked) in &said.runs {
            let tools = self.runs.get(run).into_iter().flatten().filter(|(.., is_plain)| *is_marked || !is_plain);
            found.extend(tools.map(|&(number, surely, _)| (number as usize, surely)));
        }
        let mut row = String::new();
        for (start, first) in said.words.iter().enumerate().filter(|(_, first)| self.firsts.contains(*first)) {
            row.clear();
            row.push_str(first);
            for word in said.words[start + 1..].iter().take(self.longest.saturating_sub(1)) {
                row.push(' ');
                row.push_str(word);
                found.extend(
                    self.words
                        .get(row.as_str())
                        .into_iter()
                        .flatten()
                        .map(|&(number, surely)| (number as usize, surely)),
                );
            }
        }
        found
    }
}

/// The words of a name as people would write them: inner capitals and marks begin new ones.
pub(super) fn split(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut previous = ' ';
    for char in name.chars() {
        if !char.is_alphanumeric() || char.is_uppercase() && previous.is_lowercase() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (char.is_alphanumeric(), words.last_mut()) {
            word.extend(char.to_lowercase());
        }
        previous = char;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_split(name: &str, expected: &[&str]) {
        assert_eq!(split(name), expected, "words of {name}");
    }

    #[test]
    fn names_are_read_as_words() {
        check_split("getPolyMarketEvents", &["get", "poly", "market", "events"]);
        check_split("geometry.area_circle", &["geometry", "area", "circle"]);
        check_split("Weather_1_GetWeather", &["weather", "1", "get", "weather"]);
        check_split("__", &[]);
    }

    fn check(message: &str, expected: &[(usize, f32)]) {
        let names = SaidNames::new(["AclApi.add_mapping", "web_search", "search", "Wolfram", "sha256"].into_iter());
        let mut said = SaidWords::default();
        said.add(message);
        assert_eq!(names.find(&said), expected, "names in {message:?}");
    }

    #[test]
    fn names_are_heard_where_they_are_meant() {
        check("run AclApi.add_mapping now", &[(0, WHOLE), (0, IN_WORDS), (0, PART_IN_WORDS)]);
        check("with `add_mapping`, please", &[(0, LAST_PART), (0, PART_IN_WORDS)]);
        check("Web_Search: rust", &[(1, WHOLE), (1, IN_WORDS)]);
        check("do a web search for rust", &[(1, IN_WORDS)]);
        check("search the web", &[]);
        check("use search for rust", &[(2, WHOLE)]);
        check("`search` rust", &[(2, WHOLE)]);
        check("ask the Wolfram tool", &[(3, WHOLE)]);
        check("the sha256 of it", &[(4, WHOLE)]);
        check("", &[]);
    }
}
