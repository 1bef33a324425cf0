//! Is this sequence of tools a good one? Unknown tools, conflicts, steps that come before what they need, and other
//! tools that the documents themselves would rather have.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::check::near_names;
use super::document::{Alternative, Conflict, UseCase};
use super::relations::Servers;
use super::{Catalog, Entry};
use crate::text::analysis;

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
}

/// Reviews `steps` for a `goal`, which may be empty.
pub fn review(catalog: &Catalog, steps: &[String], goal: &str) -> Review {
    let servers = Servers::of(catalog);
    let goal = terms(goal);
    let mut review = Review::default();
    for (number, step) in steps.iter().enumerate() {
        let Some(entry) = catalog.get(step) else {
            review.unknown.push((number, near_names(catalog, step)));
            continue;
        };
        let document = entry.document();
        for conflict in document.conflicts {
            for other in servers.resolve(catalog, &conflict.tool) {
                let others = steps.iter().enumerate().filter(|(_, name)| **name == *other);
                for (with, _) in others {
                    add_conflict(&mut review.conflicts, number, with, &conflict);
                }
            }
        }
        let needed = document.prerequisites.iter().filter_map(|prerequisite| catalog.get(&prerequisite.name));
        let comes_before = |needed: &&Arc<Entry>| steps[..number].iter().any(|name| **name == **needed.name());
        review
            .missing
            .extend(needed.filter(|needed| !comes_before(needed)).map(|needed| (number, Arc::clone(needed.name()))));
        let not_for = unfit(&document.use_cases, &goal);
        for alternative in document.alternatives {
            let Some(tool) =
                catalog.get(&alternative.tool).filter(|tool| !steps.iter().any(|name| **name == **tool.name()))
            else {
                continue;
            };
            let Alternative { when, benefits, .. } = alternative;
            let tool = Arc::clone(tool.name());
            review.instead.push(Instead { step: number, tool, when, benefits, not_for: not_for.clone() });
        }
    }
    review
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
        ];
        let mut catalog = Catalog::default();
        for text in documents {
            let document = parse(Path::new("x"), format!("{head}{text}").as_bytes(), 10_000).unwrap();
            catalog.insert(Arc::new(Entry::new(&document, Path::new("x").into())));
        }
        catalog
    }

    fn of(steps: &[&str], goal: &str) -> Review {
        review(&catalog(), &steps.iter().map(|&step| step.to_owned()).collect::<Vec<_>>(), goal)
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
    }

    #[test]
    fn a_goal_that_a_tool_is_not_for_is_said() {
        let not_for = |goal: &str| of(&["a"], goal).instead[0].not_for.clone();
        assert_eq!(not_for("search the web for current prices").as_deref(), Some("searching the web for prices"));
        assert_eq!(not_for("read some files"), None);
        assert_eq!(not_for(""), None);
    }
}
