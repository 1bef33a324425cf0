//! Rule libraries as proposers.

use std::sync::Arc;

use super::proposer::{Degraded, Proposer, Proposing, RuleAnswers};
use super::snapshot_of;
use crate::catalog::Catalog;
use crate::plugin_host::{self, Ask, Host};
use crate::suggest::Candidate;

impl Proposer for Host {
    fn propose<'a>(&'a self, ask: &'a Ask) -> Proposing<'a> {
        Box::pin(async move {
            let plugin_host::Proposals { lists, degraded } = Self::propose(self, ask.clone()).await;
            let candidate = |it: plugin_host::Proposal| Candidate { tool: it.tool, reason: it.reason, score: it.score };
            let lists = lists.into_iter().map(|(_, list)| list.into_iter().map(candidate).collect());
            let degraded = degraded.into_iter().map(|(plugin, reason)| Degraded { plugin, reason });
            RuleAnswers { lists: lists.collect(), degraded: degraded.collect() }
        })
    }

    fn catalog_changed(&self, generation: u64, catalog: Arc<Catalog>) {
        self.publish(move || snapshot_of(generation, &catalog));
    }
}
