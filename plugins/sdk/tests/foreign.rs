//! Libraries in C and C++, compiled by the machine's compilers, loaded, and driven like any other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(unsafe_code, reason = "loading a library is")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use almanac_plugin::testing::{Call, Driver, Failure, MOST_SUGGESTIONS, Suggestion, Tool};
use almanac_plugin::{Complexity, abi};
use libloading::Library;
use tempfile::TempDir;

/// The sources and headers of this repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A library that is loaded, and never unloaded: that is what the end of a process is for.
struct Loaded {
    library: std::mem::ManuallyDrop<Library>,
    _directory: TempDir,
}

impl Loaded {
    #[track_caller]
    fn build(command: &mut Command, directory: TempDir, file: &str) -> Self {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "no warnings");
        // SAFETY: sources of ours, whose constructors do nothing; the one that does otherwise is never built here.
        let library = unsafe { Library::new(directory.path().join(file)) }.unwrap();
        Self { library: std::mem::ManuallyDrop::new(library), _directory: directory }
    }

    /// One C file, with the header from `include`.
    fn c(source: &Path, include: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread"]);
        command.args(["-Wall", "-Wextra", "-pedantic", "-I"]).arg(include).arg("-o");
        command.arg(directory.path().join("library.so")).arg(source);
        Self::build(&mut command, directory, "library.so")
    }

    /// An example, by its own Makefile.
    fn example(name: &str, file: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(repository().join("plugins/examples").join(name)).unwrap() {
            let entry = entry.unwrap();
            if entry.path().extension().is_none_or(|extension| extension != "so") {
                fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
            }
        }
        let mut command = Command::new("make");
        command.arg("--silent").arg("-C").arg(directory.path()).args(["CFLAGS=-O1 -Werror", "CXXFLAGS=-O1 -Werror"]);
        // Flags of a `make` that runs the tests are not for this one.
        command.env_remove("MAKEFLAGS").env_remove("MFLAGS");
        command.arg(format!("HEADERS={}", repository().join("plugins/abi/include").display())).arg(file);
        Self::build(&mut command, directory, file)
    }

    fn hostile(name: &str) -> Self {
        let source = repository().join("tests/fixtures/plugins/hostile").join(name).with_extension("c");
        Self::c(&source, &repository().join("plugins/abi/include"))
    }

    fn entry(&self) -> Option<abi::EntryFn> {
        let name = abi::ENTRY_SYMBOL.to_bytes_with_nul();
        // SAFETY: the symbol has this type, by the header that declares it.
        unsafe { self.library.get::<abi::EntryFn>(name) }.ok().map(|symbol| *symbol)
    }

    fn driver(&self, config: &str) -> Result<Driver, Failure> {
        // SAFETY: the library stays loaded for ever.
        unsafe { Driver::from_entry(self.entry().unwrap(), config) }
    }
}

fn tool(name: &str, category: &str, capabilities: &[&str], keywords: &[&str]) -> Tool {
    let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    Tool { capabilities: owned(capabilities), keywords: owned(keywords), ..Tool::new(name, category) }
}

fn catalog() -> [Tool; 5] {
    [
        tool("web_search", "web", &["search", "fetch"], &["web", "news"]),
        tool("web_fetch", "web", &["fetch"], &["web", "page"]),
        tool("feed_read", "web", &["subscribe", "fetch"], &["news"]),
        tool("file_read", "files", &["fetch"], &["file"]),
        tool("web_form", "web", &["submit"], &[]),
    ]
}

#[track_caller]
fn check(suggested: &[Suggestion], expected: &[(&str, &str, f64)]) {
    assert_eq!(suggested.len(), expected.len(), "{suggested:?}");
    for (one, (tool, reason, score)) in suggested.iter().zip(expected) {
        assert_eq!((one.tool.as_str(), one.reason.as_str()), (*tool, *reason));
        assert!((one.score - score).abs() < 1e-9, "{one:?}");
    }
}

#[test]
fn the_c_example_shows_a_way_out() {
    let library = Loaded::example("c", "libalmanac_stuck.so");
    let mut driver = library.driver("{}").unwrap();
    let stuck = Call::after("web_fetch").history(&["web_search", "web_fetch", "web_fetch", "web_fetch"]);
    check(&driver.suggest(&stuck).unwrap(), &[]);
    for _ in 0..2 {
        driver.snapshot(1, &catalog()).unwrap();
    }
    let expected = [
        ("feed_read", "3 calls in a row: try another tool with fetch", 0.6),
        ("web_search", "3 calls in a row: try another tool with fetch", 0.5),
    ];
    check(&driver.suggest(&stuck).unwrap(), &expected);
    for history in [&["web_fetch", "web_fetch", "web_search", "web_fetch"][..], &["web_fetch", "web_fetch"], &[]] {
        check(&driver.suggest(&Call::after("web_fetch").history(history)).unwrap(), &[]);
    }
    check(&driver.suggest(&Call::after("unknown").history(&["unknown"; 9])).unwrap(), &[]);
    driver.snapshot(2, &[]).unwrap();
    check(&driver.suggest(&stuck).unwrap(), &[]);
}

/// Whether there is a C++ compiler. Its absence fails the test where counterparts are promised, as in the continuous
/// integration.
fn speaks_cpp() -> bool {
    let found = Command::new("g++").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "g++ is not installed");
    found
}

#[test]
fn the_cpp_example_reads_the_goal() {
    if !speaks_cpp() {
        return;
    }
    let library = Loaded::example("cpp", "libalmanac_goal.so");
    let mut driver = library.driver("{}").unwrap();
    driver.snapshot(1, &catalog()).unwrap();
    let expected =
        [("web_search", "The goal speaks of news and web", 0.4), ("feed_read", "The goal speaks of news", 0.2)];
    check(&driver.suggest(&Call::after("web_fetch").goal("Today's NEWS from the web, größer")).unwrap(), &expected);
    check(&driver.suggest(&Call::after("web_fetch").goal("")).unwrap(), &[]);
    check(&driver.suggest(&Call::after("web_fetch")).unwrap(), &[]);
}

#[test]
fn a_library_of_1_0_sees_all_there_was_in_1_0() {
    let frozen = repository().join("tests/fixtures/plugins/v1_0");
    let library = Loaded::c(&frozen.join("plugin.c"), &frozen);
    assert_eq!(library.driver(r#"{"fail": true}"#).unwrap_err().reason.unwrap(), "told to fail");
    let mut driver = library.driver("{}").unwrap();
    driver.snapshot(1, &catalog()).unwrap();
    let call = Call::after("web_fetch")
        .mode("deep")
        .complexity(Complexity::Complex)
        .outputs(4)
        .branches(true)
        .session("s-1")
        .history(&["a", "b"])
        .fact("key", "value");
    let expected = [
        ("feed_read", "tool web_fetch mode deep session s-1 goal ", 0.5),
        ("feed_read", "complexity 3 outputs 4 branches 1 history 2 b context 1 value", 0.5),
        ("feed_read", "tools 5 last web_search of web: search fetch web news", 0.5),
    ];
    check(&driver.suggest(&call).unwrap(), &expected);
    driver.cancel(true);
    assert_eq!(driver.suggest(&call).unwrap_err().code, abi::code::CANCELLED);
}

#[test]
fn hostile_libraries_behave_until_they_are_triggered() {
    let mut seen = 0;
    for entry in fs::read_dir(repository().join("tests/fixtures/plugins/hostile")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        // The first dies when it is loaded, the second keeps everybody waiting.
        if path.extension().is_none_or(|extension| extension != "c")
            || ["segfault_constructor", "create_slow"].contains(&name)
        {
            continue;
        }
        let library = Loaded::hostile(name);
        let expected = match name {
            "wrong_major" => {
                assert!(library.entry().is_none());
                continue;
            }
            "null_entry" | "small_descriptor" => Some("no descriptor, or one that is too small"),
            "small_vtable" => Some("no table, or one that is too small"),
            "create_fails" => Some("no configuration would ever please it"),
            "create_null" | "missing_functions" => Some(""),
            _ => None,
        };
        seen += 1;
        let behaved = library.driver("{}").and_then(|mut driver| {
            driver.snapshot(1, &catalog())?;
            check(&driver.suggest(&Call::after("feed_read"))?, &[("file_read", "behaves", 0.5)]);
            check(&driver.suggest(&Call::after("web_fetch"))?, &[("feed_read", "behaves", 0.5)]);
            Ok(())
        });
        let fault = behaved.err().map(|failure| failure.reason.unwrap_or_default());
        assert_eq!(fault.as_deref(), expected, "{name}");
    }
    assert!(seen > 30, "only {seen}");
}

#[test]
fn faults_that_a_sink_can_stop_are_stopped() {
    let many = vec![("feed_read", "one of a million", 0.5); MOST_SUGGESTIONS];
    for (name, expected) in [
        ("nan_score", &[("feed_read", "good", 0.5), ("feed_read", "infinite", 1.0)][..]),
        ("invalid_utf8", &[]),
        ("bad_suggestions", &[("feed_read", "good", 0.5)]),
        ("million_results", &many),
        ("counter", &[("feed_read", "1.0.0 created 1 calls 1", 0.5)]),
        ("flood_log", &[("feed_read", "behaves", 0.5)]),
    ] {
        let library = Loaded::hostile(name);
        let mut driver = library.driver("{}").unwrap();
        driver.snapshot(1, &catalog()).unwrap();
        check(&driver.suggest(&Call::after("trigger")).unwrap(), expected);
    }
}
