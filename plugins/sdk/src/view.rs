//! Borrowed text and arrays, checked once and then safe to look at.
//!
//! A host promises UTF-8 and sound arrays. It is believed about pointers, as it has to be; what can be checked is
//! checked, since a fault found here is a refused call and not undefined behaviour.

use std::marker::PhantomData;
use std::{fmt, slice};

use almanac_plugin_abi::{Array, Pair, Record, Str, read_prefix};

/// A rule of the interface that an argument breaks, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Invalid(pub(crate) &'static str);

/// The text behind a pointer; None if it is absent.
///
/// # Safety
/// The bytes are readable and don't change for `'a`.
pub(crate) unsafe fn text<'a>(text: Str) -> Result<Option<&'a str>, Invalid> {
    if text.data.is_null() {
        return if text.len == 0 { Ok(None) } else { Err(Invalid("a text without bytes has a length")) };
    }
    if isize::try_from(text.len).is_err() {
        return Err(Invalid("a text is longer than memory"));
    }
    // SAFETY: not null, not too long, and readable by the contract.
    let bytes = unsafe { slice::from_raw_parts(text.data, text.len) };
    str::from_utf8(bytes).map(Some).map_err(|_| Invalid("a text is not UTF-8"))
}

/// An array of records whose elements can be longer than ours.
#[derive(Clone, Copy)]
pub(crate) struct List<'a, T> {
    array: Array,
    borrowed: PhantomData<&'a T>,
}

impl<'a, T: Record + 'a> List<'a, T> {
    /// # Safety
    /// The array's bytes are readable and don't change for `'a`.
    pub(crate) unsafe fn new(array: Array) -> Result<Self, Invalid> {
        if array.len > 0 {
            if array.data.is_null() {
                return Err(Invalid("an array without elements has a length"));
            }
            if array.stride < T::MIN_SIZE || !array.stride.is_multiple_of(8) {
                return Err(Invalid("an array's stride is no size of its elements"));
            }
            if array.len.checked_mul(array.stride).is_none_or(|size| isize::try_from(size).is_err()) {
                return Err(Invalid("an array is longer than memory"));
            }
        }
        Ok(Self { array, borrowed: PhantomData })
    }

    pub(crate) fn len(self) -> usize {
        self.array.len
    }

    pub(crate) fn get(self, index: usize) -> Option<T> {
        if index >= self.array.len {
            return None;
        }
        // SAFETY: `new` has seen that elements up to `len` lie within one object.
        let element = unsafe { self.array.data.byte_add(index * self.array.stride) };
        // SAFETY: readable by the contract of `new`; the stride is the size of each element.
        unsafe { read_prefix(element.cast(), self.array.stride) }
    }

    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator + use<'a, T> {
        (0..self.array.len)
            .map(move |index| self.get(index).expect("below the length, and `new` has checked the stride"))
    }
}

/// A list of texts.
#[derive(Clone, Copy)]
pub struct Strings<'a>(List<'a, Str>);

impl<'a> Strings<'a> {
    /// # Safety
    /// The array and its texts are readable and don't change for `'a`.
    pub(crate) unsafe fn new(array: Array) -> Result<Self, Invalid> {
        // SAFETY: by the contract.
        let list = unsafe { List::<Str>::new(array) }?;
        for element in list.iter() {
            // SAFETY: by the contract.
            unsafe { text(element) }?.ok_or(Invalid("a text in a list is absent"))?;
        }
        Ok(Self(list))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text at an index.
    pub fn get(&self, index: usize) -> Option<&'a str> {
        self.0.get(index).map(checked)
    }

    /// Whether `text` is one of them.
    pub fn contains(&self, text: &str) -> bool {
        self.iter().any(|one| one == text)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a str> + ExactSizeIterator + use<'a> {
        self.0.iter().map(checked)
    }
}

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A list of keys and values.
#[derive(Clone, Copy)]
pub struct Pairs<'a>(List<'a, Pair>);

impl<'a> Pairs<'a> {
    /// # Safety
    /// The array and its texts are readable and don't change for `'a`.
    pub(crate) unsafe fn new(array: Array) -> Result<Self, Invalid> {
        // SAFETY: by the contract.
        let list = unsafe { List::<Pair>::new(array) }?;
        for Pair { key, value } in list.iter() {
            for part in [key, value] {
                // SAFETY: by the contract.
                unsafe { text(part) }?.ok_or(Invalid("a key or its value is absent"))?;
            }
        }
        Ok(Self(list))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.iter().find_map(|(name, value)| (name == key).then_some(value))
    }

    /// All of them, ordered by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&'a str, &'a str)> + ExactSizeIterator + use<'a> {
        self.0.iter().map(|Pair { key, value }| (checked(key), checked(value)))
    }
}

impl fmt::Debug for Pairs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A text that the constructor of its list has seen to be there and to be UTF-8.
fn checked<'a>(text: Str) -> &'a str {
    // SAFETY: the bytes are those that the constructor looked at, and they don't change while the list is borrowed.
    unsafe { str::from_utf8_unchecked(slice::from_raw_parts(text.data, text.len)) }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    fn strings(array: Array) -> Result<Vec<&'static str>, Invalid> {
        // SAFETY: the arrays below are sound as far as they are looked at.
        unsafe { Strings::new(array) }.map(|strings| strings.iter().collect())
    }

    #[test]
    fn reads_elements_by_their_stride() {
        let wide = [[Str::new("a"), Str::new("skipped")], [Str::new("b"), Str::new("skipped")]];
        assert_eq!(strings(Array::new(&wide)), Ok(vec!["a", "b"]));
        assert_eq!(strings(Array { data: ptr::null(), len: 0, stride: 0 }), Ok(vec![]));
    }

    #[test]
    fn refuses_what_breaks_the_rules() {
        let one = [Str::new("a")];
        let sound = Array::new(&one);
        let invalid = [Str { data: [0xff].as_ptr(), len: 1 }];
        for (array, why) in [
            (Array { data: ptr::null(), ..sound }, "an array without elements has a length"),
            (Array { stride: 8, ..sound }, "an array's stride is no size of its elements"),
            (Array { stride: 17, ..sound }, "an array's stride is no size of its elements"),
            (Array { len: usize::MAX / 16, ..sound }, "an array is longer than memory"),
            (Array::new(&[Str::ABSENT]), "a text in a list is absent"),
            (Array::new(&[Str { data: ptr::null(), len: 3 }]), "a text without bytes has a length"),
            (Array::new(&[Str { len: usize::MAX, ..sound_text() }]), "a text is longer than memory"),
            (Array::new(&invalid), "a text is not UTF-8"),
        ] {
            assert_eq!(strings(array), Err(Invalid(why)));
        }
    }

    fn sound_text() -> Str {
        Str::new("text")
    }
}
