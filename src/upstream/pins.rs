//! Definitions that were approved, against those that are offered. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::listed::ListedTool;
use super::settings::{OnChange, PinPolicy};
use crate::jsonrpc::canonical;
use crate::jsonrpc::object::{self, Change};
use crate::sum::Sum;

/// What of a definition an approval is of.
const PINNED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// A definition that was approved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Pin {
    /// SHA-256 of its canonical form.
    pub(super) sum: String,
    /// The definition itself, for whoever wants to see the difference.
    pub(super) json: Box<RawValue>,
}

/// What follows from a list.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// What is listed.
    pub(super) tools: Vec<ListedTool>,
    /// What waits for an approval, by name.
    pub(super) waiting: BTreeMap<String, Box<RawValue>>,
    /// Names of definitions that are others than before.
    pub(super) changed: Vec<String>,
}

/// SHA-256 of what an approval is of, the same for any order of keys and any space.
pub(super) fn sum(definition: &RawValue) -> String {
    let change = |key: &str, _: &RawValue| if PINNED.contains(&key) { Change::Keep } else { Change::Remove };
    let pinned = object::rewrite(definition, change, &[]).map_or_else(|_| "{}".to_owned(), |pinned| canonical(&pinned));
    Sum::of(pinned.as_bytes()).to_string()
}

/// Holds what a server offers to what was approved.
pub(super) fn settle(
    pins: &mut BTreeMap<String, Pin>,
    offered: Vec<(String, Box<RawValue>)>,
    policy: PinPolicy,
    on_change: OnChange,
) -> Settled {
    let mut settled = Settled::default();
    for (name, json) in offered {
        let sum = sum(&json);
        let listed = |json: Box<RawValue>, is_blocked| ListedTool { name: name.clone(), json, is_blocked };
        match pins.get(&name) {
            Some(pin) if pin.sum == sum => settled.tools.push(listed(json, false)),
            Some(pin) => {
                settled.changed.push(name.clone());
                if on_change == OnChange::Block {
                    settled.tools.push(listed(pin.json.clone(), true));
                    settled.waiting.insert(name, json);
                } else {
                    settled.tools.push(listed(json.clone(), false));
                    pins.insert(name, Pin { sum, json });
                }
            }
            None if policy == PinPolicy::FirstUse => {
                settled.tools.push(listed(json.clone(), false));
                pins.insert(name, Pin { sum, json });
            }
            None => drop(settled.waiting.insert(name, json)),
        }
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn tool(name: &str, description: &str) -> (String, Box<RawValue>) {
        (name.to_owned(), raw(&format!(r#"{{"name":"{name}","description":"{description}"}}"#)))
    }

    #[test]
    fn a_sum_is_of_what_was_seen() {
        let same = |a: &str, b: &str, expected: bool| assert_eq!(sum(&raw(a)) == sum(&raw(b)), expected, "{a} {b}");
        same(r#"{"name":"a","inputSchema":{"x":1,"y":2}}"#, r#"{ "inputSchema":{"y":2,"x":1},"name":"a"}"#, true);
        same(r#"{"name":"a"}"#, r#"{"name":"a","_meta":{"x":1},"icons":[]}"#, true);
        for other in [r#""title":"t""#, r#""description":"d""#, r#""annotations":{}"#, r#""outputSchema":{}"#] {
            same(r#"{"name":"a"}"#, &format!(r#"{{"name":"a",{other}}}"#), false);
        }
    }

    #[test]
    fn sums_that_are_kept_hold() {
        let check = |definition: &str, canonical: &str| {
            assert_eq!(sum(&raw(definition)), Sum::of(canonical.as_bytes()).to_string(), "{definition}");
        };
        check(
            r#"{ "name":"a\/b", "title":"\u00e4", "inputSchema":{"z":[1.50, {"y":-0,"x":1E5}],"a":null}, "_meta":{}}"#,
            r#"{"inputSchema":{"a":null,"z":[1.50,{"x":1e+5,"y":-0}]},"name":"a/b","title":"ä"}"#,
        );
        check(r#"{"name":"a","name":"b","annotations":{"x":1,"x":2}}"#, r#"{"annotations":{"x":2},"name":"b"}"#);
        check("[]", "{}");
    }

    #[test]
    fn what_is_no_unicode_is_pinned_too() {
        let of = |text: &str| sum(&raw(&format!(r#"{{"name":"a","description":"\ud800 {text}"}}"#)));
        assert_ne!(of("adds"), of("removes"));
    }

    #[test]
    fn what_changed_waits_or_is_said() {
        let check = |policy, on_change, expected: [&str; 3]| {
            let mut pins = BTreeMap::new();
            settle(&mut pins, vec![tool("a", "old"), tool("b", "b")], PinPolicy::FirstUse, on_change);
            let offered = vec![tool("c", "new"), tool("a", "new"), tool("b", "b")];
            let settled = settle(&mut pins, offered, policy, on_change);
            let shown = |tool: &ListedTool| {
                let old = if tool.json.get().contains("old") { "-old" } else { "" };
                format!("{}{old}{}", tool.name, if tool.is_blocked { "!" } else { "" })
            };
            let tools: Vec<String> = settled.tools.iter().map(shown).collect();
            let waiting: Vec<&str> = settled.waiting.keys().map(String::as_str).collect();
            assert_eq!(
                [tools.join(" "), waiting.join(" "), settled.changed.join(" ")],
                expected,
                "{policy} {on_change}"
            );
        };
        check(PinPolicy::FirstUse, OnChange::Warn, ["c a b", "", "a"]);
        check(PinPolicy::FirstUse, OnChange::Block, ["c a-old! b", "a", "a"]);
        check(PinPolicy::Approved, OnChange::Warn, ["a b", "c", "a"]);
        check(PinPolicy::Approved, OnChange::Block, ["a-old! b", "a c", "a"]);
    }
}
