//! Limits of the HTTP door.

use std::time::Duration;

use crate::strict::{FromNode, Violation};

/// The section `http` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default, differences)]
pub struct Settings {
    /// Connections at once; further ones are answered 503.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: usize,
    /// Connections of one address at once, of IPv6 of one /64; those of this machine are not counted.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections_per_address: usize,
    /// Size of a request's head, in bytes.
    #[schemars(range(min = 8192, max = 1 << 20))]
    pub max_header_bytes: usize,
    /// Size of a request's body, in bytes.
    #[schemars(range(min = 1024, max = 1 << 30))]
    pub max_body_bytes: usize,
    /// From a head's first byte to its last; and from the beginning of a connection to its first byte.
    pub header_read_timeout: Duration,
    /// Between two requests of one connection.
    pub idle_timeout: Duration,
    /// From a request's head to its answer's last byte.
    pub request_timeout: Duration,
    /// For how long the peer of a stream that the daemon sends may take next to nothing of it.
    pub stall_timeout: Duration,
    /// Streams that the daemon sends at once, and as many that are sent to it; further ones are answered 503.
    /// Connections that only listen to one are not counted among the others.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_streams: usize,
    /// Size of a chat stream that is sent to the daemon, in bytes.
    #[schemars(range(min = 1024, max = 1 << 40))]
    pub max_stream_bytes: usize,
    /// Longest silence in a chat stream: a tool may work for so long.
    pub stream_idle_timeout: Duration,
    /// Further values of `Host` that are let in on a loopback address; with any, the only ones elsewhere.
    #[node(check = check_hosts)]
    pub allowed_hosts: Vec<String>,
    /// Origins, such as <https://app.example>, whose pages may ask and read the answers (CORS).
    #[node(check = check_origins)]
    pub allowed_origins: Vec<String>,
    /// Serve the console at `/console/`? By default on a loopback address only.
    pub console: Option<bool>,
}

/// May it stand in the name or address of a host, or in its port?
fn is_of_authority(c: char) -> bool {
    c.is_ascii_alphanumeric() || ".-:[]_".contains(c)
}

/// A host is a name or an address, as `Host` has it, without its port.
fn check_hosts(hosts: &[String]) -> Result<(), Violation> {
    let is_host = |host: &str| !host.is_empty() && host.chars().all(is_of_authority);
    match hosts.iter().find(|host| !is_host(host)) {
        Some(host) => Err(format!("`{host}` is no host, such as almanac.example; there are no wildcards").into()),
        None => Ok(()),
    }
}

/// An origin is a scheme and an authority, as browsers send it. There is no word for all of them: on a loopback address
/// every page that is looked at on this machine could read everything.
fn check_origins(origins: &[String]) -> Result<(), Violation> {
    let is_origin = |origin: &str| {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://")).unwrap_or_default();
        !host.is_empty() && host.chars().all(is_of_authority)
    };
    match origins.iter().find(|origin| !is_origin(origin)) {
        Some(origin) => {
            Err(format!("`{origin}` is no origin, such as https://app.example or http://localhost:3000").into())
        }
        None => Ok(()),
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            max_connections_per_address: 1024,
            max_header_bytes: 16 * 1024,
            max_body_bytes: 1024 * 1024,
            header_read_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            request_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(30),
            max_streams: 768,
            max_stream_bytes: 64 << 20,
            stream_idle_timeout: Duration::from_secs(15 * 60),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            console: None,
        }
    }
}
