//! Why a server does not serve.

use std::io;
use std::path::PathBuf;

use super::peer::PeerFault;
use super::remote::RemoteError;
use super::secret::SecretError;
use crate::blocking::NoThread;
use crate::jsonrpc::NoObject;

/// A server could not be started, or its lists could not be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartFault {
    #[error("its program cannot be started: {0}")]
    Spawn(#[source] io::Error),
    #[error("its program cannot be found: {0}")]
    NoProgram(String),
    #[error("its program must not be run: {0}")]
    Untrusted(String),
    #[error("cannot connect to {}: {source}", .socket.display())]
    Connect { socket: PathBuf, source: io::Error },
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("its home {} cannot be made: {source}", .directory.display())]
    Home { directory: PathBuf, source: io::Error },
    #[error("it ended at server/discover: {0}")]
    EndedAtProbe(String),
    #[error("{0}")]
    Peer(#[from] PeerFault),
    #[error("it refuses to talk: {0}")]
    Refused(String),
    #[error("it is this daemon itself, whose tools are offered already; take it out of the servers")]
    Itself,
    #[error("it speaks version `{0}`, which is not spoken here")]
    Version(String),
    #[error("it answers with what is no object")]
    Answer(#[from] NoObject),
    #[error("its lists cannot be kept: {0}")]
    Unkept(#[from] NoThread),
    #[error("it was not ready within {0} s; `start_timeout` can be longer")]
    Slow(u64),
}
