//! Metrics of rule libraries.

use prometheus::{HistogramVec, IntCounterVec, IntGauge, IntGaugeVec};

use super::Registered;

/// Seconds; from a call through a socket to one that nobody waits for.
const CALL_BUCKETS: [f64; 12] = [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.25];

/// What is counted of rule libraries.
#[derive(Debug)]
pub struct PluginMetrics {
    pub calls: IntCounterVec,
    pub call_duration: HistogramVec,
    pub restarts: IntCounterVec,
    pub refused_updates: IntCounterVec,
    /// `almanac_plugin_update_refused{plugin}`: 1 while its file is a version that does not serve.
    pub is_outdated: IntGaugeVec,
    /// `almanac_plugin_state{plugin,state}`: 1 for the state it is in, 0 for the others.
    pub state: IntGaugeVec,
    /// `almanac_plugin_sandbox_available`: 1 if the kernel can confine the files of workers.
    pub sandbox: IntGauge,
}

impl PluginMetrics {
    pub(super) fn new(made: &Registered<'_>) -> Result<Self, prometheus::Error> {
        Ok(Self {
            calls: made.counter_vec(
                "almanac_plugin_calls_total",
                "Calls of rule libraries by how they came out.",
                &["plugin", "outcome"],
            )?,
            call_duration: made.histogram_vec(
                "almanac_plugin_call_duration_seconds",
                "Time from a call of a rule library to its answer, or to the end of the wait.",
                &CALL_BUCKETS,
                &["plugin"],
            )?,
            restarts: made.counter_vec(
                "almanac_plugin_restarts_total",
                "Workers of rule libraries that were replaced, by the reason.",
                &["plugin", "reason"],
            )?,
            refused_updates: made.counter_vec(
                "almanac_plugin_updates_refused_total",
                "New versions of rule libraries that were refused or failed, at each try, while the old one served on.",
                &["plugin"],
            )?,
            is_outdated: made.gauge_vec(
                "almanac_plugin_update_refused",
                "1 while the file is a version that was refused or failed, and the old one serves on, else 0.",
                &["plugin"],
            )?,
            state: made.gauge_vec(
                "almanac_plugin_state",
                "1 for the state that a rule library is in, 0 for the others.",
                &["plugin", "state"],
            )?,
            sandbox: made.gauge(
                "almanac_plugin_sandbox_available",
                "1 if the kernel can confine the files of workers, 0 if it has no Landlock.",
            )?,
        })
    }
}
