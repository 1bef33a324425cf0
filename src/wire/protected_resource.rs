//! Metadata of a protected resource on the wire (RFC 9728, section 2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `GET /.well-known/oauth-protected-resource`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProtectedResource {
    /// What tokens are for: this server's own URL.
    pub resource: String,
    /// Who issues them.
    pub authorization_servers: Vec<String>,
    /// The scopes that say something here.
    pub scopes_supported: Vec<String>,
    /// How tokens are sent.
    pub bearer_methods_supported: Vec<String>,
}
