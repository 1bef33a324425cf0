//! What the daemons of a fleet say of each other: `GET /v1/fleet`, and `almanacd ctl fleet`.

use std::thread;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, document, wait_for, wait_until};
use crate::database::DatabaseServer;

/// A daemon that says a host, beside what is configured.
fn start(site: &Site, server: &DatabaseServer, host: &str, store: &str) -> Daemon {
    site.save("a.yaml", &document("a", "Alpha"));
    site.configure(&format!("store: {{host: {host}, {store}}}\n"));
    let mut command = site.command();
    command.env("ALMANAC_DATABASE_URL", server.url("postgres"));
    Daemon::start(command, site.path("state/admin.sock"))
}

/// The one of a host, as another daemon lists it.
fn of_host(daemon: &Daemon, host: &str) -> Option<Value> {
    let fleet = daemon.json("/v1/fleet");
    assert_eq!(fleet["store"], "postgresql", "{fleet:#}");
    fleet["items"].as_array().unwrap().iter().find(|item| item["host"] == host).cloned()
}

fn state(daemon: &Daemon, host: &str) -> String {
    of_host(daemon, host).map_or_else(String::new, |item| item["state"].as_str().unwrap().to_owned())
}

fn record(daemon: &Daemon, tool: &str) {
    let call = json!({"tool_name": tool, "duration_ms": 500}).to_string();
    assert_eq!(daemon.post("/v1/executions", &call).status, 201);
}

/// What `almanacd ctl fleet` says, and whether it finds all well.
fn ctl(site: &Site) -> (bool, String) {
    let mut command = almanacd();
    command.args(["ctl", "--socket"]).arg(site.path("state/admin.sock")).arg("fleet");
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn a_daemon_alone_is_no_fleet() {
    let site = Site::new();
    let daemon = site.start();
    assert_eq!(daemon.json("/v1/fleet"), json!({"store": "sqlite", "items": [], "total": 0}));
    let (is_well, said) = ctl(&site);
    assert!(is_well && said.contains("alone") && said.contains("store.url"), "{said}");
}

#[test]
fn each_is_listed_with_how_it_is_until_it_is_silent_or_stops() {
    let Some(server) = DatabaseServer::start() else { return };
    let sites = [(); 3].map(|()| Site::new());
    let hosts = ["one", "two", "three"];
    let mut daemons: Vec<Daemon> = sites.iter().zip(hosts).map(|(site, host)| start(site, &server, host, "")).collect();
    wait_until("all are heard of", || daemons.iter().all(|daemon| hosts.iter().all(|h| state(daemon, h) == "alive")));
    let fleet = daemons[0].json("/v1/fleet");
    assert_eq!((&fleet["total"], fleet.get("degraded")), (&json!(3), None), "{fleet:#}");
    for (site, daemon) in sites.iter().zip(&daemons) {
        let fleet = daemon.json("/v1/fleet");
        let own: Vec<&Value> = fleet["items"].as_array().unwrap().iter().filter(|item| item["self"] == true).collect();
        let id = std::fs::read_to_string(site.path("state/daemon.id")).unwrap();
        assert_eq!((own.len(), own[0]["id"].as_str()), (1, Some(id.trim())), "{fleet:#}");
    }
    let two = of_host(&daemons[0], "two").unwrap();
    assert_eq!(two["version"], daemons[1].admin("GET", "/-/status", b"").json()["version"]);
    let database = &two["database"];
    let said = (&database["reachable"], &database["waiting"], &database["put_aside"], &database["behind"]);
    assert_eq!(said, (&json!(true), &json!(0), &json!(0), &json!(0)), "{two:#}");
    assert!(two["unseen_seconds"].as_f64().unwrap() < 15.0 && two["started_at"].is_string(), "{two:#}");
    let (is_well, said) = ctl(&sites[0]);
    assert!(is_well && said.lines().count() == 3 && said.contains("on three, version"), "{said}");
    // One is killed, one ends in order.
    daemons[1].child.kill().unwrap();
    daemons[2].signal("TERM");
    for daemon in &mut daemons[1..] {
        daemon.wait();
    }
    wait_until("one has stopped", || state(&daemons[0], "three") == "stopped");
    wait_until("one is silent", || state(&daemons[0], "two") == "silent");
    assert!(of_host(&daemons[0], "two").unwrap()["unseen_seconds"].as_f64().unwrap() >= 15.0);
    let (is_well, said) = ctl(&sites[0]);
    assert!(!is_well && said.contains("not heard of for"), "{said}");
    // They come back as what they were.
    let again: Vec<Daemon> = (1..3).map(|place| start(&sites[place], &server, hosts[place], "")).collect();
    wait_until("all are there", || again.iter().all(|daemon| hosts.iter().all(|host| state(daemon, host) == "alive")));
    assert_eq!(again[0].json("/v1/fleet")["total"], 3);
}

#[test]
fn what_one_spools_and_puts_aside_the_others_see() {
    let Some(server) = DatabaseServer::start() else { return };
    let sites = [(); 2].map(|()| Site::new());
    let one = start(&sites[0], &server, "one", "");
    let two = start(&sites[1], &server, "two", "commit_within: 300ms, acknowledge: journal");
    wait_until("both are heard of", || state(&one, "two") == "alive");
    let database = || of_host(&one, "two").unwrap()["database"].clone();
    // Its records do not go through, and what it says of that does.
    thread::scope(|scope| {
        let held = "DO $$ BEGIN LOCK TABLE almanac.executions IN EXCLUSIVE MODE;
            WHILE NOT EXISTS (SELECT FROM pg_class WHERE relname = 'let_go') LOOP
                PERFORM pg_sleep(0.05);
            END LOOP; END $$";
        scope.spawn(|| server.ask(held));
        let locks = "SELECT count(*) FROM pg_locks
            WHERE mode = 'ExclusiveLock' AND relation = 'almanac.executions'::regclass AND granted";
        wait_until("nothing can be stored", || server.ask(locks) == "1");
        record(&two, "a");
        let waiting = wait_for("what waits is seen", || Some(database()).filter(|database| database["waiting"] == 1));
        assert!(waiting["spooled_bytes"].as_u64().unwrap() > 0, "{waiting:#}");
        let oldest = || database()["oldest_seconds"].as_f64().unwrap();
        wait_until("it grows old", || oldest() > 2.0);
        wait_until("why is seen", || database()["trouble"].is_string());
        assert!(ctl(&sites[0]).1.contains("only on its machine: 1 record"), "{:?}", ctl(&sites[0]));
        server.ask("CREATE TABLE public.let_go ()");
    });
    wait_until("nothing waits", || database()["waiting"] == 0 && database()["reachable"] == true);
    server.ask("ALTER TABLE almanac.executions ADD CHECK (tool <> 'b')");
    record(&two, "b");
    wait_until("what was put aside is seen", || database()["put_aside"] == 1);
    assert!(ctl(&sites[0]).1.contains("put aside in its spool.refused: 1 record"), "{:?}", ctl(&sites[0]));
}

#[test]
fn while_the_database_is_away_it_is_the_one_that_answers() {
    let Some(mut server) = DatabaseServer::start() else { return };
    let sites = [(); 2].map(|()| Site::new());
    let daemons = [0, 1].map(|place| start(&sites[place], &server, ["one", "two"][place], "commit_within: 300ms"));
    let [one, _two] = &daemons;
    wait_until("both are heard of", || state(one, "two") == "alive");
    server.kill();
    record(one, "a");
    let fleet = one.json("/v1/fleet");
    assert_eq!((&fleet["total"], fleet["degraded"].as_array().map(Vec::len)), (&json!(1), Some(1)), "{fleet:#}");
    let own = &fleet["items"][0];
    assert_eq!((&own["self"], &own["host"], &own["state"]), (&json!(true), &json!("one"), &json!("alive")));
    assert_eq!((&own["database"]["reachable"], &own["database"]["waiting"]), (&json!(false), &json!(1)), "{own:#}");
    let (is_well, said) = ctl(&sites[0]);
    assert!(!is_well && said.contains("the other daemons cannot be listed"), "{said}");
    server.restart();
    wait_until("both are heard of again", || state(one, "two") == "alive");
    wait_until("nothing waits", || of_host(one, "one").unwrap()["database"]["waiting"] == 0);
    assert!(one.json("/v1/fleet").get("degraded").is_none());
}
