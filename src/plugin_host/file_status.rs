//! `stat` in a worker: of what it may read, and of nothing else.
//!
//! Landlock does not cover it, and a filter of system calls sees where a path stands, not what it says. So the kernel
//! sends a signal instead of looking up the path, and this answers as `stat` would: by opening what is asked about,
//! which Landlock does cover, and asking about what was opened.
#![allow(unsafe_code, reason = "takes a system call's place")]

use std::ffi::{c_char, c_int, c_long, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Answers every trapped `newfstatat` of this process from now on. A library that takes the signal for itself ends by
/// its next such call, or has it answered by itself: the kernel tells it nothing either way.
pub(super) fn install() -> io::Result<()> {
    // SAFETY: all zeros is a valid action, and the handler has the form that `SA_SIGINFO` takes.
    let installed = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = answer as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NODEFER;
        libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut())
    };
    if installed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The registers of a trapped call: its number, its arguments, and where its result goes.
struct Trapped {
    number: c_long,
    arguments: [u64; 4],
}

extern "C" fn answer(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands the interrupted thread's context over, and nobody else has it.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let Trapped { number, arguments: [directory, path, into, flags] } = trapped(context);
    let result = if number == libc::SYS_newfstatat {
        // SAFETY: the arguments are the library's own, as it would have handed them to the kernel.
        unsafe { status(directory as c_int, path as *const c_char, into as *mut libc::stat, flags as c_int) }
    } else {
        -c_long::from(libc::ENOSYS)
    };
    return_from(context, result);
}

/// The result as the kernel gives it: an error is negative.
unsafe fn status(directory: c_int, path: *const c_char, into: *mut libc::stat, flags: c_int) -> c_long {
    // SAFETY: as the caller promises; `errno` is this thread's own, and is left as it was.
    unsafe {
        let errno = *libc::__errno_location();
        // Newer kernels take no path at all for an empty one.
        let asks_descriptor = flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || *path == 0);
        let result =
            if asks_descriptor { status_of(directory, into) } else { status_of_opened(directory, path, into, flags) };
        let failed = *libc::__errno_location();
        *libc::__errno_location() = errno;
        c_long::from(if result == 0 { 0 } else { -failed })
    }
}

/// Not by the C library, which may ask by the call that is trapped.
unsafe fn status_of(descriptor: c_int, into: *mut libc::stat) -> c_int {
    // SAFETY: the kernel checks both.
    unsafe { libc::syscall(libc::SYS_fstat, descriptor, into) as c_int }
}

unsafe fn status_of_opened(directory: c_int, path: *const c_char, into: *mut libc::stat, flags: c_int) -> c_int {
    let follow = if flags & libc::AT_SYMLINK_NOFOLLOW == 0 { 0 } else { libc::O_NOFOLLOW };
    let how = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY | follow;
    // SAFETY: as above; what is opened is closed.
    unsafe {
        let opened = libc::openat(directory, path, how);
        if opened < 0 {
            return -1;
        }
        let result = status_of(opened, into);
        libc::close(opened);
        result
    }
}

#[cfg(target_arch = "x86_64")]
fn trapped(context: &libc::ucontext_t) -> Trapped {
    let register = |name: c_int| context.uc_mcontext.gregs[name as usize];
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10];
    Trapped { number: register(libc::REG_RAX), arguments: arguments.map(|name| register(name).cast_unsigned()) }
}

#[cfg(target_arch = "x86_64")]
fn return_from(context: &mut libc::ucontext_t, result: c_long) {
    context.uc_mcontext.gregs[libc::REG_RAX as usize] = result;
}

#[cfg(target_arch = "aarch64")]
fn trapped(context: &libc::ucontext_t) -> Trapped {
    let registers = &context.uc_mcontext.regs;
    Trapped { number: registers[8] as c_long, arguments: [registers[0], registers[1], registers[2], registers[3]] }
}

#[cfg(target_arch = "aarch64")]
fn return_from(context: &mut libc::ucontext_t, result: c_long) {
    context.uc_mcontext.regs[0] = result.cast_unsigned();
}
