//! TLS towards the server, by the same library as everywhere here: it proves who it is, or there is no connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt as _};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use crate::tls::{self, TlsError};

/// Makes connections to servers whose certificates known authorities signed.
#[derive(Clone)]
pub(super) struct VerifiedTls(Arc<ClientConfig>);

impl VerifiedTls {
    /// With the authorities that the address names, or the system's.
    pub(super) fn of(address: &DatabaseAddress) -> Result<Self, DatabaseFault> {
        let file = address.root_certificates.as_ref().map_or("of the system".into(), |file| file.display().to_string());
        let unusable = |reason: String| DatabaseFault::Certificates { file: file.clone(), reason };
        let roots = address.root_certificates.as_deref().map_or_else(tls::system_roots, tls::roots_of_file);
        let config = roots.and_then(tls::client_config).map_err(|error| match error {
            TlsError::Unreadable { source, .. } => unusable(source.to_string()),
            TlsError::Empty { .. } | TlsError::NoSystem => unusable("there is none among them".to_owned()),
            TlsError::Setup(source) => unusable(source.to_string()),
        })?;
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
