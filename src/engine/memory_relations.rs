//! What memories led to and came from: references followed in both directions.

use std::collections::{BTreeMap, BTreeSet};

use super::Engine;
use super::memory::RecallError;
use crate::memory::{Direction, Kind, Relation};
use crate::store::{Store, StoreError};

/// What a memory led to or came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryRelations {
    /// Memories, nearest first, then by id.
    pub related: Vec<RelatedMemory>,
    /// References to what is not there.
    pub dangling: Vec<Dangling>,
    /// Were there more than are listed?
    pub truncated: bool,
}

/// A memory that another leads to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelatedMemory {
    /// References between it and the memory that was asked about.
    pub depth: usize,
    pub id: String,
    pub kind: Kind,
    /// What it is to `via`: what that led to, or came from.
    pub direction: Direction,
    /// The key that says so.
    pub relation: Relation,
    /// The memory it was reached from.
    pub via: String,
}

/// A reference to what is not there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dangling {
    /// The memory that refers.
    pub from: String,
    pub relation: Relation,
    /// The name it refers by.
    pub target: String,
}

/// Memories that relations lead to, at most.
const MAX_RELATED: usize = 1000;

/// Deepest walk along relations.
pub const MAX_DEPTH: usize = 10;

impl Engine {
    /// What a memory led to and came from, `depth` references far.
    pub async fn memory_relations(&self, tenant: &str, id: &str, depth: usize) -> Result<MemoryRelations, RecallError> {
        self.memory(tenant, id, false).await?;
        let (of, id) = (tenant.to_owned(), id.to_owned());
        Ok(self.read_memories(tenant, move |store| walk(store, &of, &id, depth.min(MAX_DEPTH))).await?)
    }
}

/// Follows references in both directions, breadth first.
fn walk(store: &dyn Store, tenant: &str, id: &str, depth: usize) -> Result<MemoryRelations, StoreError> {
    let mut relations = MemoryRelations::default();
    let mut seen: BTreeSet<String> = BTreeSet::from([id.to_owned()]);
    let mut dangling: BTreeSet<Dangling> = BTreeSet::new();
    let mut edge = vec![id.to_owned()];
    for depth in 1..=depth {
        let links = store.memories().links(tenant, &edge, 2 * MAX_RELATED)?;
        relations.truncated |= links.len() == 2 * MAX_RELATED;
        let mut next: BTreeMap<String, RelatedMemory> = BTreeMap::new();
        for link in links {
            let Some(relation) = Relation::parse(&link.relation) else { continue };
            let Some(target_kind) = link.target_kind else {
                if edge.contains(&link.from) {
                    dangling.insert(Dangling { from: link.from, relation, target: link.target });
                }
                continue;
            };
            let direction = relation.direction();
            let ends = [
                (&link.from, &link.target, target_kind, direction),
                (&link.target, &link.from, link.from_kind, direction.reversed()),
            ];
            for (via, id, kind, direction) in ends {
                let (true, Some(kind)) = (edge.contains(via) && !seen.contains(id), Kind::of_number(kind)) else {
                    continue;
                };
                let related = RelatedMemory { depth, id: id.clone(), kind, direction, relation, via: via.clone() };
                let known = next.entry(id.clone()).or_insert_with(|| related.clone());
                *known = related.min(known.clone());
            }
        }
        edge = next.keys().cloned().collect();
        seen.extend(edge.iter().cloned());
        relations.related.extend(next.into_values());
        if relations.related.len() > MAX_RELATED {
            relations.related.truncate(MAX_RELATED);
            relations.truncated = true;
            break;
        }
    }
    relations.dangling = dangling.into_iter().collect();
    Ok(relations)
}
