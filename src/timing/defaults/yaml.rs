//! Defaults as a file, in the form of the one that ships.

use std::collections::BTreeMap;

use super::{Defaults, Milliseconds};
use crate::timing::execution::MAX_DURATION_MS;

const ABOUT: &str = "\
# How long calls take before any was recorded, in ms. A tool document's own `timing.estimated_duration_ms` comes \
first; then this
# table; then `unknown_tool_ms`. Once a tool has a recorded call, history takes over.
";
const ABOUT_FACTORS: &str = "\
# Complex calls take longer by a factor: that of the first rule whose measure is at least as large. Measures: \
num_perspectives,
# num_branches, thinking_budget (tokens), content_length (bytes), context_tokens.
";

const ABOUT_MEASURED: &str = "\
# What `almanacd calibrate` measured on this machine; it comes before tool documents and the table.
";

impl Defaults {
    /// The same with these durations, in ms, as measured here. A duration is at least 1 ms and at
    /// most a day.
    #[must_use]
    pub fn with_durations(mut self, durations: impl IntoIterator<Item = (String, u64)>) -> Self {
        let measured = durations.into_iter().map(|(tool, ms)| (tool, Milliseconds(ms.clamp(1, MAX_DURATION_MS))));
        self.measured.extend(measured);
        self
    }

    /// The file that [`Defaults::parse`] reads these from; tools by duration, then by name.
    pub fn to_yaml(&self) -> String {
        let mut text = format!("{ABOUT}\nunknown_tool_ms: {}\n\n{ABOUT_FACTORS}", self.unknown_tool.0);
        text += if self.factors.is_empty() { "factors: []\n" } else { "factors:\n" };
        for rule in &self.factors {
            let (measure, at_least, factor) = (rule.measure.as_str(), rule.at_least, rule.factor.0);
            text += &format!("  - {{ measure: {measure}, at_least: {at_least}, factor: {factor} }}\n");
        }
        if !self.measured.is_empty() {
            text += &format!("\n{ABOUT_MEASURED}measured:\n");
            add(&mut text, &self.measured);
        }
        text += if self.tools.is_empty() { "\ntools: {}\n" } else { "\ntools:\n" };
        add(&mut text, &self.tools);
        text
    }
}

/// Adds tools by duration, then by name.
fn add(text: &mut String, tools: &BTreeMap<String, Milliseconds>) {
    let mut tools: Vec<(u64, &str)> = tools.iter().map(|(tool, duration)| (duration.0, tool.as_str())).collect();
    tools.sort_unstable();
    for (ms, tool) in tools {
        *text += &format!("  {}: {ms}\n", key(tool));
    }
}

/// A name as a key: bare where nobody could take it for anything else, else in quotes.
fn key(name: &str) -> String {
    const TAKEN: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let begins_like_a_name = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_plain = begins_like_a_name && name.chars().all(|char| char.is_ascii_alphanumeric() || "_-.".contains(char));
    if is_plain && !TAKEN.contains(&name.to_ascii_lowercase().as_str()) {
        name.to_owned()
    } else {
        serde_json::Value::from(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str) -> Defaults {
        Defaults::parse(Path::new("x.yaml"), text.as_bytes()).unwrap_or_else(|faults| panic!("{faults:#?} in\n{text}"))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let shipped = Defaults::default();
        assert_eq!(shipped.to_yaml(), super::super::SHIPPED, "the shipped file, letter by letter");
        let names =
            ["a", "no", "NULL", "1", "a: b", "#x", "- y", "ünü", "\"q\"", "x\\y", "~", "0x1", " ", "mcp__a.b-c"];
        let odd = shipped.clone().with_durations(names.map(|name| (name.to_owned(), 7)));
        assert_eq!((odd.tools().count(), odd.measured.len()), (35 + names.len(), names.len()));
        assert_eq!(parse(&odd.to_yaml()), odd);
        let bare = parse("unknown_tool_ms: 3");
        assert_eq!(parse(&bare.to_yaml()), bare);
        let fine = parse("unknown_tool_ms: 3\nfactors:\n- {measure: context_tokens, at_least: 9, factor: 0.1}");
        assert_eq!(parse(&fine.to_yaml()), fine);
    }

    #[test]
    fn durations_stay_within_what_can_be_read() {
        let extremes = [("a".to_owned(), 0), ("b".to_owned(), u64::MAX), ("reasoning_mcts".to_owned(), 12)];
        let defaults = Defaults::default().with_durations(extremes);
        let of = |name: &str| defaults.tools().find(|(tool, _)| *tool == name).map(|(_, ms)| ms);
        assert_eq!([of("a"), of("b"), of("reasoning_mcts")], [Some(1), Some(MAX_DURATION_MS), Some(12)]);
        assert_eq!(parse(&defaults.to_yaml()), defaults);
    }
}
