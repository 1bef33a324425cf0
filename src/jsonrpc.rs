//! JSON-RPC as the Model Context Protocol has it: messages whose payload is not read.
//!
//! A relayed message must arrive as it was sent. Typed models lose what they do not know: unknown members, integers
//! of 30 digits, the order of keys. So only the envelope of a message is read; `params`, `result` and `error` stay the
//! bytes that they were ([`RawValue`](serde_json::value::RawValue)), and what must be changed in them is spliced in.
//!
//! [`Envelope`] reads and writes the envelope, [`object`] finds and changes members of a raw object, [`meta`] does so
//! for its `_meta`, [`canonical()`] makes one text of equal ones, [`Version`] is what the revisions of the protocol are
//! told apart by.
//!
//! Rejected: a model with a map for unknown members (numbers are still read), and reading a payload as a tree (ten
//! times the time of the envelope, and duplicate keys are lost).

mod canonical;
mod envelope;
mod error;
mod id;
pub(crate) mod instance;
pub(crate) mod lines;
pub mod meta;
mod nesting;
pub mod object;
pub(crate) mod param_headers;
pub(crate) mod sse;
mod version;
pub(crate) mod wire_headers;

pub use canonical::canonical;
pub use envelope::{Envelope, MessageError, MessageLimits, members};
pub use error::{ErrorObject, code};
pub use id::Id;
pub use object::{Members, NoObject};
pub use version::{Era, Version};
