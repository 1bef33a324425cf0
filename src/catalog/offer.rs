//! Tools that come from elsewhere than the directories: what MCP servers list.
//!
//! A document of the same name is laid over such a tool. It helps to find the tool and says what goes with it; what the
//! tool does and takes is for its server to say, unless the document overrides that.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::document::{Overridden, ToolMetadata};
use super::{Diagnostic, Entry};

/// What one source offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// Where diagnostics say that its tools come from, such as `mcp:files`.
    pub source: String,
    /// Its tools.
    pub tools: Vec<ToolMetadata>,
    /// What is wrong with what it offers.
    pub diagnostics: Vec<Diagnostic>,
}

/// All that is offered, laid under the documents.
#[derive(Debug, Default)]
pub(super) struct Offers {
    tools: BTreeMap<String, OfferedEntry>,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Debug)]
struct OfferedEntry {
    bare: Arc<Entry>,
    /// With the document of this digest over it.
    laid: Option<(u128, Arc<Entry>)>,
}

impl Offers {
    /// From now on this is offered. Of two tools of one name the first counts.
    pub(super) fn set(&mut self, offers: Vec<Offer>) {
        let mut before = std::mem::take(&mut self.tools);
        self.diagnostics.clear();
        for Offer { source, tools, diagnostics } in offers {
            let file: Arc<Path> = Path::new(&source).into();
            self.diagnostics.extend(diagnostics);
            for document in tools {
                if self.tools.contains_key(&document.name) {
                    let message = format!("the tool `{}` is offered twice; the first one counts", document.name);
                    self.diagnostics.push(Diagnostic::warning(&file, "duplicate-tool", message));
                    continue;
                }
                let bare = Arc::new(Entry::new(&document, Arc::clone(&file)));
                let same = before.remove(&document.name).filter(|old| old.bare.digest() == bare.digest());
                self.tools.insert(document.name, same.unwrap_or(OfferedEntry { bare, laid: None }));
            }
        }
    }

    /// Is a tool of that name offered?
    pub(super) fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// Lays documents over what is offered.
    pub(super) fn lay<'a>(&mut self, document: impl Fn(&str) -> Option<&'a Arc<Entry>>) {
        for (name, tool) in &mut self.tools {
            tool.laid = document(name).map(|over| match tool.laid.take() {
                Some((digest, laid)) if digest == over.digest() => (digest, laid),
                _ => (over.digest(), Arc::new(laid_over(over, &tool.bare))),
            });
        }
    }

    /// The tools, as they were laid.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Arc<Entry>)> {
        self.tools.iter().map(|(name, tool)| {
            let entry = tool.laid.as_ref().map_or(&tool.bare, |(_, laid)| laid);
            (name.as_str(), entry)
        })
    }

    /// What is wrong with what is offered.
    pub(super) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

/// The tool as its server offers it, with what the document adds. Findings lead to the document.
fn laid_over(over: &Entry, offered: &Entry) -> Entry {
    let (document, tool) = (over.document(), offered.document());
    let is_overridden = document.overrides.contains(&Overridden::Description);
    let or = |own: String, other: String| if own.trim().is_empty() { other } else { own };
    let merged = ToolMetadata {
        title: or(document.title, tool.title),
        description: if is_overridden { document.description } else { tool.description },
        category: or(document.category, tool.category),
        backend: tool.backend,
        input_schema: tool.input_schema,
        read_only: document.read_only.or(tool.read_only),
        ..document
    };
    Entry::new(&merged, Arc::clone(over.file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolMetadata {
        ToolMetadata {
            name: name.into(),
            description: description.into(),
            backend: "mcp:a".into(),
            ..ToolMetadata::default()
        }
    }

    fn entry(document: &ToolMetadata) -> Arc<Entry> {
        Arc::new(Entry::new(document, Path::new("/d.yaml").into()))
    }

    #[test]
    fn a_document_adds_and_does_not_replace() {
        let check = |overrides: &[Overridden], description: &str| {
            let over = ToolMetadata {
                keywords: vec!["mine".into()],
                overrides: overrides.to_vec(),
                backend: "other".into(),
                ..tool("t", "by hand")
            };
            let over = entry(&over);
            let mut offers = Offers::default();
            offers.set(vec![Offer { source: "mcp:a".into(), tools: vec![tool("t", "server")], ..Offer::default() }]);
            offers.lay(|_| Some(&over));
            let laid = offers.entries().next().unwrap().1.document();
            assert_eq!((laid.description.as_str(), laid.backend.as_str()), (description, "mcp:a"));
            assert_eq!(laid.keywords, ["mine"]);
        };
        check(&[], "server");
        check(&[Overridden::Description], "by hand");
    }

    #[test]
    fn what_did_not_change_stays_the_same_entry() {
        let offer = |description: &str| {
            let tools = vec![tool("t", description), tool("u", "u"), tool("u", "again")];
            vec![Offer { source: "mcp:a".into(), tools, ..Offer::default() }]
        };
        let over = entry(&tool("t", "x"));
        let mut offers = Offers::default();
        let mut shown = |description: &str| {
            offers.set(offer(description));
            offers.lay(|name| (name == "t").then_some(&over));
            assert_eq!(offers.diagnostics().len(), 1);
            offers.entries().map(|(_, entry)| Arc::clone(entry)).collect::<Vec<_>>()
        };
        let (first, second, third) = (shown("1"), shown("1"), shown("2"));
        assert!(first.iter().zip(&second).all(|(one, other)| Arc::ptr_eq(one, other)));
        assert!(!Arc::ptr_eq(&second[0], &third[0]) && Arc::ptr_eq(&second[1], &third[1]));
    }
}
