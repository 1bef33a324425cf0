//! Servers of clients, taken over; documents of a server's tools.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use crate::daemon::almanacd;
use crate::documents::run;

#[test]
fn servers_of_clients_are_taken_over_file_by_file() {
    let directory = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("good.json", r#"{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "s3cret"}}}}"#);
    write("code.json", "{ // of an editor\n\"servers\": {\"b\": {\"command\": \"y\"},}}");
    write("own.json", r#"{"mcpServers": {"almanac": {"command": "almanacd", "args": ["mcp"]}}}"#);
    write("broken.json", "{");
    let import =
        |files: &[&str]| run(almanacd().args(["import", "mcp", "--clients"]).args(files).current_dir(&directory));
    let (code, out, said) = import(&["good.json", "code.json", "own.json"]);
    let taken = "mcp:\n  servers:\n    a:\n      command:\n      - x\n      env:\n        \
                 API_KEY: ${env:API_KEY}\n    b:\n      command:\n      - \"y\"\n";
    assert_eq!((code, out.as_str()), (0, taken), "{said}");
    assert!(said.contains("set API_KEY") && said.contains("this very program"), "{said}");
    let (code, out, said) = import(&["broken.json", "good.json", "nowhere.json", "code.json"]);
    assert_eq!((code, out.as_str()), (1, taken), "{said}");
    assert!(said.contains("broken.json was left out: EOF") && said.contains("nowhere.json was left out"), "{said}");
}

#[test]
fn a_server_is_run_where_it_was_named() {
    let directory = TempDir::new().unwrap();
    let server = directory.path().join("server");
    let fixture = std::env::current_exe().unwrap();
    let arguments = "mcp_fixture::serve --exact --nocapture --test-threads=2";
    fs::write(&server, format!("#!/bin/sh\nFIXTURE=legacy exec {} {arguments}\n", fixture.display())).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    let import = |name: &str| {
        let arguments = ["import", "mcp", "--name", name, "--out", "docs", "--", "./server"];
        run(almanacd().args(arguments).current_dir(&directory))
    };
    let (code, _, said) = import("Bad Name");
    assert!(code != 0 && said.contains("`Bad Name` is no name for a server"), "{said}");
    assert!(!directory.path().join("docs").exists());
    let (code, _, said) = import("here");
    assert_eq!(code, 0, "{said}");
    assert!(directory.path().join("docs/here_echo.yaml").exists());
}
