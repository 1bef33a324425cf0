//! Arguments of a tool that headers repeat, so that proxies can go by them: a property of its input schema that has
//! `x-mcp-header: Name` is sent as `Mcp-Param-Name` too, if it is given and not null.
//!
//! What the protocol asks of such a schema: the name is a token of HTTP and unique whatever its case; the property is a
//! string, an integer or a boolean, and is reached from the root through `properties` alone. A tool that breaks one of
//! these cannot be called by anybody, so it is left out.

use std::borrow::Cow;
use std::collections::HashMap;

use parking_lot::RwLock;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::object::{self, Members};
use super::wire_headers::encode;

/// The annotation.
const ANNOTATION: &str = "x-mcp-header";

/// Begins the headers' names.
const PREFIX: &str = "mcp-param-";

/// Levels of `properties` that are followed; deeper schemas are refused elsewhere.
const MAX_DEPTH: usize = 64;

/// A schema whose annotations break the protocol's rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParamHeaderFault {
    #[error("has `x-mcp-header` at `{0}`, where no chain of `properties` leads")]
    Place(String),
    #[error("names the header of `{0}` by what is no token of HTTP")]
    Name(String),
    #[error("wants `{0}` in a header, which is no string, integer or boolean")]
    Kind(String),
    #[error("wants two arguments in the header `{0}`")]
    Twice(String),
}

/// An argument that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParamHeader {
    /// Where the argument is found.
    path: Box<[String]>,
    /// The header's name, in lower case.
    name: String,
    is_integer: bool,
}

/// The arguments of one tool that headers repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ParamHeaders(Vec<ParamHeader>);

impl ParamHeaders {
    /// Those of a tool with this input schema.
    pub(crate) fn of(schema: &Value) -> Result<Self, ParamHeaderFault> {
        let mut found = Self::default();
        found.walk(schema, &mut Vec::new())?;
        Ok(found)
    }

    /// Those of this definition of a tool. Without the annotation, as nearly all are, it is not read as a tree.
    pub(crate) fn of_definition(tool: &RawValue) -> Result<Self, ParamHeaderFault> {
        if !tool.get().contains(ANNOTATION) {
            return Ok(Self::default());
        }
        let schema =
            Members::read(tool).ok().and_then(|tool| serde_json::from_str(tool.get("inputSchema")?.get()).ok());
        schema.map_or_else(|| Ok(Self::default()), |schema: Value| Self::of(&schema))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A schema that a chain of `properties` leads to.
    fn walk(&mut self, schema: &Value, path: &mut Vec<String>) -> Result<(), ParamHeaderFault> {
        let Value::Object(schema) = schema else { return Ok(()) };
        let place = || path.join(".");
        if path.len() > MAX_DEPTH {
            return Err(ParamHeaderFault::Place(place()));
        }
        if let Some(name) = schema.get(ANNOTATION) {
            self.add(name, schema, path)?;
        }
        for (key, value) in schema.iter().filter(|(key, _)| !DATA.contains(&key.as_str())) {
            match value {
                Value::Object(properties) if key == "properties" => {
                    for (name, property) in properties {
                        path.push(name.clone());
                        self.walk(property, path)?;
                        path.pop();
                    }
                }
                _ if is_annotated(value, MAX_DEPTH) => return Err(ParamHeaderFault::Place(join(path, key))),
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &Value, schema: &Map<String, Value>, path: &[String]) -> Result<(), ParamHeaderFault> {
        let place = path.join(".");
        if path.is_empty() {
            return Err(ParamHeaderFault::Place(ANNOTATION.to_owned()));
        }
        let name = name.as_str().filter(|name| is_token(name)).ok_or_else(|| ParamHeaderFault::Name(place.clone()))?;
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["string", "integer", "boolean"].contains(&kind) {
            return Err(ParamHeaderFault::Kind(place));
        }
        let name = format!("{PREFIX}{}", name.to_ascii_lowercase());
        if self.0.iter().any(|header| header.name == name) {
            return Err(ParamHeaderFault::Twice(name));
        }
        self.0.push(ParamHeader { path: path.into(), name, is_integer: kind == "integer" });
        Ok(())
    }

    /// The headers of a call with these arguments: names in lower case, and values as they are sent.
    pub(crate) fn write(&self, arguments: Option<&RawValue>) -> Vec<(String, String)> {
        let header = |header: &ParamHeader| Some((header.name.clone(), encode(&header.value(arguments)?)));
        self.0.iter().filter_map(header).collect()
    }

    /// The first header that does not say what these arguments do: `said` is what the request has under a name.
    pub(crate) fn first_wrong<E>(
        &self,
        arguments: Option<&RawValue>,
        said: impl Fn(&str) -> Result<String, E>,
    ) -> Result<Option<&str>, E> {
        for header in &self.0 {
            let Some(value) = header.value(arguments) else { continue };
            let said = said(&header.name)?;
            if said != value && !(header.is_integer && is_same_number(&said, &value)) {
                return Ok(Some(&header.name));
            }
        }
        Ok(None)
    }
}

impl ParamHeader {
    /// The argument as text; nothing if it is not given, is null, or is none that a header could repeat.
    fn value<'a>(&self, arguments: Option<&'a RawValue>) -> Option<Cow<'a, str>> {
        let mut value = arguments?;
        for name in &self.path {
            value = Members::read(value).ok()?.get(name)?;
        }
        match value.get().as_bytes().first()? {
            b'"' => object::text(value),
            b'{' | b'[' | b'n' => None,
            _ => Some(Cow::Borrowed(value.get())),
        }
    }
}

/// Keywords whose values are no schemas: whatever stands there is no annotation.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", ANNOTATION];

fn join(path: &[String], key: &str) -> String {
    path.iter().map(String::as_str).chain([key]).collect::<Vec<_>>().join(".")
}

/// Does an annotation stand anywhere in here?
fn is_annotated(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth == 0 => false,
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| key == ANNOTATION || !DATA.contains(&key.as_str()) && is_annotated(value, depth - 1)),
        Value::Array(items) => items.iter().any(|item| is_annotated(item, depth - 1)),
        _ => false,
    }
}

/// Is it a token as RFC 9110, 5.6.2 has it?
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Is `said` a decimal of the value of this number?
fn is_same_number(said: &str, number: &str) -> bool {
    if let (Ok(said), Ok(number)) = (said.parse::<i128>(), number.parse::<i128>()) {
        return said == number;
    }
    let is_decimal = said.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    let both = said.parse::<f64>().ok().zip(number.parse::<f64>().ok());
    is_decimal && both.is_some_and(|(said, number)| said.total_cmp(&number).is_eq())
}

/// The headers of a server's tools, by the names that it knows them by.
#[derive(Debug, Default)]
pub(crate) struct ToolHeaders(RwLock<HashMap<String, ParamHeaders>>);

impl ToolHeaders {
    /// From now on those of these definitions.
    pub(crate) fn learn<'a>(&self, tools: impl Iterator<Item = (&'a str, &'a RawValue)>) {
        let mut fresh = HashMap::new();
        note(&mut fresh, tools);
        *self.0.write() = fresh;
    }

    /// The same for tools beside those that are known.
    pub(crate) fn add<'a>(&self, tools: impl Iterator<Item = (&'a str, &'a RawValue)>) {
        note(&mut self.0.write(), tools);
    }

    /// The headers of a request with these parameters; none but of calls of tools that want some.
    pub(crate) fn write(&self, method: &str, params: Option<&RawValue>) -> Vec<(String, String)> {
        let members = params.filter(|_| method == "tools/call").and_then(|params| Members::read(params).ok());
        let Some(members) = members else { return Vec::new() };
        let tools = self.0.read();
        let headers = members.text("name").and_then(|name| tools.get(&*name));
        headers.map(|headers| headers.write(members.get("arguments"))).unwrap_or_default()
    }
}

fn note<'a>(known: &mut HashMap<String, ParamHeaders>, tools: impl Iterator<Item = (&'a str, &'a RawValue)>) {
    for (name, json) in tools {
        match ParamHeaders::of_definition(json) {
            Ok(headers) if !headers.is_empty() => known.insert(name.to_owned(), headers),
            _ => known.remove(name),
        };
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::jsonrpc::wire_headers::decode;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    fn property(property: &Value) -> Result<ParamHeaders, ParamHeaderFault> {
        ParamHeaders::of(&json!({"type": "object", "properties": {"a": property}}))
    }

    #[test]
    fn arguments_are_repeated_as_they_are() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "on": {"type": "boolean", "x-mcp-header": "On"},
            "plain": {"type": "string", "default": {"x-mcp-header": "no schema"}},
        }});
        let headers = ParamHeaders::of(&schema).unwrap();
        let check = |arguments: Value, expected: &[(&str, &str)]| {
            let mut written = headers.write(Some(&raw(&arguments)));
            written.sort();
            let written: Vec<_> = written.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(written, expected, "{arguments}");
        };
        check(json!({}), &[]);
        check(
            json!({"region": "us west", "deep": {"n": 42}, "on": false, "plain": "x"}),
            &[("mcp-param-n", "42"), ("mcp-param-on", "false"), ("mcp-param-region", "us west")],
        );
        check(json!({"region": "", "deep": {"n": null}}), &[("mcp-param-region", "")]);
        check(json!({"region": " a", "deep": 3}), &[("mcp-param-region", "=?base64?IGE=?=")]);
        check(json!({"region": {"x": 1}, "on": []}), &[]);
        let wrong = |arguments: Value, said: &str| {
            let found = headers.first_wrong(Some(&raw(&arguments)), |_| Ok::<_, ()>(said.to_owned()));
            found.unwrap().map(str::to_owned)
        };
        assert_eq!(wrong(json!({"deep": {"n": 42}}), "42.0"), None);
        assert_eq!(wrong(json!({"deep": {"n": 42}}), "43").as_deref(), Some("mcp-param-n"));
        assert_eq!(wrong(json!({"deep": {"n": 1e1}}), "10"), None);
        assert_eq!(wrong(json!({"region": "42"}), "42.0").as_deref(), Some("mcp-param-region"));
        assert_eq!(wrong(json!({"region": null}), "x"), None);
    }

    #[test]
    fn a_schema_that_breaks_the_rules_is_refused() {
        let check = |found: Result<ParamHeaders, ParamHeaderFault>, expected: ParamHeaderFault| {
            assert_eq!(found, Err(expected));
        };
        let name = || ParamHeaderFault::Name("a".to_owned());
        for wrong in [json!(""), json!("My Region"), json!("A:B"), json!("Région"), json!("A\t1"), json!(1)] {
            check(property(&json!({"type": "string", "x-mcp-header": wrong})), name());
        }
        for kind in [json!("object"), json!("array"), json!("null"), json!("number"), json!(["string"]), json!(null)] {
            check(property(&json!({"type": kind, "x-mcp-header": "A"})), ParamHeaderFault::Kind("a".to_owned()));
        }
        let annotated = json!({"type": "string", "x-mcp-header": "A"});
        for keyword in ["items", "anyOf", "$defs", "if", "additionalProperties", "patternProperties"] {
            let place = ParamHeaderFault::Place(format!("a.{keyword}"));
            check(property(&json!({keyword: {"x": [annotated]}})), place);
        }
        check(ParamHeaders::of(&annotated), ParamHeaderFault::Place(ANNOTATION.to_owned()));
        let twice = json!({"properties": {"a": annotated, "b": {"type": "string", "x-mcp-header": "a"}}});
        check(ParamHeaders::of(&twice), ParamHeaderFault::Twice("mcp-param-a".to_owned()));
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_is_given(text in any::<String>(), number in any::<i64>(), is_on in any::<bool>()) {
            let kinds = [("string", json!(text)), ("integer", json!(number)), ("boolean", json!(is_on))];
            for (kind, value) in kinds {
                let headers = property(&json!({"type": kind, "x-mcp-header": "A"})).unwrap();
                let arguments = raw(&json!({"a": value}));
                let written = headers.write(Some(&arguments));
                let sent = HeaderValue::from_str(&written[0].1).unwrap();
                let wrong = headers.first_wrong(Some(&arguments), |_| decode(&sent).ok_or(()));
                prop_assert_eq!(wrong, Ok(None));
            }
        }
    }
}
