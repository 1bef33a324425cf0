//! The configuration: the sections that the rooms and doors own, put together.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::access::Tokens;
use crate::config::{self, DaemonOverrides, Overrides, UserFiles};
use crate::control::{Reconfigure, Reconfigured};
use crate::strict::read::Limits;
use crate::strict::{Diagnostic, Fields, FromNode, LoadError, load};
use crate::telemetry::logging;
use crate::timing::Defaults;
use crate::{access, catalog, http, llm, mcp, plugin_host, qualify, store, timing, upstream, usage};

/// Largest configuration file, in bytes.
const MAX_FILE_BYTES: usize = 1 << 20;

/// The key of the file of tokens.
const TOKENS: &str = "auth.tokens_file";

/// The file of durations that stand in for history, beside the configuration.
const TIMING_DEFAULTS: &str = "timing-defaults.yaml";

/// The key of the authorization server.
const ISSUER: &str = "auth.issuer";

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, FromNode)]
#[node(default, check = check_times)]
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
    #[schemars(range(min = 1, max = 1024))]
    pub workers: usize,
    /// How long requests in flight may take to finish at the end.
    pub drain_timeout: Duration,
    /// Limits of the HTTP door.
    pub http: http::Settings,
    /// How tool documents are read.
    pub catalog: catalog::Settings,
    pub auth: access::Settings,
    /// How durations are said.
    pub timing: timing::Settings,
    /// The durations that stand in for history: the file beside the configuration, if there is one.
    #[node(skip)]
    pub timing_defaults: Option<PathBuf>,
    /// The directory of presets, which need not be there; without a configuration file the built-in ones are all there
    /// is.
    #[node(skip)]
    pub presets: Option<PathBuf>,
    /// The file of categories; without one the built-in ones stand in.
    #[node(skip)]
    pub categories: Option<PathBuf>,
    /// End when nobody was connected for so long.
    #[node(skip)]
    pub until_idle: Option<Duration>,
    /// Does it serve the user who runs it, and not the machine?
    #[node(skip)]
    pub is_users: bool,
    /// How records are kept.
    pub store: store::Settings,
    /// How tools are selected for messages.
    pub qualifier: QualifierSection,
    pub plugins: plugin_host::Settings,
    pub mcp: McpSection,
    pub usage: usage::Settings,
    pub log: logging::Settings,
}

/// The section `qualifier`: how tools are chosen, and the model that is asked for its opinion.
#[derive(Debug, Clone, Default, PartialEq, FromNode)]
#[node(default)]
pub struct QualifierSection {
    /// How tools are chosen.
    #[node(flatten)]
    pub selection: qualify::Settings,
    /// The model; none by default.
    pub llm: Option<llm::Settings>,
}

/// The section `mcp`: the door of MCP clients, and the servers behind the daemon.
#[derive(Debug, Clone, Default, PartialEq, FromNode)]
#[node(default)]
pub struct McpSection {
    #[node(flatten)]
    pub door: mcp::Settings,
    #[node(flatten)]
    pub upstream: upstream::Settings,
}

/// A request that waits for something must outlast it, or it ends with nothing.
fn check_times(config: &Config, fields: &mut Fields<'_>) {
    let waits = [
        ("qualifier.llm.timeout", config.qualifier.llm.as_ref().map(|llm| llm.limits.timeout)),
        ("plugins.deadline", Some(config.plugins.launch.deadline)),
    ];
    let limit = config.http.request_timeout;
    for (key, time) in waits.into_iter().filter_map(|(key, time)| Some((key, time?))) {
        if time >= limit {
            let (time, limit) = (humantime::format_duration(time), humantime::format_duration(limit));
            let message =
                format!("`request_timeout` is {limit}, and a request may wait {time} ({key}); it must be longer");
            fields.at_key("http", |at| at.bad_value(message));
        }
    }
}

impl Config {
    /// The configuration as the file, the environment and the command line together say.
    pub fn load(overrides: &Overrides, daemon: &DaemonOverrides) -> Result<Self, LoadError> {
        let file = if daemon.user { overrides.config.clone() } else { config::file(overrides) };
        let mut config = match &file {
            Some(file) => load::load(file, &Limits::of_bytes(MAX_FILE_BYTES))?,
            None => Self::default(),
        };
        config.serve_user(daemon.user);
        let beside = |name: &str| Some(file.as_deref()?.parent()?.join(name));
        config.timing_defaults = beside(TIMING_DEFAULTS).filter(|path| config::may_be_there(path));
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
        if daemon.mcp_socket.is_some() {
            config.mcp.door.socket.clone_from(&daemon.mcp_socket);
        }
        if daemon.token_file.is_some() {
            config.auth.tokens_file.clone_from(&daemon.token_file);
        }
        config.until_idle = daemon.until_idle;
        if let Some(format) = daemon.log_format {
            config.log.format = format;
        }
        Ok(config)
    }

    /// The machine's state, documents and tokens are not a user's.
    fn serve_user(&mut self, is_users: bool) {
        let Some(files) = UserFiles::find().filter(|_| is_users) else { return };
        self.is_users = true;
        self.auth.without_machine = true;
        if self.tool_metadata == config::default_tool_metadata() {
            self.tool_metadata = files.documents().to_vec();
        }
    }

    /// Is where documents come from nobody's choice, so that not all of it has to be there?
    fn is_search_path(&self) -> bool {
        let of_user = || UserFiles::find().is_some_and(|files| files.documents() == self.tool_metadata);
        self.tool_metadata == config::default_tool_metadata() || self.is_users && of_user()
    }

    /// What is wrong with the content of `file`, if anything.
    pub fn parse(file: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        load::parse(file, content, &Limits::of_bytes(MAX_FILE_BYTES))
    }

    /// The administrator's socket: beside the state, but for an installed daemon, which has a runtime directory.
    pub fn admin_socket(&self) -> PathBuf {
        self.admin_socket.clone().unwrap_or_else(|| config::admin_socket_of(&self.state_dir))
    }

    /// The socket of MCP clients.
    pub fn mcp_socket(&self) -> PathBuf {
        self.mcp.door.socket.clone().unwrap_or_else(|| config::mcp_socket_of(&self.state_dir))
    }

    /// Where tool documents come from.
    pub fn documents(&self) -> catalog::load::LoadOptions {
        catalog::load::LoadOptions {
            roots: self.tool_metadata.clone(),
            max_document_bytes: self.catalog.max_document_bytes,
            is_search_path: self.is_search_path(),
            are_examples_beside: self.catalog.examples,
        }
    }

    /// How the catalog is kept up to date: with its documents, presets and categories are looked at.
    pub fn reloading(&self) -> catalog::reload::Sources {
        let beside = self.presets.iter().chain(&self.categories);
        catalog::reload::Sources {
            options: self.documents(),
            settings: self.catalog.clone(),
            beside: beside.filter_map(|path| std::path::absolute(path).ok()).collect(),
        }
    }

    /// How rule libraries are kept; their files are followed as the documents are.
    pub fn plugin_host(&self) -> plugin_host::Settings {
        plugin_host::Settings {
            poll_interval: self.catalog.poll_interval,
            watch: self.catalog.watch,
            ..self.plugins.clone()
        }
    }

    /// How MCP servers are kept; their files are followed as the documents are.
    pub fn upstreams(&self) -> upstream::Settings {
        upstream::Settings {
            kept: std::path::absolute(&self.state_dir).unwrap_or_else(|_| self.state_dir.clone()).join("mcp"),
            poll_interval: self.catalog.poll_interval,
            watch: self.catalog.watch,
            ..self.mcp.upstream.clone()
        }
    }

    /// Reads the configuration again on demand, and compares it with what holds.
    pub fn reconfigure(
        self,
        overrides: Overrides,
        daemon: DaemonOverrides,
        door: watch::Sender<Arc<mcp::Settings>>,
    ) -> Reconfigure {
        let held_defaults = Defaults::read(self.timing_defaults.as_deref()).ok();
        let held = Mutex::new(self);
        Box::new(move || {
            let mut held = held.lock();
            let fresh = Self::load(&overrides, &daemon)?;
            let defaults = Defaults::read(fresh.timing_defaults.as_deref())?;
            let mut fixed = held.fixed_differences(&fresh);
            if held_defaults.as_ref() != Some(&defaults) {
                fixed.push(TIMING_DEFAULTS.to_owned());
            }
            if !fixed.iter().any(|key| key == TOKENS || key == ISSUER) {
                // Another file that cannot be read would lock everybody out; most likely it is a slip of the pen.
                let other = fresh.auth.file().filter(|file| Some(file) != held.auth.file().as_ref());
                other.map(|file| Tokens::read(&file)).transpose()?;
                held.auth.clone_from(&fresh.auth);
            }
            let level = (fresh.log.level != held.log.level).then(|| fresh.log.level.clone());
            held.log.level.clone_from(&fresh.log.level);
            // Views and what calls are allowed change at once; the door itself hears of it by this.
            door.send_replace(Arc::new(fresh.mcp.door.clone()));
            Ok(Reconfigured {
                sources: fresh.reloading(),
                auth: held.auth.clone(),
                plugins: fresh.plugin_host(),
                upstreams: fresh.upstreams(),
                selection: fresh.qualifier.selection,
                prices: fresh.usage.prices,
                level,
                fixed,
            })
        })
    }

    /// Keys in which `other` differs and which only a restart can change.
    pub fn fixed_differences(&self, other: &Self) -> Vec<String> {
        let pairs = [
            ("listen", self.listen == other.listen),
            ("admin_socket", self.admin_socket == other.admin_socket),
            ("state_dir", self.state_dir == other.state_dir),
            ("workers", self.workers == other.workers),
            ("drain_timeout", self.drain_timeout == other.drain_timeout),
            ("mcp.socket", self.mcp.door.socket == other.mcp.door.socket),
            ("plugins.isolation", self.plugins.isolation == other.plugins.isolation),
            ("qualifier.llm", self.qualifier.llm == other.qualifier.llm),
            // Who takes the tokens away does not mean to let everybody in at once.
            (TOKENS, self.auth.file().is_none() || other.auth.file().is_some()),
            (ISSUER, self.auth.issuer.issuer.is_none() || other.auth.issuer.issuer.is_some()),
            ("log.format", self.log.format == other.log.format),
        ];
        let sections = [
            ("http", self.http.differences(&other.http)),
            ("timing", self.timing.differences(&other.timing)),
            ("store", self.store.differences(&other.store)),
        ];
        let keys = sections
            .into_iter()
            .flat_map(|(section, keys)| keys.into_iter().map(move |key| format!("{section}.{key}")));
        pairs.into_iter().filter(|(_, same)| !same).map(|(key, _)| key.to_owned()).chain(keys).collect()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7311)),
            admin_socket: None,
            tool_metadata: config::default_tool_metadata(),
            state_dir: config::default_state_dir(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            drain_timeout: Duration::from_secs(20),
            http: http::Settings::default(),
            catalog: catalog::Settings::default(),
            auth: access::Settings::default(),
            timing: timing::Settings::default(),
            timing_defaults: None,
            presets: None,
            categories: None,
            until_idle: None,
            is_users: false,
            store: store::Settings::default(),
            qualifier: QualifierSection::default(),
            plugins: plugin_host::Settings::default(),
            mcp: McpSection::default(),
            usage: usage::Settings::default(),
            log: logging::Settings::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!("../../config/almanac.yaml");

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
        said.auth.clone_from(&defaults.auth);
        said.admin_socket.clone_from(&defaults.admin_socket);
        said.mcp.door.socket.clone_from(&defaults.mcp.door.socket);
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
        check("listen: 24100", "bad-value", 1, None);
        check("store: {retention: 183}", "bad-value", 1, None);
        check("http: {allowed_hosts: ['*.example']}", "bad-value", 1, None);
        check("http:\n  idle_timeout: 5", "bad-value", 2, None);
        check("http: {idle_timeout: fast}", "bad-value", 1, None);
        check("http: {max_body_bytes: 1}", "bad-value", 1, None);
        check("log: {level: 'x=y=z'}", "bad-value", 1, None);
        check("log: {format: xml}", "bad-value", 1, None);
        check("plugins: {isolation: none}", "bad-value", 1, None);
        check("plugins:\n  allow: [abc]", "bad-value", 2, None);
        check("plugins:\n  settings:\n    org.example.rules: 3", "bad-value", 3, None);
        let hint = "`{}` says that there are none; keys that are meant for it stand further in than its id";
        check("plugins:\n  settings:\n    a: {k: 1}\n    b:\n    c: {k: 1}", "bad-value", 4, Some(hint));
        check("- a", "wrong-type", 1, None);
        check("plugins: {deadline: 31s}\nhttp: {}", "bad-value", 2, None);
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
        check("url: 'http://127.0.0.1:8080', model: m, timeout: 29s, max_candidates: 200, api_key_env: KEY_1", &[]);
        check("url: 'http://models.example.com/v1', model: m", &["bad-value"]);
        check("", &["missing-key", "missing-key"]);
        check(
            "url: x, model: '', api_key_env: sk-1234, timeout: 31s, max_candidates: 0, retries: 3",
            &["bad-value", "bad-value", "bad-value", "bad-value", "bad-value", "unknown-key"],
        );
        let config = parse("qualifier: {llm: {url: 'https://a.example', model: m, max_failures: 2}}").unwrap();
        assert_eq!(
            config.qualifier.llm.unwrap().limits,
            llm::QuestionLimits { max_failures: 2, ..llm::QuestionLimits::default() }
        );
    }

    #[test]
    fn the_example_of_a_model_says_its_defaults() {
        let (_, rest) = SHIPPED.split_once("#: qualifier:\n").unwrap();
        let (section, _) = rest.split_once("#:   llm: null").unwrap();
        let example: String =
            section.lines().filter_map(|line| line.strip_prefix("#   ")).map(|line| format!("  {line}\n")).collect();
        let llm = parse(&format!("qualifier:\n{example}")).unwrap().qualifier.llm.unwrap();
        assert_eq!(llm.limits, llm::QuestionLimits::default());
        assert_eq!(example.lines().count(), 12, "it shows every key");
    }

    #[test]
    fn an_empty_file_means_the_defaults() {
        assert_eq!(parse(""), Ok(Config::default()));
        assert_eq!(parse("# nothing\n\n"), Ok(Config::default()));
    }
}
