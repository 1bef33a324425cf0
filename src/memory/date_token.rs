//! The words and numbers of a text as dates are read from them, with what stands between.

use super::named_date::day;

/// A word or number, and what stands before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub(super) gap: &'t str,
    pub(super) text: &'t str,
}

impl Token<'_> {
    pub(super) fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    pub(super) fn is_number(&self) -> bool {
        self.text.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// Does it say nothing within a date?
    pub(super) fn is_filler(&self) -> bool {
        self.is("of") || self.is("the")
    }

    /// Does nothing part it from what stands before?
    pub(super) fn is_joined(&self) -> bool {
        matches!(self.gap.trim(), "" | "-" | "/")
    }

    /// Does a range end with it, such as the days of `8-10 May`?
    pub(super) fn ends_range(&self) -> bool {
        matches!(self.gap.trim(), "-" | "\u{2013}") && day(self.text).is_some()
    }
}

pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(char::is_alphanumeric) {
        let (gap, from) = rest.split_at(begin);
        let end = from.find(|c: char| !c.is_alphanumeric()).unwrap_or(from.len());
        let (text, behind) = from.split_at(end);
        tokens.push(Token { gap, text });
        rest = behind;
    }
    tokens
}

/// Its words and numbers, in order.
pub(super) fn words(text: &str) -> Vec<&str> {
    tokens(text).into_iter().map(|token| token.text).collect()
}
