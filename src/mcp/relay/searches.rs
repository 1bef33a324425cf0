//! What was looked for lately, so that a tool that is called can be learnt as what was meant.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

/// Searches that are remembered; the oldest give way.
const MAX_SEARCHES: usize = 4096;

/// Bytes of a query that are remembered.
const MAX_QUERY: usize = 1024;

/// The searches.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Searches(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    by_id: HashMap<u64, (Arc<str>, String)>,
    order: VecDeque<u64>,
}

impl Searches {
    /// Remembers what a tenant looked for; its id.
    pub(in crate::mcp) fn add(&self, tenant: &Arc<str>, query: &str) -> String {
        let mut random = [0_u8; 8];
        // Without randomness ids may meet: then the wrong query is learnt from, by the same tenant.
        let _ = getrandom::fill(&mut random);
        let id = u64::from_ne_bytes(random);
        let mut known = self.0.lock();
        if known.order.len() >= MAX_SEARCHES
            && let Some(oldest) = known.order.pop_front()
        {
            known.by_id.remove(&oldest);
        }
        known.order.push_back(id);
        known.by_id.insert(id, (Arc::clone(tenant), crate::text::head::head(query, MAX_QUERY).to_owned()));
        format!("s_{id:016x}")
    }

    /// What was looked for, if the tenant did. Taken once: a search is one choice.
    pub(super) fn take(&self, tenant: &str, id: &str) -> Option<String> {
        let id = u64::from_str_radix(id.strip_prefix("s_")?, 16).ok()?;
        let mut known = self.0.lock();
        known.by_id.get(&id).filter(|(of, _)| **of == *tenant)?;
        known.by_id.remove(&id).map(|(_, query)| query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_its_tenants_and_one_choice() {
        let searches = Searches::default();
        let (acme, other) = (Arc::from("acme"), Arc::from("other"));
        let id = searches.add(&acme, "send mail");
        assert_eq!(searches.take(&other, &id), None);
        assert_eq!(searches.take(&acme, &id).as_deref(), Some("send mail"));
        assert_eq!(searches.take(&acme, &id), None);
        assert_eq!(searches.take(&acme, "s_nonsense"), None);
        let first = searches.add(&acme, "1");
        (0..MAX_SEARCHES).for_each(|_| drop(searches.add(&acme, "2")));
        assert_eq!(searches.take(&acme, &first), None);
    }
}
