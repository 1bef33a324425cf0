//! The catalog as rule libraries are told it.

use serde::Deserialize;

use crate::catalog::{Catalog, Entry};
use crate::plugin_host::{Snapshot, Tool};

/// What a summary holds of what rules go by.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Summary {
    category: String,
    capabilities: Vec<String>,
    keywords: Vec<String>,
}

/// All tools of the catalog of this generation. Takes a few microseconds a tool.
pub fn snapshot_of(generation: u64, catalog: &Catalog) -> Snapshot {
    Snapshot { generation, tools: catalog.iter().map(|entry| tool(entry)).collect() }
}

fn tool(entry: &Entry) -> Tool {
    let summary = [entry.summary(), b"}"].concat();
    let Summary { category, capabilities, keywords } =
        serde_json::from_slice(&summary).expect("the summary was rendered from a document");
    Tool { name: entry.name().to_string(), category, capabilities, keywords }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::catalog::load::{LoadOptions, load};

    #[test]
    fn rules_are_told_what_the_documents_say() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b", "a"] {
            let text = format!(
                "name: {name}\ntitle: t\ndescription: d\ncategory: c\ncapabilities: [x, 'y\"z']\nkeywords: \
                 [k]\nuse_cases: []\n"
            );
            fs::write(directory.path().join(format!("{name}.yaml")), text).unwrap();
        }
        let loaded = load(LoadOptions::directory(directory.path()));
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            category: "c".to_owned(),
            capabilities: vec!["x".to_owned(), "y\"z".to_owned()],
            keywords: vec!["k".to_owned()],
        };
        assert_eq!(snapshot_of(7, &loaded.catalog), Snapshot { generation: 7, tools: vec![tool("a"), tool("b")] });
    }
}
