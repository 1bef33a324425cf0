//! Metadata from before version 1.0.0: ids were strings, threads were `inResponseTo` and `isPartOfThread`, words came
//! in any spelling, and there was no version.
//!
//! What can be told for sure is converted. What is missing is not made up: reading the result reports it.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::id::StructuredId;
use super::kind::Kind;
use super::schema::CURRENT;

/// Keys that hold ids, with the namespace and type of a bare name there.
const IDS: [(&str, &str, &str); 6] = [
    ("userId", "user", "user"),
    ("agentId", "agent", "agent"),
    ("chatId", "chat", "chat"),
    ("senderAgentId", "agent", "agent"),
    ("receiverAgentId", "agent", "agent"),
    ("assignedTo", "agent", "agent"),
];

/// Keys that hold a word of a vocabulary.
const WORDS: [&str; 7] = ["role", "importance", "processType", "source", "status", "priority", "communicationType"];

/// The step to version 1.0.0.
pub(super) fn modernise(kind: Kind, metadata: &mut Map<String, Value>) {
    for (key, namespace, entity) in IDS {
        if let Some(Value::String(name)) = metadata.get(key)
            && name.parse::<StructuredId>().is_err()
            && let Ok(id) = StructuredId::new(namespace, entity, name.as_str(), None)
        {
            metadata.insert(key.to_owned(), json!(id));
        }
    }
    for key in WORDS {
        // A message's or a thought's source and category are free text.
        let is_free = key == "source" && kind != Kind::Document;
        if let Some(Value::String(word)) = metadata.get(key)
            && !is_free
        {
            let word = word_of(key, word);
            metadata.insert(key.to_owned(), word.into());
        }
    }
    if let Some(Value::String(role)) = metadata.get("role") {
        let role = role_of(role);
        metadata.insert("role".to_owned(), role.into());
    }
    if kind == Kind::Message {
        give_thread(metadata);
    }
}

/// Today's spelling of a word: `InProgress`, `IN_PROGRESS` and `in-progress` are `in_progress`.
fn word_of(key: &str, word: &str) -> String {
    let mut spelt = String::new();
    let mut was_lower = false;
    for character in word.trim().chars() {
        if character.is_uppercase() && was_lower {
            spelt.push('_');
        }
        was_lower = character.is_lowercase();
        if matches!(character, '-' | ' ') { spelt.push('_') } else { spelt.extend(character.to_lowercase()) }
    }
    match (key, spelt.as_str()) {
        ("importance", "very_low") => "low".to_owned(),
        ("importance", "very_high") => "critical".to_owned(),
        ("status", "canceled") => "cancelled".to_owned(),
        _ => spelt,
    }
}

fn role_of(role: &str) -> &str {
    match role {
        "human" | "person" => "user",
        "agent" | "ai" | "bot" | "model" => "assistant",
        "function" => "tool",
        role => role,
    }
}

/// A thread from what there was instead of one. Where in it a message stands, a single message cannot tell: an answer
/// comes after what it answers.
fn give_thread(metadata: &mut Map<String, Value>) {
    let part_of = metadata.remove("isPartOfThread");
    if metadata.contains_key("thread") {
        return;
    }
    let answered = metadata.get("inResponseTo").and_then(Value::as_str);
    let named = part_of.as_ref().and_then(Value::as_str);
    if let Some(id) = named.or(answered) {
        let thread = json!({"id": id, "position": u8::from(answered.is_some())});
        metadata.insert("thread".to_owned(), thread);
    }
}

/// Brings the memories of a file up to date: an answer belongs to the thread of what it answers, wherever that stands,
/// and comes after it. Otherwise positions are given in the file's order.
#[derive(Debug, Default)]
pub struct Importer {
    /// What the file says of each message, by its id.
    said: HashMap<String, Said>,
    placed: HashMap<String, (String, u64)>,
    next: HashMap<(String, String), u64>,
}

/// What was said instead of a thread.
#[derive(Debug, Clone, Default)]
struct Said {
    answered: Option<String>,
    part_of: Option<String>,
    chat: String,
}

impl Said {
    fn of(metadata: &Map<String, Value>) -> Self {
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).map(str::to_owned);
        let chat = metadata.get("chatId").map(Value::to_string).unwrap_or_default();
        Self { answered: text("inResponseTo"), part_of: text("isPartOfThread"), chat }
    }
}

impl Importer {
    /// Takes note of a memory of the file. All of them are told before the first is brought up to date.
    pub fn learn(&mut self, kind: Kind, id: Option<&str>, metadata: &Map<String, Value>) {
        if let (Kind::Message, Some(id), false) = (kind, id, metadata.contains_key("thread")) {
            self.said.insert(id.to_owned(), Said::of(metadata));
        }
    }

    /// Brings one memory up to date. `id` is what others refer to it by.
    pub fn modernise(&mut self, kind: Kind, id: Option<&str>, metadata: &mut Map<String, Value>) {
        if kind == Kind::Message && !metadata.contains_key("thread") {
            let said = Said::of(metadata);
            let place = match id {
                Some(id) => Some(self.place(id, &said)),
                None => self.thread_of(None, &said).map(|thread| self.take_place(thread, &said.chat)),
            };
            if let Some((thread, position)) = place {
                metadata.insert("thread".to_owned(), json!({"id": thread, "position": position}));
            }
        }
        modernise(kind, metadata);
        metadata.insert("schemaVersion".to_owned(), CURRENT.to_string().into());
    }

    /// The place of a message; that of what it answers is taken before it.
    fn place(&mut self, id: &str, said: &Said) -> (String, u64) {
        let mut line = vec![(id.to_owned(), said.clone())];
        let mut seen = HashSet::from([id.to_owned()]);
        while let Some((_, said)) = line.last()
            && let Some(answered) = said.answered.clone()
            && !self.placed.contains_key(&answered)
            && let Some(question) = self.said.get(&answered).cloned()
            && seen.insert(answered.clone())
        {
            line.push((answered, question));
        }
        for (id, said) in line.into_iter().rev() {
            if !self.placed.contains_key(&id)
                && let Some(thread) = self.thread_of(Some(&id), &said)
            {
                let place = self.take_place(thread, &said.chat);
                self.placed.insert(id, place);
            }
        }
        self.placed.get(id).cloned().unwrap_or_default()
    }

    fn thread_of(&self, id: Option<&str>, said: &Said) -> Option<String> {
        let of_answered = |message: &String| match self.placed.get(message) {
            Some((thread, _)) => thread.clone(),
            None => message.clone(),
        };
        let named = said.part_of.clone().or_else(|| said.answered.as_ref().map(of_answered));
        // A message that others may answer begins a thread of its own.
        named.or_else(|| id.map(|id| format!("thread_{id}")))
    }

    fn take_place(&mut self, thread: String, chat: &str) -> (String, u64) {
        let next = self.next.entry((chat.to_owned(), thread.clone())).or_default();
        *next += 1;
        (thread, *next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
    fn check(kind: Kind, before: Value, after: Value) {
        let (Value::Object(mut metadata), shown) = (before.clone(), before) else { unreachable!() };
        modernise(kind, &mut metadata);
        assert_eq!(Value::Object(metadata), after, "of {shown}");
    }

    #[test]
    fn what_can_be_told_is_converted() {
        let id = |namespace: &str, entity: &str, id: &str| json!({"namespace": namespace, "type": entity, "id": id});
        check(
            Kind::Message,
            json!({"role": "ASSISTANT", "userId": "a:b", "agentId": "agent:agent:x", "isPartOfThread": "t", "mood": 1}),
            json!({
                "role": "assistant", "userId": id("user", "user", "a:b"), "agentId": "agent:agent:x", "mood": 1,
                "thread": {"id": "t", "position": 0},
            }),
        );
        check(
            Kind::Message,
            json!({"role": "Human", "inResponseTo": "m1", "source": "Some Web"}),
            json!({"role": "user", "inResponseTo": "m1", "source": "Some Web", "thread": {"id": "m1", "position": 1}}),
        );
        check(Kind::Task, json!({"status": "InProgress", "priority": "HIGH", "assignedTo": "x"}), {
            json!({"status": "in_progress", "priority": "high", "assignedTo": id("agent", "agent", "x")})
        });
        check(Kind::Document, json!({"source": "WEB", "importance": "very-high"}), {
            json!({"source": "web", "importance": "critical"})
        });
        // Nothing is made up.
        check(Kind::Message, json!({"isPartOfThread": true}), json!({}));
        // A thread that is there is left as it is.
        let placed = json!({"thread": {"id": "t", "position": 3}});
        check(Kind::Message, json!({"thread": {"id": "t", "position": 3}, "isPartOfThread": "u"}), placed);
    }

    #[test]
    fn each_id_and_each_word_has_its_form_of_today() {
        for (key, namespace) in [
            ("userId", "user"),
            ("agentId", "agent"),
            ("chatId", "chat"),
            ("senderAgentId", "agent"),
            ("receiverAgentId", "agent"),
            ("assignedTo", "agent"),
        ] {
            let id = json!({"namespace": namespace, "type": namespace, "id": "a:b"});
            check(Kind::Message, json!({key: "a:b"}), json!({key: id.clone()}));
            check(Kind::Message, json!({key: id.clone()}), json!({key: id}));
            check(Kind::Message, json!({key: "x:y:z:2"}), json!({key: "x:y:z:2"}));
        }
        for (key, before, after) in [
            ("role", "USER", "user"),
            ("role", "human", "user"),
            ("role", "Person", "user"),
            ("role", "agent", "assistant"),
            ("role", "AI", "assistant"),
            ("role", "bot", "assistant"),
            ("role", "model", "assistant"),
            ("role", "function", "tool"),
            ("role", "chloe", "chloe"),
            ("importance", "VERY_LOW", "low"),
            ("importance", "veryHigh", "critical"),
            ("processType", "Thought", "thought"),
            ("source", "WEB", "web"),
            ("status", "InProgress", "in_progress"),
            ("status", "in-progress", "in_progress"),
            ("status", " IN PROGRESS ", "in_progress"),
            ("status", "canceled", "cancelled"),
            ("priority", "URGENT", "urgent"),
            ("communicationType", "Broadcast", "broadcast"),
        ] {
            check(Kind::Document, json!({key: before}), json!({key: after}));
        }
        check(
            Kind::CognitiveProcess,
            json!({"source": "WEB", "category": "A B"}),
            json!({"source": "WEB", "category": "A B"}),
        );
    }

    #[test]
    fn a_file_s_answers_join_their_threads() {
        let mut importer = Importer::default();
        let mut place = |id: &str, metadata: Value| {
            let Value::Object(mut metadata) = metadata else { unreachable!() };
            importer.modernise(Kind::Message, Some(id), &mut metadata);
            assert_eq!(metadata["schemaVersion"], "1.0.0");
            metadata["thread"].clone()
        };
        assert_eq!(place("m1", json!({"chatId": "c"})), json!({"id": "thread_m1", "position": 0}));
        assert_eq!(
            place("m2", json!({"chatId": "c", "inResponseTo": "m1"})),
            json!({"id": "thread_m1", "position": 1})
        );
        assert_eq!(
            place("m3", json!({"chatId": "c", "inResponseTo": "m2"})),
            json!({"id": "thread_m1", "position": 2})
        );
        assert_eq!(place("m4", json!({"chatId": "c", "isPartOfThread": "t"})), json!({"id": "t", "position": 0}));
        assert_eq!(place("m5", json!({"chatId": "d", "isPartOfThread": "t"})), json!({"id": "t", "position": 0}));
    }

    #[test]
    fn an_answer_may_stand_before_its_question() {
        let mut importer = Importer::default();
        let lines = [
            ("a2", json!({"chatId": "c", "inResponseTo": "a1"})),
            ("q", json!({"chatId": "c"})),
            ("a1", json!({"chatId": "c", "inResponseTo": "q"})),
            // Two that answer each other begin somewhere.
            ("x", json!({"chatId": "c", "inResponseTo": "y"})),
            ("y", json!({"chatId": "c", "inResponseTo": "x"})),
        ];
        let lines = lines.map(|(id, metadata)| {
            let Value::Object(metadata) = metadata else { unreachable!() };
            importer.learn(Kind::Message, Some(id), &metadata);
            (id, metadata)
        });
        let places = lines.map(|(id, mut metadata)| {
            importer.modernise(Kind::Message, Some(id), &mut metadata);
            format!("{} {}", metadata["thread"]["id"].as_str().unwrap(), metadata["thread"]["position"])
        });
        assert_eq!(places, ["thread_q 2", "thread_q 0", "thread_q 1", "x 1", "x 0"]);
    }
}
