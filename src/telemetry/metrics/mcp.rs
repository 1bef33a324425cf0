//! Metrics of the MCP door.

use prometheus::{HistogramVec, IntCounterVec, IntGauge, IntGaugeVec};

use super::{REQUEST_BUCKETS, Registered};

/// What MCP clients ask.
#[derive(Debug)]
pub struct McpMetrics {
    /// `almanac_mcp_requests_total{method,era,outcome}`.
    pub requests: IntCounterVec,
    /// `almanac_mcp_request_duration_seconds{method}`.
    pub duration: HistogramVec,
    /// `almanac_mcp_sessions`.
    pub sessions: IntGauge,
    /// `almanac_mcp_streams`.
    pub streams: IntGauge,
    /// `almanac_mcp_list_bytes{view}`.
    pub list_bytes: IntGaugeVec,
}

impl McpMetrics {
    pub(super) fn new(made: &Registered<'_>) -> Result<Self, prometheus::Error> {
        Ok(Self {
            requests: made.counter_vec(
                "almanac_mcp_requests_total",
                "MCP requests by outcome: result, error, refused (it broke the protocol), cancelled.",
                &["method", "era", "outcome"],
            )?,
            duration: made.histogram_vec(
                "almanac_mcp_request_duration_seconds",
                "Time from an MCP request to its answer.",
                &REQUEST_BUCKETS,
                &["method"],
            )?,
            sessions: made.gauge("almanac_mcp_sessions", "Legacy MCP sessions of which something is remembered.")?,
            streams: made.gauge("almanac_mcp_streams", "Streams of events open to MCP clients.")?,
            list_bytes: made.gauge_vec(
                "almanac_mcp_list_bytes",
                "Size of the list of tools that a view answered last.",
                &["view"],
            )?,
        })
    }
}
