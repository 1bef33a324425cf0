//! Tells the daemon of the calls that were measured.

use serde_json::{Value, json};

use crate::cli::client::{Client, ClientError};
use crate::timing::{Complexity, Observation};
use crate::wire::timing::RecordAnswer;

/// Records calls, or does nothing.
#[derive(Debug)]
pub(super) struct Recorder {
    client: Option<Client>,
    /// Records that were new and are durable.
    pub(super) recorded: usize,
    /// Calls that were measured but not recorded, and why the first of them was not.
    pub(super) lost: Option<(usize, ClientError)>,
}

impl Recorder {
    pub(super) fn new(client: Option<Client>) -> Self {
        Self { client, recorded: 0, lost: None }
    }

    /// Finds out whether the daemon is there, before anybody waits for a measurement.
    pub(super) async fn knock(&self) -> Result<(), ClientError> {
        match &self.client {
            Some(client) => client.send("GET", "/v1/timing?limit=1", None).await.map(drop),
            None => Ok(()),
        }
    }

    /// Records a batch. It fails only if nothing was ever recorded: later, the measurement is worth more than the
    /// record.
    pub(super) async fn record(&mut self, calls: Vec<Value>) -> Result<(), ClientError> {
        let Some(client) = &self.client else { return Ok(()) };
        let count = calls.len();
        let body = Value::from(calls).to_string().into();
        match client.ask::<RecordAnswer>("POST", "/v1/executions", Some(body)).await {
            Ok(answer) => self.recorded += answer.recorded,
            Err(error) if self.recorded == 0 => return Err(error),
            Err(error) => self.lost.get_or_insert((0, error)).0 += count,
        }
        Ok(())
    }
}

/// A call as it is recorded. A second record with the same `key` is the same call told again.
pub(super) fn body(tool: &str, mode: &str, sizes: &Complexity, observation: Observation, key: Option<&str>) -> Value {
    json!({
        "tool_name": tool,
        "mode_name": Some(mode).filter(|mode| !mode.is_empty()),
        "duration_ms": observation.duration_ms,
        "outcome": observation.outcome.as_str(),
        "complexity": {
            "content_length": sizes.content_length,
            "num_perspectives": sizes.num_perspectives,
            "num_branches": sizes.num_branches,
            "thinking_budget": sizes.thinking_budget,
            "context_tokens": sizes.context_tokens,
        },
        "idempotency_key": key,
    })
}
