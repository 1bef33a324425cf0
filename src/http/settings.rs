//! Limits of the HTTP door.

use std::time::Duration;

use crate::strict::FromNode;

/// The section `http` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default)]
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
    pub allowed_hosts: Vec<String>,
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
        }
    }
}
