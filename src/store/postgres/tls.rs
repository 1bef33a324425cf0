//! TLS towards the server, by the same library as everywhere here: it proves who it is, or there is no connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt as _};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;

/// Makes connections to servers whose certificates known authorities signed.
#[derive(Clone)]
pub(super) struct VerifiedTls(Arc<ClientConfig>);

impl VerifiedTls {
    /// With the authorities that the address names, or the system's.
    pub(super) fn of(address: &DatabaseAddress) -> Result<Self, DatabaseFault> {
        let file = address.root_certificates.as_ref().map_or("of the system".into(), |file| file.display().to_string());
        let unusable = |reason: String| DatabaseFault::Certificates { file: file.clone(), reason };
        let certificates = match &address.root_certificates {
            Some(path) => CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect)
                .map_err(|error| unusable(error.to_string()))?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        // Systems ship a few that the library does not take; the others hold.
        roots.add_parsable_certificates(certificates);
        if roots.is_empty() {
            return Err(unusable("there is none among them".to_owned()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for VerifiedTls {
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, Self::Error> {
        Ok(Handshake { config: Arc::clone(&self.0), name: ServerName::try_from(domain)?.to_owned() })
    }
}

/// A handshake to be made, with the server of this name.
pub(super) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Encrypted<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        let handshake = TlsConnector::from(self.config).connect(self.name, stream);
        async move { Ok(Encrypted(Box::new(handshake.await?))) }.boxed()
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    /// The certificate itself was verified already, for its name.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
