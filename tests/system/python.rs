//! The Python client against this daemon. Where its packages are not installed this test says so and passes, unless
//! `ALMANAC_TEST_COUNTERPARTS` is set. `ALMANAC_TEST_PYTHON` names the interpreter that has them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The interpreter that the packages are looked for in.
pub fn interpreter() -> String {
    std::env::var("ALMANAC_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Has the interpreter these modules? Their absence fails the test where counterparts are promised.
pub fn has(modules: &str) -> bool {
    let found = Command::new(interpreter())
        .args(["-c", &format!("import {modules}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    assert!(found || std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "no modules {modules}");
    if !found {
        let hint = "`pip install -r tests/python/requirements.txt -e clients/python` gets them";
        let _ = writeln!(std::io::stderr(), "skipped: Python has no modules {modules}; {hint}");
    }
    found
}

#[test]
fn the_client_of_python_speaks_to_this_daemon() {
    if !has("httpx, pytest, almanac_client") {
        return;
    }
    let output = Command::new(interpreter())
        .args(["-m", "pytest", "-p", "no:cacheprovider"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python"))
        .env("ALMANACD", env!("CARGO_BIN_EXE_almanacd"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" passed"), "no test ran: {said}");
}
