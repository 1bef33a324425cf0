//! How much each expert is listened to.
//!
//! Two things decide: how many calls the key has, because a histogram of one call is worth nothing and one of a hundred
//! calls nearly everything; and how well each expert foretold this key's last few calls. The first is a table, learnt
//! slowly over all keys from a sensible start; the second is a log-evidence per key that halves about every two and a
//! half calls.

use super::experts::{EXPERTS, Expert};

/// How many calls a key has, in classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Experience(u8);

/// Classes of [`Experience`]: 0, 1, 2, 4, 8, 16, 64 and more calls.
pub(crate) const CLASSES: usize = 7;

impl Experience {
    pub(crate) fn of(calls: u32) -> Self {
        Self(match calls {
            0 => 0,
            1 => 1,
            2..4 => 2,
            4..8 => 3,
            8..16 => 4,
            16..64 => 5,
            _ => 6,
        })
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Weights to start from: history, slow, recent, tool, fleet. Fitted on public traces of coding agents' tools and their
/// model calls.
const START: [[f64; EXPERTS]; CLASSES] = [
    [0.00, 0.10, 0.10, 0.55, 0.25],
    [0.15, 0.22, 0.25, 0.23, 0.15],
    [0.22, 0.24, 0.26, 0.18, 0.10],
    [0.25, 0.26, 0.24, 0.17, 0.08],
    [0.30, 0.23, 0.24, 0.17, 0.06],
    [0.36, 0.18, 0.24, 0.17, 0.05],
    [0.42, 0.14, 0.22, 0.18, 0.04],
];
/// What one call changes in the table.
const RATE: f64 = 0.003;

/// The table: weights by experience.
#[derive(Debug, Clone)]
pub(crate) struct WeightTable([[f64; EXPERTS]; CLASSES]);

impl Default for WeightTable {
    fn default() -> Self {
        Self(START)
    }
}

impl WeightTable {
    /// The weights of the experts that `speak`, which add up to 1.
    pub(crate) fn weigh(
        &self,
        experience: Experience,
        evidence: &Evidence,
        speak: impl Fn(Expert) -> bool,
    ) -> [f64; EXPERTS] {
        let raw = Expert::ALL.map(|expert| {
            let index = expert.index();
            let weight = self.0[experience.index()][index];
            if speak(expert) { weight * f64::from(evidence.0[index]).exp() } else { 0.0 }
        });
        let total: f64 = raw.iter().sum();
        raw.map(|weight| weight / total)
    }

    /// Learns how much of the probability of a call each expert contributed. One that is not `present` keeps its weight
    /// for the day it is.
    pub(crate) fn learn(
        &mut self,
        experience: Experience,
        contributions: &[f64; EXPERTS],
        present: impl Fn(Expert) -> bool,
    ) {
        let total: f64 = contributions.iter().sum();
        let weights = &mut self.0[experience.index()];
        for expert in Expert::ALL.into_iter().filter(|&expert| present(expert)) {
            let index = expert.index();
            weights[index] += RATE * (contributions[index] / total - weights[index]);
        }
    }
}

/// No expert falls further behind the best than this, in ln.
const LEAST: f64 = -12.0;

/// Recent log-evidence of the experts for one key, relative to the best; 0 or less.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Evidence([f32; EXPERTS]);

impl Evidence {
    /// Adds the probability density that each expert gave to a call, `kept` (0 to 1) being left of all earlier; those
    /// that had none to give are passed over.
    pub(crate) fn add(&mut self, densities: &[f64; EXPERTS], kept: f64, present: impl Fn(Expert) -> bool) {
        let now = Expert::ALL.map(|expert| {
            let index = expert.index();
            kept * f64::from(self.0[index]) + densities[index].ln()
        });
        let best = Expert::ALL.into_iter().filter(|&expert| present(expert)).map(|expert| now[expert.index()]);
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        for expert in Expert::ALL.into_iter().filter(|&expert| present(expert)) {
            let index = expert.index();
            self.0[index] = (now[index] - best).clamp(LEAST, 0.0) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_expert_takes_over() {
        let table = WeightTable::default();
        let mut evidence = Evidence::default();
        let any = |_| true;
        let before = table.weigh(Experience::of(20), &evidence, any);
        for _ in 0..3 {
            evidence.add(&[0.01, 0.01, 0.5, 0.01, 0.01], 0.75, any);
        }
        let after = table.weigh(Experience::of(20), &evidence, any);
        let recent = Expert::Recent.index();
        assert!(before[recent] < 0.3 && after[recent] > 0.95, "{before:?} → {after:?}");
        assert!((after.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_silent_expert_has_no_weight_and_loses_none() {
        let mut table = WeightTable::default();
        let evidence = Evidence::default();
        let weights = table.weigh(Experience::of(1), &evidence, |expert| expert != Expert::Fleet);
        assert!(weights[Expert::Fleet.index()] == 0.0);
        for _ in 0..1000 {
            table.learn(Experience::of(1), &[0.1, 0.1, 0.1, 0.7, 0.0], |expert| expert != Expert::Fleet);
        }
        let weights = table.weigh(Experience::of(1), &evidence, |_| true);
        assert!(weights[Expert::Tool.index()] > 0.55 && weights[Expert::Fleet.index()] > 0.1);
    }
}
