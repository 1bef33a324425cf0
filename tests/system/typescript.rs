//! The TypeScript client against this daemon. Where its packages are not installed (`npm ci --prefix
//! clients/typescript`) this test says so and passes, unless `ALMANAC_TEST_COUNTERPARTS` is set.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_client_of_typescript_speaks_to_this_daemon() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/typescript");
    if !package.join("node_modules/typescript").is_dir() {
        assert!(std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "the npm packages are not installed");
        let hint = "`npm ci --prefix clients/typescript` gets them";
        let _ = writeln!(std::io::stderr(), "skipped: no packages in clients/typescript; {hint}");
        return;
    }
    let output = Command::new("npm")
        .arg("test")
        .current_dir(package)
        .env("ALMANACD", env!("CARGO_BIN_EXE_almanacd"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{errors}");
    let passed = said.lines().find_map(|line| line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix("pass "));
    assert!(passed.is_some_and(|passed| passed != "0"), "no test ran: {said}");
}
