//! The way to an endpoint: connections that are kept, TLS, and whom it trusts.
//!
//! Redirects are not followed, and proxies of the environment are not used: a message goes where the configuration
//! says.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::RootCertStore;

use super::Settings;
use crate::tls::{self, TlsError};

/// How long an unused connection is kept; common servers close theirs after 60 to 75 s.
const IDLE: Duration = Duration::from_secs(50);

/// Size of an answer's head, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// A client over http or https.
pub(super) type Connector = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// No trust to begin with.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The system trusts nobody.
    #[error("the system has no certificates of authorities; install ca-certificates, or name some in `ca_file`")]
    NoSystem,
    /// The file of authorities cannot be used.
    #[error(transparent)]
    Tls(TlsError),
}

impl From<TlsError> for TrustError {
    fn from(error: TlsError) -> Self {
        if matches!(error, TlsError::NoSystem) { Self::NoSystem } else { Self::Tls(error) }
    }
}

/// A client for this endpoint.
pub(super) fn client(settings: &Settings) -> Result<Connector, TrustError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(settings.limits.timeout));
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls::client_config(roots(settings)?)?);
    let schemes = if settings.url.is_tls() { builder.https_only() } else { builder.https_or_http() };
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(settings.limits.max_concurrent)
        .http1_max_buf_size(MAX_HEAD_BYTES)
        .build(schemes.enable_http1().wrap_connector(http)))
}

fn roots(settings: &Settings) -> Result<RootCertStore, TlsError> {
    match &settings.ca_file {
        _ if !settings.url.is_tls() => Ok(RootCertStore::empty()),
        Some(file) => tls::roots_of_file(file),
        None => tls::system_roots(),
    }
}
