//! The way to an endpoint: connections that are kept, TLS, and whom it trusts.
//!
//! Redirects are not followed, and proxies of the environment are not used: a message goes where the configuration
//! says.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};

use super::Settings;

/// How long an unused connection is kept; common servers close theirs after 60 to 75 s.
const IDLE: Duration = Duration::from_secs(50);

/// Size of an answer's head, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// A client over http or https.
pub(super) type Connector = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// No trust to begin with.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file of authorities cannot be used.
    #[error("cannot read the certificates in {}", .file.display())]
    Unreadable { file: PathBuf, source: pem::Error },
    /// The file of authorities has none that can be trusted.
    #[error("{} has no certificate of an authority", .file.display())]
    Empty { file: PathBuf },
    /// The system trusts nobody.
    #[error("the system has no certificates of authorities; install ca-certificates, or name some in `ca_file`")]
    NoSystem,
    /// The TLS library does not know its own versions.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
}

/// A client for this endpoint.
pub(super) fn client(settings: &Settings) -> Result<Connector, TrustError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(settings.limits.timeout));
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls(settings)?);
    let schemes = if settings.url.is_tls() { builder.https_only() } else { builder.https_or_http() };
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(settings.limits.max_concurrent)
        .http1_max_buf_size(MAX_HEAD_BYTES)
        .build(schemes.enable_http1().wrap_connector(http)))
}

fn tls(settings: &Settings) -> Result<ClientConfig, TrustError> {
    let roots = match &settings.ca_file {
        _ if !settings.url.is_tls() => RootCertStore::empty(),
        Some(file) => of_file(file)?,
        None => of_system()?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

fn of_file(file: &Path) -> Result<RootCertStore, TrustError> {
    let unreadable = |source| TrustError::Unreadable { file: file.to_owned(), source };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect();
    let roots = store(certificates.map_err(unreadable)?);
    if roots.is_empty() { Err(TrustError::Empty { file: file.to_owned() }) } else { Ok(roots) }
}

fn of_system() -> Result<RootCertStore, TrustError> {
    let roots = store(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TrustError::NoSystem) } else { Ok(roots) }
}

/// Systems ship a few that the TLS library does not take; the others hold.
fn store(certificates: Vec<CertificateDer<'_>>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    roots
}
