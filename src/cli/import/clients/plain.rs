//! JSON as editors' settings have it: with a mark at its beginning, comments, and commas too many.

/// The text as plain JSON. Comments and commas too many become blanks, so that places stay where they are.
pub(super) fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out = without_comments(text);
    let commas = commas_too_many(&out);
    for comma in commas.into_iter().rev() {
        out.replace_range(comma..=comma, " ");
    }
    out
}

fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(['"', '/']) {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let length = if behind.starts_with('"') {
            let length = string_length(behind);
            out.push_str(&behind[..length]);
            length
        } else if behind.starts_with("//") {
            let length = behind.find('\n').unwrap_or(behind.len());
            blank(&behind[..length], &mut out);
            length
        } else if let Some(comment) = behind.strip_prefix("/*") {
            let length = comment.find("*/").map_or(behind.len(), |end| end + 4);
            blank(&behind[..length], &mut out);
            length
        } else {
            out.push('/');
            1
        };
        rest = &behind[length..];
    }
    out + rest
}

fn blank(comment: &str, out: &mut String) {
    out.extend(comment.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
}

/// Of a string with its quotes, in bytes; all of the text if it has no end.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Where a comma stands before the end of a list or an object that has something in it.
fn commas_too_many(text: &str) -> Vec<usize> {
    let (mut found, mut comma, mut last, mut at) = (Vec::new(), None, ' ', 0);
    while let Some(first) = text[at..].chars().next() {
        let length = if first == '"' { string_length(&text[at..]) } else { first.len_utf8() };
        match first {
            ',' => comma = Some(at).filter(|_| !"[{,".contains(last)),
            ']' | '}' => found.extend(comma.take()),
            _ if first.is_whitespace() => {}
            _ => comma = None,
        }
        if !first.is_whitespace() {
            last = first;
        }
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_editors_write_is_read() {
        let check = |text: &str, expected: Option<Value>| {
            assert_eq!(serde_json::from_str::<Value>(&plain(text)).ok(), expected, "{text}");
        };
        check("\u{feff}{}", Some(json!({})));
        check("{ // a \"comment\n \"a\": [1, 2,], /* and */ \"b\": {},\n}", Some(json!({"a": [1, 2], "b": {}})));
        check(
            r#"{"url": "https://x/,]", "b": "/* \" */ ,}"}"#,
            Some(json!({"url": "https://x/,]", "b": "/* \" */ ,}"})),
        );
        check("[1, // two\n]", Some(json!([1])));
        check("[,]", None);
        check("[1,,]", None);
        check("{\"a\": 1 / 2}", None);
        check("[\"a", None);
        check("[1] /* no end", Some(json!([1])));
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = r#"[a/*",\\\]}é ]{0,12}"#;
        let leaf = prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), text.prop_map(Value::from)];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text, inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    /// Comments where blanks may be, and a comma behind what is last.
    fn decorated(value: &Value) -> String {
        let with_comma = |items: Vec<String>| {
            if items.is_empty() { String::new() } else { format!("{}, // \",\n", items.join(" /* ] */ ,")) }
        };
        match value {
            Value::Array(items) => format!("/*[*/[{}]", with_comma(items.iter().map(decorated).collect())),
            Value::Object(map) => {
                let member = |(key, value): (&String, &Value)| format!("{} : {}", json!(key), decorated(value));
                format!("{{{}}}", with_comma(map.iter().map(member).collect()))
            }
            scalar => scalar.to_string(),
        }
    }

    proptest! {
        #[test]
        fn json_stays_as_it_is(value in value()) {
            prop_assert_eq!(plain(&value.to_string()), value.to_string());
        }

        #[test]
        fn what_is_between_its_parts_goes(value in value()) {
            let text = decorated(&value);
            prop_assert_eq!(serde_json::from_str::<Value>(&plain(&text)).ok(), Some(value), "{}", text);
        }

        #[test]
        fn places_stay_and_what_is_plain_stays(text in r#"[\[\]{}",/*\\ naé\n]{0,40}"#) {
            let found = plain(&text);
            let lines = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
            prop_assert_eq!(lines(&found), lines(&text));
            let is_kept = |(before, after): (char, char)| before == after || after == ' ';
            prop_assert!(text.chars().zip(found.chars()).all(is_kept), "{}", found);
            prop_assert_eq!(&plain(&found), &found);
        }
    }
}
