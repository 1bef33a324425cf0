//! What a client can, as far as it matters to whoever asks it something.

use serde_json::{Map, Value};

/// The extension by which a call becomes a task that its client comes back for.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A set of a client's capabilities; small, since every id of a legacy session holds one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Capabilities(u16);

/// Each with its path in the client's own words.
const PATHS: [(Capabilities, &[&str]); 8] = [
    (Capabilities::ROOTS, &["roots"]),
    (Capabilities::ROOTS_CHANGED, &["roots", "listChanged"]),
    (Capabilities::SAMPLING, &["sampling"]),
    (Capabilities::SAMPLING_TOOLS, &["sampling", "tools"]),
    (Capabilities::SAMPLING_CONTEXT, &["sampling", "context"]),
    (Capabilities::ELICITATION, &["elicitation"]),
    (Capabilities::ELICITATION_FORM, &["elicitation", "form"]),
    (Capabilities::ELICITATION_URL, &["elicitation", "url"]),
];

impl Capabilities {
    /// It lists its roots.
    pub(super) const ROOTS: Self = Self(1);
    /// And tells when they change.
    pub(super) const ROOTS_CHANGED: Self = Self(1 << 1);
    /// It lets its model be asked.
    pub(super) const SAMPLING: Self = Self(1 << 2);
    /// With tools.
    pub(super) const SAMPLING_TOOLS: Self = Self(1 << 3);
    /// With the context of servers.
    pub(super) const SAMPLING_CONTEXT: Self = Self(1 << 4);
    /// It asks its user.
    pub(super) const ELICITATION: Self = Self(1 << 5);
    /// By a form.
    pub(super) const ELICITATION_FORM: Self = Self(1 << 6);
    /// By a page.
    pub(super) const ELICITATION_URL: Self = Self(1 << 7);

    /// Those that a client declares.
    pub(super) fn of(declared: &Map<String, Value>) -> Self {
        let has = |path: &[&str]| {
            let (first, rest) = path.split_first()?;
            let value = rest.iter().try_fold(declared.get(*first)?, |value, key| value.get(*key))?;
            Some(!matches!(value, Value::Null | Value::Bool(false)))
        };
        let held = PATHS.iter().filter(|(_, path)| has(path) == Some(true));
        Self(held.fold(0, |bits, (one, _)| bits | one.0))
    }

    /// In a client's words.
    pub(super) fn to_json(self) -> Value {
        let mut declared = Map::new();
        for (one, path) in PATHS.iter().filter(|(one, _)| self.0 & one.0 != 0) {
            let has_object = *one != Self::ROOTS_CHANGED;
            let value = if has_object { Value::Object(Map::new()) } else { true.into() };
            match path {
                [only] => drop(declared.insert((*only).to_owned(), value)),
                [first, second] => {
                    let known = declared.entry(*first).or_insert_with(|| Value::Object(Map::new()));
                    known[*second] = value;
                }
                _ => {}
            }
        }
        Value::Object(declared)
    }

    /// As a number.
    pub(super) fn bits(self) -> u16 {
        self.0
    }

    /// From that number; what is not known is kept.
    pub(super) fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_declared_is_known() {
        let check = |declared: Value, expected: &[Capabilities]| {
            let Value::Object(declared) = declared else { panic!("an object") };
            let known = Capabilities::of(&declared);
            assert_eq!(known.bits(), expected.iter().fold(0, |bits, one| bits | one.bits()), "{declared:?}");
            assert_eq!(Capabilities::from_bits(known.bits()), known);
            let Value::Object(said) = known.to_json() else { panic!("an object") };
            assert_eq!(Capabilities::of(&said), known, "{said:?}");
        };
        check(json!({}), &[]);
        check(json!({"sampling": {}, "experimental": {"x": {}}}), &[Capabilities::SAMPLING]);
        check(json!({"roots": {"listChanged": true}}), &[Capabilities::ROOTS, Capabilities::ROOTS_CHANGED]);
        check(json!({"roots": {"listChanged": false}}), &[Capabilities::ROOTS]);
        let form = [Capabilities::ELICITATION, Capabilities::ELICITATION_FORM];
        check(json!({"elicitation": {"form": {}}, "sampling": null}), &form);
    }
}
