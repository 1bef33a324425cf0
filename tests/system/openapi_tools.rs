//! The OpenAPI document as others read it: validators find no fault in it, and clients made from it work. Where the
//! tools are not installed these tests say so and pass, unless `ALMANAC_TEST_COUNTERPARTS` is set.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::daemon::{Daemon, Site, document};
use crate::python;

/// A daemon with a tool, and a directory with its document.
fn described() -> (Site, Daemon, TempDir) {
    let site = Site::new();
    site.save("alpha.yaml", &document("alpha", "Alpha"));
    let daemon = site.start();
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("openapi.json"), daemon.get("/openapi.json").body).unwrap();
    (site, daemon, directory)
}

/// Runs a program there; what it said, which is nothing bad.
fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str], directory: &Path) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    let output = command.env("REDOCLY_TELEMETRY", "off").env("CI", "1").output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

fn npm(program: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/npm/node_modules/.bin").join(program);
    let found = program.exists();
    assert!(found || std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "{} is missing", program.display());
    if !found {
        let hint = "`npm ci --prefix tests/npm` gets it";
        let _ = writeln!(std::io::stderr(), "skipped: there is no {}; {hint}", program.display());
    }
    found.then_some(program)
}

#[test]
fn the_validator_of_python_finds_no_fault() {
    if !python::has("openapi_spec_validator") {
        return;
    }
    let (_site, _daemon, directory) = described();
    run(python::interpreter(), &["-m", "openapi_spec_validator", "openapi.json"], directory.path());
}

#[test]
fn linters_find_no_fault() {
    let (Some(spectral), Some(redocly)) = (npm("spectral"), npm("redocly")) else { return };
    let (_site, _daemon, directory) = described();
    fs::write(directory.path().join(".spectral.yaml"), "extends: ['spectral:oas']\n").unwrap();
    run(spectral, &["lint", "openapi.json", "--fail-severity", "warn"], directory.path());
    let said = run(redocly, &["lint", "openapi.json"], directory.path());
    assert!(said.contains("is valid") && !said.contains("You have"), "{said}");
}

/// Requests of each operation that the document allows, made up and the same each time. What lasts or needs other
/// programs is left out: streams, servers and the console.
#[test]
fn made_up_requests_are_answered_as_the_document_says() {
    if !python::has("schemathesis") {
        return;
    }
    let (_site, daemon, directory) = described();
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    fs::copy(hooks.join("made_up_requests.py"), directory.path().join("made_up_requests.py")).unwrap();
    let address = format!("http://{}", daemon.address);
    let program = "import os, sys; os.environ['SCHEMATHESIS_HOOKS'] = 'made_up_requests'; sys.path.insert(0, '.'); \
                   from schemathesis.cli import schemathesis; schemathesis()";
    let amount = ["--max-examples", "5", "--generation-deterministic", "--phases", "examples,coverage,fuzzing"];
    let left_out = ["--exclude-path-regex", "(events|streams|mcp|console)", "--suppress-health-check", "all"];
    let asked = ["-c", program, "run", "openapi.json", "--url", &address];
    run(python::interpreter(), &[&asked[..], &amount, &left_out].concat(), directory.path());
}

/// Uses a client that was made.
const PYTHON_SMOKE: &str = r#"
import sys
from made import Client
from made.api.tools import get_tool, list_tools
from made.api.timing import estimate, record_executions
from made.api.sessions import read_stream
from made.models import EstimateRequest, ExecutionBody

client = Client(base_url=sys.argv[1])
assert get_tool.sync("alpha", client=client).title == "Alpha"
assert list_tools.sync(client=client, limit=5).total == 1
recorded = record_executions.sync_detailed(client=client, body=ExecutionBody(tool_name="alpha", duration_ms=5))
assert recorded.parsed.recorded == 1, recorded
timing = estimate.sync(client=client, body=EstimateRequest(tool_name="alpha")).timing
assert timing.confidence in ("low", "medium", "high"), timing
refused = get_tool.sync("alhpa", client=client)
assert refused.near == ["alpha"], refused
"#;

#[test]
fn a_client_made_for_python_works() {
    if !python::has("openapi_python_client, httpx") {
        return;
    }
    let (_site, daemon, directory) = described();
    let made = ["-m", "openapi_python_client", "generate", "--path", "openapi.json", "--output-path", "made"];
    let said = run(python::interpreter(), &[&made[..], &["--meta", "none"]].concat(), directory.path());
    assert!(!said.contains("will not be generated"), "{said}");
    run(python::interpreter(), &["-m", "compileall", "-q", "made"], directory.path());
    run(python::interpreter(), &["-c", PYTHON_SMOKE, &format!("http://{}", daemon.address)], directory.path());
}

/// Uses types that were made.
const TYPESCRIPT_SMOKE: &str = r"
import type { components, operations, paths } from './made.js';
type Body<O extends keyof operations> = operations[O] extends { requestBody: { content: infer C } } ? C : never;
export const asked: components['schemas']['EstimateRequest'] = { tool_name: 'alpha' };
export const told: components['schemas']['ExecutionBody'] = { tool_name: 'alpha', duration_ms: 5, outcome: 'success' };
export const message: components['schemas']['QualifyRequest'] = { message: 'hello' };
export const code: components['schemas']['Code'] = 'unknown-tool';
export const stream: Body<'readStream'>['text/plain'] = '0:hello';
type Answer = paths['/v1/estimate']['post']['responses']['200']['content']['application/json'];
type Recorded = paths['/v1/executions']['post']['responses']['201']['content']['application/json'];

declare const process: { argv: string[] };
async function post(path: keyof paths, body: unknown): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(process.argv[2] + path, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}
const recorded = (await post('/v1/executions', told)) as Recorded;
if (recorded.recorded !== 1) throw new Error(JSON.stringify(recorded));
const { timing } = (await post('/v1/estimate', asked)) as Answer;
const words: Answer['timing']['confidence'][] = ['low', 'medium', 'high'];
if (!words.includes(timing.confidence)) throw new Error(JSON.stringify(timing));
const refused = (await post('/v1/qualify', {})) as components['schemas']['ProblemDocument'];
const expected: typeof refused.code = 'invalid-body';
if (refused.code !== expected) throw new Error(JSON.stringify(refused));
";

#[test]
fn types_made_for_typescript_hold_at_the_daemon() {
    let (Some(generator), Some(compiler)) = (npm("openapi-typescript"), npm("tsc")) else { return };
    let (_site, daemon, directory) = described();
    run(generator, &["openapi.json", "--output", "made.ts"], directory.path());
    fs::write(directory.path().join("smoke.ts"), TYPESCRIPT_SMOKE).unwrap();
    run(compiler, &["--strict", "--target", "es2022", "--module", "esnext", "smoke.ts"], directory.path());
    fs::rename(directory.path().join("smoke.js"), directory.path().join("smoke.mjs")).unwrap();
    run("node", &["smoke.mjs", &format!("http://{}", daemon.address)], directory.path());
}
