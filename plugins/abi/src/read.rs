//! Reading a struct whose size the other side decided.
//!
//! A shorter struct comes from an older party, a longer one from a newer party. Checking the size before each field is
//! easy to forget, so the covered part is copied into a struct of today's size, and the rest is zero: an absent text,
//! no function, no elements.

use core::mem::MaybeUninit;
use core::ptr;

use crate::types::{Descriptor, Host, Pair, Request, Sink, Snapshot, Str, Suggestion, Tool, Vtable};

/// A struct of the interface that may grow.
///
/// # Safety
/// All zeros are a valid value, every bit pattern is, and the type has no `Drop`.
pub unsafe trait Record: Copy {
    /// The size in version 1.0, in bytes; nobody may send less.
    const MIN_SIZE: usize;
}

macro_rules! records {
    ($($record:ident: $size:literal,)*) => {$(
        // SAFETY: integers, floats, raw pointers and optional functions, all of which may be zero. An optional function
        // that is not zero is a function by the rules of the interface, which the caller of `read_prefix` vouches for.
        unsafe impl Record for $record {
            const MIN_SIZE: usize = $size;
        }
    )*};
}

// Frozen: these are sizes of version 1.0, whatever the structs grow to.
records! {
    Str: 16,
    Pair: 32,
    Tool: 80,
    Host: 80,
    Snapshot: 40,
    Request: 152,
    Suggestion: 48,
    Sink: 24,
    Vtable: 48,
    Descriptor: 120,
}

/// Copies the part of a record that both sides know; the rest is zero. None if the size is below [`Record::MIN_SIZE`].
///
/// `size` is what the record says of itself in `struct_size`, or its array's stride. A size that ends within a field
/// doesn't cover it: half a pointer is none.
///
/// # Safety
/// `source` points to at least `size` readable bytes if `size` is at least `MIN_SIZE`. It need not be aligned.
pub unsafe fn read_prefix<T: Record>(source: *const T, size: usize) -> Option<T> {
    if size < T::MIN_SIZE {
        return None;
    }
    // Records are as aligned as their largest field, and every sound size is a multiple of that.
    let covered = (size - size % align_of::<T>()).min(size_of::<T>());
    let mut record = MaybeUninit::<T>::zeroed();
    // SAFETY: the source has `covered` bytes by the contract, and so has the target, which is ours.
    unsafe { ptr::copy_nonoverlapping(source.cast::<u8>(), record.as_mut_ptr().cast(), covered) };
    // SAFETY: a `Record` is valid with zeros, and where it was written it has what the other side put there.
    Some(unsafe { record.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Suggestion =
        Suggestion { struct_size: 48, reserved: 0, tool: Str::new("tool"), reason: Str::new("why"), score: 0.5 };

    /// A suggestion as a newer party sends it.
    #[repr(C)]
    struct Longer {
        known: Suggestion,
        unknown: [u8; 32],
    }

    fn read(size: usize) -> Option<Suggestion> {
        let sent = Longer { known: SENT, unknown: [0xff; 32] };
        // SAFETY: `sent` has 80 bytes.
        unsafe { read_prefix((&raw const sent).cast(), size) }
    }

    #[test]
    fn reads_what_both_sides_know() {
        for size in [48, 49, 56, 80] {
            let read = read(size).unwrap();
            assert_eq!((read.tool, read.reason, read.score), (SENT.tool, SENT.reason, SENT.score), "{size} bytes");
        }
        for size in [0, 4, 47] {
            assert!(read(size).is_none(), "{size} bytes");
        }
    }

    #[test]
    fn half_a_field_is_none() {
        /// A suggestion of a later version.
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Later {
            known: Suggestion,
            pointer: *const u8,
        }
        // SAFETY: as `Suggestion`, with one more pointer.
        unsafe impl Record for Later {
            const MIN_SIZE: usize = 48;
        }
        let sent = Later { known: SENT, pointer: b"text".as_ptr() };
        for size in 48..=56 {
            // SAFETY: `sent` has 56 bytes.
            let read = unsafe { read_prefix(&raw const sent, size) }.unwrap();
            assert_eq!(read.pointer.is_null(), size < 56, "{size} bytes");
            assert_eq!(read.known.tool, SENT.tool);
        }
    }

    #[test]
    fn need_not_be_aligned() {
        let mut bytes = [0_u8; 17];
        let text = Str::new("text");
        // SAFETY: 16 bytes from the second one on.
        unsafe { ptr::copy_nonoverlapping((&raw const text).cast::<u8>(), bytes.as_mut_ptr().add(1), 16) };
        // SAFETY: as above.
        assert_eq!(unsafe { read_prefix::<Str>(bytes.as_ptr().add(1).cast(), 16) }, Some(text));
    }
}
