use super::*;
use crate::catalog::load::parse;
use crate::cli::import::documents::text;
use crate::strict::read::{Limits, yaml};

const PETS: &str = r##"
openapi: 3.0.3
info: {title: Pet Store, version: "1"}
servers: [{url: "https://pets.example/v1"}]
security: [{key: []}]
paths:
  /pets:
    parameters: [{$ref: "#/components/parameters/Limit"}]
    get:
      operationId: listPets
      summary: List all pets
      tags: [pets]
      responses:
        "200": {description: ok}
        "429": {$ref: "#/components/responses/Busy"}
        default: {description: other}
    post:
      operationId: pets/create
      description: Adds a pet.
      tags: [pets]
      deprecated: true
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: "#/components/schemas/Pet"}}
      callbacks: {x: {}}
      security: []
      responses: {}
  /pets/{id}:
    delete:
      parameters:
      - {name: id, in: path, required: true, schema: {type: integer, minimum: 0, exclusiveMinimum: true}}
      - {name: id, in: query, schema: {$ref: "other.yaml#/Id"}}
      responses: {"404": {description: No such pet.}}
components:
  parameters:
    Limit: {name: limit, in: query, description: At most so many., schema: {type: integer, nullable: true}}
  responses:
    Busy: {description: Too much.}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key, description: Sign up at https://pets.example.}
  schemas:
    Pet:
      type: object
      required: [name]
      properties:
        name: {type: string, example: Biscuit}
        mother: {$ref: "#/components/schemas/Pet"}
        kind: {$ref: "#/components/schemas/Kind"}
    Kind: {type: string, enum: [dog, cat], nullable: true, xml: {name: k}}
"##;

fn read(text: &str) -> Value {
    yaml(text.as_bytes(), &Limits::of_bytes(1 << 20)).unwrap().into()
}

#[test]
fn every_operation_is_a_document() {
    let (documents, left) = openapi(&read(PETS)).unwrap();
    let names: Vec<&str> = documents.iter().map(|document| document.name.as_str()).collect();
    assert_eq!(names, ["listPets", "pets_create", "delete_pets_by_id"]);
    let [list, create, delete] = &documents[..] else { panic!() };
    assert_eq!(
        (list.title.as_str(), list.description.as_str(), list.category.as_str()),
        ("List all pets", "List all pets", "pets",)
    );
    assert_eq!(list.backend, "https://pets.example/v1");
    assert_eq!(list.prerequisites[0].env_vars, ["PET_STORE_API_KEY"]);
    assert_eq!(list.prerequisites[0].how_to_get, "Sign up at https://pets.example.");
    assert_eq!(list.common_errors.len(), 1);
    assert_eq!((list.common_errors[0].error.as_str(), list.common_errors[0].cause.as_str()), ("HTTP 429", "Too much."));
    assert_eq!(
        Value::Object(list.input_schema.clone().unwrap()),
        json!({"type": "object", "properties": {
            "limit": {"type": ["integer", "null"], "description": "At most so many."}}})
    );
    assert!(create.prerequisites.is_empty() && create.best_practices.starts_with("Deprecated"));
    assert_eq!(
        Value::Object(create.input_schema.clone().unwrap()),
        json!({"type": "object", "properties": {
            "limit": {"type": ["integer", "null"], "description": "At most so many."},
            "body": {"$ref": "#/$defs/Pet"}}, "required": ["body"], "$defs": {
            "Kind": {"type": ["string", "null"], "enum": ["dog", "cat", null]},
            "Pet": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string", "examples": ["Biscuit"]}, "mother": {"$ref": "#/$defs/Pet"},
                "kind": {"$ref": "#/$defs/Kind"}}}}})
    );
    assert_eq!(
        delete.input_schema.as_ref().unwrap()["properties"]["id"],
        json!({"type": "integer", "exclusiveMinimum": 0})
    );
    assert_eq!(
        left,
        [
            "what operations answer with has no place in a document; of answers, errors are taken",
            "POST /pets: `pets/create` is called pets_create",
            "POST /pets: callbacks have no place in a document",
            "DELETE /pets/{id}: there is no operationId; it is called delete_pets_by_id",
            "DELETE /pets/{id}: there is no description; say what it does, it is chosen by that",
            "DELETE /pets/{id}: `id` is there twice; the one in query is called query_id",
            "DELETE /pets/{id}: left out `other.yaml#/Id`, which leads nowhere in this file",
        ]
    );
}

#[test]
fn what_is_made_is_taken_by_the_strict_reader_and_always_the_same() {
    let (documents, _) = openapi(&read(PETS)).unwrap();
    for document in &documents {
        let text = text(document);
        let read = parse(std::path::Path::new("x.yaml"), text.as_bytes(), 1 << 18).unwrap();
        assert_eq!(read, *document, "{text}");
    }
    let again = openapi(&read(PETS)).unwrap().0;
    assert_eq!(again, documents);
}

#[test]
fn what_is_no_description_is_refused() {
    let check = |text: &str, expected: NotOpenApi| assert_eq!(openapi(&read(text)).err(), Some(expected), "{text}");
    check("swagger: '2.0'", NotOpenApi::Version("2.0".to_owned()));
    check("openapi: 4.0.0", NotOpenApi::Version("4.0.0".to_owned()));
    check("openapi: 3.1.0\npaths: {}", NotOpenApi::Empty);
    check("name: x", NotOpenApi::Foreign);
}

#[test]
fn schemas_without_end_are_cut() {
    let many: String = (0..3000)
        .map(|number| {
            format!(
                "    S{number}: {{type: object, properties: {{next: {{$ref: '#/components/schemas/S{}'}}}}}}\n",
                number + 1
            )
        })
        .collect();
    let text = format!(
        "openapi: 3.1.0\npaths:\n  /x:\n    post:\n      operationId: x\n      summary: X\n      \
         requestBody: {{content: \
         {{application/json: {{schema: {{$ref: '#/components/schemas/S0'}}}}}}}}\ncomponents:\n  schemas:\n{many}"
    );
    let description: Value =
        yaml(text.as_bytes(), &Limits { nodes: 100_000, ..Limits::of_bytes(1 << 20) }).unwrap().into();
    let (documents, left) = openapi(&description).unwrap();
    assert!(left.iter().any(|line| line.contains("it would be too much")), "{left:?}");
    let text = super::super::documents::text(&documents[0]);
    assert_eq!(parse(std::path::Path::new("x.yaml"), text.as_bytes(), 1 << 18).unwrap(), documents[0]);
}

#[test]
fn each_secret_has_a_variable_of_its_own() {
    let check = |title: &str, schemes: &str, expected: &[&str]| {
        let text = format!(
            "openapi: 3.0.0\ninfo: {{title: {title}, version: '1'}}\npaths: {{/x: {{get: {{summary: X}}}}}}\n\
             security: [{{{schemes}}}]\ncomponents:\n  securitySchemes:\n    clientId: {{type: apiKey}}\n    \
             secret: {{type: apiKey}}\n    web: {{type: oauth2}}\n"
        );
        let (documents, _) = openapi(&read(&text)).unwrap();
        let found: Vec<&str> =
            documents[0].prerequisites.iter().flat_map(|needed| &needed.env_vars).map(String::as_str).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("The Plaid API", "clientId: [], secret: []", &["PLAID_CLIENT_ID", "PLAID_SECRET"]);
    check("The Plaid API", "secret: []", &["PLAID_API_KEY"]);
    check("REST API", "secret: [], web: []", &["SERVICE_API_KEY", "SERVICE_ACCESS_TOKEN"]);
}

#[test]
fn variables_of_an_address_have_their_defaults() {
    let mut description = read(PETS);
    description["servers"] = serde_json::json!([{
        "url": "https://{region}.pets.example:{port}/{base}/{other}",
        "variables": {
            "region": {"default": "eu", "enum": ["eu", "us"]}, "base": {"default": "v2"}, "port": {"default": 8443},
            "other": {}
        }
    }]);
    let (documents, left) = openapi(&description).unwrap();
    assert!(documents.iter().all(|document| document.backend == "https://eu.pets.example:8443/v2/{other}"));
    for taken in ["`region` is taken to be `eu`", "`port` is taken to be `8443`", "`other` has no default"] {
        assert!(left.iter().any(|line| line.contains(taken)), "{left:?}");
    }
}
