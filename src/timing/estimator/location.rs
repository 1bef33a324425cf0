//! Where a key's calls lie, twice: slowly and hard to mislead, and as quickly as a few calls allow.
//!
//! A mean of heavy tails is wrong, so the slow tracker caps every step at a multiple of the key's spread. A machine
//! that becomes three times slower outruns it; the median of the last five calls is there after three. Which of the two
//! is right is left to the weights of their experts.

/// Half of the slow tracker's memory, in calls.
const HALF_LIFE: f64 = 100.0;
/// Calls that are averaged before a step is capped.
const AVERAGED: f64 = 3.0;
/// Largest step of the slow tracker, in spreads, before it is scaled by the gain.
const LARGEST_STEP: f64 = 1.5;
/// The spread follows a deviation of up to this many spreads …
const LARGEST_DEVIATION: f64 = 4.0;
/// … by at least this share of it.
const SPREAD_GAIN: f64 = 0.03;

/// The slow location of a key and the mean deviation from it, in ln(ms).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slow {
    centre: f32,
    spread: f32,
}

impl Slow {
    /// The tracker after its key's first call, at `ln`; `spread` is what calls of the tool have.
    pub(crate) fn at(ln: f64, spread: f64) -> Self {
        Self { centre: ln as f32, spread: spread as f32 }
    }

    pub(crate) fn centre(self) -> f64 {
        f64::from(self.centre)
    }

    pub(crate) fn spread(self) -> f64 {
        f64::from(self.spread)
    }

    /// Moves towards a call at `ln` that came `deviation` from where it was expected, with `scale` as expected spread,
    /// after `earlier` calls (1 or more).
    pub(crate) fn follow(&mut self, ln: f64, deviation: f64, scale: f64, earlier: f64) {
        let gain = 1.0 / (earlier + 1.0);
        let deviation = deviation.abs().min(LARGEST_DEVIATION * scale);
        self.spread += (gain.max(SPREAD_GAIN) * (deviation - self.spread())) as f32;
        let step = ln - self.centre();
        let step = if earlier <= AVERAGED {
            gain * step
        } else {
            let slowest = -(-std::f64::consts::LN_2 / HALF_LIFE).exp_m1();
            gain.max(slowest) * step.clamp(-LARGEST_STEP * scale, LARGEST_STEP * scale)
        };
        self.centre += step as f32;
    }
}

/// Calls that [`Recent`] remembers.
const REMEMBERED: usize = 5;

/// The last five calls of a key, in ln(ms).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recent {
    calls: [f32; REMEMBERED],
}

impl Recent {
    /// Replaces the oldest by a call at `ln`, after `earlier` calls.
    pub(crate) fn push(&mut self, ln: f64, earlier: u32) {
        self.calls[earlier as usize % REMEMBERED] = ln as f32;
    }

    /// All five in order, in ln(ms), if there were that many of `calls`.
    pub(crate) fn sorted(&self, calls: u32) -> Option<[f64; REMEMBERED]> {
        let mut sorted = self.calls;
        sorted.sort_unstable_by(f32::total_cmp);
        (calls as usize >= REMEMBERED).then(|| sorted.map(f64::from))
    }

    /// The median of what is remembered of `calls` calls (1 or more).
    pub(crate) fn median(&self, calls: u32) -> f64 {
        let known = (calls as usize).clamp(1, REMEMBERED);
        let mut sorted = self.calls;
        let sorted = &mut sorted[..known];
        sorted.sort_unstable_by(f32::total_cmp);
        let upper = f64::from(sorted[known / 2]);
        if known % 2 == 1 { upper } else { f64::midpoint(f64::from(sorted[known / 2 - 1]), upper) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(calls: &[f64], expected: f64) {
        let mut recent = Recent::default();
        (0..).zip(calls).for_each(|(earlier, &ln)| recent.push(ln, earlier));
        let median = recent.median(calls.len() as u32);
        assert!((median - expected).abs() < 1e-6, "{median} is not the median of the last five of {calls:?}");
    }

    #[test]
    fn the_median_is_of_the_last_five() {
        check(&[4.0], 4.0);
        check(&[4.0, 6.0], 5.0);
        check(&[4.0, 6.0, 9.0], 6.0);
        check(&[1.0, 1.0, 1.0, 4.0, 6.0, 9.0, 8.0], 6.0);
    }

    #[test]
    fn one_outlier_hardly_moves_the_slow_tracker() {
        let mut slow = Slow::at(8.0, 0.5);
        for earlier in 1..50 {
            slow.follow(8.0, 8.0 - slow.centre(), slow.spread().max(0.02), f64::from(earlier));
        }
        slow.follow(14.0, 6.0, 0.1, 50.0);
        assert!(slow.centre() < 8.01, "moved to {}", slow.centre());
    }
}
