//! Connections and what is asked over them: accepted under limits, guarded, routed and counted.

pub mod accept;
pub(super) mod body;
mod connection;
mod cors;
mod guard;
mod patience;
mod places;
pub mod probe;
mod progress;
mod request_id;
mod service;
mod socket;
mod transport;

pub use guard::Door;
pub use service::Service;
