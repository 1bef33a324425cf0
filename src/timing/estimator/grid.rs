//! The axis of every forecast, and distributions on it.
//!
//! Durations of tool calls have heavy tails over five orders of magnitude, so a forecast must be a distribution, and
//! one that no family of curves was chosen for. A histogram over ln(ms) holds any shape at the same relative precision
//! everywhere: 464 bins of .05 reach from 1 ms to 137 days, beyond a hundred steps of a day each, so that nothing that
//! can be recorded or planned leaves it. Quantiles, probabilities, the likeliest ±20 %, the rest of a
//! running call and the total of a plan are all read off the same bins, so they cannot contradict each other.
//!
//! Rejected: moments of a fitted log-normal (misses two modes, the usual case for tools that fail fast or cache).

/// Bins of the axis.
pub const BINS: usize = 464;
/// Width of a bin in ln(ms).
pub const WIDTH: f64 = 0.05;
/// Mass per bin, not necessarily normalised.
pub(crate) type Mass = [f32; BINS];

/// Bins of the window that counts as "the same within 20 %": ln(1.2) below its centre, ln(1/.8) above, .405 in all.
const WINDOW: usize = 8;
/// From the window's lower end to the value it stands for, in ln.
const WINDOW_CENTRE: f64 = 0.182_321_556_793_954_6; // ln 1.2
/// Mass beyond which a distribution says something about longer calls; below it, there is only rounding.
const EXHAUSTED: f64 = 1e-6;
/// Scale, in ln, of the exponential tail that stands in then: its median is a call longer by e^.35, what an imputed
/// call gets.
const EXHAUSTED_SCALE: f64 = 0.35 / std::f64::consts::LN_2;
/// The sum of two equal durations lies ln 2 / .05 = 13.9 bins higher.
const LONGEST_CARRY: usize = 14;

/// The place of a duration on the axis: ln(ms), 0 for what is shorter than 1 ms.
pub fn ln_ms(ms: u64) -> f64 {
    (ms.max(1) as f64).ln()
}

/// Whole milliseconds of a place on the axis, at least 1.
pub fn whole_ms(ln: f64) -> u64 {
    ln.exp().round().max(1.0) as u64
}

/// The bin of a place, the first or last if it is off the axis.
pub(crate) fn bin(ln: f64) -> usize {
    ((ln / WIDTH) as usize).min(BINS - 1)
}

/// A probability distribution of one duration.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    mass: Mass,
    /// The place, in bins, that nothing lies below: within its bin, the mass is spread over what is above it.
    cut: f64,
    /// `below[b]` is the probability of everything under the lower edge of bin `b`.
    below: [f32; BINS + 1],
}

impl Distribution {
    /// The distribution proportional to `mass`.
    pub(crate) fn new(mut mass: Mass) -> Self {
        let total: f64 = mass.iter().map(|&mass| f64::from(mass)).sum();
        let share = (1.0 / total.max(f64::MIN_POSITIVE)) as f32;
        let mut below = [0.0; BINS + 1];
        let mut sum = 0.0;
        for (mass, below) in mass.iter_mut().zip(&mut below[1..]) {
            *mass *= share;
            sum += f64::from(*mass);
            *below = sum as f32;
        }
        Self { mass, cut: 0.0, below }
    }

    /// The place that `level` (0 to 1) of the probability lies below, in ln(ms).
    pub fn quantile(&self, level: f64) -> f64 {
        let bin = self.below[1..].partition_point(|&below| f64::from(below) < level);
        let Some(&mass) = self.mass.get(bin) else { return BINS as f64 * WIDTH };
        let within = (level - f64::from(self.below[bin])) / f64::from(mass.max(f32::MIN_POSITIVE));
        let from = self.cut.max(bin as f64);
        (from + within.clamp(0.0, 1.0) * (bin as f64 + 1.0 - from)) * WIDTH
    }

    /// The probability of a duration below the place `ln`.
    pub fn below(&self, ln: f64) -> f64 {
        let place = ln / WIDTH;
        if place <= self.cut {
            return 0.0;
        }
        let bin = place as usize;
        let from = self.cut.max(bin as f64);
        match self.mass.get(bin) {
            Some(&mass) => f64::from(self.below[bin]) + f64::from(mass) * (place - from) / (bin as f64 + 1.0 - from),
            None => 1.0,
        }
    }

    /// The probability of a duration between two places.
    pub fn between(&self, from: f64, to: f64) -> f64 {
        self.below(to) - self.below(from)
    }

    /// The value that the duration is likeliest to be within 20 % of, in ln(ms).
    pub fn densest(&self) -> f64 {
        let mut sums = [0.0_f64; BINS + WINDOW];
        let mut sum = 0.0;
        for (sums, &mass) in sums[WINDOW..].iter_mut().zip(&self.mass) {
            sum += f64::from(mass);
            *sums = sum;
        }
        // The window that ends with each bin. Two passes, since a running maximum would have every bin wait for the
        // last.
        let windows: [f64; BINS] = std::array::from_fn(|bin| sums[bin + WINDOW] - sums[bin]);
        let best = windows.chunks(8).map(|chunk| chunk.iter().copied().fold(0.0, f64::max)).fold(0.0, f64::max);
        // A plateau is not won by the rounding of its last bin.
        let last = windows.iter().position(|&window| window >= best - 1e-12).unwrap_or(0);
        (last as f64 + 1.0 - WINDOW as f64) * WIDTH + WINDOW_CENTRE
    }

    /// The distribution of a call that is known to take longer than the place `ln`.
    #[must_use]
    pub fn longer_than(&self, ln: f64) -> Self {
        if ln <= 0.0 {
            return self.clone();
        }
        let place = (ln / WIDTH).min(BINS as f64 - 1e-6);
        let first = place as usize;
        let mut mass = if 1.0 - self.below(ln) < EXHAUSTED { tail() } else { self.mass };
        mass[..first].fill(0.0);
        // Of the bin that is cut, what was above the cut before.
        let from = self.cut.max(first as f64);
        mass[first] *= ((first as f64 + 1.0 - place.max(from)) / (first as f64 + 1.0 - from)) as f32;
        Self { cut: place.max(self.cut), ..Self::new(mass) }
    }

    /// The distribution of the duration times a factor that is e to the power of each of `shifts` equally often.
    #[must_use]
    pub fn moved_by(&self, shifts: &[f64]) -> Self {
        let mut mass = self.mass;
        spread(&mut mass, shifts);
        Self::new(mass)
    }

    /// The distribution in which what had the first probability of each pair has the second, both rising between 0
    /// and 1; probabilities between pairs lie on lines. What was impossible stays so.
    #[must_use]
    pub(crate) fn recalibrated(&self, pairs: impl IntoIterator<Item = [f64; 2]>) -> Self {
        let below = |bin: usize| f64::from(self.below[bin]);
        let mut mass = self.mass;
        let mut from = [0.0; 2];
        // The bin that the line begins in, and what earlier lines gave it.
        let (mut bin, mut given) = (0, 0.0);
        for to in pairs.into_iter().chain([[below(BINS), 1.0]]) {
            let slope = (to[1] - from[1]) / (to[0] - from[0]);
            let ended = self.below[bin + 1..].partition_point(|&below| f64::from(below) <= to[0]);
            if ended > 0 {
                mass[bin] = (given + slope * (below(bin + 1) - from[0])) as f32;
                for mass in &mut mass[bin + 1..bin + ended] {
                    *mass *= slope as f32;
                }
                bin += ended;
                (given, from[0]) = (0.0, below(bin));
            }
            given += slope * (to[0] - from[0]);
            from = to;
        }
        Self { cut: self.cut, ..Self::new(mass) }
    }

    /// The distribution of the sum of two independent durations, one after the other.
    ///
    /// The sum of e^a and e^b lies ln(1 + e^-|a-b|) above the greater, which depends on the distance of the bins only;
    /// its mass is split between the two bins around.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = [0.0_f32; BINS + LONGEST_CARRY + 1];
        for distance in 0..BINS {
            let carry = (-(distance as f64) * WIDTH).exp().ln_1p() / WIDTH;
            let (whole, upper) = (carry as usize, carry.fract() as f32);
            let pairs = self.mass[distance..].iter().zip(&other.mass[..BINS - distance]);
            let swapped = other.mass[distance..].iter().zip(&self.mass[..BINS - distance]);
            // Each bin meets itself once.
            let weight = if distance == 0 { 0.5 } else { 1.0 };
            let mut both = [0.0_f32; BINS];
            for ((both, (a, b)), (c, d)) in both.iter_mut().zip(pairs).zip(swapped) {
                *both = weight * (a * b + c * d);
            }
            let target = &mut sum[distance + whole..];
            for (sum, both) in target.iter_mut().zip(&both[..BINS - distance]) {
                *sum += both * (1.0 - upper);
            }
            for (sum, both) in target[1..].iter_mut().zip(&both[..BINS - distance]) {
                *sum += both * upper;
            }
        }
        let (within, beyond) = sum.split_at(BINS);
        let mut mass = [0.0; BINS];
        mass.copy_from_slice(within);
        mass[BINS - 1] += beyond.iter().sum::<f32>();
        Self::new(mass)
    }
}

/// What is assumed beyond everything that was expected. Relative to any cut it has the same shape, so it needs no
/// start.
pub(crate) fn tail() -> Mass {
    // f32 has room for e^-46, the far end of the axis.
    std::array::from_fn(|bin| (-(bin as f64) * WIDTH / EXHAUSTED_SCALE).exp() as f32)
}

/// Spreads `mass` evenly over copies of itself moved by each of `shifts`, in ln; what leaves the axis stays in its
/// first or last bin. Nothing happens without shifts.
pub(crate) fn spread(mass: &mut Mass, shifts: &[f64]) {
    if shifts.is_empty() {
        return;
    }
    let mut wide = [0.0; BINS];
    let share = 1.0 / shifts.len() as f64;
    for shift in shifts {
        let bins = shift / WIDTH;
        let (whole, upper) = (bins.floor() as i64, bins - bins.floor());
        add_moved(&mut wide, mass, whole, ((1.0 - upper) * share) as f32);
        add_moved(&mut wide, mass, whole + 1, (upper * share) as f32);
    }
    *mass = wide;
}

/// Adds `mass` times `scale`, moved by whole `bins`, to `sum`.
fn add_moved(sum: &mut Mass, mass: &Mass, bins: i64, scale: f32) {
    let distance = (bins.unsigned_abs() as usize).min(BINS);
    let stays = BINS - distance;
    let (from, to, lost) = if bins < 0 { (distance, 0, 0..distance) } else { (0, distance, stays..BINS) };
    for (sum, mass) in sum[to..to + stays].iter_mut().zip(&mass[from..from + stays]) {
        *sum += mass * scale;
    }
    let beyond = mass[lost].iter().sum::<f32>() * scale;
    sum[if bins < 0 { 0 } else { BINS - 1 }] += beyond;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn distribution() -> impl Strategy<Value = Distribution> {
        prop::collection::vec((0..BINS - 30, 1..1000_u32), 1..20).prop_map(|peaks| {
            let mut mass = [0.0; BINS];
            for (bin, weight) in peaks {
                mass[bin] += weight as f32;
            }
            Distribution::new(mass)
        })
    }

    fn point(ms: u64) -> Distribution {
        let mut mass = [0.0; BINS];
        mass[bin(ln_ms(ms))] = 1.0;
        Distribution::new(mass)
    }

    fn total(distribution: &Distribution) -> f64 {
        distribution.mass.iter().map(|&mass| f64::from(mass)).sum()
    }

    #[test]
    fn the_axis_holds_what_it_is_given() {
        for ms in [1, 2, 50, 12_000, 3_600_000, 86_400_000] {
            assert_eq!(whole_ms(ln_ms(ms)), ms);
        }
        assert_eq!(bin(ln_ms(0)), 0);
        assert_eq!(bin(ln_ms(u64::MAX)), BINS - 1);
    }

    #[test]
    fn the_densest_window_holds_a_lone_peak() {
        for ms in [10, 700, 12_000, 900_000] {
            let estimate = point(ms).densest().exp();
            assert!((estimate / ms as f64 - 1.0).abs() < 0.21, "{ms} → {estimate}");
        }
    }

    #[test]
    fn a_plan_of_equal_steps_takes_their_sum() {
        let total = point(1000).plus(&point(1000)).plus(&point(1000));
        assert!((total.quantile(0.5).exp() / 3000.0 - 1.0).abs() < 0.05);
        let long = point(14_000_000);
        assert!(long.plus(&long).quantile(0.99) <= BINS as f64 * WIDTH);
    }

    #[test]
    fn an_exhausted_distribution_still_answers() {
        let late = point(100).longer_than(ln_ms(10_000));
        assert!((late.quantile(0.5) - (ln_ms(10_000) + 0.35)).abs() < 0.03);
        assert!(point(100).longer_than(40.0).quantile(0.5) > 16.4);
    }

    fn mean_ms(distribution: &Distribution) -> f64 {
        let centre = |bin: usize| ((bin as f64 + 0.5) * WIDTH).exp();
        distribution.mass.iter().enumerate().map(|(bin, &mass)| f64::from(mass) * centre(bin)).sum()
    }

    proptest! {
        #[test]
        fn mass_is_one_and_quantiles_rise(
            any in distribution(),
            mut levels in prop::array::uniform5(0.001..0.999_f64),
        ) {
            prop_assert!((total(&any) - 1.0).abs() < 1e-5);
            levels.sort_by(f64::total_cmp);
            let quantiles = levels.map(|level| any.quantile(level));
            prop_assert!(quantiles.is_sorted());
            for (level, quantile) in levels.into_iter().zip(quantiles) {
                prop_assert!((any.below(quantile) - level).abs() < 1e-4);
            }
        }

        #[test]
        fn what_is_recalibrated_has_the_probabilities_asked_for(
            any in distribution(),
            mut from in prop::array::uniform3(0.001..0.999_f64),
            mut to in prop::array::uniform3(0.001..0.999_f64),
        ) {
            from.sort_by(f64::total_cmp);
            to.sort_by(f64::total_cmp);
            prop_assume!(from.windows(2).all(|pair| pair[1] - pair[0] > 1e-3));
            let recalibrated = any.recalibrated(std::array::from_fn::<_, 3, _>(|pair| [from[pair], to[pair]]));
            prop_assert!((total(&recalibrated) - 1.0).abs() < 1e-5);
            for bin in 0..=BINS {
                let place = bin as f64 * WIDTH;
                let [before, after] = [&any, &recalibrated].map(|distribution| distribution.below(place));
                // On the line between the pairs around.
                let pair = from.partition_point(|&from| from < before);
                let [x, y] = [&from, &to].map(|side| {
                    [if pair == 0 { 0.0 } else { side[pair - 1] }, side.get(pair).copied().unwrap_or(1.0)]
                });
                let expected = y[0] + (before - x[0]) * (y[1] - y[0]) / (x[1] - x[0]);
                prop_assert!((after - expected).abs() < 1e-3, "{} instead of {}", after, expected);
            }
        }

        #[test]
        fn probabilities_rise(any in distribution(), a in 0.0..17.0_f64, b in 0.0..17.0_f64) {
            prop_assert!(any.between(a.min(b), a.max(b)) >= -1e-6);
            prop_assert!((0.0..=1.0 + 1e-6).contains(&any.below(a)));
        }

        #[test]
        fn sums_commute_and_means_add_up(a in distribution(), b in distribution()) {
            let sum = a.plus(&b);
            prop_assert_eq!(&sum, &b.plus(&a));
            prop_assert!((total(&sum) - 1.0).abs() < 1e-5);
            let ratio = mean_ms(&sum) / (mean_ms(&a) + mean_ms(&b));
            prop_assert!((ratio - 1.0).abs() < 2e-3, "means differ by a factor of {}", ratio);
            prop_assert!(sum.quantile(0.5) >= a.quantile(0.0).max(b.quantile(0.0)));
        }

        #[test]
        fn what_still_runs_takes_longer(any in distribution(), elapsed in 0.0..16.0_f64) {
            let rest = any.longer_than(elapsed);
            prop_assert!((total(&rest) - 1.0).abs() < 1e-5);
            for level in [0.0, 0.05, 0.5, 0.95] {
                prop_assert!(rest.quantile(level) >= elapsed.max(any.quantile(level)) - 1e-6);
            }
            prop_assert!(rest.below(elapsed) <= 0.0);
            for later in [0.01, 0.03, 0.2] {
                let left = 1.0 - any.below(elapsed);
                let truth = any.between(elapsed, elapsed + later) / left;
                prop_assert!(left < 1e-3 || (rest.below(elapsed + later) - truth).abs() < 1e-3);
            }
        }
    }
}
