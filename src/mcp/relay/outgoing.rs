//! The parameters of a call as its server gets them.

use serde_json::value::RawValue;

use super::super::capabilities::Capabilities;
use super::super::request::McpCaller;
use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Members, NoObject, meta};

/// Keys of `_meta` that are between a client and us.
const OWN: &str = "dev.almanac/";

/// Whose process it is, at a server with one for each session, without a session: that of the token's clients that can
/// the same, since a server is greeted once.
pub(super) fn process_of(caller: &McpCaller) -> String {
    let declared = serde_json::from_str(caller.capabilities.get()).ok();
    let can = declared.as_ref().map(Capabilities::of).unwrap_or_default();
    format!("token:{}:{:x}", caller.grant.name, can.bits())
}

/// What a server gets of a client's `params`: the tool by its own name there, and in `_meta` what is not of one hop.
pub(super) fn direct(params: Option<&RawValue>, own_name: &str) -> Result<Box<RawValue>, NoObject> {
    let name = serde_json::Value::from(own_name).to_string();
    let params = params.ok_or(NoObject)?;
    let change = |member: &str, _: &RawValue| if member == "name" { Change::Set(name.clone()) } else { Change::Keep };
    passed_on(&object::rewrite(params, change, &[])?)
}

/// The same of a call by the tool that calls others, whose own `params` these are.
pub(super) fn found(
    params: Option<&RawValue>,
    own_name: &str,
    arguments: Option<&RawValue>,
) -> Result<Box<RawValue>, NoObject> {
    let empty = RawValue::from_string("{}".to_owned()).map_err(|_| NoObject)?;
    let name = serde_json::Value::from(own_name).to_string();
    let mut members = vec![("name", name.as_str())];
    members.extend(arguments.map(|arguments| ("arguments", arguments.get())));
    let known = params.and_then(|params| Members::read(params).ok()?.get(meta::MEMBER));
    members.extend(known.map(|known| (meta::MEMBER, known.get())));
    passed_on(&object::rewrite(&empty, |_, _| Change::Keep, &members)?)
}

/// Parameters without what is between a client and us.
pub(super) fn passed_on(params: &RawValue) -> Result<Box<RawValue>, NoObject> {
    let params = meta::strip_core(params)?;
    let Some(Ok(keys)) = Members::read(&params)?.get(meta::MEMBER).map(Members::read) else { return Ok(params) };
    let is_own = |key: &str| key == meta::PROGRESS_TOKEN || key.starts_with(OWN);
    match keys.iter().filter(|(key, _)| is_own(key)).count() {
        0 => Ok(params.clone()),
        own if own == keys.iter().count() => object::remove(&params, &[meta::MEMBER]),
        _ => meta::change(&params, |key, _| if is_own(key) { Change::Remove } else { Change::Keep }, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_server_gets_what_is_its_own() {
        let check = |params: &str, expected: &str| {
            assert_eq!(direct(Some(raw(params)), "t").unwrap().get(), expected, "{params}");
        };
        check(r#"{"name":"a_t", "arguments":{"n":1.0},"x":1}"#, r#"{"name":"t", "arguments":{"n":1.0},"x":1}"#);
        check(r#"{"name":"a_t","_meta":{"progressToken":1}}"#, r#"{"name":"t"}"#);
        check(
            r#"{"name":"a_t","_meta":{"progressToken":1,"traceparent":"00","dev.almanac/session":"s"}}"#,
            r#"{"name":"t","_meta":{"traceparent":"00"}}"#,
        );
        check(r#"{"name":"a_t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#, r#"{"name":"t"}"#);
        let params = raw(r#"{"name":"call_tool","arguments":{"name":"a_t"},"_meta":{"progressToken":1,"a":2}}"#);
        let sent = found(Some(params), "t", Some(raw(r#"{"n": 123456789012345678901}"#))).unwrap();
        assert_eq!(sent.get(), r#"{"name":"t","arguments":{"n": 123456789012345678901},"_meta":{"a":2}}"#);
    }
}
