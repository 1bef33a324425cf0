//! The configuration as it is read: which keys there are, and what each may hold.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{Catalog, Config, DAY, Http, Log, LogFormat, Store, Timing};
use crate::store::{Durability, MAX_DURATION_MS};
use crate::strict::{At, Fields, FromNode, Node};
use crate::usage::PriceTable;

impl FromNode for Config {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let mut config = Self::default();
            fields.set("listen", &mut config.listen);
            fields.set("tool_metadata", &mut config.tool_metadata);
            fields.set("state_dir", &mut config.state_dir);
            config.admin_socket = fields.optional("admin_socket");
            set_within(fields, "workers", &mut config.workers, 1, 1024);
            fields.set("drain_timeout", &mut config.drain_timeout);
            fields.set("http", &mut config.http);
            fields.set("catalog", &mut config.catalog);
            if let Some(Auth { tokens_file: Some(file) }) = fields.optional("auth") {
                config.tokens_file = Some(file);
            }
            fields.set("timing", &mut config.timing);
            fields.set("store", &mut config.store);
            fields.set("qualifier", &mut config.qualifier);
            fields.set("plugins", &mut config.plugins);
            if let Some(Usage { prices }) = fields.optional("usage") {
                config.prices = prices;
            }
            fields.set("log", &mut config.log);
            config
        })
    }
}

/// A number that must lie between two bounds, both included.
pub(super) fn set_within(fields: &mut Fields<'_>, key: &'static str, slot: &mut usize, low: usize, high: usize) {
    fields.set(key, slot);
    if !(low..=high).contains(slot) {
        fields.bad_value(key, format!("must be {low} to {high}"));
    }
}

impl FromNode for Http {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let mut http = Self::default();
            set_within(fields, "max_connections", &mut http.max_connections, 1, 1_000_000);
            set_within(fields, "max_header_bytes", &mut http.max_header_bytes, 8192, 1 << 20);
            set_within(fields, "max_body_bytes", &mut http.max_body_bytes, 1024, 1 << 30);
            fields.set("header_read_timeout", &mut http.header_read_timeout);
            fields.set("idle_timeout", &mut http.idle_timeout);
            fields.set("request_timeout", &mut http.request_timeout);
            set_within(fields, "max_stream_bytes", &mut http.max_stream_bytes, 1024, 1 << 40);
            fields.set("stream_idle_timeout", &mut http.stream_idle_timeout);
            fields.set("allowed_hosts", &mut http.allowed_hosts);
            http
        })
    }
}

impl FromNode for Catalog {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let mut catalog = Self::default();
            set_within(fields, "max_document_bytes", &mut catalog.max_document_bytes, 1024, 1 << 24);
            fields.set("poll_interval", &mut catalog.poll_interval);
            fields.set("watch", &mut catalog.watch);
            fields.set("strict_reload", &mut catalog.strict_reload);
            catalog
        })
    }
}

impl FromNode for Timing {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let mut timing = Self::default();
            fields.set("factory_timeout_ms", &mut timing.factory_timeout_ms);
            if !(1..=MAX_DURATION_MS).contains(&timing.factory_timeout_ms) {
                fields.bad_value("factory_timeout_ms", format!("must be 1 to {MAX_DURATION_MS}, which is a day"));
            }
            timing
        })
    }
}

impl FromNode for Store {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let mut store = Self::default();
            fields.set("durability", &mut store.durability);
            if let Some(retention) = fields.optional::<LongDuration>("retention") {
                store.retention = retention.0;
            }
            set_within(fields, "max_queue", &mut store.max_queue, 1, 1_000_000);
            store
        })
    }
}

impl FromNode for Durability {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match String::from_node(node, at)?.as_str() {
            "power" => Some(Self::Power),
            "crash" => Some(Self::Crash),
            other => {
                at.bad_value(format!("durability is power or crash, not `{other}`"));
                None
            }
        }
    }
}

struct LongDuration(Duration);

/// A time from an hour to ten years, written like `30days`.
impl FromNode for LongDuration {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        let time = humantime::parse_duration(&text)
            .ok()
            .filter(|time| (Duration::from_secs(DAY / 24)..=Duration::from_secs(3660 * DAY)).contains(time));
        if time.is_none() {
            at.bad_value(format!("`{text}` is no time from 1h to 10years, such as 183days"));
        }
        time.map(Self)
    }
}

struct Usage {
    prices: PriceTable,
}

impl FromNode for Usage {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self { prices: fields.or_default("prices") })
    }
}

struct Auth {
    tokens_file: Option<PathBuf>,
}

impl FromNode for Auth {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self { tokens_file: fields.optional("tokens_file") })
    }
}

impl FromNode for Log {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let mut log = Self::default();
            fields.set("format", &mut log.format);
            fields.set("level", &mut log.level);
            if let Err(error) = crate::telemetry::logging::check_level(&log.level) {
                fields.bad_value("level", error.to_string());
            }
            log
        })
    }
}

impl FromNode for LogFormat {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        let format = <Self as clap::ValueEnum>::from_str(&text, false).ok();
        if format.is_none() {
            at.bad_value(format!("a log format is auto, text, json or journald, not `{text}`"));
        }
        format
    }
}

impl FromNode for PathBuf {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        if text.is_empty() {
            at.bad_value("a path must not be empty");
        }
        Some(text.into())
    }
}

impl FromNode for SocketAddr {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        let address = text.parse().ok();
        if address.is_none() {
            at.bad_value(format!("`{text}` is no address and port, such as 127.0.0.1:7311 or [::1]:7311"));
        }
        address
    }
}

/// A time from 1 ms to a day, written like `10s` or `1m 30s`.
impl FromNode for Duration {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        if let Node::Number(number) = &node {
            at.bad_value(format!("`{number}` has no unit; write {number}s for seconds"));
            return None;
        }
        let text = String::from_node(node, at)?;
        match humantime::parse_duration(&text) {
            Ok(time) if (Self::from_millis(1)..=Self::from_secs(24 * 60 * 60)).contains(&time) => Some(time),
            Ok(_) => {
                at.bad_value("a time is 1ms to 24h");
                None
            }
            Err(error) => {
                at.bad_value(format!("`{text}` is no time, such as 10s or 500ms: {error}"));
                None
            }
        }
    }
}
