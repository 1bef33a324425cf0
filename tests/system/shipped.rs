//! The documents that ship are good ones.

use std::collections::BTreeSet;

use almanac::catalog::load::{Options, load};
use almanac::catalog::relations;

use crate::daemon::shipped;

#[test]
fn nothing_is_wrong_with_them() {
    let loaded = load(Options::directory(shipped()));
    assert_eq!(*loaded.diagnostics, []);
    assert!(loaded.catalog.len() >= 45);
}

#[test]
fn each_can_be_chosen_by() {
    let catalog = load(Options::directory(shipped())).catalog;
    let mut descriptions = BTreeSet::new();
    for entry in catalog.iter() {
        let tool = entry.document();
        let name = &tool.name;
        assert_eq!(entry.file().file_stem().unwrap().to_string_lossy(), *name, "a file is named after its tool");
        assert!(descriptions.insert(tool.description.clone()), "{name} repeats a description");
        assert!(tool.description.len() >= 80, "{name} says too little");
        assert!(tool.use_cases.len() >= 2, "{name} has too few use cases");
        for case in &tool.use_cases {
            assert!(!case.example.is_empty() && !case.not_for.is_empty(), "{name}: {}", case.title);
        }
        assert!(
            !tool.examples.is_empty() && !tool.common_errors.is_empty() && !tool.best_practices.is_empty(),
            "{name}"
        );
        assert!(tool.input_schema.is_some(), "{name} has no input schema");
    }
}

#[test]
fn each_reasoning_tool_leads_to_three_others() {
    let catalog = load(Options::directory(shipped())).catalog;
    let reasoning: Vec<_> = catalog.iter().filter(|entry| entry.name().starts_with("reasoning_")).collect();
    assert_eq!(reasoning.len(), 35);
    for entry in reasoning {
        let relations = relations::of(&catalog, entry);
        let next =
            relations.complements.iter().filter(|complement| !complement.incoming && !complement.tools.is_empty());
        assert!(next.count() >= 3, "{}", entry.name());
    }
}
