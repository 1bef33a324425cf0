//! A question the daemon asks itself through its own door, as a client would.

use std::io;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const QUESTION: &[u8] = b"GET /live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 ";

/// Asks `/live` over the admin socket. Anything but 200 is an error.
pub(super) async fn probe(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(QUESTION).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    if answer.starts_with(ANSWER) {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "the probe was not answered 200"))
    }
}
