//! Rule libraries as proposers.

use super::proposer::{Ask, Degraded, Proposals, Proposer, Proposing};
use crate::plugin_host::{self, Complexity, Host};
use crate::suggest::Proposal;

impl Proposer for Host {
    fn propose<'a>(&'a self, ask: &'a Ask, history: &'a [String]) -> Proposing<'a> {
        Box::pin(async move {
            let plugin_host::Proposals { lists, degraded } = Self::propose(self, question(ask, history)).await;
            let proposal = |it: plugin_host::Proposal| Proposal { tool: it.tool, reason: it.reason, score: it.score };
            let lists = lists.into_iter().map(|(_, list)| list.into_iter().map(proposal).collect());
            let degraded = degraded.into_iter().map(|(plugin, reason)| Degraded { plugin, reason });
            Proposals { lists: lists.collect(), degraded: degraded.collect() }
        })
    }
}

fn question(ask: &Ask, history: &[String]) -> plugin_host::Ask {
    let complexity = ask.result.complexity.as_deref().and_then(|complexity| match complexity {
        "simple" => Some(Complexity::Simple),
        "moderate" => Some(Complexity::Moderate),
        "complex" => Some(Complexity::Complex),
        _ => None,
    });
    plugin_host::Ask {
        tool: ask.tool.clone(),
        mode: ask.mode.clone(),
        complexity,
        num_outputs: ask.result.num_outputs,
        has_branches: ask.result.has_branches,
        session_id: ask.result.session_id.clone(),
        goal: ask.goal.clone(),
        history: history.to_vec(),
        context: Vec::new(),
    }
}
