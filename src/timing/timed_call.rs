//! Calls as points over time, as many as can be looked at.

use super::outcome::Outcome;
use super::predicted::Predicted;

/// A call whose duration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedCall {
    /// When it ended, milliseconds since the epoch.
    pub at_ms: i64,
    pub duration_ms: u64,
    pub outcome: Outcome,
    /// What the model said of it before, if that was kept.
    pub predicted: Option<Predicted>,
}

/// At most `most` of them, in the order of their times. Of each stretch of as many calls as must become two, the
/// shortest and the longest stay: what is rare and far off is what is looked for.
pub fn thin(mut calls: Vec<TimedCall>, most: usize) -> Vec<TimedCall> {
    calls.sort_by_key(|call| call.at_ms);
    if calls.len() <= most {
        return calls;
    }
    let stretch = calls.len().div_ceil((most / 2).max(1));
    let extremes = |stretch: &[TimedCall]| {
        let by_length = |place: &usize| stretch[*place].duration_ms;
        let shortest = (0..stretch.len()).min_by_key(by_length);
        let longest = (0..stretch.len()).max_by_key(by_length).filter(|longest| Some(*longest) != shortest);
        let mut places: Vec<usize> = shortest.into_iter().chain(longest).collect();
        places.sort_unstable();
        places.into_iter().map(|place| stretch[place]).collect::<Vec<_>>()
    };
    calls.chunks(stretch).flat_map(extremes).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_more_stay_than_may_and_the_extremes_do(
            durations in prop::collection::vec((0i64..50, 0u64..1000), 0..300),
            most in 2usize..40,
        ) {
            let call = |&(at_ms, duration_ms): &(i64, u64)| TimedCall {
                at_ms,
                duration_ms,
                outcome: Outcome::Success,
                predicted: None,
            };
            let calls: Vec<TimedCall> = durations.iter().map(call).collect();
            let thinned = thin(calls.clone(), most);
            prop_assert!(thinned.len() <= most && thinned.len() >= calls.len().min(most / 2));
            prop_assert!(thinned.is_sorted_by_key(|call| call.at_ms));
            prop_assert!(thinned.iter().all(|call| calls.contains(call)));
            let ends = |calls: &[TimedCall]| {
                let durations = || calls.iter().map(|call| call.duration_ms);
                (durations().min(), durations().max())
            };
            prop_assert_eq!(ends(&thinned), ends(&calls));
            if calls.len() <= most {
                prop_assert_eq!(thinned.len(), calls.len());
            }
        }
    }
}
