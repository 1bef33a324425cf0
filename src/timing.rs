//! How long calls take: learnt from those that ended, said of those to come.
//!
//! The problem: an agent plans under time limits and cannot see how long a tool will take. The approach: [`Model`]
//! holds what was learnt of every [`Key`], and answers a [`Question`] with a [`Forecast`], from which an estimate, an
//! interval, the probability of a timeout, the rest of a running call and, by [`plan`], the total of several calls are
//! read. [`estimator`] is how a single forecast comes about; [`defaults`] is what is said before anything was learnt;
//! [`evaluate`] measures all of it on anybody's history.
//!
//! Everything here is pure: no clock, no I/O, no failure ([`evaluate`] times itself). The store keeps the rows, a task
//! of the engine owns the model and publishes clones.

pub mod complexity;
pub mod defaults;
pub mod estimator;
pub mod evaluate;
pub mod execution;
pub mod fleet;
pub mod forecast;
pub mod key;
pub mod model;
pub mod outcome;
pub mod plan;
mod predicted;
mod settings;
mod table;
mod timed_call;

pub use complexity::{Complexity, Covariates};
pub use defaults::Defaults;
pub(crate) use estimator::correction::features::Features;
pub(crate) use estimator::grid::ln_ms;
pub use estimator::histogram::Fading;
pub use estimator::prior::{Prior, PriorSource};
pub use estimator::survival::Durations;
pub use execution::{CallKey, Execution, KeyCount, Measures};
pub use fleet::{Fleet, FleetCalls};
pub use forecast::{Basis, Confidence, Forecast, Quantiles, Remaining, Timeout};
pub use key::Key;
pub use model::{Model, ModelLimits, Question};
pub use outcome::{Observation, Outcome};
pub use plan::Plan;
pub use predicted::Predicted;
pub use settings::Settings;
pub use timed_call::{TimedCall, thin};
