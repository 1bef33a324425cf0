//! What views of the configuration name that is not there: they would list nothing, and nobody would know why.

use std::collections::BTreeMap;
use std::path::Path;

use super::settings::{Pinned, Settings, ViewSettings};
use crate::strict::Diagnostic;
use crate::text::near;
use crate::upstream::{ServerSettings, prefix_of};

/// All findings about the views of the configuration in `file`, which has these servers.
pub fn check(settings: &Settings, servers: &BTreeMap<String, ServerSettings>, file: &Path) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (name, view) in &settings.views {
        for server in view.servers.iter().flatten().filter(|server| !servers.contains_key(*server)) {
            let near = near::nearest(server, servers.keys().map(String::as_str));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            let message = format!("the view `{name}` names the server `{server}`, which is not configured");
            let warning = Diagnostic::warning(file, "unknown-server", message);
            found.push(match hint {
                Some(hint) => warning.with_hint(hint),
                None => warning,
            });
        }
        let Some(Pinned::Names(pinned)) = &view.pinned else { continue };
        for tool in pinned.iter().filter(|tool| !may_be(tool, view, servers)) {
            let message = format!("the view `{name}` pins `{tool}`, as no tool of its servers is called");
            let hint = "a tool is called by its server's prefix, `_` and its own name";
            found.push(Diagnostic::warning(file, "unknown-tool", message).with_hint(hint));
        }
    }
    found
}

/// May a tool of the view's servers have this name? Which ones they have is not known here.
fn may_be(tool: &str, view: &ViewSettings, servers: &BTreeMap<String, ServerSettings>) -> bool {
    servers.iter().any(|(name, settings)| {
        let prefix = prefix_of(name, settings);
        let begins = || tool.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('_'));
        view.servers.as_ref().is_none_or(|servers| servers.contains(name)) && (prefix.is_empty() || begins())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::load;
    use crate::strict::read::Limits;

    #[test]
    fn what_is_not_there_is_told() {
        let servers = ["files", "git_hub", "bare"].map(|name| {
            let prefix = (name == "bare").then(String::new);
            (name.to_owned(), ServerSettings { prefix, ..ServerSettings::default() })
        });
        let servers = BTreeMap::from(servers);
        let check = |view: &str, expected: &[&str]| {
            let yaml = format!("views: {{work: {{{view}}}}}");
            let limits = Limits::of_bytes(1 << 20);
            let settings = load::parse::<Settings>(Path::new("x.yaml"), yaml.as_bytes(), &limits).unwrap();
            let found = super::check(&settings, &servers, Path::new("x.yaml"));
            let said = |one: &Diagnostic| format!("{} {}", one.message, one.hint.clone().unwrap_or_default());
            let said: Vec<String> = found.iter().map(said).collect();
            let is_told = said.iter().zip(expected).all(|(said, part)| said.contains(part));
            assert!(said.len() == expected.len() && is_told, "{view}: {said:?}");
        };
        check("servers: [files], pinned: [files_read]", &[]);
        check("servers: [file]", &["`file`, which is not configured did you mean `files`?"]);
        check("servers: [files], pinned: [git-hub_search, file_read]", &["`git-hub_search`", "`file_read`"]);
        check("servers: [git_hub], pinned: [git-hub_search, git_hub_search]", &["`git_hub_search`"]);
        check("pinned: [anything]", &[]);
        check("servers: [files], pinned: auto", &[]);
    }
}
