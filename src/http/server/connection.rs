//! One connection from its first byte to its last.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::guard::Door;
use super::places::Place;
use super::progress::Progress;
use super::service::Service;
use super::socket::Socket;
use super::transport::Transport;
use crate::telemetry::events::ConnectionClosed;

/// A client that connected just before the end gets this long to send its request.
const LAST_CALL: Duration = Duration::from_secs(1);

/// Serves requests until either side ends it, a limit is broken, or `stopping` says so.
pub(super) async fn serve<T>(
    service: Arc<Service>,
    door: Door,
    socket: T,
    place: Option<Place>,
    mut stopping: watch::Receiver<bool>,
) where
    T: Socket,
{
    let progress = Arc::new(Progress::new(place));
    let io = TokioIo::new(Transport::new(socket, Arc::clone(&progress)));
    let limits = service.settings();
    let answer = service_fn(|request| service.answer(door, request, &progress));
    let connection = http1::Builder::new()
        .max_buf_size(limits.max_header_bytes.max(8192))
        // Our own timer does this; hyper's would be armed for every request.
        .header_read_timeout(None)
        // The transport withholds the end of what a client sends while it is owed an answer.
        .half_close(false)
        .serve_connection(io, answer);
    let mut connection = pin!(connection);
    let mut timer = pin!(sleep_until(Instant::now() + Progress::shortest(limits)));
    let (mut ending, mut decided) = (false, false);
    loop {
        tokio::select! {
            biased;
            outcome = connection.as_mut() => {
                match outcome {
                    // hyper has answered 400 or 431.
                    Err(error) if error.is_parse() => close(&service, "malformed_request"),
                    Err(error) => tracing::debug!(%error, "connection broke"),
                    Ok(()) => {}
                }
                return;
            }
            () = timer.as_mut() => match progress.check(limits) {
                _ if ending && progress.is_fresh() => return,
                Err(overdue) => return close(&service, overdue.reason()),
                Ok(left) => timer.as_mut().reset(Instant::now() + left.min(Progress::shortest(limits))),
            },
            _ = stopping.wait_for(|stopping| *stopping), if !ending => {
                ending = true;
                timer.as_mut().reset(Instant::now() + LAST_CALL);
                // The transport looks what has come, before anything is decided.
                progress.end();
            }
            () = ready(()), if ending && !decided => {
                decided = true;
                // hyper would close a connection whose request is still on its way.
                if !progress.expects_request() {
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

fn close(service: &Service, reason: &'static str) {
    ConnectionClosed { reason }.emit(service.metrics());
}
