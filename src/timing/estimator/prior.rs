//! What is believed of a tool before its first call.
//!
//! A two-sided exponential around the hint of the tool's document, or around the default, blended with everything this
//! daemon has seen. The hint is somebody's word about this tool: it is narrower and gives way to the blend more slowly
//! than a default that was meant for any tool.

use super::grid::{BINS, Mass, WIDTH, ln_ms};
use super::survival::Durations;

/// Where a tool's duration before its first call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PriorSource {
    Hint,
    /// The defaults name the tool.
    Default,
    /// The default for tools that nothing is known of.
    Unknown,
}

/// The duration that a call is expected to take before anything was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prior {
    /// In ms, the factor for the call's complexity applied.
    pub ms: u64,
    pub source: PriorSource,
}

/// Bins up to which a call is thought possible that nobody said more of: four hours.
const EXPECTED_BINS: usize = 330;

/// How far a prior reaches and how it gives way.
struct Reach {
    /// Of the exponential, in ln(ms).
    width: f64,
    /// Calls of other tools that weigh as much as the prior.
    equal: f64,
    /// The most they may weigh.
    most: f64,
}

const NAMED: Reach = Reach { width: 0.8, equal: 60.0, most: 0.4 };
const UNKNOWN: Reach = Reach { width: 1.5, equal: 5.0, most: 0.95 };

impl Prior {
    /// The centre, in ln(ms).
    pub(crate) fn ln(self) -> f64 {
        ln_ms(self.ms)
    }

    /// The distribution, in view of all calls of this daemon; its mass is 1.
    pub(crate) fn mass(self, daemon: &Durations) -> Mass {
        let reach = if self.source == PriorSource::Unknown { UNKNOWN } else { NAMED };
        let seen = daemon.total();
        let others = if seen > 0.0 { (seen / (seen + reach.equal)).min(reach.most) } else { 0.0 };
        let mut mass = exponential(self.ln(), reach.width, 1.0 - others);
        if others > 0.0 {
            let share = others as f32;
            for (mass, seen) in mass.iter_mut().zip(daemon.over(&[0.0; BINS], 0.0, 0.0)) {
                *mass += share * seen;
            }
        }
        mass
    }
}

/// A two-sided exponential of this `total` mass on the axis. Neighbouring bins differ by a constant factor on either
/// side of the centre.
fn exponential(centre: f64, width: f64, total: f64) -> Mass {
    let at = |bin: usize| (-((bin as f64 + 0.5) * WIDTH - centre).abs() / width).exp();
    let step = (-WIDTH / width).exp();
    let end = if centre < EXPECTED_BINS as f64 * WIDTH { EXPECTED_BINS } else { BINS };
    let first_above = ((centre / WIDTH + 0.5).max(0.0) as usize).min(end);
    let mut wide = [0.0_f64; BINS];
    let mut sum = 0.0;
    let mut value = if first_above < end { at(first_above) } else { 0.0 };
    for mass in &mut wide[first_above..end] {
        *mass = value;
        sum += value;
        value *= step;
    }
    let mut value = if first_above > 0 { at(first_above - 1) } else { 0.0 };
    for mass in wide[..first_above].iter_mut().rev() {
        *mass = value;
        sum += value;
        value *= step;
    }
    let scale = total / sum;
    wide.map(|mass| (mass * scale) as f32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::grid::Distribution;
    use super::super::histogram::Fading;
    use super::*;

    fn daemon(calls: u32) -> Durations {
        let mut histogram = Durations::default();
        (0..calls).for_each(|_| histogram.add(ln_ms(200), Fading::DAEMON));
        histogram
    }

    fn check(source: PriorSource, calls: u32, expected: std::ops::Range<f64>) {
        let prior = Prior { ms: 20_000, source };
        let at_hint = Distribution::new(prior.mass(&daemon(calls))).between(ln_ms(10_000), ln_ms(40_000));
        assert!(expected.contains(&at_hint), "{source:?} after {calls} calls of other tools: {at_hint}");
    }

    #[test]
    fn a_hint_gives_way_more_slowly_than_a_default() {
        check(PriorSource::Hint, 0, 0.57..0.59);
        check(PriorSource::Default, 0, 0.57..0.59);
        check(PriorSource::Hint, 10_000, 0.34..0.36);
        check(PriorSource::Unknown, 0, 0.36..0.39);
        check(PriorSource::Unknown, 10_000, 0.01..0.03);
    }

    proptest! {
        #[test]
        fn the_mass_is_one(ms in 0..100_000_000_u64, calls in 0..20_u32) {
            for source in [PriorSource::Hint, PriorSource::Unknown] {
                let mass = Prior { ms, source }.mass(&daemon(calls));
                prop_assert!((mass.iter().map(|&mass| f64::from(mass)).sum::<f64>() - 1.0).abs() < 1e-5);
            }
        }
    }
}
