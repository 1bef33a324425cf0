//! The inspector that is published with the protocol, as a client on its command line: in its eras, over HTTP and over
//! `almanacd mcp`. Where Node's packages are not installed this says so and passes, unless `ALMANAC_TEST_COUNTERPARTS`
//! is set.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::conformance::{node, packages};
use super::served::{Served, names, text};
use crate::daemon::wait_until;
use crate::mcp_fixture::server;

const PROGRAM: &str = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

#[test]
fn the_inspector_lists_and_calls_in_each_era_at_both_doors() {
    let Some(packages) = packages() else { return };
    let served = Served::new(&format!("    a: {}}}\n", server("legacy")), "  anonymous_calls: true\n");
    let socket = served.site.path("state/mcp.sock").display().to_string();
    let url = vec![format!("http://{}/mcp/server/a", served.daemon.address)];
    let lines: Vec<String> =
        [env!("CARGO_BIN_EXE_almanacd"), "mcp", "--socket", &socket, "--view", "server/a"].map(str::to_owned).into();
    let inspect = |door: &[String], era: &str, asked: &[&str]| -> Value {
        let mut command = Command::new(node(&packages));
        command.arg(packages.join(PROGRAM)).arg("--cli").args(door);
        // Of an address that does not end in /mcp it wants to be told what it is.
        command.args(["--transport", if door.len() == 1 { "http" } else { "stdio" }]);
        command.args(["--protocol-era", era, "--quiet", "--method"]).args(asked);
        // What it keeps of its own goes with the test.
        command.env("HOME", served.site.path("home")).env("MCP_CATALOG_PATH", served.site.path("catalog.json"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{door:?} {era} {asked:?}: {said}{complaints}");
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    for door in [&url, &lines] {
        for era in ["legacy", "modern"] {
            let called = inspect(door, era, &["tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"]);
            assert_eq!(text(&called), "hello", "{called}");
            let resources = inspect(door, era, &["resources/list"]);
            assert_eq!(resources["resources"][0]["uri"], "test://a", "{resources}");
            let prompts = inspect(door, era, &["prompts/list"]);
            assert_eq!(prompts["prompts"][0]["name"], "greet", "{prompts}");
        }
        for era in ["legacy", "modern", "auto"] {
            // It has nothing to say of the schemas either.
            let listed = json!({"result": inspect(door, era, &["tools/list", "--strict"])});
            assert_eq!(names(&listed), ["ask", "die", "echo", "noise", "progress", "sleep"], "{era}");
        }
    }
    wait_until("the records", || served.recorded("a_echo") == 4);
}
