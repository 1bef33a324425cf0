//! Servers as whoever looks at them sees them, over the public calls.

use serde_json::json;

use super::served::{Served, configure};
use crate::access::token;
use crate::daemon::{Site, wait_until};
use crate::mcp_fixture::server;

#[test]
fn servers_are_listed_with_the_calls_that_are_under_way() {
    let served = Served::one("legacy");
    let listed = || served.daemon.json("/v1/servers");
    let first = listed();
    let item = &first["items"][0];
    assert_eq!((&item["name"], &item["state"], &item["tools"]), (&"a".into(), &"up".into(), &6.into()), "{first:#}");
    assert_eq!(first["calls"], json!([]));
    // Whoever waits gives up on it soon, and it goes on.
    let call = json!({"name": "a_sleep", "arguments": {"ms": 30_000}, "wait_seconds": 0.05});
    served.call("call_tool", call);
    wait_until("the call", || listed()["calls"][0]["running_ms"].is_u64());
    let call = listed()["calls"][0].clone();
    assert_eq!((&call["server"], &call["tool"]), (&"a".into(), &"a_sleep".into()), "{call:#}");
    assert!(call["p50_left_ms"].as_u64() <= call["p90_left_ms"].as_u64(), "{call:#}");
    assert!((0.0..=1.0).contains(&call["longer_probability"].as_f64().unwrap()), "{call:#}");
}

#[test]
fn a_changed_definition_is_shown_beside_the_old_and_approved_by_whoever_may() {
    let site = Site::new();
    let (admin, reader) = (token(&site, "admin", "admin"), token(&site, "reader", "read"));
    let with = |says: &str| format!("    a: {}, on_change: block}}\n", server(&format!("legacy says={says}")));
    let auth = format!("auth: {{tokens_file: {}}}\n", site.path("tokens").display());
    let set_up = |says: &str| {
        configure(&site, &with(says), "");
        let text = std::fs::read_to_string(site.path("almanac.yaml")).unwrap();
        site.configure(&format!("{text}{auth}"));
    };
    set_up("old");
    let daemon = site.start();
    let ask = |method: &str, path: &str, token: &str| {
        daemon.send(method, path, &[("authorization", &format!("Bearer {token}"))], b"")
    };
    wait_until("the server", || ask("GET", "/v1/servers", &reader).json()["items"][0]["state"] == "up");
    set_up("new");
    assert_eq!(daemon.admin("POST", "/-/reload", b"").status, 200);
    wait_until("the change", || ask("GET", "/v1/servers", &reader).json()["items"][0]["waiting"] == 6);
    let changes = ask("GET", "/v1/servers/a/changes", &reader).json();
    let echo = changes["items"].as_array().unwrap().iter().find(|item| item["tool"] == "echo").unwrap();
    assert_eq!((&echo["approved"]["description"], &echo["offered"]["description"]), (&"old".into(), &"new".into()));
    let approve = |token: &str| ask("POST", "/v1/servers/a/approve?tool=echo", token);
    assert_eq!((approve(&reader).status, approve(&reader).code()), (403, "missing-scope".to_owned()));
    assert_eq!(approve(&admin).json()["approved"], json!(["echo"]));
    assert_eq!(ask("GET", "/v1/servers/a/changes", &reader).json()["items"].as_array().unwrap().len(), 5);
    assert_eq!(ask("GET", "/v1/servers/b/changes", &reader).status, 404);
}
