//! The last calls of a key in order: what follows what.

/// Calls that are remembered.
pub(crate) const REMEMBERED: usize = 3;

/// The last three calls, in ln(ms). One that was given up stands where it would probably have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Last([f32; REMEMBERED]);

impl Last {
    /// Adds a call after `earlier` calls. Until there are three, the first stands for those before.
    pub(crate) fn push(&mut self, ln: f64, earlier: u32) {
        let [latest, one_before, _] = self.0;
        let ln = ln as f32;
        self.0 = if earlier == 0 { [ln; REMEMBERED] } else { [ln, latest, one_before] };
    }

    /// The latest first.
    pub(crate) fn places(self) -> [f64; REMEMBERED] {
        self.0.map(f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_comes_first() {
        let check = |calls: &[f64], expected: [f32; REMEMBERED]| {
            let mut last = Last::default();
            for (earlier, &ln) in (0..).zip(calls) {
                last.push(ln, earlier);
            }
            assert_eq!(last, Last(expected), "after {calls:?}");
        };
        check(&[], [0.0; REMEMBERED]);
        check(&[1.0], [1.0; REMEMBERED]);
        check(&[1.0, 2.0], [2.0, 1.0, 1.0]);
        check(&[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0]);
    }
}
