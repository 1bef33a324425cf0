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

/// A question without what it borrows. Of a fleet there is none to ask.
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
