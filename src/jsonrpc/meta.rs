//! `_meta`: what peers say beside the payload.

use serde_json::value::RawValue;

use super::object::{self, Change, Members, NoObject};

/// The member of params, results, tools and resources that holds it.
pub const MEMBER: &str = "_meta";

/// The version that a modern request is in.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Name and version of a modern client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// What a modern client can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// From which level on a modern request wants log messages.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Name and version of a modern server.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Which `subscriptions/listen` a modern notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What progress is told by.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The keys of the core, which belong to one hop and are never relayed. Those of extensions are.
pub const CORE: [&str; 6] =
    [PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, SERVER_INFO, SUBSCRIPTION_ID];

/// The value of a key in the object's `_meta`.
pub fn get<'a>(object: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    Members::read(Members::read(object).ok()?.get(MEMBER)?).ok()?.get(key)
}

/// The text that is the value of a key in the object's `_meta`.
pub fn text<'a>(object: &'a RawValue, key: &str) -> Option<std::borrow::Cow<'a, str>> {
    object::text(get(object, key)?)
}

/// Sets one key of the object's `_meta`, which is made if it is not there. `value` must be JSON. Every other byte
/// stays.
pub fn splice_meta(object: &RawValue, key: &str, value: &RawValue) -> Result<Box<RawValue>, NoObject> {
    change(object, |_, _| Change::Keep, &[(key, value.get())])
}

/// Changes the keys of the object's `_meta` as `change` says, and sets those of `set`, whose values must be JSON. A
/// `_meta` that is no object is replaced; one that is not there is made only if there is something to set.
pub fn change(
    object: &RawValue,
    change: impl FnMut(&str, &RawValue) -> Change,
    set: &[(&str, &str)],
) -> Result<Box<RawValue>, NoObject> {
    let members = Members::read(object)?;
    match members.get(MEMBER).map(Members::read) {
        Some(Ok(keys)) => members.set(MEMBER, changed(&keys, change, set)?.get()),
        _ if set.is_empty() => Ok(object.to_owned()),
        _ => members.set(MEMBER, made(set)?.get()),
    }
}

/// The keys as `change` says, and those of `set`; what `change` removes of these stands at the end.
fn changed(
    keys: &Members<'_>,
    mut change: impl FnMut(&str, &RawValue) -> Change,
    set: &[(&str, &str)],
) -> Result<Box<RawValue>, NoObject> {
    let mut is_added = |key: &str| keys.get(key).is_none_or(|value| change(key, value) == Change::Remove);
    let added: Vec<_> = set.iter().copied().filter(|(key, _)| is_added(key)).collect();
    let change = |name: &str, value: &RawValue| match (change(name, value), set.iter().find(|(key, _)| *key == name)) {
        (Change::Keep, Some((_, value))) => Change::Set((*value).to_owned()),
        (changed, _) => changed,
    };
    keys.rewrite(change, &added)
}

fn made(set: &[(&str, &str)]) -> Result<Box<RawValue>, NoObject> {
    let empty = RawValue::from_string("{}".to_owned()).map_err(|_| NoObject)?;
    object::rewrite(&empty, |_, _| Change::Keep, set)
}

/// What becomes of a `_meta` at the next hop: the keys of the core go, and it with them if it has no others; those of
/// `set`, whose values must be JSON, are set.
pub fn handed_on(known: Option<&RawValue>, set: &[(&str, &str)]) -> Result<Change, NoObject> {
    let Some(Ok(keys)) = known.map(Members::read) else {
        return if set.is_empty() { Ok(Change::Keep) } else { Ok(Change::Set(made(set)?.get().to_owned())) };
    };
    let is_core = |key: &str| CORE.contains(&key);
    let (found, all) = (keys.iter().filter(|(key, _)| is_core(key)).count(), keys.iter().count());
    Ok(match found {
        0 if set.is_empty() => Change::Keep,
        _ if set.is_empty() && found == all => Change::Remove,
        _ => {
            let change = |key: &str, _: &RawValue| if is_core(key) { Change::Remove } else { Change::Keep };
            Change::Set(changed(&keys, change, set)?.get().to_owned())
        }
    })
}

/// Removes the keys of the core, and `_meta` itself if nothing is left in it.
pub fn strip_core(object: &RawValue) -> Result<Box<RawValue>, NoObject> {
    let members = Members::read(object)?;
    match handed_on(members.get(MEMBER), &[])? {
        Change::Keep => Ok(object.to_owned()),
        new => members.rewrite(|name, _| if name == MEMBER { new.clone() } else { Change::Keep }, &[]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::object::tests::value;
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_key_is_spliced_in() {
        let check = |json: &str, expected: &str| {
            assert_eq!(splice_meta(raw(json), "k", raw("7")).unwrap().get(), expected, "{json}");
        };
        check("{}", r#"{"_meta":{"k":7}}"#);
        check(r#"{"a": 1}"#, r#"{"a": 1,"_meta":{"k":7}}"#);
        check(r#"{"_meta": {} , "a":1}"#, r#"{"_meta": {"k":7} , "a":1}"#);
        check(r#"{"_meta":{"j":1, "k" : 0},"a":1}"#, r#"{"_meta":{"j":1, "k" : 7},"a":1}"#);
        check(r#"{"_meta":null}"#, r#"{"_meta":{"k":7}}"#);
        check(r#"{"a":{"_meta":{"k":1}}}"#, r#"{"a":{"_meta":{"k":1}},"_meta":{"k":7}}"#);
        assert_eq!(splice_meta(raw("[]"), "k", raw("7")).unwrap_err(), NoObject);
    }

    #[test]
    fn keys_of_the_core_go() {
        let check = |json: &str, expected: &str| {
            assert_eq!(strip_core(raw(json)).unwrap().get(), expected, "{json}");
        };
        check(r#"{"a":1}"#, r#"{"a":1}"#);
        check(r#"{"_meta":{"x":1},"a":1}"#, r#"{"_meta":{"x":1},"a":1}"#);
        check(r#"{"a":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#, r#"{"a":1}"#);
        check(
            r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/tasks":{}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/tasks":{}}}"#,
        );
    }

    #[test]
    fn keys_are_set_at_a_hop() {
        let check = |json: &str, set: &[(&str, &str)], expected: Change| {
            assert_eq!(handed_on(Some(raw(json)), set).unwrap(), expected, "{json}");
        };
        let new = |json: &str| Change::Set(json.to_owned());
        let info = [(SERVER_INFO, "1")];
        check(r#"{"a":1}"#, &[], Change::Keep);
        check("{}", &[], Change::Keep);
        check("7", &[], Change::Keep);
        check(r#"{"io.modelcontextprotocol/serverInfo":{}}"#, &[], Change::Remove);
        check(r#"{"io.modelcontextprotocol/serverInfo":{},"a":1}"#, &[], new(r#"{"a":1}"#));
        check(
            r#"{"io.modelcontextprotocol/serverInfo":{}}"#,
            &info,
            new(r#"{"io.modelcontextprotocol/serverInfo":1}"#),
        );
        check(r#"{"io.modelcontextprotocol/clientInfo":{},"a":1}"#, &[("k", "7")], new(r#"{"a":1,"k":7}"#));
        let both = r#"{"io.modelcontextprotocol/serverInfo":{},"a":1,"io.modelcontextprotocol/serverInfo":2}"#;
        check(both, &info, new(r#"{"a":1,"io.modelcontextprotocol/serverInfo":1}"#));
        check(r#"{"k":1,"k":2}"#, &[("k", "7")], new(r#"{"k":7}"#));
        check("7", &[("k", "7")], new(r#"{"k":7}"#));
        assert_eq!(handed_on(None, &[("k", "7")]).unwrap(), new(r#"{"k":7}"#));
        assert_eq!(handed_on(None, &[]).unwrap(), Change::Keep);
    }

    #[test]
    fn keys_are_read() {
        let object = raw(r#"{"_meta":{"progressToken":"t","n":1}}"#);
        assert_eq!(text(object, PROGRESS_TOKEN).as_deref(), Some("t"));
        assert_eq!(get(object, "n").map(RawValue::get), Some("1"));
        assert!(get(object, "x").is_none() && get(raw("{}"), "n").is_none() && get(raw("1"), "n").is_none());
    }

    proptest! {
        #[test]
        fn every_other_byte_stays(object in value(), key in "[a-z\"\\\\é]{1,8}", new in value(), pretty: bool) {
            let json = if pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
            let new_json = new.to_string();
            let Ok(spliced) = splice_meta(raw(&json), &key, raw(&new_json)) else {
                prop_assert!(!object.is_object());
                return Ok(());
            };
            let mut expected = object.clone();
            if !expected["_meta"].is_object() {
                expected["_meta"] = Value::Object(serde_json::Map::new());
            }
            expected["_meta"][&key] = new;
            let read: Value = serde_json::from_str(spliced.get()).unwrap();
            prop_assert_eq!(read, expected);
            // What is neither before nor behind the splice is what was spliced in.
            let known = object.get("_meta");
            if known.is_none_or(|meta| meta.is_object() && meta.get(&key).is_none()) {
                let spliced = spliced.get();
                let grown = spliced.len() - json.len();
                let differs = |&at: &usize| json.as_bytes()[at] != spliced.as_bytes()[at];
                let start = (0..json.len()).find(differs).unwrap_or(json.len());
                let cut = [&spliced.as_bytes()[..start], &spliced.as_bytes()[start + grown..]].concat();
                prop_assert_eq!(cut, json.into_bytes());
            }
        }
    }
}
