//! Labels under a cap: a client that makes up names must not make up time series.

use parking_lot::Mutex;
use std::collections::HashSet;

/// What stands for all that came after the cap.
pub const OTHER: &str = "other";

/// The first so many names; the others are folded into [`OTHER`].
#[derive(Debug)]
pub struct Capped {
    most: usize,
    seen: Mutex<HashSet<String>>,
}

impl Capped {
    /// Lets through `most` names.
    pub fn new(most: usize) -> Self {
        Self { most, seen: Mutex::default() }
    }

    /// May this name be a label?
    pub fn lets_through(&self, name: &str) -> bool {
        let mut seen = self.seen.lock();
        seen.contains(name) || seen.len() < self.most && seen.insert(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_stay() {
        let capped = Capped::new(2);
        let got = ["a", "b", "c", "a"].map(|name| capped.lets_through(name));
        assert_eq!(got, [true, true, false, true]);
    }
}
