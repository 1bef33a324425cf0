//! Vectors as bytes: a quarter of the memory, and dot products of integers, for scans over everything there is.

use multiversion::multiversion;

use super::{DIMENSIONS, Vector};

/// Products that are added side by side: with sixteen, the compiler uses the instruction that multiplies and adds
/// pairs, over as many as a register holds.
const LANES: usize = 16;

/// A vector of one byte a number, and the scale they share. The numbers are -127 to 127 when made from a [`Vector`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantized {
    scale: f32,
    values: [i8; DIMENSIONS],
}

impl Quantized {
    /// Bytes of its stored form.
    pub const BYTES: usize = 4 + DIMENSIONS;

    /// What an empty text means.
    pub const ZERO: Self = Self { scale: 0.0, values: [0; DIMENSIONS] };

    /// Similarity to `other`: the product of what both stand for, computed without a further error.
    pub fn dot(&self, other: &Self) -> f32 {
        self.scale * other.scale * product(&self.values, &other.values) as f32
    }

    /// Similarities to each of `others`: what [`Self::dot`] says of each, in half the time for many.
    pub fn dots<'q>(&self, others: impl IntoIterator<Item = &'q Self>) -> Vec<f32> {
        dots(self, others.into_iter())
    }

    /// The signs of every third number. The more of them two vectors share, the more similar they tend to be: of N
    /// random directions, each lies between the two as often as their angle says (Charikar, "Similarity Estimation
    /// Techniques from Rounding Algorithms", 2002).
    pub fn signs(&self) -> u64 {
        let numbers = self.values.iter().step_by(DIMENSIONS / 64).enumerate();
        numbers.fold(0, |signs, (bit, number)| signs | u64::from(*number < 0) << bit)
    }

    /// The stored form: the scale, then the numbers; little-endian.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (scale, values) = bytes.split_at_mut(4);
        scale.copy_from_slice(&self.scale.to_le_bytes());
        for (byte, value) in values.iter_mut().zip(self.values) {
            *byte = value.cast_unsigned();
        }
        bytes
    }

    /// Reads [`Quantized::to_bytes`]; nothing if that did not write `bytes`, as far as they tell.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (scale, values) = bytes.split_first_chunk()?;
        let values: &[u8; DIMENSIONS] = values.try_into().ok()?;
        let scale = f32::from_le_bytes(*scale);
        (scale.is_finite() && scale >= 0.0).then(|| Self { scale, values: values.map(u8::cast_signed) })
    }

    pub(super) fn scale(&self) -> f32 {
        self.scale
    }

    pub(super) fn values(&self) -> &[i8; DIMENSIONS] {
        &self.values
    }
}

/// Machines with registers of 32 bytes take half the time for it; the sum of integers is the same on all.
#[multiversion(targets("x86_64+avx2"))]
fn product(one: &[i8; DIMENSIONS], other: &[i8; DIMENSIONS]) -> i32 {
    sum_of_products(one, other)
}

#[multiversion(targets("x86_64+avx2"))]
fn dots<'q>(one: &Quantized, others: impl Iterator<Item = &'q Quantized>) -> Vec<f32> {
    // By a closure, which is compiled by itself: inlined into the loop it takes twice the time.
    others.map(|other| one.scale * other.scale * sum_of_products(&one.values, &other.values) as f32).collect()
}

#[expect(clippy::inline_always, reason = "else it is compiled for no machine in particular")]
#[inline(always)]
fn sum_of_products(one: &[i8; DIMENSIONS], other: &[i8; DIMENSIONS]) -> i32 {
    let mut sums = [0; LANES];
    for (a, b) in one.as_chunks::<LANES>().0.iter().zip(other.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += i32::from(i16::from(a[lane]) * i16::from(b[lane]));
        }
    }
    sums.iter().sum()
}

impl From<&Vector> for Quantized {
    fn from(vector: &Vector) -> Self {
        let largest = vector.as_array().iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
        let scale = largest / 127.0;
        let steps = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        Self { scale, values: vector.as_array().map(|value| (value * steps).round() as i8) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector() -> impl Strategy<Value = Vector> {
        prop::collection::vec(-1.0_f32..1.0, DIMENSIONS)
            .prop_map(|values| Vector::normalised(values.try_into().expect("the strategy makes as many")))
    }

    #[test]
    fn bytes_that_were_not_written_are_refused() {
        let bytes = Quantized::from(&Vector::ZERO).to_bytes();
        assert_eq!(Quantized::from_bytes(&bytes), Some(Quantized::from(&Vector::ZERO)));
        assert_eq!(Quantized::from_bytes(&bytes[1..]), None);
        for scale in [f32::NAN, f32::INFINITY, -1.0] {
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(&scale.to_le_bytes());
            assert_eq!(Quantized::from_bytes(&bytes), None, "a scale of {scale}");
        }
    }

    proptest! {
        #[test]
        fn many_are_compared_as_one_is(one in vector(), others in prop::collection::vec(vector(), 0..20)) {
            let one = Quantized::from(&one);
            let others: Vec<Quantized> = others.iter().map(Quantized::from).collect();
            let each: Vec<f32> = others.iter().map(|other| one.dot(other)).collect();
            prop_assert_eq!(one.dots(&others), each);
        }

        #[test]
        fn likeness_survives(a in vector(), b in vector()) {
            let (small_a, small_b) = (Quantized::from(&a), Quantized::from(&b));
            prop_assert!((small_a.dot(&small_b) - a.dot(&b)).abs() < 0.01);
            prop_assert_eq!(small_a.dot(&small_b).to_bits(), small_b.dot(&small_a).to_bits());
            prop_assert_eq!(Quantized::from_bytes(&small_a.to_bytes()), Some(small_a));
            let opposite = Quantized::from(&Vector::normalised(a.as_array().map(|value| -value)));
            prop_assert!((small_a.signs() & opposite.signs()).count_ones() == 0);
        }
    }
}
