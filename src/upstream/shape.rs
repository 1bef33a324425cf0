//! Definitions in the types that the protocol gives them.
//!
//! Clients refuse a whole list for one member of another type, so that one definition of one server would hide the
//! tools of all. What is of another type is left out; a schema is made one of an object.

use serde_json::value::RawValue;

use super::hygiene::clean_text;
use super::journal::ServerLog;
use crate::jsonrpc::NoObject;
use crate::jsonrpc::object::{self, Change, Members};

/// A schema that takes any object.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// Members of one definition that are told.
const MAX_FAULTS: usize = 8;

/// Mends the definitions of a list, and tells of all at once.
#[derive(Debug, Default)]
pub(super) struct Mending {
    mended: usize,
    first: Vec<String>,
}

impl Mending {
    /// The definition as the protocol has it.
    pub(super) fn mend(&mut self, definition: Box<RawValue>, defined: Defined, name: &str) -> Box<RawValue> {
        let Ok((mended, faults)) = mend(&definition, defined) else { return definition };
        if !faults.is_empty() {
            self.mended += 1;
            if self.first.len() < MAX_FAULTS {
                self.first.push(clean_text(&format!("`{name}` ({})", faults.join(", "))).into_owned());
            }
        }
        mended
    }

    /// Says what was mended, if anything was.
    pub(super) fn tell(&self, journal: &ServerLog) {
        if self.mended > 0 {
            let (count, first) = (self.mended, self.first.join(", "));
            journal.warn(&format!("has definitions ({count}) that are not as the protocol has them; mended: {first}"));
        }
    }
}

/// What a definition is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defined {
    Tool,
    Prompt,
    Resource,
    Template,
}

/// What a member must be.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Number,
    List,
    /// An object with members of these shapes, and any others.
    Object(&'static [(&'static str, Shape)]),
    /// A list of objects that have a name.
    Named(&'static [(&'static str, Shape)]),
    /// A schema of what a tool takes.
    Input,
    /// A schema of what it gives.
    Output,
}

impl Shape {
    /// Is the value of that type, whatever it is made of?
    fn is_of(self, value: &RawValue) -> bool {
        match value.get().as_bytes().first() {
            Some(b'"') => matches!(self, Self::Text),
            Some(b't' | b'f') => matches!(self, Self::Flag),
            Some(b'-' | b'0'..=b'9') => matches!(self, Self::Number),
            Some(b'[') => matches!(self, Self::List),
            _ => false,
        }
    }
}

const HINTS: [(&str, Shape); 5] = [
    ("title", Shape::Text),
    ("readOnlyHint", Shape::Flag),
    ("destructiveHint", Shape::Flag),
    ("idempotentHint", Shape::Flag),
    ("openWorldHint", Shape::Flag),
];
const TOOL: [(&str, Shape); 8] = [
    ("title", Shape::Text),
    ("description", Shape::Text),
    ("inputSchema", Shape::Input),
    ("outputSchema", Shape::Output),
    ("annotations", Shape::Object(&HINTS)),
    ("icons", Shape::List),
    ("execution", Shape::Object(&[("taskSupport", Shape::Text)])),
    ("_meta", Shape::Object(&[])),
];
const ARGUMENT: [(&str, Shape); 3] = [("title", Shape::Text), ("description", Shape::Text), ("required", Shape::Flag)];
const PROMPT: [(&str, Shape); 5] = [
    ("title", Shape::Text),
    ("description", Shape::Text),
    ("arguments", Shape::Named(&ARGUMENT)),
    ("icons", Shape::List),
    ("_meta", Shape::Object(&[])),
];
const FOR_WHOM: [(&str, Shape); 3] =
    [("audience", Shape::List), ("priority", Shape::Number), ("lastModified", Shape::Text)];
const RESOURCE: [(&str, Shape); 8] = [
    ("name", Shape::Text),
    ("title", Shape::Text),
    ("description", Shape::Text),
    ("mimeType", Shape::Text),
    ("size", Shape::Number),
    ("annotations", Shape::Object(&FOR_WHOM)),
    ("icons", Shape::List),
    ("_meta", Shape::Object(&[])),
];

/// The definition as the protocol has it, and the members that were of another type.
fn mend(definition: &RawValue, defined: Defined) -> Result<(Box<RawValue>, Vec<String>), NoObject> {
    let shapes: &[_] = match defined {
        Defined::Tool => &TOOL,
        Defined::Prompt => &PROMPT,
        Defined::Resource | Defined::Template => &RESOURCE,
    };
    let mut mender = Mender::default();
    let mended = mender.object(definition, shapes, "")?;
    let mended = match defined {
        Defined::Tool => mender.with(mended, "inputSchema", ANY_OBJECT)?,
        Defined::Prompt => mended,
        Defined::Resource | Defined::Template => {
            let key = Members::read(definition)?.get(defined.key()).map_or(r#""""#, RawValue::get);
            mender.with(mended, "name", key)?
        }
    };
    Ok((mended, mender.0))
}

impl Defined {
    /// The member that it is asked for by.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }
}

/// Collects the members that were of another type.
#[derive(Debug, Default)]
struct Mender(Vec<String>);

impl Mender {
    /// Adds a member that there must be, if it is not there.
    fn with(&mut self, definition: Box<RawValue>, name: &str, value: &str) -> Result<Box<RawValue>, NoObject> {
        let members = Members::read(&definition)?;
        if members.get(name).is_some() {
            return Ok(definition);
        }
        let with = members.set(name, value)?;
        self.fault(name, "");
        Ok(with)
    }

    fn fault(&mut self, within: &str, name: &str) {
        let path = [within, name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
        if self.0.len() < MAX_FAULTS && !self.0.contains(&path) {
            self.0.push(path);
        }
    }

    fn object(&mut self, value: &RawValue, shapes: &[(&str, Shape)], within: &str) -> Result<Box<RawValue>, NoObject> {
        let change = |name: &str, value: &RawValue| {
            let Some((_, shape)) = shapes.iter().find(|(known, _)| *known == name) else { return Change::Keep };
            let path = if within.is_empty() { name.to_owned() } else { format!("{within}.{name}") };
            let change = self.member(value, *shape, &path);
            if change == Change::Remove {
                self.fault(&path, "");
            }
            change
        };
        object::rewrite(value, change, &[])
    }

    /// What becomes of a member, to be left out if it is of another type.
    fn member(&mut self, value: &RawValue, shape: Shape, path: &str) -> Change {
        let is_object = value.get().starts_with('{');
        let mended = match shape {
            Shape::Object(shapes) if is_object => self.object(value, shapes, path).ok(),
            Shape::Named(shapes) => self.named(value, shapes, path),
            Shape::Input if is_object => self.schema(value, path),
            // Of any type: the newest clients take it so, and for the others it is translated.
            Shape::Output if is_object => return Change::Keep,
            _ => return if shape.is_of(value) { Change::Keep } else { Change::Remove },
        };
        changed(value, mended)
    }

    /// A list of objects that have a name, without what is none.
    fn named(&mut self, list: &RawValue, shapes: &[(&str, Shape)], path: &str) -> Option<Box<RawValue>> {
        let items: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
        let is_named = |item: &RawValue| Members::read(item).is_ok_and(|members| members.text("name").is_some());
        let mut kept = Vec::with_capacity(items.len());
        for item in &items {
            if is_named(item) {
                kept.push(self.object(item, shapes, path).ok()?);
            } else {
                self.fault(path, "name");
            }
        }
        let is_same = kept.len() == items.len() && kept.iter().zip(items).all(|(new, old)| new.get() == old.get());
        if is_same { Some(list.to_owned()) } else { serde_json::value::to_raw_value(&kept).ok() }
    }

    /// The schema of an object.
    fn schema(&mut self, schema: &RawValue, path: &str) -> Option<Box<RawValue>> {
        let members = Members::read(schema).ok()?;
        let change = |name: &str, value: &RawValue| match name {
            "type" if value.get() == r#""object""# => Change::Keep,
            "type" => {
                self.fault(path, name);
                Change::Set(r#""object""#.to_owned())
            }
            "properties" => {
                let change = changed(value, self.properties(value, &format!("{path}.properties")));
                if change == Change::Remove {
                    self.fault(path, name);
                }
                change
            }
            "required" if serde_json::from_str::<Vec<String>>(value.get()).is_err() => {
                self.fault(path, name);
                Change::Remove
            }
            _ => Change::Keep,
        };
        let mended = members.rewrite(change, &[]).ok()?;
        if members.get("type").is_some() {
            return Some(mended);
        }
        self.fault(path, "type");
        Members::read(&mended).ok()?.set("type", r#""object""#).ok()
    }

    /// The properties of a schema, each of which clients want to be an object.
    fn properties(&mut self, properties: &RawValue, path: &str) -> Option<Box<RawValue>> {
        let change = |name: &str, value: &RawValue| match value.get() {
            object if object.starts_with('{') => Change::Keep,
            // The same in the words of an object.
            "true" => Change::Set("{}".to_owned()),
            "false" => Change::Set(r#"{"not":{}}"#.to_owned()),
            _ => {
                self.fault(path, name);
                Change::Set("{}".to_owned())
            }
        };
        object::rewrite(properties, change, &[]).ok()
    }
}

/// What becomes of a value of which this is the mended one, if there is any.
fn changed(value: &RawValue, mended: Option<Box<RawValue>>) -> Change {
    match mended {
        Some(mended) if mended.get() == value.get() => Change::Keep,
        Some(mended) => Change::Set(mended.get().to_owned()),
        None => Change::Remove,
    }
}

#[cfg(test)]
mod tests {
    use super::Defined::{Prompt, Resource, Template, Tool};
    use super::*;

    #[test]
    fn a_definition_becomes_what_clients_read() {
        let check = |defined: Defined, definition: &str, expected: &str, faults: &[&str]| {
            let raw: &RawValue = serde_json::from_str(definition).unwrap();
            let (mended, found) = mend(raw, defined).unwrap();
            assert_eq!((mended.get(), found), (expected, faults.iter().map(|fault| (*fault).to_owned()).collect()));
        };
        let good =
            r#"{"name":"a","title": "A","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}},"x":1}"#;
        check(Tool, good, good, &[]);
        check(Tool, r#"{"name":"a"}"#, r#"{"name":"a","inputSchema":{"type":"object"}}"#, &["inputSchema"]);
        let any = r#"{"inputSchema":{"type":"object"}}"#;
        for (schema, fault) in
            [("null", "inputSchema"), ("[]", "inputSchema"), (r#"{"type":"array"}"#, "inputSchema.type")]
        {
            check(Tool, &format!(r#"{{"inputSchema":{schema}}}"#), any, &[fault]);
        }
        check(Tool, r#"{"inputSchema":{}}"#, any, &["inputSchema.type"]);
        check(
            Tool,
            r#"{"title":7,"description":null,"inputSchema":{"type":"object","required":"x"},"annotations":null}"#,
            any,
            &["title", "description", "inputSchema.required", "annotations"],
        );
        check(
            Tool,
            r#"{"inputSchema":{"type":"object","properties":{"a":true,"b":7,"c":false}}}"#,
            r#"{"inputSchema":{"type":"object","properties":{"a":{},"b":{},"c":{"not":{}}}}}"#,
            &["inputSchema.properties.b"],
        );
        check(
            Tool,
            r#"{"inputSchema":{"type":"object"},"outputSchema":null,"annotations":{"readOnlyHint":7,"x":1}}"#,
            r#"{"inputSchema":{"type":"object"},"annotations":{"x":1}}"#,
            &["outputSchema", "annotations.readOnlyHint"],
        );
        let of_a_list = r#"{"inputSchema":{"type":"object"},"outputSchema":{"anyOf":[{"type":"array"}]}}"#;
        check(Tool, of_a_list, of_a_list, &[]);
        check(
            Prompt,
            r#"{"name":"p","arguments":[{"name":"a","required":"x"},7,{"description":"d"}]}"#,
            r#"{"name":"p","arguments":[{"name":"a"}]}"#,
            &["arguments.required", "arguments.name"],
        );
        check(Prompt, r#"{"name":"p","arguments":{}}"#, r#"{"name":"p"}"#, &["arguments"]);
        check(Resource, r#"{"uri":"a:b","size":"1"}"#, r#"{"uri":"a:b","name":"a:b"}"#, &["size", "name"]);
        check(Template, r#"{"uriTemplate":"a:{b}","name":"n"}"#, r#"{"uriTemplate":"a:{b}","name":"n"}"#, &[]);
    }
}
