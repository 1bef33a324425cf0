//! Rule libraries under test: the shipped one, and those that are compiled from the sources in
//! `tests/fixtures/plugins`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shipped rule library, as built for these tests.
pub fn reasoning() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_almanacd")).with_file_name("deps").join("libalmanac_reasoning.so")
}

/// Compiles `tests/fixtures/plugins/{source}.c`, such as `hostile/counter`, into a shared object at `target`.
///
/// `defines` are `-D` options, such as `VERSION="1.2.0"`, with the quotes if the value is a string. What was at
/// `target` is replaced in one step; who has it open or mapped keeps the old one.
#[track_caller]
pub fn compile(source: &str, defines: &[&str], target: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = root.join("tests/fixtures/plugins").join(source).with_extension("c");
    // A library that was built with the frozen header must not see today's.
    let own = source.with_file_name("almanac_plugin.h").exists();
    let include = if own { source.with_file_name("") } else { root.join("plugins/abi/include") };
    // Not in the watched directory under a name that looks like a library.
    let temporary = target.with_extension("so-in-the-making");
    let output = Command::new("cc")
        .args([
            "-std=gnu11",
            "-O1",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            "-pthread",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg("-I")
        .args([&include, Path::new("-o"), &temporary, &source])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&temporary, target).unwrap();
}

/// The shared object of a hostile library, by its name, in this directory.
#[track_caller]
pub fn hostile(name: &str, directory: &Path) -> PathBuf {
    let target = directory.join(format!("lib{name}.so"));
    compile(&format!("hostile/{name}"), &[], &target);
    target
}

/// Whether a file contains these bytes.
fn contains(file: &Path, bytes: &[u8]) -> bool {
    fs::read(file).unwrap().windows(bytes.len()).any(|window| window == bytes)
}

#[test]
fn the_shipped_library_is_built_and_says_what_it_is() {
    assert!(contains(&reasoning(), b"Almanac\0"));
    assert!(contains(&reasoning(), b"dev.almanac.reasoning\0"));
}

#[test]
fn a_version_makes_another_library() {
    let directory = tempfile::tempdir().unwrap();
    let first = hostile("counter", directory.path());
    assert!(contains(&first, b"1.0.0"));
    let second = directory.path().join("second.so");
    compile("hostile/counter", &["VERSION=\"2.0.0\""], &second);
    assert!(contains(&second, b"2.0.0") && !contains(&second, b"1.0.0"));
    compile("v1_0/plugin", &[], &first);
    assert!(contains(&first, b"test.frozen.v1-0\0"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}
