//! Servers of clients' configurations, as `mcp.servers`.

mod plain;
mod references;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::cli::Exit;
use crate::cli::output::Output;
use crate::strict::load;
use crate::strict::read::Limits;
use crate::strict::write;
use crate::upstream::Settings;
use server::ServerDraft;

/// Keys that clients keep their servers under: Claude and Cursor, VS Code, Codex, opencode.
const KEYS: [&str; 4] = ["mcpServers", "servers", "mcp_servers", "mcp"];

/// What came of the files.
#[derive(Debug, Default)]
struct Taken {
    servers: BTreeMap<String, Value>,
    /// Variables that the secrets are to be put in.
    secrets: BTreeMap<String, TakenSecret>,
    /// Variables that some server names: each has its value already.
    named: BTreeSet<String>,
    /// What could not be taken over, and why.
    left: Vec<String>,
    /// Is any of that missed by whoever used it?
    is_lossy: bool,
}

/// A secret that stood in clear.
#[derive(Debug, Clone)]
struct TakenSecret {
    value: String,
    /// Where it stood.
    places: Vec<String>,
}

pub(super) fn import(files: &[PathBuf], output: &mut Output) -> Exit {
    let taken = Taken::of(files);
    let section = json!({"mcp": {"servers": taken.servers}});
    let text = write::yaml(&section);
    let places = |secret: &TakenSecret| secret.places.join(" and of ");
    let secrets: BTreeMap<&String, String> =
        taken.secrets.iter().map(|(name, secret)| (name, places(secret))).collect();
    let report = json!({"configuration": text, "secrets": secrets, "left": taken.left});
    output.show(&report, |out| {
        out.raw(text.as_bytes());
        for (variable, place) in &secrets {
            out.note(&format!("set {variable} in the daemon's environment: the value of {place}"));
        }
        taken.left.iter().for_each(|left| out.note(left));
    });
    if taken.is_lossy { Exit::Failure } else { Exit::Success }
}

fn read(file: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    if file.extension().is_some_and(|extension| extension == "toml") {
        return toml::from_str(&text).map_err(|error| error.to_string());
    }
    serde_json::from_str(&plain::plain(&text)).map_err(|error| error.to_string())
}

/// Adds the variables that a file names, whose values are elsewhere: in texts, and where Codex names them.
fn name_variables(value: &Value, named: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => named.extend(references::named(text)),
        Value::Array(values) => values.iter().for_each(|value| name_variables(value, named)),
        Value::Object(values) => {
            for (key, value) in values {
                match (key.as_str(), value) {
                    ("env_vars", Value::Array(names)) => named.extend(texts(names.iter())),
                    ("env_http_headers", Value::Object(names)) => named.extend(texts(names.values())),
                    ("bearer_token_env_var", Value::String(name)) => drop(named.insert(name.clone())),
                    _ => name_variables(value, named),
                }
            }
        }
        _ => {}
    }
}

fn texts<'v>(values: impl Iterator<Item = &'v Value>) -> impl Iterator<Item = String> {
    values.filter_map(Value::as_str).map(str::to_owned)
}

impl Taken {
    fn of(files: &[PathBuf]) -> Self {
        let mut taken = Self::default();
        let read: Vec<_> = files.iter().map(|file| (file, read(file))).collect();
        for value in read.iter().filter_map(|(_, value)| value.as_ref().ok()) {
            name_variables(value, &mut taken.named);
        }
        for (file, value) in read {
            if let Err(why) = value.and_then(|value| taken.file(file, &value)) {
                taken.lose(format!("{} was left out: {why}", file.display()));
            }
        }
        taken
    }

    fn file(&mut self, file: &Path, value: &Value) -> Result<(), String> {
        let name = file.display().to_string();
        let sections: Vec<_> = KEYS.iter().filter_map(|key| section(value.get(*key)?)).collect();
        let of_projects = value["projects"].as_object().into_iter().flatten();
        let of_projects = of_projects.filter(|(_, project)| project["mcpServers"].as_object().is_some_and(has_any));
        let of_projects: Vec<_> = of_projects.map(|(project, _)| project).collect();
        if sections.is_empty() && of_projects.is_empty() {
            return Err(format!("there is no {} in it", KEYS.join(", no ")));
        }
        for (server, settings) in sections.into_iter().flatten() {
            self.server(&name, server, settings);
        }
        for project in of_projects {
            self.lose(format!("{name}: the servers of the project {project} were left out: each client has all here"));
        }
        Ok(())
    }

    fn server(&mut self, file: &str, name: &str, settings: &Value) {
        let place = format!("{file}: {name}");
        let own = plain_name(name);
        let draft = match ServerDraft::read((&self.secrets, &self.named), (file, &place), &own, settings) {
            Ok(draft) => draft,
            Err(left) => {
                self.left.push(format!("{place} was left out: {}", left.why));
                self.is_lossy |= left.is_missed;
                return;
            }
        };
        let ServerDraft { settings, secrets, lost, said } = draft;
        let why = match self.servers.get(&own) {
            // Several clients have the same one.
            Some(known) if *known == settings => None,
            Some(_) => Some(format!("another server is called `{own}`")),
            None => refused(&own, &settings),
        };
        if let Some(why) = why {
            return self.lose(format!("{place} was left out: {why}"));
        }
        if own != name {
            self.left.push(format!("{place} is called `{own}` here"));
        }
        self.servers.insert(own, settings);
        for (variable, secret) in secrets {
            let known =
                self.secrets.entry(variable).or_insert_with(|| TakenSecret { places: Vec::new(), ..secret.clone() });
            known.places.extend(secret.places);
        }
        self.left.extend(said.into_iter().map(|said| format!("{place}: {said}")));
        for lost in lost {
            self.lose(format!("{place}: {lost}"));
        }
    }

    /// What is missed by whoever used it.
    fn lose(&mut self, what: String) {
        self.left.push(what);
        self.is_lossy = true;
    }
}

/// The servers under a key; those of VS Code's settings stand one deeper.
fn section(value: &Value) -> Option<&Map<String, Value>> {
    let section = value.as_object()?;
    let is_server = |value: &Value| {
        ["command", "url", "type"].iter().any(|key| value.get(*key).is_some_and(|said| !said.is_object()))
    };
    let deeper = section.get("servers").filter(|deeper| !is_server(deeper)).and_then(Value::as_object);
    Some(deeper.unwrap_or(section))
}

fn has_any(servers: &Map<String, Value>) -> bool {
    !servers.is_empty()
}

/// Why the daemon would refuse a server, if so.
fn refused(name: &str, settings: &Value) -> Option<String> {
    let section = json!({"servers": {name: settings}}).to_string();
    let limits = Limits::of_bytes(section.len().max(1));
    let faults = load::parse::<Settings>(Path::new("servers.json"), section.as_bytes(), &limits).err()?;
    Some(faults.into_iter().map(|fault| fault.message).collect::<Vec<_>>().join("; "))
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

    /// Takes a file over, of which so much is left.
    fn check(file: &str, text: &str, servers: &Value, secrets: &str, left: usize) -> Taken {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file);
        fs::write(&path, text).unwrap();
        let taken = Taken::of(&[path]);
        let names: Vec<&str> = taken.secrets.keys().map(String::as_str).collect();
        assert_eq!(json!(taken.servers), *servers, "{text}");
        assert_eq!((names.join(" ").as_str(), taken.left.len()), (secrets, left), "{text} {:?}", taken.left);
        let places: Vec<_> = taken.secrets.values().flat_map(|secret| &secret.places).collect();
        assert!(!format!("{:?} {places:?} {:?}", taken.servers, taken.left).contains("s3cret"));
        taken
    }

    #[test]
    fn a_secret_takes_no_variable_that_another_names() {
        for servers in [["a", "b"], ["b", "a"]] {
            let env = |server: &str| if server == "a" { "${API_KEY}" } else { "s3cret" };
            let of =
                |server: &str| format!(r#""{server}": {{"command": "x", "env": {{"API_KEY": "{}"}}}}"#, env(server));
            let text = format!(r#"{{"mcpServers": {{{}}}}}"#, servers.map(of).join(","));
            let expected = json!({
                "a": {"command": ["x"], "env": {"API_KEY": "${env:API_KEY}"}},
                "b": {"command": ["x"], "env": {"API_KEY": "${env:B_API_KEY}"}},
            });
            check("c.json", &text, &expected, "B_API_KEY", 0);
        }
        let text =
            r#"{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "${A}s3cret", "PASSWORD": "x${s3cret-}y"}}}}"#;
        let expected = json!({"a": {"command": ["x"], "env": {"PASSWORD": "${env:PASSWORD}"}}});
        let taken = check("c.json", text, &expected, "PASSWORD", 2);
        assert!(taken.is_lossy);
    }

    #[test]
    fn servers_of_clients_are_taken_over() {
        check(
            "claude.json",
            r#"{"mcpServers": {
                "Git Hub": {"command": "npx", "args": ["-y", "x"], "env": {"GITHUB_TOKEN": "s3cret", "TZ": "UTC"}},
                "far": {"url": "https://x", "headers": {"Authorization": "Bearer s3cret", "X-Team": "a"}},
                "none": {"type": "stdio"}
            }}"#,
            &json!({"far": {
                "url": "https://x", "headers": {"Authorization": "${env:FAR_AUTHORIZATION}", "X-Team": "a"}
            }, "git-hub": {
                "command": ["npx", "-y", "x"], "env": {"GITHUB_TOKEN": "${env:GITHUB_TOKEN}", "TZ": "UTC"}
            }}),
            "FAR_AUTHORIZATION GITHUB_TOKEN",
            2,
        );
        check(
            "off.json",
            r#"{"mcpServers": {
                "almanac": {"command": "/usr/bin/almanacd", "args": ["mcp"]},
                "off": {"command": "x", "disabled": true},
                "off-too": {"command": "x", "enabled": false},
                "old": {"type": "sse", "url": "https://x/sse"}
            }}"#,
            &json!({}),
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
            &json!({"files": {"command": ["srv", "/a"], "env": {"API_KEY": "${env:MY_KEY}"}}}),
            "",
            0,
        );
        check(
            "opencode.json",
            r#"{"mcp": {"a": {
                "type": "local", "command": ["x", "{env:HOME}/y"], "environment": {"B": "${input:z}"}
            }, "b": {"url": "https://x", "headers": {"Authorization": "Bearer ${input:z}"}}}}"#,
            &json!({
                "a": {"command": ["x", "${env:HOME}/y"], "env": {"B": "${env:Z}"}},
                "b": {"url": "https://x", "headers": {"Authorization": "Bearer ${env:Z}"}}
            }),
            "Z",
            0,
        );
    }

    #[test]
    fn what_is_changed_or_missed_is_said() {
        let both = check(
            "both.json",
            r#"{"mcpServers": {
                "a": {"command": "x", "env": {"API_KEY": "s3cret a"}},
                "b": {"command": "y", "env": {"API_KEY": "s3cret b"}},
                "c": {"command": "z", "env": {"API_KEY": "s3cret a"}},
                "d": {"url": "https://x", "headers": {"X-Key": "s3cret"}},
                "D": {"url": "https://x", "headers": {"X-Key": "s3cret other"}}
            }}"#,
            &json!({
                "a": {"command": ["x"], "env": {"API_KEY": "${env:API_KEY}"}},
                "b": {"command": ["y"], "env": {"API_KEY": "${env:B_API_KEY}"}},
                "c": {"command": ["z"], "env": {"API_KEY": "${env:API_KEY}"}},
                "d": {"url": "https://x", "headers": {"X-Key": "${env:D_X_KEY}"}}
            }),
            "API_KEY B_API_KEY D_X_KEY",
            1,
        );
        assert_eq!(both.secrets["API_KEY"].places.len(), 2, "{:?}", both.secrets);
        check(
            "codex.toml",
            "[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"FOO\"]\ntool_timeout_sec = 45\nstartup_timeout_sec = 2.5\n\
             disabled_tools = [\"t\"]\n\
             [mcp_servers.b]\nurl = \"https://x\"\nenv_http_headers = { \"X-Other\" = \"OTHER\" }\n",
            &json!({
                "a": {
                    "command": ["x"], "env": {"FOO": "${env:FOO}"}, "timeout": "45s", "start_timeout": "2500ms"
                },
                "b": {"url": "https://x", "headers": {"X-Other": "${env:OTHER}"}}
            }),
            "",
            1,
        );
        check(
            "settings.json",
            "\u{feff}{ // settings\n\"mcp\": {\"inputs\": [], \"servers\": {\n\
             \"x\": {\"command\": \"npx\", \"args\": [\"a\",],},}},}",
            &json!({"x": {"command": ["npx", "a"]}}),
            "",
            0,
        );
        check(
            "cursor.json",
            r#"{"mcpServers": {
                "w": {"serverUrl": "https://w/mcp"},
                "t": {"transport": "sse", "url": "https://t/sse"},
                "n": {"command": "x", "args": ["-p", 3000, {"a": 1}], "env": {"N": 3, "O": {}}, "envFile": ".env"},
                "o": {"command": "x", "args": "a b", "env": {"U": "${BAZ:-def}", "PASSWORD": "${PW:-s3cret}"}},
                "v": {"command": "${workspaceFolder}/s"},
                "shell": {"command": "x -y z"},
                "ftp": {"url": "ftp://x"},
                "u": {"url": "https://${HOST}/mcp"}
            }}"#,
            &json!({
                "n": {"command": ["x", "-p", "3000"], "env": {"N": "3"}},
                "o": {"command": ["x"], "env": {"U": "def", "PASSWORD": "${env:PW}"}},
                "v": {"command": ["$${workspaceFolder}/s"]},
                "w": {"url": "https://w/mcp"}
            }),
            "PW",
            // t; n: 3000, the mapping, O, envFile; o: args, the default; v, shell, ftp, u.
            11,
        );
    }

    #[test]
    fn what_is_asked_for_in_two_files_may_be_another() {
        let mut taken = Taken::default();
        for (file, name) in [("one.json", "a"), ("two.json", "b")] {
            taken.server(file, name, &json!({"command": "x", "env": {"K": "${input:key}"}}));
        }
        let names: Vec<&str> = taken.secrets.keys().map(String::as_str).collect();
        assert_eq!(names, ["B_KEY", "KEY"]);
    }

    #[test]
    fn one_faulty_file_does_not_lose_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let check = |file: &str, text: &[u8], expected: Result<bool, &str>| {
            let path = directory.path().join(file);
            fs::write(&path, text).unwrap();
            let mut taken = Taken::default();
            match (read(&path).and_then(|value| taken.file(&path, &value)), expected) {
                (Ok(()), Ok(is_lossy)) => assert_eq!(taken.is_lossy, is_lossy, "{file}: {:?}", taken.left),
                (Err(why), Err(part)) => assert!(why.contains(part), "{file}: {why}"),
                (other, _) => panic!("{file}: {other:?}"),
            }
        };
        check("utf-16.json", b"\xff\xfe", Err("UTF-8"));
        check("broken.json", b"{", Err("EOF"));
        check("none.json", b"{\"foo\": 1}", Err("there is no mcpServers"));
        check("list.json", b"{\"mcpServers\": [1]}", Err("there is no mcpServers"));
        check("self.json", b"{\"mcpServers\": {\"a\": {\"command\": \"almanacd\", \"args\": [\"mcp\"]}}}", Ok(false));
        check("off.json", b"{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": true}}}", Ok(true));
        check("odd.json", b"{\"mcpServers\": {\"a\": 1}}", Ok(true));
        check("claude.json", b"{\"projects\": {\"/p\": {\"mcpServers\": {\"a\": {}}}}}", Ok(true));
    }
}
