//! Where the configuration is, and what the command line and the environment put in its place.
//!
//! A flag beats the environment, which beats the file. What the file may say is each section's owner's affair; the
//! daemon puts the sections together.

mod user_files;

use std::env;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Parser};

use crate::text::near;
pub use user_files::{HomelessError, UserFiles};

/// Where an installed daemon keeps its state.
const INSTALLED_STATE: &str = "/var/lib/almanac";

/// Where an installed daemon is administered.
const INSTALLED_SOCKET: &str = "/run/almanac/admin.sock";

/// Where MCP clients reach an installed daemon: apart from its administration, since other people may ask there.
pub const INSTALLED_MCP_SOCKET: &str = "/run/almanac-mcp/mcp.sock";

/// Where an installed daemon's configuration is.
pub const INSTALLED_CONFIGURATION: &str = "/etc/almanac";

/// The documents of the package.
pub const INSTALLED_DOCUMENTS: &str = "/usr/share/almanac/tool_metadata";

/// The tokens of an installed daemon.
const INSTALLED_TOKENS: &str = "/etc/almanac/tokens";

/// The environment's word for the configuration file.
pub const CONFIG: &str = "ALMANAC_CONFIG";

/// The environment's word for the state directory.
pub const STATE_DIR: &str = "ALMANAC_STATE_DIR";

/// What the command line and the environment say.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Configuration")]
pub struct Overrides {
    /// Configuration file [default: ./config/almanac.yaml, else /etc/almanac/almanac.yaml, else built in]
    #[arg(long, env = CONFIG, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of tool documents; repeatable [default: ./tool_metadata, else /etc/almanac/tool_metadata and
    /// /usr/share/almanac/tool_metadata]
    #[arg(long, env = "ALMANAC_TOOL_METADATA", value_name = "DIR", value_delimiter = ':')]
    pub tool_metadata: Vec<PathBuf>,
    /// Rule library, or directory of rule libraries; repeatable [default: libalmanac_reasoning.so beside the program,
    /// then /usr/lib/almanac/plugins]
    #[arg(long, env = "ALMANAC_PLUGINS", value_name = "PATH", value_delimiter = ':')]
    pub plugins: Vec<PathBuf>,
}

/// The environment's word for the database that several daemons share.
pub const DATABASE_URL: &str = "ALMANAC_DATABASE_URL";

/// What the command line and the environment say about the daemon itself.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Configuration")]
pub struct DaemonOverrides {
    /// Address of the HTTP door [default: 127.0.0.1:7311]
    #[arg(long, env = "ALMANAC_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// File of tokens [default: the credential `tokens`, else /etc/almanac/tokens for an installed daemon]
    #[arg(long, env = "ALMANAC_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A token with every scope, put into the file of tokens if that has none yet; 16 characters or more. Meant for the
    /// environment, since others can read a command line
    #[arg(long, env = "ALMANAC_FIRST_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub first_token: Option<String>,
    /// The administrator's Unix socket [default: admin.sock in the state directory;
    /// /run/almanac/admin.sock for an installed daemon]
    #[arg(long, env = "ALMANAC_ADMIN_SOCKET", value_name = "PATH")]
    pub admin_socket: Option<PathBuf>,
    /// The Unix socket of MCP clients [default: mcp.sock in the state directory;
    /// /run/almanac-mcp/mcp.sock for an installed daemon]
    #[arg(long, env = "ALMANAC_MCP_SOCKET", value_name = "PATH")]
    pub mcp_socket: Option<PathBuf>,
    /// End when nobody was connected for so long, such as 10m; where the TCP address is taken, serve the sockets alone
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub until_idle: Option<std::time::Duration>,
    /// Serve the user who runs this: the state is in ~/.local/state/almanac, configuration and documents of
    /// ~/.config/almanac come before the machine's (XDG_STATE_HOME, XDG_CONFIG_HOME); where the TCP address is taken,
    /// serve the sockets alone
    #[arg(long)]
    pub user: bool,
    /// Directory for what must not be forgotten [default: ./state, else /var/lib/almanac]
    #[arg(long, env = "ALMANAC_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// URL of the PostgreSQL that several daemons share, such as postgres://almanac@db.example.com/almanac [default:
    /// the configuration's, else all is kept in the state directory]
    #[arg(long, env = DATABASE_URL, value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// How the log looks
    #[arg(long, env = "ALMANAC_LOG_FORMAT", value_name = "FORMAT", value_enum)]
    pub log_format: Option<crate::telemetry::logging::Format>,
}

impl DaemonOverrides {
    /// What the environment alone says.
    ///
    /// # Errors
    /// Where a variable has no value of its kind.
    pub fn of_environment() -> Result<Self, clap::Error> {
        #[derive(clap::Parser)]
        struct Environment {
            #[command(flatten)]
            daemon: DaemonOverrides,
        }
        Environment::try_parse_from(["almanacd"]).map(|environment| environment.daemon)
    }
}

/// What the variables of the environment begin with that are meant for this program; the second by mistake.
const PREFIXES: [&str; 2] = ["ALMANAC_", "ALMANACD_"];

/// Names of variables that are near to one that the daemon reads, and that one. Others are somebody else's: of
/// commands, of MCP servers, of whoever names what runs beside it.
pub fn mistyped(names: impl IntoIterator<Item = String>) -> Vec<(String, String)> {
    let command = DaemonOverrides::augment_args(Overrides::augment_args(clap::Command::new("")));
    let read = |argument: &clap::Arg| argument.get_env()?.to_str()?.strip_prefix(PREFIXES[0]).map(str::to_owned);
    let known: Vec<String> = command.get_arguments().filter_map(read).collect();
    let meant = |name: String| {
        let rest = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
        let near = near::nearest(rest, known.iter().map(String::as_str))?;
        let near = format!("{}{near}", PREFIXES[0]);
        (near != name).then_some((name, near))
    };
    names.into_iter().filter_map(meant).collect()
}

/// The configuration file that is meant, if there is one.
pub fn file(overrides: &Overrides) -> Option<PathBuf> {
    overrides.config.clone().or_else(|| {
        let places = ["config/almanac.yaml", "/etc/almanac/almanac.yaml"];
        places.into_iter().map(PathBuf::from).find(|path| may_be_there(path))
    })
}

/// Is something at this path, or may there be? What cannot be looked at, and a link to nowhere, count: to go on as if
/// nothing had been meant would open doors. Whoever reads it says what is wrong.
pub fn may_be_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// The administrator's socket of a daemon with this state: beside the state, but for an installed daemon, which has a
/// runtime directory.
pub fn admin_socket_of(state_dir: &Path) -> PathBuf {
    if is_installed(state_dir) { INSTALLED_SOCKET.into() } else { state_dir.join("admin.sock") }
}

/// The socket of MCP clients of a daemon with this state.
pub fn mcp_socket_of(state_dir: &Path) -> PathBuf {
    if is_installed(state_dir) { INSTALLED_MCP_SOCKET.into() } else { state_dir.join("mcp.sock") }
}

/// Is it the state of an installed daemon?
pub fn is_installed(state_dir: &Path) -> bool {
    state_dir == Path::new(INSTALLED_STATE)
}

/// The socket of a daemon that was started without flags: that of the state directory that the environment names; where
/// it names none this directory's, the user's, or the machine's.
pub fn default_admin_socket() -> PathBuf {
    if let Some(state) = env::var_os(STATE_DIR).filter(|state| !state.is_empty()) {
        return admin_socket_of(Path::new(&state));
    }
    let own = UserFiles::find().map(|files| files.admin_socket());
    [Some("state/admin.sock".into()), own]
        .into_iter()
        .flatten()
        .find(|path: &PathBuf| path.exists())
        .unwrap_or_else(|| INSTALLED_SOCKET.into())
}

/// Where a daemon keeps its state if nobody says.
pub fn default_state_dir() -> PathBuf {
    match env::var_os("STATE_DIRECTORY") {
        // systemd lists several separated by colons; the unit has one.
        Some(directories) if !directories.is_empty() => env::split_paths(&directories).next().unwrap_or_default(),
        // In a directory that holds documents the state belongs to them.
        _ if Path::new("state").is_dir() || Path::new("tool_metadata").is_dir() => "state".into(),
        _ => INSTALLED_STATE.into(),
    }
}

/// Where tool documents are if nobody says.
pub fn default_tool_metadata() -> Vec<PathBuf> {
    let here = PathBuf::from("tool_metadata");
    if here.is_dir() {
        return vec![here];
    }
    let installed = ["/etc/almanac/tool_metadata", "/usr/share/almanac/tool_metadata"].map(PathBuf::from);
    // All of them, since one that is not there yet may be made while the daemon runs.
    if installed.iter().any(|path| path.is_dir()) {
        installed.into()
    } else {
        installed.into_iter().chain([here]).collect()
    }
}

/// systemd hands the tokens over as a credential; the file of the package stands in where none is configured, but for
/// a daemon that does not serve the machine.
pub fn default_tokens_file(without_machine: bool) -> Option<PathBuf> {
    let credential = env::var_os("CREDENTIALS_DIRECTORY").map(|directory| Path::new(&directory).join("tokens"));
    // In a project's directory the machine's tokens are not meant.
    let installed = (!without_machine && is_installed(&default_state_dir())).then(|| INSTALLED_TOKENS.into());
    credential.into_iter().chain(installed).find(|path: &PathBuf| may_be_there(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_was_mistyped_is_told_from_those_of_others() {
        let check = |name: &str, expected: Option<&str>| {
            let near: Vec<String> = mistyped([name.to_owned()]).into_iter().map(|(_, near)| near).collect();
            assert_eq!(near.first().map(String::as_str), expected, "{name}");
        };
        check("ALMANAC_STATE_DRI", Some("ALMANAC_STATE_DIR"));
        check("ALMANAC_TOKENS_FILE", Some("ALMANAC_TOKEN_FILE"));
        check("ALMANACD_STATE_DIR", Some("ALMANAC_STATE_DIR"));
        check("ALMANAC_PLUGIN", Some("ALMANAC_PLUGINS"));
        let others = "CONFIG LISTEN STATE_DIR URL TOKEN USER_ID AGENT_ID CHAT_ID LLM_KEY OPENAI_API_KEY TOOL MODE \
                      COMPLEXITY TEST_PYTHON TEST_COUNTERPARTS LONG_TESTS WRITE_DOCS SOAK_SECONDS FAULT_ROUNDS \
                      FLEET_FAULT_SEED PORT SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTP PORT_7311_TCP_ADDR HOME USER";
        others.split_whitespace().for_each(|name| check(&format!("ALMANAC_{name}"), None));
        check("STATE_DRI", None);
    }
}
