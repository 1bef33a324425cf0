//! Vectors as bytes: a quarter of the memory, and dot products of integers, for scans over everything there is.

use super::{DIMENSIONS, Vector};

/// A vector of one byte a number, and the scale they share. The numbers are -127 to 127 when made from a [`Vector`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantized {
    scale: f32,
    values: [i8; DIMENSIONS],
}

impl Quantized {
    /// Bytes of its stored form.
    pub const BYTES: usize = 4 + DIMENSIONS;

    /// Likeness to `other`: the product of what both stand for, computed without a further error.
    pub fn dot(&self, other: &Self) -> f32 {
        let products = self.values.iter().zip(&other.values).map(|(&a, &b)| i32::from(i16::from(a) * i16::from(b)));
        self.scale * other.scale * products.sum::<i32>() as f32
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
        let row = Self::from_row(bytes.try_into().ok()?);
        (row.scale.is_finite() && row.scale >= 0.0).then_some(row)
    }

    /// Reads bytes that are known to be sound.
    pub(super) fn from_row(bytes: &[u8; Self::BYTES]) -> Self {
        let (scale, values) = bytes.split_first_chunk::<4>().expect("it is longer than its scale");
        let values = values.first_chunk::<DIMENSIONS>().expect("its values follow the scale");
        Self { scale: f32::from_le_bytes(*scale), values: values.map(u8::cast_signed) }
    }

    pub(super) fn scale(&self) -> f32 {
        self.scale
    }

    pub(super) fn values(&self) -> &[i8; DIMENSIONS] {
        &self.values
    }
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
        fn likeness_survives(a in vector(), b in vector()) {
            let (small_a, small_b) = (Quantized::from(&a), Quantized::from(&b));
            prop_assert!((small_a.dot(&small_b) - a.dot(&b)).abs() < 0.01);
            prop_assert_eq!(small_a.dot(&small_b).to_bits(), small_b.dot(&small_a).to_bits());
            prop_assert_eq!(Quantized::from_bytes(&small_a.to_bytes()), Some(small_a));
        }
    }
}
