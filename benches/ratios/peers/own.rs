//! Peers that are part of this program, each in a process of its own, so that its CPU time is accounted like that of
//! the others: the program starts itself again.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::Result;
use tempfile::TempDir;

use super::{bare_hyper, epoll};
use crate::process::{Process, Server, free_address};

/// Which peer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Sends a whole answer, head included.
    Epoll,
    /// Sends a body.
    Hyper,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Epoll => "bare-epoll-loop",
            Self::Hyper => "bare-hyper",
        }
    }

    /// The peer of that name.
    pub(crate) fn of(name: &OsStr) -> Option<Self> {
        [Self::Epoll, Self::Hyper].into_iter().find(|kind| name == kind.name())
    }

    /// Is this peer, until the process ends.
    pub(crate) fn serve(self, address: SocketAddr, answer: Vec<u8>) -> Result<()> {
        match self {
            Self::Epoll => epoll::serve(address, &answer),
            Self::Hyper => bare_hyper::run(address, answer.into()),
        }
    }

    /// Starts this peer, to answer with `answer`.
    pub(crate) fn start(self, answer: &[u8]) -> Result<Server> {
        let (home, address) = (TempDir::new()?, free_address()?);
        let file = home.path().join("answer");
        fs::write(&file, answer)?;
        let mut command = Command::new(env::current_exe()?);
        command.arg(self.name()).arg(address.to_string()).arg(file);
        let mut process = Process::start(command.stderr(Stdio::inherit()))?;
        process.await_answer(address, "/")?;
        Ok(Server { process, address, _home: home })
    }
}
