//! What should be called next, put together from everything that knows something of it.

use std::collections::BTreeSet;
use std::slice;

use super::proposer::{Degraded, RuleAnswers};
use super::{Engine, Generation};
use crate::access::Grant;
use crate::catalog::next::{self, Clashes};
use crate::engine::learner::Learnt;
use crate::plugin_host::Ask;
use crate::store::notes::Notepad;
use crate::suggest::Source;
use crate::suggest::blend::{self, Known, MIN_SUGGESTIONS};
use crate::suggest::predict::predict;
use crate::suggest::presets::matching;
use crate::telemetry::events::ToolsSuggested;
use crate::timing::{Complexity, Key, Plan};

/// Calls of a session that stand in for a history that is not given.
pub const HISTORY: usize = 20;

/// What may come next.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestions {
    /// Tools, the best first.
    pub next_tools: Vec<NextTool>,
    /// Presets, the best first.
    pub relevant_presets: Vec<FittingPreset>,
    /// Who could not be asked.
    pub degraded: Vec<Degraded>,
}

/// A tool that may come next.
#[derive(Debug, Clone, PartialEq)]
pub struct NextTool {
    pub tool: String,
    pub reason: String,
    pub source: Source,
    /// How likely it is by what sessions did, 0 to 1; nothing if that says nothing of it.
    pub confidence: Option<f64>,
    /// How long a call will take, in ms.
    pub estimated_duration_ms: u64,
}

/// A preset that fits, with the time that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittingPreset {
    pub id: String,
    pub description: String,
    /// How long all of it will take, in ms.
    pub estimated_duration_ms: u64,
    /// The tools that are still to be called.
    pub remaining_steps: Vec<String>,
    /// How long these will take, in ms.
    pub remaining_duration_ms: u64,
}

impl Engine {
    /// Adds what the session knows: its last [`HISTORY`] calls, oldest first, where no history is given, and what it
    /// is about where no goal is.
    pub fn complete(&self, learnt: &Learnt, grant: &Grant, ask: &mut Ask, history: Option<Vec<String>>) {
        let session = ask.session_id.as_deref();
        ask.history = history.unwrap_or_else(|| {
            let known = session.and_then(|session| learnt.sessions.history(&grant.tenant, session));
            let known = known.map_or(&[][..], |calls| &calls[..]);
            known[known.len().saturating_sub(HISTORY)..].iter().map(ToString::to_string).collect()
        });
        if ask.goal.is_none() {
            ask.goal = self.goal(grant, session);
        }
    }

    /// What rules propose; nothing without any.
    pub async fn propose(&self, ask: &Ask) -> RuleAnswers {
        match self.proposer.get() {
            Some(proposer) => proposer.propose(ask).await,
            None => RuleAnswers::default(),
        }
    }

    /// What should be called next, and which presets fit? `proposals` are those of [`Engine::propose`], and `grant` is
    /// that of who asks.
    pub fn suggest(
        &self,
        generation: &Generation,
        learnt: &Learnt,
        grant: &Grant,
        ask: &Ask,
        proposals: RuleAnswers,
    ) -> Suggestions {
        let mut history = ask.history.clone();
        // A call that was recorded already is the history's last.
        if history.last() != Some(&ask.tool) {
            history.push(ask.tool.clone());
        }
        let proposed = blend::merge(proposals.lists.iter().map(Vec::as_slice));
        let likely = predict(&learnt.transitions, &history);
        let complements = next::complements(generation.catalog(), &ask.tool);
        let known = Known {
            current: &ask.tool,
            proposals: &proposed,
            followers: learnt.transitions.after(&ask.tool),
            has_repeats: learnt.transitions.has_repeats(),
            likely: &likely,
            complements: &complements,
            others: &[],
        };
        let used: BTreeSet<&str> = history.iter().rev().take(HISTORY).map(String::as_str).collect();
        let catalog = generation.catalog();
        let clashes = Clashes::with(catalog, used);
        let is_valid = |tool: &str| catalog.get(tool).is_some_and(|entry| !clashes.any(entry));
        let mut suggested = blend::blend(&known, is_valid);
        if suggested.len() < MIN_SUGGESTIONS {
            let others = others(generation, &ask.tool);
            suggested = blend::blend(&Known { others: &others, ..known }, is_valid);
        }
        let next_tools = suggested.into_iter().map(|suggestion| NextTool {
            estimated_duration_ms: self.expected(generation, learnt, slice::from_ref(&suggestion.tool)),
            tool: suggestion.tool,
            reason: suggestion.reason,
            source: suggestion.source,
            confidence: suggestion.confidence,
        });
        let next_tools: Vec<NextTool> = next_tools.collect();
        let sources: Vec<&str> = next_tools.iter().map(|next| next.source.as_str()).collect();
        if let Some(session) = &ask.session_id {
            let tools: Vec<String> = next_tools.iter().map(|next| next.tool.clone()).collect();
            self.qualifier.suggest(&mut Notepad::new(&*self.store), grant, session, &tools);
        }
        ToolsSuggested { tenant: &grant.tenant, sources: &sources, degraded: proposals.degraded.len() }
            .emit(&self.metrics);
        Suggestions {
            next_tools,
            relevant_presets: self.match_presets(generation, learnt, &history, ask.goal.as_deref()),
            degraded: proposals.degraded,
        }
    }

    /// What a session is after, if messages of it were qualified: its last message, as far as who asks may be told.
    pub fn goal(&self, grant: &Grant, session: Option<&str>) -> Option<String> {
        let turn = self.qualifier.turn_for(grant, session?)?;
        Some(turn.message.clone()).filter(|message| !message.is_empty())
    }

    /// Which presets fit these calls (oldest first) or this goal, and how long will they take?
    pub fn match_presets(
        &self,
        generation: &Generation,
        learnt: &Learnt,
        history: &[String],
        goal: Option<&str>,
    ) -> Vec<FittingPreset> {
        let found = matching::find(generation.presets(), history, goal).into_iter();
        let fitting = found.map(|found| {
            let estimated_duration_ms = self.expected(generation, learnt, &found.preset.tools);
            let remaining_duration_ms = match found.done {
                0 => estimated_duration_ms,
                _ => self.expected(generation, learnt, found.remaining()),
            };
            FittingPreset {
                id: found.preset.id.clone(),
                description: found.preset.description.clone(),
                estimated_duration_ms,
                remaining_steps: found.remaining().to_vec(),
                remaining_duration_ms,
            }
        });
        fitting.collect()
    }

    /// How long these calls will take, one after the other, in ms.
    pub fn expected(&self, generation: &Generation, learnt: &Learnt, tools: &[String]) -> u64 {
        let forecast =
            |tool: &String| self.forecast_key(generation, learnt, Key::new(tool, ""), &Complexity::default());
        Plan::estimate_of(&tools.iter().map(forecast).collect::<Vec<_>>())
    }
}

/// What leads on from a tool beside its own document: presets, and documents that name it.
fn others(generation: &Generation, tool: &str) -> Vec<(String, String, Source)> {
    let steps = matching::steps_after(generation.presets(), tool);
    let steps = steps.map(|(next, preset)| (next.to_owned(), format!("the next step of {preset}"), Source::Preset));
    let led_to = next::led_to(generation.catalog(), tool).into_iter();
    steps.chain(led_to.map(|(next, why)| (next, why, Source::Complement))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::super::proposer::{Proposer, Proposing};
    use super::*;
    use crate::catalog::Catalog;
    use crate::catalog::load::{LoadOptions, load};
    use crate::plugin_host::ComplexityLevel;
    use crate::suggest::Candidate;

    /// Proposes what it was made with, in this order, and the last call of the history.
    #[derive(Debug)]
    struct Fixed(&'static [&'static str]);

    impl Proposer for Fixed {
        fn propose<'a>(&'a self, ask: &'a Ask) -> Proposing<'a> {
            let reason = format!("{} outputs of {}", ask.num_outputs, ask.tool);
            let propose = |tool: &str| Candidate { tool: tool.to_owned(), reason: reason.clone(), score: 0.5 };
            let all = self.0.iter().copied().chain(ask.history.last().map(String::as_str));
            let degraded = vec![Degraded { plugin: "org.example.slow".into(), reason: "no answer in 50 ms".into() }];
            let proposals = RuleAnswers { lists: vec![all.map(propose).collect()], degraded };
            Box::pin(std::future::ready(proposals))
        }

        fn catalog_changed(&self, _: u64, _: Arc<Catalog>) {}
    }

    fn document(name: &str, more: &str) -> String {
        let head = "title: t\ndescription: d\ncategory: c\ncapabilities: []\nkeywords: []\nuse_cases: []\n";
        format!("name: {name}\n{head}{more}")
    }

    fn engine(documents: &[(&str, &str)]) -> Engine {
        let directory = TempDir::new().unwrap();
        for (name, more) in documents {
            fs::write(directory.path().join(format!("{name}.yaml")), document(name, more)).unwrap();
        }
        let engine = Engine::new();
        engine.publish(&load(LoadOptions::directory(directory.path())));
        engine
    }

    fn suggest(engine: &Engine, ask: &Ask) -> Suggestions {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let proposals = runtime.block_on(engine.propose(ask));
        engine.suggest(&engine.generation(), &engine.learnt(), &Grant::anonymous(), ask, proposals)
    }

    #[test]
    fn rules_come_before_complements_and_what_is_missing_is_named() {
        let complements = "complements: [{tool: decision, scenario: s}, {tool: tree, scenario: branch}]\n";
        let names = ["checkpoint", "decision", "reflection", "tree", "before"].map(|name| (name, ""));
        let engine = engine(&[&names[..], &[("divergent", complements)]].concat());
        let (complexity, history) = (Some(ComplexityLevel::Complex), vec!["before".to_owned()]);
        let ask = Ask { tool: "divergent".into(), num_outputs: 4, complexity, history, ..Ask::default() };
        let cold = suggest(&engine, &ask);
        assert_eq!(cold.next_tools.iter().map(|next| next.tool.as_str()).collect::<Vec<_>>(), ["decision", "tree"]);
        assert!(cold.degraded.is_empty());
        engine.install_proposer(Arc::new(Fixed(&["checkpoint", "decision", "gone", "reflection"])));
        let found = suggest(&engine, &ask);
        let tools: Vec<&str> = found.next_tools.iter().map(|next| next.tool.as_str()).collect();
        assert_eq!(tools, ["checkpoint", "decision", "reflection", "before", "tree"]);
        assert_eq!(found.next_tools[0].reason, "4 outputs of divergent");
        assert_eq!(found.next_tools[4].source, Source::Complement);
        assert!(found.next_tools.iter().all(|next| next.estimated_duration_ms == 15_000));
        assert_eq!(found.degraded[0].plugin, "org.example.slow");
    }
}
