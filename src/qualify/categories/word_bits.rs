//! Which words a text may have, in sixteen bytes.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// A bit for each word (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970, with one hash): most
/// names are told apart from a message by them, so that few are looked for word by word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WordBits(u128);

impl WordBits {
    pub(super) fn of<'w>(words: impl Iterator<Item = &'w str>) -> Self {
        Self(words.fold(0, |bits, word| bits | 1 << place(word)))
    }

    /// May a text with these bits have all words of one with the `other` ones? If not, it surely has not.
    pub(super) fn may_have(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
}

/// 0 to 127, the same for the same word.
fn place(word: &str) -> u64 {
    FixedState::default().hash_one(word) >> (u64::BITS - u128::BITS.ilog2())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn most_others_are_told_apart() {
        let message = WordBits::of("what is the weather in paris tomorrow".split(' '));
        let others =
            (0..1000).filter(|number| message.may_have(WordBits::of([format!("word{number}").as_str()].into_iter())));
        assert!(others.count() < 100);
        assert!(message.may_have(WordBits::default()) && !WordBits::default().may_have(message));
    }

    proptest! {
        #[test]
        fn what_is_had_is_never_missed(words in prop::collection::vec("\\PC{0,6}", 0..20), from in 0_usize..20) {
            let part = &words[from.min(words.len())..];
            let of = |words: &[String]| WordBits::of(words.iter().map(String::as_str));
            prop_assert!(of(&words).may_have(of(part)));
        }
    }
}
