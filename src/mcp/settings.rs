//! How the door of MCP clients is set up.

use std::path::PathBuf;

use crate::strict::FromNode;

/// The section `mcp` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromNode)]
#[node(default)]
pub struct Settings {
    /// The Unix socket of MCP clients: beside the state by default, `/run/almanac-mcp/mcp.sock` of an installed daemon.
    pub socket: Option<PathBuf>,
}
