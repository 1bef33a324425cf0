//! Why these tools: an explanation in plain words, from what decided.

use std::fmt::Write as _;
use std::sync::Arc;

use super::context::IntentContext;
use super::index::Index;
use super::message::{MAX_BYTES, Message};
use super::ranking::{Ranked, Ranking};
use super::selector::{LeftOut, Scored, Selector};
use super::stop_words;
use crate::text::analysis;
use crate::text::head::head;

/// Words of the message that are quoted.
const QUOTED: usize = 4;

/// Names listed in one sentence.
const LISTED: usize = 3;

pub(super) struct Explanation<'a, 'i> {
    pub(super) selector: &'a Selector,
    pub(super) ranking: &'a Ranking<'i>,
    pub(super) message: &'a Message,
    pub(super) text: &'a str,
    pub(super) scored: &'a [Scored],
    pub(super) context: &'a IntentContext,
    /// What is offered.
    pub(super) available: &'a [Ranked],
    /// Does the message, or the caller, name networks?
    pub(super) names_networks: bool,
    /// The context that was kept.
    pub(super) before: Option<&'a IntentContext>,
    pub(super) dropped: &'a [String],
    pub(super) conflicting: &'a [LeftOut],
    pub(super) cut: &'a [Arc<str>],
    /// Tools whose names the message says.
    pub(super) said: &'a [usize],
    pub(super) selected: bool,
    pub(super) no_tool_needed: bool,
    pub(super) own_confidence: f32,
}

impl Explanation<'_, '_> {
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        self.write_categories(&mut text);
        self.write_networks(&mut text);
        self.write_context(&mut text);
        self.write_left_out(&mut text);
        text
    }

    fn write_categories(&self, text: &mut String) {
        if self.selected {
            text.push_str("The categories were selected by the caller.");
            return;
        }
        let name = |category: &Scored| self.selector.category_index().all()[category.place].category.name.as_str();
        let (named, likely): (Vec<&Scored>, Vec<&Scored>) =
            self.scored.iter().partition(|category| category.name.is_some());
        for category in &named {
            let called = category.name.as_deref().unwrap_or_default();
            let _ = write!(text, "{}\u{201c}{called}\u{201d} names the category {}.", space(text), name(category));
        }
        if self.no_tool_needed {
            let _ = write!(text, "{}This reads like something to answer without a tool.", space(text));
            return;
        }
        for category in likely.iter().take(LISTED + 2) {
            let held = &self.selector.category_index().all()[category.place];
            let best = held
                .tools
                .iter()
                .max_by(|a, b| self.ranking.score(**a).total_cmp(&self.ranking.score(**b)).then(b.cmp(a)));
            let _ = write!(text, "{}{} fits", space(text), name(category));
            if !category.keywords.is_empty() {
                let _ = write!(text, " by {}", list(category.keywords.iter().map(|word| quoted(word))));
            }
            if let Some(&best) = best {
                let _ = write!(
                    text,
                    "{} with {}",
                    if category.keywords.is_empty() { "" } else { "," },
                    self.selector.index().entry(best).name()
                );
            }
            text.push('.');
        }
        if named.is_empty() && likely.is_empty() && self.before.is_none() {
            let _ = write!(
                text,
                "{}No category stands out (the best is {:.0} % likely).",
                space(text),
                100.0 * self.own_confidence
            );
        }
        self.write_best(text);
    }

    /// What the message shares with the best tool among those that qualified.
    fn write_best(&self, text: &mut String) {
        let tools = self.scored.iter().flat_map(|category| &self.selector.category_index().all()[category.place].tools);
        let best =
            tools.copied().max_by(|a, b| self.ranking.score(*a).total_cmp(&self.ranking.score(*b)).then(b.cmp(a)));
        let Some(best) = best.filter(|&best| self.ranking.shares_words(best)) else { return };
        let entry = self.selector.index().entry(best);
        let words = shared_words(self.selector.index(), best, self.message, self.text);
        if !words.is_empty() {
            let words = list(words.iter().map(|word| quoted(word)));
            let _ = write!(text, "{}The message shares {words} with {}", space(text), entry.name());
            match self.selector.purpose(best).nearest_scene(self.message) {
                Some(scene) => {
                    let _ = write!(text, ", whose use case \u{201c}{}\u{201d} is nearest.", scene.title);
                }
                None => text.push('.'),
            }
        }
    }

    fn write_networks(&self, text: &mut String) {
        if self.context.networks.is_empty() {
            let is_asked =
                self.selector.category_index().networks().next().is_some() && !self.no_tool_needed && !self.selected;
            if is_asked {
                let is_elsewhere = |tool: &Ranked| self.selector.is_elsewhere(tool.number, &self.context.networks);
                let added = if self.available.iter().any(is_elsewhere) {
                    "of networks' own tools only the best are added by similarity"
                } else {
                    "no network's own tools are added by similarity"
                };
                let _ = write!(text, "{}No network is named, so {added}.", space(text));
            }
            return;
        }
        let networks = list(self.context.networks.iter().cloned());
        let source = if self.names_networks { "as named" } else { "from the turns before" };
        let _ = write!(text, "{}Network: {networks}, {source}.", space(text));
    }

    fn write_context(&self, text: &mut String) {
        if let Some(before) = self.before {
            let what = before
                .active_intent
                .as_deref()
                .map_or_else(|| list(before.categories.iter().cloned()), |intent| format!("\u{201c}{intent}\u{201d}"));
            let _ = write!(
                text,
                "{}The message says little by itself; what was asked before is kept: {what}.",
                space(text)
            );
        }
        if !self.dropped.is_empty() {
            let names = list(self.dropped.iter().take(LISTED).cloned());
            let _ = write!(text, "{}Of the context sent, {names} is not in this catalog and was dropped.", space(text));
        }
    }

    fn write_left_out(&self, text: &mut String) {
        let excluded: Vec<String> = self
            .ranking
            .excluded()
            .filter(|tool| !self.said.contains(tool))
            .take(LISTED)
            .map(|tool| self.selector.index().entry(tool).name().to_string())
            .collect();
        if !excluded.is_empty() && !self.no_tool_needed {
            let verb =
                if excluded.len() == 1 { "says of itself that it is" } else { "say of themselves that they are" };
            let _ = write!(text, "{}{} {verb} not for this.", space(text), list(excluded.into_iter()));
        }
        for (tool, other) in self.conflicting.iter().take(LISTED) {
            let _ = write!(text, "{}{tool} is left out: it conflicts with {other}, which fits better.", space(text));
        }
        if !self.cut.is_empty() {
            let names = list(self.cut.iter().take(LISTED).map(ToString::to_string));
            let _ = write!(text, "{}The limit of tools cut {names}, which may be needed.", space(text));
        }
    }
}

fn space(text: &str) -> &'static str {
    if text.is_empty() { "" } else { " " }
}

fn quoted(word: &str) -> String {
    format!("\u{201c}{word}\u{201d}")
}

/// "a", "a and b", "a, b and c".
fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Telling words of the message, as it writes them, that the tool's document has too.
fn shared_words(index: &Index, tool: usize, message: &Message, text: &str) -> Vec<String> {
    let telling = message.terms.iter().filter(|term| !stop_words::is_stop_word(&term.text));
    let shared = telling.filter(|term| index.words.find(&term.text).is_some_and(|found| found.has(tool)));
    let terms: Vec<&str> = shared.take(QUOTED).map(|term| &*term.text).collect();
    let mut written = vec![None; terms.len()];
    for word in head(text, MAX_BYTES).split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if written.iter().all(Option::is_some) {
            break;
        }
        analysis::terms(word, |own| {
            if let Some(place) = terms.iter().position(|term| *term == own) {
                written[place].get_or_insert(word);
            }
        });
    }
    written.iter().zip(&terms).map(|(written, term)| written.unwrap_or(term).to_owned()).collect()
}
