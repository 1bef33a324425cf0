//! Texts that were removed for good, by digests: enough to find what was noted of them, and no word of theirs.

use std::collections::HashSet;

use super::notes::digest;
use crate::session::turns::{MAX_MESSAGE_BYTES, MAX_SAID_BYTES};
use crate::text::head::head;

/// What a text is known by where it is not kept: see [`digest`].
pub(crate) type TextDigest = [u8; 16];

/// Texts that went, as far as any of each is ever noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgottenTexts(HashSet<TextDigest>);

impl ForgottenTexts {
    /// Takes one; what is noted of it is found by these.
    pub(crate) fn insert(&mut self, text: &str) -> Vec<TextDigest> {
        // A session without a message stands at none.
        let heads = [MAX_MESSAGE_BYTES, MAX_SAID_BYTES].into_iter().map(|most| head(text, most));
        let digests: Vec<TextDigest> = heads.filter(|head| !head.is_empty()).map(digest).collect();
        self.0.extend(&digests);
        digests
    }

    /// Is this one of them, as it is noted?
    pub fn has(&self, noted: &str) -> bool {
        !self.0.is_empty() && self.has_digest(&digest(noted))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn extend(&mut self, others: &Self) {
        self.0.extend(&others.0);
    }

    /// All digests, one after the other.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flatten().copied().collect()
    }

    /// From [`Self::to_bytes`]; what is left over at the end is nobody's.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.as_chunks().0.iter().copied().collect())
    }

    pub(super) fn has_digest(&self, digest: &TextDigest) -> bool {
        self.0.contains(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_as_it_is_noted() {
        let long = "ü".repeat(MAX_MESSAGE_BYTES);
        let mut texts = ForgottenTexts::default();
        for text in ["tea", "", &long] {
            texts.insert(text);
        }
        let has = ["tea", "te", "", head(&long, MAX_MESSAGE_BYTES), head(&long, MAX_SAID_BYTES), head(&long, 100)]
            .map(|noted| texts.has(noted));
        assert_eq!(has, [true, false, false, true, true, false]);
        let bytes = texts.to_bytes();
        assert_eq!((bytes.len(), ForgottenTexts::of_bytes(&bytes)), (3 * size_of::<TextDigest>(), texts));
        assert_eq!(ForgottenTexts::of_bytes(&bytes[..15]), ForgottenTexts::default());
    }
}
