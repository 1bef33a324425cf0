//! The way to a daemon: connections that are kept for the next message, and whether one that broke may have carried it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use super::home::{self, Started};
use crate::config::{self, UserFiles};
use crate::tls::{self, TlsError};

/// For how long an unused connection is taken again; the daemon closes it after 75 s.
const KEPT: Duration = Duration::from_secs(30);

/// For how long a daemon that starts, or restarts, is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks whether it is there.
const LOOK: Duration = Duration::from_millis(20);

/// For how long one is waited for that this must not start: it may be restarting.
const RESTART: Duration = Duration::from_secs(5);

/// No way to a daemon.
#[derive(Debug, thiserror::Error)]
pub enum WayError {
    /// Not an address.
    #[error("`{0}` is no address of a daemon, such as http://127.0.0.1:7311 or https://almanac.example")]
    Address(String),
    /// An address of more than a daemon.
    #[error("`{0}` has a path: name the daemon alone, and the view by --view")]
    Path(String),
    /// A token, and what is asked, would be readable on the way.
    #[error("`{0}` is not this machine, so it needs https")]
    Plain(String),
    /// No certificates, or none that can be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Standard input is none that can be waited for.
    #[error("standard input cannot be read")]
    Input(#[source] io::Error),
    /// A token with characters that cannot be sent.
    #[error("the token has characters that no token has")]
    Token,
}

/// A message did not get an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// It never left.
    #[error("the daemon cannot be reached: {0}")]
    NotSent(String),
    /// It may have arrived.
    #[error("the connection to the daemon broke; the call may have run")]
    Broken,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

enum Place {
    Socket(PathBuf),
    Http(String),
    Https(TlsConnector, String, ServerName<'static>),
    /// The user's own daemon or, if there is no home, the machine's.
    Home(Option<UserFiles>),
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(to),
            Self::Http(authority) => write!(to, "http://{authority}"),
            Self::Https(_, authority, _) => write!(to, "https://{authority}"),
            Self::Home(Some(files)) => files.socket().display().fmt(to),
            Self::Home(None) => to.write_str(config::INSTALLED_MCP_SOCKET),
        }
    }
}

/// A daemon, and connections to it.
pub(super) struct Way {
    place: Place,
    /// What `Host` says.
    host: String,
    authorization: Option<HeaderValue>,
    idle: Mutex<Vec<(Instant, SendRequest<Full<Bytes>>)>>,
    /// Held while a daemon is started or waited for.
    starting: tokio::sync::Mutex<()>,
}

impl Way {
    fn new(place: Place, host: &str, authorization: Option<HeaderValue>) -> Self {
        let starting = tokio::sync::Mutex::new(());
        Self { place, host: host.to_owned(), authorization, idle: Mutex::default(), starting }
    }

    pub(super) fn socket(path: PathBuf) -> Self {
        Self::new(Place::Socket(path), "localhost", None)
    }

    pub(super) fn home(files: Option<UserFiles>) -> Self {
        Self::new(Place::Home(files), "localhost", None)
    }

    /// The daemon at an address; over plain http on this machine only.
    pub(super) fn url(url: &str, token: Option<String>) -> Result<Self, WayError> {
        let wrong = || WayError::Address(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?;
        // As clients that speak HTTP are given it.
        if !matches!(uri.path(), "" | "/" | "/mcp" | "/mcp/") {
            return Err(WayError::Path(url.to_owned()));
        }
        let bare = host.trim_matches(['[', ']']);
        let with_port = |port: u16| format!("{host}:{}", uri.port_u16().unwrap_or(port));
        let place = match uri.scheme_str() {
            Some("http") => {
                let is_local = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
                if !is_local {
                    return Err(WayError::Plain(url.to_owned()));
                }
                Place::Http(with_port(80))
            }
            Some("https") => {
                let name = ServerName::try_from(bare.to_owned()).map_err(|_| wrong())?;
                Place::Https(tls::system_connector()?, with_port(443), name)
            }
            _ => return Err(wrong()),
        };
        let authorization: Option<Result<_, WayError>> = token.map(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| WayError::Token)?;
            value.set_sensitive(true);
            Ok(value)
        });
        let authority = uri.authority().map_or(host, hyper::http::uri::Authority::as_str);
        Ok(Self::new(place, authority, authorization.transpose()?))
    }

    /// Sends a request. One that did not leave for want of a daemon waits for it, and starts it if this may.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, SendError> {
        let mut request = self.addressed(request);
        loop {
            let kept = self.kept();
            let is_kept = kept.is_some();
            let mut sender = match kept {
                Some(sender) => sender,
                None => self.connect().await?,
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.keep(sender);
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    // The daemon had closed a connection that was kept.
                    Some(unsent) if is_kept => request = unsent,
                    Some(_) => return Err(SendError::NotSent(error.into_error().to_string())),
                    None => return Err(SendError::Broken),
                },
            }
        }
    }

    /// Sends a request if a daemon is there.
    pub(super) async fn try_send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, SendError> {
        let mut sender = self.try_connect().await.map_err(|error| SendError::NotSent(error.to_string()))?;
        let response = sender.send_request(self.addressed(request)).await.map_err(|_| SendError::Broken)?;
        self.keep(sender);
        Ok(response)
    }

    fn addressed(&self, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
        if let Ok(host) = HeaderValue::from_str(&self.host) {
            request.headers_mut().insert(HOST, host);
        }
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        request
    }

    fn kept(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock();
        idle.retain(|(since, sender)| since.elapsed() < KEPT && !sender.is_closed());
        let ready = idle.iter().rposition(|(_, sender)| sender.is_ready())?;
        Some(idle.remove(ready).1)
    }

    /// It is ready for the next message once its answer was read.
    fn keep(&self, sender: SendRequest<Full<Bytes>>) {
        self.idle.lock().push((Instant::now(), sender));
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, SendError> {
        if let Ok(sender) = self.try_connect().await {
            return Ok(sender);
        }
        let _one_at_a_time = self.starting.lock().await;
        let (mut started, patience) = match &self.place {
            Place::Home(Some(files)) => {
                // Somebody else may have started one while this waited.
                if let Ok(sender) = self.try_connect().await {
                    return Ok(sender);
                }
                let fault = |error: io::Error| SendError::NotSent(format!("no daemon can be started: {error}"));
                (Some(home::start(files).map_err(fault)?), PATIENCE)
            }
            _ => (None, RESTART),
        };
        let until = Instant::now() + patience;
        loop {
            let fault = match self.try_connect().await {
                Ok(sender) => {
                    if let Some(Started { mut child, .. }) = started {
                        // Else it stays a zombie once it has ended.
                        thread::spawn(move || child.wait());
                    }
                    return Ok(sender);
                }
                Err(error) => error,
            };
            if let Some(Started { child, log }) = &mut started
                && let Ok(Some(status)) = child.try_wait()
            {
                // The lock may have gone to another one, which is as good; else the log says why.
                if let Ok(sender) = self.try_connect().await {
                    return Ok(sender);
                }
                let said = log.said().unwrap_or_default();
                let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
                if !said.contains("is in use by another almanacd") {
                    return Err(SendError::NotSent(format!("the daemon that was started ended ({status}): {last}")));
                }
                started = None;
            }
            if Instant::now() >= until {
                return Err(SendError::NotSent(fault.to_string()));
            }
            sleep(LOOK).await;
        }
    }

    async fn try_connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.place));
        self.connect_once().await.map_err(at)
    }

    async fn connect_once(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let stream: Box<dyn Stream> = match &self.place {
            Place::Socket(path) => Box::new(UnixStream::connect(path).await?),
            Place::Http(authority) => Box::new(tcp(authority).await?),
            Place::Https(connector, authority, name) => {
                Box::new(connector.connect(name.clone(), tcp(authority).await?).await?)
            }
            Place::Home(files) => Box::new(at_home(files.as_ref()).await?),
        };
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Its end is seen by whoever uses it.
        tokio::spawn(connection);
        Ok(sender)
    }
}

async fn at_home(files: Option<&UserFiles>) -> io::Result<UnixStream> {
    let installed = UnixStream::connect(config::INSTALLED_MCP_SOCKET);
    match files {
        Some(files) => match UnixStream::connect(files.socket()).await {
            Ok(stream) => Ok(stream),
            // What is said is of the user's own.
            Err(error) => installed.await.map_err(|_| error),
        },
        None => installed.await,
    }
}

async fn tcp(authority: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_this_machine_or_under_tls() {
        let check = |url: &str, expected: &str| {
            let said = Way::url(url, None).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{url}: {said}");
        };
        check("http://127.0.0.1:7311", "");
        check("http://localhost", "");
        check("http://[::1]:7311/", "");
        check("https://almanac.example", "");
        check("http://almanac.example", "needs https");
        check("http://10.0.0.1:7311", "needs https");
        check("ftp://localhost", "is no address");
        check("http://localhost:7311/mcp", "");
        check("https://localhost/mcp/", "");
        check("http://localhost/mcp/work", "--view");
        check("nonsense", "is no address");
    }
}
