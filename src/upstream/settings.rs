//! Which servers there are, and how each is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::client_credentials::ClientCredentials;
use crate::oauth::reach::is_loopback_host;
use crate::strict::values::OneOrMany;
use crate::strict::{At, Fields, FromNode, Node, Violation, Word};
use crate::sum::Sum;

/// Servers at once; each is a process.
pub(super) const MAX_SERVERS: usize = 64;

/// Longest name of a server, in characters: it begins the names of its tools, which end at 50.
const MAX_NAME: usize = 32;

/// Of the section `mcp`, what is about servers.
#[derive(Debug, Clone, PartialEq, FromNode)]
#[node(default)]
pub struct Settings {
    /// The servers by their names.
    #[node(check = check_servers)]
    pub servers: BTreeMap<String, ServerSettings>,
    /// A directory of files with further `servers`, which is watched; it need not be there.
    pub directory: PathBuf,
    /// Where lists and pins are kept: below the state directory.
    #[node(skip)]
    pub kept: PathBuf,
    /// Use file events for the directory; as for the tool documents.
    #[node(skip)]
    pub watch: bool,
    /// Longest time between two looks at the directory; that of the tool documents.
    #[node(skip)]
    pub poll_interval: Duration,
}

/// One server. It has exactly one of `command`, `socket` and `url`.
#[derive(Debug, Clone, PartialEq, FromNode)]
#[node(default, check = check_server)]
pub struct ServerSettings {
    /// The program and its arguments.
    #[node(read = command)]
    pub command: Option<Vec<String>>,
    /// A Unix socket, on which each connection is a server.
    pub socket: Option<PathBuf>,
    /// Where a server answers over HTTP.
    pub url: Option<String>,
    /// Sent with each request to the URL.
    pub headers: BTreeMap<String, String>,
    /// Sent instead for callers with a token, by its name.
    pub headers_by_token: BTreeMap<String, BTreeMap<String, String>>,
    /// With what tokens for the URL are asked for at the authorization server that it names.
    pub client_credentials: Option<ClientCredentials>,
    /// Variables of the program's environment, beside the few that every one gets.
    pub env: BTreeMap<String, String>,
    /// Where the program runs; its home directory by default.
    pub cwd: Option<PathBuf>,
    /// All that the program may write, and read beyond the system's own directories; everything by default.
    pub files: Option<Vec<PathBuf>>,
    /// Begins the names of its tools instead of the server's name; empty for none.
    #[node(check = check_prefix)]
    pub prefix: Option<String>,
    /// Category of its tools.
    pub category: Option<String>,
    /// How long a call may take; learnt by default.
    pub timeout: Option<Duration>,
    /// How long a call may take that the server's progress prolongs.
    pub max_timeout: Duration,
    /// From the start until the lists are there.
    pub start_timeout: Duration,
    /// Calls at once; further ones wait.
    #[schemars(range(min = 1, max = 1024))]
    pub max_in_flight: usize,
    /// Ended when nothing was asked of it for so long; never by default.
    pub idle_stop: Option<Duration>,
    /// A process, or a connection, for each session instead of one for all.
    pub per_session: bool,
    /// When a definition is taken for the one that was meant.
    pub pins: PinPolicy,
    /// What becomes of a definition that changed; `warn` by default, and `block` where definitions need an approval.
    pub on_change: Option<OnChange>,
    /// Shown instead of what the server says of itself.
    pub instructions: Option<String>,
    /// Write the arguments of calls to the log.
    pub log_arguments: bool,
    /// Believe the server's `readOnlyHint`.
    pub trust_annotations: bool,
    /// What becomes of a direct call that its client will not wait for.
    pub on_timeout: OnTimeout,
}

/// When a definition is taken for the one that was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "snake_case")]
pub enum PinPolicy {
    /// When it is first seen.
    FirstUse,
    /// When somebody approves it.
    Approved,
}

/// What becomes of a definition that is another than was pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum OnChange {
    /// The old one is listed, and calls are refused.
    Block,
    /// The new one is listed, and the log says so.
    Warn,
}

/// What becomes of a direct call that its client will not wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum OnTimeout {
    /// It goes on until the client gives it up.
    Cancel,
    /// The client gets a handle for the result.
    Handle,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            servers: BTreeMap::new(),
            directory: "/etc/almanac/mcp.d".into(),
            kept: PathBuf::new(),
            watch: true,
            poll_interval: Duration::from_secs(30),
        }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            command: None,
            socket: None,
            url: None,
            headers: BTreeMap::new(),
            headers_by_token: BTreeMap::new(),
            client_credentials: None,
            env: BTreeMap::new(),
            cwd: None,
            files: None,
            prefix: None,
            category: None,
            timeout: None,
            max_timeout: Duration::from_secs(3600),
            start_timeout: Duration::from_secs(60),
            max_in_flight: 32,
            idle_stop: None,
            per_session: false,
            pins: PinPolicy::FirstUse,
            on_change: None,
            instructions: None,
            log_arguments: false,
            trust_annotations: false,
            on_timeout: OnTimeout::Cancel,
        }
    }
}

impl ServerSettings {
    /// What becomes of a definition that changed.
    pub fn on_change(&self) -> OnChange {
        let is_blocked = self.pins == PinPolicy::Approved || self.url.is_some();
        self.on_change.unwrap_or(if is_blocked { OnChange::Block } else { OnChange::Warn })
    }

    /// What tells one way to a server from another: what was learnt about it holds as long as this is the same.
    pub(super) fn hash(&self) -> Sum {
        Sum::of(format!("{:?} {:?} {:?} {:?}", self.command, self.socket, self.env, self.url).as_bytes())
    }

    /// The texts that may name secrets, each with its key.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let command = self.command.iter().flatten().map(|part| ("command", part.as_str()));
        let by_token = self.headers_by_token.values().flatten();
        let named = self.env.iter().chain(&self.headers).chain(by_token);
        let credentials = self.client_credentials.iter().flat_map(ClientCredentials::texts);
        command.chain(named.map(|(key, value)| (key.as_str(), value.as_str()))).chain(credentials)
    }
}

fn command(node: Node, at: &mut At) -> Option<Vec<String>> {
    let OneOrMany(parts) = OneOrMany::<String>::from_node(node, at)?;
    if parts.first().is_none_or(String::is_empty) {
        at.bad_value("a command has a program");
    }
    if parts.len() == 1 && parts[0].contains(' ') {
        at.bad_value("a command is a list, such as [npx, -y, some-server]; no shell takes it apart");
    }
    Some(parts)
}

fn check_server(server: &ServerSettings, fields: &mut Fields<'_>) {
    let ways = [server.command.is_some(), server.socket.is_some(), server.url.is_some()];
    match ways.iter().filter(|is_given| **is_given).count() {
        0 => fields.bad_value("command", "a server has a `command` or a `socket`, or a `url`"),
        1 => {}
        _ => fields.bad_value("socket", "a server has a `command`, a `socket` or a `url`, not both"),
    }
    if let Some(url) = &server.url {
        let uri = url.parse::<hyper::Uri>().ok().filter(|uri| uri.host().is_some());
        match uri.as_ref().and_then(|uri| uri.scheme_str()) {
            Some("http" | "https") => {}
            _ => fields.bad_value("url", format!("`{url}` is no URL, such as https://mcp.example.com/mcp")),
        }
        check_credentials(server, uri.as_ref(), fields);
    } else if server.client_credentials.is_some() {
        fields.bad_value("client_credentials", "`client_credentials` are for a `url`");
    } else if !server.headers.is_empty() || !server.headers_by_token.is_empty() {
        fields.bad_value("headers", "`headers` are sent to a `url`");
    }
    for name in server.headers.keys().chain(server.headers_by_token.values().flat_map(BTreeMap::keys)) {
        if hyper::header::HeaderName::try_from(name.as_str()).is_err() {
            fields.bad_value("headers", format!("`{name}` is no name of a header"));
        }
    }
    if server.command.is_none() && (server.files.is_some() || server.cwd.is_some() || !server.env.is_empty()) {
        fields.bad_value("socket", "`env`, `cwd` and `files` are for a `command`; who listens on a socket has its own");
    }
    if server.timeout.is_some_and(|timeout| timeout > server.max_timeout) {
        fields.bad_value("timeout", "must not be longer than `max_timeout`");
    }
    for (key, text) in server.texts() {
        if let Err(error) = super::secret::check(text) {
            let field = match key {
                "command" => "command",
                key if server.env.contains_key(key) => "env",
                "client_secret" | "private_key" => "client_credentials",
                _ => "headers",
            };
            fields.bad_value(field, error.to_string());
        }
    }
}

fn check_credentials(server: &ServerSettings, uri: Option<&hyper::Uri>, fields: &mut Fields<'_>) {
    if server.client_credentials.is_none() {
        return;
    }
    if uri.is_some_and(|uri| uri.scheme_str() == Some("http") && !is_loopback_host(uri)) {
        fields.bad_value("client_credentials", "tokens would travel readable: the `url` has to be https");
    }
    if server.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        fields.bad_value("client_credentials", "there is an Authorization among the `headers` already");
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Violation> {
    name_fault(name).map_or(Ok(()), |fault| Err(fault.into()))
}

/// What begins the names of a server's tools; empty for nothing.
pub fn prefix_of(name: &str, settings: &ServerSettings) -> String {
    settings.prefix.clone().unwrap_or_else(|| name.replace('_', "-"))
}

/// Why this is no name for a server, if so.
pub fn name_fault(name: &str) -> Option<String> {
    let fits = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
        && name.starts_with(|first: char| first.is_ascii_lowercase());
    let fault = || format!("`{name}` is no name for a server: a-z, 0-9, - and _, a letter first, {MAX_NAME} at most");
    (!fits).then(fault)
}

fn check_servers(servers: &BTreeMap<String, ServerSettings>) -> Result<(), Violation> {
    if servers.len() > MAX_SERVERS {
        return Err(format!("there are {} servers, {MAX_SERVERS} at most", servers.len()).into());
    }
    servers.keys().try_for_each(|name| check_name(name))
}

fn check_prefix(prefix: &str) -> Result<(), Violation> {
    if prefix.is_empty() { Ok(()) } else { check_name(prefix) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::strict::load;
    use crate::strict::read::Limits;

    fn check(yaml: &str, expected: &str) {
        let read = load::parse::<Settings>(Path::new("x.yaml"), yaml.as_bytes(), &Limits::of_bytes(1 << 20));
        let said = match read {
            Ok(settings) => format!("{} servers", settings.servers.len()),
            Err(faults) => faults
                .iter()
                .map(|fault| {
                    format!("{}:{} {} {}", fault.line, fault.column, fault.message, fault.hint.as_deref().unwrap_or(""))
                })
                .collect::<Vec<_>>()
                .join("\n"),
        };
        assert!(said.contains(expected), "{yaml}\n{said}");
    }

    #[test]
    fn servers_are_read_strictly() {
        check("servers: {a: {command: [x, y], env: {T: '${env:T}'}}, b: {socket: /s}}", "2 servers");
        check("servers: {a: {command: x, max_in_fligth: 3}}", "did you mean `max_in_flight`?");
        check("servers: {a: {}}", "a server has a `command` or a `socket`");
        check("servers: {a: {command: x, socket: /s}}", "not both");
        check("servers: {a: {url: 'https://x/mcp', headers: {Authorization: 'Bearer ${env:T}'}}}", "1 servers");
        check("servers: {a: {url: x, command: x}}", "not both");
        check("servers: {a: {url: 'ftp://x'}}", "`ftp://x` is no URL");
        check("servers: {a: {command: x, headers: {A: b}}}", "are sent to a `url`");
        check("servers: {a: {url: 'https://x', headers: {'A b': c}}}", "`A b` is no name of a header");
        check("servers: {a: {url: 'https://x', headers: {A: '${file:x}'}}}", "`${file:x}`");
        let with = |url: &str, more: &str| format!("servers: {{a: {{url: '{url}', {more}}}}}");
        let credentials = |more: &str| format!("client_credentials: {{client_id: me{more}}}");
        let secret = credentials(", client_secret: '${env:S}', scopes: [a, b], issuer: 'https://as'");
        check(&with("https://x", &secret), "1 servers");
        check(&with("http://127.0.0.1:1", &secret), "1 servers");
        check(&with("http://x", &secret), "the `url` has to be https");
        check(&with("https://x", &format!("headers: {{authorization: b}}, {secret}")), "an Authorization among");
        check(&format!("servers: {{a: {{command: x, {secret}}}}}"), "are for a `url`");
        check(&with("https://x", &credentials("")), "either a `client_secret` or a `private_key`");
        check(&with("https://x", &credentials(", client_secret: a, private_key: b")), "either a `client_secret`");
        check(&with("https://x", &credentials(", private_key: '${file:x}'")), "`${file:x}`");
        check(&with("https://x", &credentials(", client_secret: a, scopes: ['a b']")), "`a b` is no scope");
        check(&with("https://x", &credentials(", client_secret: a, issuer: as")), "`as` is no URL");
        check("servers: {a: {command: npx -y thing}}", "a command is a list");
        check("servers: {a: {command: []}}", "a command has a program");
        check("servers: {a: {socket: /s, env: {A: b}}}", "who listens on a socket has its own");
        check("servers: {Ab: {command: x}}", "`Ab` is no name for a server");
        check("servers: {a: {command: x, prefix: 'a b'}}", "`a b` is no name");
        check("servers: {a: {command: x, prefix: ''}}", "1 servers");
        check("servers: {a: {command: x, timeout: 2h}}", "must not be longer than `max_timeout`");
        check("servers: {a: {command: x, env: {A: '${file:x}'}}}", "`${file:x}`");
        check("servers: {a: {command: x, pins: aproved}}", "approved");
        check("servers: {a: {command: x, max_in_flight: 0}}", "must be 1 to 1024");
        let many: String = (0..65).map(|n| format!("  s{n}: {{command: x}}\n")).collect();
        check(&format!("servers:\n{many}"), "there are 65 servers, 64 at most");
    }
}
