//! Rules of the house that no lint can state.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the lint on `unsafe` may be lifted.
const LIFTED: [&str; 3] = ["src/plugin_host", "plugins/abi", "plugins/sdk"];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn unsafe_code_is_where_it_belongs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for directory in ["src", "plugins"] {
        sources(&root.join(directory), &mut found);
    }
    assert!(!found.is_empty());
    for file in found {
        let name = file.strip_prefix(root).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let lifts = text.lines().any(|line| line.contains("unsafe_code") && !line.contains("forbid("));
        let may = LIFTED.iter().any(|place| name.starts_with(place));
        assert!(
            may || !lifts || name == Path::new("src/plugin_host.rs"),
            "{} lifts the lint on unsafe",
            name.display()
        );
    }
}
