//! Which view of the tools is asked for: the rest of the path below `/mcp`.

use std::fmt;

/// A view's address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// `/mcp`.
    Default,
    /// `/mcp/{view}`.
    View(String),
    /// `/mcp/server/{name}`.
    Server(String),
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::View(name) => formatter.write_str(name),
            Self::Server(name) => write!(formatter, "server/{name}"),
        }
    }
}
