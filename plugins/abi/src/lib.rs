//! The interface between Almanac and its rule libraries: the Rust mirror of `include/almanac_plugin.h`.
//!
//! # The problem
//!
//! A rule library is built by somebody else, at another time, with another compiler. Host and library must agree on
//! every byte that crosses the boundary, and go on agreeing when one of them is newer.
//!
//! # The approach
//!
//! The header is kept by hand and is the reference; what a field means stands there in full. This crate repeats it as
//! `repr(C)` types, asserts every offset at compile time, and its tests compare them with what the C compiler of the
//! machine says. Structs say their own size and grow at the end only; [`read_prefix`] turns a struct of any size into
//! one of today's, with zeros for what the other side doesn't know.
//!
//! Raw pointers only: there is nothing safe to say about foreign memory here. Authors of libraries want the crate
//! `almanac-plugin`, which is safe.
#![warn(missing_docs)] // published: each item states units, ranges and errors
#![cfg_attr(not(test), no_std)]
#![allow(unsafe_code, reason = "raw pointers are what this crate is about")]

mod layout;
mod read;
mod types;

pub use read::{Record, read_prefix};
pub use types::{Array, Descriptor, EntryFn, Host, Note, Pair, Request, Sink, Snapshot, Str, Suggestion, Tool, Vtable};

use core::ffi::CStr;

/// The major version of the interface, which is also in the entry's name.
pub const ABI_MAJOR: u32 = 1;
/// The minor version of the interface. A host runs libraries of its own minor and of lower ones.
pub const ABI_MINOR: u32 = 0;
/// The one function that a library exports; its type is [`EntryFn`].
pub const ENTRY_SYMBOL: &CStr = c"almanac_plugin_entry_v1";

/// Bits of a descriptor's `flags` that a host must know, or else refuse the library.
pub const FLAGS_MUST_KNOW: u64 = 0xffff_ffff_0000_0000;

/// The section of the ELF note.
pub const NOTE_SECTION: &str = ".note.almanac";
/// The owner of the ELF note, with its NUL.
pub const NOTE_OWNER: [u8; 8] = *b"Almanac\0";
/// The type of the ELF note: "ALM1".
pub const NOTE_TYPE: u32 = 0x414c_4d31;
/// Bytes of an id in the note, with at least one NUL.
pub const NOTE_ID_SIZE: usize = 128;
/// Bytes of a version in the note, with at least one NUL.
pub const NOTE_VERSION_SIZE: usize = 64;

/// Return codes: 0 or more is success, less than 0 is failure.
pub mod code {
    /// Done.
    pub const OK: i32 = 0;
    /// From a sink: taken, or dropped, and no more is wanted.
    pub const STOP: i32 = 1;
    /// An argument breaks a rule of the interface.
    pub const INVALID: i32 = -1;
    /// The other side is too old, or has no such thing.
    pub const UNSUPPORTED: i32 = -2;
    /// The configuration is wrong.
    pub const CONFIG: i32 = -3;
    /// The library failed.
    pub const INTERNAL: i32 = -4;
    /// The library failed for good: the instance answers nothing but this.
    pub const PANICKED: i32 = -5;
    /// The library gave up since the call was cancelled.
    pub const CANCELLED: i32 = -6;
}

/// Severities of log messages.
pub mod level {
    /// A failure; the last one is shown as the reason of a failed call.
    pub const ERROR: i32 = 1;
    /// Something is wrong, and the library goes on.
    pub const WARN: i32 = 2;
    /// Worth knowing.
    pub const INFO: i32 = 3;
    /// For the library's author.
    pub const DEBUG: i32 = 4;
    /// For the library's author, often.
    pub const TRACE: i32 = 5;
}

/// How complex a result was. Other values are data from a newer host.
pub mod complexity {
    /// Nobody said.
    pub const ABSENT: i32 = 0;
    /// "simple".
    pub const SIMPLE: i32 = 1;
    /// "moderate".
    pub const MODERATE: i32 = 2;
    /// "complex".
    pub const COMPLEX: i32 = 3;
}
