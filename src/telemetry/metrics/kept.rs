//! Series of two labels whose text is kept until they change: of hundreds of tools, few are called between two scrapes.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{Encoder, Histogram, IntCounter, Opts, TextEncoder};

/// What a series was shown as last.
#[derive(Debug, Default)]
struct Shown {
    changes: Option<u64>,
    lines: Vec<u8>,
}

#[derive(Debug)]
struct Series<M> {
    metric: M,
    shown: Mutex<Shown>,
}

/// A metric that says whether it changed.
pub trait Changing: Collector + Clone {
    /// Another number after each change.
    fn changes(&self) -> u64;
}

impl Changing for Histogram {
    fn changes(&self) -> u64 {
        self.get_sample_count()
    }
}

impl Changing for IntCounter {
    fn changes(&self) -> u64 {
        self.get()
    }
}

/// Makes the metric whose labels these options have.
type Make<M> = fn(Opts) -> prometheus::Result<M>;

/// Lines in front of a family's series: what it is, and of which type.
const HEAD_LINES: usize = 2;

type BySecond<M> = BTreeMap<Box<str>, Arc<Series<M>>>;

/// A metric by two labels. The library's own vectors tell labels apart by their joined text, so that `ab` with `c` is
/// counted as `a` with `bc`.
#[derive(Debug)]
pub struct KeptVec<M> {
    options: Opts,
    labels: [&'static str; 2],
    make: Make<M>,
    /// By the first label and the second.
    series: Mutex<BTreeMap<Box<str>, BySecond<M>>>,
}

impl<M: Changing> KeptVec<M> {
    /// # Errors
    /// If the name or a label is none.
    pub(super) fn new(options: Opts, labels: [&'static str; 2], make: Make<M>) -> prometheus::Result<Self> {
        let vec = Self { options, labels, make, series: Mutex::default() };
        vec.make("", "")?;
        Ok(vec)
    }

    fn make(&self, first: &str, second: &str) -> prometheus::Result<M> {
        let [first_label, second_label] = self.labels;
        (self.make)(self.options.clone().const_label(first_label, first).const_label(second_label, second))
    }

    /// The metric with these labels; it is made if there is none.
    pub fn with_labels(&self, first: &str, second: &str) -> M {
        let mut series = self.series.lock();
        if let Some(known) = series.get(first).and_then(|of_first| of_first.get(second)) {
            return known.metric.clone();
        }
        let metric = self.make(first, second).expect("one with other values was made, and any value is one");
        let made = Series { metric: metric.clone(), shown: Mutex::default() };
        series.entry(first.into()).or_default().insert(second.into(), Arc::new(made));
        metric
    }

    /// Adds all series, with their head, in the text exposition format.
    ///
    /// # Errors
    /// As the encoder's; those before stay written.
    pub(super) fn write(&self, text: &mut Vec<u8>) -> prometheus::Result<()> {
        let all: Vec<_> = self.series.lock().values().flat_map(BTreeMap::values).map(Arc::clone).collect();
        for (place, series) in all.iter().enumerate() {
            let mut shown = series.shown.lock();
            // Read first: what changes meanwhile is shown with the next one.
            let changes = series.metric.changes();
            if shown.changes != Some(changes) {
                shown.lines.clear();
                TextEncoder::new().encode(&series.metric.collect(), &mut shown.lines)?;
                shown.changes = Some(changes);
            }
            let from = if place == 0 { 0 } else { end_of_head(&shown.lines) };
            text.extend_from_slice(&shown.lines[from..]);
        }
        Ok(())
    }
}

fn end_of_head(lines: &[u8]) -> usize {
    lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(HEAD_LINES - 1).map_or(0, |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prometheus::Registry;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_text_is_that_of_a_registry(
            calls in prop::collection::vec(("[ab\"\\\\\n]{0,2}", "[ab]?", any::<bool>()), 0..20),
        ) {
            let kept = KeptVec::new(Opts::new("calls", "How\nmany."), ["tool", "mode"], IntCounter::with_opts).unwrap();
            let (registry, mut called) = (Registry::new(), BTreeSet::new());
            for (tool, mode, is_scraped) in calls {
                let counter = kept.with_labels(&tool, &mode);
                counter.inc();
                if called.insert((tool, mode)) {
                    registry.register(Box::new(counter)).unwrap();
                }
                if is_scraped {
                    let mut text = Vec::new();
                    kept.write(&mut text).unwrap();
                    let whole = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
                    let text = String::from_utf8(text).unwrap();
                    prop_assert_eq!(sorted(&text), sorted(&whole));
                }
            }
        }
    }

    fn sorted(text: &str) -> Vec<&str> {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn labels_that_join_to_one_text_are_told_apart() {
        let kept = KeptVec::new(Opts::new("calls", "How many."), ["tool", "mode"], IntCounter::with_opts).unwrap();
        kept.with_labels("ab", "c").inc_by(2);
        kept.with_labels("a", "bc").inc();
        assert_eq!([("ab", "c"), ("a", "bc")].map(|(tool, mode)| kept.with_labels(tool, mode).get()), [2, 1]);
    }
}
