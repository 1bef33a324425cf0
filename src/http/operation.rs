//! A route as the OpenAPI document describes it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// Makes the schema of a type.
pub(super) type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// What a route takes and answers.
pub(super) struct Operation {
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) parameters: &'static [Parameter],
    pub(super) body: Option<MakeSchema>,
    /// Content types of a body that is no JSON.
    pub(super) body_types: &'static [&'static str],
    pub(super) answers: Vec<Described>,
}

/// A parameter of a path or a query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) kind: &'static str,
    /// The words that it may be; empty if it is no word.
    pub(super) words: &'static [&'static str],
    /// The least and the most that it may be, if it is a number that has bounds.
    pub(super) bounds: Option<(u32, u32)>,
    pub(super) description: &'static str,
}

impl Parameter {
    pub(super) fn schema(&self) -> Value {
        match (self.words, self.bounds) {
            ([], None) => json!({"type": self.kind}),
            ([], Some((least, most))) => json!({"type": self.kind, "minimum": least, "maximum": most}),
            (words, _) => json!({"type": self.kind, "enum": words}),
        }
    }
}

pub(super) struct Described {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) content_type: &'static str,
    pub(super) schema: Option<MakeSchema>,
}

impl Operation {
    pub(super) fn new(id: &'static str, summary: &'static str) -> Self {
        Self { id, summary, parameters: &[], body: None, body_types: &[], answers: Vec::new() }
    }

    pub(super) fn taking(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    pub(super) fn with_body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// A body that is no JSON.
    pub(super) fn with_stream(mut self, content_types: &'static [&'static str]) -> Self {
        self.body_types = content_types;
        self
    }

    /// 200 with JSON of type `T`.
    pub(super) fn answering<T: JsonSchema>(self, description: &'static str) -> Self {
        self.answering_with::<T>(200, description)
    }

    pub(super) fn answering_with<T: JsonSchema>(mut self, status: u16, description: &'static str) -> Self {
        let schema: Option<MakeSchema> = Some(SchemaGenerator::subschema_for::<T>);
        self.answers.push(Described { status, description, content_type: "application/json", schema });
        self
    }

    /// An answer that is no JSON, or has no body.
    pub(super) fn answering_text(mut self, status: u16, description: &'static str, content_type: &'static str) -> Self {
        self.answers.push(Described { status, description, content_type, schema: None });
        self
    }
}

/// A parameter of the query.
pub(super) const fn query(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, words: &[], bounds: None, description }
}

/// A parameter of the query that is one of these words.
pub(super) const fn query_word(
    name: &'static str,
    words: &'static [&'static str],
    description: &'static str,
) -> Parameter {
    Parameter { name, place: "query", kind: "string", words, bounds: None, description }
}

/// A parameter of the query that is a whole number within bounds.
pub(super) const fn query_number(
    name: &'static str,
    (least, most): (u32, u32),
    description: &'static str,
) -> Parameter {
    Parameter { name, place: "query", kind: "integer", words: &[], bounds: Some((least, most)), description }
}

/// A parameter of the path.
pub(super) const fn path(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "path", kind: "string", words: &[], bounds: None, description }
}
