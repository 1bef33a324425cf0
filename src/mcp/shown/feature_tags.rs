//! Whether the lists of a view beside tools changed.

use std::sync::Arc;

use crate::sum::Sum;
use crate::upstream::{Listed, ListedItem, ServerState};

/// What the lists of a view beside tools were made of; equal for equal lists. Nothing if it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::mcp) struct FeatureTags {
    pub(in crate::mcp) prompts: Option<Sum>,
    /// Templates too.
    pub(in crate::mcp) resources: Option<Sum>,
}

impl FeatureTags {
    /// Of what these servers list.
    pub(super) fn of(servers: &[Arc<ServerState>]) -> Self {
        let tag = |items: fn(&Listed) -> [&[ListedItem]; 2]| {
            let mut all = Vec::new();
            for server in servers {
                let mut items = server.listed.iter().flat_map(|listed| items(listed)).flatten().peekable();
                if items.peek().is_some() {
                    // The name and the prefix say whose an item is, and what it is called.
                    all.extend([server.name.as_bytes(), b"\0", server.prefix.as_bytes(), b"\0"].concat());
                }
                for item in items {
                    all.extend([item.key.as_bytes(), b"\0", item.json.get().as_bytes(), b"\0"].concat());
                }
            }
            Some(Sum::of(&all))
        };
        Self {
            prompts: tag(|listed| [&listed.prompts, &[]]),
            resources: tag(|listed| [&listed.resources, &listed.templates]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::upstream::ServerSettings;

    #[test]
    fn lists_of_features_change_with_their_items_alone() {
        let listed = |prompts: &[&str]| Listed {
            prompts: prompts
                .iter()
                .map(|key| ListedItem { key: (*key).to_owned(), json: RawValue::from_string("{}".to_owned()).unwrap() })
                .collect(),
            ..Listed::default()
        };
        let server = |name: &str, prompts: &[&str]| {
            Arc::new(ServerState::sketch(name, ServerSettings::default(), listed(prompts)))
        };
        let a = server("a", &["greet"]);
        let check = |others: &[Arc<ServerState>], expected: bool| {
            let all = [&[Arc::clone(&a)], others].concat();
            let is_same = FeatureTags::of(&all) == FeatureTags::of(std::slice::from_ref(&a));
            assert_eq!(is_same, expected, "{others:?}");
        };
        check(&[server("b", &[])], true);
        check(&[server("b", &["greet"])], false);
        check(&[server("b", &[]), server("c", &[])], true);
    }
}
