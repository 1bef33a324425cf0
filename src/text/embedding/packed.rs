//! Vectors of half a byte a number, for very many of them in memory.

use multiversion::multiversion;

use super::vector::Nibbles;
use super::{DIMENSIONS, Quantized};

/// Products that are added side by side.
const LANES: usize = 16;

/// A vector of 16 steps a number, and the scale they share. No step is 0: each number keeps its sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packed {
    scale: f32,
    /// A number k, -8 to 7, stands for k + ½ steps.
    steps: Nibbles,
}

impl Packed {
    /// What an empty text means.
    pub const ZERO: Self = Self { scale: 0.0, steps: [0; DIMENSIONS / 2] };

    /// Similarity to `other`. Of two directions in general, a hundredth off.
    pub fn dot(&self, other: &Quantized) -> f32 {
        self.scaled(other, product(other.values(), &self.steps), sum(other.values()))
    }

    /// Similarities of each of `many` to `one`: what [`Self::dot`] says of each.
    pub fn dots<'p>(one: &Quantized, many: impl IntoIterator<Item = &'p Self>) -> Vec<f32> {
        dots(one, many.into_iter())
    }

    fn scaled(&self, other: &Quantized, product: i32, sum: i32) -> f32 {
        self.scale * other.scale() * (product as f32 + 0.5 * sum as f32)
    }

    /// The signs of every third number; see [`Quantized::signs`].
    pub fn signs(&self) -> u64 {
        let number = |index: usize| match index.checked_sub(DIMENSIONS / 2) {
            None => self.steps[index] << 4,
            Some(index) => self.steps[index],
        };
        (0..64).fold(0, |signs, bit| signs | u64::from(number(bit * (DIMENSIONS / 64)) >> 7) << bit)
    }
}

impl From<&Quantized> for Packed {
    fn from(vector: &Quantized) -> Self {
        let values = vector.values();
        let largest = values.iter().map(|value| i32::from(*value).abs()).max().unwrap_or_default();
        if largest == 0 {
            return Self::ZERO;
        }
        Self { scale: vector.scale() * largest as f32 / 8.0, steps: steps(values, largest) }
    }
}

/// The numbers in eighths of the largest, rounded down: the half step that each stands for rounds them up again.
#[multiversion(targets("x86_64+avx2"))]
fn steps(values: &[i8; DIMENSIONS], largest: i32) -> Nibbles {
    // Instead of a division each, which takes ten times as long.
    let eighth = (8_u32 << 16).div_ceil(largest.unsigned_abs()) as i32;
    let step = |value: i8| ((i32::from(value) * eighth) >> 16).clamp(-8, 7);
    let (below, above) = values.split_at(DIMENSIONS / 2);
    let mut steps = [0; DIMENSIONS / 2];
    for ((nibbles, low), high) in steps.iter_mut().zip(below).zip(above) {
        *nibbles = (step(*low) & 0xf | step(*high) << 4) as u8;
    }
    steps
}

#[multiversion(targets("x86_64+avx2"))]
fn product(values: &[i8; DIMENSIONS], steps: &Nibbles) -> i32 {
    sum_of_products(values, steps)
}

#[multiversion(targets("x86_64+avx2"))]
fn dots<'p>(one: &Quantized, many: impl Iterator<Item = &'p Packed>) -> Vec<f32> {
    let sum = sum(one.values());
    many.map(|packed| packed.scaled(one, sum_of_products(one.values(), &packed.steps), sum)).collect()
}

fn sum(values: &[i8; DIMENSIONS]) -> i32 {
    values.iter().map(|value| i32::from(*value)).sum()
}

#[expect(clippy::inline_always, reason = "else it is compiled for no machine in particular")]
#[inline(always)]
fn sum_of_products(values: &[i8; DIMENSIONS], steps: &Nibbles) -> i32 {
    let (below, above) = values.split_at(DIMENSIONS / 2);
    let mut sums = [0; LANES];
    let chunks = below.as_chunks::<LANES>().0.iter().zip(above.as_chunks::<LANES>().0);
    for ((below, above), nibbles) in chunks.zip(steps.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            let (low, high) = ((nibbles[lane] << 4).cast_signed() >> 4, nibbles[lane].cast_signed() >> 4);
            let product = |value: i8, step: i8| i16::from(value) * i16::from(step);
            sums[lane] += i32::from(product(below[lane], low) + product(above[lane], high));
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Vector;
    use super::*;

    fn vector() -> impl Strategy<Value = Quantized> {
        prop::collection::vec(-1.0_f32..1.0, DIMENSIONS).prop_map(|values| {
            Quantized::from(&Vector::normalised(values.try_into().expect("the strategy makes as many")))
        })
    }

    #[test]
    fn nothing_is_like_nothing() {
        assert_eq!(Packed::from(&Quantized::ZERO), Packed::ZERO);
        let one = Quantized::from(&Vector::normalised([1.0; DIMENSIONS]));
        assert!(Packed::ZERO.dot(&one).abs() < f32::EPSILON && Packed::from(&one).dot(&Quantized::ZERO).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn likeness_survives(a in vector(), b in vector()) {
            prop_assert!((Packed::from(&a).dot(&b) - a.dot(&b)).abs() < 0.03);
            prop_assert!((Packed::from(&a).dot(&a) - 1.0).abs() < 0.03);
        }

        #[test]
        fn many_are_compared_as_one_is(one in vector(), many in prop::collection::vec(vector(), 0..20)) {
            let many: Vec<Packed> = many.iter().map(Packed::from).collect();
            let each: Vec<f32> = many.iter().map(|packed| packed.dot(&one)).collect();
            prop_assert_eq!(Packed::dots(&one, &many), each);
        }

        #[test]
        fn signs_are_kept(one in vector()) {
            prop_assert_eq!(Packed::from(&one).signs(), one.signs());
        }
    }
}
