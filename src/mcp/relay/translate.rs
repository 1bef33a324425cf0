//! A server's words for a client of the other era. What is the same in both passes as it is.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Era, ErrorObject, Members, NoObject, code, meta};

/// Members of a result that only modern clients know.
const MODERN: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// What legacy servers answer for a resource that is not there.
const LEGACY_NO_RESOURCE: i64 = -32002;

/// A result for a client of this era, with these keys in its `_meta`, whose values must be JSON. It may be long, so it
/// is changed in one pass.
pub(super) fn result(raw: &RawValue, era: Era, told: &[(&str, &str)]) -> Result<Box<RawValue>, NoObject> {
    let members = Members::read(raw)?;
    let known = members.get(meta::MEMBER);
    let handed_on = meta::handed_on(known, told)?;
    let mut added = Vec::new();
    if era == Era::Modern && members.get("resultType").is_none() {
        added.push(("resultType", "\"complete\""));
    }
    if let (None, Change::Set(made)) = (known, &handed_on) {
        added.push((meta::MEMBER, made));
    }
    let is_structured = |value: &RawValue| value.get().starts_with('{');
    let change = |name: &str, value: &RawValue| match name {
        meta::MEMBER => handed_on.clone(),
        _ if era == Era::Modern => Change::Keep,
        "structuredContent" if !is_structured(value) => Change::Remove,
        _ if MODERN.contains(&name) => Change::Remove,
        _ => Change::Keep,
    };
    members.rewrite(change, &added)
}

/// A definition of a server's tool for a client of this era, under this name; with another description if it has one.
pub(in crate::mcp) fn definition(
    raw: &RawValue,
    of: Era,
    era: Era,
    name: &str,
    description: Option<&str>,
) -> Result<Box<RawValue>, NoObject> {
    let json = |text: &str| serde_json::Value::from(text).to_string();
    let has_description = Members::read(raw)?.get("description").is_some();
    let change = |member: &str, value: &RawValue| match (member, description) {
        ("name", _) => Change::Set(json(name)),
        ("description", Some(other)) => Change::Set(json(other)),
        // Old clients read structured results as objects alone.
        ("outputSchema", _) if era == Era::Legacy && !is_of_objects(value) => Change::Remove,
        // What must be a task is made one here, so to clients it is a call like others.
        ("execution", _) if of == Era::Legacy && (era == Era::Modern || demands_task(value)) => {
            object::remove(value, &["taskSupport"]).map_or(Change::Keep, |rest| match rest.get().trim() {
                "{}" => Change::Remove,
                rest => Change::Set(rest.to_owned()),
            })
        }
        _ => Change::Keep,
    };
    let described = description.filter(|_| !has_description).map(|other| ("description", json(other)));
    let added: Vec<(&str, &str)> = described.iter().map(|(name, value)| (*name, value.as_str())).collect();
    object::rewrite(raw, change, &added)
}

fn demands_task(execution: &RawValue) -> bool {
    Members::read(execution).is_ok_and(|members| members.text("taskSupport").is_some_and(|said| said == "required"))
}

/// A definition that also tells how long calls take.
pub(in crate::mcp) fn with_timing(json: &str, timing: &str) -> Option<Arc<str>> {
    let tool: &RawValue = serde_json::from_str(json).ok()?;
    let timed = meta::change(tool, |_, _| Change::Keep, &[("dev.almanac/timing", timing)]).ok()?;
    Some(timed.get().into())
}

fn is_of_objects(schema: &RawValue) -> bool {
    Members::read(schema).is_ok_and(|members| members.text("type").is_none_or(|kind| kind == "object"))
}

/// An error of a server for a client of this era.
pub(in crate::mcp) fn error(raw: &RawValue, era: Era) -> ErrorObject {
    let error = ErrorObject::read(raw);
    match (era, error.code) {
        (Era::Modern, LEGACY_NO_RESOURCE) => ErrorObject { code: code::INVALID_PARAMS, ..error },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_result_is_said_in_the_clients_words() {
        let check = |json: &str, era: Era, expected: &str| {
            assert_eq!(result(raw(json), era, &[]).unwrap().get(), expected, "{json}");
        };
        check(r#"{"content": [1.0],"x":1e99}"#, Era::Legacy, r#"{"content": [1.0],"x":1e99}"#);
        check(r#"{"content":[],"resultType":"complete","ttlMs":1}"#, Era::Legacy, r#"{"content":[]}"#);
        check(r#"{"structuredContent":[1],"content":[]}"#, Era::Legacy, r#"{"content":[]}"#);
        check(r#"{"structuredContent":{"a":1}}"#, Era::Legacy, r#"{"structuredContent":{"a":1}}"#);
        check(r#"{"structuredContent":[1]}"#, Era::Modern, r#"{"structuredContent":[1],"resultType":"complete"}"#);
        check(r#"{"resultType":"input_required"}"#, Era::Modern, r#"{"resultType":"input_required"}"#);
        let info = r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{},"a":1}}"#;
        check(info, Era::Legacy, r#"{"content":[],"_meta":{"a":1}}"#);
        check(r#"{"_meta":null,"content":[]}"#, Era::Legacy, r#"{"_meta":null,"content":[]}"#);
        check(
            r#"{"\u005fmeta":{"io.modelcontextprotocol/serverInfo":{}},"content":[]}"#,
            Era::Legacy,
            r#"{"content":[]}"#,
        );
        let check_told = |json: &str, era: Era, expected: &str| {
            assert_eq!(result(raw(json), era, &[("k", "7")]).unwrap().get(), expected, "{json}");
        };
        let told = r#"{"content":[],"_meta":{"a":1,"k":7}}"#;
        check_told(r#"{"content":[],"_meta":{"a":1}}"#, Era::Legacy, told);
        check_told(r#"{"_meta":0,"content":[],"_meta":{"a":1}}"#, Era::Legacy, told);
        check_told(r#"{"_meta":null,"content":[]}"#, Era::Legacy, r#"{"_meta":{"k":7},"content":[]}"#);
        check_told(r#"{"resultType":"complete"}"#, Era::Legacy, r#"{"_meta":{"k":7}}"#);
        check_told("{}", Era::Modern, r#"{"resultType":"complete","_meta":{"k":7}}"#);
        assert!(result(raw("[]"), Era::Legacy, &[]).is_err());
    }

    #[test]
    fn a_definition_keeps_what_is_not_changed() {
        let json =
            r#"{"name":"t", "x":{"n":1.0},"execution":{"taskSupport":"optional"},"outputSchema":{"type":"array"}}"#;
        let tool = raw(json);
        let legacy = definition(tool, Era::Legacy, Era::Legacy, "a_t", None).unwrap();
        assert_eq!(legacy.get(), r#"{"name":"a_t", "x":{"n":1.0},"execution":{"taskSupport":"optional"}}"#);
        let modern = definition(tool, Era::Legacy, Era::Modern, "a_t", Some("d")).unwrap();
        let demanding = raw(r#"{"name":"t","execution":{"taskSupport":"required","x":1}}"#);
        let free = definition(demanding, Era::Legacy, Era::Legacy, "t", None).unwrap();
        assert_eq!(free.get(), r#"{"name":"t","execution":{"x":1}}"#);
        let rest = r#""outputSchema":{"type":"array"},"description":"d","_meta":{"dev.almanac/timing":{}}}"#;
        let timed = with_timing(modern.get(), "{}").unwrap();
        assert_eq!(*timed, *format!(r#"{{"name":"a_t", "x":{{"n":1.0}},{rest}"#));
    }
}
