//! What docs/PLUGINS.md tells the author of a rule library to type, typed: from an empty directory to an answer that
//! changes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::daemon::{Daemon, almanacd, wait_until};

/// The blocks of commands of the guide's first part: for Rust, for C, and for a catalog.
fn blocks() -> Vec<String> {
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/PLUGINS.md")).unwrap();
    let part = guide.split("\n## ").find(|part| part.starts_with("From nothing to an answer")).unwrap();
    let blocks = part.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.collect()
}

/// Runs commands with the daemon's program in the `PATH`.
fn shell(script: &str, directory: &Path) {
    let programs = Path::new(env!("CARGO_BIN_EXE_almanacd")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(directory).env("PATH", path).env("CARGO_NET_OFFLINE", "true");
    let output = command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{script}\n{}{}", text(&output.stdout), text(&output.stderr));
}

fn check(commands: &str, source: &str, build: &str, library: &str) {
    let directory = tempfile::tempdir().unwrap();
    shell(commands, directory.path());
    let project = directory.path().join("my-rules");
    shell(&blocks()[2], &project);
    let mut command = almanacd();
    command.args(["serve", "--log-format", "json", "--plugins", library]).current_dir(&project);
    command.env("ALMANAC_LISTEN", "127.0.0.1:0").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let daemon = Daemon::start(command, project.join("state/admin.sock"));
    let reason = || {
        let body = json!({"tool_name": "web_search", "result_context": {"num_outputs": 3}});
        let answer = daemon.post("/v1/metadata", &body.to_string()).json();
        answer["suggestions"]["next_tools"][0]["reason"].as_str().unwrap_or_default().to_owned()
    };
    wait_until("the library's answer", || reason() == "There is more than one result to choose from");
    let path = project.join(source);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("There is more than one result to choose from", "Another reason")).unwrap();
    shell(build, &project);
    wait_until("the new library's answer", || reason() == "Another reason");
    daemon.log.wait_for("rule library replaced");
}

#[test]
fn the_guide_leads_from_nothing_to_an_answer() {
    let blocks = blocks();
    assert_eq!(blocks.len(), 3);
    check(&blocks[0], "src/lib.rs", "cargo build --release", "target/release/libmy_rules.so");
    check(&blocks[1], "rules.c", "make", "libmy_rules.so");
}

/// The files of the tutorial are those that `plugin new` writes, which the test above builds.
#[test]
fn the_tutorial_shows_what_the_command_writes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/RULES-TUTORIAL.md")).unwrap();
    for (language, file) in [("rust", "lib.rs"), ("c", "rules.c"), ("make", "Makefile.in")] {
        let text = fs::read_to_string(root.join("src/cli/plugin/template").join(file)).unwrap();
        let text = text.replace("{{name}}", "my-rules").replace("{{lib}}", "my_rules");
        assert!(page.contains(&format!("```{language}\n{text}```\n")), "docs/RULES-TUTORIAL.md has another {file}");
    }
}
