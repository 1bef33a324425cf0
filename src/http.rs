//! The HTTP door: translates requests to questions for the engine, and answers back.
//!
//! [`server`] takes connections and finds the route that is meant; `routes` has the table of all of them, which is the
//! only one: dispatch, scopes, metric labels and the OpenAPI document come from it. A handler is given a request and
//! answers at once, after blocking work, or when what it waits for is there; it translates, and nothing else.

mod answer;
mod etag;
mod framing;
mod handler;
mod json_body;
mod openapi;
mod operation;
mod problem;
mod query;
mod routes;
pub mod server;
mod settings;

pub use handler::Context;
pub use settings::Settings;

/// The OpenAPI document of all routes.
pub fn openapi_document() -> serde_json::Value {
    openapi::document(&routes::table())
}
