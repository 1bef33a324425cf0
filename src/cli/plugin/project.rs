//! `almanacd plugin new`: a project that builds as it is, with nothing to fetch.
//!
//! What it builds against is part of this program: the header, and the sources of the two crates as path dependencies.
//! So it fits the daemon that wrote it, on a machine without a network, too.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::super::output::Output;
use super::super::{CliError, Exit};
use super::Language;

/// A file: where it goes, and its content.
type File = (&'static str, &'static str);

macro_rules! files {
    ($from:literal, $to:literal: $($file:literal)*) => {
        &[$((concat!($to, $file), include_str!(concat!("../../../", $from, $file)))),*]
    };
}

const ABI: &[File] = files!(
    "plugins/abi/", "vendor/abi/":
    "README.md" "include/almanac_plugin.h" "src/layout.rs" "src/lib.rs" "src/read.rs" "src/types.rs"
);

const SDK: &[File] = files!(
    "plugins/sdk/", "vendor/sdk/":
    "README.md" "src/export.rs" "src/host.rs" "src/lib.rs" "src/request.rs" "src/rule.rs" "src/sink.rs"
    "src/snapshot.rs" "src/testing.rs" "src/testing/call.rs" "src/testing/host.rs" "src/testing/longer.rs" "src/view.rs"
);

const RUST: &[File] = &[
    ("Cargo.toml", include_str!("template/Cargo.toml.in")),
    ("src/lib.rs", include_str!("template/lib.rs")),
    ("README.md", include_str!("template/README.rust.md")),
    (".gitignore", "/target\n"),
];

const C: &[File] = &[
    ("rules.c", include_str!("template/rules.c")),
    ("almanac_plugin.h", include_str!("../../../plugins/abi/include/almanac_plugin.h")),
    ("Makefile", include_str!("template/Makefile.in")),
    ("README.md", include_str!("template/README.c.md")),
    (".gitignore", "*.so\n"),
];

/// The manifest of a crate that is part of the project.
const VENDORED: &str = include_str!("template/vendored.toml.in");

/// The crates that are part of each project.
const VENDORED_CRATES: [&str; 2] = ["almanac-plugin", "almanac-plugin-abi"];

/// Longest name, in bytes; the id that is made of it has 127.
const MAX_NAME: usize = 64;

/// Writes the project into a new directory of its name.
pub(super) fn write(name: &str, language: Language, output: &mut Output) -> Result<Exit, CliError> {
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if VENDORED_CRATES.contains(&name) || !starts_well || name.len() > MAX_NAME || !name.bytes().all(is_good) {
        return Err(CliError::ProjectName(name.to_owned()));
    }
    let root = Path::new(name);
    if root.exists() {
        return Err(CliError::ProjectExists(name.to_owned()));
    }
    let files = project(name, language);
    for (file, content) in &files {
        let path = root.join(file);
        let failed = |source| CliError::Write { file: path.display().to_string(), source };
        fs::create_dir_all(path.parent().unwrap_or(root)).map_err(failed)?;
        fs::write(&path, content).map_err(failed)?;
    }
    let paths: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
    output.show(&json!({"directory": name, "files": paths}), |out| {
        out.line(&format!("{name}/ is written; its README.md says how to build and check it"));
    });
    Ok(Exit::Success)
}

fn project(name: &str, language: Language) -> Vec<(String, String)> {
    let own = |files: &[File]| -> Vec<(String, String)> {
        let fill = |text: &str| text.replace("{{name}}", name).replace("{{lib}}", &name.replace('-', "_"));
        files.iter().map(|(file, content)| ((*file).to_owned(), fill(content))).collect()
    };
    match language {
        Language::C => own(C),
        Language::Rust => {
            let mut files = own(RUST);
            files.extend([ABI, SDK].concat().iter().map(|(file, content)| ((*file).to_owned(), (*content).to_owned())));
            let interface = manifest("almanac-plugin-abi", "The interface between Almanac and its rule libraries", "");
            files.push(("vendor/abi/Cargo.toml".to_owned(), interface));
            let dependency = "almanac-plugin-abi = { path = \"../abi\" }";
            let sdk = manifest("almanac-plugin", "Write rule libraries for Almanac in safe Rust", dependency);
            files.push(("vendor/sdk/Cargo.toml".to_owned(), sdk));
            files
        }
    }
}

fn manifest(name: &str, description: &str, dependencies: &str) -> String {
    VENDORED
        .replace("{{crate}}", name)
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
        .replace("{{description}}", description)
        .replace("{{dependencies}}", dependencies)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn sources(directory: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, root, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }

    #[test]
    fn all_sources_of_the_crates_come_along() {
        for (name, files) in [("abi", ABI), ("sdk", SDK)] {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins").join(name);
            let mut expected = BTreeSet::from(["README.md".to_owned()]);
            for directory in ["src", "include"].map(|directory| root.join(directory)) {
                if directory.exists() {
                    sources(&directory, &root, &mut expected);
                }
            }
            let prefix = format!("vendor/{name}/");
            let there: BTreeSet<String> =
                files.iter().map(|(file, _)| file.strip_prefix(&prefix).unwrap().to_owned()).collect();
            assert_eq!(there, expected);
        }
    }

    #[test]
    fn nothing_is_left_to_be_filled_in() {
        for language in [Language::Rust, Language::C] {
            for (file, content) in project("my-rules", language) {
                let own = !file.starts_with("vendor/") || file.ends_with("Cargo.toml");
                assert!(!own || !content.contains("{{"), "{file}");
            }
        }
    }
}
