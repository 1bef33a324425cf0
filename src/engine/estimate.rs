//! An estimate as it is asked for and given.

use crate::timing::{Complexity, Forecast, Remaining};

/// A call that is about to be made, or is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// The tool.
    pub tool: String,
    /// Its mode, if it has modes.
    pub mode: Option<String>,
    /// How much it has to do.
    pub complexity: Complexity,
    /// When the caller gives up, in ms; the factory's limit if it does not say.
    pub timeout_ms: Option<u64>,
    /// How long the call has run already, in ms.
    pub elapsed_ms: Option<u64>,
}

/// What is said of it.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// What the call will take.
    pub forecast: Forecast,
    /// When the caller gives up, in ms.
    pub limit_ms: u64,
    /// What is left of it, if it runs already.
    pub remaining: Option<Remaining>,
}

impl Estimate {
    pub(super) fn new(forecast: Forecast, asked: &Asked, factory_timeout_ms: u64) -> Self {
        let remaining = asked.elapsed_ms.map(|elapsed| forecast.remaining(elapsed));
        Self { limit_ms: asked.timeout_ms.unwrap_or(factory_timeout_ms), remaining, forecast }
    }

    /// Is the call expected to take longer than its caller waits? A call that runs already is judged by what is left of it.
    pub fn will_time_out(&self) -> bool {
        match &self.remaining {
            Some(remaining) => remaining.timeout_probability(self.limit_ms) >= 0.5,
            None => self.forecast.will_time_out(self.limit_ms),
        }
    }

    /// The probability that the caller gives up.
    pub fn timeout_probability(&self) -> f64 {
        match &self.remaining {
            Some(remaining) => remaining.timeout_probability(self.limit_ms),
            None => self.forecast.timeout_probability(self.limit_ms),
        }
    }
}
