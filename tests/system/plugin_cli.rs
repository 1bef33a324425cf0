//! `almanacd plugin` and `almanacd ctl plugin`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Site, almanacd, shipped, wait_until};
use crate::fixtures::{compile, hostile, reasoning};

/// Exit code, standard output and standard error.
fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn plugin(arguments: &[&str], file: &Path) -> (i32, String, String) {
    run(almanacd().arg("plugin").args(arguments).arg(file))
}

/// A copy of the shipped library where nobody else can write.
fn shipped_library(directory: &TempDir) -> PathBuf {
    let copy = directory.path().join("libalmanac_reasoning.so");
    fs::copy(reasoning(), &copy).unwrap();
    copy
}

#[test]
fn a_library_is_inspected_without_being_run() {
    let directory = tempfile::tempdir().unwrap();
    let library = hostile("segfault_constructor", directory.path());
    let (code, out, error) = plugin(&["inspect", "--json"], &library);
    assert_eq!(code, 0, "{error}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["id"], &report["version"], &report["abi"]),
        (&json!("test.hostile.segfault-constructor"), &json!("1.0.0"), &json!("1.0"))
    );
    let (code, _, error) = plugin(&["inspect"], &hostile("no_note", directory.path()));
    assert!(code == 1 && error.contains("no note of a rule library"), "{error}");
}

#[test]
fn a_good_library_passes_and_bad_ones_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let (code, out, error) = plugin(&["check", "--deadline", "2s"], &shipped_library(&directory));
    assert!(code == 0 && out.ends_with("dev.almanac.reasoning 0.1.0 passes\n"), "{out}{error}");
    assert!(out.contains("10000 calls") && out.contains("nothing leaked"), "{out}");
    let frozen = directory.path().join("frozen.so");
    compile("v1_0/plugin", &[], &frozen);
    assert_eq!(plugin(&["check", "--deadline", "2s"], &frozen).0, 0);
    let fails = |name: &str, defines: &[&str], part: &str| {
        let library = directory.path().join(format!("{name}.so"));
        compile(&format!("hostile/{name}"), defines, &library);
        let (code, out, error) = plugin(&["check"], &library);
        assert!(code == 1 && out.contains("FAULT") && out.contains(part), "{name}: {out}{error}");
    };
    fails("segfault_constructor", &[], "SIGSEGV");
    fails("create_fails", &[], "no configuration");
    fails("odd_reasons", &["TRIGGER=\"reasoning_linear\""], "control characters in a `reason`");
    fails("odd_reasons", &["TRIGGER=\"reasoning_linear\""], "its `reason` is empty, blank or no UTF-8");
    fails("nan_score", &["TRIGGER=\"reasoning_linear\""], "its `score` is no number");
    fails("invalid_utf8", &["TRIGGER=\"reasoning_linear\""], "no UTF-8");
    fails("endless_loop", &["TRIGGER=\"reasoning_linear\""], "did not answer within");
    fails("threads", &["TRIGGER=\"reasoning_linear\""], "it leaves threads behind");
}

#[test]
fn a_library_is_tried_out() {
    let directory = tempfile::tempdir().unwrap();
    let library = shipped_library(&directory);
    let context = r#"{"num_outputs": 4, "complexity": "complex"}"#;
    let file = directory.path().join("context.json");
    fs::write(&file, context).unwrap();
    for given in [context, file.to_str().unwrap()] {
        let mut command = almanacd();
        command.args(["plugin", "try", "--json", "--tool", "reasoning_divergent", "--context", given]);
        let (code, out, error) = run(command.arg("--tool-metadata").arg(shipped()).arg(&library));
        assert_eq!(code, 0, "{error}");
        let said: Value = serde_json::from_str(&out).unwrap();
        let tools: Vec<&str> =
            said["suggestions"].as_array().unwrap().iter().map(|item| item["tool"].as_str().unwrap()).collect();
        assert_eq!(tools, ["reasoning_checkpoint", "reasoning_decision", "reasoning_reflection"]);
    }
    let wrong = |arguments: &[&str], part: &str| {
        let (code, out, error) = plugin(&[&["try"], arguments].concat(), &library);
        assert!(code == 64 && out.is_empty() && error.contains(part), "{arguments:?}: {out}{error}");
    };
    wrong(&["--tool", "t", "--context", r#"{"num_output": 4}"#], "did you mean `num_outputs`?");
    wrong(&["--tool", "t", "--context", "num_outputs=4"], "--context is a JSON object or a file with one");
    wrong(&["--tool", "", "--context", "{}"], "--tool: ");
    wrong(&["--tool", "t", "--settings", "{"], "--settings is to be a JSON object");
    wrong(&["--tool", "t", "--settings", "[1]"], "--settings is to be a JSON object");
    assert_eq!(plugin(&["check", "--settings", "1"], &library).0, 64);
    assert_eq!(plugin(&["try", "--tool", "t", "--deadline", "soon"], &library).0, 64);
}

#[test]
fn a_library_is_checked_with_its_settings_and_one_that_is_always_late_soon() {
    let directory = tempfile::tempdir().unwrap();
    let needs = directory.path().join("needs_table.so");
    compile("needs_table", &[], &needs);
    let (code, out, error) = plugin(&["check", "--settings", r#"{"table": 1}"#], &needs);
    assert_eq!(code, 0, "{out}{error}");
    let (code, out, _) = plugin(&["check", "--deadline", "1us"], &shipped_library(&directory));
    assert!(code == 1 && out.contains("of 100 calls took longer than the 1µs that a host waits"), "{out}");
}

/// What an author is told of proposals that do not arrive.
#[test]
fn proposals_that_a_daemon_would_not_pass_on_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let tries = |library: &Path, more: &[&str]| {
        let (code, out, error) = plugin(&[&["try", "--tool", "trigger"], more].concat(), library);
        assert_eq!(code, 0, "{out}{error}");
        error
    };
    let told = tries(&hostile("nan_score", directory.path()), &[]);
    assert!(told.contains("a proposal was refused: its `score` is no number"), "{told}");
    let library = shipped_library(&directory);
    let tools = directory.path().join("tools");
    let more = ["--context", r#"{"num_outputs": 4}"#, "--tool-metadata", tools.to_str().unwrap()];
    let of_divergent = |more: &[&str]| plugin(&[&["try", "--tool", "reasoning_divergent"], more].concat(), &library);
    let (code, _, error) = of_divergent(&more);
    assert!(code == 0 && error.contains("tools"), "the directory is not there: {error}");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("a.yaml"), crate::daemon::document("reasoning_decision", "t")).unwrap();
    let (code, _, error) = of_divergent(&more);
    assert!(code == 0 && error.contains("would leave out `reasoning_checkpoint`"), "{error}");
    assert!(!error.contains("leave out `reasoning_decision`"), "{error}");
}

#[test]
fn files_that_are_no_libraries_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str, content: &[u8], part: &str| {
        let file = directory.path().join(name);
        fs::write(&file, content).unwrap();
        for command in [&["inspect"][..], &["check"], &["try", "--tool", "t"]] {
            let (code, _, error) = plugin(command, &file);
            assert!(code == 1 && error.contains(part), "{command:?} {name}: {error}");
        }
    };
    let good = fs::read(reasoning()).unwrap();
    // The machine stands at the 18th byte of an ELF header; 22 is s390x.
    let foreign = [&good[..18], &[22, 0], &good[20..]].concat();
    check("text.so", b"hello", "it has no ELF header");
    check("foreign.so", &foreign, "it is built for s390x, and this machine runs");
    check("half.so", &good[..8192], "it is cut off");
    let pipe = directory.path().join("pipe.so");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [&pipe, Path::new("/dev/zero")] {
        for command in [&["inspect"][..], &["check"], &["try", "--tool", "t"]] {
            let (code, _, error) = plugin(command, file);
            assert!(code == 1 && error.contains("is no regular file"), "{command:?} {file:?}: {error}");
        }
    }
    let library = shipped_library(&directory);
    let open = directory.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let (code, out, _) = plugin(&["inspect"], &library);
    assert!(code == 0 && !out.contains("would be refused"), "{out}");
    let exposed = open.join("x.so");
    fs::rename(&library, &exposed).unwrap();
    let (code, out, _) = plugin(&["inspect"], &exposed);
    assert!(code == 0 && out.contains("can be written by everybody") && out.contains("chmod go-w"), "{out}");
}

#[test]
fn a_new_project_builds_and_passes_its_own_check() {
    let directory = tempfile::tempdir().unwrap();
    let new = |name: &str, language: &str| {
        let mut command = almanacd();
        run(command.args(["plugin", "new", name, "--lang", language]).current_dir(directory.path()))
    };
    assert_eq!(new("c-rules", "c").0, 0);
    let project = directory.path().join("c-rules");
    let (code, _, error) = run(Command::new("make").env("CFLAGS", "-Werror").current_dir(&project));
    assert_eq!(code, 0, "{error}");
    let (code, out, error) = plugin(&["check"], &project.join("libc_rules.so"));
    assert_eq!(code, 0, "{out}{error}");

    assert_eq!(new("rust-rules", "rust").0, 0);
    let project = directory.path().join("rust-rules");
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
        run(command.args(arguments).args(["--offline", "--quiet"]).current_dir(&project))
    };
    for arguments in [&["test"][..], &["build"]] {
        let (code, out, error) = cargo(arguments);
        assert_eq!(code, 0, "{out}{error}");
    }
    let (code, out, error) = plugin(&["check"], &project.join("target/debug/librust_rules.so"));
    assert_eq!(code, 0, "{out}{error}");

    let (code, _, error) = new("c-rules", "c");
    assert!(code == 1 && error.contains("there already"), "{error}");
    assert_eq!(new("../x", "c").0, 64);
}

#[test]
fn the_administrator_lists_and_forgives() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let daemon = site.start();
    wait_until("the rule library", || daemon.get("/ready").status == 200);
    let ctl = |arguments: &[&str]| {
        let mut command = almanacd();
        run(command.args(["ctl", "plugin"]).args(arguments).arg("--socket").arg(&daemon.admin))
    };
    let (code, out, error) = ctl(&["list"]);
    assert!(code == 0 && out.starts_with("ready        test.hostile.counter 1.0.0, 0 calls"), "{out}{error}");
    assert_eq!(ctl(&["reset", "test.hostile.counter"]).0, 0);
    let (code, _, error) = ctl(&["reset", "test.hostile.count"]);
    assert!(code == 1 && error.contains("test.hostile.counter"), "{error}");
    hostile("create_null", &site.path("plugins"));
    wait_until("the bad one", || daemon.json("/v1/plugins")["total"] == 2);
    wait_until("its end", || daemon.json("/v1/plugins")["items"][1]["state"] == "quarantined");
    let (code, out, _) = ctl(&["list"]);
    assert!(code == 1 && out.contains("made no instance"), "{out}");
    assert_eq!(out.matches("sandbox: ").count(), 1, "of what runs alone: {out}");
}

#[test]
fn a_list_of_none_says_so() {
    let site = Site::new();
    let daemon = site.start();
    wait_until("the daemon", || daemon.get("/ready").status == 200);
    let (code, out, error) = run(almanacd().args(["ctl", "plugin", "list", "--socket"]).arg(&daemon.admin));
    assert!(code == 0 && out.is_empty() && error.contains("there are no rule libraries"), "{out}{error}");
}

#[test]
fn a_worker_is_not_started_by_hand() {
    let (code, _, error) = run(almanacd().arg("plugin-worker"));
    assert!(code == 64 && error.contains("how the daemon starts its own workers"), "{error}");
}
