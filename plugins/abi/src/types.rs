//! The structs of the header, field by field. What they mean in full, and how long pointers live, stands in the header.

use core::ffi::c_void;
use core::ptr;

use crate::{NOTE_ID_SIZE, NOTE_OWNER, NOTE_TYPE, NOTE_VERSION_SIZE};

/// The type of the function named [`ENTRY_SYMBOL`](crate::ENTRY_SYMBOL). `[exclusive]`
pub type EntryFn = unsafe extern "C" fn() -> *const Descriptor;

/// Text: UTF-8, not terminated; absent if `data` is null.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Str {
    /// The first byte; not null if the text is empty rather than absent.
    pub data: *const u8,
    /// Bytes.
    pub len: usize,
}

/// Elements, `stride` bytes apart.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array {
    /// The first element; may be null if there is none.
    pub data: *const c_void,
    /// Elements.
    pub len: usize,
    /// Bytes from one element to the next, which is an element's size; a multiple of 8.
    pub stride: usize,
}

/// A key and its value.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// The key.
    pub key: Str,
    /// Its value.
    pub value: Str,
}

/// Services of the host, valid from the call of `create` until `destroy` returns.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Bytes.
    pub struct_size: u32,
    /// The host's minor version.
    pub abi_minor: u32,
    /// The host's own.
    pub context: *mut c_void,
    /// The host's name.
    pub name: Str,
    /// The host's version.
    pub version: Str,
    /// Writes a message to the log, with a [`level`](crate::level). `[thread-safe]`
    pub log: Option<unsafe extern "C" fn(host: *const Host, level: i32, message: Str)>,
    /// Nanoseconds on a clock that never goes back. `[thread-safe]`
    pub now_ns: Option<unsafe extern "C" fn(host: *const Host) -> u64>,
    /// 1 if nobody waits for the current call any more. `[thread-safe]`
    pub is_cancelled: Option<unsafe extern "C" fn(host: *const Host) -> i32>,
    /// A table of further functions, or null. `[thread-safe]`
    pub get_extension: Option<unsafe extern "C" fn(host: *const Host, id: Str) -> *const c_void>,
}

/// A tool of the catalog.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Its name.
    pub name: Str,
    /// Its category; may be empty.
    pub category: Str,
    /// Of [`Str`].
    pub capabilities: Array,
    /// Of [`Str`].
    pub keywords: Array,
}

/// All tools of one generation of the catalog, ordered by name.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Snapshot {
    /// Bytes.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Grows with every change of the catalog.
    pub generation: u64,
    /// Of [`Tool`].
    pub tools: Array,
}

/// What has happened, and what is known about it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Bytes.
    pub struct_size: u32,
    /// One of [`complexity`](crate::complexity).
    pub complexity: i32,
    /// Of the catalog.
    pub generation: u64,
    /// The tool that was called.
    pub tool: Str,
    /// The mode it ran in, or absent.
    pub mode: Str,
    /// The session, or absent.
    pub session_id: Str,
    /// What the agent is after, or absent.
    pub goal: Str,
    /// How many results the tool gave.
    pub num_outputs: u64,
    /// 1 if the result has open branches, else 0.
    pub has_branches: i32,
    /// 0.
    pub reserved: u32,
    /// Of [`Str`]: tools called recently, the oldest first.
    pub history: Array,
    /// Of [`Pair`]: further facts about the result, ordered by key.
    pub context: Array,
    /// When the answer goes out without this library, on the clock of `now_ns`; 0 for never.
    pub deadline_ns: u64,
}

/// A tool to call next.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Suggestion {
    /// Bytes.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Its name in the catalog.
    pub tool: Str,
    /// Why: one sentence.
    pub reason: Str,
    /// 0 to 1, how strongly.
    pub score: f64,
}

/// Where suggestions go. Valid during one call of `suggest`, on its thread.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Sink {
    /// Bytes.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// The host's own.
    pub context: *mut c_void,
    /// Takes a copy of one suggestion: [`OK`](crate::code::OK), [`STOP`](crate::code::STOP) or
    /// [`INVALID`](crate::code::INVALID).
    pub push: Option<unsafe extern "C" fn(sink: *const Sink, suggestion: *const Suggestion) -> i32>,
}

/// The functions of a library. `create`, `destroy` and `suggest` are required.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Vtable {
    /// Bytes.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Makes an instance from a JSON object. `[exclusive]`
    pub create: Option<unsafe extern "C" fn(host: *const Host, config: Str, instance: *mut *mut c_void) -> i32>,
    /// Frees an instance. `[exclusive]`
    pub destroy: Option<unsafe extern "C" fn(instance: *mut c_void)>,
    /// Tells the catalog. `[one-at-a-time]`
    pub on_snapshot: Option<unsafe extern "C" fn(instance: *mut c_void, snapshot: *const Snapshot) -> i32>,
    /// Proposes what to call next. `[one-at-a-time]`
    pub suggest: Option<unsafe extern "C" fn(instance: *mut c_void, request: *const Request, sink: *const Sink) -> i32>,
    /// A table of further functions, or null. `[thread-safe]`
    pub get_extension: Option<unsafe extern "C" fn(instance: *mut c_void, id: Str) -> *const c_void>,
}

/// What a library is. Static, and never changed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    /// Bytes.
    pub struct_size: u32,
    /// The minor version that the library was built with.
    pub abi_minor: u32,
    /// See [`FLAGS_MUST_KNOW`](crate::FLAGS_MUST_KNOW).
    pub flags: u64,
    /// Reverse DNS, 1 to 127 bytes.
    pub id: Str,
    /// For people.
    pub name: Str,
    /// Of the library, 1 to 63 bytes.
    pub version: Str,
    /// May be empty.
    pub vendor: Str,
    /// May be empty.
    pub url: Str,
    /// JSON Schema of its configuration, or empty.
    pub config_schema: Str,
    /// Its functions.
    pub vtable: *const Vtable,
}

// SAFETY: a descriptor is static data by the rules of the interface, and so is all that it points to.
unsafe impl Sync for Descriptor {}

/// What a library is, readable without running it: a whole ELF note.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// Bytes of `owner`.
    pub owner_size: u32,
    /// Bytes behind `owner`.
    pub desc_size: u32,
    /// [`NOTE_TYPE`].
    pub kind: u32,
    /// [`NOTE_OWNER`].
    pub owner: [u8; 8],
    /// Of the interface.
    pub abi_major: u32,
    /// Of the interface.
    pub abi_minor: u32,
    /// As in the descriptor, padded with NUL.
    pub id: [u8; NOTE_ID_SIZE],
    /// As in the descriptor, padded with NUL.
    pub version: [u8; NOTE_VERSION_SIZE],
}

impl Str {
    /// Text that is absent.
    pub const ABSENT: Self = Self { data: ptr::null(), len: 0 };

    /// Borrows a text; the borrow is not tracked.
    pub const fn new(text: &str) -> Self {
        Self { data: text.as_ptr(), len: text.len() }
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<Option<&str>> for Str {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Self::ABSENT, Self::new)
    }
}

impl Array {
    /// Borrows a slice; the borrow is not tracked.
    pub const fn new<T>(elements: &[T]) -> Self {
        Self { data: elements.as_ptr().cast(), len: elements.len(), stride: size_of::<T>() }
    }
}

impl Note {
    /// The size of the description: what stands behind the owner, in bytes.
    pub const DESC_SIZE: usize = size_of::<Self>() - 20;

    /// The note of a library with this id and version, as this version of the interface writes it.
    ///
    /// # Panics
    /// At compile time, if a text is empty or too long to leave room for one NUL.
    pub const fn new(id: &str, version: &str) -> Self {
        Self {
            owner_size: NOTE_OWNER.len() as u32,
            desc_size: Self::DESC_SIZE as u32,
            kind: NOTE_TYPE,
            owner: NOTE_OWNER,
            abi_major: crate::ABI_MAJOR,
            abi_minor: crate::ABI_MINOR,
            id: padded(id),
            version: padded(version),
        }
    }
}

/// The bytes of a text, and zeros.
const fn padded<const SIZE: usize>(text: &str) -> [u8; SIZE] {
    let bytes = text.as_bytes();
    assert!(!bytes.is_empty() && bytes.len() < SIZE, "id: 1 to 127 bytes, version: 1 to 63 bytes");
    let mut padded = [0; SIZE];
    let mut at = 0;
    while at < bytes.len() {
        padded[at] = bytes[at];
        at += 1;
    }
    padded
}
