//! Takes connections, no more at once than the limit, and drains them at the end.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::connection;
use super::guard::Door;
use super::service::Service;

/// Connections to the admin socket at once.
const ADMIN_CONNECTIONS: usize = 64;

/// After a failed accept, usually for want of file descriptors.
const BREATHER: Duration = Duration::from_millis(50);

/// A socket that listens.
#[derive(Debug)]
pub enum Listener {
    /// The HTTP door.
    Tcp(TcpListener),
    /// The admin socket.
    Unix(UnixListener),
}

/// Open doors.
#[derive(Debug)]
pub struct Doors {
    service: Arc<Service>,
    stopping: watch::Sender<bool>,
    accepting: Vec<JoinHandle<()>>,
    /// Ends when the last connection has.
    open: mpsc::Receiver<()>,
}

impl Doors {
    /// Serves on all `listeners` from now on.
    pub fn open(service: &Arc<Service>, listeners: Vec<Listener>) -> io::Result<Self> {
        let (stopping, _) = watch::channel(false);
        let (alive, open) = mpsc::channel(1);
        let tcp_limit = Arc::new(Semaphore::new(service.limits().max_connections));
        let mut accepting = Vec::new();
        for listener in listeners {
            let house = House { service: Arc::clone(service), stopping: stopping.subscribe(), alive: alive.clone() };
            accepting.push(match listener {
                Listener::Tcp(listener) => {
                    let door = Door::at(listener.local_addr()?);
                    tokio::spawn(tcp(listener, door, house, Arc::clone(&tcp_limit)))
                }
                Listener::Unix(listener) => tokio::spawn(unix(listener, house)),
            });
        }
        Ok(Self { service: Arc::clone(service), stopping, accepting, open })
    }

    /// Accepts no more, lets requests in flight finish, and closes what is left at the deadline. Returns whether all finished.
    pub async fn drain(mut self, deadline: Duration) -> bool {
        self.service.stop();
        self.stopping.send_replace(true);
        for accepting in self.accepting {
            // It ends by itself; an error means it panicked, and was logged as such.
            let _ = accepting.await;
        }
        timeout(deadline, self.open.recv()).await.is_ok()
    }
}

/// What a connection's task is given.
#[derive(Clone)]
struct House {
    service: Arc<Service>,
    stopping: watch::Receiver<bool>,
    alive: mpsc::Sender<()>,
}

async fn tcp(listener: TcpListener, door: Door, house: House, limit: Arc<Semaphore>) {
    while let Some(((stream, _), permit)) = next(&house, &limit, || listener.accept()).await {
        // Without it an answer could wait for the acknowledgement of the one before; a failure only costs time.
        let _ = stream.set_nodelay(true);
        spawn(&house, door, stream, permit);
    }
}

async fn unix(listener: UnixListener, house: House) {
    let limit = Arc::new(Semaphore::new(ADMIN_CONNECTIONS));
    while let Some(((stream, _), permit)) = next(&house, &limit, || listener.accept()).await {
        spawn(&house, Door::Admin, stream, permit);
    }
}

type Permit = tokio::sync::OwnedSemaphorePermit;

/// The next connection and the right to serve it; nothing when the doors close.
async fn next<A, F>(house: &House, limit: &Arc<Semaphore>, accept: impl Fn() -> F) -> Option<(A, Permit)>
where
    F: Future<Output = io::Result<A>>,
{
    let mut stopping = house.stopping.clone();
    let accepted = async {
        let mut said = false;
        loop {
            let permit = Arc::clone(limit).acquire_owned().await.ok()?;
            match accept().await {
                Ok(accepted) => return Some((accepted, permit)),
                Err(error) => {
                    if !said {
                        tracing::warn!(%error, "cannot accept a connection");
                        said = true;
                    }
                    sleep(BREATHER).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        _ = stopping.wait_for(|stopping| *stopping) => None,
        accepted = accepted => accepted,
    }
}

fn spawn<T>(house: &House, door: Door, stream: T, permit: Permit)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let House { service, stopping, alive } = house.clone();
    tokio::spawn(async move {
        let connections = service.metrics().http_connections.clone();
        connections.inc();
        connection::serve(service, door, stream, stopping).await;
        connections.dec();
        drop((permit, alive));
    });
}
