//! Events of calls that are relayed to MCP servers.

use std::time::Duration;

use serde::Serialize;

use crate::telemetry::Metrics;
use crate::telemetry::feed::EventType;

/// A call of a server's tool has ended; the trail of who called what.
#[derive(Debug, Clone, Copy)]
pub struct ToolRelayed<'r> {
    /// Whose call it was.
    pub tenant: &'r str,
    pub server: &'r str,
    /// By the catalog's name.
    pub tool: &'r str,
    /// success, error, timeout, cancelled, or refused if the server did not get it.
    pub outcome: &'r str,
    /// At the server.
    pub duration: Duration,
    /// Before it was sent.
    pub queued: Duration,
    /// The token's name.
    pub token: &'r str,
    pub session: Option<&'r str>,
    /// The caller's `traceparent`.
    pub trace: Option<&'r str>,
    /// Only of servers whose configuration wants them in the log.
    pub arguments: Option<&'r str>,
}

/// As listeners are told.
#[derive(Serialize)]
struct ToldRelayed<'r> {
    server: &'r str,
    tool: &'r str,
    outcome: &'r str,
    duration_ms: u64,
    session_id: Option<&'r str>,
}

impl ToolRelayed<'_> {
    /// Logs it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { server, tool, outcome, duration, queued, token, session, trace, arguments, .. } = self;
        let told = ToldRelayed { server, tool, outcome, duration_ms: duration.as_millis() as u64, session_id: session };
        metrics.feed.tell_tenant(EventType::ToolRelayed, self.tenant, &told);
        tracing::info!(
            server,
            tool,
            outcome,
            duration_ms = duration.as_millis() as u64,
            queued_ms = queued.as_millis() as u64,
            token,
            session = session.unwrap_or_default(),
            traceparent = trace.unwrap_or_default(),
            arguments = arguments.unwrap_or_default(),
            "tool relayed",
        );
    }
}
