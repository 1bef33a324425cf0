//! What connections are made of.

use std::os::fd::AsFd;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpStream, UnixStream};

/// A stream of bytes both ways.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Have bytes come that nobody has read?
    fn has_unread(&self) -> bool;
}

impl Socket for TcpStream {
    fn has_unread(&self) -> bool {
        has_unread(self)
    }
}

impl Socket for UnixStream {
    fn has_unread(&self) -> bool {
        has_unread(self)
    }
}

/// One in memory tells whoever reads of all that comes at once.
impl Socket for DuplexStream {
    fn has_unread(&self) -> bool {
        false
    }
}

fn has_unread(socket: impl AsFd) -> bool {
    rustix::io::ioctl_fionread(socket).is_ok_and(|bytes| bytes > 0)
}
