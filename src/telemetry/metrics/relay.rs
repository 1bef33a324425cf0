//! Metrics of calls that are relayed to MCP servers.

use prometheus::{IntCounter, IntCounterVec};

use super::Registered;

/// What is counted of relayed calls. Servers' names come from the configuration.
#[derive(Debug)]
pub struct RelayMetrics {
    /// `almanac_mcp_calls_total{server,outcome}`.
    pub calls: IntCounterVec,
    /// `almanac_mcp_keepalives_total`.
    pub keepalives: IntCounter,
    /// `almanac_mcp_detached_total{end}`.
    pub detached: IntCounterVec,
    /// `almanac_mcp_saved_calls_total`.
    pub saved: IntCounter,
    /// `almanac_mcp_joined_total`.
    pub joined: IntCounter,
    /// `almanac_mcp_unrecorded_total`.
    pub unrecorded: IntCounter,
}

impl RelayMetrics {
    pub(super) fn new(made: &Registered<'_>) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            calls: made.counter_vec(
                "almanac_mcp_calls_total",
                "Calls of MCP servers' tools by outcome: as recorded, or refused (the server did not get it).",
                &["server", "outcome"],
            )?,
            keepalives: made.counter(
                "almanac_mcp_keepalives_total",
                "Notifications of progress that were made from the forecast of a call.",
            )?,
            detached: made.counter_vec(
                "almanac_mcp_detached_total",
                "Calls that outlived their clients' patience, by what became of them: delivered, cancelled.",
                &["end"],
            )?,
            saved: made.counter(
                "almanac_mcp_saved_calls_total",
                "Results that were delivered after their clients would have given up.",
            )?,
            joined: made
                .counter("almanac_mcp_joined_total", "Calls that were asked again and joined to what ran already.")?,
            unrecorded: made
                .counter("almanac_mcp_unrecorded_total", "Calls of MCP servers' tools that could not be stored.")?,
        };
        for end in ["delivered", "cancelled"] {
            metrics.detached.with_label_values(&[end]);
        }
        Ok(metrics)
    }
}
