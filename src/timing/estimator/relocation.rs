//! Has a key moved? A machine that becomes three times slower, a cache that goes away: all calls lie elsewhere from now
//! on.
//!
//! The weights find out by themselves, but late: the median of the last five calls arrives after three, and by then its
//! expert has been punished for the calls it missed while it was under way. So a move is also looked for directly: the
//! last five calls all lie to one side of the key's slow location, farther than calls scatter, and most of its history
//! does not. Calls that were given up are none of them: their place is not known. Then the forecast rests on the
//! median until the key's history has come along, and the slow location starts anew where the key is; what is learnt
//! about the experts does not know of it.
//!
//! The reference implementation has nothing of the kind and needs seven to nine calls to follow a steady key that slows
//! down threefold; this needs five.
//!
//! A call that comes back ends the move. Rejected, having been measured on real traces, where many keys come back: to
//! overlook one that does (of what was called likely to time out less did), to forget most of the history at once, or
//! to start the slow location anew at once (worse quantiles). Not measured: weaker evidence for every call (it would
//! change every forecast for the sake of a rare one).

use super::experts::{EXPERTS, Expert};
use super::state::KeyState;

/// How far away is elsewhere, in spreads …
const ELSEWHERE: f64 = 1.5;
/// … and at least in ln(ms), since nobody minds a fifth.
const ELSEWHERE_LN: f64 = 0.2;
/// … or so far, once it has moved: calls that lie elsewhere widen the spread.
const STILL_ELSEWHERE: f64 = 0.75;
/// The share of the history that may lie there before it knows itself …
const KNOWN: f64 = 0.45;
/// … and that must lie there after a move. At less, what was left behind counts once more, and the odds of a time-out
/// rise again some ten calls after a move to where there is none.
const ARRIVED: f64 = 0.85;
/// Weight of the median's expert then.
const WEIGHT: f64 = 0.75;

/// Do the key's last calls all lie where few did before, or did when it moved? `spread` is the expected deviation, in
/// ln(ms).
pub(crate) fn has_moved(key: &KeyState, spread: f64) -> bool {
    known_elsewhere(key, spread).is_some_and(|known| known < if key.is_moving { ARRIVED } else { KNOWN })
}

/// Follows the key to where it is, after a call.
pub(crate) fn follow(key: &mut KeyState, spread: f64) {
    let has_arrived = key.is_moving && known_elsewhere(key, spread).is_some_and(|known| known >= ARRIVED);
    if has_arrived {
        key.settle();
    }
    key.is_moving = has_moved(key, spread);
}

/// The share of the history, 0 to 1, that lies on the side of the slow location where the last calls all do, if they do
/// so far from it.
fn known_elsewhere(key: &KeyState, spread: f64) -> Option<f64> {
    let [least, .., most] = key.recent.sorted(key.calls)?;
    let elsewhere = if key.is_moving { STILL_ELSEWHERE } else { ELSEWHERE };
    let (centre, far) = (key.slow.centre(), (elsewhere * spread).max(ELSEWHERE_LN));
    let history = key.durations.ended();
    if least > centre + far {
        Some(1.0 - history.below(centre + far) / history.total())
    } else if most < centre - far {
        Some(history.below(centre - far) / history.total())
    } else {
        None
    }
}

/// The weights for a key that has moved.
pub(crate) fn lean_on_recent(weights: [f64; EXPERTS]) -> [f64; EXPERTS] {
    let mut leaning = weights.map(|weight| weight * (1.0 - WEIGHT));
    leaning[Expert::Recent.index()] += WEIGHT;
    leaning
}

#[cfg(test)]
mod tests {
    use super::super::super::complexity::Covariates;
    use super::super::Tuning;
    use super::*;

    fn check(before: &[f64], after: &[f64], expected: bool) {
        let mut key = KeyState::default();
        for &ln in before.iter().chain(after) {
            let deviation = if key.calls == 0 { 0.0 } else { ln - key.slow.centre() };
            key.count(ln, deviation, &Covariates::default(), (0.2, 0.2), Tuning::default());
            follow(&mut key, 0.2);
        }
        assert_eq!(key.is_moving, expected, "after {} calls and then {after:?}", before.len());
    }

    #[test]
    fn five_calls_elsewhere_are_a_move() {
        check(&[8.0; 50], &[9.1; 5], true);
        check(&[8.0; 50], &[6.9; 5], true);
        check(&[8.0; 50], &[9.1; 4], false);
        check(&[8.0; 50], &[9.1, 9.1, 9.1, 6.9, 9.1], false);
        check(&[8.0; 50], &[8.2; 5], false);
        check(&[8.0; 2], &[9.1; 2], false);
    }

    #[test]
    fn a_move_lasts_until_the_history_has_come_along() {
        check(&[8.0; 50], &[9.1; 30], true);
        check(&[8.0; 50], &[9.1, 9.1, 9.1, 9.1, 9.1, 9.1, 8.0], false);
    }

    #[test]
    fn a_place_that_is_known_is_no_move() {
        check(&[8.0; 50], &[9.1; 45], false);
        check(&[8.0, 9.1].repeat(30), &[9.1; 5], false);
    }
}
