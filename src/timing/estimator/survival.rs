//! Durations of calls that ended, and of those that were given up: a call that was given up says only "longer than".
//!
//! Dropping such calls ruins the forecast of timeouts, because exactly the long calls go missing; counting them as if
//! they had ended makes the limit look like a duration, and a call imputed at some place beyond it makes a duration of
//! a guess. So both are counted apart, and what was given up is handed, from left to right, to all that lasted longer,
//! in proportion to what is known of it. This is the estimator of Kaplan & Meier ("Nonparametric Estimation from
//! Incomplete Observations", 1958) on the grid, in the form of Efron's redistribution to the right. What is believed
//! beforehand counts as a few calls that ended, so that there is always something on the right.
//!
//! Rejected: the median of the forecast beyond the limit, as a call that ended there (a spike at a place where nothing
//! was ever seen; five calls given up were a duration of high confidence).

use super::grid::{BINS, Mass, WIDTH, tail};
use super::histogram::{Fading, Histogram};

/// Less than so many calls say nothing about what lasts longer.
const UNFORESEEN: f64 = 1e-4;

/// What a key, a tool or a daemon has seen, calls that were given up included.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    ended: Histogram,
    given_up: Option<Box<Histogram>>,
}

impl Durations {
    /// Counts a call that ended at the place `ln`; all earlier ones fade.
    pub fn add(&mut self, ln: f64, fading: Fading) {
        self.ended.add(ln, fading);
        if let Some(given_up) = &mut self.given_up {
            given_up.fade(fading);
        }
    }

    /// Counts a call that was given up at the place `ln`; all earlier ones fade.
    pub fn add_given_up(&mut self, ln: f64, fading: Fading) {
        self.ended.fade(fading);
        let given_up = self.given_up.get_or_insert_default();
        given_up.fade(fading);
        given_up.mark(ln);
    }

    /// Calls counted, faded ones for what is left of them.
    pub fn total(&self) -> f64 {
        self.ended.total() + self.given_up.as_ref().map_or(0.0, |given_up| given_up.total())
    }

    /// Those that ended.
    pub(crate) fn ended(&self) -> &Histogram {
        &self.ended
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let given_up = self.given_up.as_ref();
        self.ended.heap_bytes() + given_up.map_or(0, |given_up| size_of::<Histogram>() + given_up.heap_bytes())
    }

    /// The distribution, moved by `shift` in ln, over a `background` of mass 1 that weighs as much as `calls` calls.
    pub(crate) fn over(&self, background: &Mass, calls: f64, shift: f64) -> Mass {
        let total = self.total() + calls;
        let mut mass = background.map(|mass| mass * (calls / total) as f32);
        self.ended.add_shifted(&mut mass, shift, 1.0 / total);
        if let Some(given_up) = &self.given_up {
            let mut censored = [0.0; BINS];
            given_up.add_shifted(&mut censored, shift, 1.0 / total);
            redistribute(&mut mass, &censored, UNFORESEEN / total);
        }
        mass
    }
}

/// Hands what was `given_up` in each bin to what `ended` in those above it; together they are 1, as is the result.
fn redistribute(ended: &mut Mass, given_up: &Mass, least: f64) {
    let mut at_risk: f64 = ended.iter().chain(given_up).map(|&mass| f64::from(mass)).sum();
    let mut factor = 1.0;
    for bin in 0..BINS {
        at_risk -= f64::from(ended[bin]);
        ended[bin] *= factor as f32;
        let censored = f64::from(given_up[bin]);
        if censored <= 0.0 {
            continue;
        }
        let beyond = at_risk - censored;
        if beyond <= least {
            return extend(ended, bin, factor * at_risk.max(0.0));
        }
        factor *= at_risk / beyond;
        at_risk = beyond;
    }
}

/// Replaces what is beyond `bin` by an assumed tail of this `total` mass.
fn extend(ended: &mut Mass, bin: usize, total: f64) {
    let beyond = &mut ended[(bin + 1).min(BINS - 1)..];
    beyond.copy_from_slice(&tail()[..beyond.len()]);
    let sum: f64 = beyond.iter().map(|&mass| f64::from(mass)).sum();
    for mass in beyond {
        *mass *= (total / sum) as f32;
    }
}

/// The evidence of an expert that predicted `mass`: how much of it lies beyond `limit`, on the scale of a density of
/// one bin.
pub(crate) fn evidence(mass: &Mass, limit: f64) -> f64 {
    let place = (limit / WIDTH).max(0.0);
    let bin = place as usize;
    let total: f64 = mass.iter().map(|&mass| f64::from(mass)).sum();
    let longer: f64 = mass.iter().skip(bin + 1).map(|&mass| f64::from(mass)).sum();
    let part = mass.get(bin).map_or(0.0, |&mass| f64::from(mass) * (1.0 - place.fract()));
    (longer + part) / total.max(1e-12) * 0.2 + 1e-4
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::grid::{Distribution, ln_ms};
    use super::*;

    /// Calls, of which those below 0 were given up after so long, and the expected probability to last longer than
    /// each limit.
    fn check(calls: &[i64], expected: &[(u64, f64)]) {
        let mut durations = Durations::default();
        for &ms in calls {
            let ln = ln_ms(ms.unsigned_abs());
            if ms < 0 {
                durations.add_given_up(ln, Fading::DAEMON);
            } else {
                durations.add(ln, Fading::DAEMON);
            }
        }
        let mass = durations.over(&[1.0 / BINS as f32; BINS], 1e-3, 0.0);
        let distribution = Distribution::new(mass);
        for &(limit, expected) in expected {
            let longer = 1.0 - distribution.below(ln_ms(limit));
            assert!((longer - expected).abs() < 0.01, "{longer} beyond {limit} after {calls:?}");
        }
    }

    #[test]
    fn what_was_given_up_lasted_longer() {
        // Of those still running at 300 ms, half lasted longer than 3 s: by hand, 3/4, 3/4 and 3/8.
        check(&[100, 1000, -300, 10_000], &[(50, 1.0), (200, 0.75), (500, 0.75), (3000, 0.375)]);
        check(&[2000, 2000, 2000, 2000, -50, -50], &[(1000, 1.0), (3000, 0.0)]);
        // Nothing is known beyond: longer, and half of them not by much.
        check(&[-30_000, -30_000], &[(30_000, 1.0)]);
    }

    proptest! {
        #[test]
        fn the_mass_is_one_and_giving_up_never_shortens(
            ended in prop::collection::vec(0.0..20.0_f64, 0..20),
            given_up in prop::collection::vec(0.0..20.0_f64, 1..20),
            shift in -2.0..2.0_f64,
            place in 0.0..20.0_f64,
        ) {
            let mut durations = Durations::default();
            for ln in ended {
                durations.add(ln, Fading::DAEMON);
            }
            let background = [1.0 / BINS as f32; BINS];
            let before = Distribution::new(durations.over(&background, 1.0, shift));
            for ln in given_up {
                durations.add_given_up(ln, Fading::DAEMON);
            }
            let mass = durations.over(&background, 1.0, shift);
            prop_assert!((mass.iter().map(|&mass| f64::from(mass)).sum::<f64>() - 1.0).abs() < 1e-3);
            let after = Distribution::new(mass);
            prop_assert!(after.below(place) <= before.below(place) + 0.02, "fewer last long");
        }
    }
}
