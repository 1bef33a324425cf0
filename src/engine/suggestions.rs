//! What should be called next, put together from everything that knows something of it.

use std::collections::BTreeSet;
use std::slice;

use super::proposer::{Ask, Degraded, Proposals};
use super::{Asked, Engine, Generation};
use crate::catalog::next;
use crate::engine::learner::Learnt;
use crate::suggest::blend::{self, Known};
use crate::suggest::predict::predict;
use crate::suggest::presets::matching;
use crate::suggest::{Preset, Source};
use crate::timing::{Forecast, Plan};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextTool {
    /// The tool.
    pub tool: String,
    /// Why.
    pub reason: String,
    /// Who says so.
    pub source: Source,
    /// How long a call will take, in ms.
    pub estimated_duration_ms: u64,
}

/// A preset that fits, with the time that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittingPreset {
    /// The preset.
    pub preset: Preset,
    /// How long all of it will take, in ms.
    pub estimated_duration_ms: u64,
    /// The tools that are still to be called.
    pub remaining_steps: Vec<String>,
    /// How long these will take, in ms.
    pub remaining_duration_ms: u64,
}

impl Engine {
    /// The calls before the one that is asked about, oldest first: those that are given, else the session's last
    /// [`HISTORY`].
    pub fn history(&self, learnt: &Learnt, ask: &Ask) -> Vec<String> {
        if let Some(history) = &ask.history {
            return history.clone();
        }
        let known = ask.result.session_id.as_deref().and_then(|session| learnt.sessions.history(&ask.tenant, session));
        let calls = known.map(|calls| &calls[calls.len().saturating_sub(HISTORY)..]).unwrap_or_default();
        calls.iter().map(ToString::to_string).collect()
    }

    /// What rules propose; nothing without any.
    pub async fn propose(&self, ask: &Ask) -> Proposals {
        let Some(proposer) = self.proposer.get() else { return Proposals::default() };
        let history = self.history(&self.learnt(), ask);
        proposer.propose(ask, &history).await
    }

    /// What should be called next, and which presets fit? `proposals` are those of [`Engine::propose`].
    pub fn suggest(&self, generation: &Generation, learnt: &Learnt, ask: &Ask, proposals: Proposals) -> Suggestions {
        let mut history = self.history(learnt, ask);
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
            likely: &likely,
            complements: &complements,
        };
        let used: BTreeSet<&str> = history.iter().rev().take(HISTORY).map(String::as_str).collect();
        let catalog = generation.catalog();
        let is_valid =
            |tool: &str| catalog.get(tool).is_some() && !used.iter().any(|call| next::clash(catalog, tool, call));
        let next_tools = blend::blend(&known, is_valid).into_iter().map(|suggestion| NextTool {
            estimated_duration_ms: self.expected(generation, learnt, slice::from_ref(&suggestion.tool)),
            tool: suggestion.tool,
            reason: suggestion.reason,
            source: suggestion.source,
        });
        Suggestions {
            next_tools: next_tools.collect(),
            relevant_presets: self.match_presets(generation, learnt, &history, ask.goal.as_deref()),
            degraded: proposals.degraded,
        }
    }

    /// The same; where it names no goal, what its session is about is one.
    pub fn with_goal(&self, mut ask: Ask) -> Ask {
        if ask.goal.is_none() {
            ask.goal = self.goal(&ask.tenant, ask.result.session_id.as_deref());
        }
        ask
    }

    /// What a session is about, if messages of it were qualified.
    pub fn goal(&self, tenant: &str, session: Option<&str>) -> Option<String> {
        self.turn(tenant, session?)?.context.active_intent.clone()
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
                preset: found.preset.clone(),
                estimated_duration_ms,
                remaining_steps: found.remaining().to_vec(),
                remaining_duration_ms,
            }
        });
        fitting.collect()
    }

    /// How long these calls will take, one after the other, in ms.
    pub fn expected(&self, generation: &Generation, learnt: &Learnt, tools: &[String]) -> u64 {
        let asked = tools.iter().map(|tool| Asked { tool: tool.clone(), ..Asked::default() });
        let forecasts: Vec<Forecast> = asked.map(|asked| self.estimate(generation, learnt, &asked).forecast).collect();
        Plan::estimate_of(&forecasts)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::super::proposer::{CallResult, Proposer, Proposing};
    use super::*;
    use crate::catalog::load::{Options, load};
    use crate::suggest::Proposal;

    /// Proposes what it was made with, in this order, and the last call of the history.
    #[derive(Debug)]
    struct Fixed(&'static [&'static str]);

    impl Proposer for Fixed {
        fn propose<'a>(&'a self, ask: &'a Ask, history: &'a [String]) -> Proposing<'a> {
            let reason = format!("{} outputs of {}", ask.result.num_outputs, ask.tool);
            let propose = |tool: &str| Proposal { tool: tool.to_owned(), reason: reason.clone(), score: 0.5 };
            let all = self.0.iter().copied().chain(history.last().map(String::as_str));
            let degraded = vec![Degraded { plugin: "org.example.slow".into(), reason: "no answer in 50 ms".into() }];
            let proposals = Proposals { lists: vec![all.map(propose).collect()], degraded };
            Box::pin(std::future::ready(proposals))
        }
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
        engine.publish(&load(Options::directory(directory.path())));
        engine
    }

    fn suggest(engine: &Engine, ask: &Ask) -> Suggestions {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let proposals = runtime.block_on(engine.propose(ask));
        engine.suggest(&engine.generation(), &engine.learnt(), ask, proposals)
    }

    #[test]
    fn rules_come_before_complements_and_what_is_missing_is_named() {
        let complements = "complements: [{tool: decision, scenario: s}, {tool: tree, scenario: branch}]\n";
        let names = ["checkpoint", "decision", "reflection", "tree", "before"].map(|name| (name, ""));
        let engine = engine(&[&names[..], &[("divergent", complements)]].concat());
        let result = CallResult { num_outputs: 4, complexity: Some("complex".into()), ..CallResult::default() };
        let history = Some(vec!["before".to_owned()]);
        let ask = Ask { tool: "divergent".into(), result, history, ..Ask::default() };
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
