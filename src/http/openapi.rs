//! `GET /openapi.json`: the table of routes as an OpenAPI 3.1 document.

use std::sync::LazyLock;

use bytes::Bytes;
use hyper::StatusCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::answer::{self, Answer, JSON};
use super::operation::Operation;
use super::problem::{Problem, ProblemDocument};
use super::route::{Access, Route, table};
use super::service::{Call, Context};

/// The whole document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let problem = schemas.subschema_for::<ProblemDocument>();
    let mut paths: Map<String, Value> = Map::new();
    for route in table() {
        let described = describe(&route, &(route.operation)(), &mut schemas, &json!(problem));
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Almanac",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "The metadata daemon for AI agents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn describe(route: &Route, operation: &Operation, schemas: &mut SchemaGenerator, problem: &Value) -> Value {
    let parameters = operation.parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "in": parameter.place,
            "required": parameter.place == "path",
            "description": parameter.description,
            "schema": {"type": parameter.kind},
        })
    });
    let mut answers: Map<String, Value> = Map::new();
    for answer in &operation.answers {
        let schema = answer.schema.map(|make| json!(make(schemas)));
        // One status may come in several types; the first describes it.
        let described =
            answers.entry(answer.status.to_string()).or_insert_with(|| json!({"description": answer.description}));
        if !answer.content_type.is_empty() {
            let schema = schema.unwrap_or_else(|| json!({"type": "string"}));
            described["content"][answer.content_type] = json!({"schema": schema});
        }
    }
    let refusal = json!({
        "description": "Refused; the code says why.",
        "content": {"application/problem+json": {"schema": problem}},
    });
    answers.insert("default".to_owned(), refusal);
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters.collect::<Value>(),
        "responses": answers,
    });
    if let Some(make) = operation.body {
        described["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": make(schemas)}}});
    }
    if !operation.body_types.is_empty() {
        let content =
            operation.body_types.iter().map(|name| ((*name).to_owned(), json!({"schema": {"type": "string"}})));
        described["requestBody"] = json!({"required": true, "content": content.collect::<Map<String, Value>>()});
    }
    match route.access {
        Access::Scope(scope) => described["security"] = json!([{}, {"token": [scope.as_str()]}]),
        Access::Socket => described["x-almanac-door"] = json!("admin socket"),
        Access::Open => {}
    }
    described
}

static RENDERED: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));

pub(super) fn serve(_: &Context, call: &Call<'_>) -> Result<Answer, Problem> {
    call.query(&[])?;
    Ok(answer::bytes(StatusCode::OK, JSON, RENDERED.clone()))
}

pub(super) fn operation() -> Operation {
    Operation::new("getOpenapi", "This document.").answering::<Map<String, Value>>("OpenAPI 3.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_resolves() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(target)) = map.get("$ref") {
                        found.push(target.clone());
                    }
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 10);
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
        }
    }
}
