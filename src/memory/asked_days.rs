//! Questions for nothing but what was on some days.
//!
//! "What happened yesterday?" asks for all of that day, and for no other day on which something happened. Read in
//! English.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::asked_time::time_terms;
use super::named_date::is_of_date;
use super::text::term_set;

/// Words that name days beside those that name a time, and words for what is on all days.
const OF_ALL_DAYS: &str = "\
    day night may past previous this during one two three four five six seven eight nine ten eleven twelve few several \
    happen happened happening occur occurred go going went gone come came up say said saying tell told talk talked \
    talking talks discuss discussed discussion speak spoke mention mentioned chat chatted conversation \
    conversations message messages memory memories note notes write wrote written done thing things anything \
    something everything all list find search remember recall look me new else exactly \
    from between since after before until till through thru";

static TERMS: LazyLock<HashSet<String>> = LazyLock::new(|| term_set(OF_ALL_DAYS));

/// Words of what goes on: that names more days than those that are written.
const OF_RANGES: [&str; 7] = ["since", "until", "till", "through", "throughout", "between", "to"];

/// Does a text, which names days and whose words and terms these are, ask for nothing else? Words that name a range
/// are left out of them.
pub(super) fn asks_for_days_alone(words: &[&str], terms: &[String]) -> bool {
    let is_of_range = |word: &&str| OF_RANGES.iter().any(|of| word.eq_ignore_ascii_case(of));
    let is_aside = |term: &String| TERMS.contains(term) || time_terms().contains(term) || is_of_date(term);
    !words.iter().any(is_of_range) && terms.iter().all(is_aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::date_token::words;
    use crate::memory::text::query;

    #[test]
    fn a_question_for_a_day_is_told_from_one_for_something_of_it() {
        for text in [
            "what happened yesterday?",
            "What did I say last week?",
            "yesterday morning",
            "what happened last night?",
            "what came up in the last 10 days",
            "Tell me everything from 8 May 2025",
            "what did we talk about on the 21st of June?",
            "what happened in May?",
            "what was done three days ago?",
            "eleven days ago",
            "2025-05-08",
        ] {
            assert!(asks_for_days_alone(&words(text), &query(text).0), "{text}");
        }
        for text in [
            "what did Anna say yesterday?",
            "which invoices came last week",
            "the car in May",
            "tea",
            "find event 42 last week",
            "what did we say about 2FA last week",
            "what happened since yesterday",
            "from 3 May to 7 June",
            "how was the show last night",
        ] {
            assert!(!asks_for_days_alone(&words(text), &query(text).0), "{text}");
        }
    }
}
