//! How much longer a tool's calls take when they are larger: recursive least squares of the deviation over five
//! covariates.
//!
//! One regression per tool, since a tool's modes differ in location but rarely in slope. It explains deviations from
//! the key's location by deviations from the key's mean covariates, so a tool that is always called with the same size
//! learns nothing from it. Deviations are capped: one stuck call must not bend the slope.

use super::super::complexity::COVARIATES;
use super::sizes::Each;

/// Variance of a slope before anything was seen, and the most it may have again later.
const VARIANCE: f64 = 0.3;
/// What a slope's variance regains with each call, so that it can change again.
const REGAINED: f64 = 3e-6;
/// Largest shift of a forecast, in ln(ms): a factor of 7.4.
const LARGEST_SHIFT: f64 = 2.0;
/// Largest deviation that is learnt from, in spreads.
const LARGEST_DEVIATION: f64 = 2.5;

/// A slope of which less than this share was seen is not drawn out further.
const LEAST_SEEN: f64 = 0.5;

/// Slopes of ln(ms) over the covariates.
#[derive(Debug, Clone)]
pub(crate) struct Regression {
    slopes: [f64; COVARIATES],
    /// Of the slopes; symmetric.
    covariance: [[f64; COVARIATES]; COVARIATES],
}

impl Default for Regression {
    fn default() -> Self {
        let mut covariance = [[0.0; COVARIATES]; COVARIATES];
        (0..COVARIATES).for_each(|i| covariance[i][i] = VARIANCE);
        Self { slopes: [0.0; COVARIATES], covariance }
    }
}

impl Regression {
    /// How much later, in ln(ms), a call ends whose covariates differ by `difference` from the usual.
    pub(crate) fn shift(&self, difference: &Each<f64>) -> f64 {
        self.unbounded(difference).clamp(-LARGEST_SHIFT, LARGEST_SHIFT)
    }

    /// What the slopes say beyond the largest shift, in ln(ms); 0 within it.
    pub(crate) fn beyond(&self, difference: &Each<f64>) -> f64 {
        self.unbounded(difference) - self.shift(difference)
    }

    fn unbounded(&self, difference: &Each<f64>) -> f64 {
        difference.iter().zip(self.slopes).map(|(difference, slope)| slope * difference).sum()
    }

    /// The same as far as it is known to be understated: a slope begins at 0, and is drawn there until enough was seen.
    pub(crate) fn full_shift(&self, difference: &Each<f64>) -> f64 {
        let drawn = |i: usize| (1.0 - self.covariance[i][i] / VARIANCE).max(LEAST_SEEN);
        let shift: f64 = (0..COVARIATES).map(|i| difference[i] * self.slopes[i] / drawn(i)).sum();
        shift.clamp(-LARGEST_SHIFT, LARGEST_SHIFT)
    }

    /// Learns that a call with this `difference` came `deviation` from where it was expected, `scale` being the spread
    /// there.
    pub(crate) fn learn(&mut self, difference: &Each<f64>, deviation: f64, scale: f64) {
        let deviation = deviation.clamp(-LARGEST_DEVIATION * scale, LARGEST_DEVIATION * scale);
        let product = |row: &[f64; COVARIATES]| difference.iter().zip(row).map(|(u, v)| u * v).sum::<f64>();
        let gain = self.covariance.each_ref().map(product);
        let denominator = 1.0 + product(&gain);
        for (i, row) in self.covariance.iter_mut().enumerate() {
            self.slopes[i] += gain[i] / denominator * deviation;
            for (covariance, other) in row.iter_mut().zip(gain) {
                *covariance -= gain[i] * other / denominator;
            }
            row[i] = (row[i] + REGAINED).min(VARIANCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_found_and_followed() {
        let minus_usual = |length: u64| [(length as f64 + 1.0).ln() - 1001.0_f64.ln(), 0.0, 0.0, 0.0, 0.0];
        let mut regression = Regression::default();
        let expected = 0.5 * (10_001_f64 / 1001.0).ln();
        for slope in [0.5, -0.5] {
            // The second one takes longer to believe.
            for call in 0..2000_u32 {
                let difference = minus_usual(10_u64.pow(2 + call % 3));
                let truth = slope * difference.iter().sum::<f64>();
                regression.learn(&difference, truth - regression.shift(&difference), 1.0);
            }
            let shift = regression.shift(&minus_usual(10_000));
            assert!((shift - slope / 0.5 * expected).abs() < 0.1, "{shift} is not {slope} / .5 × {expected}");
        }
        assert!((regression.shift(&minus_usual(1000))).abs() < f64::EPSILON);
        let largest = minus_usual(u64::MAX);
        assert!((regression.shift(&largest) + LARGEST_SHIFT).abs() < f64::EPSILON, "the slope is negative");
        assert!(regression.beyond(&largest) < -10.0 && regression.beyond(&minus_usual(10_000)).abs() < f64::EPSILON);
    }
}
