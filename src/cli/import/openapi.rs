//! Documents from an OpenAPI 3 description: one for each operation.

mod schema;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::functions::title;
use crate::catalog::ToolMetadata;
use crate::catalog::document::{CommonError, Prerequisite};
use crate::upstream::{MAX_NAME, public_name};
use schema::Schemas;

/// The methods of an operation, in the order in which documents are made.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "patch", "head", "options", "trace"];

/// The documents of the description, and what could not be carried over, a line each.
///
/// # Errors
/// What is wrong with it, if it is no such description.
pub(super) fn openapi(description: &Value) -> Result<(Vec<ToolMetadata>, Vec<String>), NotOpenApi> {
    match description["openapi"].as_str() {
        Some(version) if version.starts_with("3.") => {}
        Some(version) => return Err(NotOpenApi::Version(version.to_owned())),
        None if description["swagger"].is_string() => return Err(NotOpenApi::Version("2.0".to_owned())),
        None => return Err(NotOpenApi::Foreign),
    }
    let mut import = Import {
        description,
        service: description["info"]["title"].as_str().unwrap_or("The service").trim().to_owned(),
        backend: String::new(),
        documents: Vec::new(),
        names: BTreeSet::new(),
        left: Vec::new(),
    };
    import.note_what_never_fits();
    import.find_backend();
    for (path, item) in description["paths"].as_object().into_iter().flatten() {
        let item = import.resolved(item, path);
        for method in METHODS {
            if item[method].is_object() {
                import.operation(path, method, &item, &item[method]);
            }
        }
    }
    if import.documents.is_empty() {
        return Err(NotOpenApi::Empty);
    }
    Ok((import.documents, import.left))
}

/// Why no documents can be made of it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotOpenApi {
    #[error("it is no OpenAPI description: there is no key `openapi`")]
    Foreign,
    #[error("it is of OpenAPI {0}; bring it up to 3.0 or later first")]
    Version(String),
    #[error("it has no operations in `paths`")]
    Empty,
}

struct Import<'d> {
    description: &'d Value,
    /// What people call the service.
    service: String,
    /// Its address.
    backend: String,
    documents: Vec<ToolMetadata>,
    names: BTreeSet<String>,
    left: Vec<String>,
}

impl Import<'_> {
    fn note_what_never_fits(&mut self) {
        self.left
            .push("what operations answer with has no place in a document; of answers, errors are taken".to_owned());
        for key in ["webhooks", "x-webhooks"] {
            if let Some(webhooks) = self.description[key].as_object() {
                self.left.push(format!("{key}: {} are calls to you, no tools", webhooks.len()));
            }
        }
        let servers = self.description["servers"].as_array().map_or(0, Vec::len);
        if servers > 1 {
            self.left.push(format!("servers: the first of {servers} is taken"));
        }
    }

    /// Where the service is, with the defaults of the address's variables.
    fn find_backend(&mut self) {
        let server = &self.description["servers"][0];
        let mut backend = server["url"].as_str().unwrap_or_default().to_owned();
        for (name, variable) in server["variables"].as_object().into_iter().flatten() {
            let value = match &variable["default"] {
                Value::String(text) => text.clone(),
                plain @ (Value::Number(_) | Value::Bool(_)) => plain.to_string(),
                _ => continue,
            };
            self.left.push(format!("servers: the variable `{name}` is taken to be `{value}`, its default"));
            backend = backend.replace(&format!("{{{name}}}"), &value);
        }
        for name in backend.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)) {
            self.left.push(format!("servers: the variable `{name}` has no default; put its value into `backend`"));
        }
        self.backend = backend;
    }

    fn operation(&mut self, path: &str, method: &str, item: &Value, operation: &Value) {
        let place = format!("{} {path}", method.to_uppercase());
        let name = self.name(&place, path, method, operation);
        let text = |key: &str| operation[key].as_str().or(item[key].as_str()).unwrap_or_default().trim().to_owned();
        let (summary, mut description) = (text("summary"), text("description"));
        if description.is_empty() {
            description.clone_from(&summary);
        }
        if description.is_empty() {
            self.left.push(format!("{place}: there is no description; say what it does, it is chosen by that"));
            description = format!("{place} of {}.", self.service);
        }
        let tags: Vec<String> =
            operation["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let title =
            if summary.is_empty() { title(&name) } else { summary.lines().next().unwrap_or_default().to_owned() };
        let input_schema = self.input(&place, item, operation);
        let mut best_practices = String::new();
        if operation["deprecated"] == true {
            best_practices.push_str("Deprecated: prefer another operation.\n");
        }
        if operation["callbacks"].is_object() {
            self.left.push(format!("{place}: callbacks have no place in a document"));
        }
        let (common_errors, prerequisites) = (self.errors(operation), self.prerequisites(&place, operation));
        self.documents.push(ToolMetadata {
            name,
            title,
            description,
            category: tags.first().cloned().unwrap_or_else(|| self.service.clone()),
            keywords: keywords(&tags, path),
            best_practices,
            common_errors,
            prerequisites,
            backend: self.backend.clone(),
            input_schema: Some(input_schema),
            ..ToolMetadata::default()
        });
    }

    /// The operation's id, or what its method and path say, as a name that every model takes.
    fn name(&mut self, place: &str, path: &str, method: &str, operation: &Value) -> String {
        let id = operation["operationId"].as_str().filter(|id| !id.trim().is_empty());
        let wanted = id.map_or_else(|| by_path(method, path), |id| plain(id.trim()));
        let mut name = public_name("", &wanted, MAX_NAME);
        if id.is_none() {
            self.left.push(format!("{place}: there is no operationId; it is called {name}"));
        } else if id != Some(name.as_str()) {
            self.left.push(format!("{place}: `{}` is called {name}", id.unwrap_or_default()));
        }
        let mut number = 2;
        while self.names.contains(&name) {
            name = public_name("", &format!("{wanted}_{number}"), MAX_NAME);
            number += 1;
        }
        if number > 2 {
            self.left.push(format!("{place}: there is a `{wanted}` already; it is called {name}"));
        }
        self.names.insert(name.clone());
        name
    }

    /// Parameters and the body as one object.
    fn input(&mut self, place: &str, item: &Value, operation: &Value) -> Map<String, Value> {
        let mut schemas = Schemas::new(self.description, place);
        let mut properties = Map::new();
        let mut required = Vec::new();
        for parameter in self.parameters(place, item, operation) {
            let Some(name) = parameter["name"].as_str() else { continue };
            let location = parameter["in"].as_str().unwrap_or_default();
            // What the credentials are sent in is said by the prerequisites.
            if location == "header" && ["authorization", "accept", "content-type"].contains(&&*name.to_lowercase()) {
                continue;
            }
            let content = || parameter["content"].as_object().and_then(|content| content.values().next());
            let schema = if parameter["schema"].is_null() { content().map(|one| &one["schema"]) } else { None };
            let mut schema = schemas.adapted(schema.unwrap_or(&parameter["schema"]));
            describe(&mut schema, parameter["description"].as_str());
            let key = if properties.contains_key(name) { format!("{location}_{name}") } else { name.to_owned() };
            if key != name {
                self.left.push(format!("{place}: `{name}` is there twice; the one in {location} is called {key}"));
            }
            if parameter["required"] == true {
                required.push(Value::from(key.clone()));
            }
            properties.insert(key, schema);
        }
        let body = self.resolved(&operation["requestBody"], place);
        if let Some(content) = body["content"].as_object() {
            let json = content.iter().find(|(kind, _)| kind.contains("json")).or_else(|| content.iter().next());
            if let Some((kind, media)) = json {
                if !kind.contains("json") {
                    self.left.push(format!("{place}: the body is {kind}; who calls it has to write that"));
                }
                let mut schema = schemas.adapted(&media["schema"]);
                describe(&mut schema, body["description"].as_str());
                let key = if properties.contains_key("body") { "request_body" } else { "body" };
                properties.insert(key.to_owned(), schema);
                if body["required"] == true {
                    required.push(key.into());
                }
            }
        }
        let mut input = Map::new();
        input.insert("type".to_owned(), json!("object"));
        input.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            input.insert("required".to_owned(), Value::Array(required));
        }
        let (definitions, left) = schemas.finish();
        self.left.extend(left);
        if !definitions.is_empty() {
            input.insert("$defs".to_owned(), Value::Object(definitions));
        }
        input
    }

    /// Those of the path and those of the operation, which win.
    fn parameters(&mut self, place: &str, item: &Value, operation: &Value) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        for parameter in [item, operation].into_iter().flat_map(|of| of["parameters"].as_array().into_iter().flatten())
        {
            let parameter = self.resolved(parameter, place);
            let is_same = |known: &Value| known["name"] == parameter["name"] && known["in"] == parameter["in"];
            match all.iter_mut().find(|known| is_same(known)) {
                Some(known) => *known = parameter,
                None => all.push(parameter),
            }
        }
        all
    }

    /// What a reference leads to, or the value itself.
    fn resolved(&mut self, value: &Value, place: &str) -> Value {
        let Some(reference) = value["$ref"].as_str() else { return value.clone() };
        let found = reference.strip_prefix('#').and_then(|pointer| self.description.pointer(pointer));
        if found.is_none() {
            self.left.push(format!("{place}: `{reference}` leads nowhere in this file"));
        }
        found.cloned().unwrap_or_default()
    }

    fn errors(&mut self, operation: &Value) -> Vec<CommonError> {
        let mut errors = Vec::new();
        for (status, response) in operation["responses"].as_object().into_iter().flatten() {
            let Some(solution) = solution(status) else { continue };
            let response = self.resolved(response, status);
            let cause = response["description"].as_str().unwrap_or_default().trim().to_owned();
            errors.push(CommonError { error: format!("HTTP {status}"), cause, solution: solution.to_owned() });
        }
        errors.sort_by(|a, b| a.error.cmp(&b.error));
        errors
    }

    /// A prerequisite for each scheme of security, with a variable for its secret.
    fn prerequisites(&mut self, place: &str, operation: &Value) -> Vec<Prerequisite> {
        let security =
            if operation["security"].is_array() { &operation["security"] } else { &self.description["security"] };
        let ways: Vec<&Map<String, Value>> =
            security.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
        let is_optional = ways.iter().any(|way| way.is_empty());
        let names: BTreeSet<&str> = ways.iter().flat_map(|way| way.keys()).map(String::as_str).collect();
        let schemes: Vec<(&str, Value)> = names
            .iter()
            .map(|name| {
                let scheme = self.description["components"]["securitySchemes"][*name].clone();
                (*name, self.resolved(&scheme, place))
            })
            .collect();
        let mut needed = Vec::new();
        for (name, scheme) in &schemes {
            // Of several keys, each is called after its scheme.
            let is_alone = schemes.iter().filter(|(_, other)| secret(other) == secret(scheme)).count() == 1;
            let ending = if is_alone { secret(scheme).to_owned() } else { plain(&snake(name)).to_uppercase() };
            let others: Vec<&str> = names.iter().copied().filter(|other| other != name).collect();
            let fallback = match (is_optional, others.is_empty() || ways.len() < 2) {
                (true, _) => "It works without, with less.".to_owned(),
                (false, false) => format!("One of these will do as well: {}.", others.join(", ")),
                (false, true) => String::new(),
            };
            needed.push(Prerequisite {
                name: (*name).to_owned(),
                env_vars: vec![format!("{}_{ending}", variable(&self.service)).replace('-', "_")],
                how_to_get: how_to_get(scheme, &self.service),
                fallback,
                ..Prerequisite::default()
            });
        }
        needed
    }
}

fn describe(schema: &mut Value, description: Option<&str>) {
    let Some(description) = description.map(str::trim).filter(|text| !text.is_empty()) else { return };
    if let Some(schema) = schema.as_object_mut() {
        schema.entry("description").or_insert_with(|| description.into());
    }
}

/// Tags and the words of the path, each once.
fn keywords(tags: &[String], path: &str) -> Vec<String> {
    let words = path.split('/').filter(|part| !part.is_empty() && !part.starts_with('{')).map(str::to_owned);
    let mut seen = BTreeSet::new();
    tags.iter().cloned().chain(words).filter(|word| seen.insert(word.to_lowercase())).collect()
}

/// `GET /users/{id}/keys` is `get_users_by_id_keys`.
fn by_path(method: &str, path: &str) -> String {
    let part = |part: &str| match part.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
        Some(name) => format!("by_{name}"),
        None => part.to_owned(),
    };
    let parts: Vec<String> = path.split('/').filter(|text| !text.is_empty()).map(part).collect();
    plain(&format!("{method}_{}", parts.join("_"))).trim_end_matches('_').to_owned()
}

/// Letters, digits, `_` and `-`; whatever else there is becomes one `_`.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for character in name.chars() {
        let is_plain = character.is_ascii_alphanumeric() || character == '_' || character == '-';
        if is_plain {
            plain.push(character);
        } else if !plain.ends_with('_') {
            plain.push('_');
        }
    }
    let trimmed = plain.trim_matches('_');
    if trimmed.is_empty() { "operation".to_owned() } else { trimmed.to_owned() }
}

/// What variables of the service begin with: its name, without what every service is called.
fn variable(service: &str) -> String {
    let words = service.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is_filler = |word: &&str| !["the", "api", "rest", "http", "preview"].contains(&&*word.to_lowercase());
    let words: Vec<String> = words.filter(is_filler).map(str::to_uppercase).collect();
    if words.is_empty() { "SERVICE".to_owned() } else { words.join("_") }
}

/// `clientId` is `client_Id`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_uppercase() && snake.ends_with(|before: char| before.is_lowercase()) {
            snake.push('_');
        }
        snake.push(character);
    }
    snake
}

/// What the variable of a secret ends in.
fn secret(scheme: &Value) -> &'static str {
    match (scheme["type"].as_str(), scheme["scheme"].as_str()) {
        (Some("apiKey"), _) => "API_KEY",
        (Some("http"), Some(scheme)) if scheme.eq_ignore_ascii_case("basic") => "PASSWORD",
        (Some("oauth2" | "openIdConnect"), _) => "ACCESS_TOKEN",
        _ => "TOKEN",
    }
}

fn how_to_get(scheme: &Value, service: &str) -> String {
    let description = scheme["description"].as_str().unwrap_or_default().trim();
    if !description.is_empty() {
        return description.to_owned();
    }
    let flows = scheme["flows"].as_object().into_iter().flat_map(Map::values);
    let url = flows.flat_map(|flow| [&flow["authorizationUrl"], &flow["tokenUrl"]]).find_map(Value::as_str);
    match url.or(scheme["openIdConnectUrl"].as_str()) {
        Some(url) => format!("Ask for it at {url}."),
        None => format!("{service} gives it out."),
    }
}

/// What can be done about a status; nothing if it is no error.
fn solution(status: &str) -> Option<&'static str> {
    Some(match status {
        "400" | "422" => "Correct the input by its schema.",
        "401" => "Send valid credentials: see the prerequisites.",
        "402" => "Pay, or choose a tool that costs nothing.",
        "403" => "Ask for the right to do this, or leave it.",
        "404" | "410" => "Look the identifiers up again: there is nothing of that name.",
        "408" | "504" => "Try again, with less at once.",
        "409" => "Read the present state, then try again on top of it.",
        "413" => "Send less at once.",
        "429" => "Wait as long as Retry-After says, then try again.",
        status if status.starts_with('4') => "Correct the request.",
        status if status.starts_with('5') => "Try again in a while; it is the service's fault.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
