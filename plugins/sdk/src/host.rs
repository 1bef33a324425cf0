//! The services of the daemon.

use std::fmt::{self, Display};
use std::time::Duration;

use almanac_plugin_abi::{self as abi, Str, level, read_prefix};

/// How bad a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A failure. The last such message is shown as the reason when a call fails.
    Error,
    /// Something is wrong, and the rule goes on.
    Warn,
    /// Worth knowing.
    Info,
    /// For the library's author.
    Debug,
    /// For the library's author, often.
    Trace,
}

impl Level {
    fn code(self) -> i32 {
        match self {
            Self::Error => level::ERROR,
            Self::Warn => level::WARN,
            Self::Info => level::INFO,
            Self::Debug => level::DEBUG,
            Self::Trace => level::TRACE,
        }
    }
}

/// Log, clock and cancellation, borrowed for the length of one call.
#[derive(Clone, Copy)]
pub struct Host<'a>(&'a Services);

impl Host<'_> {
    /// Writes a message to the daemon's log. Long messages are cut, floods are dropped.
    ///
    /// ```
    /// # fn example(host: almanac_plugin::Host<'_>, kept: usize) {
    /// use almanac_plugin::Level;
    /// host.log(Level::Debug, format_args!("{kept} tools kept"));
    /// # }
    /// ```
    pub fn log(&self, level: Level, message: impl Display) {
        self.0.log(level, &message.to_string());
    }

    /// Time since some fixed moment, on a clock that never goes back. Zero if the host has no clock.
    pub fn now(&self) -> Duration {
        let Services { pointer, table } = self.0;
        // SAFETY: a function of the host that the pointer belongs to, which lives while there are calls.
        table.now_ns.map_or(Duration::ZERO, |now| Duration::from_nanos(unsafe { now(*pointer) }))
    }

    /// Whether nobody waits for the current call any more. Worth asking in long loops.
    pub fn is_cancelled(&self) -> bool {
        let Services { pointer, table } = self.0;
        // SAFETY: as in `now`.
        table.is_cancelled.is_some_and(|cancelled| unsafe { cancelled(*pointer) } != 0)
    }
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("abi_minor", &self.0.table.abi_minor).finish_non_exhaustive()
    }
}

/// The host's table, copied as far as both sides know it, and the host's own, which its functions want.
pub(crate) struct Services {
    pointer: *const abi::Host,
    table: abi::Host,
}

impl Services {
    /// None for a host that breaks the rules of the interface.
    ///
    /// # Safety
    /// `host` is null, or a host that lives as long as the result.
    pub(crate) unsafe fn read(host: *const abi::Host) -> Option<Self> {
        if host.is_null() {
            return None;
        }
        // SAFETY: every host starts with its size, by the contract.
        let size = unsafe { (&raw const (*host).struct_size).read() };
        // SAFETY: it has as many bytes as it says.
        let table = unsafe { read_prefix(host, size as usize) }?;
        Some(Self { pointer: host, table })
    }

    pub(crate) fn host(&self) -> Host<'_> {
        Host(self)
    }

    pub(crate) fn log(&self, level: Level, message: &str) {
        if let Some(log) = self.table.log {
            // SAFETY: a function of the host that the pointer belongs to; the message is borrowed for the call.
            unsafe { log(self.pointer, level.code(), Str::new(message)) };
        }
    }
}
