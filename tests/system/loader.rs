//! The library's loader, as a program without the daemon uses it.

use std::fs;

use almanac::catalog::{Loader, LoaderError};
use tempfile::TempDir;

use crate::daemon::{document, shipped, wait_until};

#[test]
fn the_usage_example_of_the_format_works() {
    let loader = Loader::new(shipped());
    let tool = loader.load("web_search").unwrap().unwrap();
    assert_eq!((tool.name.as_str(), tool.category.as_str()), ("web_search", "web"));
    assert!(tool.use_cases.iter().all(|case| !case.title.is_empty()));
    let again = loader.load("web_search").unwrap().unwrap();
    assert!(std::sync::Arc::ptr_eq(&tool, &again), "a second load is the first one's result");
}

#[test]
fn a_missing_tool_is_none_until_it_is_written() {
    let directory = TempDir::new().unwrap();
    let loader = Loader::new(directory.path());
    assert!(loader.load("late").unwrap().is_none());
    fs::write(directory.path().join("late.yaml"), document("late", "t")).unwrap();
    wait_until("the tool to be there", || loader.load("late").unwrap().is_some());
    fs::write(directory.path().join("late.yaml"), document("late", "edited")).unwrap();
    wait_until("the edit", || loader.load("late").unwrap().unwrap().title == "edited");
    fs::remove_file(directory.path().join("late.yaml")).unwrap();
    wait_until("the tool to be gone", || loader.load("late").unwrap().is_none());
}

#[test]
fn a_faulty_document_is_an_error_and_a_path_is_no_name() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("tools")).unwrap();
    fs::write(directory.path().join("outside.yaml"), document("outside", "t")).unwrap();
    fs::write(directory.path().join("tools/bad.yaml"), "name: bad\ntitle: [\n").unwrap();
    fs::write(directory.path().join("tools/good.yml"), document("good", "t")).unwrap();
    let loader = Loader::new(directory.path().join("tools"));
    let error = loader.load("bad").unwrap_err();
    assert!(matches!(&error, LoaderError::Faulty(faults) if faults[0].line > 0), "{error}");
    assert!(loader.load("../outside").unwrap().is_none());
    let (tools, diagnostics) = loader.load_all();
    assert_eq!(tools.keys().collect::<Vec<_>>(), ["good"]);
    assert_eq!(diagnostics.len(), 1);
}

#[test]
fn a_missing_directory_is_empty_and_said() {
    let directory = TempDir::new().unwrap();
    let loader = Loader::new(directory.path().join("none"));
    let (tools, diagnostics) = loader.load_all();
    assert!(tools.is_empty());
    assert_eq!(diagnostics[0].code, "unreadable");
}

#[test]
fn many_threads_may_load_at_once() {
    let loader = Loader::new(shipped());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert!(loader.load("http_request").unwrap().is_some());
                    assert!(loader.load("nothing").unwrap().is_none());
                }
            });
        }
    });
}
