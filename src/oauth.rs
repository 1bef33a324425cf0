//! What both sides of OAuth need: documents of other servers that are fetched with care, what an authorization server
//! says of itself, and signatures.
//!
//! Who answers here is not trusted yet: nothing is followed, read without end or waited for without end, and no
//! address within the own network is asked because somebody outside names it.

pub mod discovery;
pub mod fetch;
pub mod jwt;
pub mod reach;
pub mod signing;

pub use discovery::{DiscoveryError, IssuerMetadata};
pub use fetch::{FetchError, Fetcher};
pub use reach::FetchReach;
