//! What to learn from a call that was given up after a while: only that it would have taken longer.
//!
//! Dropping such calls ruins the forecast of timeouts, because exactly the long calls go missing; recording them as if
//! they had ended makes the limit look like a duration. So the call is learnt as the median of what the forecast says
//! of calls that last longer than the limit, and each expert's evidence is the probability it gave to that.

use super::grid::{Distribution, Mass, WIDTH};

/// Probability of longer calls below which the forecast has nothing to say about them.
const UNFORESEEN: f64 = 0.01;
/// What is assumed then, in ln beyond the limit: a call half as long again (e^.35 = 1.42).
const ASSUMED: f64 = 0.35;
/// An imputed call is no further beyond the limit than this, in ln: a factor of 4.5.
const LARGEST: f64 = 1.5;

/// The place, in ln(ms), at which a call given up at `limit` is learnt.
pub(crate) fn impute(forecast: &Distribution, limit: f64) -> f64 {
    let below = forecast.below(limit);
    if 1.0 - below <= UNFORESEEN {
        return limit + ASSUMED;
    }
    forecast.quantile(f64::midpoint(1.0, below)).min(limit + LARGEST)
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
    use super::super::grid::{BINS, bin, ln_ms};
    use super::*;

    fn check(calls: &[u64], limit_ms: u64, expected: std::ops::Range<f64>) {
        let mut mass = [0.0; BINS];
        for &ms in calls {
            mass[bin(ln_ms(ms))] += 1.0;
        }
        let imputed = impute(&Distribution::new(mass), ln_ms(limit_ms)).exp();
        assert!(expected.contains(&imputed), "{calls:?} given up at {limit_ms}: {imputed}");
    }

    #[test]
    fn a_call_given_up_is_learnt_as_longer() {
        check(&[1000, 60_000, 60_000], 30_000, 55_000.0..65_000.0);
        check(&[1000, 1000], 30_000, 42_000.0..43_000.0);
        check(&[1000, 3_600_000], 30_000, 134_000.0..135_000.0);
    }
}
