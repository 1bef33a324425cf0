//! Tool documents of about 3.3 KB, all different, the same in every run.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

const WORDS: [&str; 48] = [
    "report",
    "invoice",
    "customer",
    "archive",
    "channel",
    "message",
    "schedule",
    "vector",
    "picture",
    "measure",
    "ledger",
    "ticket",
    "branch",
    "commit",
    "package",
    "session",
    "profile",
    "summary",
    "folder",
    "column",
    "filter",
    "export",
    "account",
    "balance",
    "weather",
    "station",
    "journey",
    "booking",
    "payment",
    "refund",
    "contract",
    "meeting",
    "agenda",
    "speaker",
    "recording",
    "caption",
    "language",
    "glossary",
    "sentence",
    "keyword",
    "ranking",
    "cluster",
    "sensor",
    "reading",
    "threshold",
    "alarm",
    "operator",
    "shift",
];

const VERBS: [&str; 12] = [
    "collects",
    "compares",
    "renames",
    "publishes",
    "validates",
    "summarises",
    "translates",
    "converts",
    "restores",
    "schedules",
    "merges",
    "inspects",
];

/// The name of a tool.
pub(crate) fn name(number: usize) -> String {
    let [verb, word] = [VERBS[number % VERBS.len()], WORDS[number / 7 % WORDS.len()]];
    format!("{word}_{verb}_{number}")
}

/// The file of a tool, below `directory`.
pub(crate) fn file(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("{}.yaml", name(number)))
}

/// Writes `count` documents.
pub(crate) fn write(directory: &Path, count: usize) -> Result<()> {
    fs::create_dir_all(directory)?;
    for number in 0..count {
        fs::write(file(directory, number), document(number, count, "first"))?;
    }
    Ok(())
}

/// One document of a corpus of `count`. Its title carries the `mark`, so that versions can be told apart.
pub(crate) fn document(number: usize, count: usize, mark: &str) -> String {
    let mut text = Text { words: Words::new(number as u64), yaml: String::with_capacity(4096) };
    text.line(&format!("name: {}", name(number)));
    text.line(&format!("title: Tool {number}, {mark}"));
    text.line("description: >-");
    for _ in 0..4 {
        text.sentence("  ");
    }
    let category = ["web", "file", "communication", "data", "media"][number % 5];
    text.line(&format!("category: {category}"));
    text.list("capabilities", 4);
    text.list("keywords", 6);
    text.line("use_cases:");
    for _ in 0..2 {
        text.item(["title", "when_to_use", "example", "not_for"]);
    }
    text.relations(number, count);
    text.line("examples:");
    text.example();
    text.line("best_practices: |");
    for _ in 0..3 {
        text.sentence("  ");
    }
    text.line("common_errors:");
    for _ in 0..2 {
        text.item(["error", "cause", "solution"]);
    }
    text.prerequisite();
    text.schema();
    text.line(&format!("timing:\n  estimated_duration_ms: {}", 100 + number % 5000));
    text.yaml
}

/// What somebody might have said; all different, the same in every run.
pub(crate) fn sentence(number: u64) -> String {
    Words::new(number).sentence()
}

struct Text {
    words: Words,
    yaml: String,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.yaml.push_str(line);
        self.yaml.push('\n');
    }

    fn sentence(&mut self, indent: &str) {
        let sentence = self.words.sentence();
        self.line(&format!("{indent}{sentence}."));
    }

    fn list(&mut self, key: &str, length: usize) {
        let words: Vec<&str> = (0..length).map(|_| self.words.next()).collect();
        self.line(&format!("{key}: [{}]", words.join(", ")));
    }

    fn item<const N: usize>(&mut self, keys: [&str; N]) {
        for (index, key) in keys.into_iter().enumerate() {
            let dash = if index == 0 { "-" } else { " " };
            let sentence = self.words.sentence();
            self.line(&format!("  {dash} {key}: {sentence}"));
        }
    }

    /// To other tools of the corpus, so that nothing dangles.
    fn relations(&mut self, number: usize, count: usize) {
        let other = |step: usize| name((number + step) % count);
        let [why, when, gain, scenario] = std::array::from_fn(|_| self.words.sentence());
        let _ = writeln!(self.yaml, "alternatives:\n  - tool: {}\n    when: {when}\n    benefits: {gain}", other(1));
        let _ = writeln!(self.yaml, "complements:\n  - tool: {}\n    scenario: {scenario}", other(2));
        // Neighbours in pairs, so that no conflict is one-sided.
        if number % 8 < 2 {
            let partner = name(number ^ 1);
            let conflict = format!("  - tool: {partner}\n    reason: {why}\n    when_prefer_this: {when}");
            let _ = writeln!(self.yaml, "conflicts:\n{conflict}\n    when_prefer_other: {gain}\n    severity: low");
        }
    }

    fn example(&mut self) {
        let [name, key, value] = std::array::from_fn(|_| self.words.next());
        let [description, result] = std::array::from_fn(|_| self.words.sentence());
        let limit = self.words.number(500);
        let _ = writeln!(self.yaml, "  - name: {name}\n    description: {description}");
        let _ = writeln!(self.yaml, "    input:\n      {key}_id: \"{value}\"\n      limit: {limit}\n      fresh: true");
        let _ = writeln!(
            self.yaml,
            "    output:\n      count: {limit}\n      items:\n        - {{{key}: {value}, score: 0.5}}"
        );
        let _ = writeln!(self.yaml, "    explanation: {result}");
    }

    fn prerequisite(&mut self) {
        let [provider, how] = [self.words.next().to_owned(), self.words.sentence()];
        let variable = provider.to_uppercase();
        let _ = writeln!(self.yaml, "prerequisites:\n  - name: {provider} key\n    env_vars: [{variable}_API_KEY]");
        let _ = writeln!(self.yaml, "    how_to_get: {how}\nproviders: [{provider}]\nbackend: native");
    }

    fn schema(&mut self) {
        self.line("input_schema:\n  type: object\n  properties:");
        for _ in 0..3 {
            let (word, number) = (self.words.next(), self.words.number(1000));
            let description = self.words.sentence();
            let property = format!("    {word}_{number}:\n      type: string\n      description: {description}");
            self.line(&property);
        }
    }
}

/// Words without end, in an order that the seed decides.
pub(crate) struct Words(u64);

impl Words {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`, by splitmix64.
    pub(crate) fn number(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as usize % limit
    }

    fn next(&mut self) -> &'static str {
        WORDS[self.number(WORDS.len())]
    }

    fn sentence(&mut self) -> String {
        let verb = VERBS[self.number(VERBS.len())];
        let [first, second, third, fourth] = std::array::from_fn(|_| self.next());
        format!("The {first} {second} {verb} each {third} before the {fourth} is due")
    }
}
