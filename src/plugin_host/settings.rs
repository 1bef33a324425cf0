//! What the host goes by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::library::Hash;
use super::process::own_program;
use crate::config::{Config, Isolation, Plugins};

/// What the host goes by.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Libraries, and directories of libraries; earlier ones take precedence.
    pub paths: Vec<PathBuf>,
    /// Where a library runs.
    pub isolation: Isolation,
    /// Sums of the libraries that may run; all, if there are none.
    pub allow: Vec<Hash>,
    /// How a library is started.
    pub launch: Launch,
    /// Each library's own configuration, JSON objects by id.
    pub configuration: BTreeMap<String, String>,
    /// Longest time between two looks at the files.
    pub poll_interval: Duration,
    /// Use file events.
    pub watch: bool,
}

/// How a worker is started; a library is started anew when this changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program that becomes a worker: `almanacd` itself.
    pub program: PathBuf,
    /// Address space of a worker, in bytes.
    pub max_memory: u64,
    /// Run nothing where the kernel cannot confine files.
    pub require_sandbox: bool,
    /// How long a call may take.
    pub deadline: Duration,
}

impl Settings {
    /// The configuration that the library of this id is given: a JSON object.
    pub(super) fn of(&self, id: &str) -> String {
        self.configuration.get(id).cloned().unwrap_or_else(|| "{}".to_owned())
    }

    /// The same with another program as worker, for whoever is not `almanacd`.
    #[must_use]
    pub fn with_program(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.launch.program);
        self
    }
}

impl Launch {
    fn of(plugins: &Plugins) -> Self {
        Self {
            program: own_program().to_owned(),
            max_memory: plugins.max_memory_bytes as u64,
            require_sandbox: plugins.require_sandbox,
            deadline: plugins.deadline,
        }
    }
}

impl Default for Launch {
    fn default() -> Self {
        Self::of(&Plugins::default())
    }
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let plugins = &config.plugins;
        Self {
            paths: plugins.paths.clone(),
            isolation: plugins.isolation,
            allow: plugins.allow.clone(),
            launch: Launch::of(plugins),
            configuration: plugins.settings.clone(),
            poll_interval: config.catalog.poll_interval,
            watch: config.catalog.watch,
        }
    }
}
