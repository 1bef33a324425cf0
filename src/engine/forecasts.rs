//! Forecasts that were made from one state of what is learnt. Between two calls that are recorded the same questions
//! come again and again: of the tool at hand, of what may come next, of the steps of presets.

use std::sync::Arc;

use foldhash::HashMap;
use parking_lot::Mutex;

use crate::timing::{Complexity, Forecast, Key};

/// Forecasts that are kept; each takes some 20 kB.
const MOST: usize = 128;

/// What was asked of one state already. The prior, and what is known of the fleet, follow from the question and are of
/// the same state.
#[derive(Debug, Default)]
pub(super) struct Forecasts(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// By tool.
    forecasts: HashMap<Box<str>, Vec<Answered>>,
    count: usize,
}

/// What was said of a tool when it was asked so.
#[derive(Debug)]
struct Answered {
    mode: Box<str>,
    failed: bool,
    complexity: Complexity,
    hint_ms: Option<u64>,
    forecast: Arc<Forecast>,
}

/// What is cloned is about to learn, so nothing that was said before holds of it.
impl Clone for Forecasts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Forecasts {
    /// What is said of the question; `make` says it the first time.
    pub(super) fn of(
        &self,
        key: Key<'_>,
        complexity: &Complexity,
        hint_ms: Option<u64>,
        make: impl FnOnce() -> Forecast,
    ) -> Arc<Forecast> {
        if let Some(known) = self.0.lock().find(key, complexity, hint_ms) {
            return known;
        }
        let forecast = Arc::new(make());
        let (mode, complexity) = (key.mode.into(), *complexity);
        let answered = Answered { mode, failed: key.failed, complexity, hint_ms, forecast: Arc::clone(&forecast) };
        self.0.lock().keep(key.tool, answered);
        forecast
    }
}

impl Kept {
    fn find(&self, key: Key<'_>, complexity: &Complexity, hint_ms: Option<u64>) -> Option<Arc<Forecast>> {
        let is_asked = |answered: &&Answered| {
            let is_same_key = answered.failed == key.failed && *answered.mode == *key.mode;
            is_same_key && answered.complexity == *complexity && answered.hint_ms == hint_ms
        };
        self.forecasts.get(key.tool)?.iter().find(is_asked).map(|answered| Arc::clone(&answered.forecast))
    }

    fn keep(&mut self, tool: &str, answered: Answered) {
        if self.count >= MOST {
            *self = Self::default();
        }
        self.forecasts.entry(tool.into()).or_default().push(answered);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::{Defaults, Model, Question};

    #[test]
    fn the_same_question_is_answered_once() {
        let (forecasts, model) = (Forecasts::default(), Model::default());
        let sized = Complexity { content_length: Some(4000), ..Complexity::default() };
        let ask = |forecasts: &Forecasts, tool: &str, mode: &str, complexity: &Complexity, hint: Option<u64>| {
            let prior = Defaults::default().prior(tool, hint, complexity);
            let key = Key::new(tool, mode);
            let question = Question { key, covariates: complexity.covariates(), prior, fleet: None };
            forecasts.of(key, complexity, hint, || model.forecast(&question))
        };
        let plain = Complexity::default();
        let first = ask(&forecasts, "fetch", "json", &plain, None);
        assert!(Arc::ptr_eq(&first, &ask(&forecasts, "fetch", "json", &plain, None)));
        let others = [
            ask(&forecasts, "fetch", "html", &plain, None),
            ask(&forecasts, "post", "json", &plain, None),
            ask(&forecasts, "fetch", "json", &sized, None),
            ask(&forecasts, "fetch", "json", &plain, Some(700)),
            ask(&forecasts.clone(), "fetch", "json", &plain, None),
        ];
        assert!(others.iter().all(|other| !Arc::ptr_eq(&first, other)));
        for tool in 0..3 * MOST {
            ask(&forecasts, &tool.to_string(), "", &plain, None);
        }
        let kept = forecasts.0.lock();
        let count: usize = kept.forecasts.values().map(Vec::len).sum();
        assert!(count <= MOST && count == kept.count, "{count} are kept");
    }
}
