//! Every rule, through the functions that the daemon calls.

use std::collections::BTreeSet;

use almanac_plugin::Complexity;
use almanac_plugin::testing::{Call, Driver};

use super::Reasoning;
use super::rules::RULES;

fn suggested(call: &Call) -> Vec<(String, String)> {
    let suggested = Driver::new::<Reasoning>("{}").and_then(|mut driver| driver.suggest(call)).unwrap();
    assert!(suggested.is_sorted_by(|a, b| a.score > b.score), "the order shows in the scores");
    suggested.into_iter().map(|one| (one.tool, one.reason)).collect()
}

/// The short names of what is suggested, in order.
#[track_caller]
fn check(call: &Call, expected: &[&str]) {
    let tools: Vec<_> = suggested(call).into_iter().map(|(tool, _)| tool).collect();
    let expected: Vec<_> = expected.iter().map(|name| format!("reasoning_{name}")).collect();
    assert_eq!(tools, expected, "after {call:?}");
}

fn after(name: &str) -> Call {
    Call::after(&format!("reasoning_{name}"))
}

#[test]
fn what_holds_when_nothing_is_known() {
    for (name, expected) in [
        ("divergent", &["checkpoint"][..]),
        ("tree", &["checkpoint"]),
        ("linear", &["divergent", "evidence"]),
        ("decision", &["checkpoint", "reflection"]),
        ("graph", &["checkpoint"]),
        ("reflection", &["checkpoint"]),
        ("mcts", &["decision"]),
        ("evidence", &["decision", "reflection"]),
        ("auto", &["checkpoint", "reflection"]),
        ("meta", &["auto"]),
        ("confidence_route", &["checkpoint", "reflection"]),
        ("detect", &["linear"]),
        ("timeline", &["decision", "checkpoint"]),
        ("counterfactual", &["decision", "evidence"]),
        ("checkpoint", &["linear"]),
        ("preset", &["checkpoint"]),
        ("metrics", &[]),
        ("", &[]),
    ] {
        check(&after(name), expected);
    }
    check(&Call::after("divergent"), &[]);
    check(&Call::after("reasoning_divergent2"), &[]);
}

#[test]
fn what_outputs_branches_and_sessions_change() {
    for (call, expected) in [
        (after("divergent").outputs(2), &["checkpoint"][..]),
        (after("divergent").outputs(3), &["checkpoint", "decision"]),
        (after("graph").outputs(5), &["checkpoint"]),
        (after("graph").outputs(6), &["decision", "checkpoint"]),
        (after("detect").outputs(0), &["linear"]),
        (after("detect").outputs(1), &["reflection", "linear"]),
        (after("tree").branches(false), &["checkpoint"]),
        (after("tree").branches(true), &["decision", "checkpoint"]),
        (after("mcts").session("s"), &["decision", "checkpoint"]),
        (after("mcts").session(""), &["decision", "checkpoint"]),
        (after("reflection").outputs(9).branches(true).session("s"), &["checkpoint"]),
    ] {
        check(&call, expected);
    }
}

#[test]
fn what_complexity_changes() {
    use Complexity::{Complex, Moderate, Simple};
    for (name, degree, expected) in [
        ("divergent", Simple, &["checkpoint"][..]),
        ("divergent", Moderate, &["checkpoint"]),
        ("divergent", Complex, &["checkpoint", "reflection"]),
        ("linear", Simple, &["evidence"]),
        ("linear", Moderate, &["divergent", "evidence"]),
        ("linear", Complex, &["divergent", "evidence"]),
        ("confidence_route", Simple, &["checkpoint"]),
        ("confidence_route", Moderate, &["checkpoint", "reflection"]),
        ("confidence_route", Complex, &["checkpoint", "reflection"]),
        ("preset", Simple, &["checkpoint"]),
        ("preset", Moderate, &["checkpoint"]),
        ("preset", Complex, &["reflection"]),
    ] {
        check(&after(name).complexity(degree), expected);
    }
}

#[test]
fn four_perspectives_of_a_complex_analysis() {
    let call = after("divergent").outputs(4).complexity(Complexity::Complex).session("test");
    let expected = [
        ("reasoning_checkpoint", "Save this multi-perspective analysis before continuing"),
        ("reasoning_decision", "Synthesize 4 perspectives into decision options"),
        ("reasoning_reflection", "Evaluate and refine this analysis"),
    ];
    assert_eq!(suggested(&call), expected.map(|(tool, reason)| (tool.to_owned(), reason.to_owned())));
}

#[test]
fn every_rule_holds_at_some_time_and_has_a_reason_of_its_own() {
    let tools: BTreeSet<_> = RULES.iter().map(|rule| rule.after).collect();
    let mut reasons = BTreeSet::new();
    for tool in tools {
        for degree in [Complexity::Simple, Complexity::Complex] {
            let call = Call::after(tool).outputs(7).branches(true).session("s").complexity(degree);
            reasons.extend(suggested(&call).into_iter().map(|(_, reason)| reason));
        }
    }
    assert_eq!(reasons.len(), RULES.len());
    for reason in reasons {
        assert!(reason.len() > 20 && !reason.contains("{}") && !reason.ends_with('.'), "{reason}");
    }
}
