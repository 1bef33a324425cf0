//! Files of other kinds among the documents: one fault says what they may be, in place of one for each of their keys.

use std::path::Path;

use super::document::ToolMetadata;
use crate::strict::decode::keys_of;
use crate::strict::{Diagnostic, Node};

/// Keys by which a file of another kind is known, what it is then, and what can be done with it.
const KINDS: [(&str, &str, &str); 7] = [
    ("openapi", "an OpenAPI description", "`almanacd import openapi FILE --out DIR` makes documents of it"),
    (
        "swagger",
        "a description of OpenAPI 2",
        "bring it up to OpenAPI 3, then `almanacd import openapi` makes documents of it",
    ),
    ("mcpServers", "the configuration of an MCP client", "`almanacd import mcp --clients FILE` takes its servers over"),
    (
        "tools",
        "a list of tools",
        "`almanacd import mcp-list FILE --out DIR` or `import functions` makes documents of it",
    ),
    ("functions", "a list of functions", "`almanacd import functions FILE --out DIR` makes documents of it"),
    ("apiVersion", "a manifest of Kubernetes", "keep it in another directory"),
    ("services", "a file of Compose", "keep it in another directory"),
];

/// The one fault of a mapping, or of a list of definitions, that is no tool document.
pub(super) fn fault(path: &Path, node: &Node) -> Option<Diagnostic> {
    if let Node::List(items) = node {
        return items.first().and_then(definitions).map(|(what, hint)| {
            let message = format!("no tool document: it is a list; is this {what}?");
            Diagnostic::error(path, "no-tool-document", message).with_hint(hint)
        });
    }
    let Node::Map(entries) = node else { return None };
    let known = keys_of::<ToolMetadata>();
    if entries.is_empty() || entries.iter().any(|(key, _)| known.contains(&key.as_str())) {
        return None;
    }
    let kind = KINDS.iter().find(|(key, ..)| entries.iter().any(|(name, _)| name == key));
    let guess = kind.map_or_else(|| "is this a document?".to_owned(), |(_, what, _)| format!("is this {what}?"));
    let message = format!("no tool document: none of its keys is known; {guess}");
    let hint =
        kind.map_or("`name` and `description` are needed at least; `almanacd schema` has all keys", |kind| kind.2);
    Some(Diagnostic::error(path, "no-tool-document", message).with_hint(hint))
}

/// What a list is whose first item is this, and what can be done with it.
fn definitions(first: &Node) -> Option<(&'static str, &'static str)> {
    let Node::Map(entries) = first else { return None };
    let has = |wanted: &[&str]| entries.iter().any(|(key, _)| wanted.contains(&key.as_str()));
    let (functions, tools) = (&KINDS[4], &KINDS[3]);
    match () {
        () if has(&["function", "parameters"]) => Some((functions.1, functions.2)),
        () if has(&["inputSchema", "input_schema"]) => Some((tools.1, tools.2)),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::parse;
    use super::*;

    #[test]
    fn one_fault_says_what_it_may_be() {
        let check = |text: &str, expected: Option<&str>| {
            let faults = parse(Path::new("x.yaml"), text.as_bytes(), 10_000).unwrap_err();
            let foreign = faults.iter().find(|fault| fault.code == "no-tool-document");
            let said = foreign.map(|fault| fault.message.split("; ").nth(1).unwrap_or_default());
            assert_eq!(said, expected, "{text}");
            assert!(foreign.is_none_or(|fault| faults.len() == 1 && fault.line == 1), "{faults:?}");
        };
        check("openapi: 3.1.0\ninfo: {title: t}\npaths: {}\n", Some("is this an OpenAPI description?"));
        check("mcpServers: {}", Some("is this the configuration of an MCP client?"));
        check("alpha: 1\nbeta: 2\ngamma: 3\n", Some("is this a document?"));
        check("nme: x\ntitle: t\n", None);
        check("- a\n", None);
        check("[{type: function, function: {name: a}}]", Some("is this a list of functions?"));
        check("[{name: a, inputSchema: {}}]", Some("is this a list of tools?"));
    }
}
