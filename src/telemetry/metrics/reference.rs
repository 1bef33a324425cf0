//! All metrics as a page for people: `docs/METRICS.md`, which a test holds against the code.

use prometheus::core::{Collector, Desc};
use prometheus::{Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts};

/// One metric as its page shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DescribedMetric {
    name: String,
    kind: &'static str,
    labels: String,
    help: String,
}

impl DescribedMetric {
    /// What these collectors say of themselves.
    pub(super) fn of(descriptions: &[&Desc], kind: &'static str) -> Vec<Self> {
        let described = descriptions.iter().map(|desc| Self {
            name: desc.fq_name.clone(),
            // Of several kinds together, the name tells.
            kind: if desc.fq_name.ends_with("_total") { "counter" } else { kind },
            labels: desc.variable_labels.join(", "),
            help: desc.help.clone(),
        });
        described.collect()
    }

    /// What is made with these options, by these labels.
    pub(super) fn of_options(options: &Opts, labels: &[&str], kind: &'static str) -> Self {
        Self { name: options.fq_name(), kind, labels: labels.join(", "), help: options.help.clone() }
    }
}

/// What kind of metric it is.
pub(super) trait MetricKind: Collector {
    const KIND: &'static str;
}

impl MetricKind for IntGauge {
    const KIND: &'static str = "gauge";
}
impl MetricKind for Gauge {
    const KIND: &'static str = "gauge";
}
impl MetricKind for IntGaugeVec {
    const KIND: &'static str = "gauge";
}
impl MetricKind for IntCounter {
    const KIND: &'static str = "counter";
}
impl MetricKind for IntCounterVec {
    const KIND: &'static str = "counter";
}
impl MetricKind for Histogram {
    const KIND: &'static str = "histogram";
}
impl MetricKind for HistogramVec {
    const KIND: &'static str = "histogram";
}

const HEAD: &str = "\
# Metrics

`GET /metrics` has these in Prometheus' text format; with tokens it needs the scope `read`. `config/prometheus/` has
alert rules with tests, and a dashboard. Names and labels stay what they are within a version of the interface. Labels
have bounds: tools beyond the first 500 are counted as `other`.

Who accepts `application/openmetrics-text`, as Prometheus does, gets OpenMetrics 1.0: what is counted has a `_created`,
and buckets of `almanac_http_request_duration_seconds` name a request each (`request_id`, the `x-request-id` of its
answer and of its line in the log; Prometheus keeps it with `--enable-feature=exemplar-storage`).

This page is made from the code: `ALMANAC_WRITE_DOCS=1 cargo test --lib metrics::reference` writes it anew.

| metric | kind | labels | what it says |
|---|---|---|---|
";

/// The page.
pub(super) fn page(metrics: &[DescribedMetric]) -> String {
    let mut rows: Vec<&DescribedMetric> = metrics.iter().collect();
    rows.sort();
    let rows = rows.into_iter().map(|DescribedMetric { name, kind, labels, help }| {
        let labels = if labels.is_empty() { String::new() } else { format!("`{labels}`") };
        format!("| `{name}` | {kind} | {labels} | {} |\n", help.replace('|', "\\|"))
    });
    format!("{HEAD}{}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;

    #[test]
    fn the_page_is_what_the_code_says() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/METRICS.md");
        let page = Metrics::new().unwrap().reference();
        if std::env::var_os("ALMANAC_WRITE_DOCS").is_some() {
            std::fs::write(file, &page).unwrap();
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), page, "ALMANAC_WRITE_DOCS=1 writes {file} anew");
        assert!(page.contains("| `almanac_http_requests_total` | counter | `route, method, code` | "), "{page}");
        assert!(page.contains("| `process_cpu_seconds_total` | counter | "), "{page}");
    }
}
