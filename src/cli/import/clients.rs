//! Servers of clients' configurations, as `mcp.servers`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::cli::output::Output;
use crate::cli::{CliError, Exit};
use crate::strict::write;
use crate::upstream::is_secret_key;

/// Keys that clients keep their servers under: Claude and Cursor, VS Code, Codex, opencode.
const KEYS: [&str; 4] = ["mcpServers", "servers", "mcp_servers", "mcp"];

/// What came of the files.
#[derive(Debug, Default)]
struct Taken {
    servers: BTreeMap<String, Value>,
    /// Variables that the secrets are to be put in, with where each stood.
    secrets: BTreeMap<String, String>,
    /// What could not be taken over, and why.
    left: Vec<String>,
}

pub(super) fn import(files: &[PathBuf], output: &mut Output) -> Result<Exit, CliError> {
    let mut taken = Taken::default();
    for file in files {
        taken.file(file)?;
    }
    let section = json!({"mcp": {"servers": taken.servers}});
    let text = write::yaml(&section);
    let report = json!({"configuration": text, "secrets": taken.secrets, "left": taken.left});
    output.show(&report, |out| {
        out.raw(text.as_bytes());
        for (variable, place) in &taken.secrets {
            out.note(&format!("set {variable} in the daemon's environment: the value of {place}"));
        }
        taken.left.iter().for_each(|left| out.note(left));
    });
    Ok(if taken.left.is_empty() { Exit::Success } else { Exit::Failure })
}

impl Taken {
    fn file(&mut self, file: &Path) -> Result<(), CliError> {
        let name = file.display().to_string();
        let unreadable =
            |source: Box<dyn std::error::Error + Send + Sync>| CliError::Read { file: name.clone(), source };
        let text = fs::read_to_string(file).map_err(|error| unreadable(error.into()))?;
        let is_toml = file.extension().is_some_and(|extension| extension == "toml");
        let value: Value = if is_toml {
            toml::from_str(&text).map_err(|error| unreadable(error.into()))?
        } else {
            serde_json::from_str(&text).map_err(|error| unreadable(error.into()))?
        };
        let Some(servers) = KEYS.iter().find_map(|key| value[*key].as_object()) else {
            let message = format!("there is no {} in it", KEYS.join(", no "));
            return Err(unreadable(message.into()));
        };
        for (server, settings) in servers {
            self.server(&name, server, settings);
        }
        Ok(())
    }

    fn server(&mut self, file: &str, name: &str, settings: &Value) {
        let place = format!("{file}: {name}");
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(ToOwned::to_owned)).collect()
        };
        let mut command = match &settings["command"] {
            Value::String(program) => vec![program.clone()],
            // opencode has the arguments in it.
            list => texts(list),
        };
        command.extend(texts(&settings["args"]));
        let program = command.first().map(Path::new).and_then(Path::file_name);
        let why = if settings["disabled"] == true || settings["enabled"] == false {
            Some("it is turned off there")
        } else if program.is_some_and(|program| program == "almanacd") {
            Some("it is this very program")
        } else if settings["type"] == "sse" {
            Some("it speaks the older transport by server-sent events; name its streamable HTTP address")
        } else {
            None
        };
        if let Some(why) = why {
            return self.left.push(format!("{place} was left out: {why}"));
        }
        let own = plain_name(name);
        if command.is_empty() || command[0].is_empty() {
            match settings["url"].as_str() {
                Some(url) => self.remote(&place, own, url, settings),
                None => self.left.push(format!("{place} was left out: it has neither a command nor a url")),
            }
            return;
        }
        let command: Vec<String> = command.iter().map(|part| references(part)).collect();
        let mut taken = Map::from_iter([("command".to_owned(), json!(command))]);
        let variables = settings["env"].as_object().or_else(|| settings["environment"].as_object());
        let mut env = Map::new();
        for (key, value) in variables.into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            let reference = references(&text);
            let is_literal_secret = reference == text && is_secret_key(key) && !text.is_empty();
            if is_literal_secret {
                self.secrets.insert(key.clone(), format!("{place}: {key}"));
            }
            env.insert(key.clone(), json!(if is_literal_secret { format!("${{env:{key}}}") } else { reference }));
        }
        if !env.is_empty() {
            taken.insert("env".to_owned(), Value::Object(env));
        }
        if let Some(cwd) = settings["cwd"].as_str() {
            taken.insert("cwd".to_owned(), json!(cwd));
        }
        self.take(&place, own, Value::Object(taken));
    }

    /// A server at a URL. Whatever its headers say in clear may be a secret.
    fn remote(&mut self, place: &str, own: String, url: &str, settings: &Value) {
        let mut taken = Map::from_iter([("url".to_owned(), json!(references(url)))]);
        let mut headers = Map::new();
        let given = settings["headers"].as_object().or_else(|| settings["http_headers"].as_object());
        for (key, value) in given.into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            let reference = references(&text);
            let is_literal = reference == text && (is_secret_key(key) || key.eq_ignore_ascii_case("authorization"));
            let value = if is_literal {
                let plain = |text: &str| text.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                let variable = format!("{}_{}", plain(&own), plain(key));
                self.secrets.insert(variable.clone(), format!("{place}: {key}"));
                format!("${{env:{variable}}}")
            } else {
                reference
            };
            headers.insert(key.clone(), json!(value));
        }
        // Codex names the variable.
        if let Some(variable) = settings["bearer_token_env_var"].as_str() {
            headers.insert("Authorization".to_owned(), json!(format!("Bearer ${{env:{variable}}}")));
        }
        if !headers.is_empty() {
            taken.insert("headers".to_owned(), Value::Object(headers));
        }
        self.take(place, own, Value::Object(taken));
    }

    fn take(&mut self, place: &str, own: String, taken: Value) {
        match self.servers.get(&own) {
            // Several clients have the same one.
            Some(known) if *known == taken => {}
            Some(_) => self.left.push(format!("{place} was left out: another server is called `{own}`")),
            None => drop(self.servers.insert(own, taken)),
        }
    }
}

/// `${NAME}` and `{env:NAME}` of clients as `${env:NAME}`.
fn references(text: &str) -> String {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find('{') {
        let (before, behind) = rest.split_at(start);
        let Some(end) = behind.find('}') else { break };
        let inside = &behind[1..end];
        let has_dollar = before.ends_with('$');
        let name = inside.strip_prefix("env:").or(has_dollar.then_some(inside)).filter(|name| is_name(name));
        if let Some(name) = name {
            out.push_str(before.strip_suffix('$').unwrap_or(before));
            out.push_str(&format!("${{env:{name}}}"));
        } else {
            out.push_str(before);
            // Of what is not known here nothing may be read as a reference.
            if has_dollar {
                out.push('$');
            }
            out.push_str(&behind[..=end]);
        }
        rest = &behind[end + 1..];
    }
    out + rest
}

/// The name as one of a server here: lower case, hyphens for what is not allowed.
pub(super) fn plain_name(name: &str) -> String {
    let plain = |character: char| {
        let character = character.to_ascii_lowercase();
        if character.is_ascii_lowercase() || character.is_ascii_digit() || "-_".contains(character) {
            character
        } else {
            '-'
        }
    };
    let plain: String = name.chars().map(plain).collect();
    let name = plain.trim_matches('-');
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    let name = if begins { name.to_owned() } else { format!("s{name}") };
    name.chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_clients_are_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let check = |file: &str, text: &str, servers: Value, secrets: &str, left: usize| {
            let path = directory.path().join(file);
            fs::write(&path, text).unwrap();
            let mut taken = Taken::default();
            taken.file(&path).unwrap();
            let names: Vec<&str> = taken.secrets.keys().map(String::as_str).collect();
            assert_eq!(json!(taken.servers), servers, "{text}");
            assert_eq!((names.join(" ").as_str(), taken.left.len()), (secrets, left), "{text}");
            assert!(!format!("{:?} {:?} {:?}", taken.servers, taken.secrets, taken.left).contains("s3cret"));
        };
        check(
            "claude.json",
            r#"{"mcpServers": {
                "Git Hub": {"command": "npx", "args": ["-y", "x"], "env": {"GITHUB_TOKEN": "s3cret", "TZ": "UTC"}},
                "far": {"url": "https://x", "headers": {"Authorization": "Bearer s3cret", "X-Team": "a"}},
                "none": {"type": "stdio"}
            }}"#,
            json!({"far": {
                "url": "https://x", "headers": {"Authorization": "${env:FAR_AUTHORIZATION}", "X-Team": "a"}
            }, "git-hub": {
                "command": ["npx", "-y", "x"], "env": {"GITHUB_TOKEN": "${env:GITHUB_TOKEN}", "TZ": "UTC"}
            }}),
            "FAR_AUTHORIZATION GITHUB_TOKEN",
            1,
        );
        check(
            "off.json",
            r#"{"mcpServers": {
                "almanac": {"command": "/usr/bin/almanacd", "args": ["mcp"]},
                "off": {"command": "x", "disabled": true},
                "off-too": {"command": "x", "enabled": false},
                "old": {"type": "sse", "url": "https://x/sse"}
            }}"#,
            json!({}),
            "",
            4,
        );
        let codex = [
            "[mcp_servers.files]",
            "command = \"srv\"",
            "args = [\"/a\"]",
            "[mcp_servers.files.env]",
            "API_KEY = \"${MY_KEY}\"",
        ];
        check(
            "config.toml",
            &codex.join("\n"),
            json!({"files": {"command": ["srv", "/a"], "env": {"API_KEY": "${env:MY_KEY}"}}}),
            "",
            0,
        );
        check(
            "opencode.json",
            r#"{"mcp": {"a": {
                "type": "local", "command": ["x", "{env:HOME}/y"], "environment": {"B": "${input:z}"}
            }}}"#,
            json!({"a": {"command": ["x", "${env:HOME}/y"], "env": {"B": "$${input:z}"}}}),
            "",
            0,
        );
    }
}
