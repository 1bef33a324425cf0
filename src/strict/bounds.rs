//! Bounds of numbers, texts and lists, as the derived decoders hold values to them.

use std::fmt::Display;

/// Why a value of the right type cannot be taken, in words for whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

impl From<String> for Violation {
    fn from(message: String) -> Self {
        Self(message)
    }
}

/// What is counted for the length of a value.
pub trait Length {
    const UNIT: &'static str;

    /// How many there are.
    fn length(&self) -> usize;
}

impl Length for String {
    const UNIT: &'static str = "characters";

    fn length(&self) -> usize {
        self.chars().count()
    }
}

impl<T> Length for Vec<T> {
    const UNIT: &'static str = "items";

    fn length(&self) -> usize {
        self.len()
    }
}

/// Is `value` within the bounds, both included?
pub fn range<T: PartialOrd + Display + Copy>(value: &T, min: Option<T>, max: Option<T>) -> Result<(), Violation> {
    let fits = min.is_none_or(|min| *value >= min) && max.is_none_or(|max| *value <= max);
    if fits { Ok(()) } else { Err(format!("must be {}, not {value}", span(min, max)).into()) }
}

/// Is the length of `value` within the bounds, both included?
pub fn length<T: Length>(value: &T, min: Option<usize>, max: Option<usize>) -> Result<(), Violation> {
    let found = value.length();
    match range(&found, min, max) {
        Ok(()) => Ok(()),
        Err(_) => Err(format!("must have {} {}, not {found}", span(min, max), T::UNIT).into()),
    }
}

fn span<T: Display>(min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "anything".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_included() {
        let check = |value: u64, expected: Result<(), &str>| {
            assert_eq!(
                range(&value, Some(1), Some(3)),
                expected.map_err(|message| message.to_owned().into()),
                "{value}"
            );
        };
        check(1, Ok(()));
        check(3, Ok(()));
        check(0, Err("must be 1 to 3, not 0"));
        check(4, Err("must be 1 to 3, not 4"));
        assert_eq!(range(&0.5, Some(0.0), None), Ok(()));
        assert_eq!(range(&f64::NAN, Some(0.0), None), Err("must be at least 0, not NaN".to_owned().into()));
    }

    #[test]
    fn texts_are_measured_in_characters() {
        assert_eq!(length(&"ää".to_owned(), None, Some(2)), Ok(()));
        assert_eq!(length(&vec![1, 2], None, Some(1)), Err("must have at most 1 items, not 2".to_owned().into()));
    }
}
