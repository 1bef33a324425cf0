//! The socket to a worker, with what is still to be sent and what has come in.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::net::UnixStream;

use super::fault::LibraryFault;
use super::thread_limit;
use super::wire::{MAX_REPLY, Order, Reply, WireError, decode, encode, frame_length};

/// The socket to a worker, with what is still to be sent and what has come in.
pub(super) struct SocketLine {
    socket: Arc<UnixStream>,
    unsent: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

/// Sends on a line on which nothing waits to be sent.
pub(super) struct FreeLine(Arc<UnixStream>);

impl FreeLine {
    /// Sends as much of an order as the socket takes at once. Returns how many bytes; of a broken line none.
    pub(super) fn send(&self, order: &[u8]) -> usize {
        self.0.try_write(order).unwrap_or_default()
    }
}

/// Read at once, in bytes, or more.
const CHUNK: usize = 16 << 10;

impl SocketLine {
    /// A line over `socket`. Needs a runtime.
    pub(super) fn new(socket: std::os::unix::net::UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = UnixStream::from_std(socket)?;
        Ok(Self { socket: Arc::new(socket), unsent: Vec::new(), sent: 0, received: Vec::new() })
    }

    /// Another way to send on it.
    pub(super) fn free(&self) -> FreeLine {
        FreeLine(Arc::clone(&self.socket))
    }

    /// Has the order sent with the next conversation.
    pub(super) fn order(&mut self, order: &Order) {
        encode(order, &mut self.unsent);
    }

    /// Sends nothing any more.
    pub(super) fn hang_up(&self) {
        // It fails if the other end is gone.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    /// Has bytes sent that are an order already.
    pub(super) fn raw(&mut self, order: &[u8]) {
        self.unsent.extend_from_slice(order);
    }

    /// Sends what is to be sent, and takes the listener for the threads of a worker that has just started.
    pub(super) async fn receive_listener(&mut self) -> Result<Option<OwnedFd>, LibraryFault> {
        while !self.send()? {
            self.socket.writable().await.map_err(|error| broken(&error))?;
        }
        thread_limit::receive(&self.socket).await.map_err(|error| broken(&error))
    }

    /// Sends what is to be sent, and reads one reply. May be dropped and called again.
    pub(super) async fn converse(&mut self) -> Result<Reply, LibraryFault> {
        loop {
            if let Some(reply) = self.take()? {
                return Ok(reply);
            }
            let is_sent = self.send()?;
            self.received.reserve(CHUNK);
            // A worker that has answers to write may read nothing before they are read.
            let interest = if is_sent { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            self.socket.ready(interest).await.map_err(|error| broken(&error))?;
            match self.socket.try_read_buf(&mut self.received) {
                Ok(0) => return Err(LibraryFault::Crash("it closed its socket".to_owned())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    /// Sends what the socket takes; is that all?
    fn send(&mut self) -> Result<bool, LibraryFault> {
        while self.sent < self.unsent.len() {
            match self.socket.try_write(&self.unsent[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(broken(&error)),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Ok(true)
    }

    /// The reply that has come in whole, if one has.
    fn take(&mut self) -> Result<Option<Reply>, LibraryFault> {
        let length = frame_length(&self.received, MAX_REPLY).map_err(|error| garbled(&error))?;
        let Some(length) = length.filter(|&length| length <= self.received.len()) else { return Ok(None) };
        let reply = decode(&self.received[..length]).map_err(|error| garbled(&error))?;
        self.received.drain(..length);
        Ok(Some(reply))
    }
}

fn broken(error: &io::Error) -> LibraryFault {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return LibraryFault::Crash("it closed its socket".to_owned());
    }
    LibraryFault::Crash(format!("its socket broke: {error}"))
}

fn garbled(error: &WireError) -> LibraryFault {
    match error {
        WireError::Long(_) => LibraryFault::Oversized(error.to_string()),
        WireError::Garbled(_) | WireError::Trailing(_) => LibraryFault::Protocol(error.to_string()),
    }
}
