//! Asks a running daemon over its own wire.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::tls::{self, TlsError};
use crate::wire::problem::{Code, ProblemDocument};

/// A daemon to ask.
#[derive(Debug, Clone)]
pub(super) struct Client {
    target: Target,
    token: Option<String>,
    patience: Duration,
}

/// How long an answer may take; a reload of many documents takes longest.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
enum Target {
    Socket(PathBuf),
    Http { authority: String },
    Https { authority: String, name: ServerName<'static>, connector: TlsConnector },
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.said())
    }
}

impl Target {
    /// The socket or address.
    fn said(&self) -> String {
        match self {
            Self::Socket(socket) => socket.display().to_string(),
            Self::Http { authority } => format!("http://{authority}"),
            Self::Https { authority, .. } => format!("https://{authority}"),
        }
    }
}

/// The daemon did not answer, or refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error("`{0}` is no address of a daemon, such as http://127.0.0.1:7311 or https://almanac.example.com")]
    Address(String),
    #[error("the address of the daemon is empty; unset ALMANAC_URL, or leave --url out, where none is meant")]
    NoAddress,
    #[error("cannot reach the daemon at {target}; is it running?")]
    Connect {
        /// The socket or address.
        target: String,
        source: io::Error,
    },
    /// Somebody listens, and says nothing.
    #[error("the daemon at {target} does not answer")]
    Silent {
        /// The socket or address.
        target: String,
    },
    #[error("the daemon's answer broke off")]
    Broken(#[from] hyper::Error),
    /// No certificates, or none that can be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Not a request that can be sent.
    #[error("the request cannot be sent")]
    Request(#[from] hyper::http::Error),
    /// The daemon said no.
    #[error("{}{}", .0, way_in(.0))]
    Refused(Box<ProblemDocument>),
    /// An address does not lead to what only the administrator may.
    #[error("this needs the admin socket: name it with --socket, instead of --url or ALMANAC_URL")]
    AdminOnly,
    /// The answer is of another version.
    #[error("the daemon's answer is not understood")]
    Answer(#[from] serde_json::Error),
}

/// What to do about a daemon that asks for a token, to be said behind what it says.
fn way_in(problem: &ProblemDocument) -> &'static str {
    match problem.code {
        Code::NoToken => "\n  name one by --token or ALMANAC_TOKEN (the admin socket needs none)",
        Code::UnknownToken => "\n  it is what --token or ALMANAC_TOKEN says",
        _ => "",
    }
}

impl ClientError {
    /// Is the command line itself at fault?
    pub(super) fn is_usage(&self) -> bool {
        matches!(self, Self::Address(_) | Self::NoAddress | Self::AdminOnly)
    }
}

impl Client {
    /// The daemon behind an admin socket.
    pub(super) fn socket(path: &Path) -> Self {
        Self { target: Target::Socket(path.to_owned()), token: None, patience: PATIENCE }
    }

    /// The daemon at `http://host:port`, or behind a proxy at `https://host`.
    pub(super) fn url(url: &str, token: Option<String>) -> Result<Self, ClientError> {
        let wrong = || if url.is_empty() { ClientError::NoAddress } else { ClientError::Address(url.to_owned()) };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().filter(|_| matches!(uri.path(), "" | "/")).ok_or_else(wrong)?;
        let with_port = |port: u16| {
            let host = authority.as_str();
            if authority.port().is_some() { host.to_owned() } else { format!("{host}:{port}") }
        };
        let target = match uri.scheme_str() {
            Some("http") => Target::Http { authority: with_port(80) },
            Some("https") => {
                let bare = authority.host().trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(bare).map_err(|_| wrong())?;
                Target::Https { authority: with_port(443), name, connector: tls::system_connector()? }
            }
            _ => return Err(wrong()),
        };
        Ok(Self { target, token, patience: PATIENCE })
    }

    /// The same for what may take so long.
    pub(super) fn patient(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// Sends a request and returns whatever comes back.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let target = self.target.said();
        let sent = self.send_to(&target, method, path, body);
        timeout(self.patience, sent).await.unwrap_or_else(|_| Err(ClientError::Silent { target: target.clone() }))
    }

    async fn send_to(
        &self,
        target: &str,
        method: &str,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let connect = |source| ClientError::Connect { target: target.to_owned(), source };
        match &self.target {
            Target::Socket(socket) => {
                let stream = UnixStream::connect(socket).await.map_err(connect)?;
                self.over(stream, "localhost", method, path, body).await
            }
            Target::Http { authority } => {
                let stream = TcpStream::connect(authority).await.map_err(connect)?;
                self.over(stream, authority, method, path, body).await
            }
            Target::Https { authority, name, connector } => {
                let stream = TcpStream::connect(authority).await.map_err(connect)?;
                let stream = connector.connect(name.clone(), stream).await.map_err(connect)?;
                self.over(stream, authority, method, path, body).await
            }
        }
    }

    /// Sends a request and understands the answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<T, ClientError> {
        let (status, answer) = self.send(method, path, body).await?;
        if status.is_success() {
            return Ok(serde_json::from_slice(&answer)?);
        }
        if status == StatusCode::NOT_FOUND && path.starts_with("/-/") && !matches!(self.target, Target::Socket(_)) {
            return Err(ClientError::AdminOnly);
        }
        Err(ClientError::Refused(Box::new(serde_json::from_slice(&answer)?)))
    }

    async fn over<T>(
        &self,
        stream: T,
        host: &str,
        method: &str,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<(StatusCode, Bytes), ClientError>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender; whatever breaks it breaks the request as well.
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header(HOST, host);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let answer = sender.send_request(request.body(Full::new(body.unwrap_or_default()))?).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }
}
