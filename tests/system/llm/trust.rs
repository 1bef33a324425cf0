//! Over TLS: who is trusted, and who is not.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use almanac::llm::{KeyError, Llm, LlmError, SetupError, TrustError};
use almanac::telemetry::Metrics;
use almanac::tls::TlsError;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use super::endpoint::{Server, completion};
use super::{Asked, GOOD, settings};

/// An authority, and the file that says to trust it.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// An endpoint with a certificate of this authority for `name`.
    async fn serve(&self, name: &str, adjust: impl FnOnce(&mut CertificateParams)) -> Server {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Server::over(Some(TlsAcceptor::from(Arc::new(config))), |_, _| completion(GOOD)).await
    }
}

/// Asks over https, trusting the authorities of a file.
async fn ask(server: &Server, file: &Path) -> Result<(), LlmError> {
    let mut settings = settings(&format!("https://127.0.0.1:{}", server.address.port()));
    settings.ca_file = Some(file.to_owned());
    Asked::with(settings).ask().await.map(|opinion| assert_eq!(opinion.ranked.len(), 2))
}

async fn check_refused(server: &Server, file: &Path, cause: &str) {
    let error = ask(server, file).await.unwrap_err();
    assert_eq!(error.outcome().as_str(), "unreachable");
    let mut causes = String::new();
    let mut source = error.source();
    while let Some(error) = source {
        causes.push_str(&format!("{error}; "));
        source = error.source();
    }
    assert!(causes.contains(cause), "{causes} does not say {cause}");
    assert!(server.seen().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn only_a_trusted_certificate_of_the_right_name_is_taken() {
    let (authority, other, namesake) = (Authority::new("a"), Authority::new("b"), Authority::new("a"));
    let server = authority.serve("127.0.0.1", |_| {}).await;
    ask(&server, &authority.file()).await.unwrap();
    assert_eq!(server.seen().len(), 1);
    let server = authority.serve("127.0.0.1", |_| {}).await;
    check_refused(&server, &other.file(), "UnknownIssuer").await;
    check_refused(&server, &namesake.file(), "BadSignature").await;
    let server = authority.serve("models.example.com", |_| {}).await;
    check_refused(&server, &authority.file(), "not valid for name").await;
    let server = authority.serve("127.0.0.1", |params| params.not_after = date_time_ymd(2020, 1, 1)).await;
    check_refused(&server, &authority.file(), "expired").await;
    // Plain HTTP where TLS was to be.
    let server = Server::start(|_, _| completion(GOOD)).await;
    assert_eq!(ask(&server, &authority.file()).await.unwrap_err().outcome().as_str(), "unreachable");
}

#[tokio::test]
async fn a_self_signed_certificate_is_refused_by_the_system() {
    let server = Authority::new("a").serve("127.0.0.1", |_| {}).await;
    let settings = settings(&format!("https://127.0.0.1:{}", server.address.port()));
    match Llm::new(settings.clone(), Arc::new(Metrics::new().unwrap())) {
        Ok(_) => assert_eq!(Asked::with(settings).ask().await.unwrap_err().outcome().as_str(), "unreachable"),
        // A system without authorities trusts nobody at all.
        Err(error) => assert!(matches!(error, SetupError::Trust(TrustError::NoSystem)), "{error:?}"),
    }
    assert!(server.seen().is_empty());
}

#[test]
fn what_cannot_be_trusted_or_found_is_said_at_once() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let setup = |ca_file: Option<PathBuf>, api_key_env: Option<&str>| {
        let mut settings = settings("https://models.example.com");
        (settings.ca_file, settings.api_key_env) = (ca_file, api_key_env.map(str::to_owned));
        Llm::new(settings, Arc::new(Metrics::new().unwrap())).unwrap_err()
    };
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let trust = |error| match error {
        SetupError::Trust(TrustError::Tls(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(trust(setup(Some(directory.path().join("none")), None)), TlsError::Unreadable { .. }));
    assert!(matches!(trust(setup(Some(file("empty", "")), None)), TlsError::Empty { .. }));
    assert!(matches!(trust(setup(Some(file("garbage", garbage)), None)), TlsError::Empty { .. }));
    assert!(matches!(trust(setup(Some(file("half", &garbage[..40])), None)), TlsError::Unreadable { .. }));
    let error = setup(None, Some("ALMANAC_TEST_NO_SUCH_KEY"));
    assert!(matches!(error, SetupError::Key(KeyError::Missing { .. })), "{error:?}");
}
