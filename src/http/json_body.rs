//! A body that is to be JSON, read when its handler asks for it.

use bytes::Bytes;

use super::problem::Problem;
use crate::strict::Node;
use crate::strict::read::{self, Limits};

/// Values in one body: a batch of a thousand records has tens of thousands.
const MAX_NODES: usize = 200_000;

/// A body that has arrived; empty if the route takes none.
#[derive(Debug, Default)]
pub(super) struct JsonBody {
    text: Bytes,
    /// What its route takes, in bytes.
    most: usize,
}

impl JsonBody {
    /// A body of a route that takes at most so many bytes.
    pub(super) fn new(text: Bytes, most: usize) -> Self {
        Self { text, most }
    }

    /// As it was sent.
    pub(super) fn text(&self) -> &Bytes {
        &self.text
    }

    /// What its values may cost.
    pub(super) fn limits(&self) -> Limits {
        Limits { nodes: MAX_NODES.max(self.most / 64), depth: 64, ..Limits::of_bytes(self.most) }
    }

    /// What it says.
    pub(super) fn read(&self) -> Result<Node, Problem> {
        read::json(&self.text, &self.limits()).map_err(|error| Problem::malformed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any bytes are a request, or are refused with a reason.
    #[test]
    fn fuzz_requests() {
        use crate::strict::FromNode;
        use crate::strict::decode::decode;
        use crate::wire::{enrich, metadata, plan, qualify, timing, usage};

        fn read<T: FromNode>(node: &Node) {
            if let Err(faults) = decode::<T>(node.clone()) {
                assert!(!faults.is_empty() && faults.iter().all(|fault| !fault.message.is_empty()));
            }
        }
        crate::text::edits::fuzz("requests", |bytes| {
            let body = JsonBody::new(bytes.to_vec().into(), 1 << 16);
            let Ok(node) = body.read() else { return };
            read::<qualify::QualifyRequest>(&node);
            read::<qualify::MissRequest>(&node);
            read::<timing::EstimateRequest>(&node);
            read::<metadata::MetadataRequest>(&node);
            read::<enrich::EnrichRequest>(&node);
            read::<plan::PlanRequest>(&node);
            read::<usage::UsageRequest>(&node);
            read::<crate::engine::memory::MemoryPatch>(&node);
        });
    }
}
