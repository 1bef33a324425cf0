//! The floor under any HTTP server: one thread that waits for sockets, looks for the end of a request, and writes bytes
//! that stand ready. It knows no header, no method and no limit.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::Result;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

const LISTENER: u64 = 0;

/// Answers everything with `answer`, head included. Ends with the process.
pub(crate) fn serve(address: SocketAddr, answer: &[u8]) -> Result<()> {
    let listener = TcpListener::bind(address)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    let mut latest = LISTENER;
    let mut events = Vec::with_capacity(128);
    loop {
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let id = event.data.u64();
            if id == LISTENER {
                latest += 1;
                let connection = Connection::accept(&listener)?;
                epoll::add(&epoll, &connection.stream, EventData::new_u64(latest), EventFlags::IN)?;
                connections.insert(latest, connection);
            } else if connections.get_mut(&id).is_some_and(|connection| connection.answer(answer).is_err()) {
                connections.remove(&id);
            }
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// What came of a request so far.
    request: [u8; 4096],
    length: usize,
}

impl Connection {
    fn accept(listener: &TcpListener) -> io::Result<Self> {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request: [0; 4096], length: 0 })
    }

    /// An error ends the connection. So does an answer for which the socket has no room: whoever measures reads them
    /// all.
    fn answer(&mut self, answer: &[u8]) -> io::Result<()> {
        let read = self.stream.read(&mut self.request[self.length..])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.length += read;
        // Nobody here sends the next request before this one is answered, so its end is the end of what came.
        if self.request[..self.length].ends_with(b"\r\n\r\n") {
            self.length = 0;
            self.stream.write_all(answer)?;
        }
        Ok(())
    }
}
