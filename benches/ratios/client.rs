//! A blocking client on one connection that stays open.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// A server that is silent for this long will not answer any more.
const SILENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

/// An answer as it came.
pub(crate) struct Answer<'c> {
    pub(crate) bytes: &'c [u8],
    head: &'c str,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        Ok(Self { stream, received: Vec::new() })
    }

    /// Asks for `path`, with `headers` (whole lines) besides `Host`.
    pub(crate) fn get(&mut self, path: &str, headers: &str) -> Result<Answer<'_>> {
        self.send(request(path, headers).as_bytes())?;
        self.receive()
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<Answer<'_>> {
        self.post_with(path, "", body)
    }

    /// The same with further `headers` (whole lines).
    pub(crate) fn post_with(&mut self, path: &str, headers: &str, body: &str) -> Result<Answer<'_>> {
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}");
        self.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
        self.receive()
    }

    pub(crate) fn send(&mut self, request: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(request)?)
    }

    /// Receives until the end of an answer's head. Returns how many bytes that has.
    pub(crate) fn head(&mut self) -> Result<usize> {
        self.received.clear();
        let mut chunk = [0; 16 * 1024];
        loop {
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                bail!("the server closed the connection");
            }
            self.received.extend_from_slice(&chunk[..read]);
            if let Some(end) = find(&self.received, b"\r\n\r\n") {
                return Ok(end + 4);
            }
        }
    }

    pub(crate) fn receive(&mut self) -> Result<Answer<'_>> {
        let head = self.head()?;
        let mut chunk = [0; 16 * 1024];
        let text = str::from_utf8(&self.received[..head])?;
        let length = match status_of(text) {
            304 => 0,
            _ => header_of(text, "content-length").context("the answer has no length")?.parse()?,
        };
        while self.received.len() < head + length {
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                bail!("the server closed the connection within an answer");
            }
            self.received.extend_from_slice(&chunk[..read]);
        }
        let head = str::from_utf8(&self.received[..head])?;
        Ok(Answer { bytes: &self.received, head })
    }
}

/// A request as bytes to send.
pub(crate) fn request(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
}

impl Answer<'_> {
    pub(crate) fn status(&self) -> u16 {
        status_of(self.head)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header_of(self.head, name)
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.head.len()..]
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        find(self.body(), text.as_bytes()).is_some()
    }
}

fn status_of(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

fn header_of<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let pairs = head.lines().filter_map(|line| line.split_once(':'));
    pairs.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
