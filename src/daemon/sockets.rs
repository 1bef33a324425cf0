//! The listening sockets: passed in by systemd, or made here.

use std::fs::{self, Permissions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{env, fmt, io};

use listenfd::ListenFd;

use super::Config;
use super::state::make_parent;
use crate::config::is_installed;
use crate::http::server::{Door, accept};

/// Bytes of a Unix socket's path: `sun_path` of unix(7), without the zero at its end.
const MAX_PATH: usize = 107;

/// A socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address or path.
        address: String,
        source: io::Error,
    },
    /// Unix has no room for it.
    #[error("the path of a socket has {MAX_PATH} bytes at most, and {path} has {length}; name a shorter one")]
    TooLong {
        /// The path.
        path: String,
        /// Its bytes.
        length: usize,
    },
    /// What systemd passed is no socket to listen on.
    #[error("cannot use the socket that was passed as file descriptor {descriptor}")]
    Passed { descriptor: usize, source: io::Error },
    /// Whoever may connect to it would be an administrator.
    #[error(
        "the Unix socket that was passed as file descriptor {descriptor} is called `{name}`: that of MCP clients is \
         called `mcp` (FileDescriptorName=mcp), and the administrator's has no `mcp` in its name"
    )]
    UnclearName { descriptor: usize, name: String },
    /// Others could reach it, and there are no tokens.
    #[error(
        "{address} is no loopback address, so tokens are needed: make one with `almanacd token new`, and set \
         auth.tokens_file"
    )]
    Exposed { address: SocketAddr },
    /// Administration and clients have doors of their own.
    #[error("{} is named as the administrator's socket and as that of MCP clients", .path.display())]
    Same { path: PathBuf },
    /// Not ours to remove.
    #[error("cannot listen on {}: something that is no socket stands there; remove it", .path.display())]
    NoSocket { path: PathBuf },
}

impl SocketError {
    /// Is it for the operator to mend in the configuration?
    pub(super) fn is_configuration(&self) -> bool {
        matches!(self, Self::Exposed { .. } | Self::TooLong { .. } | Self::Same { .. } | Self::UnclearName { .. })
    }
}

/// Why the sockets cannot be as they are configured, if so, without making any.
pub fn check(config: &Config, has_tokens: bool) -> Result<(), SocketError> {
    refuse_exposed(config.listen, has_tokens)?;
    let (admin, mcp) = (config.admin_socket(), config.mcp_socket());
    fits(&admin)?;
    if config.mcp.door.socket.is_some() {
        fits(&mcp)?;
    }
    for path in [&admin, &mcp] {
        if path.exists() && !is_socket(path) {
            return Err(SocketError::NoSocket { path: path.clone() });
        }
    }
    if admin == mcp { Err(SocketError::Same { path: admin }) } else { Ok(()) }
}

/// Has a path room in the address of a socket?
fn fits(path: &Path) -> Result<(), SocketError> {
    let length = path.as_os_str().len();
    if length > MAX_PATH { Err(SocketError::TooLong { path: path.display().to_string(), length }) } else { Ok(()) }
}

pub(super) struct Sockets {
    pub(super) listeners: Vec<BoundListener>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) admin: SocketFile,
    /// That of MCP clients.
    pub(super) mcp: Option<SocketFile>,
}

pub(super) enum BoundListener {
    Tcp(TcpListener),
    Unix(UnixListener, Door),
}

/// Where a Unix socket is, and whose it is.
pub(super) enum SocketFile {
    /// Made here, to be removed at the end if it is still the same file.
    Own(PathBuf, Option<(u64, u64)>),
    Passed(Option<PathBuf>),
}

impl SocketFile {
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

impl fmt::Display for SocketFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            Some(path) => path.display().fmt(formatter),
            None => formatter.write_str("passed in"),
        }
    }
}

/// What a passed socket of MCP clients is called (`FileDescriptorName=`).
const MCP_NAME: &str = "mcp";

/// Only the user's own processes.
const PRIVATE: u32 = 0o600;

/// The group's as well.
const SHARED: u32 = 0o660;

/// All sockets of the daemon. Passed ones take the place of configured ones of their kind.
pub(super) fn open(config: &Config, has_tokens: bool) -> Result<Sockets, SocketError> {
    let Passed { mut tcp, admin, mcp } = passed()?;
    if tcp.is_empty() {
        refuse_exposed(config.listen, has_tokens)?;
        match TcpListener::bind(config.listen) {
            Ok(listener) => tcp.push(listener),
            // Somebody else's daemon has it; whoever this one serves asks by the sockets.
            Err(error) if config.is_users || config.until_idle.is_some() => {
                tracing::warn!(%error, address = %config.listen, "the TCP address is not served");
            }
            Err(source) => return Err(SocketError::Bind { address: config.listen.to_string(), source }),
        }
    }
    let mut addresses = Vec::new();
    for listener in &tcp {
        let bind = |source| SocketError::Bind { address: config.listen.to_string(), source };
        let address = listener.local_addr().map_err(bind)?;
        refuse_exposed(address, has_tokens)?;
        addresses.push(address);
    }
    if config.admin_socket() == config.mcp_socket() && admin.is_empty() && mcp.is_empty() {
        return Err(SocketError::Same { path: config.admin_socket() });
    }
    let (admin_listeners, admin) = unix(admin, &config.admin_socket(), SHARED)?;
    let (mcp_listeners, mcp) = match mcp_place(config, &mcp) {
        Some((path, mode)) => match unix(mcp, &path, mode) {
            Ok((listeners, file)) => (listeners, Some(file)),
            Err(error) if config.mcp.door.socket.is_some() => return Err(error),
            // Nobody asked for it: all else is served, as where the state cannot be written.
            Err(error) => {
                tracing::warn!(%error, "the socket of MCP clients is not served");
                (Vec::new(), None)
            }
        },
        None => (Vec::new(), None),
    };
    let admin_listeners = admin_listeners.into_iter().map(|listener| BoundListener::Unix(listener, Door::Admin));
    let mcp_listeners = mcp_listeners.into_iter().map(|listener| BoundListener::Unix(listener, Door::Mcp));
    let listeners = tcp.into_iter().map(BoundListener::Tcp).chain(admin_listeners).chain(mcp_listeners).collect();
    Ok(Sockets { listeners, addresses, admin, mcp })
}

/// Where the socket of MCP clients is, and who may open it. An installed daemon has one only if its directory is there.
fn mcp_place(config: &Config, passed: &[UnixListener]) -> Option<(PathBuf, u32)> {
    let (path, is_installed) = (config.mcp_socket(), is_installed(&config.state_dir));
    let has_place = !passed.is_empty() || config.mcp.door.socket.is_some() || !is_installed;
    let has_place = has_place || path.parent().is_some_and(Path::is_dir);
    has_place.then_some((path, if is_installed { SHARED } else { PRIVATE }))
}

/// The passed sockets, or one that is made.
fn unix(passed: Vec<UnixListener>, path: &Path, mode: u32) -> Result<(Vec<UnixListener>, SocketFile), SocketError> {
    if let Some(first) = passed.first() {
        let path = first.local_addr().ok().and_then(|address| address.as_pathname().map(Path::to_owned));
        return Ok((passed, SocketFile::Passed(path)));
    }
    let listener = bind_unix(path, mode)?;
    Ok((vec![listener], SocketFile::Own(path.to_owned(), identity(path))))
}

/// The sockets that systemd passed.
#[derive(Default)]
struct Passed {
    tcp: Vec<TcpListener>,
    admin: Vec<UnixListener>,
    mcp: Vec<UnixListener>,
}

fn passed() -> Result<Passed, SocketError> {
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names: Vec<&str> = names.split(':').collect();
    let mut all = ListenFd::from_env();
    let mut passed = Passed::default();
    for index in 0..all.len() {
        // The first tells its kind by failing.
        if let Ok(Some(listener)) = all.take_tcp_listener(index) {
            passed.tcp.push(listener);
            continue;
        }
        let fault = |source| SocketError::Passed { descriptor: index + 3, source };
        let listener = all.take_unix_listener(index).map_err(fault)?;
        let name = names.get(index).copied().unwrap_or_default();
        if name != MCP_NAME && name.to_ascii_lowercase().contains(MCP_NAME) {
            return Err(SocketError::UnclearName { descriptor: index + 3, name: name.to_owned() });
        }
        let door = if name == MCP_NAME { &mut passed.mcp } else { &mut passed.admin };
        door.extend(listener);
    }
    Ok(passed)
}

fn refuse_exposed(address: SocketAddr, has_tokens: bool) -> Result<(), SocketError> {
    if has_tokens || address.ip().to_canonical().is_loopback() { Ok(()) } else { Err(SocketError::Exposed { address }) }
}

/// A socket that nobody answers at was left by a daemon that was killed; anything else that stands there stays.
fn bind_unix(path: &Path, mode: u32) -> Result<UnixListener, SocketError> {
    let bind = |source| SocketError::Bind { address: path.display().to_string(), source };
    fits(path)?;
    make_parent(path).map_err(bind)?;
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => {
            fs::remove_file(path).map_err(bind)?;
        }
        Err(_) if path.exists() && !is_socket(path) => return Err(SocketError::NoSocket { path: path.to_owned() }),
        Ok(_) | Err(_) => return Err(bind(io::ErrorKind::AddrInUse.into())),
    }
    let listener = UnixListener::bind(path).map_err(bind)?;
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(bind)?;
    Ok(listener)
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Hands the sockets to the runtime this is called on.
pub(super) fn register(listeners: Vec<BoundListener>) -> io::Result<Vec<accept::Listener>> {
    let register = |listener| match listener {
        BoundListener::Tcp(listener) => {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener).map(accept::Listener::Tcp)
        }
        BoundListener::Unix(listener, door) => {
            listener.set_nonblocking(true)?;
            tokio::net::UnixListener::from_std(listener).map(|listener| accept::Listener::Unix(listener, door))
        }
    };
    listeners.into_iter().map(register).collect()
}
