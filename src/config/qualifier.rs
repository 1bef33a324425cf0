//! The configuration of how tools are chosen for a message.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::read::set_within;
use crate::llm::Endpoint;
use crate::strict::{At, Fields, FromNode, Node};

/// Times that a message may wait for a model; longer than a request may take is too long.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(30);

/// How tools are chosen for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Qualifier {
    /// Learn from the tools that are called after messages. The messages are kept for that.
    pub learn: bool,
    /// Tools offered at most, where a request does not say.
    pub max_tools: usize,
    /// A message with this confidence replaces what the conversation was about, 0 to 1.
    pub new_context: f64,
    /// What a conversation is about is kept for so many turns.
    pub max_turns: u64,
    /// The model that is asked for its opinion; none by default.
    pub llm: Option<Llm>,
}

/// A model behind an OpenAI-compatible endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Llm {
    /// Where it is asked.
    pub url: Endpoint,
    /// Its name there.
    pub model: String,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// Certificates, in PEM, of the authorities that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// What a question may cost.
    pub limits: LlmLimits,
}

/// What a question to a model may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmLimits {
    /// From the question to the answer's last byte, further attempts included.
    pub timeout: Duration,
    /// Tools that are shown to it, best ones first.
    pub max_candidates: usize,
    /// Size of what is shown to it, message and tools together, in bytes of JSON.
    pub max_prompt_bytes: usize,
    /// Size of its answer, in bytes.
    pub max_answer_bytes: usize,
    /// Questions at once; further ones are answered without it.
    pub max_concurrent: usize,
    /// Failures in a row after which it is left alone.
    pub max_failures: usize,
    /// For how long, at first; it doubles with each failure from then on.
    pub pause: Duration,
}

impl Default for LlmLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(2),
            max_candidates: 40,
            max_prompt_bytes: 32 * 1024,
            max_answer_bytes: 64 * 1024,
            max_concurrent: 4,
            max_failures: 5,
            pause: Duration::from_secs(5),
        }
    }
}

impl Default for Qualifier {
    fn default() -> Self {
        Self { learn: true, max_tools: 100, new_context: 0.5, max_turns: 5, llm: None }
    }
}

impl FromNode for Qualifier {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let mut qualifier = Self { llm: fields.optional("llm"), ..Self::default() };
            fields.set("learn", &mut qualifier.learn);
            set_within(fields, "max_tools", &mut qualifier.max_tools, 1, 10_000);
            if let Some(share) = fields.optional::<Share>("new_context") {
                qualifier.new_context = share.0;
            }
            fields.set("max_turns", &mut qualifier.max_turns);
            qualifier
        })
    }
}

/// A number from 0 to 1.
struct Share(f64);

impl FromNode for Share {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let Node::Number(number) = &node else {
            at.wrong_type("a number", &node);
            return None;
        };
        let share = number.as_f64().filter(|share| (0.0..=1.0).contains(share));
        if share.is_none() {
            at.bad_value("must be 0 to 1");
        }
        share.map(Self)
    }
}

impl FromNode for Llm {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let Url(url) = fields.required("url");
            let Model(model) = fields.required("model");
            let (api_key_env, ca_file) = (variable(fields), fields.optional("ca_file"));
            let limits = LlmLimits::read(fields);
            url.map(|url| Self { url, model, api_key_env, ca_file, limits })
        })
        .flatten()
    }
}

impl LlmLimits {
    fn read(fields: &mut Fields<'_>) -> Self {
        let mut limits = Self::default();
        fields.set("timeout", &mut limits.timeout);
        if !TIMEOUTS.contains(&limits.timeout) {
            fields.bad_value("timeout", "must be 10ms to 30s");
        }
        set_within(fields, "max_candidates", &mut limits.max_candidates, 1, 200);
        set_within(fields, "max_prompt_bytes", &mut limits.max_prompt_bytes, 4096, 1 << 20);
        set_within(fields, "max_answer_bytes", &mut limits.max_answer_bytes, 4096, 1 << 20);
        set_within(fields, "max_concurrent", &mut limits.max_concurrent, 1, 1024);
        set_within(fields, "max_failures", &mut limits.max_failures, 1, 1000);
        fields.set("pause", &mut limits.pause);
        limits
    }
}

fn variable(fields: &mut Fields<'_>) -> Option<String> {
    let name: Option<String> = fields.optional("api_key_env");
    let is_name = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
    };
    if name.as_deref().is_some_and(|name| !is_name(name)) {
        fields.bad_value("api_key_env", "the name of an environment variable, not the key itself");
    }
    name
}

#[derive(Default)]
struct Url(Option<Endpoint>);

impl FromNode for Url {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match String::from_node(node, at)?.parse() {
            Ok(endpoint) => Some(Self(Some(endpoint))),
            Err(error) => {
                at.bad_value(error.to_string());
                None
            }
        }
    }
}

#[derive(Default)]
struct Model(String);

impl FromNode for Model {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let name = String::from_node(node, at)?;
        if name.is_empty() || name.len() > 200 || name.contains(char::is_control) {
            at.bad_value("a model's name has 1 to 200 bytes and no control characters");
        }
        Some(Self(name))
    }
}
