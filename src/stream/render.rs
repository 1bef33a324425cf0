//! Named values as a stream.

use std::fmt::Display;

use serde::Serialize;
use serde_json::{Value, json};

use super::Protocol;

/// A whole stream of `values`, each with its name in the UI message stream (`intent-context` makes
/// `data-intent-context`).
pub fn data<N: Display>(protocol: Protocol, values: impl IntoIterator<Item = (N, Value)>) -> String {
    let mut stream = String::new();
    for (name, value) in values {
        match protocol {
            Protocol::DataV1 => {
                stream.push_str("2:");
                stream.push_str(&compact(&[value]));
                stream.push('\n');
            }
            Protocol::UiV1 => {
                stream.push_str("data: ");
                stream.push_str(&compact(&json!({"type": format!("data-{name}"), "data": value})));
                stream.push_str("\n\n");
            }
        }
    }
    if protocol == Protocol::UiV1 {
        stream.push_str("data: [DONE]\n\n");
    }
    stream
}

fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("JSON values have string keys and finite numbers")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Parser, Part};
    use super::*;

    #[test]
    fn both_protocols_have_their_form() {
        let values = || [("reasoning", json!({"type": "reasoning"})), ("intent-context", json!({"a": "\n"}))];
        assert_eq!(data(Protocol::DataV1, values()), "2:[{\"type\":\"reasoning\"}]\n2:[{\"a\":\"\\n\"}]\n");
        assert_eq!(
            data(Protocol::UiV1, values()),
            "data: {\"type\":\"data-reasoning\",\"data\":{\"type\":\"reasoning\"}}\n\n\
             data: {\"type\":\"data-intent-context\",\"data\":{\"a\":\"\\n\"}}\n\ndata: [DONE]\n\n"
        );
    }

    proptest! {
        #[test]
        fn what_is_rendered_is_read_again(text in any::<String>(), number in any::<i64>()) {
            let value = json!({"text": text, "number": number});
            for protocol in Protocol::ALL {
                let mut parser = Parser::new(protocol);
                let mut read = Vec::new();
                parser.push(data(protocol, [("x", value.clone())]).as_bytes(), |part| read.push(part));
                let values: Vec<_> = read.into_iter().map(|part| match part.unwrap() {
                    Part::Data { value, .. } => value,
                    other => panic!("{other:?}"),
                }).collect();
                prop_assert_eq!(values, vec![value.clone()]);
            }
        }
    }
}
