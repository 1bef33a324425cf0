//! The listening sockets: passed in by systemd, or made here.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use listenfd::ListenFd;

use super::state::make_parent;
use crate::config::Config;
use crate::http::accept;

/// A socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address or path.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// What systemd passed is no socket to listen on.
    #[error("cannot use the socket that was passed as file descriptor {descriptor}")]
    Passed {
        /// Its number.
        descriptor: usize,
        /// Why not.
        source: io::Error,
    },
    /// Others could reach it, and there are no tokens.
    #[error(
        "{address} is no loopback address, so tokens are needed: make one with `almanacd token new`, and set auth.tokens_file"
    )]
    Exposed {
        /// The address.
        address: SocketAddr,
    },
}

pub(super) struct Sockets {
    pub(super) listeners: Vec<Listener>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) admin: Admin,
}

pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Where the admin socket is, and whose it is.
pub(super) enum Admin {
    /// Made here, to be removed at the end if it is still the same file.
    Own(PathBuf, Option<(u64, u64)>),
    /// Passed in; stays.
    Passed(Option<PathBuf>),
}

impl Admin {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Own(path, _) => Some(path),
            Self::Passed(path) => path.as_deref(),
        }
    }

    pub(super) fn remove(&self) {
        if let Self::Own(path, identity) = self
            && self::identity(path) == *identity
        {
            // A socket that stays behind is replaced at the next start.
            let _ = fs::remove_file(path);
        }
    }
}

impl fmt::Display for Admin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            Some(path) => path.display().fmt(formatter),
            None => formatter.write_str("passed in"),
        }
    }
}

/// All sockets of the daemon. Passed ones take the place of configured ones of their kind.
pub(super) fn open(config: &Config, has_tokens: bool) -> Result<Sockets, SocketError> {
    let (mut tcp, unix) = passed()?;
    if tcp.is_empty() {
        refuse_exposed(config.listen, has_tokens)?;
        let bind = |source| SocketError::Bind { address: config.listen.to_string(), source };
        tcp.push(TcpListener::bind(config.listen).map_err(bind)?);
    }
    let mut addresses = Vec::new();
    for listener in &tcp {
        let bind = |source| SocketError::Bind { address: config.listen.to_string(), source };
        let address = listener.local_addr().map_err(bind)?;
        refuse_exposed(address, has_tokens)?;
        addresses.push(address);
    }
    let (unix, admin) = if unix.is_empty() {
        let path = config.admin_socket();
        let listener = bind_unix(&path)?;
        let identity = identity(&path);
        (vec![listener], Admin::Own(path, identity))
    } else {
        let path = unix[0].local_addr().ok().and_then(|address| address.as_pathname().map(Path::to_owned));
        (unix, Admin::Passed(path))
    };
    let listeners = tcp.into_iter().map(Listener::Tcp).chain(unix.into_iter().map(Listener::Unix)).collect();
    Ok(Sockets { listeners, addresses, admin })
}

fn passed() -> Result<(Vec<TcpListener>, Vec<UnixListener>), SocketError> {
    let mut all = ListenFd::from_env();
    let (mut tcp, mut unix) = (Vec::new(), Vec::new());
    for index in 0..all.len() {
        // The first tells its kind by failing.
        if let Ok(Some(listener)) = all.take_tcp_listener(index) {
            tcp.push(listener);
            continue;
        }
        let passed = |source| SocketError::Passed { descriptor: index + 3, source };
        unix.extend(all.take_unix_listener(index).map_err(passed)?);
    }
    Ok((tcp, unix))
}

fn refuse_exposed(address: SocketAddr, has_tokens: bool) -> Result<(), SocketError> {
    if has_tokens || address.ip().to_canonical().is_loopback() { Ok(()) } else { Err(SocketError::Exposed { address }) }
}

/// A socket that nobody answers at was left by a daemon that was killed; anything else that stands there stays.
fn bind_unix(path: &Path) -> Result<UnixListener, SocketError> {
    let bind = |source| SocketError::Bind { address: path.display().to_string(), source };
    make_parent(path).map_err(bind)?;
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => {
            fs::remove_file(path).map_err(bind)?;
        }
        Ok(_) | Err(_) => return Err(bind(io::ErrorKind::AddrInUse.into())),
    }
    let listener = UnixListener::bind(path).map_err(bind)?;
    fs::set_permissions(path, Permissions::from_mode(0o660)).map_err(bind)?;
    Ok(listener)
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Hands the sockets to the runtime this is called on.
pub(super) fn register(listeners: Vec<Listener>) -> io::Result<Vec<accept::Listener>> {
    let register = |listener| match listener {
        Listener::Tcp(listener) => {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener).map(accept::Listener::Tcp)
        }
        Listener::Unix(listener) => {
            listener.set_nonblocking(true)?;
            tokio::net::UnixListener::from_std(listener).map(accept::Listener::Unix)
        }
    };
    listeners.into_iter().map(register).collect()
}
