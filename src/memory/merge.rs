//! Changes of a memory: JSON Merge Patch (RFC 7396) on its metadata.

use serde_json::{Map, Value};

use crate::strict::spelling;

/// `target` with `patch` merged into it. Bounded by the depth of what was read.
pub fn merge_patch(target: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut merged = match target {
        Value::Object(target) => target,
        _ => Map::new(),
    };
    for (key, value) in patch {
        if value.is_null() {
            // The order of the other keys stays.
            merged.shift_remove(&key);
        } else {
            let before = merged.get_mut(&key).map(Value::take).unwrap_or_default();
            merged.insert(key, merge_patch(before, value));
        }
    }
    Value::Object(merged)
}

/// A patch with the keys `known` in their own spelling, so that it meets what it changes. Where both spellings are
/// there, both stay, and are refused when the result is read.
pub fn respelt(patch: Map<String, Value>, known: &[&'static str]) -> Map<String, Value> {
    let own = |key: &str| known.iter().copied().find(|known| spelling::is_same(known, key));
    let name = |key: &String| own(key).filter(|own| !patch.contains_key(*own)).map(str::to_owned);
    let names: Vec<Option<String>> = patch.keys().map(name).collect();
    patch.into_iter().zip(names).map(|((key, value), name)| (name.unwrap_or(key), value)).collect()
}

/// Metadata with a patch merged into it. Of level and score of the importance one may be derived: if only one is
/// changed, the other is derived anew.
pub fn patched(mut metadata: Map<String, Value>, patch: Map<String, Value>) -> Map<String, Value> {
    for (changed, derived) in [("importance", "importance_score"), ("importance_score", "importance")] {
        if patch.contains_key(changed) && !patch.contains_key(derived) {
            metadata.shift_remove(derived);
        }
    }
    match merge_patch(Value::Object(metadata), Value::Object(patch)) {
        Value::Object(merged) => merged,
        // A patch that is a mapping makes one.
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn merges_as_the_standard_says() {
        for (target, patch, merged) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(merge_patch(target.clone(), patch.clone()), merged, "{target} with {patch}");
        }
    }

    #[test]
    fn a_patch_meets_what_it_changes_in_either_spelling() {
        let check = |patch: Value, expected: Value| {
            let Value::Object(patch) = patch else { unreachable!() };
            assert_eq!(Value::Object(respelt(patch, &["userId", "importance_score"])), expected);
        };
        check(
            json!({"user_id": 1, "importanceScore": 2, "my_own": 3}),
            json!({"userId": 1, "importance_score": 2, "my_own": 3}),
        );
        check(json!({"user_id": 1, "userId": 2}), json!({"user_id": 1, "userId": 2}));
    }

    #[test]
    fn a_changed_importance_takes_its_other_half_along() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let before = object(json!({"importance": "low", "importance_score": 0.25}));
        let after = |patch: Value| Value::Object(patched(before.clone(), object(patch)));
        assert_eq!(after(json!({"importance": "high"})), json!({"importance": "high"}));
        assert_eq!(after(json!({"importance_score": 0.9})), json!({"importance_score": 0.9}));
        assert_eq!(after(json!({"importance": null})), json!({}));
        assert_eq!(after(json!({"x": 1}))["importance_score"], 0.25);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<i8>().prop_map(Value::from), "[a-c]".prop_map(Value::from)];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::hash_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn merging_twice_is_merging_once(target in value(), patch in value()) {
            let once = merge_patch(target, patch.clone());
            prop_assert_eq!(merge_patch(once.clone(), patch), once);
        }
    }
}
