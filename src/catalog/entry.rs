//! One tool as readers hold it: the rendered document and just enough to find it by.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::iter;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::document::{Complement, ConflictSeverity, ToolMetadata};
use super::errors;

/// A tool of a catalog, immutable.
#[derive(Debug)]
pub struct Entry {
    name: Arc<str>,
    file: Arc<Path>,
    /// The body, and behind it its entity tag: one allocation.
    rendered: Bytes,
    digest: u128,
    /// Where the keys of the summary end in the body.
    summary: u32,
    /// The document's hint of a typical duration, in ms; 0 without one.
    hint_ms: u32,
    /// Whether it names a tool in high conflict, which few do and each suggestion asks of many.
    has_high_conflicts: bool,
    facets: Box<str>,
    /// Its complements, read from the body when first asked for.
    complements: OnceLock<Box<[Complement]>>,
}

/// Length of an entity tag: 32 hexadecimal digits in quotes.
const ETAG: usize = 34;

/// What a tool can be found by besides its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facet {
    /// Its category; ignores case.
    Category,
    /// One of its capabilities; ignores case.
    Capability,
    /// One of its keywords; ignores case.
    Keyword,
    /// One of its providers; ignores case.
    Provider,
    /// An environment variable of its prerequisites.
    EnvVar,
    /// A message that one of its common errors stands in, or a part of one; ignores case. Rarely asked for, so it is
    /// looked for in the document.
    Error,
    /// A tool it names as conflict.
    Conflict,
    /// The same, of high severity.
    HighConflict,
    /// The same, of medium severity.
    MediumConflict,
    /// The same, of low severity.
    LowConflict,
    /// Its backend, such as `mcp:server`.
    Backend,
    /// A tool it names as alternative.
    Alternative,
    /// A tool it names as complement.
    Complement,
    /// A tool that has to be called before.
    Needed,
}

impl Facet {
    fn mark(self) -> u8 {
        match self {
            Self::Category => b'c',
            Self::Capability => b'a',
            Self::Keyword => b'k',
            Self::Provider => b'p',
            Self::EnvVar => b'v',
            Self::Error => b'e',
            Self::Conflict => b'!',
            Self::HighConflict => b'H',
            Self::MediumConflict => b'M',
            Self::LowConflict => b'L',
            Self::Backend => b'b',
            Self::Alternative => b'~',
            Self::Complement => b'+',
            Self::Needed => b'<',
        }
    }

    /// Conflicts of that severity.
    pub fn of_severity(severity: ConflictSeverity) -> Self {
        match severity {
            ConflictSeverity::High => Self::HighConflict,
            ConflictSeverity::Medium => Self::MediumConflict,
            ConflictSeverity::Low => Self::LowConflict,
        }
    }

    fn ignores_case(self) -> bool {
        matches!(self, Self::Category | Self::Capability | Self::Keyword | Self::Provider | Self::Error)
    }

    fn fold(self, value: &str) -> String {
        let value = value.replace('\n', " ");
        if self.ignores_case() { value.to_lowercase() } else { value }
    }
}

/// A facet and a value, prepared to be looked for in many entries.
#[derive(Debug)]
pub struct FacetFilter {
    facet: Facet,
    value: String,
    line: String,
}

impl FacetFilter {
    /// Entries whose `facet` is `value`, or for [`Facet::Error`] goes with it.
    pub fn new(facet: Facet, value: &str) -> Self {
        let value = facet.fold(value);
        let line = format!("\n{}{value}\n", char::from(facet.mark()));
        Self { facet, value, line }
    }
}

impl Entry {
    /// Renders `document`, which was read from `file`.
    pub fn new(document: &ToolMetadata, file: Arc<Path>) -> Self {
        let mut rendered =
            serde_json::to_vec(document).expect("a document holds only strings, finite numbers and string keys");
        let summary = summary_end(&rendered);
        let digest = Sha256::digest(&rendered);
        let digest = u128::from_be_bytes(digest[..16].try_into().expect("a SHA-256 sum has 32 bytes"));
        rendered.extend_from_slice(format!("\"{digest:032x}\"").as_bytes());
        Self {
            name: document.name.as_str().into(),
            file,
            digest,
            summary: summary as u32,
            hint_ms: document.timing.as_ref().map_or(0, |hint| hint.estimated_duration_ms as u32),
            has_high_conflicts: document.conflicts.iter().any(|conflict| conflict.severity() == ConflictSeverity::High),
            facets: facets(document).into(),
            complements: OnceLock::new(),
            rendered: Bytes::from(rendered.into_boxed_slice()),
        }
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The file it was read from.
    pub fn file(&self) -> &Arc<Path> {
        &self.file
    }

    /// The whole document as JSON.
    pub fn body(&self) -> Bytes {
        self.rendered.slice(..self.rendered.len() - ETAG)
    }

    /// The entity tag of the body, quotes included.
    pub fn etag(&self) -> Bytes {
        self.rendered.slice(self.rendered.len() - ETAG..)
    }

    /// A hash of the body, to compare and to sum into a catalog's.
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// The members of the summary (name to keywords) as JSON, without the closing brace.
    pub fn summary(&self) -> &[u8] {
        &self.rendered[..self.summary as usize]
    }

    /// How long the document says that a call takes, in ms.
    pub fn hint_ms(&self) -> Option<u64> {
        (self.hint_ms > 0).then(|| self.hint_ms.into())
    }

    /// Does it name a tool that it is in high conflict with?
    pub(super) fn has_high_conflicts(&self) -> bool {
        self.has_high_conflicts
    }

    pub fn category(&self) -> String {
        self.summary_fields().category.into_owned()
    }

    /// The document itself, parsed from the body.
    pub fn document(&self) -> ToolMetadata {
        serde_json::from_slice(&self.body()).expect("the body was rendered from a document")
    }

    /// The document's complements alone, which are asked for with each suggestion.
    pub fn complements(&self) -> &[Complement] {
        self.complements.get_or_init(|| self.read_complements().into())
    }

    fn read_complements(&self) -> Vec<Complement> {
        #[derive(Deserialize)]
        struct Named {
            #[serde(default)]
            complements: Vec<Complement>,
        }
        if self.values(Facet::Complement).next().is_none() {
            return Vec::new();
        }
        let named: Named = serde_json::from_slice(&self.body()).expect("the body was rendered from a document");
        named.complements
    }

    /// Does it have that facet?
    pub fn has(&self, wanted: &FacetFilter) -> bool {
        let is_meant = |value: &str| wanted.facet.fold(value) == wanted.value;
        match wanted.facet {
            Facet::Category => is_meant(&self.summary_fields().category),
            Facet::Capability => self.summary_fields().capabilities.iter().any(|value| is_meant(value)),
            Facet::Keyword => self.summary_fields().keywords.iter().any(|value| is_meant(value)),
            Facet::Error => errors::matching(&self.document().common_errors, &wanted.value).next().is_some(),
            _ => self.facets.contains(&wanted.line),
        }
    }

    fn summary_fields(&self) -> SummaryFields<'_> {
        let mut deserializer = serde_json::Deserializer::from_slice(&self.rendered);
        SummaryFields::deserialize(&mut deserializer).expect("the body was rendered from a document")
    }

    /// The values of a facet that is not in the summary.
    pub fn values(&self, facet: Facet) -> impl Iterator<Item = &str> {
        let begin = [b'\n', facet.mark()];
        let mut rest = &*self.facets;
        iter::from_fn(move || {
            let start = memchr::memmem::find(rest.as_bytes(), &begin)? + begin.len();
            let value = rest[start..].split('\n').next()?;
            // The end of this line begins the next one.
            rest = &rest[start + value.len()..];
            Some(value.strip_suffix('\r').unwrap_or(value))
        })
    }
}

/// The body starts with the keys of the summary, so the summary is a prefix of it. Inside a string the quotes of the
/// next key would be escaped.
fn summary_end(body: &[u8]) -> usize {
    const NEXT: &[u8] = b",\"use_cases\":";
    body.windows(NEXT.len()).position(|window| window == NEXT).unwrap_or_default()
}

/// The facets that the summary holds; they are not kept a second time.
#[derive(Deserialize)]
struct SummaryFields<'b> {
    #[serde(borrow)]
    category: Cow<'b, str>,
    #[serde(borrow)]
    capabilities: Vec<Cow<'b, str>>,
    #[serde(borrow)]
    keywords: Vec<Cow<'b, str>>,
}

/// All other facets as marked lines: one allocation, searched faster than a tree of them.
fn facets(document: &ToolMetadata) -> String {
    let mut lines = String::from("\n");
    let mut add = |facet: Facet, value: &str| {
        let _ = writeln!(lines, "{}{}", char::from(facet.mark()), facet.fold(value));
    };
    for value in &document.providers {
        add(Facet::Provider, value);
    }
    for value in document.prerequisites.iter().flat_map(|prerequisite| &prerequisite.env_vars) {
        add(Facet::EnvVar, value);
    }
    add(Facet::Backend, &document.backend);
    for value in &document.conflicts {
        add(Facet::Conflict, &value.tool);
        add(Facet::of_severity(value.severity()), &value.tool);
    }
    for value in &document.alternatives {
        add(Facet::Alternative, &value.tool);
    }
    for value in &document.complements {
        add(Facet::Complement, &value.tool);
    }
    for value in document.prerequisites.iter().filter(|prerequisite| !prerequisite.tool.is_empty()) {
        add(Facet::Needed, &value.tool);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let document: ToolMetadata = serde_json::from_str(include_str!("../../tests/golden/every_field.json")).unwrap();
        Entry::new(&document, Path::new("x.yaml").into())
    }

    #[test]
    fn the_summary_is_a_prefix_of_the_body() {
        let mut summary = entry().summary().to_vec();
        summary.push(b'}');
        let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
        let keys: Vec<&String> = summary.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "title", "description", "category", "capabilities", "keywords"]);
    }

    #[test]
    fn a_description_cannot_end_the_summary() {
        let mut document = entry().document();
        document.description = r#"x","use_cases":[]"#.to_owned();
        document.title = r#"\",\"use_cases\":"#.to_owned();
        let entry = Entry::new(&document, Path::new("x.yaml").into());
        let summary = [entry.summary(), b"}"].concat();
        let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
        assert_eq!(summary["keywords"][0], "look up");
        assert_eq!(summary["description"], document.description);
    }

    #[test]
    fn facets_are_found_whole() {
        let entry = entry();
        let check = |facet, value: &str, expected| {
            assert_eq!(entry.has(&FacetFilter::new(facet, value)), expected, "{facet:?} {value}");
        };
        check(Facet::Category, "WEB", true);
        check(Facet::Category, "we", false);
        check(Facet::Keyword, "look up", true);
        check(Facet::Provider, "tavily", true);
        check(Facet::EnvVar, "TAVILY_API_KEY", true);
        check(Facet::EnvVar, "tavily_api_key", false);
        check(Facet::Error, "RATE limit", true);
        check(Facet::Error, "\nk", false);
        check(Facet::Conflict, "http_request", true);
        check(Facet::Complement, "http_request", false);
    }

    #[test]
    fn the_document_comes_back() {
        let entry = entry();
        assert_eq!(serde_json::to_vec(&entry.document()).unwrap(), *entry.body());
        assert_eq!(entry.etag(), format!("\"{:032x}\"", entry.digest()));
    }
}
