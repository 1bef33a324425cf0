//! A forecast on one line of a terminal: where nine calls in ten end, and where the limit is.

/// Columns of the line.
const WIDTH: usize = 60;

/// What is drawn, in ms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    /// Nine calls in ten end between these.
    pub interval: [u64; 2],
    /// Half of them end before this.
    pub median: u64,
    /// Nine in ten end before this.
    pub p90: u64,
    /// The caller's limit.
    pub limit: u64,
}

/// The line, and what its marks mean. Times are on a logarithmic axis, since durations differ by factors.
pub(super) fn bar(marks: &Marks) -> [String; 2] {
    let Marks { interval: [low, high], median, p90, limit } = *marks;
    let log = |ms: u64| (ms.max(1) as f64).ln();
    let (from, to) = (log(low.min(limit)), log(high.max(limit)));
    let span = (to - from).max(f64::MIN_POSITIVE);
    let place = |ms: u64| (((log(ms) - from) / span) * (WIDTH - 1) as f64).round() as usize;
    let mut line = vec![' '; WIDTH];
    for (start, end, mark) in [(low, high, '─'), (low, p90, '━')] {
        for column in &mut line[place(start).min(WIDTH - 1)..=place(end).min(WIDTH - 1)] {
            *column = mark;
        }
    }
    line[place(low)] = '├';
    line[place(high)] = '┤';
    line[place(median).min(WIDTH - 1)] = '●';
    // Said last, since it is what matters most.
    line[place(limit)] = '┃';
    [line.into_iter().collect(), "├━ nine in ten ━─┤   ● half   ┃ the limit".to_owned()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_stand_in_their_order() {
        let [line, _] = bar(&Marks { interval: [100, 10_000], median: 1000, p90: 5000, limit: 30_000 });
        let at = |mark: char| line.chars().position(|c| c == mark).unwrap();
        assert_eq!((at('├'), at('┃')), (0, WIDTH - 1));
        assert!(at('├') < at('●') && at('●') < at('┤') && at('┤') < at('┃'), "{line}");
        let [line, _] = bar(&Marks { interval: [100, 10_000], median: 1000, p90: 5000, limit: 10 });
        assert_eq!(line.chars().position(|c| c == '┃'), Some(0));
    }

    proptest! {
        #[test]
        fn every_forecast_fits_the_line(
            mut times in prop::array::uniform4(0_u64..86_400_000),
            limit in 0_u64..86_400_000,
        ) {
            times.sort_unstable();
            let [low, median, p90, high] = times;
            let [line, _] = bar(&Marks { interval: [low, high], median, p90, limit });
            prop_assert_eq!(line.chars().count(), WIDTH);
            prop_assert!(line.contains('┃'));
        }
    }
}
