//! What the host goes by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::discover::discover;
use super::library::Library;
use super::process::own_program;
use crate::strict::{At, FaultCode, FromNode, Node, Segment, Word};
use crate::sum::Sum;
use crate::text::near;

/// Where an installed daemon finds rule libraries.
pub(super) const INSTALLED: &str = "/usr/lib/almanac/plugins";

/// The library that is shipped, if it lies beside the executable.
const SHIPPED: &str = "libalmanac_reasoning.so";

/// The section `plugins` of the configuration.
#[derive(Debug, Clone, PartialEq, FromNode)]
#[node(default)]
pub struct Settings {
    /// Libraries, and directories of libraries; earlier ones take precedence.
    pub paths: Vec<PathBuf>,
    /// Where a library runs.
    pub isolation: Isolation,
    /// Sums of the libraries that may run; all, if there are none.
    pub allow: Vec<Sum>,
    /// How a library is started.
    #[node(flatten)]
    pub launch: Launch,
    /// Each library's own configuration, JSON objects by id.
    #[node(read = own_settings)]
    pub settings: BTreeMap<String, String>,
    /// Longest time between two looks at the files; that of the tool documents.
    #[node(skip)]
    pub poll_interval: Duration,
    /// Use file events; as for the tool documents.
    #[node(skip)]
    pub watch: bool,
}

/// Where foreign code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In a process of its own, behind a sandbox.
    Process,
    /// In the daemon, which it can crash; replaced by a restart only.
    InProcess,
}

/// How a worker is started; a library is started anew when this changes.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default)]
pub struct Launch {
    /// The program that becomes a worker: `almanacd` itself.
    #[node(skip)]
    pub program: PathBuf,
    /// Address space of a worker, in bytes.
    #[schemars(range(min = 64 << 20, max = 1 << 40))]
    pub max_memory_bytes: u64,
    /// Run nothing where the kernel cannot confine files.
    pub require_sandbox: bool,
    /// How long a call may take; an answer waits no longer for libraries.
    pub deadline: Duration,
}

impl Settings {
    /// What of the paths cannot be looked at, and why; and settings that no library takes.
    pub fn troubles(&self) -> Vec<String> {
        let found = discover(&self.paths);
        let mut troubles = found.troubles;
        if !self.settings.is_empty() {
            let ids = found.libraries.iter().map(|path| Some(Library::open_anyway(path).ok()?.identity.id));
            // Of a library that cannot be read, nobody knows whether they are its.
            if let Some(ids) = ids.collect::<Option<Vec<String>>>() {
                troubles.extend(self.unclaimed(&ids));
            }
        }
        troubles
    }

    /// Settings under the id of none of the libraries, in a sentence each.
    pub(super) fn unclaimed(&self, ids: &[String]) -> Vec<String> {
        let strange = self.settings.keys().filter(|id| !ids.contains(id));
        let describe = |id: &String| match near::nearest(id, ids.iter().map(String::as_str)) {
            Some(near) => format!("`plugins.settings` has `{id}`, the id of no library; did you mean `{near}`?"),
            None => format!("`plugins.settings` has `{id}`, the id of no library that is there"),
        };
        strange.map(describe).collect()
    }

    /// The configuration that the library of this id is given: a JSON object.
    pub(super) fn of(&self, id: &str) -> String {
        self.settings.get(id).cloned().unwrap_or_else(|| "{}".to_owned())
    }

    /// The same with another program as worker, for whoever is not `almanacd`.
    #[must_use]
    pub fn with_program(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.launch.program);
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            paths: default_paths(),
            isolation: Isolation::Process,
            allow: Vec::new(),
            launch: Launch::default(),
            settings: BTreeMap::new(),
            poll_interval: Duration::from_secs(30),
            watch: true,
        }
    }
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            program: own_program().to_owned(),
            max_memory_bytes: 512 << 20,
            require_sandbox: false,
            deadline: Duration::from_millis(50),
        }
    }
}

fn default_paths() -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(SHIPPED)));
    beside.into_iter().filter(|path| path.exists()).chain([PathBuf::from(INSTALLED)]).collect()
}

/// A mapping of ids to mappings, each kept as the JSON that its library reads.
fn own_settings(node: Node, at: &mut At) -> Option<BTreeMap<String, String>> {
    let Node::Map(entries) = node else {
        at.bad_value("a library's settings stand under its id, such as `org.example.rules: {key: value}`");
        return None;
    };
    let mut settings = BTreeMap::new();
    for (id, value) in entries {
        if matches!(value, Node::Map(_)) {
            settings.insert(id, serde_json::Value::from(value).to_string());
            continue;
        }
        let message = format!("the settings of `{id}` are a mapping, not {}", value.kind());
        let hint = (value == Node::Null).then(|| {
            "`{}` says that there are none; keys that are meant for it stand further in than its id".to_owned()
        });
        at.within(Segment::Key(id), |at| at.fault(FaultCode::BadValue, message, hint));
    }
    Some(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_no_library_are_named() {
        let settings = |id: &str| BTreeMap::from([(id.to_owned(), "{}".to_owned())]);
        let check = |id: &str, expected: &[&str]| {
            let settings = Settings { settings: settings(id), ..Settings::default() };
            let said = settings.unclaimed(&["org.example.rules".to_owned()]);
            assert_eq!(said.len(), expected.len(), "{said:?}");
            assert!(said.iter().zip(expected).all(|(said, part)| said.ends_with(part)), "{said:?}");
        };
        check("org.example.rules", &[]);
        check("org.example.rule", &["did you mean `org.example.rules`?"]);
        check("dev.other", &["`plugins.settings` has `dev.other`, the id of no library that is there"]);
        let directory = tempfile::tempdir().unwrap();
        let at = |path: PathBuf| Settings { paths: vec![path], settings: settings("dev.other"), ..Settings::default() };
        assert_eq!(at(directory.path().to_owned()).troubles().len(), 1);
        let file = directory.path().join("x.so");
        std::fs::write(&file, "no library").unwrap();
        assert_eq!(at(file).troubles(), Vec::<String>::new(), "whose they are is not known");
    }
}
