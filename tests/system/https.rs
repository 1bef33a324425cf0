//! Commands that ask a daemon behind a proxy that speaks TLS.

use std::fs;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::daemon::{Site, almanacd, document};

#[test]
fn commands_ask_over_https() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(site.path("ca.pem"), certificate.pem()).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let (acceptor, behind) = (TlsAcceptor::from(Arc::new(config)), daemon.address);
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // Who does not trust the certificate ends here.
            let Ok(mut outside) = acceptor.accept(stream).await else { continue };
            let mut inside = TcpStream::connect(behind).await.unwrap();
            let _ = copy_bidirectional(&mut outside, &mut inside).await;
        }
    });
    let ask = |authorities: &str| {
        let mut command = almanacd();
        command.args(["show", "a", "--url", &url]).env("SSL_CERT_FILE", site.path(authorities));
        command.output().unwrap()
    };
    let answer = ask("ca.pem");
    let said = String::from_utf8_lossy(&answer.stdout);
    assert!(answer.status.success() && said.contains('t'), "{said}{}", String::from_utf8_lossy(&answer.stderr));
    let refused = ask("none.pem");
    assert!(!refused.status.success(), "{refused:?}");
}
