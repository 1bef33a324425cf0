//! SHA-256 sums, as files and tokens are told by them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::strict::FromNode;

/// A SHA-256 sum; written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, FromNode)]
#[node(try_from = "String")]
pub struct Sum(pub [u8; 32]);

/// A text that is no SHA-256 sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 sum has 64 hexadecimal digits")]
pub struct SumError;

impl Sum {
    /// The sum of `content`.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// Are both the same? Takes the same time whatever they are.
    pub fn equals(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Sum {
    type Err = SumError;

    fn from_str(text: &str) -> Result<Self, SumError> {
        let mut sum = [0; 32];
        hex::decode_to_slice(text, &mut sum).map_err(|_| SumError)?;
        Ok(Self(sum))
    }
}

impl TryFrom<String> for Sum {
    type Error = SumError;

    fn try_from(text: String) -> Result<Self, SumError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_written_as_it_is_read() {
        let sum = Sum::of(b"");
        assert_eq!(sum.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(sum.to_string().parse(), Ok(sum));
        assert_eq!(sum.to_string().to_uppercase().parse(), Ok(sum));
        for wrong in ["", "e3", &"x".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Sum>(), Err(SumError), "{wrong}");
        }
        assert!(sum.equals(&Sum::of(b"")) && !sum.equals(&Sum::of(b"a")));
    }
}
