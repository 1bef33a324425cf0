//! How much a call has to do: what its caller says of it, and the covariates that are learnt from it.

use super::execution::Measures;

/// What a caller says about the size of a call; what it does not say is as usual.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Complexity {
    /// Of the content, in bytes.
    pub content_length: Option<u64>,
    /// Perspectives to take.
    pub num_perspectives: Option<u32>,
    pub num_branches: Option<u32>,
    /// Tokens to think with.
    pub thinking_budget: Option<u32>,
    /// Tokens in the context of the call.
    pub context_tokens: Option<u32>,
}

/// How many covariates there are.
pub(crate) const COVARIATES: usize = 5;

/// The logarithm of one plus each size that is known: 0 to 44.4. A doubled size takes a constant factor longer, or so
/// is assumed. What was not said is not 0: it is whatever is usual of the key.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Covariates([Option<f32>; COVARIATES]);

/// Measures beyond what is told apart are as good as the largest.
impl From<&Measures> for Complexity {
    fn from(measures: &Measures) -> Self {
        let small = |measure: Option<u64>| measure.map(|measure| u32::try_from(measure).unwrap_or(u32::MAX));
        Self {
            content_length: measures.content_length,
            num_perspectives: small(measures.num_perspectives),
            num_branches: small(measures.num_branches),
            thinking_budget: small(measures.thinking_budget),
            context_tokens: small(measures.context_tokens),
        }
    }
}

impl Complexity {
    pub fn covariates(&self) -> Covariates {
        let Self { content_length, num_perspectives, num_branches, thinking_budget, context_tokens } = *self;
        let small = |size: Option<u32>| size.map(|size| f64::from(size).ln_1p() as f32);
        Covariates([
            content_length.map(|size| (size as f64).ln_1p() as f32),
            small(num_perspectives),
            small(num_branches),
            small(thinking_budget),
            small(context_tokens),
        ])
    }

    /// The same with 0 for each size that was not said.
    #[must_use]
    pub fn or_nothing(self) -> Self {
        Self {
            content_length: self.content_length.or(Some(0)),
            num_perspectives: self.num_perspectives.or(Some(0)),
            num_branches: self.num_branches.or(Some(0)),
            thinking_budget: self.thinking_budget.or(Some(0)),
            context_tokens: self.context_tokens.or(Some(0)),
        }
    }
}

impl Covariates {
    pub(crate) fn values(&self) -> [Option<f32>; COVARIATES] {
        self.0
    }
}
