//! Which model is asked, and what a question to it may cost.

use std::path::PathBuf;
use std::time::Duration;

use super::Endpoint;
use crate::strict::FromNode;

/// The section `qualifier.llm` of the configuration: a model behind an OpenAI-compatible endpoint.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
pub struct Settings {
    /// Where it is asked.
    pub url: Endpoint,
    /// Its name there.
    #[node(check = check_model)]
    pub model: String,
    /// The environment variable that holds the key.
    #[node(check = check_variable)]
    pub api_key_env: Option<String>,
    /// Certificates, in PEM, of the authorities that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// What a question may cost.
    #[node(flatten)]
    pub limits: QuestionLimits,
}

/// What a question to a model may cost.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default)]
pub struct QuestionLimits {
    /// From the question to the answer's last byte, further attempts included.
    #[node(check = check_timeout)]
    pub timeout: Duration,
    /// Tools that are shown to it, best ones first.
    #[schemars(range(min = 1, max = 200))]
    pub max_candidates: usize,
    /// Size of what is shown to it, message and tools together, in bytes of JSON.
    #[schemars(range(min = 4096, max = 1 << 20))]
    pub max_prompt_bytes: usize,
    /// Size of its answer, in bytes.
    #[schemars(range(min = 4096, max = 1 << 20))]
    pub max_answer_bytes: usize,
    /// Questions at once; further ones are answered without it.
    #[schemars(range(min = 1, max = 1024))]
    pub max_concurrent: usize,
    /// Failures in a row after which it is left alone.
    #[schemars(range(min = 1, max = 1000))]
    pub max_failures: usize,
    /// For how long, at first; it doubles with each failure from then on.
    pub pause: Duration,
}

impl Default for QuestionLimits {
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

fn check_model(name: &str) -> Result<(), &'static str> {
    let is_name = (1..=200).contains(&name.len()) && !name.contains(char::is_control);
    if is_name { Ok(()) } else { Err("a model's name has 1 to 200 bytes and no control characters") }
}

fn check_variable(name: &str) -> Result<(), &'static str> {
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if is_name { Ok(()) } else { Err("the name of an environment variable, not the key itself") }
}

/// A message waits for the answer, and a request for the message.
fn check_timeout(timeout: &Duration) -> Result<(), &'static str> {
    let fits = (Duration::from_millis(10)..=Duration::from_secs(30)).contains(timeout);
    if fits { Ok(()) } else { Err("must be 10ms to 30s") }
}
