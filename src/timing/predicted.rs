//! What the model said of a call just before it learnt it, in the few bytes that are kept beside the call.

use super::forecast::Forecast;

/// Quantiles that are kept.
const LEVELS: usize = 5;

/// P05, P25, P50, P75 and P95 of a call's duration, in ms, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predicted([u32; LEVELS]);

impl Predicted {
    /// What a forecast says. The outer ones are those of its interval.
    pub fn of(forecast: &Forecast) -> Self {
        let [low, middle, _, high] = forecast.quantiles().whole_ms();
        let quarters = [0.25, 0.75].map(|level| forecast.quantile_ms(level));
        let mut all = [low, quarters[0], middle, quarters[1], high].map(|ms| ms.clamp(low, high.max(low)));
        all.sort_unstable();
        Self(all.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)))
    }

    /// In ms.
    pub fn whole_ms(self) -> [u64; LEVELS] {
        self.0.map(u64::from)
    }

    /// As it is stored: four bytes each, the lowest first.
    pub fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|ms| ms.to_le_bytes()).collect()
    }

    /// As it was stored; nothing of bytes that no daemon wrote.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks() else { return None };
        let numbers: Vec<u32> = numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let read = <[u32; LEVELS]>::try_from(numbers).ok()?;
        read.is_sorted().then_some(Self(read))
    }
}

#[cfg(test)]
impl Predicted {
    /// For tests of other rooms.
    pub(crate) fn sketch(quantiles: [u32; LEVELS]) -> Self {
        Self(quantiles)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::timing::{Complexity, Defaults, Key, Model, Observation, Outcome, Question};

    proptest! {
        #[test]
        fn it_is_read_as_it_was_stored(mut quantiles: [u32; LEVELS]) {
            quantiles.sort_unstable();
            prop_assert_eq!(Predicted::from_bytes(&Predicted(quantiles).to_bytes()), Some(Predicted(quantiles)));
        }

        #[test]
        fn noise_is_nothing_or_in_order(noise in prop::collection::vec(any::<u8>(), 0..30)) {
            prop_assert!(Predicted::from_bytes(&noise).is_none_or(|read| read.whole_ms().is_sorted()));
        }
    }

    #[test]
    fn it_is_the_forecast_s_interval_with_the_middle_in_order() {
        let (defaults, complexity, mut model) = (Defaults::default(), Complexity::default(), Model::default());
        let question = Question {
            key: Key::new("a", ""),
            covariates: complexity.covariates(),
            prior: defaults.prior("a", None, &complexity),
            fleet: None,
        };
        for duration_ms in [900, 20, 1100, 86_400_000, 1, 1000, 1000] {
            let forecast = model.learn(&question, Observation { duration_ms, outcome: Outcome::Success });
            let quantiles = Predicted::of(&forecast).whole_ms();
            assert!(quantiles.is_sorted(), "{quantiles:?}");
            assert_eq!([quantiles[0], quantiles[4]], forecast.interval_ms());
        }
    }
}
