//! What was looked for lately, so that a tool that is called can be learnt as what was meant.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::text::head::head;

/// Searches that are remembered; the oldest give way.
const MAX_SEARCHES: usize = 4096;

/// Bytes of a query that are remembered: as many as selection learns from.
const MAX_QUERY: usize = 2048;

/// The searches.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Searches(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    by_id: HashMap<u64, RememberedSearch>,
    order: VecDeque<u64>,
}

#[derive(Debug)]
struct RememberedSearch {
    tenant: Arc<str>,
    query: String,
    purges: u64,
}

impl Searches {
    /// Remembers what a tenant looked for, and the number of the latest purge then; its id.
    pub(in crate::mcp) fn add(&self, tenant: &Arc<str>, query: &str, purges: u64) -> String {
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
        let query = head(query, MAX_QUERY).to_owned();
        known.by_id.insert(id, RememberedSearch { tenant: Arc::clone(tenant), query, purges });
        format!("s_{id:016x}")
    }

    /// What was looked for, and the number of the latest purge then, if the tenant did. Taken once: a search is one
    /// choice.
    pub(super) fn take(&self, tenant: &str, id: &str) -> Option<(String, u64)> {
        let id = u64::from_str_radix(id.strip_prefix("s_")?, 16).ok()?;
        let mut known = self.0.lock();
        known.by_id.get(&id).filter(|search| *search.tenant == *tenant)?;
        known.by_id.remove(&id).map(|search| (search.query, search.purges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_its_tenants_and_one_choice() {
        let searches = Searches::default();
        let (acme, other) = (Arc::from("acme"), Arc::from("other"));
        let id = searches.add(&acme, "send mail", 3);
        assert_eq!(searches.take(&other, &id), None);
        assert_eq!(searches.take(&acme, &id), Some(("send mail".to_owned(), 3)));
        assert_eq!(searches.take(&acme, &id), None);
        assert_eq!(searches.take(&acme, "s_nonsense"), None);
        let first = searches.add(&acme, "1", 0);
        (0..MAX_SEARCHES).for_each(|_| drop(searches.add(&acme, "2", 0)));
        assert_eq!(searches.take(&acme, &first), None);
    }
}
