//! Is this sequence of tools a good one? Unknown tools, conflicts, steps that come before what they need, and other
//! tools that the documents themselves would rather have, with what these say of keys and limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Catalog;
use super::check::near_names;
use super::document::{Alternative, Conflict, Prerequisite, UseCase};
use super::price::{Price, PriceDifference};
use super::relations::Servers;
use crate::text::analysis;

/// A call of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedCall<'p> {
    pub tool: &'p str,
    pub mode: Option<&'p str>,
}

/// What speaks against a plan, by step (0-based).
#[derive(Debug, Default, PartialEq)]
pub struct Review {
    /// Steps that the catalog does not have, with near names.
    pub unknown: Vec<(usize, Vec<String>)>,
    /// Pairs of steps in conflict; the conflict's preferences are seen from the first.
    pub conflicts: Vec<(usize, usize, Conflict)>,
    /// Steps that need another tool which does not come before them.
    pub missing: Vec<(usize, Arc<str>)>,
    /// Tools that may serve better than a step's.
    pub instead: Vec<Instead>,
}

/// A tool that may serve better.
#[derive(Debug, PartialEq)]
pub struct Instead {
    pub step: usize,
    /// The tool that may serve better.
    pub tool: Arc<str>,
    pub when: String,
    pub benefits: String,
    /// What the step's own document says it is not for, if the goal reads like that.
    pub not_for: Option<String>,
    /// Is it documented to cost more or less?
    pub price: Option<PriceDifference>,
}

/// Reviews `steps` for a `goal`, which may be empty, after calls that were made `earlier`.
pub fn review(catalog: &Catalog, steps: &[PlannedCall<'_>], earlier: &[impl AsRef<str>], goal: &str) -> Review {
    let servers = Servers::of(catalog);
    let goal = terms(goal);
    let mut review = Review::default();
    for (number, step) in steps.iter().enumerate() {
        let Some(entry) = catalog.get(step.tool) else {
            review.unknown.push((number, near_names(catalog, step.tool)));
            continue;
        };
        let document = entry.document();
        let price = Price::of(&document);
        for conflict in document.conflicts {
            for other in servers.resolve(catalog, &conflict.tool) {
                let others = steps.iter().enumerate().filter(|(_, step)| *step.tool == *other);
                for (with, _) in others {
                    add_conflict(&mut review.conflicts, number, with, &conflict);
                }
            }
        }
        let comes_before = |needed: &str| {
            steps[..number].iter().any(|step| step.tool == needed) || earlier.iter().any(|call| call.as_ref() == needed)
        };
        for prerequisite in document.prerequisites.iter().filter(|needed| concerns(needed, step.mode)) {
            let named = if prerequisite.tool.is_empty() { &prerequisite.name } else { &prerequisite.tool };
            let needed = catalog.get(named).map(|entry| entry.name()).filter(|needed| **needed != *entry.name());
            review.missing.extend(needed.filter(|needed| !comes_before(needed)).map(|name| (number, Arc::clone(name))));
        }
        let not_for = unfit(&document.use_cases, &goal);
        for alternative in document.alternatives {
            let Some(tool) =
                catalog.get(&alternative.tool).filter(|tool| !steps.iter().any(|step| *step.tool == **tool.name()))
            else {
                continue;
            };
            let Alternative { when, benefits, .. } = alternative;
            let (other, tool) = (Price::of(&tool.document()), Arc::clone(tool.name()));
            let price = price.difference(&other, step.tool, &tool);
            review.instead.push(Instead { step: number, tool, when, benefits, not_for: not_for.clone(), price });
        }
    }
    review
}

/// Does a call in this mode need it?
fn concerns(prerequisite: &Prerequisite, mode: Option<&str>) -> bool {
    let of_modes = &prerequisite.required_for;
    of_modes.is_empty() || mode.is_some_and(|mode| of_modes.iter().any(|of| of == mode))
}

/// A conflict that both declare, or that holds between repeated steps, is said once for each pair.
fn add_conflict(conflicts: &mut Vec<(usize, usize, Conflict)>, step: usize, with: usize, conflict: &Conflict) {
    let is_known = conflicts.iter().any(|(a, b, _)| (*a, *b) == (step, with) || (*a, *b) == (with, step));
    if step != with && !is_known {
        conflicts.push((step, with, conflict.clone()));
    }
}

/// What the tool is not for, if the goal shares more words with it than with anything the tool is for.
fn unfit(cases: &[UseCase], goal: &BTreeSet<String>) -> Option<String> {
    let shared = |text: &str| terms(text).intersection(goal).count();
    let fits = cases.iter().map(|case| shared(&case.when_to_use).max(shared(&case.example))).max().unwrap_or(0);
    let worst = cases.iter().max_by_key(|case| shared(&case.not_for))?;
    (shared(&worst.not_for) > fits.max(1)).then(|| worst.not_for.clone())
}

fn terms(text: &str) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    analysis::terms(text, |term| {
        // Shorter words are mostly articles and prepositions.
        if term.len() > 3 {
            terms.insert(term.to_owned());
        }
    });
    terms
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Entry;
    use super::super::load::parse;
    use super::*;

    fn catalog() -> Catalog {
        let head = "title: t\ndescription: d\ncategory: c\ncapabilities: []\nkeywords: []\n";
        let documents = [
            "name: a\nuse_cases: [{title: t, when_to_use: reading files, not_for: searching the web for prices}]\n\
             conflicts: [{tool: b, reason: r, when_prefer_this: x, when_prefer_other: y}]\n\
             alternatives: [{tool: c, when: w}, {tool: gone, when: w}]",
            "name: b\nuse_cases: []\nconflicts: [{tool: a, reason: r, when_prefer_this: y, when_prefer_other: x}]",
            "name: c\nuse_cases: []\nprerequisites: [{name: b, how_to_get: call it first}, {name: A key, how_to_get: \
             h}]",
            "name: d\nuse_cases: []\nprerequisites: [{name: An id, tool: a, how_to_get: h}, {name: More, tool: c, \
             required_for: [deep], how_to_get: h}, {name: It, tool: d, how_to_get: h}]",
        ];
        let mut catalog = Catalog::default();
        for text in documents {
            let document = parse(Path::new("x"), format!("{head}{text}").as_bytes(), 10_000).unwrap();
            catalog.insert(Arc::new(Entry::new(&document, Path::new("x").into())));
        }
        catalog
    }

    fn of(steps: &[&'static str], goal: &str) -> Review {
        after(&[], steps, goal)
    }

    /// A step may have a mode, after a colon.
    fn after(earlier: &[&str], steps: &[&'static str], goal: &str) -> Review {
        let call = |step: &&'static str| {
            let (tool, mode) = step.split_once(':').map_or((*step, None), |(tool, mode)| (tool, Some(mode)));
            PlannedCall { tool, mode }
        };
        review(&catalog(), &steps.iter().map(call).collect::<Vec<_>>(), earlier, goal)
    }

    #[test]
    fn each_fault_is_found_at_its_step() {
        let review = of(&["a", "nope", "b"], "");
        assert_eq!(review.unknown, [(1, vec![])]);
        assert_eq!(review.conflicts.iter().map(|(a, b, _)| (*a, *b)).collect::<Vec<_>>(), [(0, 2)]);
        assert_eq!(review.instead.iter().map(|instead| (instead.step, &*instead.tool)).collect::<Vec<_>>(), [(0, "c")]);
    }

    #[test]
    fn what_is_needed_must_come_before() {
        assert_eq!(of(&["c", "b"], "").missing, [(0, "b".into())]);
        assert_eq!(of(&["b", "c"], "").missing, []);
        assert_eq!(after(&["b"], &["c"], "").missing, [], "the session called it");
        assert_eq!(of(&["d"], "").missing, [(0, "a".into())]);
        assert_eq!(of(&["a", "d:deep"], "").missing, [(1, "c".into())]);
        assert_eq!(of(&["a", "d:quick"], "").missing, []);
    }

    #[test]
    fn a_goal_that_a_tool_is_not_for_is_said() {
        let not_for = |goal: &str| of(&["a"], goal).instead[0].not_for.clone();
        assert_eq!(not_for("search the web for current prices").as_deref(), Some("searching the web for prices"));
        assert_eq!(not_for("read some files"), None);
        assert_eq!(not_for(""), None);
    }
}
