//! What a call costs as far as documents say it: whether it needs a key, and how often it may be called.

use super::document::ToolMetadata;

/// What the document of a tool says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Price {
    /// An environment variable without which it does nothing.
    key: Option<String>,
    /// Requests a month of the provider that allows most, and its name; nothing if no limit is documented.
    a_month: Option<(u64, String)>,
}

/// How the price of another tool differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PriceDifference {
    /// It costs less, for this reason.
    Cheaper(String),
    /// It costs more, for this reason.
    Dearer(String),
}

impl Price {
    pub(super) fn of(document: &ToolMetadata) -> Self {
        let keys = document.prerequisites.iter().filter(|needed| needed.fallback.is_empty());
        let of_all = keys.filter(|needed| needed.required_for.is_empty()).flat_map(|needed| &needed.env_vars);
        let limits = document.rate_limit.iter().flat_map(|limit| &limit.limits);
        Self {
            key: of_all.min().cloned(),
            a_month: limits.max_by_key(|(_, a_month)| **a_month).map(|(name, a_month)| (*a_month, name.clone())),
        }
    }

    /// What changes with `other`, whose tool is `instead`, in place of this of `tool`. Nothing if one is better in one
    /// way and worse in the other, or in none.
    pub(super) fn difference(&self, other: &Self, tool: &str, instead: &str) -> Option<PriceDifference> {
        let (gains, losses) = (self.gains(other, tool, instead), other.gains(self, instead, tool));
        match (gains.is_empty(), losses.is_empty()) {
            (false, true) => Some(PriceDifference::Cheaper(gains.join("; "))),
            (true, false) => Some(PriceDifference::Dearer(losses.join("; "))),
            _ => None,
        }
    }

    /// In what `other` is better.
    fn gains(&self, other: &Self, tool: &str, instead: &str) -> Vec<String> {
        let mut gains = Vec::new();
        if let (Some(key), None) = (&self.key, &other.key) {
            gains.push(format!("{tool} needs {key}, {instead} no key"));
        }
        match (&self.a_month, &other.a_month) {
            (Some((a_month, provider)), None) => gains.push(format!(
                "{tool} is limited to {a_month} requests a month ({provider}), of {instead} no such limit is documented"
            )),
            (Some((less, provider)), Some((more, other))) if less < more => {
                gains.push(format!("{tool} allows {less} requests a month ({provider}), {instead} {more} ({other})"));
            }
            _ => {}
        }
        gains
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(key: Option<&str>, a_month: Option<u64>) -> Price {
        Price { key: key.map(Into::into), a_month: a_month.map(|a_month| (a_month, "p".to_owned())) }
    }

    #[test]
    fn one_is_cheaper_if_it_is_worse_in_nothing() {
        let check = |one: Price, other: Price, expected: Option<&str>| {
            let cheaper = expected.map(|why| PriceDifference::Cheaper(why.to_owned()));
            assert_eq!(one.difference(&other, "a", "b"), cheaper);
            let dearer = expected.map(|why| PriceDifference::Dearer(why.to_owned()));
            assert_eq!(other.difference(&one, "b", "a"), dearer);
        };
        check(price(Some("K"), None), price(None, None), Some("a needs K, b no key"));
        check(price(None, Some(9)), price(None, Some(20)), Some("a allows 9 requests a month (p), b 20 (p)"));
        let limited = "a is limited to 9 requests a month (p), of b no such limit is documented";
        check(price(Some("K"), Some(9)), price(Some("L"), None), Some(limited));
        check(price(Some("K"), None), price(None, Some(9)), None);
        check(price(None, None), price(None, None), None);
    }

    #[test]
    fn a_document_says_it() {
        let document = |more: &str| -> ToolMetadata {
            let head =
                "name: a\ntitle: t\ndescription: d\ncategory: c\ncapabilities: []\nkeywords: []\nuse_cases: []\n";
            super::super::load::parse("x".as_ref(), format!("{head}{more}").as_bytes(), 10_000).unwrap()
        };
        let of = |more: &str| Price::of(&document(more));
        assert_eq!(of("rate_limit: {limits: {q: 100, p: 2000}}"), price(None, Some(2000)));
        assert_eq!(of("prerequisites: [{name: n, env_vars: [K], how_to_get: h}]"), price(Some("K"), None));
        assert_eq!(of("prerequisites: [{name: n, env_vars: [K], how_to_get: h, fallback: slower}]"), price(None, None));
        assert_eq!(
            of("prerequisites: [{name: n, env_vars: [K], how_to_get: h, required_for: [p]}]"),
            price(None, None)
        );
    }
}
