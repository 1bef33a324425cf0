//! Workflows: sequences of tools that are known to serve a purpose.
//!
//! There is one registry. A preset is offered only if every one of its tools is in the catalog, so whatever is offered
//! can be run. [`matching`] tells which of them a session may have begun, or a goal may call for, and what is left of
//! them; [`directory`] reads the directory they stand in.

pub mod directory;
pub mod matching;

use std::path::Path;

use crate::strict::{Diagnostic, Fields, FromNode, Limits, load};

/// Largest file, in bytes.
const MAX_FILE_BYTES: usize = 1 << 16;

/// Most tools of a preset.
pub const MAX_STEPS: usize = 50;

/// An id that the HTTP door needs for itself.
const RESERVED: &str = "match";

#[derive(Debug, Clone, Default, PartialEq, Eq, FromNode)]
#[node(check = check)]
pub struct Preset {
    /// Its identity: 1 to 64 lower-case letters, digits, `_` and `-`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    pub description: String,
    /// The tools in the order of their calls, 1 to [`MAX_STEPS`]; a tool may occur more than once.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    pub tools: Vec<String>,
    /// What it is good for.
    #[node(default)]
    pub use_cases: Vec<String>,
    /// Words by which a goal calls for it.
    #[node(default)]
    pub keywords: Vec<String>,
}

impl Preset {
    /// Reads the content of `file`.
    pub fn parse(file: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        load::parse(file, content, &Limits::of_bytes(MAX_FILE_BYTES))
    }
}

fn check(preset: &Preset, fields: &mut Fields<'_>) {
    // What an answer says of a preset can be kept as a preset; how long it takes is estimated whenever it is asked.
    let _: Option<u64> = fields.optional("estimated_duration_ms");
    if preset.id == RESERVED {
        fields.bad_value("id", format!("`{RESERVED}` is taken by a path"));
    } else if !is_id(&preset.id) {
        fields.bad_value("id", "an id is 1 to 64 lower-case letters, digits, `_` and `-`");
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
        refuse("id: a\nname: n\ndescription: d\n", &[(1, "missing-key")]);
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
