//! A tool's response on the wire, with the metadata object added: it goes through as it was written, byte for byte.

use std::io;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::metadata::{CallMetadata, MetadataRequest};
use crate::strict::FromNode;
use crate::strict::decode::decode;
use crate::strict::read::{self, Limits};

/// Body of `POST /v1/enrich`.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct EnrichRequest {
    /// The call.
    pub request: MetadataRequest,
    /// The tool's response, to which `metadata` is added.
    #[node(check = check_unenriched)]
    pub response: Map<String, Value>,
}

fn check_unenriched(response: &Map<String, Value>) -> Result<(), &'static str> {
    if response.contains_key("metadata") { Err("the response has a `metadata` already") } else { Ok(()) }
}

/// The same body, of which only the call was looked into.
#[derive(Debug)]
pub struct WrittenEnrichRequest {
    /// The call.
    pub request: MetadataRequest,
    pub response: WrittenResponse,
}

/// The text of a response that is an object without `metadata`.
#[derive(Debug)]
pub struct WrittenResponse(Bytes);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts<'t> {
    #[serde(borrow)]
    request: &'t RawValue,
    #[serde(borrow)]
    response: &'t RawValue,
}

impl WrittenEnrichRequest {
    /// Nothing if there is anything to say against it, which who reads it as an [`EnrichRequest`] is told.
    pub fn read(body: &Bytes, limits: &Limits) -> Option<Self> {
        // A list of both would do for a mapping.
        let parts: Parts<'_> =
            serde_json::from_slice(body).ok().filter(|_| body.trim_ascii_start().starts_with(b"{"))?;
        let response = parts.response.get();
        if !response.starts_with('{')
            || depth(response.as_bytes()) >= limits.depth
            || serde_json::from_str::<Keys>(response).ok()?.metadata
        {
            return None;
        }
        let request = decode(read::json(parts.request.get().as_bytes(), limits).ok()?).ok()?;
        Some(Self { request, response: WrittenResponse(body.slice_ref(response.as_bytes())) })
    }
}

/// How many lists and mappings of a JSON text stand in one another: who reads it may be able to read only so many.
fn depth(json: &[u8]) -> usize {
    let (mut open, mut deepest, mut rest) = (0_usize, 0, json);
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'[' | b'{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b'"' => rest = after_string(after),
            _ => {}
        }
    }
    deepest
}

/// What stands behind a string, of which the first quote is read.
fn after_string(mut json: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', json) {
        let is_end = json[at] == b'"';
        json = json.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
        if is_end {
            break;
        }
    }
    json
}

/// What is looked for among a response's keys.
#[derive(Deserialize)]
struct Keys {
    #[serde(default, deserialize_with = "is_there")]
    metadata: bool,
}

fn is_there<'d, D: Deserializer<'d>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|_| true)
}

impl From<Map<String, Value>> for WrittenResponse {
    fn from(response: Map<String, Value>) -> Self {
        Self(Value::Object(response).to_string().into())
    }
}

impl WrittenResponse {
    /// Writes it with the metadata object as its last entry.
    ///
    /// # Errors
    /// What `out` fails with.
    pub fn write_with(&self, metadata: &CallMetadata, mut out: impl io::Write) -> io::Result<()> {
        let entries = self.0.trim_ascii_end().strip_suffix(b"}").unwrap_or_default();
        out.write_all(entries)?;
        let is_empty = entries.trim_ascii() == b"{";
        out.write_all(if is_empty { b"\"metadata\":" } else { b",\"metadata\":" })?;
        metadata.serialize(&mut serde_json::Serializer::new(&mut out))?;
        out.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::access::Grant;
    use crate::engine::Engine;
    use crate::engine::proposer::RuleAnswers;

    fn metadata() -> CallMetadata {
        let request = MetadataRequest { tool_name: "a".into(), ..MetadataRequest::default() };
        let ask = request.ask();
        CallMetadata::of(&Engine::new(), &Grant::anonymous(), request, &ask, RuleAnswers::default())
    }

    fn written(body: &str) -> Option<WrittenEnrichRequest> {
        WrittenEnrichRequest::read(&Bytes::copy_from_slice(body.as_bytes()), &Limits::of_bytes(1 << 16))
    }

    fn enriched(response: &WrittenResponse) -> String {
        let mut out = Vec::new();
        response.write_with(&metadata(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_response_goes_through_as_it_was_written() {
        let check = |response: &str, expected: &str| {
            let body = format!(r#"{{ "response" : {response} , "request": {{"tool_name":"a"}}}}"#);
            let request = written(&body).unwrap();
            assert_eq!(request.request.tool_name, "a");
            let metadata = serde_json::to_string(&metadata()).unwrap();
            assert_eq!(enriched(&request.response), format!("{expected}\"metadata\":{metadata}}}"), "{response}");
        };
        check("{}", "{");
        check("{ \n}", "{ \n");
        check(
            r#"{"a": 1.00e+2, "b":"\u00e9\/", "a":{"metadata":1} }"#,
            r#"{"a": 1.00e+2, "b":"\u00e9\/", "a":{"metadata":1} ,"#,
        );
        check(r#"{"a":9007199254740993}"#, r#"{"a":9007199254740993,"#);
    }

    #[test]
    fn what_is_to_be_refused_is_read_with_its_faults() {
        let check = |body: &str| assert!(written(body).is_none(), "{body}");
        check("");
        check(r#"{"request":{"tool_name":"a"}}"#);
        check(r#"{"request":{"tool_name":"a"},"response":[]}"#);
        check(r#"{"request":{"tool_name":"a"},"response":null}"#);
        check(r#"{"request":{"tool_name":"a"},"response":{"metadata":null}}"#);
        check(r#"{"request":{"tool_name":"a"},"response":{"m\u0065tadata":{}}}"#);
        check(r#"{"request":{"tool_name":"a"},"response":{"a":}}"#);
        check(r#"{"request":{"tool_name":""},"response":{}}"#);
        check(r#"{"request":{"tool_name":"a","tool_name":"a"},"response":{}}"#);
        check(r#"{"request":{"tool_name":"a"},"response":{},"response":{}}"#);
        check(r#"{"request":{"tool_name":"a"},"response":{},"more":1}"#);
        check(r#"[{"tool_name":"a"},{}]"#);
        check(&format!(
            r#"{{"request":{{"tool_name":"a"}},"response":{{"a":{}1{}}}}}"#,
            "[".repeat(99),
            "]".repeat(99)
        ));
    }

    #[test]
    fn brackets_in_strings_are_none() {
        let check = |json: &str, expected: usize| assert_eq!(depth(json.as_bytes()), expected, "{json}");
        check("{}", 1);
        check(r#"{"a":[{"b":[]}],"c":[]}"#, 4);
        check(r#"{"[[[":"{{{","\"[":"\\","a":["\\\"[["]}"#, 2);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), any::<String>().prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn both_readings_say_the_same(entries in prop::collection::btree_map(any::<String>(), value(), 0..4)) {
            let response: Map<String, Value> = entries.into_iter().filter(|(key, _)| key != "metadata").collect();
            let body = json!({"request": {"tool_name": "a"}, "response": response}).to_string();
            let as_written = enriched(&written(&body).unwrap().response);
            prop_assert_eq!(&as_written, &enriched(&response.clone().into()));
            let mut expected = response;
            expected.insert("metadata".to_owned(), serde_json::to_value(metadata()).unwrap());
            prop_assert_eq!(serde_json::from_str::<Value>(&as_written).unwrap(), Value::Object(expected));
        }
    }
}
