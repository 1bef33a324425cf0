//! Metrics of MCP servers behind the daemon.

use prometheus::{HistogramVec, IntCounterVec, IntGaugeVec};

use super::Registered;

/// Seconds; from a program that is there to one that is downloaded first.
const START_BUCKETS: [f64; 9] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0];

/// What is counted of MCP servers. Names come from the configuration.
#[derive(Debug)]
pub struct UpstreamMetrics {
    /// `almanac_mcp_upstream_up{server}`: 1 while it answers.
    pub up: IntGaugeVec,
    /// `almanac_mcp_upstream_starts_total{server,reason}`.
    pub starts: IntCounterVec,
    /// `almanac_mcp_upstream_start_seconds{server}`: until its lists were there.
    pub start_seconds: HistogramVec,
    /// `almanac_mcp_calls_in_flight{server}`.
    pub in_flight: IntGaugeVec,
    /// `almanac_mcp_blocked_tools{server}`: definitions that wait for an approval.
    pub blocked_tools: IntGaugeVec,
    /// `almanac_mcp_changed_tools_total{server}`: definitions that changed after they were pinned.
    pub changed: IntCounterVec,
}

impl UpstreamMetrics {
    /// A server that is no longer configured has no state.
    pub fn forget(&self, server: &str) {
        for gauge in [&self.up, &self.in_flight, &self.blocked_tools] {
            // It fails if there was none.
            let _ = gauge.remove_label_values(&[server]);
        }
    }

    pub(super) fn new(made: &Registered<'_>) -> Result<Self, prometheus::Error> {
        Ok(Self {
            up: made.gauge_vec(
                "almanac_mcp_upstream_up",
                "1 while an MCP server answers, also one that is stopped until the next call of it, else 0.",
                &["server"],
            )?,
            starts: made.counter_vec(
                "almanac_mcp_upstream_starts_total",
                "Starts of MCP servers by the reason.",
                &["server", "reason"],
            )?,
            start_seconds: made.histogram_vec(
                "almanac_mcp_upstream_start_seconds",
                "Time from the start of an MCP server until its lists were there.",
                &START_BUCKETS,
                &["server"],
            )?,
            in_flight: made.gauge_vec(
                "almanac_mcp_calls_in_flight",
                "Requests to an MCP server that have a slot.",
                &["server"],
            )?,
            blocked_tools: made.gauge_vec(
                "almanac_mcp_blocked_tools",
                "Tools of an MCP server whose definitions wait for an approval.",
                &["server"],
            )?,
            changed: made.counter_vec(
                "almanac_mcp_changed_tools_total",
                "Definitions of tools that an MCP server changed after they were pinned.",
                &["server"],
            )?,
        })
    }
}
