//! A library that could not catch its panics cannot be built.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::Path;
use std::process::Command;

/// What the compiler says about this crate alone; without its dependency it has something to say in any case.
fn compile(panic: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("rustc")
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "-C", panic, "--out-dir"])
        .args([directory.path(), &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")])
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn aborting_on_panic_is_refused() {
    let refusal = "a rule library must be able to catch panics";
    assert!(compile("panic=abort").contains(refusal));
    assert!(!compile("panic=unwind").contains(refusal));
}
