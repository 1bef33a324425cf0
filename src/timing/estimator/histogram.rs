//! What a key, a tool or a daemon has seen: durations on the axis, older ones counting less, in little memory.
//!
//! Most keys live in a handful of bins, so only blocks of eight bins that hold something are kept, in order, behind a
//! bit each. Nothing decays when a call is added: the weight of new calls grows instead, and is brought back to 1 now
//! and then, when blocks that have faded away are dropped as well. So adding touches five bins, however many there are.
//!
//! Rejected: all 464 bins (1.8 KB a key), and the last calls themselves (a half-life of 25 calls needs some 200 of
//! them).

use super::grid::{BINS, Mass, WIDTH, bin};

/// Bins in a block.
const BLOCK: usize = 8;
/// A call is spread over its own bin and two to either side, so that neighbours learn from it.
const KERNEL: [f32; 5] = [1.0 / 9.0, 2.0 / 9.0, 3.0 / 9.0, 2.0 / 9.0, 1.0 / 9.0];
/// Weight of a new call at which all weights are scaled back: ten half-lives.
const RESCALE: f64 = 1024.0;
/// A block of less than this many calls has faded away.
const FADED: f32 = 3e-4;

/// How fast calls fade: what is left of one after the next.
#[derive(Debug, Clone, Copy)]
pub struct Fading(f64);

impl Fading {
    /// For a key: a call counts half after 12 further ones.
    pub const BRISK_KEY: Self = Self(0.943_874_312_681_693_5);
    /// For a key of the reference implementation: half after 25.
    pub const KEY: Self = Self(0.972_654_947_412_285_5);
    /// For a tool, or a key of a fleet: half after 400.
    pub const TOOL: Self = Self(0.998_268_632_447_951_4);
    /// For all calls of a daemon: half after 1,386.
    pub const DAEMON: Self = Self(0.9995);
}

/// Decayed counts of durations.
#[derive(Debug, Clone)]
pub struct Histogram {
    /// A bit per block of the axis.
    present: u64,
    blocks: Vec<[f32; BLOCK]>,
    /// Weight of one call at present.
    unit: f64,
    total: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { present: 0, blocks: Vec::new(), unit: 1.0, total: 0.0 }
    }
}

impl Histogram {
    /// Counts a call at the place `ln`; all earlier ones fade.
    pub fn add(&mut self, ln: f64, fading: Fading) {
        self.fade(fading);
        self.total += 1.0;
        let centre = (ln / WIDTH).floor() as i64;
        for (offset, share) in (-2..).zip(KERNEL) {
            let bin = (centre + offset).clamp(0, BINS as i64 - 1) as usize;
            let unit = self.unit as f32;
            self.block(bin / BLOCK)[bin % BLOCK] += share * unit;
        }
        if self.unit > RESCALE {
            self.rescale();
        }
    }

    /// Counts a call in the bin of `ln` and no other; none fades.
    pub(crate) fn mark(&mut self, ln: f64) {
        self.total += 1.0;
        let bin = bin(ln);
        let unit = self.unit as f32;
        self.block(bin / BLOCK)[bin % BLOCK] += unit;
    }

    /// All calls fade as they do when one is counted.
    pub(crate) fn fade(&mut self, fading: Fading) {
        if self.unit > RESCALE {
            self.rescale();
        }
        self.unit /= fading.0;
        self.total *= fading.0;
    }

    /// Calls counted, faded ones for what is left of them.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Calls counted below the bin of the place `ln`.
    pub(crate) fn below(&self, ln: f64) -> f64 {
        let end = bin(ln);
        let counts = self.iter().flat_map(|(first, block)| (first..).zip(block));
        counts.take_while(|(bin, _)| *bin < end).map(|(_, count)| f64::from(*count)).sum::<f64>() / self.unit
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<[f32; BLOCK]>()
    }

    /// Adds the counts, times `scale`, to `mass`.
    pub(crate) fn add_to(&self, mass: &mut Mass, scale: f64) {
        let scale = (scale / self.unit) as f32;
        for (first, block) in self.iter() {
            for (mass, count) in mass[first..].iter_mut().zip(block) {
                *mass += count * scale;
            }
        }
    }

    /// The same, moved by `shift` in ln; what leaves the axis stays in its first or last bin.
    pub(crate) fn add_shifted(&self, mass: &mut Mass, shift: f64, scale: f64) {
        let bins = shift / WIDTH;
        if bins == 0.0 {
            return self.add_to(mass, scale);
        }
        let upper = bins - bins.floor();
        let (lower, upper) = (((1.0 - upper) * scale / self.unit) as f32, (upper * scale / self.unit) as f32);
        let offset = bins.floor() as i64;
        for (first, block) in self.iter() {
            let start = first as i64 + offset;
            if let Ok(start) = usize::try_from(start)
                && start + BLOCK < BINS
            {
                for (mass, count) in mass[start..].iter_mut().zip(block) {
                    *mass += count * lower;
                }
                for (mass, count) in mass[start + 1..].iter_mut().zip(block) {
                    *mass += count * upper;
                }
            } else {
                let clamped = |bin: i64| bin.clamp(0, BINS as i64 - 1) as usize;
                for (bin, count) in (start..).zip(block) {
                    mass[clamped(bin)] += count * lower;
                    mass[clamped(bin + 1)] += count * upper;
                }
            }
        }
    }

    /// The blocks that hold something, each with its first bin.
    fn iter(&self) -> impl Iterator<Item = (usize, &[f32; BLOCK])> {
        let mut left = self.present;
        self.blocks.iter().map(move |block| {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            (index * BLOCK, block)
        })
    }

    fn block(&mut self, index: usize) -> &mut [f32; BLOCK] {
        let bit = 1 << index;
        let position = (self.present & (bit - 1)).count_ones() as usize;
        if self.present & bit == 0 {
            self.present |= bit;
            self.blocks.reserve_exact(1);
            self.blocks.insert(position, [0.0; BLOCK]);
        }
        &mut self.blocks[position]
    }

    fn rescale(&mut self) {
        let scale = (1.0 / self.unit) as f32;
        self.unit = 1.0;
        let mut left = self.present;
        self.blocks.retain_mut(|block| {
            let bit = left & left.wrapping_neg();
            left ^= bit;
            for count in block.iter_mut() {
                *count *= scale;
            }
            let stays = block.iter().sum::<f32>() >= FADED;
            if !stays {
                self.present ^= bit;
            }
            stays
        });
        self.blocks.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same by the book: every bin kept, every bin decayed.
    fn plain(calls: &[f64], keep: f64) -> [f64; BINS] {
        let mut bins = [0.0; BINS];
        for ln in calls {
            bins = bins.map(|bin| bin * keep);
            for (offset, share) in (-2..).zip(KERNEL) {
                bins[((ln / WIDTH).floor() as i64 + offset).clamp(0, BINS as i64 - 1) as usize] += f64::from(share);
            }
        }
        bins
    }

    fn check(histogram: &Histogram, shift: f64, expected: &[f64; BINS], tolerance: f64) {
        let mut mass = [0.0; BINS];
        histogram.add_shifted(&mut mass, shift, 1.0);
        for (bin, (&got, &expected)) in mass.iter().zip(expected).enumerate() {
            assert!((f64::from(got) - expected).abs() < tolerance, "bin {bin}: {got} against {expected}");
        }
    }

    proptest! {
        #[test]
        fn it_counts_as_by_the_book(calls in prop::collection::vec(0.0..19.0_f64, 1..400), keep in 0.9..0.99_f64) {
            let fading = Fading(keep);
            let mut histogram = Histogram::default();
            for &ln in &calls {
                histogram.add(ln, fading);
            }
            let expected = plain(&calls, keep);
            check(&histogram, 0.0, &expected, 4e-4);
            prop_assert!((histogram.total() - expected.iter().sum::<f64>()).abs() < 1e-3);
        }

        #[test]
        fn a_shift_by_whole_bins_moves_them(ln in 1.0..15.0_f64, bins in -400..400_i64) {
            let mut histogram = Histogram::default();
            histogram.add(ln, Fading::KEY);
            let mut expected = [0.0; BINS];
            for (bin, count) in (0..).zip(plain(&[ln], 1.0)) {
                expected[(bin + bins).clamp(0, BINS as i64 - 1) as usize] += count;
            }
            check(&histogram, bins as f64 * WIDTH, &expected, 1e-5);
        }
    }

    #[test]
    fn half_lives_are_what_they_say() {
        for (fading, calls) in [(Fading::BRISK_KEY, 12), (Fading::KEY, 25), (Fading::TOOL, 400), (Fading::DAEMON, 1386)]
        {
            assert!((fading.0.powi(calls) - 0.5).abs() < 1e-4, "{fading:?} after {calls} calls");
        }
    }

    #[test]
    fn faded_blocks_are_dropped() {
        let fading = Fading::KEY;
        let mut histogram = Histogram::default();
        (0..100).for_each(|call| histogram.add(f64::from(call) / 10.0, fading));
        let wide = histogram.heap_bytes();
        (0..600).for_each(|_| histogram.add(5.0, fading));
        assert!(histogram.heap_bytes() <= 2 * size_of::<[f32; BLOCK]>(), "{wide} → {}", histogram.heap_bytes());
    }
}
