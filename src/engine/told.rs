//! How much the word of a caller counts: what changes a ranking for a whole tenant, and durably, is bounded by the day.
//!
//! A call that succeeded has happened; a tool that is said to be missing has only been said. So a word is learnt as one
//! of the least trust, and only so often; and of calls as many as an eager agent makes of one tool, not what a loop
//! does.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Who told something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'t> {
    /// For whom it counts.
    pub tenant: &'t str,
    /// The token's name.
    pub by: &'t str,
}

/// Words of one token about one tool that are learnt in a day.
const WORDS_OF_TOOL: u32 = 3;

/// Words of one token that are learnt in a day.
const WORDS: u32 = 20;

/// Calls of one tool by a tenant that are learnt in a day.
const CALLS_OF_TOOL: u32 = 200;

/// Counts at once; a day that has more of them learns no new ones.
const MAX_COUNTS: usize = 50_000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What was learnt today.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    /// Days since the epoch.
    day: u64,
    counts: HashMap<(String, String, String), u32>,
}

impl Allowance {
    /// May this word about the tool be learnt? If so, it is counted.
    pub(super) fn word(&mut self, told: Told<'_>, tool: &str, now: SystemTime) -> bool {
        self.begin(now);
        let (tenant, by) = (told.tenant, told.by);
        self.has_room(tenant, by, "", WORDS)
            && self.take(tenant, by, tool, WORDS_OF_TOOL)
            && self.take(tenant, by, "", WORDS)
    }

    /// May this call of the tool be learnt? If so, it is counted.
    pub(super) fn call(&mut self, tenant: &str, tool: &str, now: SystemTime) -> bool {
        self.begin(now);
        self.take(tenant, "", tool, CALLS_OF_TOOL)
    }

    fn begin(&mut self, now: SystemTime) {
        let day = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / DAY.as_secs();
        if day != self.day {
            (self.day, self.counts) = (day, HashMap::new());
        }
    }

    fn has_room(&self, tenant: &str, by: &str, tool: &str, most: u32) -> bool {
        let key = (tenant.to_owned(), by.to_owned(), tool.to_owned());
        self.counts.get(&key).is_none_or(|&count| count < most)
    }

    fn take(&mut self, tenant: &str, by: &str, tool: &str, most: u32) -> bool {
        let key = (tenant.to_owned(), by.to_owned(), tool.to_owned());
        if self.counts.len() >= MAX_COUNTS && !self.counts.contains_key(&key) {
            return false;
        }
        let count = self.counts.entry(key).or_default();
        if *count >= most {
            return false;
        }
        *count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_a_few_times_a_day() {
        let mut allowance = Allowance::default();
        let noon = UNIX_EPOCH + DAY / 2;
        let mut learnt = |by: &str, tool: &str, now: SystemTime, times: usize| {
            (0..times).filter(|_| allowance.word(Told { tenant: "t", by }, tool, now)).count()
        };
        assert_eq!(learnt("a", "x", noon, 8), 3);
        assert_eq!(learnt("b", "x", noon, 8), 3, "each token has its own");
        let tools: usize = (0..50).map(|tool| learnt("a", &format!("tool{tool}"), noon, 1)).sum();
        assert_eq!(tools, 17, "all tools together");
        assert_eq!(learnt("a", "x", noon + DAY, 8), 3, "another day");
    }

    #[test]
    fn a_loop_of_calls_is_learnt_so_far() {
        let mut allowance = Allowance::default();
        let learnt = |allowance: &mut Allowance, tenant: &str| {
            (0..500).filter(|_| allowance.call(tenant, "x", UNIX_EPOCH)).count()
        };
        assert_eq!((learnt(&mut allowance, "t"), learnt(&mut allowance, "u")), (200, 200));
        allowance.counts = (0..MAX_COUNTS).map(|n| ((n.to_string(), String::new(), String::new()), 1)).collect();
        assert_eq!(learnt(&mut allowance, "v"), 0, "no more is remembered");
    }
}
