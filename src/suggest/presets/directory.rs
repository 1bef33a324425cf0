//! The directory of presets, read anew with each reload of the catalog.
//!
//! A file that became faulty keeps its last good version, as tool documents do. Without a directory the built-in
//! presets stand in; of these, one whose tools the catalog does not have is passed over in silence, since nobody wrote
//! it for this catalog.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, io};

use super::{MAX_FILE_BYTES, Preset, Presets};
use crate::strict::locate::locate;
use crate::strict::{Diagnostic, LastGood, Limits, Segment, file};

/// The presets as shipped.
const SHIPPED: [(&str, &str); 11] = [
    ("architecture-decision.yaml", include_str!("../../../config/presets/architecture-decision.yaml")),
    ("bias_detection.yaml", include_str!("../../../config/presets/bias_detection.yaml")),
    ("brainstorming.yaml", include_str!("../../../config/presets/brainstorming.yaml")),
    ("causal_analysis.yaml", include_str!("../../../config/presets/causal_analysis.yaml")),
    ("code-review.yaml", include_str!("../../../config/presets/code-review.yaml")),
    ("debug-analysis.yaml", include_str!("../../../config/presets/debug-analysis.yaml")),
    ("decision_analysis.yaml", include_str!("../../../config/presets/decision_analysis.yaml")),
    ("evidence-conclusion.yaml", include_str!("../../../config/presets/evidence-conclusion.yaml")),
    ("evidence_based.yaml", include_str!("../../../config/presets/evidence_based.yaml")),
    ("problem_exploration.yaml", include_str!("../../../config/presets/problem_exploration.yaml")),
    ("strategic-decision.yaml", include_str!("../../../config/presets/strategic-decision.yaml")),
];

/// Most files of a directory; more are a mistake.
const MAX_FILES: usize = 1000;

/// The directory of presets, if there is one.
#[derive(Debug)]
pub struct PresetDirectory {
    path: Option<PathBuf>,
    files: BTreeMap<PathBuf, LastGood<Preset>>,
    /// Why the directory could not be listed.
    faults: Vec<Diagnostic>,
    /// Do the built-in presets stand in?
    is_absent: bool,
}

impl PresetDirectory {
    /// The presets of the directory at `path`; the built-in ones while it is not there. Nothing is read yet.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path, files: BTreeMap::new(), faults: Vec::new(), is_absent: true }
    }

    pub fn read(&mut self) {
        self.faults.clear();
        let directory = self.path.as_deref().filter(|directory| directory.is_dir());
        self.is_absent = directory.is_none();
        let Some(directory) = directory else { return self.files.clear() };
        match list(directory) {
            Ok(files) => {
                self.files.retain(|file, _| files.contains(file));
                for file in files {
                    let unread = || LastGood::new(file.clone(), Limits::of_bytes(MAX_FILE_BYTES));
                    self.files.entry(file.clone()).or_insert_with(unread);
                }
            }
            Err(error) => {
                let message = format!("cannot be listed: {error}");
                self.faults.push(Diagnostic::error(directory, "unreadable", message));
            }
        }
        self.files.values_mut().for_each(LastGood::read);
    }

    /// The presets that can be run with the tools that are known, and everything that is wrong with the others.
    pub fn current(&self, is_known: impl Fn(&str) -> bool) -> (Presets, Vec<Diagnostic>) {
        if self.is_absent {
            return (built_in(is_known), Vec::new());
        }
        let mut found = self.faults.clone();
        let mut ids: BTreeMap<&str, &Path> = BTreeMap::new();
        for file in self.files.values() {
            found.extend_from_slice(file.faults());
            let Some(preset) = file.good() else { continue };
            let at = |fault: Diagnostic, path: &[Segment]| match locate(file.text(), path, false) {
                Some(place) => fault.at(file.text(), place),
                None => fault,
            };
            let key = |key: &str| Segment::Key(key.to_owned());
            if let Some(first) = ids.get(preset.id.as_str()) {
                let message = format!("the preset `{}` stands in {} as well, which serves", preset.id, first.display());
                found.push(at(Diagnostic::error(file.path(), "duplicate-name", message), &[key("id")]));
                continue;
            }
            ids.insert(&preset.id, file.path());
            let unknown = preset.tools.iter().enumerate().filter(|(_, tool)| !is_known(tool));
            found.extend(unknown.map(|(step, tool)| {
                let message = format!("`{tool}` is not in the catalog, so the preset is not offered");
                at(Diagnostic::error(file.path(), "unknown-step", message), &[key("tools"), Segment::Index(step)])
            }));
        }
        (Presets::new(self.files.values().filter_map(LastGood::good), is_known), found)
    }
}

/// The built-in presets that can be run with the tools that are known.
pub fn built_in(is_known: impl Fn(&str) -> bool) -> Presets {
    static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
        let parse = |(file, text): &(&str, &str)| {
            Preset::parse(Path::new(file), text.as_bytes()).expect("the shipped files are parsed by a test")
        };
        SHIPPED.iter().map(parse).collect()
    });
    Presets::new(PRESETS.iter(), is_known)
}

/// The files of presets in `directory`, by name.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // What is no plain file, such as a pipe, could keep a reader waiting.
        if file::is_structured(&path) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.len() > MAX_FILES {
        return Err(io::Error::other(format!("more than {MAX_FILES} files")));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn preset(id: &str, tool: &str) -> String {
        format!("id: {id}\nname: n\ndescription: d\ntools:\n  - {tool}\n")
    }

    fn check(directory: &mut PresetDirectory, ids: &[&str], codes: &[(&str, usize)]) {
        directory.read();
        let (presets, diagnostics) = directory.current(|tool| tool == "x");
        assert_eq!(presets.iter().map(|preset| preset.id.as_str()).collect::<Vec<_>>(), ids);
        let found: Vec<_> = diagnostics.iter().map(|fault| (fault.code.as_str(), fault.line)).collect();
        assert_eq!(found, codes, "{diagnostics:#?}");
    }

    #[test]
    fn all_that_ships_can_be_read() {
        let all = built_in(|_| true);
        assert_eq!(all.len(), SHIPPED.len());
        for (file, text) in SHIPPED {
            let preset = Preset::parse(Path::new(file), text.as_bytes()).unwrap();
            assert_eq!(file, format!("{}.yaml", preset.id), "a file is named after its preset");
            assert!(!preset.use_cases.is_empty() && !preset.keywords.is_empty(), "{file}");
        }
    }

    #[test]
    fn a_directory_is_followed_and_a_faulty_file_keeps_its_last_good_version() {
        let directory = TempDir::new().unwrap();
        let presets = directory.path().join("presets");
        let mut followed = PresetDirectory::new(Some(presets.clone()));
        check(&mut followed, &[], &[]);
        fs::create_dir(&presets).unwrap();
        fs::write(presets.join("a.yaml"), preset("a", "x")).unwrap();
        fs::write(presets.join("b.yml"), preset("b", "gone")).unwrap();
        fs::write(presets.join("c.yaml"), preset("a", "x")).unwrap();
        fs::write(presets.join("no.txt"), "no").unwrap();
        check(&mut followed, &["a"], &[("unknown-step", 5), ("duplicate-name", 1)]);
        fs::write(presets.join("a.yaml"), "id: ]").unwrap();
        fs::remove_file(presets.join("c.yaml")).unwrap();
        check(&mut followed, &["a"], &[("yaml-syntax", 1), ("unknown-step", 5)]);
        fs::remove_dir_all(&presets).unwrap();
        check(&mut followed, &[], &[]);
        assert_eq!(followed.current(|_| true).0.len(), SHIPPED.len());
    }
}
