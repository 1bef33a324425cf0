//! An estimate as it is asked for and given.

use std::sync::Arc;

use super::learner::Learnt;
use super::{Engine, Generation};
use crate::text::near;
use crate::timing::{Complexity, Forecast, Remaining};

/// A call that is about to be made, or is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
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
    pub forecast: Arc<Forecast>,
    /// When the caller gives up, in ms.
    pub limit_ms: u64,
    /// What is left of it, if it runs already.
    pub remaining: Option<Remaining>,
    /// Is the tool known?
    pub acquaintance: Acquaintance,
    /// Why what was recorded before the start is not in it, if it is not.
    pub missing_history: Option<Arc<String>>,
}

/// Was a tool ever heard of?
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Acquaintance {
    /// It is documented, was recorded here or on another host, or has a default.
    #[default]
    Known,
    /// It is not; these names are near.
    Unknown(Vec<String>),
}

impl Acquaintance {
    /// Is it known?
    pub fn is_known(&self) -> bool {
        *self == Self::Known
    }

    /// Names that may have been meant.
    pub fn near(&self) -> &[String] {
        match self {
            Self::Known => &[],
            Self::Unknown(near) => near,
        }
    }

    /// Of several tools: all are known, or what is near the first that is not.
    pub fn of_all(tools: impl IntoIterator<Item = Self>) -> Self {
        tools.into_iter().find(|tool| !tool.is_known()).unwrap_or_default()
    }
}

impl Engine {
    /// Was `tool` ever heard of?
    pub fn acquaintance(&self, generation: &Generation, learnt: &Learnt, tool: &str) -> Acquaintance {
        let defaults = self.learner.defaults();
        if generation.catalog().get(tool).is_some() || learnt.model.knows(tool) || defaults.names(tool) {
            return Acquaintance::Known;
        }
        Acquaintance::Unknown(self.near_names(generation, learnt, tool))
    }

    /// Names of documented and of recorded tools that `tool` may have meant.
    fn near_names(&self, generation: &Generation, learnt: &Learnt, tool: &str) -> Vec<String> {
        let documented = generation.catalog().iter().map(|entry| &**entry.name());
        let recorded = learnt.model.tools();
        let named = self.learner.defaults().tools().map(|(tool, _)| tool);
        let mut near: Vec<String> = Vec::new();
        // A name may come from each of the three, and twice if the tool also failed.
        for name in near::nearest_few(tool, documented.chain(recorded).chain(named), 4 * NEAR) {
            if near.len() < NEAR && near.iter().all(|known| known != name) {
                near.push(name.to_owned());
            }
        }
        near
    }
}

/// Near names that are offered.
const NEAR: usize = 3;

impl Estimate {
    pub(super) fn new(
        forecast: Arc<Forecast>,
        asked: &Asked,
        factory_timeout_ms: u64,
        acquaintance: Acquaintance,
        missing_history: Option<Arc<String>>,
    ) -> Self {
        let remaining = asked.elapsed_ms.map(|elapsed| forecast.remaining(elapsed));
        let limit_ms = asked.timeout_ms.unwrap_or(factory_timeout_ms);
        Self { forecast, limit_ms, remaining, acquaintance, missing_history }
    }

    /// Is the call expected to take longer than its caller waits? A call that runs already is judged by what is left of
    /// it.
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
