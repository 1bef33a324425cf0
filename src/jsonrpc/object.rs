//! Members of a raw object: found, and changed without touching any other byte.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The JSON is no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON object")]
pub struct NoObject;

/// The members of an object in their order. Of equal names the last one counts, as everywhere.
#[derive(Debug)]
pub struct Members<'a> {
    json: &'a str,
    all: Vec<Member<'a>>,
}

#[derive(Debug)]
struct Member<'a> {
    /// With its quotes.
    key: &'a RawValue,
    name: Cow<'a, str>,
    value: &'a RawValue,
}

/// What becomes of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Stays, byte for byte.
    Keep,
    /// Goes, with one comma.
    Remove,
    /// Gets this value, which must be JSON.
    Set(String),
}

impl<'a> Members<'a> {
    /// The members of this object.
    pub fn read(object: &'a RawValue) -> Result<Self, NoObject> {
        let json = object.get();
        let read = serde_json::Deserializer::from_str(json).deserialize_map(MembersVisitor);
        read.map(|all| Self { json, all }).map_err(|_| NoObject)
    }

    /// The member of that name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.all.iter().rev().find(|member| member.name == name).map(|member| member.value)
    }

    /// The text that is the member of that name.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.get(name)?)
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.all.iter().map(|member| (&*member.name, member.value))
    }

    /// The object with its members changed as `change` says by name and value, and with `added`, which must be JSON, at
    /// the end. Every byte of what stays is kept, the space around it included. Of equal names those go that do not
    /// count: whoever reads on could take another one.
    pub fn rewrite(
        &self,
        mut change: impl FnMut(&str, &RawValue) -> Change,
        added: &[(&str, &str)],
    ) -> Result<Box<RawValue>, NoObject> {
        let json = self.json;
        // Where a part of the text stands in it.
        let offset = |part: &RawValue| part.get().as_ptr() as usize - json.as_ptr() as usize;
        let more: usize = added.iter().map(|(key, value)| key.len() + value.len() + 6).sum();
        let mut text = String::with_capacity(json.len() + more);
        let first = self.all.first().map_or(1, |member| offset(member.key));
        text.push_str(&json[..first]);
        let counts = self.counts();
        let (mut end, mut is_empty) = (first, true);
        for (place, member) in self.all.iter().enumerate() {
            let (start, value) = (offset(member.key), offset(member.value));
            let lead = &json[end..start];
            end = value + member.value.get().len();
            let changed = if counts[place] { change(&member.name, member.value) } else { Change::Remove };
            if changed == Change::Remove {
                continue;
            }
            // The comma goes with whichever member is the first no longer.
            if place > 0 && !is_empty {
                text.push_str(lead);
            }
            is_empty = false;
            match changed {
                Change::Set(new) => {
                    text.push_str(&json[start..value]);
                    text.push_str(&new);
                }
                Change::Keep | Change::Remove => text.push_str(&json[start..end]),
            }
        }
        for (key, value) in added {
            if !is_empty {
                text.push(',');
            }
            is_empty = false;
            text.push_str(&serde_json::Value::from(*key).to_string());
            text.push(':');
            text.push_str(value);
        }
        text.push_str(&json[end..]);
        RawValue::from_string(text).map_err(|_| NoObject)
    }

    /// Is each the last of its name?
    fn counts(&self) -> Vec<bool> {
        let mut seen = HashSet::with_capacity(self.all.len());
        let mut counts: Vec<bool> = self.all.iter().rev().map(|member| seen.insert(&*member.name)).collect();
        counts.reverse();
        counts
    }

    /// The object with the member of that name set, which is added if it is not there. `value` must be JSON.
    pub fn set(&self, name: &str, value: &str) -> Result<Box<RawValue>, NoObject> {
        let change = |key: &str, _: &RawValue| if key == name { Change::Set(value.to_owned()) } else { Change::Keep };
        let added = [(name, value)];
        self.rewrite(change, if self.get(name).is_some() { &[] } else { &added })
    }
}

/// The text that this JSON is.
pub fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    if !json.starts_with('"') {
        return None;
    }
    if json.contains('\\') {
        return serde_json::from_str(json).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(&json[1..json.len() - 1]))
}

struct MembersVisitor;

impl<'a> Visitor<'a> for MembersVisitor {
    type Value = Vec<Member<'a>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let name = text(key).ok_or_else(|| serde::de::Error::custom("a key that is no text"))?;
            members.push(Member { key, name, value });
        }
        Ok(members)
    }
}

/// [`Members::rewrite`] of an object that is read for it alone.
pub fn rewrite(
    object: &RawValue,
    change: impl FnMut(&str, &RawValue) -> Change,
    added: &[(&str, &str)],
) -> Result<Box<RawValue>, NoObject> {
    Members::read(object)?.rewrite(change, added)
}

/// [`Members::set`] of an object that is read for it alone.
pub fn set(object: &RawValue, name: &str, value: &str) -> Result<Box<RawValue>, NoObject> {
    Members::read(object)?.set(name, value)
}

/// Removes the members of these names.
pub fn remove(object: &RawValue, names: &[&str]) -> Result<Box<RawValue>, NoObject> {
    rewrite(object, |key, _| if names.contains(&key) { Change::Remove } else { Change::Keep }, &[])
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    pub(in crate::jsonrpc) fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~äé✓\\n]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("(_meta|[a-zA-Z0-9 \"\\\\]{1,6})", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn members_are_found() {
        let check = |json: &str, name: &str, expected: Option<&str>| {
            assert_eq!(Members::read(raw(json)).unwrap().get(name).map(RawValue::get), expected, "{json}");
        };
        check(r#"{"a": 1 , "b":{"a":2}}"#, "a", Some("1"));
        check(r#"{"a":1,"b": {"a": 2}}"#, "b", Some(r#"{"a": 2}"#));
        check(r#"{"\u0061":123456789012345678901234567890}"#, "a", Some("123456789012345678901234567890"));
        check(r#"{"a":1,"a":2}"#, "a", Some("2"));
        check("{ }", "a", None);
        for other in ["[]", "1", r#""{}""#, "null"] {
            assert!(Members::read(raw(other)).is_err(), "{other}");
        }
        let members = raw(r#"{"a":"x\ny","b":"z","c":1}"#);
        let members = Members::read(members).unwrap();
        assert_eq!(members.text("a").as_deref(), Some("x\ny"));
        assert_eq!(members.text("b").as_deref(), Some("z"));
        assert_eq!(members.text("c"), None);
    }

    #[test]
    fn a_member_is_set() {
        let check = |json: &str, expected: &str| {
            assert_eq!(set(raw(json), "k", "[0]").unwrap().get(), expected, "{json}");
        };
        check("{}", r#"{"k":[0]}"#);
        check("{ }", r#"{"k":[0] }"#);
        check(r#"{"a":1}"#, r#"{"a":1,"k":[0]}"#);
        check(r#"{ "a" : 1 }"#, r#"{ "a" : 1,"k":[0] }"#);
        check(r#"{"k" : 1e99, "b":2}"#, r#"{"k" : [0], "b":2}"#);
        check(r#"{"\u006b":1}"#, r#"{"\u006b":[0]}"#);
        check(r#"{"k":1,"a":2, "k":3,"a" :4}"#, r#"{"k":[0],"a" :4}"#);
    }

    #[test]
    fn members_are_removed() {
        let check = |json: &str, expected: &str| {
            assert_eq!(remove(raw(json), &["k", "l"]).unwrap().get(), expected, "{json}");
        };
        check("{}", "{}");
        check(r#"{"k":1}"#, "{}");
        check(r#"{ "k":1 }"#, "{  }");
        check(r#"{"k":1,"l":2}"#, "{}");
        check(r#"{"k":1, "a":2, "l":3, "b":4}"#, r#"{"a":2, "b":4}"#);
        check(r#"{"a":1.0,"k":2}"#, r#"{"a":1.0}"#);
    }

    proptest! {
        #[test]
        fn what_stays_is_the_same(map in prop::collection::btree_map("[a-e]", value(), 0..5), pretty: bool) {
            let object = Value::Object(map.into_iter().collect());
            let json = if pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
            let kept = rewrite(raw(&json), |_, _| Change::Keep, &[]).unwrap();
            prop_assert_eq!(kept.get(), &json);
            let mut expected = object.clone();
            expected["c"] = Value::from(7);
            let set: Value = serde_json::from_str(set(raw(&json), "c", "7").unwrap().get()).unwrap();
            prop_assert_eq!(set, expected);
            let mut expected = object;
            for name in ["a", "c"] {
                expected.as_object_mut().unwrap().shift_remove(name);
            }
            let removed: Value = serde_json::from_str(remove(raw(&json), &["a", "c"]).unwrap().get()).unwrap();
            prop_assert_eq!(removed, expected);
        }
    }
}
