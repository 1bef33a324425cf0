//! What people write as documents, and what is made of what others wrote.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, Site, almanacd, below, document, shipped, wait_for, wait_until};

/// The exit code, and what is said on both streams.
pub fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn what_people_write_is_read() {
    let site = Site::new();
    site.save("mark.yaml", &format!("\u{feff}{}", document("mark", "t")));
    site.save("upper.YAML", &document("upper", "t"));
    let tabs = "{\n\t\"name\": \"tabs\",\n\t\"title\": \"t\",\n\t\"description\": \"d\",\n\t\"category\": \"c\",\n\
                \t\"capabilities\": null,\n\t\"keywords\": [\"k\"],\n\t\"use_cases\": []\n}\n";
    site.save("tabs.json", tabs);
    site.save(
        "none.yaml",
        "name: none\ntitle: t\ndescription: d\ncategory: c\ncapabilities:\nkeywords:\nuse_cases:\nconflicts:\n",
    );
    site.save("merge.yaml", &format!("{}timing:\n  <<: {{estimated_duration_ms: 1}}\n", document("merge", "t")));
    let daemon = site.start();
    for name in ["mark", "upper", "tabs", "none"] {
        assert_eq!(daemon.title(name).as_deref(), Some("t"), "{name}");
    }
    assert_eq!(daemon.json("/v1/tools/none")["keywords"], json!([]));
    let findings = daemon.json("/v1/catalog")["diagnostics"].clone();
    assert_eq!(findings.as_array().map(Vec::len), Some(1), "{findings:#}");
    assert_eq!(findings[0]["line"], 9);
    assert!(findings[0]["message"].as_str().unwrap().contains("merge keys"), "{findings:#}");
    // A document of JSON is followed like any other.
    site.save("tabs.json", &tabs.replace("\"t\"", "\"new\""));
    wait_until("the new title", || daemon.title("tabs").as_deref() == Some("new"));
}

#[test]
fn numbers_stay_as_they_were_written() {
    let site = Site::new();
    let examples = "examples:\n- name: e\n  input: {wei: 123456789012345678901234567890, price: 1.50}\n  \
                    output: 1000000000000000000000\ninput_schema: {properties: {amount: {maximum: ";
    let largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    site.save("pay.yaml", &format!("{}{examples}{largest}}}}}}}\n", document("pay", "t")));
    let daemon = site.start();
    let served = daemon.get("/v1/tools/pay").text();
    let kept = r#""input":{"wei":123456789012345678901234567890,"price":1.50},"output":1000000000000000000000"#;
    assert!(served.contains(kept), "{served}");
    assert!(served.contains(largest), "{served}");
    let response =
        format!(r#"{{"price":1.50,"wei":{largest},"tiny":-0.000000000000000000000000000001,"list":[1,1.0,1.00]}}"#);
    let enriched =
        daemon.post("/v1/enrich", &format!(r#"{{"request": {{"tool_name": "pay"}}, "response": {response}}}"#));
    assert_eq!(enriched.status, 200, "{}", enriched.text());
    let begins = response.strip_suffix('}').unwrap();
    assert!(enriched.text().starts_with(begins), "{}", enriched.text());
    // What is asked by number is still a number.
    let estimate = daemon.post("/v1/estimate", r#"{"tool_name": "pay", "timeout_ms": 5000.0}"#);
    assert_eq!(estimate.status, 200, "{}", estimate.text());
    assert_eq!(daemon.post("/v1/estimate", r#"{"tool_name": "pay", "timeout_ms": 5e400}"#).status, 400);
}

#[test]
fn check_takes_several_paths_and_standard_input() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let full = |name: &str| document(name, "t").replace("keywords: []", "keywords: [k]");
    fs::create_dir(path("d")).unwrap();
    fs::write(path("d/a.yaml"), full("a")).unwrap();
    fs::write(
        path("b.json"),
        r#"{"name": "b", "title": "", "description": "d", "category": "c", "capabilities": [],
        "keywords": [], "use_cases": []}"#,
    )
    .unwrap();
    let check = |arguments: &[&str], expected: (i32, &str)| {
        let (code, out, error) = run(almanacd().arg("check").args(arguments).current_dir(&directory));
        assert_eq!((code, out.lines().last().unwrap_or_default()), expected, "{arguments:?}\n{out}{error}");
        out
    };
    let out = check(&["d", "b.json"], (0, "2 documents, 2 tools, 0 errors, 2 warnings"));
    assert!(out.contains("empty-title") && out.contains("hard-to-find") && out.contains("b.json:1:"), "{out}");
    check(&["d/a.yaml"], (0, "1 document, 1 tool, 0 errors, 0 warnings"));
    // The configuration's limit holds for named documents, too.
    fs::write(path("small.yaml"), "catalog:\n  max_document_bytes: 1024\n").unwrap();
    fs::write(path("long.yaml"), format!("{}# {}\n", full("long"), "x".repeat(1024))).unwrap();
    check(&["long.yaml"], (0, "1 document, 1 tool, 0 errors, 0 warnings"));
    let out = check(&["--config", "small.yaml", "long.yaml"], (1, "1 document, 0 tools, 1 error, 0 warnings"));
    assert!(
        out.contains("longer than 1024 bytes, which is the limit") && out.contains("raise catalog.max_document_bytes"),
        "{out}"
    );
    fs::write(path("small.yaml"), "catalog:\n  max_document_bytes: 64\n").unwrap();
    let (code, out, error) =
        run(almanacd().args(["check", "--config", "small.yaml", "long.yaml"]).current_dir(&directory));
    assert!(code == 78 && error.contains("small.yaml:2:23: must be 1024 to 16777216"), "{code} {out}{error}");
    // What is kept of what ships speaks of the rest.
    fs::copy(shipped().join("builtin/web_search.yaml"), path("d/web_search.yaml")).unwrap();
    let out = check(&["d"], (0, out_of_hints(&directory)));
    assert!(out.contains("note[dangling-relation]") && out.contains("ships with Almanac"), "{out}");
    let given = |text: &str| {
        let mut child = almanacd().args(["check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(given(&full("x")), (Some(0), "1 document, 1 tool, 0 errors, 0 warnings\n".to_owned()));
    let (code, out) = given(&full("x").replace("category", "categry"));
    assert_eq!(code, Some(1));
    assert!(out.contains("<stdin>:4:1") && out.contains("4 | categry: test"), "{out}");
    let (code, _, error) = run(almanacd().args(["check", "-", "d"]).current_dir(&directory));
    assert!(code == 64 && error.contains("stands alone"), "{error}");
}

/// The last line of a check of a tool that ships beside one that does not: as many hints as its document says.
fn out_of_hints(directory: &TempDir) -> &'static str {
    let text = fs::read_to_string(directory.path().join("d/web_search.yaml")).unwrap();
    let document = value_of(&text);
    let of = |key: &str| document[key].as_array().map_or(0, Vec::len);
    let count = of("conflicts") + of("alternatives") + of("complements");
    Box::leak(format!("2 documents, 2 tools, 0 errors, 0 warnings, {count} hints").into_boxed_str())
}

fn value_of(text: &str) -> Value {
    let limits = almanac::strict::Limits::of_bytes(1 << 20);
    almanac::strict::read::yaml(text.as_bytes(), &limits).unwrap().into()
}

#[test]
fn check_watches() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("a.yaml");
    let good = document("a", "t").replace("keywords: []", "keywords: [k]");
    fs::write(&file, &good).unwrap();
    let mut child = almanacd().arg("check").arg(&file).arg("--watch").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut counts =
        || lines.by_ref().map_while(Result::ok).find(|line| line.contains(" documents") || line.contains(" document,"));
    assert_eq!(counts().as_deref(), Some("1 document, 1 tool, 0 errors, 0 warnings"));
    fs::write(&file, good.replace("category", "categry")).unwrap();
    assert_eq!(counts().as_deref(), Some("1 document, 0 tools, 2 errors, 0 warnings"));
    fs::write(&file, &good).unwrap();
    assert_eq!(counts().as_deref(), Some("1 document, 1 tool, 0 errors, 0 warnings"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_foreign_file_has_one_fault() {
    let directory = TempDir::new().unwrap();
    fs::write(
        directory.path().join("api.yaml"),
        "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\ntags: []\n",
    )
    .unwrap();
    let (code, out, _) = run(almanacd().args(["check", "--json"]).arg(directory.path()));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["errors"]), (1, &json!(1)), "{report:#}");
    let finding = &report["diagnostics"][0];
    assert_eq!((&finding["code"], &finding["line"]), (&json!("no-tool-document"), &json!(1)));
    assert!(finding["message"].as_str().unwrap().contains("is this an OpenAPI description?"), "{finding:#}");
    assert!(finding["hint"].as_str().unwrap().contains("almanacd import openapi"), "{finding:#}");
}

#[test]
fn the_schema_is_printed() {
    let (code, out, _) = run(almanacd().arg("schema"));
    let schema: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &schema["additionalProperties"]), (0, &json!(false)));
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(
        validator.is_valid(&json!({"name": "x", "title": "t", "description": "d", "category": "", "capabilities": [],
        "keywords": null, "use_cases": []}))
    );
    assert!(!validator.is_valid(&json!({"name": "x"})));
}

#[test]
fn what_others_know_of_tools_becomes_documents() {
    let directory = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let import = |arguments: &[&str]| run(almanacd().arg("import").args(arguments).current_dir(&directory));
    write(
        "api.yaml",
        "openapi: 3.1.0\ninfo: {title: Pets, version: '1'}\npaths:\n  /pets/{id}:\n    get:\n      \
         summary: Finds a pet\n      tags: [pets]\n      parameters:\n      \
         - {name: id, in: path, required: true, schema: {type: integer, maximum: 100000000000000000000}}\n",
    );
    let (code, out, error) = import(&["openapi", "api.yaml", "--out", "docs"]);
    assert_eq!((code, out.as_str()), (0, "api.yaml: 1 written, 0 updated, 0 unchanged\n"), "{error}");
    assert!(error.contains("GET /pets/{id}: there is no operationId; it is called get_pets_by_id"), "{error}");
    let first = read("docs/get_pets_by_id.yaml");
    assert!(first.contains("maximum: 100000000000000000000\n"), "{first}");
    let (code, out, _) = run(almanacd().args(["check", "docs"]).current_dir(&directory));
    assert_eq!((code, out.as_str()), (0, "1 document, 1 tool, 0 errors, 0 warnings\n"));
    // The same again changes nothing, and what was written by hand stays.
    write(
        "docs/get_pets_by_id.yaml",
        &format!("# mine\n{}", first.replace("use_cases: []", "use_cases:\n- title: t # mine\n  when_to_use: w")),
    );
    let mine = read("docs/get_pets_by_id.yaml");
    assert_eq!(import(&["openapi", "api.yaml", "--out", "docs"]).1, "api.yaml: 0 written, 0 updated, 1 unchanged\n");
    write("api.yaml", &read("api.yaml").replace("Finds a pet", "Finds one pet"));
    let (code, _, error) = import(&["openapi", "api.yaml", "--out", "docs"]);
    assert!(code == 1 && error.contains("--update"), "{error}");
    assert_eq!(read("docs/get_pets_by_id.yaml"), mine);
    assert_eq!(import(&["openapi", "api.yaml", "--out", "docs", "--update"]).0, 0);
    assert_eq!(
        read("docs/get_pets_by_id.yaml"),
        mine.replace("description: Finds a pet", "description: Finds one pet")
    );
    write(
        "list.json",
        r#"{"tools": [{"type": "function", "function": {"name": "now", "description": "The time.", "parameters":
        {"type": "object"}, "strict": true}}]}"#,
    );
    let (code, out, error) = import(&["functions", "list.json", "--out", "docs"]);
    assert_eq!((code, out.as_str()), (0, "list.json: 1 written, 0 updated, 0 unchanged\n"), "{error}");
    assert_eq!(error, "now: strict has no place in a document\n");
    write("mcp.json", r#"{"tools": [{"name": "read", "description": "Reads.", "inputSchema": {"type": "object"}}]}"#);
    let (code, ..) = import(&["mcp-list", "mcp.json", "--server", "files", "--out", "docs"]);
    assert_eq!(code, 0);
    assert!(read("docs/files_read.yaml").contains("backend: mcp:files"));
    for (kind, file) in [("openapi", "list.json"), ("functions", "api.yaml"), ("mcp-list", "api.yaml")] {
        let (code, _, error) = import(&[kind, file, "--out", "docs"]);
        assert!(code == 1 && error.contains(&format!("cannot read {file}")), "{kind}: {error}");
    }
    write("broken.json", "{\n  \"openapi\": \n}");
    let (code, _, error) = import(&["openapi", "broken.json"]);
    assert!(code == 78 && error.contains("broken.json:3:1"), "{error}");
}

#[test]
fn one_tool_is_shown_and_so_are_presets_and_durations() {
    let site = Site::new();
    site.save("a.yaml", &document("alpha", "Alpha"));
    let tools = site.tools();
    let (code, out, _) = run(almanacd().args(["show", "alpha", "--tool-metadata"]).arg(&tools));
    assert!(code == 0 && out.starts_with("name: alpha\ntitle: Alpha\n"), "{out}");
    let (code, _, error) = run(almanacd().args(["show", "alpa", "--tool-metadata"]).arg(&tools));
    assert!(code == 1 && error.contains("did you mean alpha?"), "{error}");
    let (_site, daemon) = crate::daemon::serve_shipped();
    let socket = daemon.admin.clone();
    let ask = |arguments: &[&str]| run(almanacd().args(arguments).arg("--socket").arg(&socket));
    let (code, out, _) = ask(&["show", "web_search"]);
    assert!(code == 0 && out.starts_with("name: web_search\n"), "{out}");
    let (code, out, _) = ask(&["presets"]);
    assert!(code == 0 && out.contains("decision_analysis"), "{out}");
    let (code, _, error) = ask(&["timing", "web_search"]);
    assert!(code == 1 && error.contains("nothing was recorded"), "{error}");
    assert_eq!(ask(&["record", "web_search", "1200"]).0, 0);
    wait_for("the record to be learnt", || ask(&["timing", "web_search"]).1.contains("1 sample ").then_some(()));
    let (code, out, _) = ask(&["timing", "--json"]);
    let page: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &page["items"][0]["tool"]), (0, &json!("web_search")));
}

#[test]
fn tokens_are_listed_and_revoked() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("tokens");
    let token = |arguments: &[&str]| run(almanacd().arg("token").args(arguments).arg("--file").arg(&file));
    assert_eq!(token(&["new", "--name", "ci", "--scopes", "read,record"]).0, 0);
    assert_eq!(token(&["new", "--name", "ops", "--scopes", "admin", "--tenant", "acme"]).0, 0);
    let (code, _, error) = token(&["new", "--name", "ci"]);
    assert!(code == 1 && error.contains("there is a token called `ci`"), "{error}");
    assert_eq!(token(&["list"]).1, "ci   read,record  default\nops  admin  acme\n");
    assert_eq!(token(&["revoke", "ci"]), (0, "ci is revoked\n".to_owned(), String::new()));
    assert_eq!(token(&["list"]).1, "ops  admin  acme\n");
    let (code, _, error) = token(&["revoke", "ci"]);
    assert!(code == 1 && error.contains("no token is called `ci`"), "{error}");
    let mut text = String::new();
    fs::File::open(&file).unwrap().read_to_string(&mut text).unwrap();
    assert!(!text.contains("\"ci\""), "{text}");
}

#[test]
fn a_preset_is_kept_as_it_is_answered() {
    let site = Site::new();
    let daemon = crate::daemon::serve_shipped_on(&site);
    let preset = daemon.json("/v1/presets/decision_analysis");
    assert!(preset["estimated_duration_ms"].is_u64());
    drop(daemon);
    fs::create_dir(site.path("presets")).unwrap();
    let mut kept = preset.clone();
    kept["id"] = json!("mine");
    fs::write(site.path("presets/mine.json"), kept.to_string()).unwrap();
    let daemon = crate::daemon::serve_shipped_on(&site);
    let answered = daemon.json("/v1/presets/mine");
    assert_eq!((&answered["tools"], &answered["keywords"]), (&preset["tools"], &preset["keywords"]));
    assert_eq!(daemon.json("/v1/presets")["total"], 1, "a directory of one's own stands in for the built-in ones");
}

#[test]
fn the_machine_s_documents_are_found_when_they_come() {
    let site = Site::new();
    let mut inner = almanacd();
    inner.args(["serve", "--log-format", "json", "--config"]).arg(site.path("almanac.yaml"));
    inner.arg("--state-dir").arg(site.path("state")).env("ALMANAC_LISTEN", "127.0.0.1:0");
    // A machine that has none yet, nor does the directory it is started in.
    let bare = "mount -t tmpfs tmpfs /etc && mount -t tmpfs tmpfs /usr/share && cd /proc && exec \"$@\"";
    let Some(command) = below(&inner, &["--mount"], bare) else { return };
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    let documents = format!("/proc/{}/root/etc/almanac/tool_metadata", daemon.child.id());
    fs::create_dir_all(&documents).unwrap();
    fs::write(format!("{documents}/a.yaml"), document("a", "one")).unwrap();
    wait_until("the document", || daemon.title("a").as_deref() == Some("one"));
}
