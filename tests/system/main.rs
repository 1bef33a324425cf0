//! System tests: the real binary, through its real doors.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(unreachable_pub, reason = "one crate of tests")]

mod access;
mod audit;
mod calibrate;
mod cli;
mod clocks;
mod console;
mod conversations;
mod counterparts;
mod daemon;
mod database;
mod documents;
mod events;
mod fault;
mod fault_fleet;
mod fixtures;
mod fleet;
mod following;
mod forget;
mod house;
mod http;
mod install;
mod issuer;
mod limits;
mod llm;
mod loader;
mod mcp;
mod mcp_fixture;
mod memory;
mod memory_bounds;
mod memory_cli;
mod memory_exact;
mod memory_fields;
mod memory_rust;
mod monitoring;
mod openapi;
mod openapi_tools;
mod plugin_cases;
mod plugin_cli;
mod plugin_guide;
mod plugins;
mod python;
mod qualify;
mod reload;
mod sdk;
mod service;
mod shipped;
mod soak;
mod streams;
mod suggest;
mod timing;
mod typescript;
mod upstream;
mod web;
