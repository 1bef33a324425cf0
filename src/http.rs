//! The HTTP door: translates requests to [`Engine`](crate::Engine) calls and back.
//!
//! hyper speaks the protocol, one task per connection; everything around it is here because each ready-made part was measured
//! to cost more than the rest of an answer, or never to close a connection. [`accept`] takes connections and drains them,
//! `connection` holds each to its time limits, `route` is the one table that dispatch, metrics, scopes and the OpenAPI
//! document are made from, `guard` decides who may pass. A tool's document is answered before the table is looked at.

pub mod accept;
mod admin;
mod answer;
mod body;
mod catalog;
mod connection;
mod guard;
mod memory;
mod memory_admin;
mod memory_request;
mod metadata;
mod openapi;
mod operation;
mod plan;
mod plugin;
mod presets;
mod problem;
mod progress;
pub(crate) mod qualify;
mod query;
mod request_id;
mod route;
mod service;
mod stream;
mod timing;
mod usage;
pub mod wire;
pub mod wire_memory;
pub mod wire_memory_archive;
pub mod wire_metadata;
pub mod wire_plan;
pub mod wire_plugin;
pub mod wire_presets;
pub mod wire_qualify;
pub mod wire_stream;
pub mod wire_timing;
pub mod wire_usage;

pub use guard::Door;
pub use openapi::document as openapi_document;
pub use problem::{PointedError, ProblemDocument};
pub use service::{Context, Service};
