//! The host that the driver plays.

use std::rc::{Rc, Weak};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use almanac_plugin_abi::{ABI_MINOR, Host, Str};

use super::longer::Longer;

/// What the library has said, what it is told, and the table that it calls.
#[derive(Debug)]
pub(super) struct HostState {
    table: Longer<Host>,
    messages: Mutex<Vec<(i32, String)>>,
    cancelled: AtomicBool,
    start: Instant,
}

impl HostState {
    pub(super) fn new() -> Rc<Self> {
        Rc::new_cyclic(|this: &Weak<Self>| Self {
            table: Longer::new(Host {
                struct_size: Longer::<Host>::SIZE,
                abi_minor: ABI_MINOR,
                context: this.as_ptr().cast_mut().cast(),
                name: Str::new("almanac-plugin testing"),
                version: Str::new(env!("CARGO_PKG_VERSION")),
                log: Some(log),
                now_ns: Some(now_ns),
                is_cancelled: Some(is_cancelled),
                get_extension: None,
            }),
            messages: Mutex::default(),
            cancelled: AtomicBool::new(false),
            start: Instant::now(),
        })
    }

    pub(super) fn table(&self) -> *const Host {
        &raw const self.table.known
    }

    pub(super) fn messages(&self) -> Vec<(i32, String)> {
        self.lock().clone()
    }

    pub(super) fn cancel(&self, cancelled: bool) {
        self.cancelled.store(cancelled, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(i32, String)>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// # Safety
/// `host` is the table of a state that lives.
unsafe fn state<'a>(host: *const Host) -> &'a HostState {
    // SAFETY: its context is the state, which is only ever borrowed shared.
    unsafe { &*(*host).context.cast::<HostState>() }
}

unsafe extern "C" fn log(host: *const Host, level: i32, message: Str) {
    if message.data.is_null() {
        return;
    }
    // SAFETY: not null, and borrowed for the call.
    let bytes = unsafe { slice::from_raw_parts(message.data, message.len) };
    // SAFETY: called by the library with the host that it was given.
    unsafe { state(host) }.lock().push((level, String::from_utf8_lossy(bytes).into_owned()));
}

unsafe extern "C" fn now_ns(host: *const Host) -> u64 {
    // SAFETY: as in `log`.
    let elapsed = unsafe { state(host) }.start.elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

unsafe extern "C" fn is_cancelled(host: *const Host) -> i32 {
    // SAFETY: as in `log`.
    unsafe { state(host) }.cancelled.load(Ordering::Relaxed).into()
}
