//! Which revisions of the protocol are spoken.

use crate::strict::Word;

/// A revision of the protocol that is spoken, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Without annotations; its HTTP transport is not spoken.
    V2024_11_05,
    /// With streamable HTTP; its batches are not spoken.
    V2025_03_26,
    /// With structured results and elicitation.
    V2025_06_18,
    /// The last one with a handshake.
    V2025_11_25,
    /// Every request stands for itself.
    V2026_07_28,
}

/// How a peer is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Word)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// `initialize`, then a session.
    Legacy,
    /// Version, client and capabilities in each request.
    Modern,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// What `initialize` offers, and answers a version with that is not spoken.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// What a modern peer is spoken to in.
    pub const LATEST_MODERN: Self = Self::V2026_07_28;

    /// As it goes over the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The version of that name, if it is spoken.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// How peers of this version are spoken to.
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }

    /// What is answered to an `initialize` that asks for `wanted`: that if it is spoken and has a handshake.
    pub fn negotiated(wanted: &str) -> Self {
        Self::parse(wanted).filter(|version| version.era() == Era::Legacy).unwrap_or(Self::LATEST_LEGACY)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_written() {
        for version in Version::ALL {
            assert_eq!(Version::parse(version.as_str()), Some(version));
        }
        assert_eq!(Version::parse("2026-07-29"), None);
        assert!(Version::ALL.is_sorted());
    }

    #[test]
    fn a_handshake_ends_in_a_version_that_has_one() {
        let check =
            |wanted: &str, expected: &str| assert_eq!(Version::negotiated(wanted).as_str(), expected, "{wanted}");
        check("2024-11-05", "2024-11-05");
        check("2025-11-25", "2025-11-25");
        check("2026-07-28", "2025-11-25");
        check("1999-01-01", "2025-11-25");
        check("", "2025-11-25");
    }
}
