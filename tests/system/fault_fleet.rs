//! Three daemons on one PostgreSQL, and any of the four is killed under 16 writers at each daemon, again and again:
//! every acknowledged record is there once afterwards, and the three answer the same.
//!
//! Eight rounds by default; `make fault` makes more (`ALMANAC_FLEET_FAULT_ROUNDS`). Who is killed, and when, follows
//! from a seed that is printed (`ALMANAC_FLEET_FAULT_SEED`).

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::daemon::{Connection, Daemon, Site, ask, document, wait_until};
use crate::database::DatabaseServer;
use crate::fleet::{database, start};

/// At each daemon.
const WRITERS: usize = 16;

/// Records calls until it is told to stop, or nobody answers. Returns the modes of those that were acknowledged.
fn keep_recording(address: SocketAddr, name: &str, count: &AtomicUsize, stop: &AtomicBool) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let mut connection = Connection::open(address);
    for number in 0.. {
        let (tool, mode) = (["a", "b"][number % 2], format!("{name}-{number}"));
        let body = json!({"tool_name": tool, "mode_name": mode, "duration_ms": 5, "session_id": name}).to_string();
        if stop.load(Ordering::SeqCst) {
            break;
        }
        connection.request("POST", "/v1/executions", &[("content-type", "application/json")], body.as_bytes());
        match connection.try_reply("POST") {
            Some(reply) if reply.status == 201 => {
                acknowledged.push(mode);
                count.fetch_add(1, Ordering::SeqCst);
            }
            Some(reply) => panic!("refused: {}", reply.text()),
            None => break,
        }
    }
    acknowledged
}

/// Numbers that follow from a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    /// By the seed that is given, or another one each time; it is said beside the outcome.
    fn of_this_run() -> Self {
        let given = std::env::var("ALMANAC_FLEET_FAULT_SEED").map(|seed| seed.parse().unwrap());
        let seed = given.unwrap_or_else(|_| getrandom::u64().unwrap());
        let _ = writeln!(std::io::stderr(), "ALMANAC_FLEET_FAULT_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % end as u64) as usize
    }
}

/// Who is killed in a round, and after how many acknowledgements.
struct Blow {
    /// The place of a daemon; the one behind the last is the server.
    victim: usize,
    after: usize,
}

/// Lets all write and kills one of them. Returns what was acknowledged.
fn round(number: usize, blow: &Blow, server: &mut DatabaseServer, daemons: &mut [Daemon]) -> Vec<String> {
    let addresses: Vec<SocketAddr> = daemons.iter().map(|daemon| daemon.address).collect();
    under_load(&addresses, &format!("{number}-"), |recorded| {
        recorded(blow.after);
        match daemons.get_mut(blow.victim) {
            Some(victim) => {
                victim.child.kill().unwrap();
                victim.wait();
            }
            None => server.kill(),
        }
        recorded(20);
    })
}

/// Does `what` while 16 writers record at each of these, in modes that begin with `name`. It is given what waits until
/// so many more are acknowledged. Returns the modes of those that were.
pub fn under_load(addresses: &[SocketAddr], name: &str, what: impl FnOnce(&dyn Fn(usize))) -> Vec<String> {
    let (stop, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS * addresses.len())
            .map(|place| {
                let address = addresses[place % addresses.len()];
                let (count, stop) = (&count, &stop);
                scope.spawn(move || keep_recording(address, &format!("{name}{place}"), count, stop))
            })
            .collect();
        what(&|more| {
            let until = count.load(Ordering::SeqCst) + more;
            wait_until("some are recorded", || count.load(Ordering::SeqCst) >= until);
        });
        stop.store(true, Ordering::SeqCst);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    })
}

/// The modes of all recorded calls.
pub fn stored(daemon: &Daemon) -> Vec<String> {
    let (mut stored, mut next) = (Vec::new(), String::new());
    loop {
        let page = daemon.json(&format!("/v1/executions?limit=1000{next}"));
        let modes = page["items"].as_array().unwrap().iter().map(|item| item["mode_name"].as_str().unwrap().to_owned());
        stored.extend(modes);
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        next = format!("&cursor={cursor}");
    }
    stored.sort();
    stored
}

fn next_tools(daemon: &Daemon) -> Value {
    ask(daemon, "/v1/metadata", &json!({"tool_name": "a"}))["suggestions"]["next_tools"].clone()
}

/// How many calls of each of these modes there are.
pub fn samples(daemon: &Daemon, modes: &[&String]) -> Vec<u64> {
    let one = |mode: &&String| {
        let tool = if mode.ends_with(['0', '2', '4', '6', '8']) { "a" } else { "b" };
        let asked = json!({"tool_name": tool, "mode_name": mode});
        ask(daemon, "/v1/estimate", &asked)["timing"]["samples"].as_u64().unwrap()
    };
    modes.iter().map(one).collect()
}

#[test]
fn whatever_was_acknowledged_is_there_once() {
    let rounds: usize = std::env::var("ALMANAC_FLEET_FAULT_ROUNDS").map_or(8, |rounds| rounds.parse().unwrap());
    let Some(mut server) = DatabaseServer::start() else { return };
    let sites = [(); 3].map(|()| Site::new());
    for site in &sites {
        site.save("a.yaml", &document("a", "Alpha"));
        site.save("b.yaml", &document("b", "Beta"));
        site.configure("store: {commit_within: 300ms}\n");
    }
    let url = server.url("postgres");
    let mut daemons: Vec<Daemon> = sites.iter().map(|site| start(site, &url)).collect();
    let (mut chance, mut acknowledged) = (Chance::of_this_run(), Vec::new());
    for number in 0..rounds {
        let blow = Blow { victim: chance.below(daemons.len() + 1), after: 1 + chance.below(200) };
        acknowledged.extend(round(number, &blow, &mut server, &mut daemons));
        match daemons.get_mut(blow.victim) {
            Some(victim) => *victim = start(&sites[blow.victim], &url),
            None => server.restart(),
        }
    }
    wait_until("what waits is sent", || daemons.iter().all(|daemon| database(daemon)["waiting"] == 0));
    let stored = stored(&daemons[0]);
    assert!(stored.windows(2).all(|pair| pair[0] != pair[1]), "one is there twice");
    let lost: Vec<&String> = acknowledged.iter().filter(|mode| stored.binary_search(mode).is_err()).collect();
    assert!(lost.is_empty(), "of {}: {lost:?}", acknowledged.len());
    // Counted once as well, whoever folded it: all of them are on one host.
    let known: Vec<&String> = acknowledged.iter().step_by(acknowledged.len() / 40 + 1).collect();
    wait_until("durations", || daemons.iter().all(|daemon| samples(daemon, &known).iter().all(|count| *count == 1)));
    wait_until("transitions", || {
        let [one, two, three] = [0, 1, 2].map(|place| next_tools(&daemons[place]));
        one[0]["tool"] == "b" && one == two && two == three
    });
    // A start knows the same.
    let told = next_tools(&daemons[0]);
    daemons.clear();
    let daemon = start(&sites[0], &url);
    assert!(samples(&daemon, &known).iter().all(|count| *count == 1));
    assert_eq!(next_tools(&daemon), told);
}
