//! Numbers as they were written: an amount of 30 digits, or 1.50, is what it was when it is handed on.
//!
//! `serde_json` keeps the text of a JSON number and hands it over as a mapping of one reserved key. The YAML parser
//! gives integers of up to 128 bits; the rest it rounds, so the text of those is looked up in a second walk along the
//! node, which costs as much as the first and is done only if the text may have one that is not as it is rounded.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::Node;

/// The key by which `serde_json` hands over the text of a number.
pub(super) const TOKEN: &str = "$serde_json::private::Number";

/// Keys that `serde_json` takes for itself wherever they stand.
pub(super) const RESERVED: [&str; 2] = [TOKEN, "$serde_json::private::RawValue"];

/// The number that `text` is, as it is written. Whole numbers may be of any size, others must be finite.
pub(super) fn exact(text: &str) -> Option<Number> {
    let number: Number = text.parse().ok()?;
    let is_whole = !text.contains(['.', 'e', 'E']);
    (is_whole || number.as_f64().is_some_and(f64::is_finite)).then_some(number)
}

/// Gives the numbers of `node`, which was read from the YAML `text`, the spelling that they have there.
pub(super) fn restore(node: &mut Node, text: &str) {
    // What was read once is read again; if not, rounded numbers are still the best there is.
    let _ = Walk(node).deserialize(serde_yaml::Deserializer::from_str(text));
}

/// Digits that fit in 128 bits, whichever they are.
const EXACT_DIGITS: usize = 38;

/// May `text` spell a number otherwise than [`Number::from_f64`] does? All that looks like a number is taken for one.
pub(super) fn may_be_respelt(text: &str) -> bool {
    // A tag makes a number of a text in quotes, in which it can be spelt with escapes.
    ["!!", "!<", "%TAG"].iter().any(|tag| text.contains(tag))
        || text
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-')))
            .filter(|word| word.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '.' | '+' | '-')))
            .filter(|word| word.len() > EXACT_DIGITS || word.contains(['.', 'e', 'E']))
            .filter_map(|word| exact(&as_json(word)))
            .any(|number| number.as_f64().and_then(Number::from_f64).as_ref() != Some(&number))
}

/// JSON has no leading plus, and digits on both sides of a point.
fn as_json(text: &str) -> String {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let zero = if digits.starts_with('.') { "0" } else { "" };
    format!("{sign}{zero}{digits}")
}

/// Walks the text along the node that was read from it.
struct Walk<'n>(&'n mut Node);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0 {
            Node::Number(number) if number.is_f64() => deserializer.deserialize_str(self),
            Node::List(_) | Node::Map(_) => deserializer.deserialize_any(self),
            _ => deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ()),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("what was read before")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if let Some(number) = exact(&as_json(text)) {
            *self.0 = Node::Number(number);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Node::List(items) = self.0 else { return Err(A::Error::custom("no list")) };
        for item in items {
            access.next_element_seed(Walk(item))?;
        }
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Node::Map(entries) = self.0 else { return Err(A::Error::custom("no mapping")) };
        for (_, value) in entries {
            access.next_key::<IgnoredAny>()?;
            access.next_value_seed(Walk(value))?;
        }
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::read::{Limits, json, yaml};
    use super::*;

    const LIMITS: Limits = Limits::of_bytes(1 << 16);

    fn written(node: Node) -> String {
        serde_json::Value::from(node).to_string()
    }

    #[test]
    fn numbers_keep_their_text() {
        let check = |text: &str, expected: &str| {
            let document = format!("a: {{x: [y, {text}], z: &z {text}}}\nb: *z\n");
            let expected = format!(r#"{{"a":{{"x":["y",{expected}],"z":{expected}}},"b":{expected}}}"#);
            assert_eq!(written(yaml(document.as_bytes(), &LIMITS).unwrap()), expected);
            // What was written is read as it stands, by both.
            assert_eq!(written(json(expected.as_bytes(), &LIMITS).unwrap()), expected);
            assert_eq!(written(yaml(expected.as_bytes(), &LIMITS).unwrap()), expected);
        };
        check("1.50", "1.50");
        check("-0.10", "-0.10");
        check("+1.5", "1.5");
        check("-.5", "-0.5");
        // The one thing that serde_json spells in its own way.
        check("1e21", "1e+21");
        check("123456789012345678901234567890", "123456789012345678901234567890");
        check("-123456789012345678901234567890", "-123456789012345678901234567890");
        check("1000000000000000000000", "1000000000000000000000");
        check(&"7".repeat(78), &"7".repeat(78));
        check("18446744073709551616", "18446744073709551616");
        check("0o17", "15");
        check("0x1F", "31");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let check = |text: &str| assert!(json(text.as_bytes(), &LIMITS).is_err(), "{text}");
        check("1e400");
        check("-");
        check("01");
        check(r#"{"$serde_json::private::Number": "x"}"#);
        check(r#"{"$serde_json::private::Number": "1", "a": 2}"#);
        check(r#"{"a": 2, "$serde_json::private::Number": "1"}"#);
        check(r#"{"$serde_json::private::RawValue": "1"}"#);
        assert!(yaml(b"$serde_json::private::Number: '1'", &LIMITS).is_err());
        assert!(yaml(b"a: {$serde_json::private::RawValue: x}", &LIMITS).is_err());
    }

    #[test]
    fn a_text_is_walked_again_only_if_it_may_be_spelt_otherwise() {
        let check = |text: &str, expected: bool| assert_eq!(may_be_respelt(text), expected, "{text}");
        check("a: [1.5, -0.1, 2, +0.25, -.5]\nb: see 1.2.3 of 2024-01-01, e.g. x1.50\n", false);
        for text in ["1.50", "1e3", "-2.10", "[1, 1.0e0]", "{\"a\":1.500}", "0.1000000000000000055511151231257827"] {
            check(&format!("a: {text}"), true);
        }
        check(&format!("a: {}", "7".repeat(EXACT_DIGITS)), false);
        check(&format!("a: {}", "7".repeat(EXACT_DIGITS + 1)), true);
        check(r#"a: !!float "\x31.50""#, true);
    }

    proptest! {
        #[test]
        fn a_walk_that_is_left_out_would_change_nothing(
            numbers in prop::collection::vec("[+-]?[0-9]{0,3}\\.?[0-9]{0,3}([eE][+-]?[0-9])?", 0..4),
            rest in "[ -~]{0,20}",
        ) {
            let flow = numbers.join(",");
            let block: String = numbers.iter().map(|number| format!("- {number}\n- x: {number} # {rest}\n")).collect();
            for text in [format!("[{flow}]"), block, format!("{{\"a\":[{flow}], b: [ {flow} ]}}")] {
                if let Ok(read) = yaml(text.as_bytes(), &LIMITS) {
                    let mut walked = read.clone();
                    restore(&mut walked, &text);
                    prop_assert_eq!(written(walked), written(read), "{}", text);
                }
            }
        }

        #[test]
        fn any_json_number_comes_back_as_it_was(text in "-?(0|[1-9][0-9]{0,60})(\\.[0-9]{1,30})?(e[+-][0-9]{1,2})?") {
            prop_assert_eq!(written(json(text.as_bytes(), &LIMITS).unwrap()), text.clone());
            let list = format!("[{text}, a, {{b: {text}}}]");
            let value = yaml(list.as_bytes(), &LIMITS).unwrap();
            // A whole number is read as one, whatever its sign.
            let of_yaml = if text == "-0" { "0" } else { &text };
            prop_assert_eq!(written(value), format!(r#"[{of_yaml},"a",{{"b":{of_yaml}}}]"#));
        }
    }
}
