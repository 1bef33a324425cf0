//! A question the daemon asks itself through its own door, as a client would.

use std::path::Path;

use hyper::StatusCode;

use crate::client::{Client, ClientError};

/// The daemon did not answer as it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the probe was answered {0}")]
    Status(StatusCode),
}

/// Asks `/live` over the admin socket.
pub(super) async fn probe(socket: &Path) -> Result<(), ProbeError> {
    let (status, _) = Client::socket(socket).send("GET", "/live", None).await?;
    if status == StatusCode::OK { Ok(()) } else { Err(ProbeError::Status(status)) }
}
