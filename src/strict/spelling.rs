//! One key in two spellings: `tool_name` and `toolName`.
//!
//! The documents that the wire follows do not agree on one spelling, so whoever writes requests for several of them
//! mixes both. A request is understood in either; what is answered has one.

/// Are these two spellings of one key, or the same?
pub fn is_same(one: &str, other: &str) -> bool {
    one == other || snake(one).eq(snake(other))
}

/// The characters of a key in `snake_case`.
fn snake(key: &str) -> impl Iterator<Item = char> {
    key.chars().flat_map(|character| {
        let is_upper = character.is_ascii_uppercase();
        is_upper.then_some('_').into_iter().chain([character.to_ascii_lowercase()])
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_spellings_are_one_key() {
        let check = |one: &str, other: &str, expected: bool| {
            assert_eq!(is_same(one, other), expected, "{one} {other}");
            assert_eq!(is_same(other, one), expected, "{other} {one}");
        };
        check("tool_name", "toolName", true);
        check("env_vars", "envVars", true);
        check("thread.parent_id", "thread.parentId", true);
        check("importance_score", "importanceScore", true);
        check("tool_name", "tool_name", true);
        check("tool_name", "toolname", false);
        check("tool_name", "ToolName", false);
        check("a", "A", false);
        check("a_b", "ab", false);
    }

    proptest! {
        #[test]
        fn every_camel_case_key_has_one_other_spelling(words in prop::collection::vec("[a-z]{1,6}", 1..5)) {
            let mut camel = words[0].clone();
            for word in &words[1..] {
                camel.push_str(&word[..1].to_ascii_uppercase());
                camel.push_str(&word[1..]);
            }
            prop_assert!(is_same(&camel, &words.join("_")));
            prop_assert_eq!(is_same(&camel, &words.concat()), words.len() == 1);
        }
    }
}
