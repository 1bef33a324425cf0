//! Rule libraries for Almanac, in safe Rust.
//!
//! A rule library proposes which tools an agent may call next, given the tool it has just called, what came out and
//! which tools there are. Implement [`Rule`], name it in [`export_plugin!`], build a `cdylib`, and put it where the
//! daemon looks:
//!
//! ```
//! use almanac_plugin::{Error, Request, Rule, Setup, Sink, export_plugin};
//!
//! struct Publish;
//!
//! impl Rule for Publish {
//!     fn create(_setup: &Setup<'_>) -> Result<Self, Error> {
//!         Ok(Self)
//!     }
//!
//!     fn suggest(&mut self, request: &Request<'_>, sink: &mut Sink<'_>) {
//!         if request.tool() == "write_draft" && request.num_outputs() > 0 {
//!             sink.suggest("spell_check", "The draft has not been proofread yet", 0.8);
//!         }
//!     }
//! }
//!
//! export_plugin!(Publish, id = "org.example.publish", name = "Publishing");
//!
//! // In its tests, a rule is driven through the very functions that the daemon calls:
//! use almanac_plugin::testing::{Call, Driver};
//! let mut driver = Driver::new::<Publish>("{}")?;
//! let suggested = driver.suggest(&Call::after("write_draft").outputs(1))?;
//! assert_eq!(suggested[0].tool, "spell_check");
//! # Ok::<(), almanac_plugin::testing::Failure>(())
//! ```
//!
//! with this in its `Cargo.toml`:
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib"]
//! ```
//!
//! # What a rule may do
//!
//! Compute. It runs in a process of its own that can open neither files nor sockets nor processes; what it prints ends
//! in the daemon's log, and so does what it says through [`Host::log`]. An answer that takes longer than the daemon's
//! deadline, 50 ms by default, goes out without it, and the process is replaced.
//!
//! How long a tool takes is not a rule's to say: the daemon adds what it has measured.
//!
//! # Panics
//!
//! A panic in a rule is caught before it reaches the C boundary, reported with its message, and the rule's instance is
//! dropped: its state can't be trusted any more. That needs unwinding, so this crate refuses to build with `panic =
//! "abort"`.
#![warn(missing_docs)] // published: each item states units, ranges and errors
#![allow(unsafe_code, reason = "the safe side of a C interface; the rules of a library built on it need none")]

#[cfg(panic = "abort")]
compile_error!("a rule library must be able to catch panics: build it with panic = \"unwind\"");

#[doc(hidden)]
pub mod export;
mod host;
mod request;
mod rule;
mod sink;
mod snapshot;
pub mod testing;
mod view;

pub use host::{Host, Level};
pub use request::{Complexity, Request};
pub use rule::{Error, Rule, Setup};
pub use sink::Sink;
pub use snapshot::{Snapshot, Tool};
pub use view::{Pairs, Strings};

#[doc(hidden)]
pub use almanac_plugin_abi as abi;
