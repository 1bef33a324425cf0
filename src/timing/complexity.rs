//! How much a call has to do: what its caller says of it, and the covariates that are learnt from it.

use std::ops::Sub;

use crate::store::Measures;

/// What a caller says about the size of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Complexity {
    /// Of the content, in bytes.
    pub content_length: usize,
    /// Perspectives to take.
    pub num_perspectives: Option<u32>,
    /// Branches to follow.
    pub num_branches: Option<u32>,
    /// Tokens to think with.
    pub thinking_budget: Option<u32>,
    /// Tokens in the context of the call.
    pub context_tokens: Option<u32>,
}

/// How many covariates there are.
pub(crate) const COVARIATES: usize = 5;

/// The logarithms of one plus each size, where nothing said is 0. A doubled size takes a constant factor longer, or so
/// is assumed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Covariates([f32; COVARIATES]);

/// Measures beyond what is told apart are as good as the largest.
impl From<&Measures> for Complexity {
    fn from(measures: &Measures) -> Self {
        let small = |measure: Option<u64>| measure.map(|measure| u32::try_from(measure).unwrap_or(u32::MAX));
        Self {
            content_length: measures.content_length.unwrap_or(0) as usize,
            num_perspectives: small(measures.num_perspectives),
            num_branches: small(measures.num_branches),
            thinking_budget: small(measures.thinking_budget),
            context_tokens: small(measures.context_tokens),
        }
    }
}

impl Complexity {
    /// The covariates.
    pub fn covariates(&self) -> Covariates {
        let Self { content_length, num_perspectives, num_branches, thinking_budget, context_tokens } = *self;
        let optional = |size: Option<u32>| f64::from(size.unwrap_or(0)).ln_1p() as f32;
        Covariates([
            (content_length as f64).ln_1p() as f32,
            optional(num_perspectives),
            optional(num_branches),
            optional(thinking_budget),
            optional(context_tokens),
        ])
    }
}

impl Covariates {
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> {
        self.0.into_iter().map(f64::from)
    }

    /// Moves by the share `gain` (0 to 1) towards `other`.
    pub(crate) fn approach(&mut self, other: Self, gain: f64) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += gain as f32 * (other - *own);
        }
    }
}

impl Sub for Covariates {
    type Output = Self;

    fn sub(mut self, other: Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own -= other;
        }
        self
    }
}
