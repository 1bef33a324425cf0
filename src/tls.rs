//! TLS towards other servers: whom this process trusts, and the one configuration that follows from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// No connection by TLS can be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of authorities cannot be read, or is no PEM.
    #[error("cannot read the certificates in {}", .file.display())]
    Unreadable { file: PathBuf, source: pem::Error },
    /// The file of authorities has none that can be trusted.
    #[error("{} has no certificate of an authority", .file.display())]
    Empty { file: PathBuf },
    /// The system trusts nobody.
    #[error("the system has no certificates of authorities; install ca-certificates")]
    NoSystem,
    /// The TLS library does not know its own versions.
    #[error("cannot set up TLS")]
    Setup(#[from] rustls::Error),
}

/// The authorities that the system trusts; at least one.
pub fn system_roots() -> Result<RootCertStore, TlsError> {
    let roots = store(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TlsError::NoSystem) } else { Ok(roots) }
}

/// The authorities in a file of PEM; at least one.
pub fn roots_of_file(file: &Path) -> Result<RootCertStore, TlsError> {
    let unreadable = |source| TlsError::Unreadable { file: file.to_owned(), source };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect();
    let roots = store(certificates.map_err(unreadable)?);
    if roots.is_empty() { Err(TlsError::Empty { file: file.to_owned() }) } else { Ok(roots) }
}

/// A client that verifies servers by these authorities, without a certificate of its own and without ALPN. With no
/// authority every handshake fails.
pub fn client_config(roots: RootCertStore) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Makes connections that trust these authorities.
pub fn connector(roots: RootCertStore) -> Result<TlsConnector, TlsError> {
    Ok(TlsConnector::from(Arc::new(client_config(roots)?)))
}

/// Makes connections to whom the system trusts; where it trusts nobody, the handshake says so.
pub fn system_connector() -> Result<TlsConnector, TlsError> {
    connector(system_roots().unwrap_or_else(|_| RootCertStore::empty()))
}

/// Systems ship a few that the TLS library does not take; the others hold.
fn store(certificates: Vec<CertificateDer<'_>>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    roots
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_has_authorities_or_says_why_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        let roots = |content: &str| {
            fs::write(&file, content).unwrap();
            roots_of_file(&file)
        };
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
        let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(roots(&authority).unwrap().len(), 1);
        assert_eq!(roots(&format!("{garbage}{authority}")).unwrap().len(), 1);
        assert!(matches!(roots(""), Err(TlsError::Empty { .. })));
        assert!(matches!(roots(garbage), Err(TlsError::Empty { .. })));
        assert!(matches!(roots(&garbage[..40]), Err(TlsError::Unreadable { .. })));
        assert!(matches!(roots_of_file(&directory.path().join("none")), Err(TlsError::Unreadable { .. })));
    }

    #[test]
    fn no_protocol_is_negotiated() {
        assert!(client_config(RootCertStore::empty()).unwrap().alpn_protocols.is_empty());
    }
}
