//! How all tools hang together, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::relations::RelationKind;

/// Answer of `GET /v1/relations`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RelationGraph {
    /// The generation that it is of.
    pub generation: u64,
    /// All tools, by name.
    pub tools: Vec<GraphTool>,
    /// What documents declare, at most 50,000; one between two tools of the catalog each.
    pub relations: Vec<GraphRelation>,
    /// How many relations there are in all.
    pub relations_total: usize,
    /// Which tools sessions called one after the other: of each tool the eight that followed it most.
    pub transitions: Vec<GraphTransition>,
}

/// A tool.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphTool {
    /// Its name.
    pub name: String,
    /// Its category.
    pub category: String,
}

/// A relation that a document declares.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphRelation {
    /// conflict, alternative or complement.
    #[schemars(extend("enum" = RelationKind::WORDS))]
    pub kind: String,
    /// The tool whose document says so.
    pub from: String,
    /// The other tool.
    pub to: String,
}

/// A tool that was called after another.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphTransition {
    /// The tool that was called.
    pub from: String,
    /// What was called next.
    pub to: String,
    /// How often, ever.
    pub calls: u64,
    /// Its share of what was called next, 0 to 1, earlier calls fading.
    pub share: f64,
}
