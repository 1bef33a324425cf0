//! One server of a client's, in the words of `mcp.servers`.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::TakenSecret;
use super::references::{Referring, is_all_reference, referring};
use crate::upstream::is_secret_key;

/// Why a server is left out, and whether whoever used it misses it.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) why: String,
    pub(super) is_missed: bool,
}

/// A server as it would be here.
#[derive(Debug, Default)]
pub(super) struct ServerDraft {
    pub(super) settings: Value,
    /// Secrets of it, by the variables that they are to be put in.
    pub(super) secrets: BTreeMap<String, TakenSecret>,
    /// What of it is missed.
    pub(super) lost: Vec<String>,
    /// What is another than it was, and does the same.
    pub(super) said: Vec<String>,
}

/// Reads a server's settings; whatever nobody took is left.
struct Reading<'r> {
    /// What other servers have in the environment.
    known: &'r BTreeMap<String, TakenSecret>,
    /// Variables that some server names, which have a value of their own.
    named: &'r BTreeSet<String>,
    file: &'r str,
    place: &'r str,
    own: &'r str,
    rest: Map<String, Value>,
    home: Option<String>,
    draft: ServerDraft,
}

/// Ways to a server that are none of their own here.
const TRANSPORTS: [&str; 7] =
    ["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "local", "remote"];

impl ServerDraft {
    /// Of a client's `settings` of a server, in a file and a place of it; it is called `own` here. `known` are the
    /// secrets of others, and `named` the variables that some server names.
    pub(super) fn read(
        (known, named): (&BTreeMap<String, TakenSecret>, &BTreeSet<String>),
        (file, place): (&str, &str),
        own: &str,
        settings: &Value,
    ) -> Result<Self, LeftOut> {
        let missed = |why: &str| LeftOut { why: why.to_owned(), is_missed: true };
        let rest = settings.as_object().cloned().ok_or_else(|| missed("its settings are no mapping"))?;
        let home = env::var("HOME").ok().filter(|home| !home.is_empty());
        let mut reading = Reading { known, named, file, place, own, rest, home, draft: Self::default() };
        if reading.take_if("disabled", |value| value == true).is_some()
            || reading.take_if("enabled", |value| value == false).is_some()
        {
            return Err(missed("it is turned off there"));
        }
        reading.take_if("disabled", |value| value == false);
        reading.take_if("enabled", |value| value == true);
        for key in ["type", "transport"] {
            if reading.take_if(key, |value| value == "sse").is_some() {
                return Err(missed(
                    "it speaks the older transport by server-sent events; name its streamable HTTP address",
                ));
            }
            reading.take_if(key, |value| value.as_str().is_some_and(|value| TRANSPORTS.contains(&value)));
        }
        let command = reading.command();
        let program = command.first().map(Path::new).and_then(Path::file_name);
        if program.is_some_and(|program| program == "almanacd") {
            return Err(LeftOut { why: "it is this very program".to_owned(), is_missed: false });
        }
        let taken = if command.is_empty() || command[0].is_empty() {
            let url = ["url", "serverUrl", "httpUrl"].into_iter().find_map(|key| reading.text(key));
            let url = url.ok_or_else(|| missed("it has neither a command nor a url"))?;
            reading.remote(&url)?
        } else {
            reading.local(&command)
        };
        Ok(reading.finish(taken))
    }
}

impl Reading<'_> {
    fn take_if(&mut self, key: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        self.rest.get(key).is_some_and(fits).then(|| self.rest.remove(key)).flatten()
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let taken = self.take_if(key, Value::is_string)?;
        taken.as_str().map(ToOwned::to_owned)
    }

    fn mapping(&mut self, keys: &[&str]) -> Vec<(String, Value)> {
        let found = keys.iter().filter_map(|key| self.take_if(key, Value::is_object)).collect::<Vec<_>>();
        let members = found.into_iter().filter_map(|value| match value {
            Value::Object(members) => Some(members),
            _ => None,
        });
        members.flatten().collect()
    }

    fn lose(&mut self, what: impl Into<String>) {
        self.draft.lost.push(what.into());
    }

    /// The program and its arguments.
    fn command(&mut self) -> Vec<String> {
        let mut command = match self.take_if("command", |value| value.is_string() || value.is_array()) {
            // opencode has the arguments in it.
            Some(Value::Array(parts)) => self.texts("command", parts),
            Some(Value::String(program)) => vec![program],
            _ => Vec::new(),
        };
        if let Some(Value::Array(parts)) = self.take_if("args", Value::is_array) {
            command.extend(self.texts("args", parts));
        }
        command
    }

    fn texts(&mut self, key: &str, parts: Vec<Value>) -> Vec<String> {
        let mut texts = Vec::new();
        for part in parts {
            match part {
                Value::String(text) => texts.push(text),
                Value::Number(_) | Value::Bool(_) => {
                    self.draft.said.push(format!("`{part}` of `{key}` is no text, and became one"));
                    texts.push(part.to_string());
                }
                other => {
                    let kind = if other.is_null() { "null" } else { "a list or a mapping" };
                    self.lose(format!("an argument of `{key}` was left out: it is {kind}, no text"));
                }
            }
        }
        texts
    }

    /// A client's text in our words; what cannot be said is told of `key`.
    fn referring(&mut self, key: &str, text: &str, is_secret: bool) -> Referring {
        let home = self.home.clone();
        let read = referring(text, home.as_deref(), |input| {
            let name = plain_variable(input);
            let names = [name.clone(), format!("{}_{name}", plain_variable(self.own))];
            let of = format!("input `{input}` of {}", self.place);
            // The same for all servers of the file that want it.
            let value = format!("{}\0{input}", self.file);
            self.variable(names, &value, of)
        });
        for lost in &read.lost {
            // What stands in it may be a secret.
            let lost = if is_secret { "it has what the client alone knows, and is a text here" } else { lost };
            self.lose(format!("`{key}`: {lost}"));
        }
        read
    }

    /// A value that is no secret by its name.
    fn expanded(&mut self, key: &str, text: &str) -> Referring {
        let read = self.referring(key, text, false);
        if let Some(name) = &read.defaulted {
            let what = format!("`{key}` has the default of `${{{name}:-…}}`, whatever {name} is: there are none here");
            self.lose(what);
        }
        read
    }

    /// The variable for a secret: the first of the names that is free or has just this secret.
    fn variable(&mut self, names: [String; 2], value: &str, place: String) -> String {
        let [first, second] = names;
        let more = (2..).map(|number| format!("{second}_{number}"));
        let mut names = [first, second.clone()].into_iter().chain(more);
        let is_free = |name: &String| {
            let taken = self.draft.secrets.get(name).or_else(|| self.known.get(name));
            !self.named.contains(name) && taken.is_none_or(|secret| secret.value == value)
        };
        let name = names.find(is_free).unwrap_or(second);
        let fresh = || TakenSecret { value: value.to_owned(), places: Vec::new() };
        let secret = self.draft.secrets.entry(name.clone()).or_insert_with(fresh);
        if !secret.places.contains(&place) {
            secret.places.push(place);
        }
        name
    }

    /// What a variable or a header is set to; nothing if it is neither a text nor like one.
    fn value(&mut self, of: &str, key: &str, value: &Value, is_secret: bool, names: [String; 2]) -> Option<String> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                self.lose(format!("`{of}`: `{key}` was left out: it is no text"));
                return None;
            }
        };
        let read = if is_secret { self.referring(key, &text, true) } else { self.expanded(key, &text) };
        if !is_secret || read.text.is_empty() {
            return Some(read.text);
        }
        if read.has_variable {
            let is_hidden = is_all_reference(&read.text);
            if !is_hidden {
                self.lose(format!(
                    "`{of}`: `{key}` was left out: it has a secret beside a variable; name one for both"
                ));
            }
            return is_hidden.then_some(read.text);
        }
        let place = format!("{}: {key}", self.place);
        // One with a default has a variable already.
        let names = match read.defaulted {
            Some(name) => [name, names[1].clone()],
            None => names,
        };
        let variable = self.variable(names, &read.text, place);
        Some(format!("${{env:{variable}}}"))
    }

    /// A program.
    fn local(&mut self, command: &[String]) -> Map<String, Value> {
        let command: Vec<String> = command.iter().map(|part| self.expanded("command", part).text).collect();
        let mut taken = Map::from_iter([("command".to_owned(), json!(command))]);
        let mut variables = Map::new();
        for (key, value) in self.mapping(&["env", "environment"]) {
            let names = [key.clone(), format!("{}_{key}", plain_variable(self.own))];
            let value = self.value("env", &key, &value, is_secret_key(&key), names);
            variables.extend(value.map(|value| (key, json!(value))));
        }
        // Codex names those that are passed on.
        if let Some(Value::Array(names)) = self.take_if("env_vars", Value::is_array) {
            for name in names {
                match name.as_str() {
                    Some(name) => drop(variables.insert(name.to_owned(), json!(format!("${{env:{name}}}")))),
                    None => self.lose("one of `env_vars` was left out: it is no text"),
                }
            }
        }
        if !variables.is_empty() {
            taken.insert("env".to_owned(), Value::Object(variables));
        }
        if let Some(cwd) = self.text("cwd") {
            let read = self.expanded("cwd", &cwd);
            if read.has_variable {
                self.lose(format!("`cwd` was left out: `{cwd}` names variables, which it cannot here"));
            } else if !read.text.is_empty() {
                taken.insert("cwd".to_owned(), json!(read.text.replace("$${", "${")));
            }
        }
        taken
    }

    /// A server at a URL. Whatever its headers say in clear may be a secret.
    fn remote(&mut self, url: &str) -> Result<Map<String, Value>, LeftOut> {
        let read = self.expanded("url", url);
        if read.has_variable || !read.lost.is_empty() {
            let why = "its url names variables, which it cannot here; write it out".to_owned();
            return Err(LeftOut { why, is_missed: true });
        }
        let mut taken = Map::from_iter([("url".to_owned(), json!(read.text))]);
        let mut headers = Map::new();
        for (key, value) in self.mapping(&["headers", "http_headers"]) {
            let name = format!("{}_{}", plain_variable(self.own), plain_variable(&key));
            let is_secret = is_secret_key(&key) || key.eq_ignore_ascii_case("authorization");
            let value = self.value("headers", &key, &value, is_secret, [name.clone(), name]);
            headers.extend(value.map(|value| (key, json!(value))));
        }
        // Codex names the variables.
        for (key, variable) in self.mapping(&["env_http_headers"]) {
            match variable.as_str() {
                Some(variable) => drop(headers.insert(key, json!(format!("${{env:{variable}}}")))),
                None => self.lose(format!("`env_http_headers`: `{key}` was left out: it is no text")),
            }
        }
        if let Some(variable) = self.text("bearer_token_env_var") {
            headers.insert("Authorization".to_owned(), json!(format!("Bearer ${{env:{variable}}}")));
        }
        if !headers.is_empty() {
            taken.insert("headers".to_owned(), Value::Object(headers));
        }
        Ok(taken)
    }

    /// With what both kinds have; the rest is lost.
    fn finish(mut self, mut taken: Map<String, Value>) -> ServerDraft {
        let limits = [("tool_timeout_sec", "timeout", 1000.0), ("startup_timeout_sec", "start_timeout", 1000.0)];
        for (theirs, ours, ms) in limits.into_iter().chain([("startup_timeout_ms", "start_timeout", 1.0)]) {
            let limit = self.take_if(theirs, |value| value.as_f64().is_some_and(|limit| limit * ms >= 1.0));
            if let Some(limit) = limit.as_ref().and_then(Value::as_f64) {
                let ms = (limit * ms).round() as u64;
                let said = if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") };
                if ours == "timeout" && ms > 3_600_000 {
                    taken.insert("max_timeout".to_owned(), json!(said));
                }
                taken.insert(ours.to_owned(), json!(said));
            }
        }
        let unread: Vec<String> = self.rest.keys().map(|key| format!("`{key}`")).collect();
        if !unread.is_empty() {
            let were = if unread.len() == 1 { "was" } else { "were" };
            self.lose(format!("{} {were} not taken over", unread.join(", ")));
        }
        self.draft.settings = Value::Object(taken);
        self.draft
    }
}

/// The text as a part of a variable's name.
fn plain_variable(text: &str) -> String {
    text.to_ascii_uppercase().replace(|character: char| !character.is_ascii_alphanumeric(), "_")
}
