//! The configuration: its file, its defaults, and what the command line and the environment put in their place.
//!
//! A flag beats the environment, which beats the file. Every key is optional; an unknown one is an error.

mod plugins;
mod qualifier;
mod read;

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use plugins::{INSTALLED as INSTALLED_PLUGINS, Isolation, Plugins};
pub use qualifier::{Llm, LlmLimits, Qualifier};

use crate::store::Durability;
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::strict::diagnostic::{self, Diagnostic};
use crate::strict::read::{Limits, yaml};
use crate::usage::PriceTable;

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// Where an installed daemon keeps its state.
const INSTALLED_STATE: &str = "/var/lib/almanac";
/// Where an installed daemon is administered.
const INSTALLED_SOCKET: &str = "/run/almanac/admin.sock";

/// The tokens of an installed daemon.
const INSTALLED_TOKENS: &str = "/etc/almanac/tokens";

/// Largest configuration file, in bytes.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The address of the HTTP door.
    pub listen: SocketAddr,
    /// The administrator's Unix socket, if not where [`Config::admin_socket`] says by default.
    pub admin_socket: Option<PathBuf>,
    /// Directories of tool documents, earlier ones first.
    pub tool_metadata: Vec<PathBuf>,
    /// Where the daemon keeps what it must not forget.
    pub state_dir: PathBuf,
    /// Threads that answer requests.
    pub workers: usize,
    /// How long requests in flight may take to finish at the end.
    pub drain_timeout: Duration,
    /// Limits of the HTTP door.
    pub http: Http,
    /// How tool documents are read.
    pub catalog: Catalog,
    /// The file of token hashes.
    pub tokens_file: Option<PathBuf>,
    /// How durations are said.
    pub timing: Timing,
    /// The durations that stand in for history: the file beside the configuration, if there is one.
    pub timing_defaults: Option<PathBuf>,
    /// The directory of presets, which need not be there; without a configuration file the built-in ones are all there is.
    pub presets: Option<PathBuf>,
    /// How records are kept.
    pub store: Store,
    /// How tools are selected for messages.
    pub qualifier: Qualifier,
    /// Rule libraries.
    pub plugins: Plugins,
    /// The file of categories; without one the built-in ones stand in.
    pub categories: Option<PathBuf>,
    /// What models cost, by their names.
    pub prices: PriceTable,
    /// What is logged.
    pub log: Log,
}

/// How durations are said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// When callers that do not say give up, in ms.
    pub factory_timeout_ms: u64,
}

/// How records are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// What an acknowledgement is worth.
    pub durability: Durability,
    /// How long records are kept.
    pub retention: Duration,
    /// Batches that may wait.
    pub max_queue: usize,
}

/// Limits of the HTTP door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Connections at once; further ones wait in the kernel's queue.
    pub max_connections: usize,
    /// Size of a request's head, in bytes.
    pub max_header_bytes: usize,
    /// Size of a request's body, in bytes.
    pub max_body_bytes: usize,
    /// From a head's first byte to its last.
    pub header_read_timeout: Duration,
    /// Between two requests of one connection.
    pub idle_timeout: Duration,
    /// From a request's head to its answer's last byte.
    pub request_timeout: Duration,
    /// Size of a chat stream, in bytes.
    pub max_stream_bytes: usize,
    /// Longest silence in a chat stream: a tool may work for so long.
    pub stream_idle_timeout: Duration,
    /// Further values of `Host` that are let in on a loopback address; with any, the only ones elsewhere.
    pub allowed_hosts: Vec<String>,
}

/// How tool documents are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// Largest document, in bytes.
    pub max_document_bytes: usize,
    /// Longest time between two scans.
    pub poll_interval: Duration,
    /// Use file events.
    pub watch: bool,
    /// Reject a whole generation for one faulty document.
    pub strict_reload: bool,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How it looks.
    pub format: LogFormat,
    /// A level, or directives such as `info,almanac::http=debug`.
    pub level: String,
}

/// How the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// The journal's fields under systemd, else text.
    Auto,
    /// Lines for people.
    Text,
    /// A JSON object per line.
    Json,
    /// Fields for systemd's journal.
    Journald,
}

/// What the command line and the environment say.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Configuration")]
pub struct Overrides {
    /// Configuration file [default: ./config/almanac.yaml, else /etc/almanac/almanac.yaml, else built in]
    #[arg(long, env = "ALMANAC_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of tool documents; repeatable [default: ./tool_metadata, else /etc/almanac/tool_metadata and
    /// /usr/share/almanac/tool_metadata]
    #[arg(long, env = "ALMANAC_TOOL_METADATA", value_name = "DIR", value_delimiter = ':')]
    pub tool_metadata: Vec<PathBuf>,
    /// Rule library, or directory of rule libraries; repeatable [default: libalmanac_reasoning.so beside the program, then
    /// /usr/lib/almanac/plugins]
    #[arg(long, env = "ALMANAC_PLUGINS", value_name = "PATH", value_delimiter = ':')]
    pub plugins: Vec<PathBuf>,
}

/// What the command line and the environment say about the daemon itself.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Configuration")]
pub struct DaemonOverrides {
    /// Address of the HTTP door [default: 127.0.0.1:7311]
    #[arg(long, env = "ALMANAC_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// The administrator's Unix socket [default: admin.sock in the state directory;
    /// /run/almanac/admin.sock for an installed daemon]
    #[arg(long, env = "ALMANAC_ADMIN_SOCKET", value_name = "PATH")]
    pub admin_socket: Option<PathBuf>,
    /// Directory for what must not be forgotten [default: ./state, else /var/lib/almanac]
    #[arg(long, env = "ALMANAC_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// How the log looks
    #[arg(long, env = "ALMANAC_LOG_FORMAT", value_name = "FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
}

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named is not readable.
    #[error("cannot read the configuration {file}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is faulty.
    #[error("the configuration {file} has {}", count(.diagnostics))]
    Faulty {
        /// The file.
        file: String,
        /// All faults.
        diagnostics: Vec<Diagnostic>,
    },
}

fn count(diagnostics: &[Diagnostic]) -> String {
    match diagnostic::errors(diagnostics) {
        1 => "an error".to_owned(),
        errors => format!("{errors} errors"),
    }
}

impl ConfigError {
    /// What is wrong, place by place; empty if there is no place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Faulty { diagnostics, .. } => diagnostics,
            Self::Unreadable { .. } => &[],
        }
    }
}

impl Config {
    /// The configuration as the file, the environment and the command line together say.
    pub fn load(overrides: &Overrides, daemon: &DaemonOverrides) -> Result<Self, ConfigError> {
        let file = Self::file(overrides);
        let mut config = match &file {
            Some(file) => Self::read(file)?,
            None => Self::default(),
        };
        let beside = |name: &str| Some(file.as_deref()?.parent()?.join(name));
        config.timing_defaults = beside("timing-defaults.yaml").filter(|path| path.exists());
        config.presets = beside("presets");
        config.categories = beside("categories.yaml");
        if !overrides.tool_metadata.is_empty() {
            config.tool_metadata.clone_from(&overrides.tool_metadata);
        }
        if !overrides.plugins.is_empty() {
            config.plugins.paths.clone_from(&overrides.plugins);
        }
        if let Some(listen) = daemon.listen {
            config.listen = listen;
        }
        if let Some(state_dir) = &daemon.state_dir {
            config.state_dir.clone_from(state_dir);
        }
        if daemon.admin_socket.is_some() {
            config.admin_socket.clone_from(&daemon.admin_socket);
        }
        if let Some(format) = daemon.log_format {
            config.log.format = format;
        }
        Ok(config)
    }

    /// The file that [`Config::load`] reads.
    pub fn file(overrides: &Overrides) -> Option<PathBuf> {
        overrides.config.clone().or_else(|| {
            ["config/almanac.yaml", "/etc/almanac/almanac.yaml"]
                .into_iter()
                .map(PathBuf::from)
                .find(|path| path.exists())
        })
    }

    /// Reads one file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let content = fs::read(path).map_err(|source| ConfigError::Unreadable { file: file.clone(), source })?;
        Self::parse(path, &content).map_err(|diagnostics| ConfigError::Faulty { file, diagnostics })
    }

    fn parse(path: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        let node = yaml(content, &Limits::of_bytes(MAX_FILE_BYTES))
            .or_else(|error| if is_blank(content) { Ok(Node::Map(Vec::new())) } else { Err(error) })
            .map_err(|error| vec![Diagnostic::unreadable(path, content, &error)])?;
        // A file of nothing but comments reads as null.
        let node = if node == Node::Null { Node::Map(Vec::new()) } else { node };
        decode(node).map_err(|faults| {
            let text = String::from_utf8_lossy(content);
            faults.iter().map(|fault| Diagnostic::fault(path, &text, fault)).collect()
        })
    }

    /// The administrator's socket: beside the state, but for an installed daemon, which has a runtime directory.
    pub fn admin_socket(&self) -> PathBuf {
        match &self.admin_socket {
            Some(path) => path.clone(),
            None if self.state_dir == Path::new(INSTALLED_STATE) => INSTALLED_SOCKET.into(),
            None => self.state_dir.join("admin.sock"),
        }
    }

    /// Keys in which `other` differs and which only a restart can change.
    pub fn fixed_differences(&self, other: &Self) -> Vec<&'static str> {
        let pairs = [
            ("listen", self.listen == other.listen),
            ("admin_socket", self.admin_socket == other.admin_socket),
            ("state_dir", self.state_dir == other.state_dir),
            ("workers", self.workers == other.workers),
            ("drain_timeout", self.drain_timeout == other.drain_timeout),
            ("http", self.http == other.http),
            ("timing", self.timing == other.timing),
            ("store", self.store == other.store),
            ("plugins.isolation", self.plugins.isolation == other.plugins.isolation),
            ("qualifier.llm", self.qualifier.llm == other.qualifier.llm),
            ("auth.tokens_file", self.tokens_file == other.tokens_file),
            ("log.format", self.log.format == other.log.format),
        ];
        pairs.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
    }
}

fn is_blank(content: &[u8]) -> bool {
    content.split(|&byte| byte == b'\n').all(|line| {
        let line = line.trim_ascii();
        line.is_empty() || line.starts_with(b"#")
    })
}

/// The socket of a daemon that was started without flags, if there is one.
pub fn default_admin_socket() -> PathBuf {
    let local = PathBuf::from("state/admin.sock");
    if local.exists() { local } else { INSTALLED_SOCKET.into() }
}

fn default_state_dir() -> PathBuf {
    match env::var_os("STATE_DIRECTORY") {
        // systemd lists several separated by colons; the unit has one.
        Some(directories) if !directories.is_empty() => env::split_paths(&directories).next().unwrap_or_default(),
        // In a directory that holds documents the state belongs to them.
        _ if Path::new("state").is_dir() || Path::new("tool_metadata").is_dir() => "state".into(),
        _ => INSTALLED_STATE.into(),
    }
}

fn default_tool_metadata() -> Vec<PathBuf> {
    if Path::new("tool_metadata").is_dir() {
        return vec!["tool_metadata".into()];
    }
    let installed = ["/etc/almanac/tool_metadata", "/usr/share/almanac/tool_metadata"];
    let existing: Vec<PathBuf> = installed.into_iter().map(PathBuf::from).filter(|path| path.is_dir()).collect();
    if existing.is_empty() { vec!["tool_metadata".into()] } else { existing }
}

/// systemd hands the tokens over as a credential; the file of the package stands in where none is configured.
fn default_tokens_file() -> Option<PathBuf> {
    let credential = env::var_os("CREDENTIALS_DIRECTORY").map(|directory| Path::new(&directory).join("tokens"));
    // In a project's directory the machine's tokens are not meant.
    let installed = (default_state_dir() == Path::new(INSTALLED_STATE)).then(|| INSTALLED_TOKENS.into());
    // A file that may be there but cannot be looked at must not open the door: reading it will fail, and say so.
    credential.into_iter().chain(installed).find(|path: &PathBuf| path.try_exists().unwrap_or(true))
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7311)),
            admin_socket: None,
            tool_metadata: default_tool_metadata(),
            state_dir: default_state_dir(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            drain_timeout: Duration::from_secs(20),
            http: Http::default(),
            catalog: Catalog::default(),
            tokens_file: default_tokens_file(),
            timing: Timing::default(),
            timing_defaults: None,
            presets: None,
            categories: None,
            store: Store::default(),
            qualifier: Qualifier::default(),
            plugins: Plugins::default(),
            prices: PriceTable::new(),
            log: Log::default(),
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self { factory_timeout_ms: 30_000 }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self { durability: Durability::Power, retention: Duration::from_secs(183 * DAY), max_queue: 1024 }
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            max_header_bytes: 16 * 1024,
            max_body_bytes: 1024 * 1024,
            header_read_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            request_timeout: Duration::from_secs(30),
            max_stream_bytes: 64 << 20,
            stream_idle_timeout: Duration::from_secs(15 * 60),
            allowed_hosts: Vec::new(),
        }
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self {
            max_document_bytes: 256 * 1024,
            poll_interval: Duration::from_secs(30),
            watch: true,
            strict_reload: false,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Auto, level: "info".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!("../config/almanac.yaml");

    fn parse(text: &str) -> Result<Config, Vec<(String, usize, Option<String>)>> {
        Config::parse(Path::new("c"), text.as_bytes())
            .map_err(|diagnostics| diagnostics.into_iter().map(|fault| (fault.code, fault.line, fault.hint)).collect())
    }

    #[test]
    fn the_shipped_file_says_the_defaults() {
        assert_eq!(parse(SHIPPED), Ok(Config::default()));
        let uncommented: String =
            SHIPPED.lines().filter_map(|line| line.strip_prefix("#: ")).map(|line| format!("{line}\n")).collect();
        let mut said = parse(&uncommented).unwrap();
        let defaults = Config::default();
        // These depend on the machine; the file names what they are on an installed one.
        said.workers = defaults.workers;
        said.tokens_file.clone_from(&defaults.tokens_file);
        said.admin_socket.clone_from(&defaults.admin_socket);
        said.state_dir.clone_from(&defaults.state_dir);
        said.tool_metadata.clone_from(&defaults.tool_metadata);
        said.plugins.paths.clone_from(&defaults.plugins.paths);
        assert_eq!(said, defaults);
    }

    #[test]
    fn faults_have_a_place_and_a_way_out() {
        let check = |text: &str, code: &str, line: usize, hint: Option<&str>| {
            assert_eq!(parse(text), Err(vec![(code.to_owned(), line, hint.map(str::to_owned))]), "{text}");
        };
        check("listn: 127.0.0.1:1", "unknown-key", 1, Some("did you mean `listen`?"));
        check("http:\n  max_conections: 1", "unknown-key", 2, Some("did you mean `max_connections`?"));
        check("listen: localhost", "bad-value", 1, None);
        check("http:\n  idle_timeout: 5", "bad-value", 2, None);
        check("http: {idle_timeout: fast}", "bad-value", 1, None);
        check("http: {max_body_bytes: 1}", "bad-value", 1, None);
        check("log: {level: 'x=y=z'}", "bad-value", 1, None);
        check("log: {format: xml}", "bad-value", 1, None);
        check("plugins: {isolation: none}", "bad-value", 1, None);
        check("plugins:\n  allow: [abc]", "bad-value", 2, None);
        check("plugins:\n  settings:\n    org.example.rules: 3", "bad-value", 3, None);
        check("- a", "wrong-type", 1, None);
    }

    #[test]
    fn a_model_needs_an_address_that_is_safe() {
        let check = |keys: &str, expected: &[&str]| {
            let text = format!("qualifier:\n  llm: {{{keys}}}");
            let codes: Vec<String> =
                parse(&text).err().unwrap_or_default().into_iter().map(|(code, ..)| code).collect();
            assert_eq!(codes, expected, "{text}");
        };
        check("url: 'https://models.example.com/v1', model: m", &[]);
        check("url: 'http://127.0.0.1:8080', model: m, timeout: 30s, max_candidates: 200, api_key_env: KEY_1", &[]);
        check("url: 'http://models.example.com/v1', model: m", &["bad-value"]);
        check("", &["missing-key", "missing-key"]);
        check(
            "url: x, model: '', api_key_env: sk-1234, timeout: 31s, max_candidates: 0, retries: 3",
            &["bad-value", "bad-value", "bad-value", "bad-value", "bad-value", "unknown-key"],
        );
        let config = parse("qualifier: {llm: {url: 'https://a.example', model: m, max_failures: 2}}").unwrap();
        assert_eq!(config.qualifier.llm.unwrap().limits, LlmLimits { max_failures: 2, ..LlmLimits::default() });
    }

    #[test]
    fn the_example_of_a_model_says_its_defaults() {
        let (_, rest) = SHIPPED.split_once("#: qualifier:\n").unwrap();
        let (section, _) = rest.split_once("#:   llm: null").unwrap();
        let example: String =
            section.lines().filter_map(|line| line.strip_prefix("#   ")).map(|line| format!("  {line}\n")).collect();
        let llm = parse(&format!("qualifier:\n{example}")).unwrap().qualifier.llm.unwrap();
        assert_eq!(llm.limits, LlmLimits::default());
        assert_eq!(example.lines().count(), 12, "it shows every key");
    }

    #[test]
    fn an_empty_file_means_the_defaults() {
        assert_eq!(parse(""), Ok(Config::default()));
        assert_eq!(parse("# nothing\n\n"), Ok(Config::default()));
    }
}
