//! Is this set of tools a good one to load together?

use std::collections::BTreeSet;
use std::sync::Arc;

use super::document::{Alternative, Conflict, Prerequisite};
use super::relations::Servers;
use super::{Catalog, Entry};
use crate::text::near;

/// What speaks against a set of tools.
#[derive(Debug, Default, PartialEq)]
pub struct SetReview {
    /// Names that the catalog does not have, each with near ones.
    pub unknown: Vec<(String, Vec<String>)>,
    /// Conflicts inside the set, worst first, then by name.
    pub conflicts: Vec<Clash>,
    /// Prerequisites whose environment variables the caller does not have.
    pub missing: Vec<Missing>,
    /// Alternatives that the tools' own documents name, if the catalog has them and the set has not.
    pub alternatives: Vec<(Arc<str>, Alternative)>,
}

/// Two tools of the set in conflict; the conflict's preferences are seen from `tool`.
#[derive(Debug, PartialEq)]
pub struct Clash {
    /// The first of the two by name, or the one that declares it.
    pub tool: Arc<str>,
    pub other: Arc<str>,
    /// As declared by the first of the two that declares it.
    pub conflict: Conflict,
}

/// A prerequisite of which something is missing.
#[derive(Debug, PartialEq)]
pub struct Missing {
    /// The tool that needs it.
    pub tool: Arc<str>,
    /// The variables that are missing.
    pub env_vars: Vec<String>,
    /// The prerequisite as declared.
    pub prerequisite: Prerequisite,
}

/// Unknown names for which near ones are looked up; a caller with more is not mistyping.
const SUGGESTED: usize = 10;

/// Judges the set `tools` for a caller that has the environment variables `env_vars`. Names may repeat.
pub fn check(catalog: &Catalog, tools: &[String], env_vars: &[String]) -> SetReview {
    let names: BTreeSet<&str> = tools.iter().map(String::as_str).collect();
    let mut verdict = SetReview::default();
    let mut entries: Vec<&Arc<Entry>> = Vec::new();
    let servers = Servers::of(catalog);
    for name in &names {
        if let Some(entry) = catalog.get(name) {
            entries.push(entry);
        } else {
            let near = if verdict.unknown.len() < SUGGESTED { near_names(catalog, name) } else { Vec::new() };
            verdict.unknown.push(((*name).to_owned(), near));
        }
    }
    for entry in entries {
        let document = entry.document();
        for conflict in document.conflicts {
            for other in servers.resolve(catalog, &conflict.tool).into_iter().filter(|name| names.contains(&**name)) {
                if other != *entry.name() {
                    add(
                        &mut verdict.conflicts,
                        Clash { tool: Arc::clone(entry.name()), other, conflict: conflict.clone() },
                    );
                }
            }
        }
        for prerequisite in document.prerequisites {
            let missing: Vec<String> =
                prerequisite.env_vars.iter().filter(|name| !env_vars.contains(name)).cloned().collect();
            if !missing.is_empty() {
                verdict.missing.push(Missing { tool: Arc::clone(entry.name()), env_vars: missing, prerequisite });
            }
        }
        let offered = document.alternatives.into_iter().filter(|alternative| {
            !names.contains(alternative.tool.as_str()) && servers.knows(catalog, &alternative.tool)
        });
        verdict.alternatives.extend(offered.map(|alternative| (Arc::clone(entry.name()), alternative)));
    }
    verdict.conflicts.sort_by(|a, b| {
        b.conflict.severity().cmp(&a.conflict.severity()).then_with(|| (&a.tool, &a.other).cmp(&(&b.tool, &b.other)))
    });
    verdict
}

/// Up to three names of the catalog that `name` may have meant.
pub fn near_names(catalog: &Catalog, name: &str) -> Vec<String> {
    let names = catalog.iter().map(|entry| &**entry.name());
    near::nearest_few(name, names, 3).into_iter().map(str::to_owned).collect()
}

/// A conflict declared by both is one clash, as bad as the worse of the two says.
fn add(clashes: &mut Vec<Clash>, clash: Clash) {
    match clashes.iter_mut().find(|known| known.tool == clash.other && known.other == clash.tool) {
        Some(known) => known.conflict.severity = Some(known.conflict.severity().max(clash.conflict.severity())),
        None => clashes.push(clash),
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::ConflictSeverity;
    use super::super::load::{LoadOptions, load};
    use super::*;

    #[test]
    fn the_shipped_web_tools_do_not_go_together() {
        let catalog = load(LoadOptions::directory(concat!(env!("CARGO_MANIFEST_DIR"), "/tool_metadata"))).catalog;
        let tools = ["http_request", "web_search", "web_serach"].map(str::to_owned);
        let verdict = check(&catalog, &tools, &["TAVILY_API_KEY".to_owned()]);
        let near = vec!["web_search".to_owned(), "websearch".to_owned()];
        assert_eq!(verdict.unknown, [("web_serach".to_owned(), near)]);
        assert_eq!(verdict.conflicts.len(), 1);
        let clash = &verdict.conflicts[0];
        assert_eq!((&*clash.tool, &*clash.other), ("http_request", "web_search"));
        assert_eq!(clash.conflict.severity(), ConflictSeverity::High);
        let missing: Vec<&str> =
            verdict.missing.iter().flat_map(|missing| &missing.env_vars).map(String::as_str).collect();
        assert!(missing.contains(&"BRAVE_API_KEY") && !missing.contains(&"TAVILY_API_KEY"), "{missing:?}");
        assert!(verdict.alternatives.iter().all(|(_, alternative)| alternative.tool != "web_search"));
    }

    #[test]
    fn a_good_set_has_nothing_against_it() {
        let catalog = load(LoadOptions::directory(concat!(env!("CARGO_MANIFEST_DIR"), "/tool_metadata"))).catalog;
        let verdict = check(&catalog, &["file_read".to_owned(), "file_read".to_owned()], &[]);
        assert_eq!((verdict.unknown.len(), verdict.conflicts.len(), verdict.missing.len()), (0, 0, 0));
    }
}
