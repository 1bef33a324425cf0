//! What a document leaves out that people and models choose and call tools by. It is served all the same.

use std::path::Path;

use serde_json::{Map, Value};

use crate::catalog::ToolMetadata;
use crate::strict::locate::locate;
use crate::strict::{Diagnostic, Segment};

/// Warnings about the document `text`, which stands in `file`.
pub(super) fn lint(document: &ToolMetadata, file: &Path, text: &str) -> Vec<Diagnostic> {
    let warning_at = |path: &[Segment], code, message: &str, hint: &str| {
        let finding = Diagnostic::warning(file, code, message).with_hint(hint);
        match locate(text, path, true) {
            Some(place) => finding.at(text, place),
            None => finding,
        }
    };
    let warning =
        |key: &str, code, message: &str, hint: &str| warning_at(&[Segment::Key(key.to_owned())], code, message, hint);
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
    if let Some(schema) = &document.input_schema {
        let mut nothing = Vec::new();
        keywords_of_nothing(schema, &mut vec![Segment::Key("input_schema".to_owned())], &mut nothing);
        found.extend(nothing.iter().filter_map(|path| {
            let Some(Segment::Key(keyword)) = path.last() else { return None };
            let message = format!("`{keyword}` of the schema has nothing behind it");
            Some(warning_at(path, "schema-keyword", &message, "a text with a comma in it is quoted between braces"))
        }));
    }
    found
}

/// Keywords whose values are data, in which nothing is a value.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Keywords whose values have names as keys.
const NAMED: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Where a JSON Schema has keywords with nothing behind them, as `{description: Amount, in whole tokens}` has.
fn keywords_of_nothing(schema: &Map<String, Value>, path: &mut Vec<Segment>, found: &mut Vec<Vec<Segment>>) {
    for (keyword, value) in schema.iter().filter(|(keyword, _)| !DATA.contains(&keyword.as_str())) {
        path.push(Segment::Key(keyword.clone()));
        match value {
            Value::Null => found.push(path.clone()),
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                for (name, schema) in named.iter().filter_map(|(name, value)| Some((name, value.as_object()?))) {
                    path.push(Segment::Key(name.clone()));
                    keywords_of_nothing(schema, path, found);
                    path.pop();
                }
            }
            Value::Object(schema) => keywords_of_nothing(schema, path, found),
            Value::Array(schemas) => {
                let schemas = schemas.iter().enumerate();
                for (index, schema) in schemas.filter_map(|(index, value)| Some((index, value.as_object()?))) {
                    path.push(Segment::Index(index));
                    keywords_of_nothing(schema, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
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
    #[test]
    fn keywords_of_a_schema_have_values() {
        let check = |schema: &str, expected: &[(&str, usize)]| {
            let text = format!(
                "name: x\ntitle: t\ndescription: d\ncategory: ''\ncapabilities: []\nkeywords: [k]\nuse_cases: []\n\
                 input_schema:\n{schema}"
            );
            let file = Path::new("x.yaml");
            let found = lint(&parse(file, text.as_bytes(), 10_000).unwrap(), file, &text);
            let found: Vec<(&str, usize)> = found.iter().map(|found| (found.message.as_str(), found.line)).collect();
            assert_eq!(found, expected, "{text}");
        };
        let said = "`in whole tokens.` of the schema has nothing behind it";
        let amount = "{type: number, description: Amount, in whole tokens.}";
        check(&format!("  properties:\n    amount: {amount}\n"), &[(said, 10)]);
        check(&format!("  properties:\n    list:\n      items: {amount}\n"), &[(said, 11)]);
        check(&format!("  anyOf:\n  - {{type: string}}\n  - {amount}\n"), &[(said, 11)]);
        check("  properties:\n    amount: {type: number, description: 'Amount, in whole tokens.'}\n", &[]);
        check("  properties:\n    amount:\n    const: {default: null}\n", &[]);
        check("  default: {a: null}\n  enum: [null, {b: null}]\n  properties: {c: {default: null}}\n", &[]);
    }
}
