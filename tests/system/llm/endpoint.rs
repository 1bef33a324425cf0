//! An endpoint for models under test: it answers as it is told to, also badly.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What the endpoint does with a request.
#[derive(Debug, Clone)]
pub enum Play {
    /// Sends these bytes, and takes the next request.
    Send(Vec<u8>),
    /// Sends these bytes and no more.
    Stall(Vec<u8>),
    /// Sends these bytes one by one, and slowly.
    Drip(Vec<u8>),
    /// Sends these bytes over and over.
    Flood(Vec<u8>),
    /// Sends these bytes and closes.
    Close(Vec<u8>),
}

/// An answer with a status and a body.
pub fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A completion with this content.
pub fn completion(content: &str) -> Play {
    let message = json!({"role": "assistant", "content": content});
    let body = json!({"id": "c-1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]});
    Play::Send(reply("200 OK", "content-type: application/json\r\n", body.to_string().as_bytes()))
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The request line and the headers, in lower case names as sent.
    pub head: String,
    /// The body.
    pub body: Value,
}

/// A running endpoint; it ends with its value.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    /// Plays `script`, which is given the number of the request and what it asks for.
    pub async fn start(script: impl Fn(usize, &Value) -> Play + Send + Sync + 'static) -> Self {
        Self::over(None, script).await
    }

    /// The same behind TLS.
    pub async fn over(
        tls: Option<TlsAcceptor>,
        script: impl Fn(usize, &Value) -> Play + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, connections) = (Arc::<Mutex<Vec<Seen>>>::default(), Arc::<AtomicUsize>::default());
        let (sink, count, script) = (Arc::clone(&seen), Arc::clone(&connections), Arc::new(script));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let (sink, script, tls) = (Arc::clone(&sink), Arc::clone(&script), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &sink, &*script).await,
                        // A client that does not trust us breaks off.
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &sink, &*script).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self { address, seen, connections, task }
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends when the client goes away.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    sink: &Mutex<Vec<Seen>>,
    script: &(dyn Fn(usize, &Value) -> Play + Send + Sync),
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let seen = request(&mut stream).await?;
        let number = {
            let mut all = sink.lock().unwrap();
            all.push(seen.clone());
            all.len()
        };
        match script(number, &seen.body) {
            Play::Send(bytes) => stream.write_all(&bytes).await.ok()?,
            Play::Stall(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                stream.read_u8().await.ok()?;
            }
            Play::Drip(bytes) => {
                for byte in bytes {
                    stream.write_u8(byte).await.ok()?;
                    stream.flush().await.ok()?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Play::Flood(bytes) => loop {
                stream.write_all(&bytes).await.ok()?;
            },
            Play::Close(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                stream.shutdown().await.ok()?;
                return None;
            }
        }
        stream.flush().await.ok()?;
    }
}

async fn request(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Seen> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { head, body: serde_json::from_slice(&body).unwrap() })
}
