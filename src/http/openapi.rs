//! `GET /openapi.json`: the table of routes as an OpenAPI 3.1 document.

mod plain;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::handler::{Access, Route};
use super::operation::Operation;
use crate::wire::problem::ProblemDocument;

/// The document of these routes.
pub(super) fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let problem = schemas.subschema_for::<ProblemDocument>();
    let mut paths: Map<String, Value> = Map::new();
    // MCP clients have their own way to ask what there is, and people look at pages; what stands at well-known
    // addresses is described by standards.
    let is_described = |route: &&Route| {
        !matches!(route.access, Access::Mcp | Access::Console) && !route.path.starts_with("/.well-known/")
    };
    for route in routes.iter().filter(is_described) {
        let described = describe(route, &(route.operation)(), &mut schemas, &json!(problem));
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = described;
    }
    let tags: Vec<Value> =
        TAGS.iter().map(|(name, description)| json!({"name": name, "description": description})).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Almanac",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "The metadata daemon for AI agents.",
            "description": "What tools exist, which fit a message, how long a call will take, what comes next, and \
                            what was said before. Requests may spell each key in snake_case or in camelCase; an answer \
                            has one spelling. Whatever is refused is told as a problem document (RFC 9457), whose \
                            `code` keeps its meaning.",
            "contact": {"name": "Almanac maintainers", "email": "maintainers@almanac.dev"},
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7311", "description": "Where the daemon listens by default."}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {"token": {
                "type": "http", "scheme": "bearer",
                "description": "Needed where the configuration names a file of tokens.",
            }},
        },
    });
    for part in ["paths", "components"] {
        plain::make_plain(&mut document[part]);
    }
    document
}

/// What operations are sorted under.
const TAGS: [(&str, &str); 10] = [
    ("tools", "What tools exist, and what goes with them."),
    ("selection", "Which tools fit a message."),
    ("timing", "How long calls take, and what they took."),
    ("suggestions", "What comes next."),
    ("sessions", "What a session did and used."),
    ("memory", "What was said, thought, read and planned."),
    ("plugins", "Libraries of rules."),
    ("servers", "MCP servers behind the daemon."),
    ("overview", "How all is, and what just happens."),
    ("operation", "How the daemon is."),
];

/// What the operations of a path are sorted under.
fn tag(path: &str) -> &'static str {
    let mut parts = path.split('/').skip(1);
    match (parts.next(), parts.next()) {
        (Some("v1"), Some("tools" | "catalog" | "relations")) => "tools",
        (Some("v1"), Some("qualify")) => "selection",
        (Some("v1"), Some("estimate" | "executions" | "timing" | "plans")) => "timing",
        (Some("v1"), Some("metadata" | "enrich" | "presets")) => "suggestions",
        (Some("v1"), Some("sessions" | "streams" | "usage")) => "sessions",
        (Some("v1"), Some("memories" | "threads")) | (Some("-"), Some("memories")) => "memory",
        (Some("v1" | "-"), Some("plugins")) => "plugins",
        (Some("v1"), Some("servers")) => "servers",
        (Some("v1"), Some("overview" | "fleet" | "events")) => "overview",
        _ => "operation",
    }
}

/// What a caller needs to be let in.
fn admission(access: Access) -> String {
    match access {
        Access::Open | Access::Console => "It needs no token.".to_owned(),
        Access::Mcp => "Where tokens are configured, it needs one; what is asked may need a scope.".to_owned(),
        Access::Scope(scope) => {
            format!("Where tokens are configured, it needs one of the scope `{}`.", scope.as_str())
        }
        Access::Socket => "It is there on the admin socket only.".to_owned(),
    }
}

fn describe(route: &Route, operation: &Operation, schemas: &mut SchemaGenerator, problem: &Value) -> Value {
    let parameters = operation.parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "in": parameter.place,
            "required": parameter.place == "path",
            "description": parameter.description,
            "schema": parameter.schema(),
        })
    });
    let mut answers: Map<String, Value> = Map::new();
    for answer in &operation.answers {
        let schema = answer.schema.map(|make| json!(make(schemas)));
        // One status may come in several types; the first describes it.
        let described =
            answers.entry(answer.status.to_string()).or_insert_with(|| json!({"description": answer.description}));
        if !answer.content_type.is_empty() {
            // An event of a stream is an object to some, and a part of a text to others.
            let is_stream = answer.content_type == "text/event-stream";
            let schema = schema.unwrap_or_else(|| if is_stream { json!({}) } else { json!({"type": "string"}) });
            described["content"][answer.content_type] = json!({"schema": schema});
        }
    }
    let refusal = json!({
        "description": "Refused; the code says why.",
        "content": {"application/problem+json": {"schema": problem}},
    });
    // Some look for statuses of refusals by name, others for whatever is not described.
    answers.insert("4XX".to_owned(), refusal.clone());
    answers.insert("default".to_owned(), refusal);
    let mut described = json!({
        "operationId": operation.id,
        "tags": [tag(route.path)],
        "summary": operation.summary,
        "description": format!("{} {}", operation.summary, admission(route.access)),
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
        Access::Scope(scope) => {
            described["security"] = json!([{}, {"token": []}]);
            described["x-almanac-scope"] = json!(scope.as_str());
        }
        Access::Socket => {
            described["security"] = json!([]);
            described["x-almanac-door"] = json!("admin socket");
        }
        Access::Mcp => described["security"] = json!([{}, {"token": []}]),
        Access::Open | Access::Console => described["security"] = json!([]),
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_tag_that_is_described() {
        let tags: Vec<&str> = TAGS.iter().map(|(name, _)| *name).collect();
        for route in crate::http::routes::table() {
            assert!(tags.contains(&tag(route.path)), "{}", route.path);
            let is_of_operation = route.path.starts_with("/v1/");
            assert!(!is_of_operation || tag(route.path) != "operation", "{} has no tag of its own", route.path);
        }
    }

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
        let document = document(&crate::http::routes::table());
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 10);
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
        }
    }
}
