//! Published SDKs in both roles: Python's and Rust's as a server behind the daemon and as a client of it, Node's, in
//! both its lines, as clients; over HTTP and over `almanacd mcp`. Skipped, which is said, where Python or Node has no
//! such packages or the Rust program is not built, unless `ALMANAC_TEST_COUNTERPARTS` is set.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::client::{LEGACY, MODERN};
use super::conformance::{node, packages};
use super::served::Served;
use crate::python::{has, interpreter};

/// A file of these tests.
fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name).display().to_string()
}

/// A server behind the daemon: what it is called there, how it is started, and what its tool says that fails.
struct Behind {
    name: &'static str,
    command: [String; 2],
    failure: &'static str,
}

impl Behind {
    fn python() -> Self {
        let command = [whole(&interpreter()), script("python/mcp/server.py")];
        Self { name: "py", command, failure: "Error executing tool fail" }
    }

    fn rust(program: &Path) -> Self {
        let command = [program.display().to_string(), "server".to_owned()];
        Self { name: "rs", command, failure: "it failed in Rust" }
    }

    fn served(&self) -> Served {
        let server = format!("    {}: {{command: [{}]}}\n", self.name, self.command.join(", "));
        Served::new(&server, "  anonymous_calls: true\n")
    }
}

/// The program on the Rust SDK, which is built beside the daemon.
fn rust() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_almanacd")).with_file_name("almanac-rmcp");
    let is_built = program.exists();
    let missing = "almanac-rmcp is not built: cargo build --package almanac-rmcp";
    assert!(is_built || std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "{missing}");
    if !is_built {
        let _ = writeln!(std::io::stderr(), "skipped: {missing}");
    }
    is_built.then_some(program)
}

/// The program's whole path, since a daemon has another search path than a shell.
fn whole(program: &str) -> String {
    let found = Command::new(program).args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

/// What a client was told, by way of `target`.
#[track_caller]
fn told(client: &[String], mode: &str, target: &[String]) -> Value {
    let mut command = Command::new(&client[0]);
    command.args(&client[1..]).arg(mode).args(target).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{mode} {target:?}: {said}{complaints}");
    serde_json::from_str(&said).unwrap()
}

/// Asks both ways, in each of these modes, of which the version that is spoken then is known.
fn check(client: &[String], behind: &Behind, modes: &[(&str, Option<&str>)]) {
    let served = behind.served();
    let [add, fail] = ["add", "fail"].map(|tool| format!("{}_{tool}", behind.name));
    let url = vec![format!("http://{}/mcp", served.daemon.address)];
    let socket = served.site.path("state/mcp.sock").display().to_string();
    let mcp: Vec<String> = [env!("CARGO_BIN_EXE_almanacd"), "mcp", "--socket", &socket].map(str::to_owned).into();
    for (mode, version) in modes {
        for target in [&url, &mcp] {
            let told = told(client, mode, target);
            assert_eq!(told["version"], json!(version), "{told}");
            let tools = told["tools"].as_array().unwrap();
            assert!(tools.contains(&json!("call_tool")) && tools.contains(&json!(add)), "{told}");
            assert!(told["found"].as_str().unwrap().contains("Adds two numbers."), "{told}");
            assert_eq!((&told["through"], &told["direct"]), (&json!("5"), &json!("50")), "{told}");
            assert_eq!(told["failed"][0], true, "{told}");
            assert!(told["failed"][1].as_str().unwrap().contains(behind.failure), "{told}");
        }
    }
    let calls = modes.len() * 2;
    assert_eq!((served.recorded(&add), served.recorded(&fail)), (calls * 2, calls));
}

#[test]
fn python_speaks_to_the_daemon_and_is_spoken_to() {
    if has("mcp") {
        let client = [interpreter(), script("python/mcp/client.py")];
        check(&client, &Behind::python(), &[("auto", Some(MODERN)), ("legacy", Some(LEGACY))]);
    }
}

#[test]
fn node_speaks_to_the_daemon_in_both_lines() {
    let Some(packages) = packages() else { return };
    if !has("mcp") {
        return;
    }
    let client = [node(&packages).display().to_string(), script("npm/mcp/client.mjs")];
    check(&client, &Behind::python(), &[("auto", Some(MODERN)), ("legacy", Some(LEGACY)), ("1.x", None)]);
}

#[test]
fn rust_speaks_to_the_daemon_and_is_spoken_to() {
    let Some(program) = rust() else { return };
    let behind = Behind::rust(&program);
    let client = [program.to_str().unwrap(), "client", behind.name].map(str::to_owned);
    check(&client, &behind, &[("initialize", Some(LEGACY)), ("discover", Some(MODERN)), ("auto", Some(MODERN))]);
}
