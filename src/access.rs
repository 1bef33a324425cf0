//! Who may ask what: tokens, their scopes and their tenants.
//!
//! Without tokens everybody on the loopback address may do everything but administer, as the one tenant `default`.

mod challenge;
pub mod issue;
mod issuer;
mod keeper;
pub mod revoke;
mod tokens;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use challenge::Refused;
pub use issuer::{Issuer, IssuerSettings, JwtRefusal, KeysError};
pub use keeper::{TokenKeeper, TokenRefusal, TokensLook};
pub use tokens::Tokens;

use crate::config;
use crate::strict::{FromNode, Word};

/// The tenant of whoever has no token.
pub const DEFAULT_TENANT: &str = "default";

/// The section `auth` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default)]
pub struct Settings {
    /// The file of token hashes; the machine's own if it is there and no other is named.
    pub tokens_file: Option<PathBuf>,
    /// For how long the last good tokens hold while the file is faulty or cannot be read; then nobody is let in.
    pub max_stale: Duration,
    /// Are the machine's tokens not meant where no file is named? A user's daemon cannot read them.
    #[node(skip)]
    pub without_machine: bool,
    #[node(flatten)]
    pub issuer: IssuerSettings,
}

impl Settings {
    /// The file that is meant now: one that is not named is used from when it is there.
    pub fn file(&self) -> Option<PathBuf> {
        self.tokens_file.clone().or_else(|| config::default_tokens_file(self.without_machine))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tokens_file: None,
            max_stale: Duration::from_secs(3600),
            without_machine: false,
            issuer: IssuerSettings::default(),
        }
    }
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a scope")]
pub enum Scope {
    /// Questions that change nothing.
    Read,
    /// Recording what was called.
    Record,
    /// Memories, in both directions.
    Memory,
    /// Calls of the tools of MCP servers.
    Call,
    /// Administration; includes the others.
    Admin,
}

/// Who a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The token's name, for logs.
    pub name: Arc<str>,
    /// Whose memories, sessions and learnt messages it sees.
    pub tenant: Arc<str>,
    scopes: Vec<Scope>,
    any_tenant: bool,
}

impl Grant {
    /// Everybody on the loopback address, when there are no tokens.
    pub fn anonymous() -> Self {
        Self::new("anonymous", DEFAULT_TENANT, vec![Scope::Read, Scope::Record, Scope::Memory])
    }

    /// Whoever can open the socket of MCP clients.
    pub fn client() -> Self {
        Self::new("client", DEFAULT_TENANT, vec![Scope::Read, Scope::Record, Scope::Memory, Scope::Call])
    }

    /// Whoever can open the admin socket.
    pub fn administrator() -> Self {
        Self { any_tenant: true, ..Self::new("administrator", DEFAULT_TENANT, vec![Scope::Admin]) }
    }

    fn new(name: &str, tenant: &str, scopes: Vec<Scope>) -> Self {
        Self { name: name.into(), tenant: tenant.into(), scopes, any_tenant: false }
    }

    /// May it speak for any tenant? Only whoever can open the admin socket may.
    pub fn is_for_any_tenant(&self) -> bool {
        self.any_tenant
    }

    /// What it allows, as its entry says.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// May it read what was said: messages, and the intents that were made of them? Every door that shows such a text
    /// asks here.
    pub fn reads_what_was_said(&self) -> bool {
        self.allows(Scope::Memory)
    }

    /// The name under which what it says is kept for itself. Who may read what everybody said needs none, and shares
    /// none with whoever is called the same.
    pub fn speaker(&self) -> Option<&str> {
        (!self.reads_what_was_said()).then_some(&*self.name)
    }

    /// Does what it asks change what others are told: where a session stands, what was suggested in it, what was used?
    /// Who may only read leaves all that as it is.
    pub fn leaves_traces(&self) -> bool {
        self.allows(Scope::Record) || self.allows(Scope::Call)
    }

    /// Does it allow that?
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_for_a_token_alone_that_may_read_no_others() {
        for grant in [Grant::anonymous(), Grant::client(), Grant::administrator()] {
            assert_eq!(grant.speaker(), None, "a token may be called {}", grant.name);
        }
        let token = Grant::new("anonymous", DEFAULT_TENANT, vec![Scope::Read, Scope::Record]);
        assert_eq!(token.speaker(), Some("anonymous"));
        assert!(token.leaves_traces() && !Grant::new("r", DEFAULT_TENANT, vec![Scope::Read]).leaves_traces());
    }
}
