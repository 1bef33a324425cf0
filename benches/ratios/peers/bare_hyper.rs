//! hyper with a service that has its answer ready: what is left of the daemon's door without Almanac.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// The same on a runtime like the daemon's with one worker, until the process ends.
pub(crate) fn run(address: SocketAddr, body: Bytes) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        // Not on the thread that blocks here, which would have to hand each connection over.
        Ok(tokio::spawn(serve(listener, body)).await?)
    })
}

/// Serves `body` as JSON to whoever asks for anything, with the daemon's settings of hyper.
pub(crate) async fn serve(listener: TcpListener, body: Bytes) {
    while let Ok((stream, _)) = listener.accept().await {
        // A failure would only cost time, which would show.
        let _ = stream.set_nodelay(true);
        let body = body.clone();
        tokio::spawn(async move {
            let answer = service_fn(|_: Request<Incoming>| ready(Ok::<_, Infallible>(answer(body.clone()))));
            let mut builder = http1::Builder::new();
            let settings = builder.max_buf_size(16 * 1024).header_read_timeout(None).half_close(false);
            // It ends when the client has what it wanted.
            let _ = settings.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

fn answer(body: Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
