//! A file of YAML or JSON to a typed value, or to every fault in it with its line.

use std::error::Error;
use std::io;
use std::path::Path;

use super::decode::decode_file;
use super::locate::locate;
use super::read::{Limits, json, without_mark, yaml};
use super::{Diagnostic, FromNode, Node, Unreadable, UnreadableKind, diagnostic, file};

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("cannot read {file}")]
    Unreadable { file: String, source: io::Error },
    /// It is not what it should be.
    #[error("{file} has {}", diagnostic::count(.diagnostics))]
    Faulty {
        file: String,
        /// All faults, in the order of the text.
        diagnostics: Vec<Diagnostic>,
    },
}

impl LoadError {
    /// What is wrong, place by place; empty if there is no place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Faulty { diagnostics, .. } => diagnostics,
            Self::Unreadable { .. } => &[],
        }
    }

    /// Is there no such file?
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The error and its places as one text, each place after `separator`.
    pub fn describe(&self, separator: &str) -> String {
        let source = self.source().map(|source| format!(": {source}")).unwrap_or_default();
        let places = self.diagnostics().iter().map(|fault| {
            let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{separator}{}: {}{hint}", fault.place(), fault.message)
        });
        format!("{self}{source}{}", places.collect::<String>())
    }

    /// The same as diagnostics, also where the file could not be read.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        match self {
            Self::Faulty { diagnostics, .. } => diagnostics,
            Self::Unreadable { file, source } => {
                vec![Diagnostic::error(Path::new(&file), "unreadable", format!("cannot be read: {source}"))]
            }
        }
    }
}

/// Reads the file at `path` under `limits`.
pub fn load<T: FromNode>(path: &Path, limits: &Limits) -> Result<T, LoadError> {
    let name = path.display().to_string();
    let content =
        file::read(path, limits.bytes).map_err(|source| LoadError::Unreadable { file: name.clone(), source })?;
    parse(path, &content, limits).map_err(|diagnostics| LoadError::Faulty { file: name, diagnostics })
}

/// Reads `content`, the text of the file at `path`. Nothing but blanks and comments is read as an empty mapping.
pub fn parse<T: FromNode>(path: &Path, content: &[u8], limits: &Limits) -> Result<T, Vec<Diagnostic>> {
    parse_unless(path, content, limits, |_| None)
}

/// The same, unless `refuse` has one fault in place of all that are to be found in it.
pub fn parse_unless<T: FromNode>(
    path: &Path,
    content: &[u8],
    limits: &Limits,
    refuse: impl FnOnce(&Node) -> Option<Diagnostic>,
) -> Result<T, Vec<Diagnostic>> {
    let node = match read(path, content, limits) {
        Ok(Node::Null) => Node::Map(Vec::new()),
        Err(_) if is_blank(content) => Node::Map(Vec::new()),
        Ok(node) => node,
        Err(error) => return Err(vec![Diagnostic::unreadable(path, content, &error)]),
    };
    if let Some(fault) = refuse(&node) {
        let text = text_of(path, content);
        return Err(vec![match locate(&text, &[], false) {
            Some(place) => fault.at(&text, place),
            None => fault,
        }]);
    }
    decode_file(node).map_err(|faults| {
        let text = text_of(path, content);
        let mut found: Vec<Diagnostic> = faults.iter().map(|fault| Diagnostic::fault(path, &text, fault)).collect();
        found.sort_by_key(|fault| (fault.line, fault.column));
        found
    })
}

/// JSON is read as YAML too where it is no JSON: with comments, or a comma too many.
fn read(path: &Path, content: &[u8], limits: &Limits) -> Result<Node, Unreadable> {
    if !file::is_json(path) {
        return yaml(content, limits);
    }
    json(content, limits).or_else(|unreadable| match unreadable.kind {
        UnreadableKind::Syntax => yaml(text_of(path, content).as_bytes(), limits).map_err(|_| unreadable),
        _ => Err(unreadable),
    })
}

/// The text as places in it are counted. A tab in JSON is one between its parts, where YAML wants none.
pub fn text_of(path: &Path, content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let text = without_mark(&text);
    if file::is_json(path) { text.replace('\t', " ") } else { text.to_owned() }
}

/// Does `content` hold nothing but blanks and comments?
pub fn is_blank(content: &[u8]) -> bool {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    content.split(|&byte| byte == b'\n').all(|line| {
        let line = line.trim_ascii();
        line.is_empty() || line.starts_with(b"#")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    fn check(file: &str, text: &str, expected: Result<&str, &str>) {
        let read = parse::<Map<String, Value>>(Path::new(file), text.as_bytes(), &Limits::of_bytes(1 << 16));
        let read = read.map(|value| Value::Object(value).to_string()).map_err(|faults| faults[0].place());
        assert_eq!(read, expected.map(ToOwned::to_owned).map_err(ToOwned::to_owned), "{file} {text:?}");
    }

    #[test]
    fn json_is_read_by_its_name() {
        check("a.json", "{\n\t\"a\":\t1.50,\n\t\"b\": \"x\\/y\"\n}\n", Ok(r#"{"a":1.50,"b":"x/y"}"#));
        check("a.JSON", "\u{feff}{\"a\": 1}", Ok(r#"{"a":1}"#));
        check("a.json", "// no", Err("a.json:1:1"));
        check("a.json", "{ # why\n \"a\": [1,],\n}", Ok(r#"{"a":[1]}"#));
        check("a.json", "{\n\t\"a\": 1,\n\t\"a\": 2\n}", Err("a.json:3:4"));
        check("a.yaml", "{\"<<\": 1}", Err("a.yaml:1:2"));
        check("a.json", "{\"<<\": 1}", Ok(r#"{"<<":1}"#));
        check("a.yaml", "\u{feff}# nothing\n", Ok("{}"));
    }

    #[test]
    fn faults_of_json_have_their_places() {
        let text = "{\n\t\"a\": [\n\t\t1\n\t]\n}";
        let read = parse::<std::collections::BTreeMap<String, Vec<String>>>(
            Path::new("a.json"),
            text.as_bytes(),
            &Limits::of_bytes(1 << 16),
        );
        assert_eq!(read.unwrap_err()[0].place(), "a.json:3:3");
    }

    #[test]
    fn nothing_is_an_empty_list_or_mapping_in_a_file() {
        let text = "a:\nb: [x]\n";
        let read = parse::<std::collections::BTreeMap<String, Vec<String>>>(
            Path::new("a.yaml"),
            text.as_bytes(),
            &Limits::of_bytes(1 << 16),
        );
        let read = read.unwrap();
        assert_eq!((read["a"].len(), read["b"].len()), (0, 1));
    }
}
