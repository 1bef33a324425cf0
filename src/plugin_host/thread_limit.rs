//! How many threads a library may have: the kernel asks the daemon about each one before it is made.
//!
//! A limit of resources would not do: the kernel counts threads by user, who is the daemon's own, and not at all for
//! root. So the worker installs a filter that has `clone` wait for an answer, hands the listening end to the daemon,
//! and keeps none. Threads are counted where they can be seen, in `/proc`; those under way at once may slip past that
//! count, so there can be twice the limit, and no more.
#![allow(unsafe_code, reason = "system calls for which no library has a wrapper")]

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

/// Threads of a worker, its first one included. A rule is a function; a few threads are for libraries that it uses.
pub(super) const MAX_THREADS: usize = 8;

/// After a refusal: a library that asks without end must not keep the daemon busy with it.
const REFUSAL_PAUSE: Duration = Duration::from_millis(10);

/// Threads that are let through before a pause, for the same reason.
const BURST: usize = 32;

/// The one byte that goes with the listener, or without it.
const GREETING: [u8; 1] = [b'T'];

/// In the worker: has every further `clone` wait for the daemon's answer. Nothing where the kernel cannot do that, or
/// another filter listens already.
pub(super) fn install() -> io::Result<OwnedFd> {
    rustix::thread::set_no_new_privs(true)?;
    let offset = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
    let statement = |code: u32, value| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value };
    let is_clone = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    // The filters that follow kill what calls by another architecture's numbers.
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset),
        libc::sock_filter { code: is_clone, jt: 0, jf: 1, k: libc::SYS_clone as u32 },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: the program is alive and of the length that it says.
    let listener = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
}

/// In the worker: hands the listener to the daemon, or tells that there is none. The worker must close its own.
pub(super) fn hand_over(socket: BorrowedFd<'_>, listener: Option<&OwnedFd>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let handed: Vec<BorrowedFd<'_>> = listener.iter().map(|listener| listener.as_fd()).collect();
    if !handed.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&handed)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(socket, &[IoSlice::new(&GREETING)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// In the daemon: the listener of the worker at the other end; nothing if it has none.
pub(super) async fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    socket.async_io(Interest::READABLE, || take(socket.as_fd())).await
}

fn take(socket: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let mut greeting = [0; GREETING.len()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut greeting)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if greeting != GREETING {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handed) => handed.next(),
        _ => None,
    }))
}

/// In the daemon: answers the kernel's questions about the worker `pid` until that has ended.
pub(super) async fn enforce(listener: OwnedFd, pid: u32) {
    // SAFETY: the descriptor is the watch's own, and stays open and the same until the watch is dropped.
    let Ok(listener) = (unsafe { AsyncFd::register_with_interest(listener, Interest::READABLE) }) else { return };
    let mut granted = 0;
    // An error means that the runtime is shutting down.
    while let Ok(mut ready) = listener.readable().await {
        if ready.ready().is_read_closed() {
            return;
        }
        while asks(listener.get_ref()) {
            let may = threads_of(pid).is_ok_and(|threads| threads < MAX_THREADS);
            // Without the listener the kernel refuses by itself.
            let Ok(()) = answer(listener.get_ref(), may) else { return };
            granted = if may { granted + 1 } else { BURST };
            if granted >= BURST {
                granted = 0;
                tokio::time::sleep(REFUSAL_PAUSE).await;
            }
        }
        ready.clear_ready();
    }
}

fn threads_of(pid: u32) -> io::Result<usize> {
    fs::read_dir(format!("/proc/{pid}/task")).map(Iterator::count)
}

/// Is there a question? Only then may it be taken, since that would wait for one.
fn asks(listener: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(PollFlags::IN)
}

/// Takes one question and answers it. One whose asker was killed meanwhile is no error.
fn answer(listener: &OwnedFd, may: bool) -> io::Result<()> {
    const { assert!(size_of::<libc::seccomp_notif>() == 80, "as the kernel's") };
    // SAFETY: the kernel wants zeros, and all fields are whole numbers.
    let mut question: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is the one that this request fills in.
    let taken = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut question) };
    if taken < 0 {
        return gone(io::Error::last_os_error());
    }
    // The other filter has looked at the flags, which are in registers that nobody can change meanwhile.
    let flags = if may { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 } else { 0 };
    let error = if may { 0 } else { -libc::EAGAIN };
    let mut reply = libc::seccomp_notif_resp { id: question.id, val: 0, error, flags };
    // SAFETY: the structure is the one that this request reads.
    let sent = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut reply) };
    if sent < 0 { gone(io::Error::last_os_error()) } else { Ok(()) }
}

fn gone(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}
