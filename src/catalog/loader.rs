//! The catalog for a Rust program without the daemon.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;

use super::load::Loaded;
use super::reload::{Reloader, Sources};
use super::{Diagnostic, Entry, ToolMetadata};

/// Loads tool metadata from a directory, and keeps up with it.
///
/// Thread-safe. After the first call nothing is read on the caller's thread: a watch keeps the documents current.
///
/// ```
/// use almanac::catalog::Loader;
///
/// let loader = Loader::new("tool_metadata");
/// if let Some(tool) = loader.load("web_search")? {
///     println!("Tool: {}\nCategory: {}", tool.name, tool.category);
///     for case in &tool.use_cases {
///         println!("Use case: {}", case.title);
///     }
/// }
/// # Ok::<(), almanac::catalog::LoaderError>(())
/// ```
#[derive(Debug)]
pub struct Loader {
    directory: PathBuf,
    started: RwLock<Option<Started>>,
}

#[derive(Debug, Clone)]
struct Started {
    loaded: Arc<ArcSwap<Loaded>>,
    parsed: Arc<RwLock<Parsed>>,
    _reloader: Reloader,
}

/// Documents handed out before, with the entry they were parsed from.
type Parsed = HashMap<Arc<str>, (Arc<Entry>, Arc<ToolMetadata>)>;

/// A tool's metadata could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// The tool's file is faulty and was never good.
    #[error("{}", describe(.0))]
    Faulty(Vec<Diagnostic>),
    /// The thread that keeps up with the directory could not be started.
    #[error("cannot watch the directory")]
    Thread(#[source] std::io::Error),
}

fn describe(diagnostics: &[Diagnostic]) -> String {
    let line = |diagnostic: &Diagnostic| format!("{}: {}", diagnostic.place(), diagnostic.message);
    diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl Loader {
    /// A loader for `directory`; an empty path means `tool_metadata`, relative to the working directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let directory = if directory.as_os_str().is_empty() { "tool_metadata".into() } else { directory };
        Self { directory, started: RwLock::default() }
    }

    /// The tool's metadata; `None` if no document describes it. While a file is faulty its last good version is
    /// returned.
    pub fn load(&self, name: &str) -> Result<Option<Arc<ToolMetadata>>, LoaderError> {
        let started = self.started()?;
        let loaded = started.loaded.load();
        match loaded.catalog.get(name) {
            Some(entry) => Ok(Some(started.parse(entry))),
            None => refuse_faulty(&loaded, name),
        }
    }

    /// All tools by name, and everything that is wrong with the directory.
    pub fn load_all(&self) -> (BTreeMap<String, Arc<ToolMetadata>>, Vec<Diagnostic>) {
        let started = match self.started() {
            Ok(started) => started,
            Err(error) => {
                let fault = Diagnostic::error(&self.directory, "unreadable", error.to_string());
                return (BTreeMap::new(), vec![fault]);
            }
        };
        let loaded = started.loaded.load();
        let tools = loaded.catalog.iter().map(|entry| (entry.name().to_string(), started.parse(entry))).collect();
        (tools, loaded.diagnostics.to_vec())
    }

    fn started(&self) -> Result<Started, LoaderError> {
        if let Some(started) = &*self.started.read() {
            return Ok(started.clone());
        }
        let mut slot = self.started.write();
        if let Some(started) = &*slot {
            return Ok(started.clone());
        }
        let loaded: Arc<ArcSwap<Loaded>> = Arc::default();
        let publish = Arc::clone(&loaded);
        let settings = Sources::directory(&self.directory);
        let (reloader, _) = Reloader::start(settings, move |report| publish.store(Arc::new(report.loaded.clone())))
            .map_err(LoaderError::Thread)?;
        Ok(slot.insert(Started { loaded, parsed: Arc::default(), _reloader: reloader }).clone())
    }
}

impl Default for Loader {
    fn default() -> Self {
        Self::new("")
    }
}

impl Started {
    fn parse(&self, entry: &Arc<Entry>) -> Arc<ToolMetadata> {
        let parsed = self.parsed.read();
        match parsed.get(entry.name()) {
            Some((from, document)) if Arc::ptr_eq(from, entry) => return Arc::clone(document),
            _ => drop(parsed),
        }
        let document = Arc::new(entry.document());
        let known = (Arc::clone(entry), Arc::clone(&document));
        self.parsed.write().insert(Arc::clone(entry.name()), known);
        document
    }
}

/// A missing tool is an error only if a document that says its name, or a file called after it, is at fault.
fn refuse_faulty(loaded: &Loaded, name: &str) -> Result<Option<Arc<ToolMetadata>>, LoaderError> {
    let faults: Vec<Diagnostic> = loaded.faults_of(name).into_iter().cloned().collect();
    if faults.is_empty() { Ok(None) } else { Err(LoaderError::Faulty(faults)) }
}
