//! What a library is given by its host: a log, a clock, and whether anybody still waits.
#![allow(unsafe_code, reason = "functions that foreign code calls")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use almanac_plugin_abi::{ABI_MINOR, Host, Str, level};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::text;

/// Longest message that is logged, in bytes; longer ones are cut.
const MAX_LOG_BYTES: usize = 1024;

/// Where a library's messages go: a level of the interface, and the text.
pub(super) type LogSink = Box<dyn Fn(i32, &str) + Send + Sync>;

/// The services of one instance. Lives as long as the process once a library knows it.
pub(super) struct Services {
    host: Host,
    context: Context,
}

struct Context {
    log: LogSink,
    last_error: Mutex<Option<String>>,
    /// On the clock of `now_ns`; 0 for never.
    deadline_ns: AtomicU64,
}

impl Services {
    /// Services that log to `log`. Leaked on purpose: a thread that a library left behind may still ask.
    pub(super) fn leak(log: LogSink) -> &'static Self {
        let context = Context { log, last_error: Mutex::default(), deadline_ns: AtomicU64::new(0) };
        let host = Host {
            struct_size: size_of::<Host>() as u32,
            abi_minor: ABI_MINOR,
            context: ptr::null_mut(),
            name: Str::new("almanacd"),
            version: Str::new(env!("CARGO_PKG_VERSION")),
            log: Some(log_message),
            now_ns: Some(now_ns_of),
            is_cancelled: Some(is_cancelled),
            get_extension: Some(get_extension),
        };
        let services = Box::leak(Box::new(Self { host, context }));
        services.host.context = (&raw const services.context).cast_mut().cast();
        services
    }

    /// The table as a library sees it.
    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// From now on nobody waits after `deadline_ns`; 0 for never.
    pub(super) fn set_deadline(&self, deadline_ns: u64) {
        self.context.deadline_ns.store(deadline_ns, Ordering::Relaxed);
    }

    /// Says something about the library where it speaks itself.
    pub(super) fn warn(&self, message: &str) {
        (self.context.log)(level::WARN, message);
    }

    /// The last message of a failure since this was asked before.
    pub(super) fn take_error(&self) -> Option<String> {
        self.context.last_error.lock().take()
    }
}

// SAFETY: the pointers in `host` lead to static texts and to `context`, which is shared by reference only.
unsafe impl Sync for Services {}

/// Nanoseconds on a clock that never goes back.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// # Safety
/// `host` is a table that [`Services::leak`] made, or null.
unsafe fn context<'c>(host: *const Host) -> Option<&'c Context> {
    // SAFETY: by the contract; tables are never freed, and their context is theirs.
    unsafe { host.as_ref()?.context.cast::<Context>().as_ref() }
}

unsafe extern "C" fn log_message(host: *const Host, severity: i32, message: Str) {
    // SAFETY: the library hands back the table it was given, and a message that it borrows us.
    let (Some(context), Some(bytes)) = (unsafe { context(host) }, unsafe { text::prefix(message, MAX_LOG_BYTES) })
    else {
        return;
    };
    let line: String = String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if severity == level::ERROR {
        *context.last_error.lock() = Some(line.clone());
    }
    (context.log)(severity, &line);
}

unsafe extern "C" fn now_ns_of(_: *const Host) -> u64 {
    now_ns()
}

unsafe extern "C" fn is_cancelled(host: *const Host) -> i32 {
    // SAFETY: the library hands back the table it was given.
    let deadline = unsafe { context(host) }.map_or(0, |context| context.deadline_ns.load(Ordering::Relaxed));
    i32::from(deadline != 0 && now_ns() >= deadline)
}

unsafe extern "C" fn get_extension(_: *const Host, _: Str) -> *const c_void {
    ptr::null()
}
