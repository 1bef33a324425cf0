//! The sizes that a key's calls usually have: what stands in for a size that is not said.
//!
//! A call is compared with the usual size of its key, and what differs shifts its forecast. A caller that does not say
//! a size means no call of size 0, but any of the key's: the forecast is then spread over the sizes that its last calls
//! had. Only their middle would make the interval too narrow, and 0 would put it elsewhere altogether.

use super::super::complexity::{COVARIATES, Covariates};

/// Something of each covariate.
pub(crate) type Each<T> = [T; COVARIATES];

/// Calls whose sizes are remembered.
const REMEMBERED: usize = 12;
/// Steps of a remembered size per unit of ln: 16 bits reach to 64, beyond the largest.
const STEPS: f32 = 1024.0;

/// The middle of each size, over the calls that said it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usual {
    centre: Each<f32>,
    /// How many said it, up to 255.
    calls: Each<u8>,
}

impl Usual {
    /// Sizes of a call minus the usual ones; 0 where either is not known.
    pub(crate) fn difference(&self, covariates: &Covariates) -> Each<f64> {
        let said = covariates.values();
        std::array::from_fn(|i| match said[i] {
            Some(size) if self.calls[i] > 0 => f64::from(size - self.centre[i]),
            _ => 0.0,
        })
    }

    /// Which sizes does the past have that the question does not say?
    pub(crate) fn unsaid(&self, covariates: &Covariates) -> Each<bool> {
        let said = covariates.values();
        std::array::from_fn(|i| said[i].is_none() && self.calls[i] > 0)
    }

    /// Follows a call by at least the share `gain` (0 to 1).
    pub(crate) fn follow(&mut self, covariates: &Covariates, gain: f64) {
        for (i, size) in covariates.values().into_iter().enumerate() {
            let Some(size) = size else { continue };
            let gain = (1.0 / (f64::from(self.calls[i]) + 1.0)).max(gain);
            self.centre[i] += gain as f32 * (size - self.centre[i]);
            self.calls[i] = self.calls[i].saturating_add(1);
        }
    }
}

/// The sizes of a key's last calls that said any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sizes(Option<Box<Ring>>);

#[derive(Debug, Clone)]
struct Ring {
    calls: [Each<u16>; REMEMBERED],
    /// Calls that were remembered, ever.
    count: u32,
}

impl Sizes {
    /// Remembers a call; a size that it does not say is the usual one.
    pub(crate) fn push(&mut self, covariates: &Covariates, usual: &Usual) {
        let said = covariates.values();
        if said.iter().all(Option::is_none) {
            return;
        }
        let ring = self.0.get_or_insert_with(|| Box::new(Ring { calls: [[0; COVARIATES]; REMEMBERED], count: 0 }));
        let sizes = std::array::from_fn(|i| (said[i].unwrap_or(usual.centre[i]) * STEPS).round() as u16);
        ring.calls[ring.count as usize % REMEMBERED] = sizes;
        ring.count = ring.count.saturating_add(1);
    }

    /// How each remembered call differs from the usual in the sizes that are `unsaid`, and not at all in others.
    pub(crate) fn differences(&self, usual: &Usual, unsaid: Each<bool>) -> impl Iterator<Item = Each<f64>> {
        let known = self.0.iter().flat_map(|ring| ring.calls.iter().take(ring.count as usize));
        known.map(move |sizes| {
            let of = |i: usize| f64::from(f32::from(sizes[i]) / STEPS - usual.centre[i]);
            std::array::from_fn(|i| if unsaid[i] { of(i) } else { 0.0 })
        })
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| size_of::<Ring>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::complexity::Complexity;
    use super::*;

    fn sized(length: Option<u64>) -> Covariates {
        Complexity { content_length: length, ..Complexity::default() }.covariates()
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        let (mut usual, mut sizes) = (Usual::default(), Sizes::default());
        let is_none = |difference: Each<f64>| difference.iter().all(|size| size.abs() < f64::EPSILON);
        assert!(is_none(usual.difference(&sized(Some(7)))), "nothing is usual yet");
        for length in [1000, 1000, 4000, 4000].repeat(20) {
            usual.follow(&sized(Some(length)), 0.02);
            sizes.push(&sized(Some(length)), &usual);
        }
        let centre = f64::midpoint(1001.0_f64.ln(), 4001.0_f64.ln());
        let difference = usual.difference(&sized(Some(4000)));
        assert!((difference[0] - (4001.0_f64.ln() - centre)).abs() < 0.05, "{difference:?}");
        assert!(is_none(usual.difference(&sized(None))));
        assert_eq!(usual.unsaid(&sized(None)), [true, false, false, false, false]);
        assert_eq!(usual.unsaid(&sized(Some(0))), [false; COVARIATES], "0 was said");
        let differences: Vec<f64> = sizes.differences(&usual, usual.unsaid(&sized(None))).map(|each| each[0]).collect();
        let larger = differences.iter().filter(|&&difference| difference > 0.6).count();
        assert_eq!((differences.len(), larger), (REMEMBERED, REMEMBERED / 2), "{differences:?}");
    }

    #[test]
    fn a_key_without_sizes_remembers_none() {
        let mut sizes = Sizes::default();
        sizes.push(&sized(None), &Usual::default());
        assert_eq!((sizes.heap_bytes(), sizes.differences(&Usual::default(), [true; COVARIATES]).count()), (0, 0));
    }
}
