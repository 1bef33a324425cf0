//! A worker's process: how it is started, told apart from others, and ended.
#![allow(unsafe_code, reason = "has the runtime watch a descriptor")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::fault::LibraryFault;
use super::worker::{ARGUMENT, IMAGE, SOCKET};

/// A worker that was started.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Readable once it has ended.
    handle: OwnedFd,
}

/// The daemon's ends of a worker's connections.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) socket: UnixStream,
    pub(super) output: File,
}

impl Process {
    /// Starts `program` as the worker of the library in `image`. It is killed if the calling *thread* ends, so that
    /// must be one that lives as long as the workers are to.
    pub(super) fn start(program: &Path, image: BorrowedFd<'_>) -> io::Result<(Self, Ends)> {
        let (socket, theirs) = UnixStream::pair()?;
        let (output, input) = io::pipe()?;
        let mappings = vec![
            FdMapping { parent_fd: theirs.into(), child_fd: SOCKET },
            FdMapping { parent_fd: image.try_clone_to_owned()?, child_fd: IMAGE },
        ];
        let mut command = Command::new(program);
        command
            .arg(ARGUMENT)
            .env_clear()
            .current_dir("/")
            // What a terminal sends to a daemon in it, by Ctrl-C, is not for the workers: they would seem to fail.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::from(OwnedFd::from(input.try_clone()?)))
            .stderr(Stdio::from(OwnedFd::from(input)))
            .fd_mappings(mappings)
            .map_err(io::Error::other)?;
        let mut child = command.spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a process id is not 0");
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Ok((Self { child, handle }, Ends { socket, output: File::from(OwnedFd::from(output)) })),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended. Needs a runtime.
    pub(super) fn exit(&self) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        let handle = self.handle.try_clone()?;
        Ok(async move {
            // SAFETY: the descriptor is the watch's own, and stays open and the same until the watch is dropped.
            let watch = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
            match watch {
                // If it fails, the runtime is shutting down.
                Ok(watch) => drop(watch.readable().await),
                Err(error) => tracing::error!(%error, "the end of a worker cannot be waited for"),
            }
        })
    }

    /// How it ended, if it has. Then it is reaped.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it now, and reaps it.
    pub(super) fn kill(&mut self) -> Option<ExitStatus> {
        // It fails if it has ended already, which is as well.
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

/// The program that this process runs, even if its file was replaced since.
pub(super) fn own_program() -> &'static Path {
    Path::new("/proc/self/exe")
}

/// A crash with how the process ended, unless that was by us: then what it did before is the fault.
pub(super) fn explain(fault: LibraryFault, status: Option<ExitStatus>) -> LibraryFault {
    match (fault, status) {
        (LibraryFault::Crash(_), Some(status)) if status.signal() != Some(libc::SIGKILL) => {
            LibraryFault::Crash(describe(status))
        }
        (fault, _) => fault,
    }
}

/// How a process ended, for people.
pub(super) fn describe(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else { return format!("it exited with code {}", status.code().unwrap_or(-1)) };
    let name = match signal {
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGKILL => " (SIGKILL)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGSYS => " (SIGSYS)",
        libc::SIGTERM => " (SIGTERM)",
        libc::SIGTRAP => " (SIGTRAP)",
        _ => "",
    };
    format!("it was ended by signal {signal}{name}")
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}
