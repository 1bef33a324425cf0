//! `GET /v1/relations`: how all tools hang together.

use crate::catalog::Catalog;
use crate::catalog::relations::{self, RelationEdge};
use crate::engine::learner::Learnt;
use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::wire::relations::{GraphRelation, GraphTool, GraphTransition, RelationGraph};

/// Relations of one answer; a picture of more shows nothing.
const MAX_RELATIONS: usize = 50_000;

/// What followed one tool.
const MAX_FOLLOWERS: usize = 8;

pub(super) fn operation() -> Operation {
    Operation::new(
        "getRelations",
        "How all tools hang together: what documents declare, and what sessions called next.",
    )
    .answering::<RelationGraph>("The tools, and what is between them.")
}

pub(super) fn relations(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let generation = &request.generation;
    let catalog = generation.catalog();
    let (edges, relations_total) = relations::edges(catalog, MAX_RELATIONS);
    Ok(answer::json(&RelationGraph {
        generation: generation.number(),
        tools: catalog
            .iter()
            .map(|tool| GraphTool { name: tool.name().to_string(), category: tool.category() })
            .collect(),
        relations: edges.iter().map(relation).collect(),
        relations_total,
        transitions: transitions(catalog, &context.engine.learnt()),
    }))
}

fn relation(edge: &RelationEdge) -> GraphRelation {
    let RelationEdge { from, to, kind } = edge;
    GraphRelation { kind: kind.as_str().to_owned(), from: from.to_string(), to: to.to_string() }
}

/// What was called after each tool, the most frequent first, as far as the catalog has both.
fn transitions(catalog: &Catalog, learnt: &Learnt) -> Vec<GraphTransition> {
    let mut found = Vec::new();
    for tool in catalog.iter() {
        let Some(followers) = learnt.transitions.after(tool.name()) else { continue };
        let all = followers.iter().map(|follower| f64::from(follower.weight)).sum::<f64>().max(1.0);
        let known = followers.iter().filter(|follower| catalog.get(&follower.tool).is_some());
        let mut known: Vec<GraphTransition> = known
            .map(|follower| GraphTransition {
                from: tool.name().to_string(),
                to: follower.tool.to_string(),
                calls: follower.samples,
                share: f64::from(follower.weight) / all,
            })
            .collect();
        known.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.to.cmp(&b.to)));
        known.truncate(MAX_FOLLOWERS);
        found.append(&mut known);
    }
    found
}
