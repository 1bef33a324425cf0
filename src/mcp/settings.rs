//! How the door of MCP clients is set up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::own::OwnTool;
use crate::strict::{At, Fields, FromNode, Node, Violation};
use crate::text::near;
use crate::upstream::MAX_NAME;

/// The section `mcp` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default)]
pub struct Settings {
    /// The Unix socket of MCP clients: beside the state by default, `/run/almanac-mcp/mcp.sock` of an installed daemon.
    pub socket: Option<PathBuf>,
    /// Without tokens: may everybody who reaches the daemon over TCP call the tools of MCP servers?
    pub anonymous_calls: bool,
    /// Longest name of a server's tool, in bytes.
    #[schemars(range(min = 24, max = 64))]
    pub max_name: usize,
    /// How long clients wait for an answer if nothing else is known of them: 60 s.
    pub client_timeout: Option<Duration>,
    /// Further views of the tools, by name.
    #[node(check = check_views)]
    pub views: BTreeMap<String, ViewSettings>,
}

/// One view: which tools it has, and which of them it lists.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default, check = check_view)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key that somebody writes")]
pub struct ViewSettings {
    /// Only tools of these servers.
    pub servers: Option<Vec<String>>,
    /// Only tools whose names match one of these patterns, in which `*` stands for anything.
    pub tools: Option<Vec<String>>,
    /// Only tools of these categories.
    pub categories: Option<Vec<String>>,
    /// Almanac's own tools in it.
    pub own: Option<Vec<String>>,
    /// Tools that are listed themselves where the others are only found.
    pub pinned: Option<Pinned>,
    /// Does it list the tools that find and call others?
    pub meta: bool,
    /// Are documents found that no server stands behind?
    pub documents: bool,
    /// How long its clients wait for an answer.
    pub client_timeout: Option<Duration>,
    /// Do its clients wait longer while progress is told?
    pub progress_resets: bool,
    /// Is the forecast, and what comes next, told with each result?
    pub metadata: bool,
    /// Is how long calls take told with each tool?
    pub timing: bool,
}

/// Tools that are listed where the others are only found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pinned {
    /// All, as long as the list stays small.
    Auto,
    /// These.
    Names(Vec<String>),
}

impl FromNode for Pinned {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::String(word) if word == "auto" => Some(Self::Auto),
            Node::String(word) => {
                at.bad_value(format!("`auto` or a list of names, not `{word}`"));
                None
            }
            list => Vec::<String>::from_node(list, at).map(Self::Names),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { socket: None, anonymous_calls: false, max_name: MAX_NAME, client_timeout: None, views: BTreeMap::new() }
    }
}

impl Default for ViewSettings {
    fn default() -> Self {
        Self {
            servers: None,
            tools: None,
            categories: None,
            own: None,
            pinned: None,
            meta: false,
            documents: false,
            client_timeout: None,
            progress_resets: false,
            metadata: true,
            timing: false,
        }
    }
}

impl ViewSettings {
    /// Is a tool of this server, this name and in these categories in it?
    pub(super) fn selects(&self, server: &str, tool: &str, is_in: impl Fn(&str) -> bool) -> bool {
        let has = |list: &Option<Vec<String>>, fits: &dyn Fn(&String) -> bool| {
            list.as_ref().is_none_or(|list| list.iter().any(fits))
        };
        has(&self.servers, &|name| name == server)
            && has(&self.tools, &|pattern| matches(pattern, tool))
            && has(&self.categories, &|category| is_in(category))
    }
}

/// Does the name match the pattern, in which `*` stands for anything?
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    let mut rest = rest;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

fn check_view(view: &ViewSettings, fields: &mut Fields<'_>) {
    for name in view.own.iter().flatten() {
        if OwnTool::parse(name).is_none() {
            let near = near::nearest(name, OwnTool::WORDS).map(|near| format!("; did you mean `{near}`?"));
            fields.bad_value("own", format!("Almanac has no tool `{name}`{}", near.unwrap_or_default()));
        }
    }
}

fn check_views(views: &BTreeMap<String, ViewSettings>) -> Result<(), Violation> {
    for name in views.keys() {
        let is_plain =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
        if !is_plain || !(1..=32).contains(&name.len()) {
            return Err(format!("`{name}` is no name for a view: a-z, 0-9, - and _, 32 at most").into());
        }
        if name == "server" {
            return Err("a view cannot be called `server`: that is where single servers are".to_owned().into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::strict::load;
    use crate::strict::read::Limits;

    #[test]
    fn a_pattern_matches_the_whole_name() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        };
        check("a_b", "a_b", true);
        check("a_b", "a_bc", false);
        check("a_*", "a_b", true);
        check("*_b", "a_b", true);
        check("*", "", true);
        check("a*a", "a", false);
        check("a*b*c", "axxbxc", true);
        check("a*b*c", "axxc", false);
    }

    proptest! {
        #[test]
        fn a_pattern_of_a_cut_name_matches_it(name in "[a-z_]{1,12}", from in 0_usize..12, to in 0_usize..12) {
            let (from, to) = (from.min(name.len()), to.min(name.len()));
            let (from, to) = (from.min(to), from.max(to));
            let pattern = format!("{}*{}", &name[..from], &name[to..]);
            prop_assert!(matches(&pattern, &name));
        }
    }

    #[test]
    fn views_are_read_strictly() {
        let check = |yaml: &str, expected: &str| {
            let read = load::parse::<Settings>(Path::new("x.yaml"), yaml.as_bytes(), &Limits::of_bytes(1 << 20));
            let said = match read {
                Ok(settings) => format!("{:?}", settings.views),
                Err(faults) => faults.iter().map(|fault| fault.message.clone()).collect::<Vec<_>>().join("\n"),
            };
            assert!(said.contains(expected), "{yaml}\n{said}");
        };
        check("views: {work: {servers: [a], pinned: auto}}", "Auto");
        check("views: {work: {pinned: [a_b]}}", "Names([\"a_b\"])");
        check("views: {work: {pinned: all}}", "`auto` or a list of names");
        check("views: {server: {}}", "cannot be called `server`");
        check("views: {Work: {}}", "`Work` is no name for a view");
        check("views: {work: {own: [recal]}}", "did you mean `recall`?");
    }
}
