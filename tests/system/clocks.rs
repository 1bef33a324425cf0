//! Clocks that are wrong: nothing is removed for it, and nothing is refused that is right.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, ask, wait_until};
use crate::database::DatabaseServer;
use crate::fixtures::compile;
use crate::memory::{self, message};

pub const DAY_S: i64 = 24 * 60 * 60;

/// What is loaded before a daemon for its clock to be another.
pub fn preload(site: &Site) -> PathBuf {
    let clock = site.path("clock.so");
    if !clock.exists() {
        compile("../clock", &[], &clock);
    }
    clock
}

/// A daemon whose clock is ahead by so many seconds.
pub fn start(site: &Site, ahead_s: i64) -> Daemon {
    let mut command = site.command();
    command.env("LD_PRELOAD", preload(site)).env("CLOCK_AHEAD_S", ahead_s.to_string());
    Daemon::start(command, site.path("state/admin.sock"))
}

pub fn estimate(daemon: &Daemon) -> Value {
    ask(daemon, "/v1/estimate", &json!({"tool_name": "a"}))["timing"].clone()
}

#[test]
fn a_clock_that_leaps_ahead_takes_no_record() {
    let site = Site::new();
    let daemon = start(&site, 0);
    let keyed = json!({"tool_name": "a", "duration_ms": 4000, "idempotency_key": "k"});
    ask(&daemon, "/v1/executions", &keyed);
    let more: Vec<Value> = (0..19).map(|_| json!({"tool_name": "a", "duration_ms": 4000})).collect();
    ask(&daemon, "/v1/executions", &Value::from(more));
    let known = estimate(&daemon);
    assert_eq!((&known["basis"], &known["confidence"]), (&json!("history"), &json!("high")));
    drop(daemon);
    let ahead = start(&site, 200 * DAY_S);
    ahead.log.wait_for("removes nothing for that");
    // The line comes before anything could be removed; what was sent before is stored after it.
    assert_eq!(ask(&ahead, "/v1/executions", &keyed)["recorded"], 0, "its key is forgotten");
    drop(ahead);
    let back = start(&site, 0);
    back.log.wait_for("removes nothing for that");
    assert_eq!(estimate(&back), known);
}

#[test]
fn a_daemon_that_is_behind_takes_what_is_stamped_rightly() {
    let site = Site::new();
    let behind = start(&site, -2 * 60 * 60);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let call = json!({"tool_name": "a", "duration_ms": 4000, "timestamp": now});
    assert_eq!(ask(&behind, "/v1/executions", &call)["recorded"], 1);
    let in_other_units = json!({"tool_name": "a", "duration_ms": 4000, "timestamp": now * 1000});
    let refused = behind.post("/v1/executions", &in_other_units.to_string());
    assert_eq!((refused.status, refused.code()), (422, "future-timestamp".to_owned()));
}

#[test]
fn a_clock_that_is_not_the_database_s_is_told_and_moves_no_memory() {
    let Some(server) = DatabaseServer::start() else { return };
    let sites = [Site::new(), Site::new()];
    let start_at = |place: usize, ahead_s: i64| {
        let mut command = sites[place].command();
        command.env("LD_PRELOAD", preload(&sites[place])).env("CLOCK_AHEAD_S", ahead_s.to_string());
        command.env("ALMANAC_DATABASE_URL", server.url("postgres"));
        Daemon::start(command, sites[place].path("state/admin.sock"))
    };
    let [ahead, right] = [start_at(0, DAY_S), start_at(1, 0)];
    let troubles = |daemon: &Daemon| daemon.admin("GET", "/-/status", b"").json()["troubles"].to_string();
    ahead.log.wait_for("ahead of the database server's");
    wait_until("it is told", || troubles(&ahead).contains("ahead of the database server's; have NTP set both"));
    assert!(!troubles(&right).contains("database server's"), "{}", troubles(&right));
    let [first, second] =
        [(&ahead, 0), (&right, 1)].map(|(daemon, place)| memory::add(daemon, "messages", &message("m", "th", place)));
    let created = |memory: &Value| memory["createdAt"].as_str().unwrap().to_owned();
    let soon = SystemTime::now() + std::time::Duration::from_secs(60);
    let soon = humantime::format_rfc3339_millis(soon).to_string();
    assert!(created(&first) < created(&second) && created(&second) < soon, "{first} {second}");
}
