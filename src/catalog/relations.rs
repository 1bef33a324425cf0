//! What goes with what: conflicts, alternatives and complements, in both directions.
//!
//! A relation is declared by one document. The reverse direction is found by scanning the facets of the others, which
//! takes microseconds and needs no second index that could disagree with the documents.

use std::collections::HashMap;
use std::sync::Arc;

use super::document::{Alternative, Complement, Conflict, ConflictSeverity};
use super::entry::{Facet, FacetFilter};
use super::{Catalog, Entry, Severity, shipped};
use crate::strict::{Segment, Word};
use crate::text::near;

/// All relations of one tool, by kind, then by the other tool's name.
#[derive(Debug, Default, PartialEq)]
pub struct Relations {
    /// Tools that should not be used beside it.
    pub conflicts: Vec<Related<Conflict>>,
    /// Tools that serve some scenarios better.
    pub alternatives: Vec<Related<Alternative>>,
    /// Tools that work well with it.
    pub complements: Vec<Related<Complement>>,
}

/// One declared relation, seen from the tool that was asked about.
#[derive(Debug, PartialEq)]
pub struct Related<R> {
    /// The tool at the other end, or `mcp:server` where one was named.
    pub other: Arc<str>,
    /// Does the other tool's document declare it?
    pub incoming: bool,
    /// The tools that `other` stands for; empty if it is dangling.
    pub tools: Vec<Arc<str>>,
    /// The relation as declared; a conflict's preferences are turned round if incoming.
    pub relation: R,
}

/// The prefix of a relation's target that names all tools of an MCP server.
pub const SERVER: &str = "mcp:";

/// The tools of each MCP server, for questions that look up many targets.
#[derive(Debug)]
pub struct Servers<'c>(HashMap<&'c str, Vec<Arc<str>>>);

impl<'c> Servers<'c> {
    /// The servers that the catalog's tools name as backend.
    pub fn of(catalog: &'c Catalog) -> Self {
        let mut servers: HashMap<&str, Vec<Arc<str>>> = HashMap::new();
        for entry in catalog.iter() {
            for backend in entry.values(Facet::Backend).filter(|backend| backend.starts_with(SERVER)) {
                servers.entry(backend).or_default().push(Arc::clone(entry.name()));
            }
        }
        Self(servers)
    }

    /// The tools that a relation's target stands for: the tool of that name, or all tools whose backend is that server.
    pub fn resolve(&self, catalog: &Catalog, target: &str) -> Vec<Arc<str>> {
        match catalog.get(target) {
            Some(entry) => vec![Arc::clone(entry.name())],
            None => self.0.get(target).cloned().unwrap_or_default(),
        }
    }

    /// Does it stand for any?
    pub fn knows(&self, catalog: &Catalog, target: &str) -> bool {
        catalog.get(target).is_some() || self.0.contains_key(target)
    }
}

/// Everything the catalog says about `entry` and other tools.
pub fn of(catalog: &Catalog, entry: &Entry) -> Relations {
    let own = entry.document();
    let servers = Servers::of(catalog);
    let mut relations = Relations {
        conflicts: own
            .conflicts
            .into_iter()
            .map(|conflict| outgoing(catalog, &servers, conflict.tool.clone(), conflict))
            .collect(),
        alternatives: own
            .alternatives
            .into_iter()
            .map(|other| outgoing(catalog, &servers, other.tool.clone(), other))
            .collect(),
        complements: own
            .complements
            .into_iter()
            .map(|other| outgoing(catalog, &servers, other.tool.clone(), other))
            .collect(),
    };
    let names = names_of(entry);
    let wanted = |facet| names.iter().map(|name| FacetFilter::new(facet, name)).collect::<Vec<_>>();
    let facets = [wanted(Facet::Conflict), wanted(Facet::Alternative), wanted(Facet::Complement)];
    for other in catalog.iter().filter(|other| other.name() != entry.name()) {
        let [conflicts, alternatives, complements] =
            facets.each_ref().map(|any| any.iter().any(|wanted| other.has(wanted)));
        if !(conflicts || alternatives || complements) {
            continue;
        }
        let document = other.document();
        let is_meant = |target: &str| names.contains(&target);
        let declared = document.conflicts.into_iter().filter(|conflict| is_meant(&conflict.tool));
        relations.conflicts.extend(declared.map(|conflict| incoming(other, turn_round(conflict))));
        let declared = document.alternatives.into_iter().filter(|alternative| is_meant(&alternative.tool));
        relations.alternatives.extend(declared.map(|alternative| incoming(other, alternative)));
        let declared = document.complements.into_iter().filter(|complement| is_meant(&complement.tool));
        relations.complements.extend(declared.map(|complement| incoming(other, complement)));
    }
    relations.conflicts.sort_by(order);
    relations.alternatives.sort_by(order);
    relations.complements.sort_by(order);
    relations
}

/// What one tool's document says of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a kind of relations")]
pub enum RelationKind {
    Conflict,
    Alternative,
    Complement,
}

/// A relation of two tools of the catalog, as one of their documents declares it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelationEdge {
    /// Whose document says so.
    pub from: Arc<str>,
    pub to: Arc<str>,
    pub kind: RelationKind,
}

/// All relations between tools of the catalog, by the tool that declares them; at most `most`. Returns as well how many
/// there are in all. A relation to a server is one to each of its tools; what dangles is left out.
pub fn edges(catalog: &Catalog, most: usize) -> (Vec<RelationEdge>, usize) {
    const FACETS: [(Facet, RelationKind); 3] = [
        (Facet::Conflict, RelationKind::Conflict),
        (Facet::Alternative, RelationKind::Alternative),
        (Facet::Complement, RelationKind::Complement),
    ];
    let servers = Servers::of(catalog);
    let (mut edges, mut total) = (Vec::new(), 0);
    for entry in catalog.iter() {
        for (facet, kind) in FACETS {
            for target in entry.values(facet) {
                let tools = servers.resolve(catalog, target);
                let others = tools.into_iter().filter(|to| to != entry.name());
                for to in others {
                    total += 1;
                    if edges.len() < most {
                        edges.push(RelationEdge { from: Arc::clone(entry.name()), to, kind });
                    }
                }
            }
        }
    }
    (edges, total)
}

/// Names by which other documents may mean this tool: its own, and its server's.
pub(super) fn names_of(entry: &Entry) -> Vec<&str> {
    let server = entry.values(Facet::Backend).find(|backend| backend.starts_with(SERVER));
    std::iter::once(&**entry.name()).chain(server).collect()
}

fn order<R>(a: &Related<R>, b: &Related<R>) -> std::cmp::Ordering {
    (&a.other, a.incoming).cmp(&(&b.other, b.incoming))
}

fn outgoing<R>(catalog: &Catalog, servers: &Servers<'_>, target: String, relation: R) -> Related<R> {
    Related { tools: servers.resolve(catalog, &target), other: target.into(), incoming: false, relation }
}

fn incoming<R>(other: &Arc<Entry>, relation: R) -> Related<R> {
    let name = Arc::clone(other.name());
    Related { tools: vec![Arc::clone(&name)], other: name, incoming: true, relation }
}

fn turn_round(conflict: Conflict) -> Conflict {
    Conflict { when_prefer_this: conflict.when_prefer_other, when_prefer_other: conflict.when_prefer_this, ..conflict }
}

/// A relation that cannot mean what it says. The document is served all the same.
#[derive(Debug)]
pub struct RelationFinding<'c> {
    /// The tool whose document declares it.
    pub entry: &'c Arc<Entry>,
    /// The document's key: conflicts, alternatives or complements.
    pub list: &'static str,
    pub target: &'c str,
    pub code: &'static str,
    pub severity: Severity,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Relations that are dangling, one-sided, contradictory, or of a tool with itself. A target for which `is_expected` is
/// true is not called dangling.
pub fn findings(catalog: &Catalog, is_expected: impl Fn(&str) -> bool) -> Vec<RelationFinding<'_>> {
    let mut findings = Vec::new();
    let servers = Servers::of(catalog);
    let mut suggested = 0;
    for entry in catalog.iter() {
        for (facet, list) in LISTS {
            for target in entry.values(facet) {
                let severity = Severity::Warning;
                let finding =
                    |code, message| RelationFinding { entry, list, target, code, severity, message, hint: None };
                if target == &**entry.name() {
                    findings.push(finding("self-relation", "the tool names itself".to_owned()));
                } else if !servers.knows(catalog, target) && !is_expected(target) {
                    if shipped::ships(target) {
                        let message = format!("`{target}` ships with Almanac and is not in the catalog");
                        let severity = Severity::Hint;
                        findings.push(RelationFinding { severity, ..finding("dangling-relation", message) });
                        continue;
                    }
                    suggested += 1;
                    let names = catalog.iter().map(|other| &**other.name());
                    let near = if suggested > SUGGESTED { None } else { near::nearest(target, names) };
                    let hint = near.map(|name| format!("did you mean `{name}`?"));
                    let message = format!("`{target}` is not in the catalog");
                    findings.push(RelationFinding { hint, ..finding("dangling-relation", message) });
                }
            }
        }
        for target in entry.values(Facet::Conflict) {
            contradictions(catalog, entry, target, &mut findings);
        }
    }
    findings
}

/// Dangling relations for which a near name is looked for.
const SUGGESTED: usize = 100;

const LISTS: [(Facet, &str); 4] = [
    (Facet::Conflict, "conflicts"),
    (Facet::Alternative, "alternatives"),
    (Facet::Complement, "complements"),
    (Facet::Needed, "prerequisites"),
];

/// What is wrong with the conflict that `entry` declares with `target`.
fn contradictions<'c>(
    catalog: &'c Catalog,
    entry: &'c Arc<Entry>,
    target: &'c str,
    findings: &mut Vec<RelationFinding<'c>>,
) {
    let mut add = |code, message, hint| {
        let severity = Severity::Warning;
        findings.push(RelationFinding { entry, list: "conflicts", target, code, severity, message, hint });
    };
    if entry.has(&FacetFilter::new(Facet::Complement, target)) {
        add("contradictory-relation", format!("`{target}` is both a conflict and a complement"), None);
    }
    let name = entry.name();
    let Some(other) = catalog.get(target).filter(|other| other.name() != name) else { return };
    match (severity(entry, target), severity(other, name)) {
        (_, None) => {
            let hint = format!("declare the conflict with `{name}` in {}", other.file().display());
            add("one-sided-conflict", format!("the conflict with `{target}` is one-sided"), Some(hint));
        }
        // Said once, by the first of the two names.
        (Some(here), Some(there)) if here != there && name < other.name() => {
            let message = format!("the conflict with `{target}` is {here} here and {there} there");
            add("contradictory-relation", message, None);
        }
        _ => {}
    }
    if other.has(&FacetFilter::new(Facet::Complement, name)) {
        let message = format!("`{target}` is a conflict here and names `{name}` as a complement");
        add("contradictory-relation", message, None);
    }
}

impl RelationFinding<'_> {
    /// Where it stands in the document.
    pub fn path(&self) -> Vec<Segment> {
        let document = self.entry.document();
        let position = match self.list {
            "conflicts" => document.conflicts.iter().position(|conflict| conflict.tool == self.target),
            "alternatives" => document.alternatives.iter().position(|other| other.tool == self.target),
            "prerequisites" => document.prerequisites.iter().position(|needed| needed.tool == self.target),
            _ => document.complements.iter().position(|other| other.tool == self.target),
        };
        let list = Segment::Key(self.list.to_owned());
        match position {
            Some(position) => vec![list, Segment::Index(position), Segment::Key("tool".to_owned())],
            None => vec![list],
        }
    }
}

/// The severity of the conflict that `entry` declares with `target`.
fn severity(entry: &Entry, target: &str) -> Option<ConflictSeverity> {
    [ConflictSeverity::High, ConflictSeverity::Medium, ConflictSeverity::Low]
        .into_iter()
        .find(|&severity| entry.has(&FacetFilter::new(Facet::of_severity(severity), target)))
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
            let file = format!("{}.yaml", document.name);
            catalog.insert(Arc::new(Entry::new(&document, Path::new(&file).into())));
        }
        catalog
    }

    fn conflict(tool: &str, severity: &str) -> String {
        format!(
            "{{tool: '{tool}', reason: r, when_prefer_this: mine, when_prefer_other: theirs, severity: {severity}}}"
        )
    }

    fn check(documents: &[&str], expected: &[(&str, &str)]) {
        let catalog = catalog(documents);
        let findings = findings(&catalog, |target| target == "expected");
        let got: Vec<_> =
            findings.iter().map(|finding| (finding.entry.file().to_str().unwrap(), finding.code)).collect();
        assert_eq!(got, expected, "findings in {documents:#?}");
    }

    #[test]
    fn what_cannot_be_meant_is_found() {
        let both = |a: &str, b: &str| {
            [
                format!("name: a\nconflicts: [{}]", conflict("b", a)),
                format!("name: b\nconflicts: [{}]", conflict("a", b)),
            ]
        };
        let [a, b] = both("high", "high");
        check(&[&a, &b], &[]);
        let [a, b] = both("high", "low");
        check(&[&a, &b], &[("a.yaml", "contradictory-relation")]);
        check(&[&a, "name: b"], &[("a.yaml", "one-sided-conflict")]);
        check(&[&a], &[("a.yaml", "dangling-relation")]);
        check(&["name: a\nalternatives: [{tool: expected, when: w}]"], &[]);
        check(&["name: a\nalternatives: [{tool: a, when: w}]"], &[("a.yaml", "self-relation")]);
        let [a, b] = both("low", "low");
        let b = format!("{b}\ncomplements: [{{tool: a, scenario: s}}]");
        check(&[&a, &b], &[("a.yaml", "contradictory-relation"), ("b.yaml", "contradictory-relation")]);
        check(&["name: a\nprerequisites: [{name: n, tool: gone, how_to_get: h}]"], &[("a.yaml", "dangling-relation")]);
        check(&["name: a\ncomplements: [{tool: 'mcp:s', scenario: s}]"], &[("a.yaml", "dangling-relation")]);
        check(&["name: a\nprerequisites: [{name: n, tool: gone, how_to_get: h}]"], &[("a.yaml", "dangling-relation")]);
        check(&["name: a\ncomplements: [{tool: 'mcp:s', scenario: s}]", "name: b\nbackend: mcp:s"], &[]);
    }

    #[test]
    fn both_directions_are_seen() {
        let catalog = catalog(&[
            &format!("name: a\nbackend: mcp:s\nconflicts: [{}]", conflict("b", "high")),
            "name: b\ncomplements: [{tool: 'mcp:s', scenario: s}]\nalternatives: [{tool: gone, when: w}]",
        ]);
        let b = of(&catalog, catalog.get("b").unwrap());
        assert_eq!(b.conflicts.len(), 1);
        assert!(b.conflicts[0].incoming);
        assert_eq!(b.conflicts[0].relation.when_prefer_this, "theirs");
        assert_eq!(b.complements[0].tools, ["a".into()]);
        assert!(b.alternatives[0].tools.is_empty());
        let a = of(&catalog, catalog.get("a").unwrap());
        assert!(!a.conflicts[0].incoming && a.complements[0].incoming);
        assert_eq!(&*a.complements[0].other, "b");
    }
}
