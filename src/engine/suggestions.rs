//! What should be called next, put together from everything that knows something of it.

use std::collections::BTreeSet;

use super::proposer::{Ask, Degraded, Proposals};
use super::{Asked, Engine, Generation};
use crate::catalog::next;
use crate::engine::learner::Learnt;
use crate::suggest::blend::{self, Known};
use crate::suggest::predict::predict;
use crate::suggest::presets::matching;
use crate::suggest::{Preset, Source};

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
            estimated_duration_ms: self.expected(generation, learnt, &[suggestion.tool.clone()]),
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

    /// Which presets fit these calls (oldest first) or this goal, and how long will they take?
    pub fn match_presets(
        &self,
        generation: &Generation,
        learnt: &Learnt,
        history: &[String],
        goal: Option<&str>,
    ) -> Vec<FittingPreset> {
        let found = matching::find(generation.presets(), history, goal).into_iter();
        let fitting = found.map(|found| FittingPreset {
            preset: found.preset.clone(),
            estimated_duration_ms: self.expected(generation, learnt, &found.preset.tools),
            remaining_steps: found.remaining().to_vec(),
            remaining_duration_ms: self.expected(generation, learnt, found.remaining()),
        });
        fitting.collect()
    }

    /// How long these calls will take, one after the other, in ms.
    pub fn expected(&self, generation: &Generation, learnt: &Learnt, tools: &[String]) -> u64 {
        let asked: Vec<Asked> = tools.iter().map(|tool| Asked { tool: tool.clone(), ..Asked::default() }).collect();
        self.estimate_plan(generation, learnt, &asked).map_or(0, |plan| plan.estimated_duration_ms())
    }
}
