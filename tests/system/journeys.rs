//! What a page tells its reader to type, typed, with what it says comes out: the README's tour of who operates a daemon
//! or asks one, and the pages of authors. Authors of rule libraries have `plugin_guide`; those who write Python or
//! TypeScript have the examples of the clients' READMEs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use crate::counterparts::installed;
use crate::daemon::{Daemon, almanacd, wait_for, wait_until};
use crate::fixtures::reasoning;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A command of a page, and the lines that the page shows of its output.
#[derive(Debug, Default, Clone)]
struct Typed {
    command: String,
    shown: Vec<String>,
}

/// The commands of the `console` blocks of a page, in order.
fn typed(page: &str) -> Vec<Typed> {
    let mut all: Vec<Typed> = Vec::new();
    for block in page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let mut goes_on = false;
        for line in block.lines() {
            match (line.strip_prefix("$ "), all.last_mut()) {
                (Some(command), _) => all.push(Typed { command: command.to_owned(), shown: Vec::new() }),
                (None, Some(last)) if goes_on => last.command += &format!("\n{line}"),
                (None, Some(last)) => last.shown.push(line.to_owned()),
                (None, None) => {}
            }
            goes_on = line.ends_with('\\') || goes_on && line.ends_with('|') || line.ends_with("' |");
        }
    }
    all
}

/// What changes from day to day is told by its shape: numbers with a part after the point, ids, times and counts.
fn shape(line: &str) -> String {
    let is_status = line.len() == 3 && line.bytes().all(|byte| byte.is_ascii_digit());
    if is_status {
        return line.to_owned();
    }
    let is_id = |word: &str| word.len() == 36 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let words: Vec<&str> = line.split(' ').map(|word| if is_id(word) { "ID" } else { word }).collect();
    let mut shape = String::new();
    for character in words.join(" ").chars() {
        let is_part = character.is_ascii_digit() || character == '.' && shape.ends_with('0');
        if !is_part {
            shape.push(character);
        } else if !shape.ends_with('0') {
            shape.push('0');
        }
    }
    shape
}

/// Does the output begin as the page shows it? `…` stands for the rest, of a line or of all.
fn agrees(shown: &[String], output: &str) -> bool {
    let mut lines = output.lines();
    for expected in shown {
        let Some(expected) = expected.strip_suffix('…') else {
            if lines.next().map(shape) == Some(shape(expected)) {
                continue;
            }
            return false;
        };
        if expected.is_empty() {
            return true;
        }
        if !lines.next().is_some_and(|line| shape(line).starts_with(&shape(expected))) {
            return false;
        }
    }
    shown.is_empty() || lines.next().is_none()
}

/// A directory as the reader has it, with a daemon in it.
struct Reader {
    directory: TempDir,
    daemon: Daemon,
}

impl Reader {
    fn new() -> Self {
        let directory = TempDir::with_prefix("almanac-").unwrap();
        let copied = Command::new("cp").arg("-r").arg(root().join("tool_metadata")).arg(directory.path()).status();
        assert!(copied.unwrap().success());
        let library = directory.path().join("target/release/libalmanac_reasoning.so");
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        fs::copy(reasoning(), &library).unwrap();
        let mut command = almanacd();
        command.args(["serve", "--log-format", "json", "--state-dir", "state", "--plugins", "target/release"]);
        command.env("ALMANAC_LISTEN", "127.0.0.1:0").current_dir(directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let daemon = Daemon::start(command, directory.path().join("state/admin.sock"));
        wait_until("it to be ready", || daemon.get("/ready").status == 200);
        Self { directory, daemon }
    }

    /// What it says, and whether it went well: a refusal that curl fetched did not.
    fn output(&self, command: &str) -> (String, bool) {
        let programs = Path::new(env!("CARGO_BIN_EXE_almanacd")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let command = command.replace("localhost:7311", &self.daemon.address.to_string());
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(self.directory.path())
            .env("PATH", path)
            .env("ALMANAC_ADMIN_SOCKET", &self.daemon.admin)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_well = output.status.success() && !said.starts_with("{\"title\":\"");
        (said, is_well)
    }

    /// Types it; what only asks is asked until it says what is shown, since a saved file takes its moment.
    fn check(&self, Typed { command, shown }: &Typed) {
        let changes = ["record ", "remember ", "sed "].iter().any(|word| command.contains(word));
        if changes {
            let (output, is_well) = self.output(command);
            assert!(is_well && agrees(shown, &output), "$ {command}\n{output}\nis not\n{}", shown.join("\n"));
            return;
        }
        let mut last = String::new();
        wait_for(&format!("`{command}` to say\n{}", shown.join("\n")), || {
            let (output, is_well) = self.output(command);
            // What is shown may be a refusal; where nothing is, it must not be one.
            let agrees = agrees(shown, &output) && (is_well || !shown.is_empty());
            if !agrees && output != last {
                last = output;
                // Shown with the failure.
                let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("$ {command}\n{last}\n").as_bytes());
            }
            agrees.then_some(())
        });
    }
}

#[expect(clippy::print_stdout, reason = "how long it took is what it is run for")]
fn tell(journey: &str, commands: usize, began: Instant) {
    println!("{journey}: {commands} commands, {:.1} s", began.elapsed().as_secs_f64());
}

#[test]
fn the_readme_s_tour_says_what_comes_out() {
    if !["curl", "jq"].into_iter().all(installed) {
        return;
    }
    let began = Instant::now();
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let tour = page.split("\n## ").skip_while(|part| !part.starts_with("A tour")).collect::<Vec<_>>().join("\n## ");
    // Building is what `plugin_guide` and `make run` do; /etc is not the reader's here.
    let elsewhere = ["cargo build", "/etc/almanac", "make "];
    let commands: Vec<Typed> =
        typed(&tour).into_iter().filter(|typed| !elsewhere.iter().any(|part| typed.command.contains(part))).collect();
    assert!(commands.len() >= 12, "{commands:#?}");
    let reader = Reader::new();
    for typed in &commands {
        reader.check(typed);
    }
    tell("the README's tour", commands.len(), began);
}

/// From nothing, and from an OpenAPI description, to documents that are served.
#[test]
fn the_page_of_documents_leads_to_tools_that_are_found() {
    let began = Instant::now();
    let page = fs::read_to_string(root().join("docs/DOCUMENTS.md")).unwrap();
    let block = |part: &str| -> String {
        let mut blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
        blocks.find(|block| block.contains(part)).unwrap().to_owned()
    };
    let reader = Reader::new();
    let (output, is_well) = reader.output(&block("cat > tool_metadata/weather.yaml"));
    assert!(is_well && output.contains("0 errors"), "{output}");
    let description: PathBuf = reader.directory.path().join("api.yaml");
    fs::write(
        description,
        "openapi: 3.1.0\ninfo: {title: Pets, version: '1'}\npaths:\n  /pets:\n    get:\n      operationId: \
         listPets\n      \
         summary: List pets\n      description: Lists the pets of a shop, by name and kind.\n      responses: {'200': \
         {description: Pets.}}\n",
    )
    .unwrap();
    let import = block("import openapi");
    let import = import.lines().find(|line| line.contains("import openapi")).unwrap();
    assert!(reader.output(import).1, "{import}");
    for (name, question) in [("weather", "will it rain in Oslo"), ("listPets", "which pets has the shop")] {
        wait_until(name, || reader.daemon.get(&format!("/v1/tools/{name}")).status == 200);
        // The index of selection follows the catalog a moment later.
        let ask = format!("almanacd tools '{question}' --limit 3");
        wait_until(question, || reader.output(&ask).0.contains(name));
    }
    tell("documents", 3, began);
}

#[test]
fn pages_are_read_as_people_read_them() {
    let page = "x\n```console\n$ a \\\n  b\nsaid 1.5\n…\n$ c |\n```\n```sh\n$ no\n```\n```console\n$ d\n```\n";
    let read: Vec<(String, usize)> = typed(page).into_iter().map(|typed| (typed.command, typed.shown.len())).collect();
    assert_eq!(read, [("a \\\n  b".to_owned(), 2), ("c |".to_owned(), 0), ("d".to_owned(), 0)]);
    let check = |shown: &[&str], output: &str, expected: bool| {
        let shown: Vec<String> = shown.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(agrees(&shown, output), expected, "{shown:?} {output:?}");
    };
    check(&["p50 1191, high"], "p50 7.25, high\n", true);
    check(&["p50 1191, high"], "p50 7, low\n", false);
    check(&["200"], "404\n", false);
    check(&["{\"a\":1,…"], "{\"a\":22,\"b\":1}\n", true);
    check(&["a", "…"], "a\nb\nc\n", true);
    check(&["a"], "a\nb\n", false);
    check(&[], "anything\n", true);
}
