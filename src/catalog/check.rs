//! Is this set of tools a good one to load together?

use std::collections::BTreeSet;
use std::sync::Arc;

use super::document::{Alternative, Conflict, Prerequisite, ToolMetadata};
use super::entry::{Facet, FacetFilter};
use super::relations::{SERVER, Servers};
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
    /// The provider, if tools of the set have several and nobody knows that one; with near names.
    pub unknown_provider: Option<(String, Vec<String>)>,
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
    /// Does the tool work without: by another provider, in another mode, or with less?
    pub is_optional: bool,
}

/// Unknown names for which near ones are looked up; a caller with more is not mistyping.
const SUGGESTED: usize = 10;

/// Judges the set `tools` for a caller that has the environment variables `env_vars`, and calls the tools by `provider`
/// where they have several. Names may repeat; `mcp:server` stands for all tools of that server.
pub fn check(catalog: &Catalog, tools: &[String], env_vars: &[String], provider: Option<&str>) -> SetReview {
    let servers = Servers::of(catalog);
    let given: BTreeSet<&str> = tools.iter().map(String::as_str).collect();
    let of_servers: Vec<Arc<str>> =
        given.iter().filter(|name| name.starts_with(SERVER)).flat_map(|name| servers.resolve(catalog, name)).collect();
    let names: BTreeSet<&str> = given.iter().copied().chain(of_servers.iter().map(|name| &**name)).collect();
    let mut verdict = SetReview::default();
    let mut entries: Vec<&Arc<Entry>> = Vec::new();
    for name in &names {
        if let Some(entry) = catalog.get(name) {
            entries.push(entry);
        } else if name.starts_with(SERVER) && (servers.knows(catalog, name) || is_named(catalog, name)) {
            // Tools of it may have no documents; what others say of it holds all the same.
        } else {
            let near = if verdict.unknown.len() < SUGGESTED { near_names(catalog, name) } else { Vec::new() };
            verdict.unknown.push(((*name).to_owned(), near));
        }
    }
    let mut ways: BTreeSet<String> = BTreeSet::new();
    for entry in entries {
        let document = entry.document();
        ways.extend(document.providers.iter().cloned());
        ways.extend(document.prerequisites.iter().flat_map(|needed| &needed.required_for).cloned());
        verdict.missing.extend(missing(entry.name(), &document, env_vars, provider));
        for conflict in document.conflicts {
            let meant = match given.get(conflict.tool.as_str()) {
                Some(server) if server.starts_with(SERVER) => vec![Arc::from(*server)],
                _ => servers.resolve(catalog, &conflict.tool),
            };
            for other in meant.into_iter().filter(|name| names.contains(&**name)) {
                if other != *entry.name() {
                    add(
                        &mut verdict.conflicts,
                        Clash { tool: Arc::clone(entry.name()), other, conflict: conflict.clone() },
                    );
                }
            }
        }
        let offered = document.alternatives.into_iter().filter(|alternative| {
            !names.contains(alternative.tool.as_str()) && servers.knows(catalog, &alternative.tool)
        });
        verdict.alternatives.extend(offered.map(|alternative| (Arc::clone(entry.name()), alternative)));
    }
    verdict.unknown_provider = provider.and_then(|provider| unknown_provider(catalog, &ways, provider));
    verdict.conflicts.sort_by(|a, b| {
        b.conflict.severity().cmp(&a.conflict.severity()).then_with(|| (&a.tool, &a.other).cmp(&(&b.tool, &b.other)))
    });
    verdict
}

/// The provider, with those of `ways` that may have been meant, if it is none of these (the set's providers and modes)
/// nor of any other tool: one of those says nothing of the set, one that nobody has is mistyped.
fn unknown_provider(catalog: &Catalog, ways: &BTreeSet<String>, provider: &str) -> Option<(String, Vec<String>)> {
    let as_written = FacetFilter::new(Facet::Provider, provider);
    let is_spelt_otherwise = || ways.iter().any(|way| way.eq_ignore_ascii_case(provider));
    let is_elsewhere = || !is_spelt_otherwise() && catalog.iter().any(|entry| entry.has(&as_written));
    if ways.is_empty() || ways.contains(provider) || is_elsewhere() {
        return None;
    }
    let near = near::nearest_few(provider, ways.iter().map(String::as_str), 3);
    Some((provider.to_owned(), near.into_iter().map(str::to_owned).collect()))
}

/// Does a document name this server?
fn is_named(catalog: &Catalog, server: &str) -> bool {
    let wanted = [Facet::Conflict, Facet::Alternative, Facet::Complement].map(|facet| FacetFilter::new(facet, server));
    catalog.iter().any(|entry| wanted.iter().any(|wanted| entry.has(wanted)))
}

/// The prerequisites of a tool that are not there. Of a tool that has several providers, one is enough.
fn missing(tool: &Arc<str>, document: &ToolMetadata, env_vars: &[String], provider: Option<&str>) -> Vec<Missing> {
    let absent = |needed: &Prerequisite| -> Vec<String> {
        needed.env_vars.iter().filter(|name| !env_vars.contains(name)).cloned().collect()
    };
    let is_for = |needed: &Prerequisite, provider: &str| needed.required_for.iter().any(|known| known == provider);
    let all = &document.prerequisites;
    // A provider that the tool does not have says nothing of it.
    let provider = provider.filter(|provider| {
        document.providers.iter().any(|known| known == provider) || all.iter().any(|needed| is_for(needed, provider))
    });
    let can_do = |provider: &String| {
        all.iter().filter(|needed| is_for(needed, provider)).all(|needed| absent(needed).is_empty())
    };
    let is_optional = |needed: &Prerequisite| match provider {
        Some(provider) if is_for(needed, provider) => false,
        _ if !needed.fallback.is_empty() => true,
        _ if needed.required_for.is_empty() => false,
        // What it is needed for is a mode, if it is no provider: others do without.
        _ => {
            !needed.required_for.iter().any(|of| document.providers.contains(of))
                || document.providers.iter().any(can_do)
        }
    };
    let concerns = |needed: &&Prerequisite| {
        provider.is_none_or(|provider| needed.required_for.is_empty() || is_for(needed, provider))
    };
    let of = |needed: &Prerequisite| Missing {
        tool: Arc::clone(tool),
        env_vars: absent(needed),
        is_optional: is_optional(needed),
        prerequisite: needed.clone(),
    };
    all.iter().filter(concerns).map(of).filter(|missing| !missing.env_vars.is_empty()).collect()
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
        let verdict = check(&catalog, &tools, &["TAVILY_API_KEY".to_owned()], None);
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
        let verdict = check(&catalog, &["file_read".to_owned(), "file_read".to_owned()], &[], None);
        assert_eq!((verdict.unknown.len(), verdict.conflicts.len(), verdict.missing.len()), (0, 0, 0));
    }

    fn catalog(documents: &[&str]) -> Arc<Catalog> {
        let directory = tempfile::tempdir().unwrap();
        for (number, text) in documents.iter().enumerate() {
            let head = "title: t\ndescription: d\ncategory: c\ncapabilities: []\nkeywords: []\nuse_cases: []\n";
            std::fs::write(directory.path().join(format!("{number}.yaml")), format!("{head}{text}")).unwrap();
        }
        load(LoadOptions::directory(directory.path())).catalog
    }

    #[test]
    fn a_server_in_the_set_finds_its_conflicts() {
        let conflict = |with: &str| {
            format!("conflicts: [{{tool: '{with}', reason: r, when_prefer_this: x, when_prefer_other: y}}]")
        };
        let catalog = catalog(&[
            &format!("name: git\n{}", conflict("mcp:github")),
            "name: issue\nbackend: mcp:github",
            &format!("name: pull\nbackend: mcp:github\n{}", conflict("lint")),
            "name: lint",
            &format!("name: chat\n{}", conflict("mcp:slack")),
        ]);
        let check = |tools: &[&str], expected: &[(&str, &str)], unknown: &[&str]| {
            let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
            let verdict = check(&catalog, &tools, &[], None);
            let found: Vec<(&str, &str)> =
                verdict.conflicts.iter().map(|clash| (&*clash.tool, &*clash.other)).collect();
            assert_eq!(found, expected, "{tools:?}");
            assert_eq!(verdict.unknown.iter().map(|(name, _)| name).collect::<Vec<_>>(), unknown, "{tools:?}");
        };
        check(&["git", "mcp:github"], &[("git", "mcp:github")], &[]);
        check(&["git", "issue"], &[("git", "issue")], &[]);
        check(&["lint", "mcp:github"], &[("pull", "lint")], &[]);
        check(&["chat", "mcp:slack"], &[("chat", "mcp:slack")], &[]);
        check(&["chat", "mcp:slak"], &[], &["mcp:slak"]);
    }

    #[test]
    fn one_provider_is_enough() {
        let key = |name: &str, more: &str| format!("{{name: {name}, env_vars: [{name}], how_to_get: h{more}}}");
        let catalog = catalog(&[
            &format!(
                "name: two\nproviders: [a, b]\nprerequisites: [{}, {}]",
                key("A", ", required_for: [a]"),
                key("B", ", required_for: [b]")
            ),
            &format!("name: free\nproviders: [a, none]\nprerequisites: [{}]", key("A", ", required_for: [a]")),
            &format!("name: needs\nprerequisites: [{}]", key("N", "")),
            &format!("name: falls\nprerequisites: [{}]", key("F", ", fallback: less")),
            &format!("name: mode\nprerequisites: [{}]", key("M", ", required_for: [deep]")),
        ]);
        let check = |tool: &str, has: &[&str], provider: Option<&str>, expected: &[(&str, bool)]| {
            let has: Vec<String> = has.iter().map(|name| (*name).to_owned()).collect();
            let verdict = check(&catalog, &[tool.to_owned()], &has, provider);
            let found: Vec<(&str, bool)> =
                verdict.missing.iter().map(|missing| (missing.env_vars[0].as_str(), missing.is_optional)).collect();
            assert_eq!(found, expected, "{tool} {has:?} {provider:?}");
        };
        check("two", &[], None, &[("A", false), ("B", false)]);
        check("two", &["A"], None, &[("B", true)]);
        check("two", &["A"], Some("a"), &[]);
        check("two", &["A"], Some("b"), &[("B", false)]);
        check("two", &["A"], Some("unheard"), &[("B", true)]);
        check("free", &[], None, &[("A", true)]);
        check("free", &[], Some("a"), &[("A", false)]);
        check("free", &[], Some("none"), &[]);
        check("needs", &[], None, &[("N", false)]);
        check("falls", &[], None, &[("F", true)]);
        check("mode", &[], None, &[("M", true)]);
        check("mode", &[], Some("deep"), &[("M", false)]);
    }

    #[test]
    fn a_provider_that_nobody_has_is_told() {
        let catalog = catalog(&[
            "name: search\nproviders: [tavily, serper]",
            "name: other\nproviders: [brave]",
            "name: plain\ndescription: x",
        ]);
        let check = |tool: &str, provider: &str, expected: Option<&[&str]>| {
            let found = check(&catalog, &[tool.to_owned()], &[], Some(provider)).unknown_provider;
            let near = found.as_ref().map(|(_, near)| near.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(near.as_deref(), expected, "{tool} {provider}");
        };
        check("search", "tavily", None);
        check("search", "tavilly", Some(&["tavily"]));
        check("search", "Tavily", Some(&["tavily"]));
        check("search", "nobody-at-all", Some(&[]));
        check("search", "brave", None);
        check("plain", "tavilly", None);
    }
}
