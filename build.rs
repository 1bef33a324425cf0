//! Notes which compiler builds the daemon, for `almanac_build_info`, and under which names its parts log.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    for path in ["build.rs", "src", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=RUSTC");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(compiler).arg("--version").output();
    let version = said.ok().and_then(|said| String::from_utf8(said.stdout).ok());
    // `rustc 1.91.0 (hash date)`: the number is enough.
    let number = version.as_deref().and_then(|text| text.split(' ').nth(1)).unwrap_or("unknown");
    println!("cargo::rustc-env=RUSTC_VERSION={number}");
    let mut modules = BTreeSet::from(["almanac".to_owned()]);
    add_modules(Path::new("src"), "almanac", &mut modules)?;
    let targets: Vec<String> = modules.into_iter().chain(crates_that_log()).collect();
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("targets"), targets.join("\n"))
}

/// The modules below a directory, by their files.
fn add_modules(directory: &Path, parent: &str, modules: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        let module = format!("{parent}::{name}");
        if path.is_dir() {
            add_modules(&path, &module, modules)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && !matches!(name, "lib" | "main") {
            modules.insert(module);
        }
    }
    Ok(())
}

/// The crates of the lock file that have a way to log; none without that file.
fn crates_that_log() -> Vec<String> {
    let locked = fs::read_to_string("Cargo.lock").unwrap_or_default();
    let packages = locked.split("[[package]]").filter(|package| {
        let mut needed = package.lines().map(|line| line.trim().trim_matches(['"', ',']));
        needed.any(|name| matches!(name, "log" | "tracing" | "tracing-core"))
    });
    let name = |package: &str| Some(package.split_once("name = \"")?.1.split_once('"')?.0.replace('-', "_"));
    packages.filter_map(name).filter(|name| !name.starts_with("almanac")).collect()
}
