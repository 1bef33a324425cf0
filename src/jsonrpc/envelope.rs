//! One message: its envelope is read, its payload is not.

use std::str;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::{ErrorObject, code};
use super::id::Id;
use super::nesting;

/// What a message may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLimits {
    /// Size of its JSON, in bytes.
    pub bytes: usize,
    /// Brackets within each other; the frames of the envelope count as two.
    pub depth: usize,
}

impl MessageLimits {
    /// Messages of up to this many bytes, of common depth.
    pub const fn of_bytes(bytes: usize) -> Self {
        // What serde_json reads at most, so that a payload can be read later on.
        Self { bytes, depth: 127 }
    }
}

/// A message.
#[derive(Debug, Clone)]
pub enum Envelope<'a> {
    /// Wants an answer.
    Request {
        /// Comes back with the answer.
        id: Id,
        /// What is asked.
        method: String,
        /// An object or a list, if it is there.
        params: Option<&'a RawValue>,
    },
    /// Wants none.
    Notification {
        /// What is told.
        method: String,
        /// An object or a list, if it is there.
        params: Option<&'a RawValue>,
    },
    /// An answer.
    Response {
        /// Of the request; nothing if it could not be read.
        id: Option<Id>,
        /// The result, or the error.
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

/// No message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Longer than the limit.
    #[error("the message has more than {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: usize,
        /// Of the request, if it is one.
        id: Option<Id>,
    },
    /// Deeper than the limit.
    #[error("the message is nested deeper than {limit}")]
    TooDeep {
        /// Brackets within each other.
        limit: usize,
        /// Of the request, if it is one.
        id: Option<Id>,
    },
    /// Not JSON.
    #[error("not JSON: {0}")]
    Syntax(#[source] serde_json::Error),
    /// A list of messages.
    #[error("batches are not supported; send one message at a time")]
    Batch,
    /// JSON, but not what a message is.
    #[error("not a JSON-RPC 2.0 message: {why}")]
    Invalid {
        /// Of the request, if it can be told.
        id: Option<Id>,
        /// What is missing or wrong.
        why: &'static str,
    },
}

impl MessageError {
    /// The error as it is answered.
    pub fn to_object(&self) -> ErrorObject {
        let code = match self {
            Self::Syntax(_) => code::PARSE,
            Self::TooLarge { .. } | Self::TooDeep { .. } | Self::Batch | Self::Invalid { .. } => code::INVALID_REQUEST,
        };
        ErrorObject::new(code, self.to_string())
    }

    /// Whom to answer, if that can be told.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Self::TooLarge { id, .. } | Self::TooDeep { id, .. } | Self::Invalid { id, .. } => id.as_ref(),
            Self::Syntax(_) | Self::Batch => None,
        }
    }
}

/// Members that are there, null included.
#[derive(Deserialize)]
struct RawEnvelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Envelope<'a> {
    /// Reads one message.
    pub fn read(json: &'a [u8], limits: MessageLimits) -> Result<Self, MessageError> {
        if json.len() > limits.bytes {
            return Err(MessageError::TooLarge { limit: limits.bytes, id: id_of(json) });
        }
        if nesting::is_deeper(json, limits.depth) {
            return Err(MessageError::TooDeep { limit: limits.depth, id: id_of(json) });
        }
        if json.trim_ascii_start().first() == Some(&b'[') {
            // Whether it is a batch or broken, it is answered alike but for the code.
            return Err(match serde_json::from_slice::<&RawValue>(json) {
                Ok(_) => MessageError::Batch,
                Err(error) => MessageError::Syntax(error),
            });
        }
        match serde_json::from_slice::<RawEnvelope<'a>>(json) {
            Ok(envelope) => envelope.open(),
            Err(error) if error.is_data() => {
                Err(MessageError::Invalid { id: None, why: "it is no object, or has a member twice" })
            }
            Err(error) => Err(MessageError::Syntax(error)),
        }
    }
}

impl<'a> RawEnvelope<'a> {
    fn open(self) -> Result<Envelope<'a>, MessageError> {
        let id = self.id.and_then(Id::read);
        let invalid = |id: Option<Id>, why| Err(MessageError::Invalid { id, why });
        if self.jsonrpc.is_none_or(|version| version.get() != r#""2.0""#) {
            return invalid(id, "`jsonrpc` must be \"2.0\"");
        }
        let is_structured = |params: &&RawValue| params.get().starts_with(['{', '[']);
        if self.params.is_some_and(|params| !is_structured(&params)) {
            return invalid(id, "`params` must be an object");
        }
        let Some(method) = self.method else {
            return match (self.result, self.error) {
                (_, Some(error)) => Ok(Envelope::Response { id, outcome: Err(error) }),
                (Some(_), None) if id.is_none() => invalid(None, "a result needs the `id` of its request"),
                (Some(result), None) => Ok(Envelope::Response { id, outcome: Ok(result) }),
                (None, None) => invalid(id, "there is no `method`, no `result` and no `error`"),
            };
        };
        let Ok(method) = serde_json::from_str::<String>(method.get()) else {
            return invalid(id, "`method` must be a text");
        };
        match (id, self.id) {
            (Some(id), _) => Ok(Envelope::Request { id, method, params: self.params }),
            (None, None) => Ok(Envelope::Notification { method, params: self.params }),
            (None, Some(_)) => invalid(None, "`id` must be a text or a number"),
        }
    }
}

/// The id of a request that is not read: who sent it waits for an answer.
fn id_of(json: &[u8]) -> Option<Id> {
    let envelope = serde_json::from_slice::<RawEnvelope<'_>>(json).ok()?;
    envelope.method.and(envelope.id).and_then(Id::read)
}

/// The messages of a batch, each to be read by itself; nothing if it is none.
pub fn members(json: &[u8], limits: MessageLimits) -> Option<Vec<&RawValue>> {
    let fits = json.len() <= limits.bytes && json.trim_ascii_start().first() == Some(&b'[');
    if fits { serde_json::from_slice(json).ok() } else { None }
}

/// Writes messages. Each is one line without its end, whatever lines the payload had.
impl Envelope<'_> {
    /// A request.
    pub fn write_request(id: &Id, method: &str, params: Option<&RawValue>) -> String {
        let mut text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{}"#, quoted(method));
        push_params(&mut text, params);
        text
    }

    /// A notification.
    pub fn write_notification(method: &str, params: Option<&RawValue>) -> String {
        let mut text = format!(r#"{{"jsonrpc":"2.0","method":{}"#, quoted(method));
        push_params(&mut text, params);
        text
    }

    /// The answer to a request.
    pub fn write_result(id: &Id, result: &RawValue) -> String {
        let mut text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
        text.reserve(result.get().len() + 1);
        push_line(&mut text, result.get());
        text.push('}');
        text
    }

    /// The failure of a request; of one that could not be read without an id.
    pub fn write_error(id: Option<&Id>, error: &ErrorObject) -> String {
        let error = serde_json::to_string(error).unwrap_or_default();
        Self::write_raw_error(id, &error)
    }

    /// The failure of a request that somebody else found; `error` must be JSON.
    pub fn write_raw_error(id: Option<&Id>, error: &str) -> String {
        let mut text = format!(r#"{{"jsonrpc":"2.0","id":{},"error":"#, id.map_or("null", Id::as_json));
        push_line(&mut text, error);
        text.push('}');
        text
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn push_params(text: &mut String, params: Option<&RawValue>) {
    if let Some(params) = params {
        text.push_str(r#","params":"#);
        push_line(text, params.get());
    }
    text.push('}');
}

/// Between tokens a line's end is space; within a text JSON has none.
fn push_line(text: &mut String, json: &str) {
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none() {
        return text.push_str(json);
    }
    text.extend(json.chars().map(|character| if matches!(character, '\n' | '\r') { ' ' } else { character }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::object::tests::value;
    use super::*;

    const LIMITS: MessageLimits = MessageLimits { bytes: 1000, depth: 10 };

    fn shown(json: &str) -> String {
        match Envelope::read(json.as_bytes(), LIMITS) {
            Ok(Envelope::Request { id, method, params }) => {
                format!("request {id} {method} {}", params.map_or("-", RawValue::get))
            }
            Ok(Envelope::Notification { method, params }) => {
                format!("notification {method} {}", params.map_or("-", RawValue::get))
            }
            Ok(Envelope::Response { id, outcome }) => {
                let id = id.map_or_else(|| "-".to_owned(), |id| id.to_string());
                let (kind, payload) = outcome.map_or_else(|error| ("error", error), |result| ("result", result));
                format!("{kind} {id} {}", payload.get())
            }
            Err(error) => format!("{} {} {error}", error.to_object().code, error.id().map_or("-", Id::as_json)),
        }
    }

    #[test]
    fn envelopes_are_told_apart() {
        let check = |json: &str, expected: &str| {
            let shown = shown(json);
            assert!(shown.starts_with(expected), "{json}: {shown}");
        };
        let params = r#"{"n":123456789012345678901234567890,"x": 1.50,"x":2}"#;
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":"a","method":"m/n","params":{params}}}"#),
            &format!(r#"request "a" m/n {params}"#),
        );
        check(r#" {"method":"m","id":1,"jsonrpc":"2.0","extra":{}} "#, "request 1 m -");
        check(r#"{"jsonrpc":"2.0","method":"m","params":null}"#, "notification m -");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a": 1}}"#, r#"result 1 {"a": 1}"#);
        check(r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result 1 null");
        check(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#, "result 1 null");
        check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#, r#"error - {"code":1}"#);
        check(r#"{"jsonrpc":"2.0","id":1}"#, "-32600 1 not a JSON-RPC 2.0 message: there is no `method`");
        check(r#"{"jsonrpc":"2.0","result":1}"#, "-32600 - ");
        check(r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, "-32600 1 ");
        check(r#"{"id":"x","method":"m"}"#, r#"-32600 "x" "#);
        check(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "-32600 - not a JSON-RPC 2.0 message: `id`");
        check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "-32600 1 ");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":7}"#, "-32600 1 ");
        check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "-32600 - ");
        check("7", "-32600 - ");
        check(r#"[{"jsonrpc":"2.0"}]"#, "-32600 - batches");
        check("[", "-32700 - ");
        check("", "-32700 - ");
        check(r#"{"jsonrpc":"2.0""#, "-32700 - ");
        check(&format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(1000)), "-32600 - the message has more");
        check(&format!(r#"{{"jsonrpc":"2.0","params":{}}}"#, "[".repeat(20)), "-32600 - the message is nested");
        let long = "x".repeat(1000);
        check(&format!(r#"{{"params":["{long}"],"id":"a","method":"m"}}"#), r#"-32600 "a" the message has more"#);
        check(&format!(r#"{{"result":["{long}"],"id":1}}"#), "-32600 - the message has more");
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        check(&format!(r#"{{"id":7,"method":"m","params":{deep}}}"#), "-32600 7 the message is nested");
        assert!(Envelope::read(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", LIMITS).is_err());
    }

    #[test]
    fn a_batch_is_read_member_by_member() {
        let json = br#" [{"jsonrpc":"2.0","method":"a"}, 7 ]"#;
        let members = members(json, LIMITS).unwrap();
        assert_eq!(members.iter().map(|raw| raw.get()).collect::<Vec<_>>(), [r#"{"jsonrpc":"2.0","method":"a"}"#, "7"]);
        assert!(super::members(b"{}", LIMITS).is_none() && super::members(b"[", LIMITS).is_none());
    }

    #[test]
    fn what_is_written_is_one_line() {
        let raw: &RawValue = serde_json::from_str("{\n\"a\":\r\n1}").unwrap();
        assert_eq!(
            Envelope::write_request(&Id::number(1), "m", Some(raw)),
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{ "a":  1}}"#
        );
        assert_eq!(Envelope::write_notification("m", None), r#"{"jsonrpc":"2.0","method":"m"}"#);
        assert_eq!(
            Envelope::write_error(None, &ErrorObject::new(code::PARSE, "no")),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#
        );
    }

    /// An object with some of a message's members, right and wrong ones.
    fn message() -> impl Strategy<Value = Value> {
        use prop::option::of as some;
        let texts = |all: &'static [&'static str]| prop::sample::select(all).prop_map(Value::from);
        let payload = || prop_oneof![Just(json!(null)), Just(json!({"a": [1]})), Just(json!([])), Just(json!("x"))];
        let id = prop_oneof![any::<u64>().prop_map(Value::from), "[a-zä\"\\\\]{0,3}".prop_map(Value::from), payload()];
        let method = prop_oneof![8 => "[a-z/\"]{0,6}".prop_map(Value::from), 1 => payload()];
        let version = prop_oneof![8 => texts(&["2.0"]), 1 => texts(&["1.0", ""]), 1 => payload()];
        (some(version), some(id), some(method), some(payload()), some(payload()), some(payload())).prop_map(
            |(version, id, method, params, result, error)| {
                let names = ["jsonrpc", "id", "method", "params", "result", "error"];
                let members = names.into_iter().zip([version, id, method, params, result, error]);
                members.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
            },
        )
    }

    /// What the tree of a message is; nothing if it is none.
    fn kind_of(message: &Value) -> Option<&'static str> {
        let there = |name: &str| message.get(name).filter(|value| !value.is_null());
        let has_id = there("id").is_some_and(|id| id.is_string() || id.is_number());
        let is_valid =
            message["jsonrpc"] == "2.0" && there("params").is_none_or(|params| params.is_object() || params.is_array());
        match message.get("method") {
            _ if !is_valid => None,
            Some(method) if !method.is_string() => None,
            Some(_) if has_id => Some("request"),
            Some(_) => message.get("id").is_none().then_some("notification"),
            None if there("error").is_some() => Some("error"),
            None => (message.get("result").is_some() && has_id).then_some("result"),
        }
    }

    proptest! {
        #[test]
        fn a_payload_is_not_touched(value in value(), number: u64) {
            let (json, id) = (value.to_string(), Id::number(number));
            let raw: &RawValue = serde_json::from_str(&json).unwrap();
            let written = Envelope::write_result(&id, raw);
            match Envelope::read(written.as_bytes(), MessageLimits::of_bytes(1 << 20)).unwrap() {
                Envelope::Response { id: Some(read), outcome: Ok(result) } => {
                    prop_assert_eq!((read, result.get()), (id, json.as_str()));
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn a_message_is_what_its_tree_says(message in message()) {
            let kind = shown(&message.to_string()).split(' ').next().map(str::to_owned);
            let expected = kind_of(&message);
            let is_refused = kind.as_deref() == Some("-32600");
            prop_assert_eq!(kind.as_deref().filter(|_| !is_refused), expected, "{}", message);
        }

        #[test]
        fn what_is_written_is_read_back(message in message()) {
            let json = message.to_string();
            if let Ok(read) = Envelope::read(json.as_bytes(), LIMITS) {
                let written = match read {
                    Envelope::Request { id, method, params } => Envelope::write_request(&id, &method, params),
                    Envelope::Notification { method, params } => Envelope::write_notification(&method, params),
                    Envelope::Response { id: Some(id), outcome: Ok(result) } => Envelope::write_result(&id, result),
                    Envelope::Response { id, outcome: Ok(payload) | Err(payload) } => {
                        Envelope::write_raw_error(id.as_ref(), payload.get())
                    }
                };
                prop_assert_eq!(shown(&written), shown(&json));
            }
        }

        #[test]
        fn a_message_that_is_cut_off_is_none(message in message(), cut in 0.0..1.0_f64) {
            let json = message.to_string();
            let half = &json[..json.floor_char_boundary((json.len() as f64 * cut) as usize)];
            prop_assert!(shown(half).starts_with("-32700 "), "{}", half);
        }
    }
}
