//! What the turns of each day used, by tenant, since the start: what no row keeps. Bounded in days and in tenants.

use std::collections::{BTreeMap, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use super::turns::Used;

/// Days that are kept.
pub const MAX_DAYS: usize = 31;

/// Tenants that are told apart; of further ones nothing is kept.
const MAX_TENANTS: usize = 1000;

/// What one day's turns used, by UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Day {
    /// Days since the epoch.
    pub number: u64,
    pub used: Used,
    /// Turns that reached their threshold of tokens.
    pub over: u64,
}

/// The days of all tenants.
#[derive(Debug, Clone, Default)]
pub struct Days(BTreeMap<String, VecDeque<Day>>);

impl Days {
    /// Takes note of what turns used at `now`, and how many of them reached their threshold.
    pub fn spent(&mut self, tenant: &str, now: SystemTime, used: Used, over: u64) {
        if !self.0.contains_key(tenant) && self.0.len() >= MAX_TENANTS {
            return;
        }
        let number = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
        let days = self.0.entry(tenant.to_owned()).or_default();
        if days.back().is_none_or(|last| last.number < number) {
            if days.len() == MAX_DAYS {
                days.pop_front();
            }
            days.push_back(Day { number, ..Day::default() });
        }
        // A clock that was set back counts for the day that was the last.
        if let Some(last) = days.back_mut() {
            last.used = last.used.and(used);
            last.over += over;
        }
    }

    /// The tenant's days on which something was used, oldest first.
    pub fn of(&self, tenant: &str) -> Vec<Day> {
        self.0.get(tenant).into_iter().flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_are_summed_by_tenant_and_bounded() {
        let mut days = Days::default();
        let at = |day: u64| UNIX_EPOCH + Duration::from_secs(day * 86_400 + 7);
        let used = |tokens_in| Used { turns: 1, tokens_in, ..Used::default() };
        days.spent("t", at(3), used(5), 1);
        days.spent("t", at(3), used(6), 0);
        days.spent("u", at(3), used(7), 0);
        days.spent("t", at(2), used(1), 0);
        let both = Used { turns: 3, tokens_in: 12, ..Used::default() };
        assert_eq!(days.of("t"), [Day { number: 3, used: both, over: 1 }]);
        assert!(days.of("nobody").is_empty());
        for day in 4..100 {
            days.spent("t", at(day), used(1), 0);
        }
        assert_eq!((days.of("t").len(), days.of("t")[0].number), (MAX_DAYS, 69));
        for tenant in 0..2 * MAX_TENANTS {
            days.spent(&tenant.to_string(), at(1), used(1), 0);
        }
        assert_eq!(days.0.len(), MAX_TENANTS);
    }
}
