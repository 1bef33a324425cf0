//! Records calls beside whoever hears of them: waiting for the disk would stretch the durations that are measured
//! there.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Engine;
use crate::store::StoreError;
use crate::timing::Execution;

/// Executions that wait for the recorder, and of one batch.
const QUEUE: usize = 1024;

/// Records what is sent to it, until nobody can send any more.
#[derive(Debug)]
pub struct Recorder(JoinHandle<Result<usize, StoreError>>);

impl Engine {
    /// A recorder, and where to send it what ended: calls without idempotency keys. Each batch is durable as a whole;
    /// one that fails is lost, and the next ones are recorded all the same.
    pub fn record_beside(self: &Arc<Self>) -> (mpsc::Sender<Execution>, Recorder) {
        let (sender, mut waiting) = mpsc::channel::<Execution>(QUEUE);
        let engine = Arc::clone(self);
        let recorder = tokio::spawn(async move {
            let mut recorded = 0;
            let mut outcome = Ok(());
            let mut batch = Vec::new();
            while waiting.recv_many(&mut batch, QUEUE).await > 0 {
                let timed = batch.iter().filter(|execution| execution.duration_ms.is_some()).count();
                match engine.record(std::mem::take(&mut batch)).await {
                    // They have no keys, so all of them are new.
                    Ok(_) => recorded += timed,
                    Err(error) => outcome = Err(error),
                }
            }
            outcome.map(|()| recorded)
        });
        (sender, Recorder(recorder))
    }
}

impl Recorder {
    /// Waits until all that was sent is recorded, which is when the last sender has gone; how many had a duration.
    ///
    /// # Errors
    /// The last failure, if a batch could not be stored.
    pub async fn end(self) -> Result<usize, StoreError> {
        self.0.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }
}
