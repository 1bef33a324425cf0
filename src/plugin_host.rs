//! Rule libraries: shared objects of third parties that propose what to call next, run so that none of them can harm
//! the daemon.
//!
//! # The problem
//!
//! Foreign machine code crashes, hangs, leaks and, at worst, is hostile. The daemon must answer all along, replace a
//! library while it runs, and never be told wrong by one that is broken.
//!
//! # The approach
//!
//! Each library lives in a [`worker`]: this binary executed again, confined by `sandbox` before a byte of foreign code
//! runs, at the other end of a socket. `supervisor` is one thread that reads the files (`discover`, `library`, `note`),
//! starts and ends workers (`process`), and decides what follows from a `fault` (`quarantine`). It publishes a table of
//! those that are ready; [`Host::propose`] asks all of them at once over their `link`s, waits no longer than the
//! deadline, and says who is missing. A worker that is late is killed and started again; a process that ends takes
//! everything with it that a library may have left behind, which no way of unloading one from a living process does.
//!
//! `instance` is where foreign code is called, in a worker or, if the operator says so, `inside` the daemon; with
//! `services`, `sink` and `text`, which foreign code calls or lends, it holds all of the crate's `unsafe`, but for the
//! descriptors that a worker inherits.
//!
//! # Rejected
//!
//! Unloading a library from the daemon (reopening a path can return the old code; thread-local destructors keep it
//! mapped or crash it). Threads instead of processes (a segmentation fault has no thread). WebAssembly (rules in C, C++
//! and Rust exist and need no port; a process costs a few microseconds a call). Memory that daemon and worker share
//! instead of a socket (what foreign code can write at any time is harder to read safely, and calls that are sent
//! together share the switches, which are most of the cost).

mod ask;
mod check;
mod discover;
mod elf_note;
mod experiment;
mod fault;
mod file_status;
mod host;
mod in_process;
mod instance;
mod library;
mod link;
mod process;
mod quarantine;
mod sandbox;
mod services;
mod settings;
mod sink;
mod slot;
mod socket_line;
mod start_error;
mod state;
mod supervisor;
mod text;
mod thread_limit;
mod trial;
mod wire;
pub mod worker;

pub use ask::{Ask, ComplexityLevel, Proposal, Proposals, Snapshot, Tool};
pub use check::{CALL_TIME, Finding, check};
pub use elf_note::{ElfNoteError, Identity, identify};
pub use fault::LibraryFault;
pub use host::{Host, HostError, ListedLibrary, Reloaded};
pub use library::{Library, LibraryError};
pub use settings::{Isolation, Launch, Settings};
pub use state::{CallFigures, CallOutcome, LibraryCounts, LibraryStatus, PastFault, State};
pub use trial::{Trial, TrialError};
pub use wire::{Confined, Hello, Lack, confinement};
