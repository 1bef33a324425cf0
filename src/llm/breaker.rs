//! When not to ask: an endpoint that failed several times in a row is left alone for a while.
//!
//! Otherwise every message would wait for the whole deadline as long as the endpoint is down. The pause doubles with
//! each probe that fails; a probe is a single call, and the others are answered without the endpoint until it is
//! judged. An endpoint that says for how long it wants to be left alone is, at once and within the bound of all pauses.

use std::time::{Duration, Instant};

use crate::telemetry::events::{LlmBreaker, LlmBreakerChanged};
use parking_lot::Mutex;

/// Longest pause between two probes of an endpoint that stays down, unless the first one is longer.
pub const MAX_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Counts failures in a row, and says whether a call may be made.
#[derive(Debug)]
pub(super) struct Breaker {
    max_failures: usize,
    first_pause: Duration,
    // Held for a few instructions only, never across a wait.
    state: Mutex<State>,
}

/// Whether calls are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    /// They are not, since too many failed, or the endpoint wants none.
    Open {
        pause: Duration,
    },
    /// One is, to find out.
    HalfOpen,
}

impl From<BreakerState> for LlmBreakerChanged {
    fn from(state: BreakerState) -> Self {
        match state {
            BreakerState::Closed => Self { state: LlmBreaker::Closed, pause: None },
            BreakerState::Open { pause } => Self { state: LlmBreaker::Open, pause: Some(pause) },
            BreakerState::HalfOpen => Self { state: LlmBreaker::HalfOpen, pause: None },
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { failures: usize },
    Open { since: Instant, pause: Duration },
    HalfOpen { pause: Duration },
}

impl State {
    fn shown(self) -> BreakerState {
        match self {
            Self::Closed { .. } => BreakerState::Closed,
            Self::Open { pause, .. } => BreakerState::Open { pause },
            Self::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallVerdict {
    Worked,
    Failed,
    /// It does not, and wants no call for a while.
    TurnedAway {
        /// For so long; what is longer than any pause counts as the longest.
        wait: Duration,
    },
    /// Nobody waited for the end.
    Unknown,
}

/// The right to make one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    /// Does this call alone decide whether others may follow?
    pub(super) is_probe: bool,
}

impl Breaker {
    /// Opens after `max_failures` in a row, for `first_pause` at first.
    pub(super) fn new(max_failures: usize, first_pause: Duration) -> Self {
        Self { max_failures, first_pause, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    /// May a call be made at `now`? If not, the time until one may, as far as that is known.
    pub(super) fn admit(&self, now: Instant) -> Result<Pass, Duration> {
        let mut state = self.state.lock();
        match *state {
            State::Closed { .. } => Ok(Pass { is_probe: false }),
            State::HalfOpen { pause } => Err(pause),
            State::Open { since, pause } => {
                let left = left(since, pause, now);
                if !left.is_zero() {
                    return Err(left);
                }
                *state = State::HalfOpen { pause };
                Ok(Pass { is_probe: true })
            }
        }
    }

    /// Takes note of how the call with this pass ended at `now`; returns the new state if it is another.
    pub(super) fn judge(&self, pass: Pass, verdict: CallVerdict, now: Instant) -> Option<BreakerState> {
        let mut state = self.state.lock();
        let before = state.shown();
        let longest = MAX_PAUSE.max(self.first_pause);
        *state = match (*state, verdict) {
            (State::Closed { .. }, CallVerdict::Worked) => State::Closed { failures: 0 },
            (State::Closed { failures }, CallVerdict::Failed) if failures + 1 >= self.max_failures => {
                State::Open { since: now, pause: self.first_pause }
            }
            (State::Closed { failures }, CallVerdict::Failed) => State::Closed { failures: failures + 1 },
            (State::HalfOpen { .. }, CallVerdict::Worked) if pass.is_probe => State::Closed { failures: 0 },
            (State::HalfOpen { pause }, CallVerdict::Failed) if pass.is_probe => {
                State::Open { since: now, pause: pause.saturating_mul(2).min(longest) }
            }
            // Whichever call it was told to, it holds for all; but no pause becomes shorter by it.
            (State::Closed { .. }, CallVerdict::TurnedAway { wait }) => {
                State::Open { since: now, pause: wait.min(longest) }
            }
            (State::Open { since, pause }, CallVerdict::TurnedAway { wait })
                if wait.min(longest) > left(since, pause, now) =>
            {
                State::Open { since: now, pause: wait.min(longest) }
            }
            (State::HalfOpen { pause }, CallVerdict::TurnedAway { wait }) if pass.is_probe => {
                State::Open { since: now, pause: pause.saturating_mul(2).max(wait).min(longest) }
            }
            // The next call may try at once.
            (State::HalfOpen { pause }, CallVerdict::Unknown) if pass.is_probe => {
                State::Open { since: now.checked_sub(pause).unwrap_or(now), pause }
            }
            // Calls that began before it opened say nothing new.
            (unchanged, _) => unchanged,
        };
        let after = state.shown();
        (before != after).then_some(after)
    }
}

/// What is left of a pause.
fn left(since: Instant, pause: Duration, now: Instant) -> Duration {
    pause.saturating_sub(now.saturating_duration_since(since))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAUSE: Duration = Duration::from_secs(5);

    /// Plays one step per second: `+`, `-` and `?` are calls that work, fail and are given up, a digit is one
    /// that is turned away for so many seconds, `.` is no call. Shows what each
    /// step leaves: `c`losed, `o`pen, or `x` for a call that was not made.
    fn play(script: &str) -> String {
        let breaker = Breaker::new(3, PAUSE);
        let mut now = Instant::now();
        let mut step = |letter| {
            now += Duration::from_secs(1);
            let verdict = match letter {
                '+' => CallVerdict::Worked,
                '-' => CallVerdict::Failed,
                '?' => CallVerdict::Unknown,
                '0'..='9' => CallVerdict::TurnedAway { wait: Duration::from_secs(letter.to_digit(10).unwrap().into()) },
                _ => return '.',
            };
            let Ok(pass) = breaker.admit(now) else { return 'x' };
            breaker.judge(pass, verdict, now);
            LlmBreakerChanged::from(breaker.state.lock().shown()).state.as_str().chars().next().unwrap()
        };
        script.chars().map(&mut step).collect()
    }

    #[test]
    fn opens_after_failures_in_a_row_and_closes_by_a_probe() {
        let check = |script: &str, expected: &str| assert_eq!(play(script), expected, "{script}");
        check("--+--+-?--", "ccccccccco");
        check("---++++++", "ccoxxxxcc");
        check("---....+---", "cco....ccco");
        // The second pause is twice the first.
        check("---....-+++++++++++", "cco....oxxxxxxxxxcc");
        // A probe that was given up lets the next call be one.
        check("---....?+", "cco....oc");
        // One that is turned away is enough; the pause after a probe is no shorter than without the wish.
        check("+3+++--", "coxxccc");
        check("8+++++++2++++++++++++++++", "oxxxxxxxoxxxxxxxxxxxxxxxc");
    }

    #[test]
    fn one_probe_at_a_time() {
        let breaker = Breaker::new(1, PAUSE);
        let start = Instant::now();
        let early = breaker.admit(start).unwrap();
        let pass = breaker.admit(start).unwrap();
        assert_eq!(breaker.judge(pass, CallVerdict::Failed, start), Some(BreakerState::Open { pause: PAUSE }));
        assert_eq!(breaker.admit(start + PAUSE / 5), Err(PAUSE * 4 / 5));
        let probe = breaker.admit(start + PAUSE).unwrap();
        assert!(probe.is_probe);
        assert_eq!(breaker.admit(start + PAUSE), Err(PAUSE));
        assert_eq!(breaker.judge(early, CallVerdict::Worked, start + PAUSE), None, "it began before the failure");
        assert_eq!(breaker.judge(probe, CallVerdict::Worked, start + PAUSE), Some(BreakerState::Closed));
    }

    #[test]
    fn what_any_call_is_told_holds_for_all_within_the_bound() {
        let breaker = Breaker::new(1, PAUSE);
        let start = Instant::now();
        let passes = [(); 4].map(|()| breaker.admit(start).unwrap());
        let mut waits = [PAUSE * 2, PAUSE, PAUSE * 3, Duration::MAX].into_iter().zip(passes).map(|(wait, pass)| {
            let changed = breaker.judge(pass, CallVerdict::TurnedAway { wait }, start);
            (changed.is_some(), breaker.admit(start).unwrap_err())
        });
        assert_eq!(waits.next(), Some((true, PAUSE * 2)));
        assert_eq!(waits.next(), Some((false, PAUSE * 2)), "the longer one holds");
        assert_eq!(waits.next(), Some((true, PAUSE * 3)));
        assert_eq!(waits.next(), Some((true, MAX_PAUSE)));
    }

    proptest! {
        #[test]
        fn after_the_longest_pause_a_call_may_be_made(script in "[-+?9]{0,200}") {
            let breaker = Breaker::new(1, PAUSE);
            let mut now = Instant::now();
            for letter in script.chars() {
                now += MAX_PAUSE;
                let pass = breaker.admit(now);
                prop_assert!(pass.is_ok());
                let verdict = match letter {
                    '+' => CallVerdict::Worked,
                    '-' => CallVerdict::Failed,
                    '9' => CallVerdict::TurnedAway { wait: Duration::MAX },
                    _ => CallVerdict::Unknown,
                };
                breaker.judge(pass.unwrap(), verdict, now);
            }
        }
    }
}
