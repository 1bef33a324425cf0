//! A question that the daemon asks itself, for the watchdog.
//!
//! It goes the way of all questions (a connection's task, the service, a thread for work that blocks), but over no
//! socket: clients that hold every place would otherwise have the daemon taken for dead.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::connection;
use super::guard::Door;
use super::service::Service;

/// Answered on a thread that may block, in little time on any catalog.
const QUESTION: &[u8] = b"GET /v1/presets?limit=1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 ";

/// Bytes that wait between the two ends.
const BUFFER: usize = 4096;

/// Asks.
#[derive(Debug, Clone)]
pub struct Probe {
    pub(super) service: Arc<Service>,
    pub(super) stopping: watch::Receiver<bool>,
    /// Take connections.
    pub(super) accepting: Vec<AbortHandle>,
}

/// The daemon does not do what it is there for.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A socket is gone, or nobody takes connections on it any more.
    #[error("a listening socket is gone, or not served any more")]
    Deaf,
    /// Another answer than there must be.
    #[error("the probe was answered `{0}`")]
    Answer(String),
    /// No answer at all.
    #[error("the probe was not answered")]
    Broken(#[from] io::Error),
}

impl Probe {
    /// Asks once. Anything but the answer is an error.
    pub async fn ask(&self) -> Result<(), ProbeError> {
        if self.accepting.iter().any(AbortHandle::is_finished) && !*self.stopping.borrow() {
            return Err(ProbeError::Deaf);
        }
        let (mut client, server) = duplex(BUFFER);
        let serving = tokio::spawn(connection::serve(
            Arc::clone(&self.service),
            Door::Admin,
            server,
            None,
            self.stopping.clone(),
        ));
        let answer = async {
            client.write_all(QUESTION).await?;
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.map(|_| answer)
        };
        let answer = answer.await;
        serving.abort();
        let answer = answer?;
        if answer.starts_with(ANSWER) {
            return Ok(());
        }
        let head = answer.split(|&byte| byte == b'\r').next().unwrap_or_default();
        Err(ProbeError::Answer(String::from_utf8_lossy(head).into_owned()))
    }
}
