use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::outbox::Acknowledge;
use super::session::DatabaseSession;
use super::test_pooler::TestPooler;
use super::test_server::{Loss, Proxy, TestServer};
use super::*;
use crate::store::front::RETRY;
use crate::store::memories::Purge;
use crate::store::notes::{ChoiceNote, KeptTurnNote, TurnNote, digest};
use crate::store::suite::records::{append, execution};
use crate::store::suite::{Site, keeps_the_contract};

pub(super) fn options(address: DatabaseAddress, directory: &TempDir) -> PostgresOptions {
    PostgresOptions {
        address,
        directory: directory.path().to_owned(),
        outbox: OutboxSettings { commit_within: Duration::from_secs(30), ..OutboxSettings::default() },
        migration: Migration::Auto,
        host: "here".into(),
        retention: Some(Duration::from_secs(183 * 24 * 60 * 60)),
        max_queue: 1024,
    }
}

pub(super) fn start(options: PostgresOptions) -> Postgres {
    Postgres::start(options, Box::new(|_, _| ())).unwrap()
}

/// A database of its own on the server of this thread's tests, reached through a pooler if there is one.
struct DatabaseSite {
    server: Rc<TestServer>,
    pooler: Option<TestPooler>,
    database: String,
    directory: TempDir,
}

thread_local! {
    /// One for all sites of a test, stopped with its thread.
    static SERVER: RefCell<(Option<Rc<TestServer>>, u32)> = const { RefCell::new((None, 0)) };
}

mod through_a_pooler;

fn run(server: &TestServer, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
        session.run(sql).await.unwrap();
    });
}

impl Site for DatabaseSite {
    fn start(&self) -> Box<dyn Store> {
        let path = format!("/{}", self.database);
        let address = match &self.pooler {
            Some(pooler) => pooler.address(&self.server, "postgres", &path),
            None => self.server.address("postgres", &path),
        };
        Box::new(start(options(address, &self.directory)))
    }
}

pub(super) fn is_installed() -> bool {
    SERVER.with_borrow_mut(|(server, _)| {
        if server.is_none() {
            *server = TestServer::start().map(Rc::new);
        }
        server.is_some()
    })
}

fn site_through(pooler: impl FnOnce(&TestServer) -> Option<TestPooler>) -> Box<dyn Site> {
    assert!(is_installed());
    let (server, database) = SERVER.with_borrow_mut(|(server, databases)| {
        *databases += 1;
        (Rc::clone(server.as_ref().unwrap()), format!("site{databases}"))
    });
    run(&server, &format!("CREATE DATABASE {database}"));
    let pooler = pooler(&server);
    Box::new(DatabaseSite { server, pooler, database, directory: TempDir::new().unwrap() })
}

pub(super) fn site() -> Box<dyn Site> {
    site_through(|_| None)
}

keeps_the_contract!(site, where is_installed);

fn turn(session: &str, state: &str) -> Note {
    Note::Turn(TurnNote {
        tenant: "default".into(),
        session: session.into(),
        number: 0,
        state: state.into(),
        kept: None,
    })
}

fn choice(tool: &str, adaptation: u8) -> ChoiceNote {
    let (tenant, message, adaptation) = ("default".into(), "m".into(), vec![adaptation]);
    ChoiceNote { tenant, tool: tool.into(), message, trust: 0.5, adaptation }
}

fn call(session: &str, tool: &str, duration_ms: u64) -> Execution {
    Execution { session: Some(session.into()), ..execution(tool, None, duration_ms, None) }
}

/// So long, and so hard to compress, that no index takes it.
fn unindexable() -> String {
    let next = |number: &u64| Some(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    std::iter::successors(Some(1), next).take(2000).map(|number| format!("{number:x}")).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn what_was_noted_is_there_after_a_restart() {
    if !is_installed() {
        return;
    }
    let site = site();
    let store = site.start();
    store.note(vec![turn("a", "1"), turn("b", "1"), Note::Choice(choice("x", 1))]).unwrap();
    store.note(vec![turn("a", "2"), Note::Choice(choice("y", 2))]).unwrap();
    drop(store);
    let store = site.start();
    let notes = store.replay(ReplayLimits::default()).unwrap().notes;
    let states: Vec<(&str, &str)> = notes.turns.iter().map(|turn| (&*turn.session, &*turn.state)).collect();
    assert_eq!(states, [("b", "1"), ("a", "2")]);
    assert_eq!(notes.choices, [choice("x", 2), choice("y", 2)]);
    assert_eq!(store.choices("default", "x", 9).unwrap().len(), 1);
}

/// Records, memories and notes are everybody's; how long calls take is each host's.
#[test]
fn daemons_share_what_is_not_their_hosts() {
    let Some(server) = TestServer::start() else { return };
    let directories = [(); 3].map(|()| TempDir::new().unwrap());
    let start_at = |place: usize, host: &str| {
        start(PostgresOptions { host: host.into(), ..options(server.address("postgres", ""), &directories[place]) })
    };
    let (one, two) = (start_at(0, "h1"), start_at(1, "h2"));
    append(&one, vec![call("s", "a", 1), call("s", "b", 2)]).unwrap();
    append(&two, vec![call("s", "c", 3), call("t", "a", 4), call("t", "b", 5)]).unwrap();
    one.note(vec![turn("s", "1"), Note::Choice(choice("a", 1))]).unwrap();
    let keyed = vec![execution("a", None, 9, Some("k"))];
    assert_eq!(append(&one, keyed.clone()).unwrap().samples, [Some(2)]);
    assert_eq!(append(&two, keyed).unwrap().samples, [None], "another daemon was told");
    let memory = crate::store::suite::memories::add(
        one.memories(),
        "default",
        crate::store::suite::memories::draft("tea with milk", &serde_json::json!({})),
    )
    .unwrap();
    assert_eq!(two.memories().get("default", &memory.id).unwrap().as_ref(), Some(&memory));
    let own = ExecutionFilter { tenant: "default".into(), limit: 10, ..ExecutionFilter::default() };
    assert_eq!(one.executions(&own).unwrap(), two.executions(&own).unwrap());
    assert_eq!(two.executions(&own).unwrap().calls.len(), 6);
    drop((one, two));
    let (one, new) = (start_at(0, "h1"), start_at(2, "h3"));
    let [of_one, of_new] = [&one, &new].map(|store| store.replay(ReplayLimits::default()).unwrap());
    let durations = |history: &History| history.executions.iter().filter_map(|row| row.duration_ms).collect::<Vec<_>>();
    assert_eq!((durations(&of_one), durations(&of_new)), (vec![1, 2, 9], vec![]));
    let b_after_a = |history: &History| {
        let after_a =
            history.transitions.iter().find(|state| state.prefix.before.is_none() && state.prefix.last == "a");
        after_a.unwrap().followers.get("b").unwrap().samples
    };
    assert_eq!((b_after_a(&of_one), b_after_a(&of_new)), (2, 2), "at both daemons");
    assert_eq!(of_one.transitions.len(), of_new.transitions.len());
    let mut ticks: Vec<u64> = of_one.transitions.iter().map(|state| state.tick).collect();
    assert!(ticks.is_sorted());
    ticks.dedup();
    assert_eq!(ticks.len(), of_one.transitions.len());
    assert_eq!(of_new.notes.turns.len() + of_new.notes.choices.len(), 2);
    assert_eq!(of_new.calls, of_one.calls);
    // What is counted from now on comes to what others counted.
    let stored = append(&one, vec![call("u", "a", 1), call("u", "b", 1)]).unwrap();
    let changed = stored.transitions.last().unwrap();
    assert_eq!(changed.followers.get("b").unwrap().samples, 3);
    assert!(changed.tick > ticks[ticks.len() - 1]);
}

#[test]
fn a_server_that_is_away_at_the_start_is_waited_for() {
    let Some(mut server) = TestServer::start() else { return };
    let directory = TempDir::new().unwrap();
    let options = options(server.address("postgres", ""), &directory);
    append(&start(options.clone()), vec![call("s", "a", 1)]).unwrap();
    server.kill();
    let store = start(options);
    assert_eq!(store.trouble(), None, "records are taken");
    assert!(store.unreadable().unwrap().contains("cannot be reached"));
    assert!(matches!(store.replay(ReplayLimits::default()), Err(StoreError::Unavailable(_))));
    let keyed = vec![execution("b", None, 2, Some("k")), call("s", "c", 3)];
    let stored = append(&store, keyed.clone()).unwrap();
    assert_eq!(stored.degraded.as_deref(), Some("database unreachable: spooling"));
    assert_eq!(append(&store, keyed).unwrap().samples[0], None, "told again");
    assert_eq!(store.standings().unwrap().waiting, 3);
    assert!(matches!(store.memories().get("default", "x"), Err(StoreError::Unavailable(_))));
    let added =
        store.memories().add("default", crate::store::suite::memories::draft("x", &serde_json::json!({})), None);
    assert!(added.unwrap().durable_blocking().is_err());
    server.restart();
    wait_until("it goes on", || store.unreadable().is_none());
    let history = store.replay(ReplayLimits::default()).unwrap();
    assert_eq!(history.executions.len(), 1, "what there was when it opened");
    let own = ExecutionFilter { tenant: "default".into(), limit: 10, ..ExecutionFilter::default() };
    let tools: Vec<String> =
        store.executions(&own).unwrap().calls.into_iter().map(|call| call.execution.tool).collect();
    assert_eq!(tools, ["c", "c", "b", "a"]);
    let stored = append(&store, vec![call("s", "c", 3)]).unwrap();
    assert_eq!((stored.degraded, &stored.samples[..]), (None, &[Some(3)][..]));
    assert_eq!(store.standings().unwrap().waiting, 0);
}

#[test]
fn memories_are_taken_before_all_that_waits_is_sent() {
    let Some(mut server) = TestServer::start() else { return };
    let directory = TempDir::new().unwrap();
    let mut options = options(server.address("postgres", ""), &directory);
    options.outbox.commit_within = Duration::from_millis(200);
    drop(start(options.clone()));
    server.kill();
    let store = start(options);
    for _ in 0..15 {
        append(&store, vec![execution("a", None, 1, None); 4000]).unwrap();
    }
    server.restart();
    wait_until("a memory is taken", || {
        let draft = crate::store::suite::memories::draft("x", &serde_json::json!({}));
        store.memories().add("default", draft, None).unwrap().durable_blocking().is_ok()
    });
    let waiting = store.standings().unwrap().waiting;
    assert!(waiting > 0, "only when all was sent");
    wait_until("all is sent", || store.standings().unwrap().waiting == 0);
    wait_until("its history is there", || store.unreadable().is_none());
    store.replay(ReplayLimits::default()).unwrap();
    assert_eq!(append(&store, vec![execution("a", None, 1, None)]).unwrap().samples, [Some(60_001)]);
}

#[test]
fn who_does_not_spool_is_in_trouble_without_the_server() {
    let Some(mut server) = TestServer::start() else { return };
    let directory = TempDir::new().unwrap();
    let mut options = options(server.address("postgres", ""), &directory);
    options.outbox.when_unreachable = WhenUnreachable::Refuse;
    options.outbox.commit_within = Duration::from_millis(300);
    let store = start(options);
    append(&store, vec![call("s", "a", 1)]).unwrap();
    server.kill();
    let refused = append(&store, vec![call("s", "a", 1)]).unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    assert!(store.trouble().is_some() && store.standings().unwrap().is_refusing);
    server.restart();
    wait_until("it goes on", || store.trouble().is_none());
    assert_eq!(append(&store, vec![call("s", "a", 1)]).unwrap().samples, [Some(2)]);
}

/// What this machine's journal acknowledges waits for no server, neither one that is gone nor one that hangs.
#[test]
fn what_the_journal_acknowledges_does_not_wait_for_the_server() {
    let check = |lose: &dyn Fn(&mut TestServer, &Proxy)| {
        let Some(mut server) = TestServer::start() else { return };
        let (directory, proxy) = (TempDir::new().unwrap(), Proxy::before(&server));
        let mut options = options(proxy.address(), &directory);
        options.outbox.acknowledge = Acknowledge::Journal;
        options.outbox.commit_within = Duration::from_millis(300);
        let store = start(options);
        append(&store, vec![call("s", "a", 1)]).unwrap();
        lose(&mut server, &proxy);
        let begun = Instant::now();
        for _ in 0..5 {
            append(&store, vec![call("s", "b", 1)]).unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        proxy.swallow_answers(false);
    };
    check(&|server, _| server.kill());
    check(&|_, proxy| proxy.swallow_answers(true));
}

/// Nobody is told that nothing was done of what was done, however its commit was lost.
#[test]
fn what_became_of_a_commit_that_was_not_answered_is_found_out() {
    let check = |loss: Loss, expected: Result<(), &str>, is_kept: bool| {
        let Some(server) = TestServer::start() else { return };
        let (directory, proxy) = (TempDir::new().unwrap(), Proxy::before(&server));
        let mut options = options(proxy.address(), &directory);
        options.outbox.commit_within = Duration::from_secs(3);
        let store = start(options);
        let draft = |id: &str| crate::store::suite::memories::draft(id, &serde_json::json!({}));
        store.memories().add("default", draft("first"), None).unwrap().durable_blocking().unwrap();
        proxy.lose_commit(loss);
        let added = store.memories().add("default", draft("second"), None).unwrap().durable_blocking();
        match (&added, expected) {
            (Ok(added), Ok(())) => assert_eq!(added.memory.version, 1),
            (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{loss:?}: {error}"),
            _ => panic!("{loss:?}: {added:?}"),
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let count = async {
            let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
            session.query_one("SELECT count(*) FROM almanac.memories", &[]).await.unwrap().get::<_, i64>(0)
        };
        assert_eq!(runtime.block_on(count), 1 + i64::from(is_kept), "{loss:?}");
    };
    check(Loss::Answer, Ok(()), true);
    check(Loss::Question, Err("cannot be reached"), false);
    check(Loss::AnswerAndServer, Err("it is not known whether this was done"), true);
}

#[test]
fn a_wrong_setting_is_not_waited_for() {
    let Some(server) = TestServer::start() else { return };
    let directory = TempDir::new().unwrap();
    let said = |address: DatabaseAddress| {
        let begun = Instant::now();
        let fault = Postgres::start(options(address, &directory), Box::new(|_, _| ())).unwrap_err();
        assert!(matches!(fault, PostgresStartError::Setting(_)) && begun.elapsed() < Duration::from_secs(30));
        fault.to_string()
    };
    assert!(said(server.address("postgres", "/nowhere")).contains("no such database"));
    assert!(said(server.address("nobody", "")).contains("refuses the user"));
    run(&server, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    assert!(said(server.address("postgres", "/latin")).contains("the encoding LATIN1; make one by `createdb"));
}

#[test]
fn what_no_database_stores_is_refused() {
    if !is_installed() {
        return;
    }
    let site = site();
    let store = site.start();
    let refused = append(&*store, vec![call("s", "a", 1), call("s", "a\0", 1)]);
    assert!(matches!(refused, Err(StoreError::Unstorable(_))), "{refused:?}");
    let refused = append(&*store, vec![call("s", "a", 1), Execution { tool: unindexable(), ..call("s", "a", 1) }]);
    assert!(matches!(refused, Err(StoreError::Unstorable(_))), "{refused:?}");
    let draft = crate::store::suite::memories::draft("x", &serde_json::json!({"y": "\0"}));
    assert!(matches!(store.memories().add("t", draft, None), Err(StoreError::Unstorable(_))));
    assert_eq!(append(&*store, vec![call("s", "a", 1)]).unwrap().samples, [Some(1)]);
}

/// What the server refuses and cannot be put aside holds up what waits: the reason stands until it can be.
#[test]
fn a_spool_that_fails_is_told_until_it_works() {
    let Some(mut server) = TestServer::start() else { return };
    let directory = TempDir::new().unwrap();
    let mut options = options(server.address("postgres", ""), &directory);
    options.outbox.commit_within = Duration::from_secs(1);
    let store = start(options);
    append(&store, vec![call("s", "a", 1)]).unwrap();
    server.kill();
    let refused = Execution { tool: unindexable(), ..call("s", "a", 1) };
    assert!(append(&store, vec![refused, call("s", "b", 1)]).unwrap().degraded.is_some());
    // A disk that is full, or a directory that may not be written, would be in the way like this.
    let aside = directory.path().join("spool.refused");
    std::fs::create_dir(&aside).unwrap();
    server.restart();
    let told = || store.standings().unwrap().trouble.clone().unwrap_or_default();
    let is_told = || told().contains("spool.refused");
    wait_until("it is told", is_told);
    // Tried again meanwhile, more than once.
    let begun = Instant::now();
    while begun.elapsed() < 3 * RETRY {
        assert!(is_told(), "{}", told());
        assert_eq!(store.trouble(), None, "records are taken");
    }
    assert!(append(&store, vec![call("s", "c", 1)]).unwrap().degraded.is_some());
    std::fs::remove_dir(&aside).unwrap();
    wait_until("all is sent", || store.standings().unwrap().waiting == 0);
    wait_until("nothing is in the way", || told().is_empty());
    assert_eq!(store.standings().unwrap().put_aside, 1);
    assert_eq!(std::fs::read_to_string(&aside).unwrap().lines().count(), 1, "it was acknowledged, so it is somewhere");
    assert_eq!(append(&store, vec![call("s", "b", 1)]).unwrap().samples, [Some(2)]);
}

/// What the server's clock says is what counts for memories, and a daemon tells that its own says something else.
#[test]
fn a_clock_that_is_ahead_moves_no_memory() {
    let Some(server) = TestServer::start() else { return };
    run(
        &server,
        "CREATE SCHEMA slow; ALTER ROLE postgres SET search_path = slow, pg_catalog;
         CREATE FUNCTION slow.clock_timestamp() RETURNS timestamptz LANGUAGE sql
             AS 'SELECT pg_catalog.clock_timestamp() - interval ''1 hour'''",
    );
    let directory = TempDir::new().unwrap();
    let store = start(options(server.address("postgres", ""), &directory));
    let added = [(); 2].map(|()| {
        let draft = crate::store::suite::memories::draft("tea", &serde_json::json!({}));
        let before = crate::store::clock::now();
        let added = store.memories().add("default", draft, None).unwrap().durable_blocking().unwrap();
        let (from, to) = (before.as_micros() as i64, crate::store::clock::now().as_micros() as i64);
        let hour = 3_600_000_000;
        let created = added.memory.created_us;
        assert!((from - hour..=to - hour).contains(&created), "{created} in {from}..{to}");
        created
    });
    assert!(added[0] < added[1]);
    let told = || store.standings().unwrap().clock.map(|clock| clock.to_string()).unwrap_or_default();
    wait_until("it is told", || told().contains("ahead of the database server's"));
}

/// What a daemon noted of what was purged at another is not written, until it has followed the purge and forgotten it.
#[test]
fn what_was_purged_at_another_daemon_is_not_noted_again() {
    let Some(server) = TestServer::start() else { return };
    let directories = [(); 2].map(|()| TempDir::new().unwrap());
    let [one, two] = [0, 1].map(|place| start(options(server.address("postgres", ""), &directories[place])));
    for store in [&one, &two] {
        store.replay(ReplayLimits::default()).unwrap();
    }
    let said = |message: &str| Note::Choice(ChoiceNote { message: message.into(), ..choice("x", 0) });
    let note = |notes: Vec<Note>| {
        for written in two.note(notes).unwrap().0 {
            written.blocking_recv().unwrap().unwrap();
        }
    };
    let kept = KeptTurnNote { digest: digest("the secret"), state: "{}".into() };
    let secret = |name: &str| match turn(name, r#"{"message": "the secret"}"#) {
        Note::Turn(turn) => Note::Turn(TurnNote { kept: Some(kept.clone()), ..turn }),
        choice @ Note::Choice(_) => choice,
    };
    let saying = [secret("at it"), turn("about it", r#"{"message": "m", "said": ["the secret", "n"]}"#)];
    let notes = || {
        let notes = one.replay(ReplayLimits::default()).unwrap().notes;
        let turns: Vec<String> = notes.turns.into_iter().map(|turn| turn.session).collect();
        (turns, notes.choices.into_iter().map(|choice| choice.message).collect::<Vec<_>>())
    };
    let draft = crate::store::suite::memories::draft("the secret", &serde_json::json!({}));
    one.memories().add("default", draft, None).unwrap().durable_blocking().unwrap();
    note(vec![secret("before")]);
    let purge = || one.memories().purge("default", Purge::Everybody, |_| Vec::new()).unwrap().durable_blocking();
    assert_eq!(purge().unwrap().sessions, ["before"]);
    note(saying.to_vec());
    note(vec![turn("before", "{}"), turn("other", r#"{"message": "m"}"#), said("the secret"), said("m")]);
    assert_eq!(notes(), (vec!["other".into()], vec!["m".into()]));
    let followed = two.follow().unwrap();
    let [purge, anew] = &followed.purges[..] else { panic!("{followed:?}") };
    assert!(purge.texts.has("the secret") && purge.sessions == ["before"] && purge.choices.is_none());
    assert!(
        anew.texts.is_empty()
            && anew.choices.as_ref().is_some_and(|left| left.are_all && left.choices[0].message == "m")
    );
    note(vec![said("the secret")]);
    assert_eq!(notes().1.len(), 1, "what was followed is not forgotten yet");
    assert_eq!(two.follow().unwrap().purges.len(), 1, "its choices are learnt anew");
    assert!(two.follow().unwrap().purges.is_empty());
    two.has_forgotten();
    // So it is for whoever purges.
    one.note([saying.to_vec(), vec![said("the secret")]].concat()).unwrap().wait();
    assert_eq!(notes().1.len(), 1);
    assert!(one.follow().unwrap().purges[0].texts.has("the secret"));
    one.has_forgotten();
    // A session that is forgotten begins anew, whatever stood there.
    let number = |number: i64, state: &str| match turn("long", state) {
        Note::Turn(turn) => Note::Turn(TurnNote { number, ..turn }),
        choice @ Note::Choice(_) => choice,
    };
    note(vec![number(5, r#"{"message": "m"}"#)]);
    let draft = crate::store::suite::memories::draft("another secret", &serde_json::json!({}));
    one.memories().add("default", draft, None).unwrap().durable_blocking().unwrap();
    one.memories().purge("default", Purge::Everybody, |_| Vec::new()).unwrap().durable_blocking().unwrap();
    note(vec![number(6, r#"{"message": "another secret"}"#)]);
    note(vec![number(1, r#"{"message": "n"}"#)]);
    assert_eq!(notes().0, ["other", "long"]);
    assert_eq!(two.follow().unwrap().purges.len(), 1);
    two.has_forgotten();
    one.follow().unwrap();
    one.has_forgotten();
    note(vec![number(2, r#"{"message": "o"}"#)]);
    note([saying.to_vec(), vec![said("the secret")]].concat());
    assert_eq!(
        notes(),
        (["other", "long", "at it", "about it"].map(Into::into).into(), vec!["m".into(), "the secret".into()])
    );
    // What choices moved starts anew with a purge that took one.
    let draft = crate::store::suite::memories::draft("the secret", &serde_json::json!({}));
    one.memories().add("default", draft, None).unwrap().durable_blocking().unwrap();
    one.memories().purge("default", Purge::Everybody, |_| Vec::new()).unwrap().durable_blocking().unwrap();
    note(vec![Note::Choice(choice("y", 7))]);
    let kept = one.kept_choices("default").unwrap();
    assert_eq!(
        (&*kept[1].tool, &kept[1].adaptation[..]),
        ("y", &[][..]),
        "it was moved from where that had brought it"
    );
}

#[test]
fn whoever_notes_and_whoever_purges_take_turns() {
    let Some(server) = TestServer::start() else { return };
    let directories = [(); 2].map(|()| TempDir::new().unwrap());
    let [one, two] = [0, 1].map(|place| start(options(server.address("postgres", ""), &directories[place])));
    two.replay(ReplayLimits::default()).unwrap();
    for round in 0..20 {
        let secret = format!("the secret of round {round}");
        let draft = crate::store::suite::memories::draft(&secret, &serde_json::json!({}));
        let added = one.memories().add("default", draft, None).unwrap().durable_blocking().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20 {
                    let choice = ChoiceNote { message: secret.clone(), ..choice("x", 0) };
                    let notes = vec![Note::Choice(choice), turn("s", &format!(r#"{{"message": "{secret}"}}"#))];
                    for written in two.note(notes).unwrap().0 {
                        written.blocking_recv().unwrap().unwrap();
                    }
                }
            });
            let purge = Purge::Ids(vec![added.memory.id]);
            one.memories().purge("default", purge, |_| Vec::new()).unwrap().durable_blocking().unwrap();
        });
        let notes = one.replay(ReplayLimits::default()).unwrap().notes;
        assert!(notes.turns.is_empty() && notes.choices.is_empty(), "{round}: {notes:?}");
    }
}
