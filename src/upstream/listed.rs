//! What a server offers.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::jsonrpc::{Era, Members};

/// What a server offered when it was last asked: cleaned, held to what was approved, each item the bytes it came in.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Listed {
    /// In the server's order.
    pub tools: Vec<ListedTool>,
    /// In the server's order, by name.
    pub prompts: Vec<ListedItem>,
    /// In the server's order, by URI.
    pub resources: Vec<ListedItem>,
    /// In the server's order, by URI template.
    pub templates: Vec<ListedItem>,
    /// What the server says of itself, or the configuration instead.
    #[serde(default)]
    pub instructions: Option<String>,
    /// The server's capabilities, an object; null if it was never asked.
    pub capabilities: Box<RawValue>,
    /// The server's name and version, an object, if it told.
    #[serde(default)]
    pub server_info: Option<Box<RawValue>>,
    /// The protocol's version that it is spoken to in.
    pub version: String,
}

/// A tool of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListedTool {
    /// Its name as the server knows it, which calls use.
    pub name: String,
    /// Its definition: `name`, `description`, `inputSchema` and whatever else the server says.
    pub json: Box<RawValue>,
    /// Are calls refused, since the definition is another by now?
    #[serde(default)]
    pub is_blocked: bool,
}

/// A prompt, a resource or a template.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListedItem {
    /// What it is asked for by.
    pub key: String,
    /// Its definition.
    pub json: Box<RawValue>,
}

impl Listed {
    /// Does the server declare this capability?
    pub fn has(&self, capability: &str) -> bool {
        Members::read(&self.capabilities).is_ok_and(|members| members.get(capability).is_some())
    }

    /// The tool that the server knows by that name.
    pub fn tool(&self, name: &str) -> Option<&ListedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// Who a server is, as it greeted.
#[derive(Debug, Clone)]
pub(super) struct Greeting {
    pub(super) era: Era,
    pub(super) version: String,
    pub(super) capabilities: Box<RawValue>,
    pub(super) instructions: Option<String>,
    pub(super) server_info: Option<Box<RawValue>>,
}

impl Greeting {
    pub(super) fn has(&self, capability: &str) -> bool {
        Members::read(&self.capabilities).is_ok_and(|members| members.get(capability).is_some())
    }
}
