//! The MCP door: both eras over HTTP, and what a client that breaks the protocol is told.

mod bridges;
mod client;
mod client_suite;
mod conformance;
mod credentials;
mod faults;
mod handles;
mod inspector;
mod learning;
pub use client::{LEGACY, Session, modern};
mod legacy;
mod looked_at;
mod modern;
mod own_process;
mod own_tools;
mod published;
mod relay;
mod remote;
mod served;
pub use served::{ask_with, outcome};
mod stdio;
mod tasks;
mod views;
