//! Takes connections, no more at once than the limit, and drains them at the end.
//!
//! What is beyond the limit is told so: a client that waits in silence cannot know that it waits in vain.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use prometheus::IntGauge;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::connection;
use super::guard::Door;
use super::places::{NoPlace, Place, Places};
use super::probe::Probe;
use super::service::Service;
use super::socket::Socket;
use crate::http::problem::Problem;
use crate::telemetry::events::ConnectionClosed;
use crate::wire::problem::Code;

/// Connections to the admin socket at once.
const ADMIN_CONNECTIONS: usize = 64;

/// Connections that are being told at once that there is no place; further ones are just closed.
const REFUSALS: usize = 64;

/// How long one of them may take to read that.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// How long its request is waited for first.
const FIRST_BYTES: Duration = Duration::from_millis(500);

/// After a failed accept, usually for want of file descriptors.
const BREATHER: Duration = Duration::from_millis(50);

/// A socket that listens.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Door),
}

/// Sockets that are listened on, and the connections that came by them.
#[derive(Debug)]
pub struct Listeners {
    service: Arc<Service>,
    stopping: watch::Sender<bool>,
    accepting: Vec<JoinHandle<()>>,
    /// Ends when the last connection has.
    open: mpsc::Receiver<()>,
}

impl Listeners {
    /// Serves on all `listeners` from now on.
    pub fn open(service: &Arc<Service>, listeners: Vec<Listener>) -> io::Result<Self> {
        let (stopping, _) = watch::channel(false);
        let (alive, open) = mpsc::channel(1);
        let settings = service.settings();
        let places = Places::new(settings.max_connections, settings.max_connections_per_address);
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        let mut accepting = Vec::new();
        for listener in listeners {
            let shared = Shared {
                service: Arc::clone(service),
                stopping: stopping.subscribe(),
                alive: alive.clone(),
                refusals: Arc::clone(&refusals),
            };
            accepting.push(match listener {
                Listener::Tcp(listener) => {
                    let door = Door::at(listener.local_addr()?);
                    tokio::spawn(tcp(listener, door, shared, places.clone()))
                }
                Listener::Unix(listener, door) => tokio::spawn(unix(listener, door, shared)),
            });
        }
        Ok(Self { service: Arc::clone(service), stopping, accepting, open })
    }

    /// Asks the daemon what a client might ask.
    pub fn probe(&self) -> Probe {
        let accepting = self.accepting.iter().map(JoinHandle::abort_handle).collect();
        Probe { service: Arc::clone(&self.service), stopping: self.stopping.subscribe(), accepting }
    }

    /// Accepts no more, lets requests in flight finish, and closes what is left at the deadline. Returns whether all
    /// finished.
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
struct Shared {
    service: Arc<Service>,
    stopping: watch::Receiver<bool>,
    alive: mpsc::Sender<()>,
    refusals: Arc<Semaphore>,
}

async fn tcp(listener: TcpListener, door: Door, shared: Shared, places: Places) {
    while let Some((stream, peer)) = next(&shared, || listener.accept()).await {
        // Without it an answer could wait for the acknowledgement of the one before; a failure only costs time.
        let _ = stream.set_nodelay(true);
        match places.take(Some(peer.ip())) {
            Ok(place) => spawn(&shared, door, stream, place),
            Err(none) => refuse(&shared, stream, none),
        }
    }
}

async fn unix(listener: UnixListener, door: Door, shared: Shared) {
    let most = match door {
        Door::Mcp => shared.service.settings().max_connections,
        Door::Admin | Door::Tcp { .. } => ADMIN_CONNECTIONS,
    };
    let places = Places::new(most, most);
    while let Some((stream, _)) = next(&shared, || listener.accept()).await {
        match places.take(None) {
            Ok(place) => spawn(&shared, door, stream, place),
            Err(none) => refuse(&shared, stream, none),
        }
    }
}

/// The next connection; nothing when the doors close.
async fn next<A, F>(shared: &Shared, accept: impl Fn() -> F) -> Option<A>
where
    F: Future<Output = io::Result<A>>,
{
    let mut stopping = shared.stopping.clone();
    let accepted = async {
        let mut said = false;
        loop {
            match accept().await {
                Ok(accepted) => return accepted,
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
        accepted = accepted => Some(accepted),
    }
}

/// Answers 503, whatever was asked, and lets the client read that before the connection ends.
fn refuse<T>(shared: &Shared, mut stream: T, none: NoPlace)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    ConnectionClosed { reason: none.reason() }.emit(shared.service.metrics());
    let Ok(turn) = Arc::clone(&shared.refusals).try_acquire_owned() else { return };
    tokio::spawn(async move {
        let tell = async {
            let mut nowhere = [0; 4096];
            // Many clients take what comes before their request for a fault of the connection, and do not read it.
            let _ = timeout(FIRST_BYTES, stream.read(&mut nowhere)).await;
            let problem = Problem::unavailable(Code::TooManyConnections, none.to_string());
            stream.write_all(&problem.and_close().to_http()).await?;
            stream.shutdown().await?;
            while stream.read(&mut nowhere).await? > 0 {}
            Ok::<(), io::Error>(())
        };
        // A client that does not read has not asked.
        let _ = timeout(REFUSAL_TIME, tell).await;
        drop(turn);
    });
}

fn spawn<T>(shared: &Shared, door: Door, stream: T, place: Place)
where
    T: Socket,
{
    let Shared { service, stopping, alive, .. } = shared.clone();
    service.connected();
    tokio::spawn(async move {
        let _open = OpenConnection::count(&service);
        connection::serve(service, door, stream, Some(place), stopping).await;
        drop(alive);
    });
}

/// Counts as open until it is dropped, be it by a panic.
struct OpenConnection(IntGauge);

impl OpenConnection {
    fn count(service: &Service) -> Self {
        let connections = service.metrics().http_connections.clone();
        connections.inc();
        Self(connections)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}
