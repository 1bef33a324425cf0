//! What forecasts are measured against: the quantiles of everything seen before.

#[derive(Debug, Clone, Default)]
pub(super) struct Sorted(Vec<f64>);

impl Sorted {
    pub(super) fn insert(&mut self, value: f64) {
        let position = self.0.partition_point(|other| *other < value);
        self.0.insert(position, value);
    }

    /// The quantile at `level` (0 to 1); there is none of nothing.
    pub(super) fn quantile(&self, level: f64) -> Option<f64> {
        quantile(&self.0, level)
    }
}

/// The quantile of values in order, interpolated between neighbours.
pub(super) fn quantile(sorted: &[f64], level: f64) -> Option<f64> {
    let place = level * sorted.len().checked_sub(1)? as f64;
    let lower = place as usize;
    let upper = (lower + 1).min(sorted.len() - 1);
    Some(sorted[lower] + (sorted[upper] - sorted[lower]) * place.fract())
}

/// The median of values in any order, 0 of nothing.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile(&values, 0.5).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64], level: f64, expected: Option<f64>) {
        let mut sorted = Sorted::default();
        for &value in values {
            sorted.insert(value);
        }
        assert_eq!(sorted.quantile(level), expected, "quantile {level} of {values:?}");
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        check(&[], 0.5, None);
        check(&[3.0], 0.95, Some(3.0));
        check(&[3.0, 1.0], 0.5, Some(2.0));
        check(&[4.0, 1.0, 2.0, 3.0, 5.0], 0.9, Some(4.6));
        check(&[4.0, 1.0], 1.0, Some(4.0));
        assert_eq!(median(vec![3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
    }
}
