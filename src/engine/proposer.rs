//! Whoever proposes next tools by rules: the seam at which rule libraries join in.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::plugin_host::Ask;
use crate::suggest::Candidate;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleAnswers {
    /// Of each library what it proposes; libraries in a fixed order.
    pub lists: Vec<Vec<Candidate>>,
    /// Libraries that could not answer.
    pub degraded: Vec<Degraded>,
}

/// A library that could not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degraded {
    pub plugin: String,
    pub reason: String,
}

/// An answer that is waited for, not for long.
pub type Proposing<'a> = Pin<Box<dyn Future<Output = RuleAnswers> + Send + 'a>>;

pub trait Proposer: Send + Sync + fmt::Debug {
    /// What should come next? Answers within a deadline of its own.
    fn propose<'a>(&'a self, ask: &'a Ask) -> Proposing<'a>;

    /// The catalog is another one from now on. Waits for nothing.
    fn catalog_changed(&self, generation: u64, catalog: Arc<Catalog>);
}
