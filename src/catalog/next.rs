//! What the documents say about what may come next: complements in favour, high conflicts against.
//!
//! Asked for with each answer, so unlike [`relations`](super::relations) it looks at the documents that it is about and
//! at no others.

use std::sync::Arc;

use super::entry::{Facet, FacetFilter};
use super::relations::{SERVER, Servers, names_of};
use super::{Catalog, Entry};

/// Tools that the tool's own document names as complements, each with the scenario, in the document's order.
pub fn complements(catalog: &Catalog, tool: &str) -> Vec<(String, String)> {
    let Some(entry) = catalog.get(tool) else { return Vec::new() };
    let named = entry.complements();
    // The servers are seldom needed, and to find them all documents are looked at.
    let servers = named.iter().any(|other| other.tool.starts_with(SERVER)).then(|| Servers::of(catalog));
    let resolve = |target: &str| match &servers {
        Some(servers) => servers.resolve(catalog, target),
        None => catalog.get(target).map(|entry| Arc::clone(entry.name())).into_iter().collect(),
    };
    named
        .iter()
        .flat_map(|other| resolve(&other.tool).into_iter().map(move |tool| (tool.to_string(), other.scenario.clone())))
        .collect()
}

/// Tools that other documents lead to from this one, each with why: those that need it to be called before them, then
/// those that name it as a complement; by their names.
pub fn led_to(catalog: &Catalog, tool: &str) -> Vec<(String, String)> {
    let Some(entry) = catalog.get(tool) else { return Vec::new() };
    let names = names_of(entry);
    let wanted = |facet| names.iter().map(|name| FacetFilter::new(facet, name)).collect::<Vec<_>>();
    let (needed, complement) = (wanted(Facet::Needed), wanted(Facet::Complement));
    let (mut after, mut beside) = (Vec::new(), Vec::new());
    for other in catalog.iter().filter(|other| other.name() != entry.name()) {
        let has = |any: &[FacetFilter]| any.iter().any(|wanted| other.has(wanted));
        if has(&needed) {
            let document = other.document();
            let named = document.prerequisites.into_iter().find(|prerequisite| prerequisite.tool == tool);
            let what = named.map_or_else(String::new, |prerequisite| format!(": {}", prerequisite.name));
            after.push((other.name().to_string(), format!("needs {tool} before it{what}")));
        } else if has(&complement) {
            let document = other.document();
            let named = document.complements.into_iter().find(|complement| names.contains(&complement.tool.as_str()));
            let why = named.map_or_else(String::new, |complement| format!(": {}", complement.scenario));
            beside.push((other.name().to_string(), format!("documented to go with {tool}{why}")));
        }
    }
    after.sort();
    beside.sort();
    after.extend(beside);
    after
}

/// Tools that others may be in high conflict with, prepared to be asked about many.
#[derive(Debug)]
pub struct Clashes<'c>(Vec<&'c Entry>);

impl<'c> Clashes<'c> {
    /// With these tools; what is not in the catalog is in conflict with nothing.
    pub fn with<'t>(catalog: &'c Catalog, tools: impl IntoIterator<Item = &'t str>) -> Self {
        Self(tools.into_iter().filter_map(|tool| catalog.get(tool)).map(|entry| &**entry).collect())
    }

    /// Is this tool in high conflict with any of them, whichever document says so?
    pub fn any(&self, tool: &Entry) -> bool {
        self.0.iter().any(|other| clash(tool, other))
    }
}

/// Is one of the two in high conflict with the other, whichever document says so?
pub fn clash(a: &Entry, b: &Entry) -> bool {
    (a.has_high_conflicts() || b.has_high_conflicts()) && a.name() != b.name() && (declares(a, b) || declares(b, a))
}

fn declares(entry: &Entry, other: &Entry) -> bool {
    entry.has_high_conflicts() && {
        let names = names_of(other);
        entry.values(Facet::HighConflict).any(|target| names.contains(&target))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::document::ToolMetadata;
    use super::*;

    fn catalog(documents: &[&str]) -> Catalog {
        let mut catalog = Catalog::default();
        for text in documents {
            let head = "title: t\ndescription: d\ncategory: c\ncapabilities: []\nkeywords: []\nuse_cases: []\n";
            let text = format!("{head}{text}");
            let document: ToolMetadata = super::super::load::parse(Path::new("x"), text.as_bytes(), 10_000).unwrap();
            catalog.insert(Arc::new(Entry::new(&document, Path::new("x").into())));
        }
        catalog
    }

    #[test]
    fn complements_are_those_that_exist() {
        let catalog = catalog(&[
            "name: a\ncomplements: [{tool: b, scenario: one}, {tool: gone, scenario: two}, {tool: 'mcp:s', scenario: \
             all}]",
            "name: b",
            "name: c\nbackend: mcp:s",
            "name: d\nbackend: mcp:s",
        ]);
        let found = complements(&catalog, "a");
        let found: Vec<(&str, &str)> = found.iter().map(|(tool, why)| (tool.as_str(), why.as_str())).collect();
        assert_eq!(found, [("b", "one"), ("c", "all"), ("d", "all")]);
        assert!(complements(&catalog, "b").is_empty() && complements(&catalog, "gone").is_empty());
    }

    #[test]
    fn others_lead_to_a_tool_as_well() {
        let catalog = catalog(&[
            "name: a\ncomplements: [{tool: b, scenario: s}]",
            "name: b",
            "name: c\ncomplements: [{tool: a, scenario: one}]",
            "name: d\nprerequisites: [{name: An id, tool: a, how_to_get: h}]\ncomplements: [{tool: a, scenario: two}]",
        ]);
        let found = led_to(&catalog, "a");
        let found: Vec<(&str, &str)> = found.iter().map(|(tool, why)| (tool.as_str(), why.as_str())).collect();
        assert_eq!(found, [("d", "needs a before it: An id"), ("c", "documented to go with a: one")]);
        assert_eq!(led_to(&catalog, "b").len(), 1);
        assert!(led_to(&catalog, "d").is_empty() && led_to(&catalog, "gone").is_empty());
    }

    #[test]
    fn only_high_conflicts_clash_in_either_direction() {
        let conflict = |tool: &str, severity: &str| {
            format!(
                "conflicts: [{{tool: '{tool}', reason: r, when_prefer_this: x, when_prefer_other: y, severity: \
                 {severity}}}]"
            )
        };
        let (high, medium, server) = (conflict("b", "high"), conflict("c", "medium"), conflict("mcp:s", "high"));
        let catalog = catalog(&[
            &format!("name: a\n{high}"),
            &format!("name: b\n{medium}"),
            "name: c",
            &format!("name: d\n{server}"),
            "name: e\nbackend: mcp:s",
        ]);
        let any = |tools: [&str; 2], tool: &str| Clashes::with(&catalog, tools).any(catalog.get(tool).unwrap());
        let check = |a: &str, b: &str, expected: bool| {
            assert_eq!(any(["gone", a], b), expected, "{a} and {b}");
            assert_eq!(any([b, "c"], a), expected, "{b} and {a}");
        };
        check("a", "b", true);
        check("b", "c", false);
        check("d", "e", true);
        check("e", "e", false);
    }
}
