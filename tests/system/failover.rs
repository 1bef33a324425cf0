//! A primary with a synchronous standby, which takes its place when it is killed: daemons that were told of both go on.

use serde_json::json;

use crate::daemon::{Daemon, Site, document, wait_until};
use crate::database::DatabaseServer;
use crate::fault_fleet::{samples, stored, under_load};
use crate::fleet::{database, start};

fn call(mode: &str) -> String {
    json!({"tool_name": "a", "mode_name": mode, "duration_ms": 5}).to_string()
}

/// Records a call, and says whether the database has it.
fn is_stored(daemon: &Daemon, mode: &str) -> bool {
    let reply = daemon.post("/v1/executions", &call(mode));
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json().get("degraded").is_none()
}

#[test]
fn a_standby_that_is_promoted_has_whatever_was_acknowledged() {
    let Some(mut primary) = DatabaseServer::start() else { return };
    let standby = primary.standby();
    let sites = [(); 2].map(|()| Site::new());
    for site in &sites {
        site.save("a.yaml", &document("a", "Alpha"));
        site.save("b.yaml", &document("b", "Beta"));
        site.configure("store: {commit_within: 300ms}\n");
    }
    // Whichever is named first.
    let urls = [[&primary, &standby], [&standby, &primary]].map(|both| DatabaseServer::url_of(&both, "postgres"));
    let daemons = [0, 1].map(|place| start(&sites[place], &urls[place]));
    let addresses = daemons.each_ref().map(|daemon| daemon.address);
    let mut acknowledged = under_load(&addresses, "", |recorded| {
        recorded(500);
        primary.kill();
        // These are on the daemons' machines alone.
        recorded(100);
        standby.promote();
        wait_until("they go on", || daemons.iter().all(|daemon| database(daemon)["reachable"] == true));
        recorded(500);
    });
    wait_until("what waits is sent", || daemons.iter().all(|daemon| database(daemon)["waiting"] == 0));
    for (daemon, mode) in daemons.iter().zip(["last-0", "last-2"]) {
        assert!(is_stored(daemon, mode));
        acknowledged.push(mode.to_owned());
    }
    let stored = stored(&daemons[0]);
    assert!(stored.windows(2).all(|pair| pair[0] != pair[1]), "one is there twice");
    let lost: Vec<&String> = acknowledged.iter().filter(|mode| stored.binary_search(mode).is_err()).collect();
    assert!(lost.is_empty(), "of {}: {lost:?}", acknowledged.len());
    let known: Vec<&String> = acknowledged.iter().step_by(acknowledged.len() / 40 + 1).collect();
    wait_until("durations", || daemons.iter().all(|daemon| samples(daemon, &known).iter().all(|count| *count == 1)));
}

/// The modes of the calls that a server has, sorted.
fn modes(server: &DatabaseServer) -> String {
    server.ask("SELECT string_agg(mode, ' ' ORDER BY mode) FROM almanac.executions")
}

#[test]
fn what_the_primary_alone_has_is_not_acknowledged() {
    let Some(mut primary) = DatabaseServer::start() else { return };
    let mut standby = primary.standby();
    let [here, there] = [(); 2].map(|()| Site::new());
    for site in [&here, &there] {
        site.configure("store: {commit_within: 300ms}\n");
    }
    let url = DatabaseServer::url_of(&[&primary, &standby], "postgres");
    let daemon = start(&here, &url);
    assert!(is_stored(&daemon, "both"));
    standby.kill();
    assert!(!is_stored(&daemon, "primary"));
    // Whether it commits again is looked at beside, and no answer waits for that.
    let looks = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'";
    wait_until("it looks", || primary.ask(looks) != "0");
    assert!(!is_stored(&daemon, "primary-2"));
    let trouble = database(&daemon)["trouble"].clone();
    assert!(!trouble.as_str().unwrap().contains("within 10s"), "the look has ended: {trouble}");
    primary.kill();
    standby.restart();
    assert_eq!(modes(&standby), "both");
    standby.promote();
    wait_until("what waits is sent", || database(&daemon)["waiting"] == 0);
    assert!(is_stored(&daemon, "promoted"));
    assert_eq!(modes(&standby), "both primary primary-2 promoted");

    // It comes back as if nothing had been, and is taken by who starts now; nobody confirms what is told.
    primary.restart();
    assert!(!modes(&primary).contains("promoted"));
    let misled = start(&there, &url);
    assert!(!is_stored(&misled, "misled"));
    // As a standby it is passed over.
    primary.kill();
    primary.demote();
    primary.restart();
    wait_until("what waits is sent", || database(&misled)["waiting"] == 0);
    assert_eq!(modes(&standby), "both misled primary primary-2 promoted");
}
