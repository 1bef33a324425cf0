//! Workflows: sequences of tools that are known to serve a purpose.
//!
//! There is one registry. A preset is offered only if every one of its tools is in the catalog, so whatever is offered can be
//! run. [`matching`] tells which of them a session may have begun, or a goal may call for, and what is left of them; [`shelf`]
//! reads the directory they stand in.

pub mod matching;
pub mod shelf;

use std::path::Path;

use crate::strict::decode::decode;
use crate::strict::read::yaml;
use crate::strict::{At, Diagnostic, FromNode, Limits, Node};

/// Largest file, in bytes.
const MAX_FILE_BYTES: usize = 1 << 16;

/// Most tools of a preset.
pub const MAX_STEPS: usize = 50;

/// An id that the HTTP door needs for itself.
const RESERVED: &str = "match";

/// A workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preset {
    /// Its identity: 1 to 64 lower-case letters, digits, `_` and `-`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The tools in the order of their calls, 1 to [`MAX_STEPS`]; a tool may occur more than once.
    pub tools: Vec<String>,
    /// What it is good for.
    pub use_cases: Vec<String>,
    /// Words by which a goal calls for it.
    pub keywords: Vec<String>,
}

impl Preset {
    /// Reads the content of `file`.
    pub fn parse(file: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        let node = yaml(content, &Limits::of_bytes(MAX_FILE_BYTES))
            .map_err(|error| vec![Diagnostic::unreadable(file, content, &error)])?;
        decode(node).map_err(|faults| {
            let text = String::from_utf8_lossy(content);
            faults.iter().map(|fault| Diagnostic::fault(file, &text, fault)).collect()
        })
    }
}

impl FromNode for Preset {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let preset = Self {
                id: fields.required("id"),
                name: fields.required("name"),
                description: fields.required("description"),
                tools: fields.required("tools"),
                use_cases: fields.or_default("use_cases"),
                keywords: fields.or_default("keywords"),
            };
            if preset.id == RESERVED {
                fields.bad_value("id", format!("`{RESERVED}` is taken by a path"));
            } else if !is_id(&preset.id) {
                fields.bad_value("id", "an id is 1 to 64 lower-case letters, digits, `_` and `-`");
            }
            if !(1..=MAX_STEPS).contains(&preset.tools.len()) {
                fields.bad_value("tools", format!("a preset has 1 to {MAX_STEPS} tools"));
            }
            preset
        })
    }
}

fn is_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

/// The presets that are offered, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presets(Vec<Preset>);

impl Presets {
    /// Those of `presets` whose tools are all known. Of two with one id the first is taken.
    pub fn new<'p>(presets: impl IntoIterator<Item = &'p Preset>, is_known: impl Fn(&str) -> bool) -> Self {
        let mut offered: Vec<Preset> = Vec::new();
        for preset in presets {
            let is_new = offered.iter().all(|other| other.id != preset.id);
            if is_new && preset.tools.iter().all(|tool| is_known(tool)) {
                offered.push(preset.clone());
            }
        }
        offered.sort_by(|a, b| a.id.cmp(&b.id));
        Self(offered)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Preset> {
        self.0.iter()
    }

    /// The one of that id.
    pub fn get(&self, id: &str) -> Option<&Preset> {
        self.0.iter().find(|preset| preset.id == id)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(text: &str, expected: &[(usize, &str)]) {
        let faults = Preset::parse(Path::new("p.yaml"), text.as_bytes()).unwrap_err();
        let got: Vec<(usize, &str)> = faults.iter().map(|fault| (fault.line, fault.code.as_str())).collect();
        assert_eq!(got, expected, "parsing {text}");
    }

    #[test]
    fn every_fault_is_found_at_its_line() {
        refuse("id: a\nname: n\ndescription: d\n", &[(1, "missing-key"), (1, "bad-value")]);
        refuse("id: a/b\nname: n\ndescription: d\ntools: [x]\nkeyword: [k]\n", &[(1, "bad-value"), (5, "unknown-key")]);
        refuse("id: match\nname: n\ndescription: d\ntools: []\n", &[(1, "bad-value"), (4, "bad-value")]);
        refuse("id: [", &[(2, "yaml-syntax")]);
    }

    #[test]
    fn only_what_can_be_run_is_offered() {
        let preset = |id: &str, name: &str, tools: &[&str]| Preset {
            id: id.into(),
            name: name.into(),
            tools: tools.iter().map(ToString::to_string).collect(),
            ..Preset::default()
        };
        let all = [preset("b", "first", &["x", "x"]), preset("b", "second", &["x"]), preset("a", "", &["x", "gone"])];
        let presets = Presets::new(&all, |tool| tool == "x");
        assert_eq!(presets.iter().map(|preset| preset.name.as_str()).collect::<Vec<_>>(), ["first"]);
        assert!(presets.get("a").is_none() && presets.get("b").is_some());
    }
}
