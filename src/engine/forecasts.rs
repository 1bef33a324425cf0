//! Forecasts that were made from one state of what is learnt. Between two calls that are recorded the same questions
//! come again and again: of the tool at hand, of what may come next, of the steps of presets.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::timing::{COVARIATES, Forecast, Model, Prior, Question};

/// Forecasts that are kept; each takes some 20 kB.
const MOST: usize = 128;

/// What was asked of one state already.
#[derive(Debug, Default)]
pub(super) struct Forecasts(Mutex<HashMap<Asked, Arc<Forecast>>>);

/// A question without what it borrows. What it borrows of the fleet is of the same state as the model.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Asked {
    tool: Box<str>,
    mode: Box<str>,
    failed: bool,
    sizes: [Option<u32>; COVARIATES],
    prior: Prior,
}

/// What is cloned is about to learn, so nothing that was said before holds of it.
impl Clone for Forecasts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Forecasts {
    /// What `model` says, which is always the same one and does not change.
    pub(super) fn of(&self, model: &Model, question: &Question<'_>) -> Arc<Forecast> {
        let asked = Asked {
            tool: question.key.tool.into(),
            mode: question.key.mode.into(),
            failed: question.key.failed,
            sizes: question.covariates.bits(),
            prior: question.prior,
        };
        if let Some(known) = self.0.lock().get(&asked) {
            return Arc::clone(known);
        }
        let forecast = Arc::new(model.forecast(question));
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(asked, Arc::clone(&forecast));
        forecast
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::{Complexity, Defaults, Key};

    #[test]
    fn the_same_question_is_answered_once() {
        let (forecasts, model) = (Forecasts::default(), Model::default());
        let sized = Complexity { content_length: Some(4000), ..Complexity::default() };
        let ask = |forecasts: &Forecasts, tool: &str, mode: &str, complexity: &Complexity, hint: Option<u64>| {
            let prior = Defaults::default().prior(tool, hint, complexity);
            let question =
                Question { key: Key::new(tool, mode), covariates: complexity.covariates(), prior, fleet: None };
            forecasts.of(&model, &question)
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
        assert!(forecasts.0.lock().len() <= MOST);
    }
}
