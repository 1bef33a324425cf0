//! The dashboard and the alerts against what the daemon shows.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, ask, serve_shipped_on, wait_until};
use crate::fixtures::reasoning;

const DASHBOARD: &str = include_str!("../../config/prometheus/dashboard.json");
const ALERTS: &str = include_str!("../../config/prometheus/almanac.rules.yml");
const ALERT_TESTS: &str = include_str!("../../config/prometheus/almanac.rules.test.yml");

/// The daemon's metrics in a text.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("almanac_")).collect()
}

/// A daemon that has done something of all that it counts.
fn busy(site: &Site) -> Daemon {
    let library = site.path("plugins/libalmanac_reasoning.so");
    fs::copy(reasoning(), &library).unwrap();
    let behind = format!("mcp:\n  directory: {}\n  anonymous_calls: true\n", site.path("none").display());
    site.configure(&format!("{behind}  servers: {{a: {}}}}}\n", crate::mcp_fixture::server("legacy")));
    let daemon = serve_shipped_on(site);
    wait_until("the rule library", || daemon.get("/ready").status == 200);
    ask(&daemon, "/v1/executions", &json!({"tool_name": "reasoning_linear", "duration_ms": 5}));
    ask(&daemon, "/v1/metadata", &json!({"tool_name": "reasoning_linear"}));
    ask(&daemon, "/v1/qualify", &json!({"message": "weigh the options"}));
    ask(&daemon, "/v1/memories/messages/search", &json!({"criteria": {"role": "user"}}));
    assert_eq!(crate::mcp::modern(&daemon, "tools/list", json!({})).status, 200);
    wait_until("a call of a server's tool", || {
        let called = crate::mcp::modern(&daemon, "tools/call", json!({"name": "a_echo", "arguments": {"text": "x"}}));
        called.json()["result"]["isError"] == false
    });
    // Another content, so that the worker is replaced.
    let newer = site.path("plugins/.newer");
    fs::write(&newer, [fs::read(&library).unwrap(), b"\n".to_vec()].concat()).unwrap();
    fs::rename(newer, library).unwrap();
    wait_until("the newer library", || {
        let replaced = r#"almanac_plugin_restarts_total{plugin="dev.almanac.reasoning",reason="update"}"#;
        daemon.metric(replaced).is_some()
    });
    daemon
}

#[test]
fn what_is_watched_is_there_and_what_is_there_is_watched() {
    let site = Site::new();
    let daemon = busy(&site);
    let text = daemon.get("/metrics").text();
    let types: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let mut there: BTreeSet<String> = types.iter().map(|(name, _)| (*name).to_owned()).collect();
    for (name, _) in types.iter().filter(|(_, kind)| *kind == "histogram") {
        there.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
    }
    for (file, text) in [("dashboard", DASHBOARD), ("alerts", ALERTS), ("tests of alerts", ALERT_TESTS)] {
        let gone: Vec<&str> = named(text).into_iter().filter(|name| !there.contains(*name)).collect();
        assert!(gone.is_empty(), "{file} name metrics that the daemon does not have: {gone:?}");
    }
    let watched: BTreeSet<&str> = named(DASHBOARD).union(&named(ALERTS)).copied().collect();
    let is_watched = |name: &str| watched.iter().any(|seen| seen.strip_prefix(name).is_some_and(is_part));
    let own = types.iter().map(|(name, _)| *name).filter(|name| name.starts_with("almanac_"));
    let unseen: Vec<&str> = own.filter(|name| !is_watched(name)).collect();
    assert!(unseen.is_empty(), "neither the dashboard nor an alert shows {unseen:?}");
}

/// Is this what a histogram's series add to its name, or nothing?
fn is_part(rest: &str) -> bool {
    ["", "_bucket", "_sum", "_count"].contains(&rest)
}

#[test]
fn panels_have_their_own_numbers_and_places() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let (mut numbers, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(numbers.insert(panel["id"].as_u64().unwrap()), "{} has another's number", panel["title"]);
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + w <= 24, "{} is too wide", panel["title"]);
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{} lies over another one", panel["title"]);
        }
    }
}
