//! Records with a tail that nobody knows, as a newer host sends them.

use almanac_plugin_abi::Str;

/// A record, and what a later version has put behind it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Longer<T> {
    pub(super) known: T,
    unknown: [u64; 2],
}

impl<T> Longer<T> {
    /// What such a record says in `struct_size`.
    pub(super) const SIZE: u32 = size_of::<Self>() as u32;

    pub(super) fn new(known: T) -> Self {
        // Neither zero, nor a pointer that can be followed.
        Self { known, unknown: [0xa5a5_a5a5_a5a5_a5a5; 2] }
    }
}

/// A list of texts with a stride of its own.
pub(super) fn texts(texts: &[String]) -> Vec<Longer<Str>> {
    texts.iter().map(|text| Longer::new(Str::new(text))).collect()
}
