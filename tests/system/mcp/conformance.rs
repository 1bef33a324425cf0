//! The published conformance suite, both its lines, on a server of the published SDK: directly, and through the daemon,
//! scenario by scenario. Where Node's packages are not installed (`npm ci --prefix tests/npm`) this says so and passes,
//! unless `ALMANAC_TEST_COUNTERPARTS` is set.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;
use serde_json::json;

use super::served::{Served, configure};
use crate::daemon::Site;

/// Scenarios that need no fixture, with the version that they are run in.
const OWN: [(&str, &[&str]); 2] = [
    (
        "2025-11-25",
        &[
            "server-initialize",
            "logging-set-level",
            "ping",
            "tools-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
            "server-session-lifecycle",
        ],
    ),
    (
        "2026-07-28",
        &[
            "tools-list",
            "server-sse-multiple-streams",
            "sep-2164-resource-not-found",
            "dns-rebinding-protection",
            "input-required-result-unsupported-methods",
            "http-header-validation",
        ],
    ),
];

/// What came of each scenario: checks that passed and that failed.
type Outcomes = BTreeMap<String, (usize, usize)>;

#[derive(Deserialize)]
struct ExpectedFailures {
    direct: BTreeMap<String, String>,
    tasks: BTreeMap<String, String>,
    /// By the name of the server.
    through: BTreeMap<String, BTreeMap<String, String>>,
}

/// Where Node's packages are, if they are there.
pub fn packages() -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/npm");
    let found = ["conformance/dist/index.js", "inspector/package.json", "server/package.json", "node/package.json"]
        .iter()
        .all(|file| packages.join("node_modules/@modelcontextprotocol").join(file).is_file());
    if found && packages.join("node_modules/.bin/node").exists() {
        return Some(packages);
    }
    assert!(std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "the npm packages are not installed");
    let _ = writeln!(std::io::stderr(), "skipped: no packages in tests/npm; `npm ci --prefix tests/npm` gets them");
    None
}

/// A Node of the version that the packages need.
pub fn node(packages: &Path) -> PathBuf {
    packages.join("node_modules/.bin/node").canonicalize().unwrap()
}

/// The fixture as a server of the configuration that speaks one era; further keys may follow.
pub fn fixture(packages: &Path, era: &str) -> String {
    let (node, script) = (node(packages), packages.join("mcp/fixture.mjs"));
    format!("{{command: [{}, {}, stdio], per_session: true, env: {{ERA: {era}}}", node.display(), script.display())
}

/// The fixture over HTTP.
struct Fixture {
    process: Child,
    url: String,
}

impl Fixture {
    fn start(packages: &Path) -> Self {
        let mut command = Command::new(node(packages));
        command.arg(packages.join("mcp/fixture.mjs")).arg("http").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the suite's scenarios for servers on this address.
fn run(packages: &Path, line: &str, url: &str, selection: &[&str]) -> Outcomes {
    let output = Command::new(node(packages))
        .arg(packages.join("node_modules").join(line).join("dist/index.js"))
        .args(["server", "--url", url])
        .args(selection)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let summary = said.split("=== SUMMARY ===").nth(1);
    // A lone scenario has no summary.
    let lines: Vec<&str> = match summary {
        Some(summary) => summary.lines().take_while(|line| !line.starts_with("Total:")).collect(),
        None => return Outcomes::from([(selection[1].to_owned(), lone(&said, output.status.success()))]),
    };
    let outcome = |line: &&str| {
        let (scenario, counts) = line.trim_start_matches(['✓', '✗', ' ']).split_once(": ")?;
        let (passed, failed) = counts.split_once(" passed, ")?;
        let failed = failed.split(' ').next()?;
        Some((scenario.to_owned(), (passed.parse().ok()?, failed.parse().ok()?)))
    };
    let outcomes: Outcomes = lines.iter().filter_map(outcome).collect();
    assert!(outcomes.len() > 20, "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    outcomes
}

fn lone(said: &str, is_success: bool) -> (usize, usize) {
    let count = |word: &str| {
        let before = said.split(word).next().filter(|before| before.len() < said.len())?;
        before.trim_end().rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse::<usize>().ok()
    };
    let failed = usize::from(!is_success);
    (count(" passed").or_else(|| count("/")).unwrap_or_default(), count(" failed").unwrap_or(failed).max(failed))
}

const NEW: &str = "@modelcontextprotocol/conformance";
const OLD: &str = "conformance-0.1";

/// Holds what came of the scenarios through the daemon to what comes of them without it.
#[track_caller]
fn compare(what: &str, direct: &Outcomes, through: &Outcomes, expected: &ExpectedFailures) {
    let mut faults = Vec::new();
    let known = expected.through.get(what.split(' ').next().unwrap());
    for (scenario, (passed, failed)) in direct {
        if (*failed > 0) != expected.direct.contains_key(scenario) && what.ends_with("2026-07-28") {
            faults.push(format!("{scenario}: {passed} passed, {failed} failed on the fixture itself"));
        }
        let Some((passed_through, failed_through)) = through.get(scenario) else {
            faults.push(format!("{scenario} was not run"));
            continue;
        };
        let is_as_good = passed_through >= passed && failed_through <= failed;
        if is_as_good == known.is_some_and(|known| known.contains_key(scenario)) {
            faults.push(format!("{scenario}: {passed} and {failed}, here {passed_through} and {failed_through}"));
        }
    }
    assert!(faults.is_empty(), "{what}: passed and failed\n{}", faults.join("\n"));
}

#[test]
fn what_passes_on_a_server_passes_through_the_daemon() {
    let Some(packages) = packages() else { return };
    let expected = std::fs::read_to_string(packages.join("mcp/expected-failures.yaml")).unwrap();
    let expected: ExpectedFailures = serde_yaml::from_str(&expected).unwrap();
    let server = Fixture::start(&packages);
    let servers = ["legacy", "modern"].map(|era| format!("    {era}: {}}}\n", fixture(&packages, era))).concat();
    let far = format!("    far: {{url: '{}'}}\n", server.url);
    let served = Served::new(&(servers + &far), "  anonymous_calls: true\n");
    let url = |name: &str| format!("http://{}/mcp/server/{name}", served.daemon.address);
    // The process of callers without a session: an answer that waits for its start is a stream, whose status is 200.
    served.ask("/mcp/server/modern", "tools/call", json!({"name": "test_simple_text", "arguments": {}}));
    for (version, names) in [("2025-11-25", ["legacy"].as_slice()), ("2026-07-28", ["modern", "far"].as_slice())] {
        let selection = ["--requirements", version];
        let direct = run(&packages, NEW, &server.url, &selection);
        for name in names {
            let through = run(&packages, NEW, &url(name), &selection);
            compare(&format!("{name} {version}"), &direct, &through, &expected);
        }
    }
}

#[test]
fn what_passes_on_a_server_passes_through_the_daemon_in_the_older_line() {
    let Some(packages) = packages() else { return };
    let server = Fixture::start(&packages);
    // This line leaves its sessions open, and a server has sixteen at most.
    let servers: String = (0..3).map(|number| format!("    s{number}: {}}}\n", fixture(&packages, "legacy"))).collect();
    let served = Served::new(&servers, "  anonymous_calls: true\n");
    let direct = run(&packages, OLD, &server.url, &[]);
    for (place, (scenario, (_, failed))) in direct.iter().enumerate() {
        assert_eq!(*failed, 0, "{scenario} on the fixture itself");
        let url = format!("http://{}/mcp/server/s{}", served.daemon.address, place % 3);
        let through = run(&packages, OLD, &url, &["--scenario", scenario]);
        assert_eq!(through[scenario].1, 0, "{scenario} through the daemon");
    }
}

/// Scenarios of the extension by which calls are tasks.
const TASKS: [&str; 9] = [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];

#[test]
fn slow_calls_are_tasks_as_the_suite_wants_them() {
    let Some(packages) = packages() else { return };
    let expected = std::fs::read_to_string(packages.join("mcp/expected-failures.yaml")).unwrap();
    let expected: ExpectedFailures = serde_yaml::from_str(&expected).unwrap();
    let (node, script) = (node(&packages), packages.join("mcp/fixture.mjs"));
    let command = format!("[{}, {}, stdio]", node.display(), script.display());
    let slow = format!("    slow: {{command: {command}, env: {{ERA: modern, TASKS: '1'}}, on_timeout: handle}}\n");
    let served = Served::new(&slow, "  anonymous_calls: true\n");
    // The process of callers without a session: a call that waits for its start becomes a task, whatever it is for.
    served.ask("/mcp/server/slow", "tools/call", json!({"name": "greet", "arguments": {"name": "World"}}));
    // Half of it passes before a call becomes a task: the fixture's slow tools take longer, and the others less.
    let url = format!("http://{}/mcp/server/slow?client_timeout=1200ms", served.daemon.address);
    for scenario in TASKS {
        let (_, failed) = run(&packages, NEW, &url, &["--scenario", scenario])[scenario];
        assert_eq!(failed > 0, expected.tasks.contains_key(scenario), "{scenario}: {failed} checks failed");
    }
}

#[test]
fn the_daemon_itself_passes_what_needs_no_fixture() {
    let Some(packages) = packages() else { return };
    let site = Site::new();
    configure(&site, "    {}\n", "");
    let daemon = site.start();
    let url = format!("http://{}/mcp", daemon.address);
    for (version, scenarios) in OWN {
        let outcomes = run(&packages, NEW, &url, &["--requirements", version]);
        for scenario in scenarios {
            let (passed, failed) = outcomes[*scenario];
            assert!(passed > 0 && failed == 0, "{scenario} {version}: {passed} passed, {failed} failed");
        }
    }
}
