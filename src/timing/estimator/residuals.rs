//! How far calls land from where their key's location says, in units of its spread, pooled over all keys of equal
//! experience.
//!
//! A key with three calls knows roughly where it lies and nothing of its shape. The shape is borrowed: deviations of
//! all keys, divided by the spread that was expected, fall into one histogram from -8 to 8, from which any key's
//! distribution is unfolded around its own location.

use super::grid::{BINS, Mass, WIDTH};

/// Bins of the axis of standardised residuals.
const BINS_Z: usize = 320;
/// Width of a bin in spreads; the axis reaches 8 spreads to either side.
const WIDTH_Z: f64 = 0.05;
/// The bin that begins at 0.
const ZERO: usize = BINS_Z / 2;
/// A residual is spread over its own bin and two to either side. These are the sums up to each of the five.
const KERNEL_SUMS: [f32; 5] = [1.0 / 9.0, 3.0 / 9.0, 6.0 / 9.0, 8.0 / 9.0, 1.0];
/// What is left of a residual after the next: half after 350.
const KEPT: f64 = 0.998;
/// Weight of the shape assumed before anything was seen, in calls.
const ASSUMED: f64 = 3.0;
/// Weight of a new residual at which all weights are scaled back.
const RESCALE: f64 = 1024.0;

/// A pool of standardised residuals.
#[derive(Debug, Clone)]
pub(crate) struct Residuals {
    /// The weight below the upper edge of each bin: unfolding asks for sums, and does so more often than a residual is
    /// added.
    sums: [f32; BINS_Z],
    /// Weight of one residual at present.
    unit: f64,
}

impl Residuals {
    /// A pool that assumes a two-sided exponential of this `width`, in spreads.
    pub(crate) fn assuming(width: f64) -> Self {
        let mut sum = 0.0;
        let sums: [f64; BINS_Z] = std::array::from_fn(|bin| {
            sum += (-((bin as f64 + 0.5 - ZERO as f64) * WIDTH_Z).abs() / width).exp();
            sum
        });
        Self { sums: sums.map(|below| (below * ASSUMED / sum) as f32), unit: 1.0 }
    }

    /// Adds a residual of `z` spreads.
    pub(crate) fn add(&mut self, z: f64) {
        self.unit /= KEPT;
        let unit = self.unit as f32;
        let first = (z / WIDTH_Z).floor() as i64 + ZERO as i64 - 2;
        for (bin, share) in (first..).zip(KERNEL_SUMS) {
            // What leaves the axis stays in its first or last bin.
            if let Some(sum) = usize::try_from(bin).ok().and_then(|bin| self.sums[..BINS_Z - 1].get_mut(bin)) {
                *sum += share * unit;
            }
        }
        let above = (first + 5).clamp(0, BINS_Z as i64 - 1) as usize;
        for sum in &mut self.sums[above..] {
            *sum += unit;
        }
        if self.unit > RESCALE {
            let scale = (1.0 / self.unit) as f32;
            self.sums = self.sums.map(|sum| sum * scale);
            self.unit = 1.0;
        }
    }

    /// The distribution of `location + spread × residual`, both in ln(ms).
    ///
    /// Residuals are spread evenly within their bin, so the mass between two edges of the other axis is a difference of
    /// the pool's cumulative sums. What leaves the axis stays in its first or last bin.
    pub(crate) fn unfold(&self, location: f64, spread: f64) -> Mass {
        let total = self.sums[BINS_Z - 1];
        let bins_per_z = spread * WIDTH_Z / WIDTH;
        let z_per_bin = 1.0 / bins_per_z;
        let start = (location - ZERO as f64 * WIDTH_Z * spread) / WIDTH;
        let end = start + BINS_Z as f64 * bins_per_z;
        let below = |edge: f64| {
            let place = ((edge - start) * z_per_bin).clamp(0.0, BINS_Z as f64 - 1e-9);
            let bin = place as usize;
            let lower = if bin == 0 { 0.0 } else { self.sums[bin - 1] };
            lower + (self.sums[bin] - lower) * (place - bin as f64) as f32
        };
        let first = start.clamp(0.0, BINS as f64 - 1.0) as usize;
        let last = end.clamp(first as f64, BINS as f64 - 1.0) as usize;
        let mut mass = [0.0; BINS];
        let share = 1.0 / total;
        let mut lower = 0.0;
        for (bin, mass) in (first..).zip(&mut mass[first..last]) {
            let upper = below((bin + 1) as f64);
            *mass = (upper - lower) * share;
            lower = upper;
        }
        mass[last] = (total - lower) * share;
        mass
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::grid::Distribution;
    use super::*;

    #[test]
    fn the_assumed_shape_is_centred() {
        let unfolded = Distribution::new(Residuals::assuming(1.0).unfold(8.0, 0.5));
        assert!((unfolded.quantile(0.5) - 8.0).abs() < 1e-3);
        assert!((unfolded.below(8.0 + 0.5) - (1.0 - 0.5 / std::f64::consts::E)).abs() < 1e-2);
    }

    #[test]
    fn the_pool_learns_its_shape() {
        let mut pool = Residuals::assuming(3.0);
        (0..4000).for_each(|call| pool.add(if call % 2 == 0 { -1.0 } else { 2.0 }));
        let unfolded = Distribution::new(pool.unfold(8.0, 0.5));
        assert!(unfolded.between(7.3, 7.7) > 0.45 && unfolded.between(8.8, 9.2) > 0.45);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            location in -2.0..19.0_f64,
            spread in 0.02..3.0_f64,
            zs in prop::collection::vec(-20.0..20.0_f64, 0..50),
        ) {
            let mut pool = Residuals::assuming(1.3);
            for z in zs {
                pool.add(z);
            }
            let mass = pool.unfold(location, spread);
            prop_assert!((mass.iter().map(|&mass| f64::from(mass)).sum::<f64>() - 1.0).abs() < 1e-5);
            prop_assert!(mass.iter().all(|&mass| mass >= 0.0));
        }
    }
}
