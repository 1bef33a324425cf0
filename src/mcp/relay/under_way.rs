//! Calls that are under way, for whoever looks at them.

use std::time::Duration;

use super::super::Mcp;
use super::ongoing::OngoingCall;

/// A call of a server's tool, as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct CallUnderWay {
    pub server: String,
    /// By the name that clients know it by.
    pub tool: String,
    /// Since its server has it; nothing while it waits to be sent.
    pub running: Option<Duration>,
    /// What is left of it in half of all such cases, and at most in nine of ten, in ms.
    pub p50_left_ms: u64,
    pub p90_left_ms: u64,
    /// The probability that a call takes longer than this one has, 0 to 1.
    pub longer_probability: f64,
}

impl CallUnderWay {
    fn of(call: &OngoingCall) -> Self {
        let running = call.sent.get().map(std::time::Instant::elapsed);
        let elapsed_ms = running.unwrap_or_default().as_millis() as u64;
        let [p50_left_ms, p90_left_ms] = call.left_ms();
        Self {
            server: call.tool.server.name.clone(),
            tool: call.tool.name.to_string(),
            running,
            p50_left_ms,
            p90_left_ms,
            longer_probability: 1.0 - call.forecast.probability_within(elapsed_ms),
        }
    }
}

impl Mcp {
    /// The tenant's calls that are under way, the one that began first at the beginning.
    pub fn calls_under_way(&self, tenant: &str) -> Vec<CallUnderWay> {
        self.relay.calls.running(tenant).iter().map(|call| CallUnderWay::of(call)).collect()
    }
}
