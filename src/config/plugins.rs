//! The configuration of rule libraries.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::plugin_host::Hash;
use crate::strict::{At, FromNode, Node};

/// Where an installed daemon finds rule libraries.
pub const INSTALLED: &str = "/usr/lib/almanac/plugins";

/// The library that is shipped, if it lies beside the executable.
const SHIPPED: &str = "libalmanac_reasoning.so";

/// Rule libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugins {
    /// Libraries, and directories of libraries; earlier ones take precedence.
    pub paths: Vec<PathBuf>,
    /// Where they run.
    pub isolation: Isolation,
    /// How long an answer waits for them.
    pub deadline: Duration,
    /// Sums of the libraries that may run; all, if there are none.
    pub allow: Vec<Hash>,
    /// Run none where the kernel cannot confine files.
    pub require_sandbox: bool,
    /// Address space of one worker, in bytes.
    pub max_memory_bytes: usize,
    /// Each library's own configuration, JSON objects by id.
    pub settings: BTreeMap<String, String>,
}

/// Where foreign code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In a process of its own, behind a sandbox.
    Process,
    /// In the daemon, which it can crash; replaced by a restart only.
    InProcess,
}

impl Isolation {
    /// The name in the configuration and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::InProcess => "in_process",
        }
    }
}

impl Default for Plugins {
    fn default() -> Self {
        Self {
            paths: default_paths(),
            isolation: Isolation::Process,
            deadline: Duration::from_millis(50),
            allow: Vec::new(),
            require_sandbox: false,
            max_memory_bytes: 512 << 20,
            settings: BTreeMap::new(),
        }
    }
}

fn default_paths() -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(SHIPPED)));
    beside.into_iter().filter(|path| path.exists()).chain([PathBuf::from(INSTALLED)]).collect()
}

impl FromNode for Plugins {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let mut plugins = Self::default();
            fields.set("paths", &mut plugins.paths);
            fields.set("isolation", &mut plugins.isolation);
            fields.set("deadline", &mut plugins.deadline);
            fields.set("allow", &mut plugins.allow);
            fields.set("require_sandbox", &mut plugins.require_sandbox);
            super::read::set_within(fields, "max_memory_bytes", &mut plugins.max_memory_bytes, 64 << 20, 1 << 40);
            if let Some(OwnSettings(settings)) = fields.optional("settings") {
                plugins.settings = settings;
            }
            plugins
        })
    }
}

impl FromNode for Isolation {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match String::from_node(node, at)?.as_str() {
            "process" => Some(Self::Process),
            "in_process" => Some(Self::InProcess),
            other => {
                at.bad_value(format!("isolation is process or in_process, not `{other}`"));
                None
            }
        }
    }
}

impl FromNode for Hash {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        let hash = text.parse().ok();
        if hash.is_none() {
            at.bad_value(format!("`{text}` is no SHA-256 sum, which has 64 hexadecimal digits"));
        }
        hash
    }
}

/// A mapping of ids to mappings, each kept as the JSON that its library reads.
struct OwnSettings(BTreeMap<String, String>);

impl FromNode for OwnSettings {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let Node::Map(entries) = node else {
            at.bad_value("a library's settings stand under its id, such as `org.example.rules: {key: value}`");
            return None;
        };
        let mut settings = BTreeMap::new();
        for (id, value) in entries {
            if matches!(value, Node::Map(_)) {
                settings.insert(id, serde_json::Value::from(value).to_string());
            } else {
                at.bad_value(format!("the settings of `{id}` are a mapping, not {}", value.kind()));
            }
        }
        Some(Self(settings))
    }
}
