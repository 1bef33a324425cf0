//! What a document leaves out that people and models choose tools by. It is served all the same.

use std::path::Path;

use crate::catalog::ToolMetadata;
use crate::strict::locate::locate;
use crate::strict::{Diagnostic, Segment};

/// Warnings about the document `text`, which stands in `file`.
pub(super) fn lint(document: &ToolMetadata, file: &Path, text: &str) -> Vec<Diagnostic> {
    let warning = |key: &str, code, message: &str, hint: &str| {
        let finding = Diagnostic::warning(file, code, message).with_hint(hint);
        match locate(text, &[Segment::Key(key.to_owned())], true) {
            Some(place) => finding.at(text, place),
            None => finding,
        }
    };
    let mut found = Vec::new();
    if document.title.trim().is_empty() {
        found.push(warning("title", "empty-title", "the title is empty", "say what people call the tool"));
    }
    if document.description.trim().is_empty() {
        let hint = "say what the tool does: it is chosen by that";
        found.push(warning("description", "empty-description", "the description is empty", hint));
    }
    if document.use_cases.is_empty() && document.keywords.is_empty() {
        let hint = "write a use case, or the words that people ask by";
        found.push(warning("use_cases", "hard-to-find", "there are neither use cases nor keywords", hint));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::load::parse;

    #[test]
    fn what_is_left_out_is_told_at_its_key() {
        let check = |title: &str, description: &str, keywords: &str, expected: &[(&str, usize)]| {
            let text = format!(
                "name: x\ntitle: '{title}'\ndescription: '{description}'\ncategory: ''\ncapabilities: []\n\
                 keywords: [{keywords}]\nuse_cases: []\n"
            );
            let file = Path::new("x.yaml");
            let document = parse(file, text.as_bytes(), 10_000).unwrap();
            let found = lint(&document, file, &text);
            let found: Vec<(&str, usize)> = found.iter().map(|found| (found.code.as_str(), found.line)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("t", "d", "k", &[]);
        check("", "d", "k", &[("empty-title", 2)]);
        check("t", " ", "k", &[("empty-description", 3)]);
        check("t", "d", "", &[("hard-to-find", 7)]);
        check("", "", "", &[("empty-title", 2), ("empty-description", 3), ("hard-to-find", 7)]);
    }
}
