//! Documents into a directory: written where there is none, and brought up to date without touching what people wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::catalog::ToolMetadata;
use crate::cli::output::Output;
use crate::cli::{CliError, Exit};
use crate::strict::load;
use crate::strict::read::Limits;
use crate::strict::write;

/// Largest document, in bytes.
pub(super) const MAX_DOCUMENT: usize = 1 << 20;

/// What was done with the documents, and what could not be carried over.
#[derive(Debug, Default)]
pub(super) struct Written {
    files: BTreeMap<&'static str, Vec<String>>,
    left: Vec<String>,
}

impl Written {
    /// Writes `documents` into `out`. Those that are there already are brought up to date if `is_update`, in what their
    /// source says of them, and kept if not.
    pub(super) fn write(documents: Vec<ToolMetadata>, out: &Path, is_update: bool) -> Result<Self, CliError> {
        fs::create_dir_all(out).map_err(|source| CliError::Write { file: out.display().to_string(), source })?;
        let mut written = Self::default();
        for document in documents {
            let file = out.join(format!("{}.yaml", document.name));
            let outcome = save(document, &file, is_update)?;
            written.files.entry(outcome).or_default().push(file.display().to_string());
        }
        Ok(written)
    }

    /// Adds what could not be carried over, a line each.
    pub(super) fn without(mut self, left: Vec<String>) -> Self {
        self.left = left;
        self
    }

    /// Says what was done. Documents that were kept in spite of news are a failure, so that a script notices.
    pub(super) fn tell(self, source: &str, output: &mut Output) -> Exit {
        let Self { files, left } = self;
        let count = |what: &str| files.get(what).map_or(0, Vec::len);
        let kept = files.get("kept").cloned().unwrap_or_default();
        let report = json!({
            "server": source, "written": count("written"), "updated": count("updated"),
            "unchanged": count("unchanged"), "kept": kept, "left": left,
        });
        output.show(&report, |out| {
            for line in &left {
                out.note(line);
            }
            for file in &kept {
                out.note(&format!("{file} is there already; --update brings it up to date"));
            }
            let line = ["written", "updated", "unchanged"].map(|what| format!("{} {what}", count(what)));
            out.line(&format!("{source}: {}", line.join(", ")));
        });
        if kept.is_empty() { Exit::Success } else { Exit::Failure }
    }
}

/// Writes a document, or what the source owns of one that is there: description, schema and backend, and what nobody
/// filled in. Says what was done.
pub(super) fn save(fresh: ToolMetadata, file: &Path, is_update: bool) -> Result<&'static str, CliError> {
    let write = |source| CliError::Write { file: file.display().to_string(), source };
    if !file.exists() {
        fs::write(file, text(&fresh)).map_err(write)?;
        return Ok("written");
    }
    let limits = Limits::of_bytes(MAX_DOCUMENT);
    let known: ToolMetadata = load::load(file, &limits).map_err(CliError::Config)?;
    let updated = merged(&known, fresh);
    // Not touched, so that comments stay.
    if updated == known {
        return Ok("unchanged");
    }
    if !is_update {
        return Ok("kept");
    }
    let old = fs::read_to_string(file).map_err(write)?;
    let patched = patched(&old, &known, &updated);
    let is_right = load::parse::<ToolMetadata>(file, patched.as_bytes(), &limits).is_ok_and(|read| read == updated);
    fs::write(file, if is_right { patched } else { text(&updated) }).map_err(write)?;
    Ok("updated")
}

fn merged(known: &ToolMetadata, fresh: ToolMetadata) -> ToolMetadata {
    let mut merged = known.clone();
    let or = |known: &String, fresh: String| if known.trim().is_empty() { fresh } else { known.clone() };
    merged.title = or(&known.title, fresh.title);
    merged.category = or(&known.category, fresh.category);
    merged.best_practices = or(&known.best_practices, fresh.best_practices);
    fill(&mut merged.keywords, fresh.keywords);
    fill(&mut merged.common_errors, fresh.common_errors);
    fill(&mut merged.prerequisites, fresh.prerequisites);
    ToolMetadata { description: fresh.description, backend: fresh.backend, input_schema: fresh.input_schema, ..merged }
}

fn fill<T>(known: &mut Vec<T>, fresh: Vec<T>) {
    if known.is_empty() {
        *known = fresh;
    }
}

pub(super) fn text(document: &ToolMetadata) -> String {
    write::yaml(&value(document))
}

fn value(document: &ToolMetadata) -> Value {
    serde_json::to_value(document).expect("a document holds only strings, finite numbers and string keys")
}

/// `old` with the keys that differ written anew, and every other line as it stands.
fn patched(old: &str, known: &ToolMetadata, updated: &ToolMetadata) -> String {
    let (Value::Object(known), Value::Object(updated)) = (value(known), value(updated)) else { return String::new() };
    let mut text = old.to_owned();
    for key in known.keys().filter(|key| !updated.contains_key(*key)) {
        text = with_member(&text, key, "");
    }
    for (key, value) in updated.iter().filter(|(key, value)| known.get(*key) != Some(*value)) {
        text = with_member(&text, key, &write::member(key, value));
    }
    text
}

/// The text with the member `key` at the margin replaced by `member`, or with that at its end.
fn with_member(text: &str, key: &str, member: &str) -> String {
    let begins = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    // Items may stand at the margin, under their key; a blank line or a comment belongs to what follows it.
    let goes_on = |line: &str| line.starts_with([' ', '\t', '-']) || line.trim().is_empty();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(start) = lines.iter().position(|line| begins(line)) else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return format!("{text}{gap}{member}");
    };
    let mut end = start + 1 + lines[start + 1..].iter().take_while(|line| goes_on(line)).count();
    while end > start + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    format!("{}{member}{}", lines[..start].concat(), lines[end..].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_stays_line_by_line() {
        let old = "# ours\nname: x\ntitle: T # a title\n\n# what it does\ndescription: |\n  old\n\n  text\n\n\
                   # found by\n\
                   keywords:\n- mine\ncategory: c\ncapabilities: []\nuse_cases: []\n\
                   input_schema: {type: object}\n# end\n";
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.yaml");
        fs::write(&file, old).unwrap();
        let fresh = || ToolMetadata {
            name: "x".to_owned(),
            title: "Theirs".to_owned(),
            description: "new".to_owned(),
            keywords: vec!["theirs".to_owned()],
            backend: "mcp:s".to_owned(),
            ..ToolMetadata::default()
        };
        assert_eq!(save(fresh(), &file, false).unwrap(), "kept");
        assert_eq!(save(fresh(), &file, true).unwrap(), "updated");
        let expected = "# ours\nname: x\ntitle: T # a title\n\n# what it does\ndescription: new\n\n# found by\n\
                        keywords:\n- mine\ncategory: c\ncapabilities: []\nuse_cases: []\n# end\nbackend: mcp:s\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        assert_eq!(save(fresh(), &file, true).unwrap(), "unchanged");
    }

    #[test]
    fn a_layout_of_its_own_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.yaml");
        let old = "{name: x, title: t, description: old, category: c, capabilities: [], keywords: [k], use_cases: []}";
        fs::write(&file, old).unwrap();
        let fresh = ToolMetadata { name: "x".to_owned(), description: "new".to_owned(), ..ToolMetadata::default() };
        assert_eq!(save(fresh, &file, true).unwrap(), "updated");
        let read: ToolMetadata = load::load(&file, &Limits::of_bytes(1 << 16)).unwrap();
        assert_eq!((read.description.as_str(), read.keywords.as_slice()), ("new", &["k".to_owned()][..]));
    }
}
