//! How deep JSON is, without reading it.

/// Is some value of this JSON deeper than `limit` brackets? Texts are skipped; whether it is JSON at all is for the
/// parser to say.
///
/// The parser itself skips raw values without recursion, so only whoever reads them later would overflow.
pub(super) fn is_deeper(json: &[u8], limit: usize) -> bool {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(found) = memchr::memchr3(b'"', b'{', b'[', &json[at..]) {
        depth = depth.saturating_sub(closing(&json[at..at + found]));
        at += found + 1;
        if json[at - 1] == b'"' {
            at = end_of_text(json, at);
            continue;
        }
        depth += 1;
        if depth > limit {
            return true;
        }
    }
    false
}

fn closing(json: &[u8]) -> usize {
    json.iter().filter(|byte| matches!(byte, b'}' | b']')).count()
}

/// The index behind the quote that ends the text.
fn end_of_text(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at..]) {
        at += found + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        at = (at + 1).min(json.len());
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_do_not_count() {
        let check = |json: &str, depth: usize| {
            assert!(!is_deeper(json.as_bytes(), depth), "{json} is deeper than {depth}");
            assert!(depth == 0 || is_deeper(json.as_bytes(), depth - 1), "{json} is not {depth} deep");
        };
        check("1", 0);
        check("{}", 1);
        check("[[],[[]],{}]", 3);
        check(r#"{"a":"[[[["}"#, 1);
        check(r#"{"a\"[[[":"\\","b":[1]}"#, 2);
        check(r#"["\"#, 1);
        check(r#"["\\"#, 1);
        check("]]]][", 1);
    }

    /// The most brackets that are open at once, byte by byte.
    fn deepest(json: &[u8]) -> usize {
        let (mut depth, mut deepest, mut is_text, mut is_escaped) = (0_usize, 0, false, false);
        for byte in json {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_text => is_escaped = true,
                b'"' => is_text = !is_text,
                b'[' | b'{' if !is_text => depth += 1,
                b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        deepest
    }

    proptest! {
        #[test]
        fn it_is_the_depth_of_the_tree(value in crate::jsonrpc::object::tests::value()) {
            fn depth(value: &serde_json::Value) -> usize {
                match value {
                    serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
                    serde_json::Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
                    _ => 0,
                }
            }
            let (json, depth) = (value.to_string(), depth(&value));
            prop_assert!(!is_deeper(json.as_bytes(), depth));
            prop_assert!(depth == 0 || is_deeper(json.as_bytes(), depth - 1));
        }

        #[test]
        fn leaps_find_what_steps_find(json in r#"[\[\]{}"\\aé]{0,64}"#, limit in 0_usize..8) {
            prop_assert_eq!(is_deeper(json.as_bytes(), limit), deepest(json.as_bytes()) > limit);
        }
    }
}
