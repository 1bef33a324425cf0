//! What a model answered, as far as it can be believed.
//!
//! The answer is a stranger's as well: the model may be wrong, the message may have talked it into something, the
//! endpoint may be another than was meant. Only names of candidates count, once each. A reasoning that comes with
//! invented names, or speaks of a tool that was not shown, is left out. Errors carry none of the answer's text, since
//! they are logged.

use super::{LlmError, Opinion};
use crate::strict::decode::decode;
use crate::strict::read::{Limits, json};
use crate::strict::{FromNode, Node, UnreadableKind};

/// Longest reasoning, in characters: two sentences have fewer.
const MAX_REASONING_CHARS: usize = 600;

/// An answer after everything that must not be in it was taken out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) opinion: Opinion,
    /// Names that no candidate has.
    pub(super) dropped: usize,
}

/// Reads the body of a chat completion whose question had these candidates.
pub(super) fn read(body: &[u8], candidates: &[&str]) -> Result<Heard, LlmError> {
    let envelope = parse(body, "response")?;
    let message = choice(envelope).ok_or(malformed("response", "it has no message"))?;
    if matches!(value(&message, "refusal"), Some(Node::String(refusal)) if !refusal.is_empty()) {
        return Err(LlmError::Declined);
    }
    let Some(Node::String(content)) = value(&message, "content") else {
        return Err(malformed("response", "its message is no text"));
    };
    let answer: Answer = decode(parse(unfenced(content).as_bytes(), "answer")?)
        .map_err(|faults| malformed("answer", faults.first().map_or("bad-value", |fault| fault.code.as_str())))?;
    answer.believed(candidates)
}

fn malformed(what: &'static str, reason: &'static str) -> LlmError {
    LlmError::Malformed { what, reason }
}

fn parse(text: &[u8], what: &'static str) -> Result<Node, LlmError> {
    json(text, &Limits::of_bytes(text.len())).map_err(|error| {
        let reason = match error.kind {
            UnreadableKind::Syntax => "it is not JSON",
            UnreadableKind::Encoding => "it is not UTF-8",
            UnreadableKind::TooLarge | UnreadableKind::TooManyNodes => "it has too many values",
            UnreadableKind::TooDeep => "it is nested too deep",
            UnreadableKind::DuplicateKey => "it has a key twice",
        };
        malformed(what, reason)
    })
}

/// The first choice's message. Endpoints add keys of their own, so that unknown ones are none of our business.
fn choice(envelope: Node) -> Option<Node> {
    let Node::List(choices) = take(envelope, "choices")? else { return None };
    take(choices.into_iter().next()?, "message")
}

fn take(node: Node, key: &str) -> Option<Node> {
    let Node::Map(entries) = node else { return None };
    entries.into_iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn value<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let Node::Map(entries) = node else { return None };
    entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

/// The text inside a code fence: many models cannot leave it out.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    // The fence's first line may name a language.
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, inner)| inner)
}

#[derive(FromNode)]
struct Answer {
    ranked: Vec<String>,
    reasoning: Option<String>,
}

impl Answer {
    fn believed(self, candidates: &[&str]) -> Result<Heard, LlmError> {
        let said = self.ranked.len();
        let mut ranked: Vec<String> = Vec::new();
        let mut dropped = 0;
        for name in self.ranked {
            if !candidates.contains(&name.as_str()) {
                dropped += 1;
            } else if !ranked.contains(&name) {
                ranked.push(name);
            }
        }
        if said > 0 && ranked.is_empty() {
            return Err(malformed("answer", "it names none of the candidates"));
        }
        let reasoning = self
            .reasoning
            .map(|text| one_line(&text))
            .filter(|text| dropped == 0 && !text.is_empty() && !names_a_stranger(text, candidates));
        Ok(Heard { opinion: Opinion { ranked, reasoning }, dropped })
    }
}

/// Does a text speak of what looks like a tool and is no candidate? Words with an underscore look like one.
fn names_a_stranger(text: &str, candidates: &[&str]) -> bool {
    text.split(|char: char| !char.is_alphanumeric() && !"_-.:".contains(char))
        .map(|word| word.trim_matches(['-', '.', ':']))
        .any(|word| word.contains('_') && !candidates.contains(&word))
}

/// Without control characters, those that change the direction of text, and superfluous white space, and not too long.
fn one_line(text: &str) -> String {
    let words: Vec<String> = text
        .split(|char: char| char.is_whitespace() || char.is_control())
        .map(|word| word.chars().filter(|char| !is_direction(*char)).collect::<String>())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_REASONING_CHARS) {
        None => line,
        Some(_) => line.chars().take(MAX_REASONING_CHARS - 1).chain(['…']).collect(),
    }
}

/// Marks, embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9, table 4).
fn is_direction(char: char) -> bool {
    matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const CANDIDATES: [&str; 3] = ["web_search", "file_read", "answer"];

    fn envelope(content: &Value) -> Vec<u8> {
        let message = json!({"role": "assistant", "content": content, "annotations": []});
        json!({"id": "x", "choices": [{"index": 0, "message": message}], "usage": {"total_tokens": 3}})
            .to_string()
            .into_bytes()
    }

    #[track_caller]
    fn check(content: &str, ranked: &[&str], reasoning: Option<&str>, dropped: usize) {
        let heard = read(&envelope(&content.into()), &CANDIDATES).unwrap();
        let opinion = Opinion {
            ranked: ranked.iter().map(|&name| name.to_owned()).collect(),
            reasoning: reasoning.map(str::to_owned),
        };
        assert_eq!(heard, Heard { opinion, dropped }, "{content}");
    }

    #[track_caller]
    fn check_refused(body: &[u8], part: &str) {
        let error = read(body, &CANDIDATES).unwrap_err().to_string();
        assert!(error.contains(part), "{error} does not say {part}");
    }

    #[test]
    fn names_and_a_reasoning_are_heard() {
        let good = r#"{"ranked": ["file_read", "web_search"], "reasoning": "A file.\n\tThen `web_search`."}"#;
        let both = &["file_read", "web_search"];
        check(good, both, Some("A file. Then `web_search`."), 0);
        check(&format!("```json\n{good}\n```"), both, Some("A file. Then `web_search`."), 0);
        check(&format!(" \n```\n{good}```\n"), both, Some("A file. Then `web_search`."), 0);
        check(r#"{"ranked": ["answer", "answer"], "reasoning": null}"#, &["answer"], None, 0);
        check(r#"{"ranked": []}"#, &[], None, 0);
        check(r#"{"ranked": [], "reasoning": " \u0007\u202e "}"#, &[], None, 0);
    }

    #[test]
    fn what_is_invented_does_not_count() {
        check(r#"{"ranked": ["rm_rf", "answer"], "reasoning": "Use it."}"#, &["answer"], None, 1);
        check(r#"{"ranked": ["Answer", "answer "," answer", "answer"]}"#, &["answer"], None, 3);
        check(r#"{"ranked": ["answer"], "reasoning": "Then call transfer_all_funds."}"#, &["answer"], None, 0);
        check(
            r#"{"ranked": ["answer"], "reasoning": "Not (file_read): other."}"#,
            &["answer"],
            Some("Not (file_read): other."),
            0,
        );
        check_refused(&envelope(&r#"{"ranked": ["rm_rf"]}"#.into()), "none of the candidates");
    }

    #[test]
    fn what_is_not_an_answer_is_refused() {
        let body = |content: &str| envelope(&content.into());
        check_refused(b"", "response cannot be used: it is not JSON");
        check_refused(b"\xff\xfe", "it is not UTF-8");
        check_refused(&[b'['; 5000], "it is nested too deep");
        check_refused(b"{\"choices\": [], \"choices\": []}", "it has a key twice");
        check_refused(b"{\"choices\": []}", "it has no message");
        check_refused(b"{\"choices\": [{\"message\": \"x\"}]}", "its message is no text");
        check_refused(&envelope(&json!(["x"])), "its message is no text");
        check_refused(&body("I think web_search is best."), "answer cannot be used: it is not JSON");
        check_refused(&body(r#"{"ranked": ["answer"]} and more"#), "it is not JSON");
        check_refused(&body(r#"{"ranked": "answer"}"#), "wrong-type");
        check_refused(&body(r#"{"ranked": [1]}"#), "wrong-type");
        check_refused(&body(r#"{"reasoning": "x"}"#), "missing-key");
        check_refused(&body(r#"{"ranked": [], "tools": []}"#), "unknown-key");
        let refusal = json!({"choices": [{"message": {"content": null, "refusal": "I cannot."}}]}).to_string();
        check_refused(refusal.as_bytes(), "declined");
    }

    #[test]
    fn a_long_reasoning_is_cut() {
        let text = one_line(&"é ".repeat(MAX_REASONING_CHARS));
        assert_eq!(text.chars().count(), MAX_REASONING_CHARS);
        assert!(text.ends_with('…'));
        let fits = "é".repeat(MAX_REASONING_CHARS);
        assert_eq!(one_line(&fits), fits);
    }

    proptest! {
        #[test]
        fn only_candidates_come_through(
            names in prop::collection::vec("web_search|answer|[a-z_]{0,6}", 0..12),
            text in any::<String>(),
        ) {
            let content = json!({"ranked": names, "reasoning": text}).to_string();
            if let Ok(Heard { opinion, .. }) = read(&envelope(&content.into()), &CANDIDATES) {
                prop_assert!(opinion.ranked.iter().all(|name| CANDIDATES.contains(&name.as_str())));
                let reasoning = opinion.reasoning.unwrap_or_default();
                prop_assert!(reasoning.chars().count() <= MAX_REASONING_CHARS);
                prop_assert!(!reasoning.chars().any(|char| char.is_control() || is_direction(char)));
            }
        }

        #[test]
        fn what_is_believed_is_believed_again(
            names in prop::collection::vec("web_search|answer|[a-z_]{0,6}", 0..12),
            text in "([a-z_ é\\n\u{202e}\u{7}]|answer|web_search){0,700}",
        ) {
            let content = json!({"ranked": names, "reasoning": text}).to_string();
            let known = names.iter().filter(|name| CANDIDATES.contains(&name.as_str()));
            match read(&envelope(&content.into()), &CANDIDATES) {
                Ok(Heard { opinion, dropped }) => {
                    prop_assert_eq!(dropped, names.len() - known.clone().count());
                    prop_assert!(known.clone().all(|name| opinion.ranked.contains(name)));
                    let places = opinion.ranked.iter().map(|name| names.iter().position(|other| other == name));
                    prop_assert!(places.collect::<Vec<_>>().is_sorted_by(|one, next| one < next));
                    let again = json!({"ranked": opinion.ranked, "reasoning": opinion.reasoning}).to_string();
                    let again = read(&envelope(&again.into()), &CANDIDATES).unwrap();
                    prop_assert_eq!(again, Heard { opinion, dropped: 0 });
                }
                Err(_) => prop_assert!(!names.is_empty() && known.count() == 0),
            }
        }

        #[test]
        fn half_an_answer_is_none(text in "[a-z\"\\\\{}]{0,20}", cut in 0.0..1.0_f64) {
            let content = json!({"ranked": ["answer"], "reasoning": text}).to_string();
            let whole = envelope(&content.clone().into());
            let half = |whole: &[u8]| (whole.len() as f64 * cut) as usize;
            prop_assert!(read(&whole, &CANDIDATES).is_ok());
            prop_assert!(read(&whole[..half(&whole)], &CANDIDATES).is_err());
            let content = &content[..half(content.as_bytes())];
            prop_assert!(read(&envelope(&content.into()), &CANDIDATES).is_err());
        }
    }
}
