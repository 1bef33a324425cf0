//! Vectors of length 1, and the pooling that makes them.

use super::{DIMENSIONS, Quantized};

/// Numbers of -8 to 7, two in a byte: each byte has one of the first half below and one of the second half above.
pub(super) type Nibbles = [u8; DIMENSIONS / 2];

/// Accumulators of a sum: as many as a processor adds at once, so that the order of additions is ours and every machine
/// gives the same result.
const LANES: usize = 16;

/// The meaning of a text: a direction, of length 1. All zeros if the text has none (no known word).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vector([f32; DIMENSIONS]);

impl Vector {
    /// What an empty text means. Its similarity to anything is 0.
    pub const ZERO: Self = Self([0.0; DIMENSIONS]);

    /// The direction of `values`; [`Vector::ZERO`] if they have none or are not finite.
    pub fn normalised(values: [f32; DIMENSIONS]) -> Self {
        let norm = dot(&values, &values).sqrt();
        if norm.is_normal() { Self(values.map(|value| value / norm)) } else { Self::ZERO }
    }

    /// Similarity to `other`, the cosine: -1 to 1, and 0 if either is zero.
    pub fn dot(&self, other: &Self) -> f32 {
        dot(&self.0, &other.0)
    }

    pub fn as_array(&self) -> &[f32; DIMENSIONS] {
        &self.0
    }

    /// Whether its text had no meaning.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

fn dot(a: &[f32; DIMENSIONS], b: &[f32; DIMENSIONS]) -> f32 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum()
}

/// A weighted sum of vectors: of the pieces of a text, of the parts of a document, of the messages a tool was chosen
/// for.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool([f32; DIMENSIONS]);

impl Default for Pool {
    fn default() -> Self {
        Self([0.0; DIMENSIONS])
    }
}

impl Pool {
    /// Adds `vector`, `weight` times. A weight is finite; a negative one takes away.
    pub fn add(&mut self, vector: &Vector, weight: f32) {
        for (sum, value) in self.0.iter_mut().zip(&vector.0) {
            *sum += weight * value;
        }
    }

    /// As [`Pool::add`]. The vector may be of any length, which then counts.
    pub fn add_quantized(&mut self, vector: &Quantized, weight: f32) {
        let weight = weight * vector.scale();
        for (sum, &value) in self.0.iter_mut().zip(vector.values()) {
            *sum += weight * f32::from(value);
        }
    }

    /// Adds another sum, `weight` times; a weight is finite.
    pub fn add_pool(&mut self, other: &Self, weight: f32) {
        for (sum, value) in self.0.iter_mut().zip(&other.0) {
            *sum += weight * value;
        }
    }

    /// Makes all that was added count `factor` times; a factor is finite.
    pub fn scale(&mut self, factor: f32) {
        for sum in &mut self.0 {
            *sum *= factor;
        }
    }

    /// Adds `numbers`, `weight` times.
    pub(super) fn add_nibbles(&mut self, numbers: &Nibbles, weight: f32) {
        let (low, high) = self.0.split_at_mut(DIMENSIONS / 2);
        for ((low, high), &byte) in low.iter_mut().zip(high).zip(numbers) {
            *low += weight * f32::from((byte << 4).cast_signed() >> 4);
            *high += weight * f32::from(byte.cast_signed() >> 4);
        }
    }

    /// The direction of the sum.
    pub fn vector(&self) -> Vector {
        Vector::normalised(self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn axis(dimension: usize, value: f32) -> [f32; DIMENSIONS] {
        let mut values = [0.0; DIMENSIONS];
        values[dimension] = value;
        values
    }

    #[test]
    fn a_sum_without_direction_is_zero() {
        let mut pool = Pool::default();
        assert!(pool.vector().is_zero());
        pool.add(&Vector::normalised(axis(3, 5.0)), 2.0);
        assert_eq!(pool.vector(), Vector(axis(3, 1.0)));
        pool.add(&Vector::normalised(axis(3, 9.0)), -2.0);
        assert!(pool.vector().is_zero());
        pool.add(&Vector::normalised(axis(0, 1.0)), f32::INFINITY);
        assert!(pool.vector().is_zero(), "no direction is left in what is not finite");
    }

    proptest! {
        #[test]
        fn is_normalised_or_zero(values in prop::collection::vec(any::<f32>(), DIMENSIONS)) {
            let vector = Vector::normalised(values.try_into().expect("the strategy makes as many"));
            prop_assert!(vector.is_zero() || (vector.dot(&vector) - 1.0).abs() < 1e-5);
        }
    }
}
