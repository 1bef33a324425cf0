//! M7: a scrape of 500 tools, beside prometheus' own encoder with as many histograms.

use std::hint::black_box;
use std::time::Instant;

use almanac::telemetry::Metrics;
use anyhow::Result;
use prometheus::{Encoder, HistogramOpts, HistogramVec, Registry, TextEncoder};

use crate::family::{Family, Wanted};
use crate::quiet;
use crate::row::{Bar, Measured, Row};
use crate::sample::{Pairs, Spread};

pub(crate) const FAMILY: Family = Family { rows: &["M7"], needs: &[], run };

const TOOLS: usize = 500;
/// As many as ours have.
const BUCKETS: i32 = 14;
const ROUNDS: usize = 7;
const SCRAPES: usize = 40;

/// How many tools were called since the scrape before, and what a row of that is called.
const CALLED: [(usize, &str); 2] = [(TOOLS / 10, "a tenth"), (TOOLS, "all")];

fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    let (metrics, encoded) = (Metrics::new()?, Encoded::new()?);
    let mut rows = Vec::new();
    for (called, which) in CALLED {
        let mut pairs = Pairs::default();
        for _ in quiet::rounds(ROUNDS) {
            let call = |tool: &str| metrics.tool_duration.with_labels(tool, "").observe(0.2);
            let ours = median(called, call, || Ok(metrics.render().len()))?;
            pairs.push(ours, median(called, |tool| encoded.call(tool), || encoded.encode())?);
        }
        let ratio = pairs.ratio();
        let measured = Measured {
            ours: format!("{:.0} µs", pairs.ours()),
            theirs: format!("prometheus' encoder {:.0} µs", pairs.theirs()),
            figure: Spread { median: 1.0 / ratio.median, low: 1.0 / ratio.high, high: 1.0 / ratio.low },
            bar: if called == TOOLS { Bar::OPEN } else { Bar::at_least(5.0) },
        };
        rows.push(Row::new("M7", format!("/metrics of {TOOLS} tools, {which} called since"), measured));
    }
    Ok(rows)
}

/// Median microseconds of a scrape after so many tools were called.
fn median(called: usize, call: impl Fn(&str), scrape: impl Fn() -> Result<usize>) -> Result<f64> {
    let tools: Vec<String> = (0..TOOLS).map(|tool| format!("tool_{tool}")).collect();
    for tool in &tools {
        call(tool);
    }
    scrape()?;
    let mut took = Vec::with_capacity(SCRAPES);
    for number in 0..SCRAPES {
        for tool in tools.iter().cycle().skip(number * called).take(called) {
            call(tool);
        }
        let start = Instant::now();
        black_box(scrape()?);
        took.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Spread::of(took).median)
}

/// As the library's own vector and encoder have it.
struct Encoded {
    registry: Registry,
    durations: HistogramVec,
}

impl Encoded {
    fn new() -> Result<Self> {
        let buckets = (0..BUCKETS).map(|bucket| 0.001 * 2_f64.powi(bucket)).collect();
        let options = HistogramOpts::new("duration_seconds", "Recorded durations of calls.").buckets(buckets);
        let (registry, durations) = (Registry::new(), HistogramVec::new(options, &["tool", "mode"])?);
        registry.register(Box::new(durations.clone()))?;
        Ok(Self { registry, durations })
    }

    fn call(&self, tool: &str) {
        self.durations.with_label_values(&[tool, ""]).observe(0.2);
    }

    fn encode(&self) -> Result<usize> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text.len())
    }
}
