//! One document of another server: over TLS, from an address that may be asked, bounded in size and time.
//!
//! A connection serves one request. The name is resolved here and the address that was looked at is the one that is
//! connected to, so that a name which changes its address in between leads nowhere else. Redirects are not followed,
//! and proxies of the environment are not used.

use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::reach::{self, FetchReach};
use crate::tls::{self, TlsError};

/// Until an answer has been read whole.
const LIMIT: Duration = Duration::from_secs(10);

/// Largest answer, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// A document cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Not a URL, or one with a name and a password in it.
    #[error("`{0}` is no URL that can be asked")]
    Url(String),
    /// Credentials would travel readable.
    #[error("{0} is not https; plain http is for this machine only")]
    Plain(Uri),
    /// Within the own network.
    #[error("{0} is at a private address, where nothing is asked that others name")]
    Private(Uri),
    /// No address.
    #[error("the name of {uri} cannot be resolved: {source}")]
    Resolve { uri: Uri, source: io::Error },
    /// Nobody there, or TLS failed.
    #[error("{uri} cannot be reached: {source}")]
    Connect { uri: Uri, source: io::Error },
    /// Nobody to trust.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No HTTP, or a broken connection.
    #[error("{uri} does not answer properly: {source}")]
    Broken { uri: Uri, source: hyper::Error },
    /// No end in sight.
    #[error("{uri} did not answer within {} s", LIMIT.as_secs())]
    Slow { uri: Uri },
    /// No end in sight, either.
    #[error("{uri} answers with more than {} KiB, or its answer broke off", MAX_BYTES >> 10)]
    TooLong { uri: Uri },
    /// Somewhere else.
    #[error("{uri} answers {status}; redirects are not followed")]
    Redirect { uri: Uri, status: StatusCode },
}

/// An answer.
#[derive(Debug)]
pub struct Fetched {
    /// Its status; never a redirect.
    pub status: StatusCode,
    /// The whole body.
    pub body: Bytes,
}

/// Asks other servers.
pub struct Fetcher {
    reach: FetchReach,
    tls: OnceLock<TlsConnector>,
}

impl Fetcher {
    /// One that goes so far.
    pub fn new(reach: FetchReach) -> Self {
        Self { reach, tls: OnceLock::new() }
    }

    /// Asks for the document at `url`.
    pub async fn get(&self, url: &str) -> Result<Fetched, FetchError> {
        self.send(url, Request::new(Full::default())).await
    }

    /// Sends a form, in the way of `application/x-www-form-urlencoded`, with this `Authorization`.
    pub async fn post_form(
        &self,
        url: &str,
        form: String,
        authorization: Option<HeaderValue>,
    ) -> Result<Fetched, FetchError> {
        let mut request = Request::new(Full::new(form.into()));
        *request.method_mut() = Method::POST;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        if let Some(authorization) = authorization {
            headers.insert(hyper::header::AUTHORIZATION, authorization);
        }
        self.send(url, request).await
    }

    async fn send(&self, url: &str, mut request: Request<Full<Bytes>>) -> Result<Fetched, FetchError> {
        let uri = self.checked(url)?;
        let wrong = || FetchError::Url(url.to_owned());
        let authority = uri.authority().map(hyper::http::uri::Authority::as_str).unwrap_or_default();
        let host = HeaderValue::try_from(authority).map_err(|_| wrong())?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        *request.uri_mut() = uri.path_and_query().map_or("/", |path| path.as_str()).parse().map_err(|_| wrong())?;
        match timeout(LIMIT, self.exchange(&uri, request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(FetchError::Slow { uri }),
        }
    }

    /// Is it a URL that may be asked?
    fn checked(&self, url: &str) -> Result<Uri, FetchError> {
        let uri: Uri = url.parse().map_err(|_| FetchError::Url(url.chars().take(200).collect()))?;
        let is_whole = uri.host().is_some() && !uri.authority().is_some_and(|whole| whole.as_str().contains('@'));
        match uri.scheme_str() {
            Some("https") if is_whole => Ok(uri),
            Some("http") if is_whole && self.reach.allows_plain(&uri) => Ok(uri),
            Some("http") if is_whole => Err(FetchError::Plain(uri)),
            _ => Err(FetchError::Url(url.chars().take(200).collect())),
        }
    }

    async fn exchange(&self, uri: &Uri, request: Request<Full<Bytes>>) -> Result<Fetched, FetchError> {
        let stream = self.connect(uri).await?;
        if uri.scheme_str() == Some("http") {
            return read(uri, stream, request).await;
        }
        let connect = |source| FetchError::Connect { uri: uri.clone(), source };
        let name = ServerName::try_from(reach::host(uri).to_owned());
        let name = name.map_err(|_| FetchError::Url(uri.to_string()))?;
        read(uri, self.tls()?.connect(name, stream).await.map_err(connect)?, request).await
    }

    async fn connect(&self, uri: &Uri) -> Result<TcpStream, FetchError> {
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        let found = lookup_host((reach::host(uri), port)).await;
        let found = found.map_err(|source| FetchError::Resolve { uri: uri.clone(), source })?;
        let allowed: Vec<SocketAddr> = found.filter(|address| self.reach.allows(address.ip())).collect();
        if allowed.is_empty() {
            return Err(FetchError::Private(uri.clone()));
        }
        let connected = TcpStream::connect(&*allowed).await;
        connected.map_err(|source| FetchError::Connect { uri: uri.clone(), source })
    }

    fn tls(&self) -> Result<&TlsConnector, FetchError> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls);
        }
        let connector = tls::connector(tls::system_roots()?)?;
        Ok(self.tls.get_or_init(|| connector))
    }
}

async fn read<S>(uri: &Uri, stream: S, request: Request<Full<Bytes>>) -> Result<Fetched, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |source| FetchError::Broken { uri: uri.clone(), source };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let connection = Connection(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    if status.is_redirection() {
        return Err(FetchError::Redirect { uri: uri.clone(), status });
    }
    let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
    let body = body.map_err(|_| FetchError::TooLong { uri: uri.clone() })?.to_bytes();
    drop(connection);
    Ok(Fetched { status, body })
}

/// A connection, which ends with whoever asked over it.
struct Connection(tokio::task::JoinHandle<Result<(), hyper::Error>>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_asked_is_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let check = |reach: FetchReach, url: &str, expected: &str| {
            let said = runtime.block_on(Fetcher::new(reach).get(url)).unwrap_err().to_string();
            assert!(said.contains(expected), "{url}: {said}");
        };
        check(FetchReach::Public, "http://as.example.com/x", "is not https");
        check(FetchReach::Public, "http://127.0.0.1:9/x", "is not https");
        check(FetchReach::Public, "https://127.0.0.1:9/x", "is at a private address");
        check(FetchReach::Public, "https://localhost:9/x", "is at a private address");
        check(FetchReach::Public, "https://169.254.169.254/x", "is at a private address");
        check(FetchReach::Public, "https://[::1]/x", "is at a private address");
        check(FetchReach::Local, "http://as.example.com/x", "is not https");
        check(FetchReach::Local, "https://10.0.0.1/x", "is at a private address");
        check(FetchReach::Local, "https://a:b@127.0.0.1/x", "is no URL");
        check(FetchReach::Local, "file:///etc/passwd", "is no URL");
        check(FetchReach::Local, "/x", "is no URL");
        check(FetchReach::Local, "http://127.0.0.1:1/x", "cannot be reached");
    }
}
