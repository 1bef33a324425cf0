//! The documents that ship are good ones.

use std::collections::BTreeSet;

use almanac::Engine;
use almanac::access::Grant;
use almanac::catalog::load::{LoadOptions, load};
use almanac::catalog::relations;
use almanac::engine::proposer::RuleAnswers;
use almanac::plugin_host::Ask;
use serde_json::json;

use crate::daemon::{ask, serve_shipped, shipped};

#[test]
fn nothing_is_wrong_with_them() {
    let loaded = load(LoadOptions::directory(shipped()));
    assert_eq!(*loaded.diagnostics, []);
    assert!(loaded.catalog.len() >= 45);
}

#[test]
fn each_can_be_chosen_by() {
    let catalog = load(LoadOptions::directory(shipped())).catalog;
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
    let catalog = load(LoadOptions::directory(shipped())).catalog;
    let reasoning: Vec<_> = catalog.iter().filter(|entry| entry.name().starts_with("reasoning_")).collect();
    assert_eq!(reasoning.len(), 35);
    for entry in reasoning {
        let relations = relations::of(&catalog, entry);
        let next =
            relations.complements.iter().filter(|complement| !complement.incoming && !complement.tools.is_empty());
        assert!(next.count() >= 3, "{}", entry.name());
    }
}

#[test]
fn each_reasoning_tool_is_followed_by_three_suggestions_without_any_rule() {
    let engine = Engine::new();
    engine.publish(&load(LoadOptions::directory(shipped())));
    let (generation, learnt) = (engine.generation(), engine.learnt());
    let tools = generation.catalog().iter().map(|entry| entry.name().to_string());
    for tool in tools.filter(|tool| tool.starts_with("reasoning_")) {
        let ask = Ask { tool, ..Ask::default() };
        let next = engine.suggest(&generation, &learnt, &Grant::anonymous(), &ask, RuleAnswers::default()).next_tools;
        assert!((3..=5).contains(&next.len()), "{}: {next:?}", ask.tool);
        for suggestion in &next {
            assert!(suggestion.tool != ask.tool && generation.tool(&suggestion.tool).is_some());
            assert!(suggestion.estimated_duration_ms > 0 && !suggestion.reason.is_empty());
        }
    }
}

/// The ranking of users leads to little else.
const FEW: [&str; 1] = ["getLeaderboard"];

#[test]
fn each_shipped_tool_is_followed_by_three_suggestions_before_anything_is_learnt() {
    let (_site, daemon) = serve_shipped();
    let tools = daemon.json("/v1/tools?limit=1000");
    let tools: Vec<&str> =
        tools["items"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools.len(), 210);
    let next_of =
        |tool: &str| ask(&daemon, "/v1/metadata", &json!({"tool_name": tool}))["suggestions"]["next_tools"].clone();
    let few: Vec<&str> = tools.into_iter().filter(|tool| next_of(tool).as_array().unwrap().len() < 3).collect();
    assert_eq!(few, FEW);
    let next = next_of("bridgeTokens");
    assert!(next.as_array().unwrap().iter().any(|next| next["tool"] == "getBridgeStatus"), "{next:#}");
}

#[test]
fn each_shipped_preset_can_be_run() {
    let engine = Engine::new();
    engine.publish(&load(LoadOptions::directory(shipped())));
    let generation = engine.generation();
    assert_eq!(generation.presets().len(), 11);
    let decision = generation.presets().get("decision_analysis").unwrap();
    assert_eq!(decision.name, "Complete Decision Analysis");
    assert_eq!(decision.tools, ["reasoning_divergent", "reasoning_decision", "reasoning_reflection"]);
    let preset_tool = generation.tool("reasoning_preset").unwrap().document();
    let schema = serde_json::to_value(preset_tool.input_schema).unwrap();
    for id in schema["properties"]["preset_id"]["enum"].as_array().unwrap() {
        assert!(generation.presets().get(id.as_str().unwrap()).is_some(), "{id}");
    }
}
