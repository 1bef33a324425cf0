//! All metrics, as typed handles. Names and labels are a contract with whoever alerts on them.

mod database;
mod exemplars;
mod kept;
mod llm;
mod mcp;
mod memory;
mod openmetrics;
mod plugin;
mod process;
mod reference;
mod relay;
mod upstream;

use std::cell::RefCell;

use prometheus::core::Collector;
use prometheus::{
    Encoder, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

pub use database::{DatabaseFigures, DatabaseMetrics};
pub use exemplars::{Exemplars, SeriesExemplars};
pub use kept::KeptVec;
pub use llm::LlmMetrics;
pub use mcp::McpMetrics;
pub use memory::MemoryMetrics;
pub use plugin::PluginMetrics;
pub use relay::RelayMetrics;
pub use upstream::UpstreamMetrics;

use self::kept::Changing;
use super::feed::Feed;
use super::labels::Capped;
use super::minutes::Minutes;
use process::ProcessMetrics;
use reference::{DescribedMetric, MetricKind};

/// Seconds; from the fastest answer to the slowest allowed request.
const REQUEST_BUCKETS: [f64; 14] =
    [5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 2.5e-2, 0.1, 0.5, 2.5, 10.0];

/// The family whose buckets have exemplars.
const REQUEST_DURATION: &str = "almanac_http_request_duration_seconds";

/// Seconds; from one document to ten thousand on a slow disk.
const RELOAD_BUCKETS: [f64; 12] = [1e-4, 2.5e-4, 1e-3, 2.5e-3, 1e-2, 2.5e-2, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0];

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    described: Vec<DescribedMetric>,
    /// In seconds since the epoch.
    created: f64,
    pub http_requests: IntCounterVec,
    pub http_duration: HistogramVec,
    /// By route.
    pub http_exemplars: Exemplars,
    pub http_connections: IntGauge,
    pub http_closed: IntCounterVec,
    pub reloads: IntCounterVec,
    pub reload_duration: Histogram,
    pub catalog_generation: IntGauge,
    pub catalog_tools: IntGauge,
    pub catalog_documents: IntGaugeVec,
    /// `almanac_catalog_watching`: 1 with file events, 0 by poll only.
    pub catalog_watching: IntGauge,
    pub catalog_reload: LastReload,
    pub config_reload: LastReload,
    pub tokens: IntGauge,
    pub tokens_reload: LastReload,
    pub watchdog_probes: IntCounterVec,
    /// Tools and modes that are labels of their own.
    pub tool_labels: Capped,
    pub tool_duration: KeptVec<Histogram>,
    pub tool_calls: KeptVec<IntCounter>,
    pub labels_folded: IntCounter,
    pub estimate_ratio: Histogram,
    pub interval_calls: IntCounterVec,
    pub interval_coverage: Gauge,
    pub suggest: Suggest,
    pub qualify: Qualify,
    pub store_commit: Histogram,
    pub store_queue: IntGauge,
    pub store_usable: IntGauge,
    pub database: DatabaseMetrics,
    pub memory: MemoryMetrics,
    pub llm: LlmMetrics,
    pub mcp: McpMetrics,
    pub relay: RelayMetrics,
    pub plugins: PluginMetrics,
    pub upstream: UpstreamMetrics,
    /// The events that are counted here, for whoever listens.
    pub feed: Feed,
    /// Calls of the last hour.
    pub minutes: Minutes,
}

/// Tools and modes with time series of their own.
const MAX_TOOL_LABELS: usize = 500;

/// Seconds; from a lookup to an hour of waiting for a person.
const TOOL_BUCKETS: [f64; 14] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0, 3600.0];

/// Recorded by estimated duration; what is between the middle two was within 20 %.
const RATIO_BUCKETS: [f64; 10] = [0.1, 0.25, 0.5, 0.8, 1.2, 2.0, 4.0, 10.0, 30.0, 100.0];

#[derive(Debug)]
pub struct Qualify {
    pub duration: Histogram,
    pub tools: Histogram,
    pub misses: IntCounter,
}

/// Tools offered for a message.
const OFFERED_BUCKETS: [f64; 10] = [1.0, 5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 200.0, 500.0];

#[derive(Debug)]
pub struct Suggest {
    pub tools: IntCounterVec,
    pub degraded: IntCounter,
    pub presets: IntGauge,
}

/// Did the last reload succeed, and when did one last?
#[derive(Debug)]
pub struct LastReload {
    successful: IntGauge,
    success_timestamp: Gauge,
}

impl LastReload {
    /// Takes note of a reload at `now`, in seconds since the epoch.
    pub fn record(&self, successful: bool, now: f64) {
        self.successful.set(successful.into());
        if successful {
            self.success_timestamp.set(now);
        }
    }
}

impl Metrics {
    /// All metrics at zero.
    ///
    /// # Errors
    /// If two metrics share a name, which a test rules out.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let made = Registered { registry: &registry, described: RefCell::default() };
        made.build()?;
        made.process()?;
        let metrics = Self {
            http_requests: made.counter_vec(
                "almanac_http_requests_total",
                "HTTP requests answered.",
                &["route", "method", "code"],
            )?,
            created: super::events::now(),
            http_exemplars: Exemplars::new(&REQUEST_BUCKETS),
            http_duration: made.histogram_vec(
                REQUEST_DURATION,
                "Time from a request's head to its answer, of a stream to its end.",
                &REQUEST_BUCKETS,
                &["route"],
            )?,
            http_connections: made.gauge("almanac_http_connections", "Connections open.")?,
            http_closed: made.counter_vec(
                "almanac_http_connections_closed_total",
                "Connections closed by the daemon for a limit.",
                &["reason"],
            )?,
            reloads: made.counter_vec("almanac_reloads_total", "Reloads of the catalog.", &["trigger", "outcome"])?,
            reload_duration: made.histogram(
                "almanac_reload_duration_seconds",
                "Time a reload of the catalog took.",
                &RELOAD_BUCKETS,
            )?,
            catalog_generation: made
                .gauge("almanac_catalog_generation", "Generation of the catalog that is served.")?,
            catalog_tools: made.gauge("almanac_catalog_tools", "Tools in the catalog.")?,
            catalog_documents: made.gauge_vec(
                "almanac_catalog_documents",
                "Tool documents by state: good, stale (the last good version is served), bad.",
                &["state"],
            )?,
            catalog_watching: made.gauge(
                "almanac_catalog_watching",
                "1 if file events announce changes, 0 if only the poll finds them.",
            )?,
            catalog_reload: made.last_reload("catalog")?,
            config_reload: made.last_reload("config")?,
            tokens: made.gauge("almanac_tokens", "Tokens that are let in.")?,
            tokens_reload: made.last_reload("tokens")?,
            watchdog_probes: made.counter_vec(
                "almanac_watchdog_probes_total",
                "Probes of the daemon by itself.",
                &["outcome"],
            )?,
            tool_labels: Capped::new(MAX_TOOL_LABELS),
            tool_duration: made.tool_duration()?,
            tool_calls: made.tool_calls()?,
            labels_folded: made.counter(
                "almanac_tool_labels_folded_total",
                "Recorded calls whose tool and mode are counted as other.",
            )?,
            estimate_ratio: made.histogram(
                "almanac_estimate_ratio",
                "Recorded duration divided by the estimated one.",
                &RATIO_BUCKETS,
            )?,
            interval_calls: made.counter_vec(
                "almanac_interval_calls_total",
                "Recorded calls by whether they ended inside the interval that nine in ten should.",
                &["inside"],
            )?,
            interval_coverage: made.coverage()?,
            suggest: made.suggest()?,
            qualify: made.qualify()?,
            store_commit: made.histogram(
                "almanac_store_commit_seconds",
                "Time to make a group of records durable.",
                &RELOAD_BUCKETS,
            )?,
            store_queue: made.gauge("almanac_store_queue_depth", "Batches that wait to be written.")?,
            store_usable: made.gauge(
                "almanac_store_usable",
                "1 if all can be stored; if 0, records are refused, or wait in the journal.",
            )?,
            database: DatabaseMetrics::new(&made)?,
            memory: MemoryMetrics::new(&made)?,
            llm: LlmMetrics::new(&made)?,
            mcp: McpMetrics::new(&made)?,
            relay: RelayMetrics::new(&made)?,
            plugins: PluginMetrics::new(&made)?,
            upstream: UpstreamMetrics::new(&made)?,
            feed: made.feed()?,
            minutes: Minutes::default(),
            described: made.described.take(),
            registry,
        };
        metrics.announce();
        Ok(metrics)
    }

    /// Shows what is counted rarely at 0: an alert on an increase misses a counter that appears at 1.
    fn announce(&self) {
        // Without a file of tokens nothing is wrong with it.
        self.tokens_reload.successful.set(1);
        for trigger in ["event", "poll", "signal", "request"] {
            for outcome in ["changed", "unchanged", "rejected"] {
                self.reloads.with_label_values(&[trigger, outcome]);
            }
        }
        for reason in ["header_read_timeout", "idle_timeout", "malformed_request", "request_timeout"] {
            self.http_closed.with_label_values(&[reason]);
        }
        self.store_usable.set(1);
        self.plugins.sandbox.set(1);
        self.interval_coverage.set(0.9);
        for inside in ["true", "false"] {
            self.interval_calls.with_label_values(&[inside]);
        }
        for source in ["rule", "observed", "complement"] {
            self.suggest.tools.with_label_values(&[source]);
        }
        for outcome in ["answered", "failed"] {
            self.watchdog_probes.with_label_values(&[outcome]);
        }
    }

    /// All metrics as a page for people.
    pub fn reference(&self) -> String {
        reference::page(&self.described)
    }

    /// The text exposition format, version 0.0.4.
    pub fn render(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(16 * 1024);
        let rendered = TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .and_then(|()| self.tool_duration.write(&mut text))
            .and_then(|()| self.tool_calls.write(&mut text));
        if let Err(error) = rendered {
            tracing::error!(%error, "metrics cannot be rendered");
        }
        text
    }

    /// In the format that a request with this `Accept` rather has, OpenMetrics 1.0 or the text exposition format 0.0.4,
    /// with its content type.
    pub fn render_as(&self, accept: &str) -> (Vec<u8>, &'static str) {
        let text = self.render();
        if !openmetrics::is_preferred(accept) {
            return (text, "text/plain; version=0.0.4; charset=utf-8");
        }
        self.http_exemplars.want();
        let exemplars = (REQUEST_DURATION, &self.http_exemplars);
        let translated = openmetrics::translate(&String::from_utf8_lossy(&text), self.created, exemplars);
        (translated.into_bytes(), openmetrics::CONTENT_TYPE)
    }

    /// Route and code handles are resolved once: a lookup by labels costs more than the count.
    pub fn http_counter(&self, route: &str, method: &str, code: &str) -> IntCounter {
        self.http_requests.with_label_values(&[route, method, code])
    }
}

/// Makes metrics and registers them.
struct Registered<'r> {
    registry: &'r Registry,
    described: RefCell<Vec<DescribedMetric>>,
}

impl Registered<'_> {
    fn register<C: MetricKind + Clone + 'static>(&self, collector: C) -> Result<C, prometheus::Error> {
        self.registry.register(Box::new(collector.clone()))?;
        self.described.borrow_mut().extend(DescribedMetric::of(&collector.desc(), C::KIND));
        Ok(collector)
    }

    /// What this program was built from.
    fn build(&self) -> Result<(), prometheus::Error> {
        let build =
            self.gauge_vec("almanac_build_info", "Constant 1, labelled with the build.", &["version", "rustc"])?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION"), env!("RUSTC_VERSION")]).set(1);
        Ok(())
    }

    /// The standard metrics of a process.
    fn process(&self) -> Result<(), prometheus::Error> {
        let process = ProcessMetrics::of_this_one();
        self.described.borrow_mut().extend(DescribedMetric::of(&process.desc(), "gauge"));
        self.registry.register(Box::new(process))
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.register(IntGauge::new(name, help)?)
    }

    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        self.register(IntCounter::new(name, help)?)
    }

    fn gauge_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
        self.register(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    fn counter_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
        self.register(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram, prometheus::Error> {
        self.register(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))?)
    }

    fn histogram_vec(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
        labels: &[&str],
    ) -> Result<HistogramVec, prometheus::Error> {
        self.register(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels)?)
    }

    fn tool_duration(&self) -> Result<KeptVec<Histogram>, prometheus::Error> {
        let make = |common| Histogram::with_opts(HistogramOpts { common_opts: common, buckets: TOOL_BUCKETS.to_vec() });
        let options = Opts::new("almanac_tool_duration_seconds", "Recorded durations of calls.");
        self.kept(options, ["tool", "mode"], make)
    }

    fn tool_calls(&self) -> Result<KeptVec<IntCounter>, prometheus::Error> {
        let options = Opts::new("almanac_tool_calls_total", "Recorded calls by outcome.");
        self.kept(options, ["tool", "outcome"], IntCounter::with_opts)
    }

    /// What writes its own text, and is in no registry.
    fn kept<M: Changing + MetricKind>(
        &self,
        options: Opts,
        labels: [&'static str; 2],
        make: fn(Opts) -> Result<M, prometheus::Error>,
    ) -> Result<KeptVec<M>, prometheus::Error> {
        self.described.borrow_mut().push(DescribedMetric::of_options(&options, &labels, M::KIND));
        KeptVec::new(options, labels, make)
    }

    fn coverage(&self) -> Result<Gauge, prometheus::Error> {
        self.register(Gauge::new(
            "almanac_interval_coverage_ratio",
            "Share of recent calls that ended inside the interval that nine in ten should; older calls fade.",
        )?)
    }

    fn feed(&self) -> Result<Feed, prometheus::Error> {
        let listening = self.gauge("almanac_event_listeners", "Clients that listen to events.")?;
        let missed = self.counter("almanac_events_missed_total", "Events that a listener was too slow for.")?;
        Ok(Feed::new(listening, missed))
    }

    fn suggest(&self) -> Result<Suggest, prometheus::Error> {
        Ok(Suggest {
            tools: self.counter_vec(
                "almanac_suggestions_total",
                "Tools suggested, by where the suggestion came from: rule, observed, complement, preset.",
                &["source"],
            )?,
            degraded: self.counter(
                "almanac_suggestions_degraded_total",
                "Answers to which a rule library could not contribute.",
            )?,
            presets: self.gauge("almanac_presets", "Presets offered.")?,
        })
    }

    fn qualify(&self) -> Result<Qualify, prometheus::Error> {
        Ok(Qualify {
            duration: self.histogram(
                "almanac_qualify_duration_seconds",
                "Time to select the tools for a message.",
                &REQUEST_BUCKETS,
            )?,
            tools: self.histogram("almanac_qualified_tools", "Tools offered for a message.", &OFFERED_BUCKETS)?,
            misses: self.counter("almanac_missed_tools_total", "Tools that were needed and not offered.")?,
        })
    }

    fn last_reload(&self, what: &str) -> Result<LastReload, prometheus::Error> {
        let name = format!("almanac_{what}_last_reload_successful");
        let successful = self.gauge(&name, &format!("1 if the last reload of the {what} succeeded."))?;
        let name = format!("almanac_{what}_last_reload_success_timestamp_seconds");
        let help = format!("When a reload of the {what} last succeeded.");
        Ok(LastReload { successful, success_timestamp: self.register(Gauge::new(name, help)?)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_rendered() {
        let metrics = Metrics::new().unwrap();
        metrics.http_counter("/v1/tools", "GET", "200").inc();
        metrics.config_reload.record(true, 12.0);
        metrics.config_reload.record(false, 13.0);
        let text = String::from_utf8(metrics.render()).unwrap();
        let check = |line: &str| assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        check(r#"almanac_http_requests_total{code="200",method="GET",route="/v1/tools"} 1"#);
        check("almanac_config_last_reload_successful 0");
        check("almanac_config_last_reload_success_timestamp_seconds 12");
    }
}
