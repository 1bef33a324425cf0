//! Almanac answers five questions of AI agents about their tools, from memory.
//!
//! # The house
//!
//! One engine, three doors, and the rooms that it composes. Everything Almanac knows is behind [`Engine`], which has
//! one method per question. The doors translate a protocol to those calls and do nothing else. The rooms answer one
//! question each and do not import each other's insides.
//!
//! | floor | modules |
//! |---|---|
//! | doors | [`http`], [`mcp`], [`cli`], and [`wire`], what goes through them |
//! | engine | [`engine`], run by [`daemon`] and [`control`] |
//! | store | [`store`] |
//! | rooms | [`catalog`], [`qualify`], [`timing`], [`suggest`], [`memory`], [`session`] |
//! | ground | [`plugin_host`], [`upstream`], [`llm`], [`stream`], [`usage`], [`watch`], [`strict`], [`text`] |
//! | beside it | [`access`], [`oauth`], [`telemetry`], [`config`], [`process`], [`jsonrpc`], [`blocking`] |
//! | under all | [`sum`], [`tls`], `parallel` |
//!
//! # Invariants
//!
//! - No request path takes a lock that a reload can hold, or does file I/O; only the acknowledgement of a record waits
//!   for the disk.
//! - An acknowledged record survives `kill -9`, and at the default durability the loss of power.
//! - No foreign code runs in the daemon's address space; only the process that hosts a rule library has `unsafe`.
//! - A tool's name from a request is only ever a key for a map. No path is built from a request.
//! - A bad file degrades the answer, says so, and never stops the daemon.
//! - Every answer is deterministic for the same snapshot and inputs: ties break by name, map order never shows.
//! - A snapshot is whole: what one request reads comes from one generation.

pub mod access;
pub mod blocking;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod control;
pub mod daemon;
pub mod engine;
pub mod http;
pub mod jsonrpc;
pub mod llm;
pub mod mcp;
pub mod memory;
pub mod oauth;
mod parallel;
pub mod plugin_host;
pub mod process;
pub mod qualify;
pub mod session;
pub mod store;
pub mod stream;
pub mod strict;
pub mod suggest;
pub mod sum;
pub mod telemetry;
pub mod text;
pub mod timing;
pub mod tls;
pub mod upstream;
pub mod usage;
pub mod watch;
pub mod wire;

pub use engine::Engine;
