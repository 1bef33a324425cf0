//! One hostile library after the other, beside a good one, under a host that must answer all along.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use almanac::daemon::Config;
use almanac::plugin_host::{
    Ask, Host, Isolation, ListedLibrary, Proposal, Proposals, Settings, Snapshot, State, Tool, identify,
};
use almanac::telemetry::Metrics;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::daemon::{wait_for, wait_until};
use crate::fixtures::hostile;

/// One host at a time, so that what it leaves behind can be told from what another one has.
static ALONE: Mutex<()> = Mutex::new(());

/// A host of its own, in this process, with workers of the real binary.
pub struct Bench {
    host: Option<Host>,
    pub metrics: Arc<Metrics>,
    pub directory: TempDir,
    runtime: Runtime,
    /// Descriptors that others left for good.
    before: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// A host that is told nothing yet; `put` puts libraries into its directory.
    pub fn new(change: impl FnOnce(&mut Settings), put: impl FnOnce(&Path)) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let before = leftovers();
        let directory = TempDir::with_prefix("almanac-plugins-").unwrap();
        put(directory.path());
        let mut config = Config::default();
        config.plugins.paths = vec![directory.path().to_owned()];
        config.plugins.launch.deadline = Duration::from_millis(500);
        let mut settings = config.plugin_host().with_program(Path::new(env!("CARGO_BIN_EXE_almanacd")));
        change(&mut settings);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let metrics = Arc::new(Metrics::new().unwrap());
        let host = Host::start(settings, Arc::clone(&metrics), runtime.handle().clone()).unwrap();
        let bench = Self { host: Some(host), metrics, directory, runtime, before, _alone: alone };
        bench.publish(1);
        bench.runtime.block_on(bench.host().settled());
        bench
    }

    /// The good library and a hostile one.
    pub fn beside_good(name: &str, deadline: Duration) -> Self {
        let deadline = move |settings: &mut Settings| settings.launch.deadline = deadline;
        Self::new(deadline, |directory| {
            hostile(name, directory);
            hostile("counter", directory);
        })
    }

    pub fn host(&self) -> &Host {
        self.host.as_ref().unwrap()
    }

    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub fn publish(&self, generation: u64) {
        let tool = |name: &str| Tool { name: name.to_owned(), ..Tool::default() };
        self.host().publish(move || Snapshot { generation, tools: vec![tool("alpha"), tool("beta"), tool("trigger")] });
    }

    /// The one place where a call is made.
    pub fn call(&self, tool: &str) -> Proposals {
        let ask = Ask { tool: tool.to_owned(), ..Ask::default() };
        self.runtime.block_on(self.host().propose(ask))
    }

    pub fn listed(&self, id: &str) -> ListedLibrary {
        let list = self.host().list();
        list.iter().find(|listed| listed.status.id == id).unwrap_or_else(|| panic!("no {id} in {list:?}")).clone()
    }

    pub fn state(&self, id: &str) -> State {
        self.listed(id).status.state
    }

    /// A sample of the metrics, by its name and labels as rendered.
    pub fn metric(&self, sample: &str) -> Option<f64> {
        let text = String::from_utf8(self.metrics.render()).unwrap();
        text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
    }

    /// Ends the host; nothing of it may be left.
    pub fn finish(mut self) {
        let pids: Vec<u32> = self.host().list().iter().filter_map(|listed| listed.status.pid).collect();
        drop(self.host.take());
        for pid in pids {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "worker {pid} is left");
        }
        // Tasks that are being dropped may hold what they were given for a moment longer.
        wait_until("all descriptors to be closed", || leftovers() <= self.before);
        assert_eq!(workers_of_this_process(), Vec::<String>::new());
    }
}

/// Copies of libraries and handles of processes that are still open here.
fn leftovers() -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    open.filter(|link| {
        let link = link.to_string_lossy();
        link.contains("memfd:almanac-plugin") || link.contains("[pidfd]")
    })
    .count()
}

fn workers_of_this_process() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let children = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    let commands = children.iter().flat_map(|line| line.split_whitespace());
    let commands = commands.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
    commands.filter(|command| command.contains("plugin-worker")).collect()
}

/// What comes of a call that triggers the fault.
enum Then {
    /// An answer, whose first reason contains this.
    Answers(&'static str),
    /// A fault of one of these kinds; then it is started again and behaves.
    Faults(&'static [&'static str]),
    /// Whatever; but it behaves again.
    Recovers,
}

const USUAL: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(20);

/// The id in the note of a library that was compiled.
fn id_of(bench: &Bench, name: &str) -> String {
    identify(&fs::read(bench.directory.path().join(format!("lib{name}.so"))).unwrap()).unwrap().id
}

fn list<'p>(proposals: &'p Proposals, id: &str) -> Option<&'p Vec<Proposal>> {
    proposals.lists.iter().find(|(of, _)| of == id).map(|(_, list)| list)
}

#[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
fn check(name: &str, deadline: Duration, then: Then) {
    let bench = Bench::beside_good(name, deadline);
    let id = id_of(&bench, name);
    assert_eq!((bench.state(&id), bench.state("test.hostile.counter")), (State::Ready, State::Ready), "{name}");
    let good = |proposals: &Proposals| {
        let list = list(proposals, "test.hostile.counter").unwrap_or_else(|| panic!("{name}: {proposals:?}"));
        assert_eq!(list.len(), 1, "{name}: the good library proposes one tool");
    };
    let before = bench.call("alpha");
    good(&before);
    assert_eq!(list(&before, &id).unwrap()[0].reason, "behaves");
    let hit = bench.call("trigger");
    good(&hit);
    match then {
        Then::Answers(part) => {
            let list = list(&hit, &id).unwrap_or_else(|| panic!("{name}: {hit:?}"));
            let first = list.first().map(|proposal| proposal.reason.as_str()).unwrap_or_default();
            assert!(first.contains(part), "{name}: {list:?}");
        }
        Then::Faults(kinds) => {
            assert!(hit.degraded.iter().any(|(of, _)| *of == id), "{name}: {hit:?}");
            let fault = wait_for("the fault", || bench.listed(&id).status.last_fault);
            assert!(kinds.contains(&fault.kind), "{name}: {fault:?}");
            let sample = format!("almanac_plugin_restarts_total{{plugin=\"{id}\",reason=\"{}\"}}", fault.kind);
            assert_eq!(bench.metric(&sample), Some(1.0), "{name}");
        }
        Then::Recovers => {}
    }
    wait_until("the library to behave again", || {
        let after = bench.call("alpha");
        good(&after);
        list(&after, &id).is_some_and(|list| list.first().is_some_and(|first| first.reason == "behaves"))
    });
    assert_eq!(bench.state(&id), State::Ready, "{name}");
    assert_eq!(bench.metric(&format!("almanac_plugin_state{{plugin=\"{id}\",state=\"ready\"}}")), Some(1.0));
    bench.finish();
}

#[test]
fn what_dies_is_started_again() {
    check("segfault_suggest", USUAL, Then::Faults(&["crash"]));
    check("abort_suggest", USUAL, Then::Faults(&["crash"]));
    check("exit_suggest", USUAL, Then::Faults(&["crash"]));
    check("endless_recursion", USUAL, Then::Faults(&["crash"]));
}

#[test]
fn what_does_not_answer_is_answered_without() {
    check("endless_loop", USUAL, Then::Faults(&["timeout"]));
    check("late", Duration::from_millis(100), Then::Faults(&["timeout"]));
    check("stop", USUAL, Then::Faults(&["timeout"]));
    check("endless_print", USUAL, Then::Faults(&["timeout"]));
    check("endless_allocation", USUAL, Then::Recovers);
}

/// A call that would be given up is not begun: it would take the time of the next one.
#[test]
fn what_is_slow_answers_those_that_it_has_the_time_for() {
    const CALLS: usize = 8;
    let bench = Bench::new(|_| {}, |directory| drop(hostile("late", directory)));
    assert_eq!(bench.call("trigger").lists.len(), 1);
    let answered = || (0..CALLS).filter(|_| bench.call("trigger").lists.len() == 1).count();
    let answered: usize = std::thread::scope(|scope| {
        let clients = [scope.spawn(answered), scope.spawn(answered)];
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert!(answered * 3 > 2 * CALLS, "{answered} of {} were answered", 2 * CALLS);
    bench.finish();
}

#[test]
fn what_reaches_out_is_held_back() {
    check("fork_suggest", USUAL, Then::Answers("fork=EPERM"));
    check("threads", USUAL, Then::Answers("threads=4 ok"));
    check("reach_out", USUAL, Then::Answers("read-passwd=E"));
    let bench = Bench::beside_good("reach_out", USUAL);
    let reached = bench.call("trigger");
    let said = &list(&reached, "test.hostile.reach-out").unwrap()[0].reason;
    assert!(!said.contains("=ok") && said.contains("tcp=EPERM") && said.contains("exec=EPERM"), "{said}");
    assert!(said.contains("write-and-execute=EPERM") && said.contains("execute-later=EPERM"), "{said}");
    assert!(said.contains("stat-passwd=EACCES") && said.contains("path-only=EPERM"), "{said}");
    bench.finish();
}

#[test]
fn what_a_library_still_can() {
    let bench = Bench::beside_good("reach_out", USUAL);
    let reached = bench.call("trigger");
    let said = &list(&reached, "test.hostile.reach-out").unwrap()[0].reason;
    assert!(said.contains("still=EINVAL"), "{said}");
    bench.finish();
}

/// The kernel's limit of tasks is one for the whole service, and questions need threads as well.
#[test]
fn a_library_has_few_threads_and_yields_to_the_daemon() {
    let bench = Bench::beside_good("many_threads", LONG);
    let said = list(&bench.call("trigger"), "test.hostile.many-threads").unwrap()[0].reason.clone();
    let started: usize = said.strip_prefix("threads=").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((4..16).contains(&started) && said.ends_with("EAGAIN"), "{said}");
    let pid = bench.listed("test.hostile.many-threads").status.pid.unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let niceness = stat.rsplit(')').next().unwrap().split_whitespace().nth(16);
    assert_eq!(niceness, Some("5"), "{stat}");
    bench.finish();
}

#[test]
fn what_breaks_the_protocol_is_ended() {
    check("write_fds", USUAL, Then::Faults(&["oversized", "protocol"]));
    check("close_fds", USUAL, Then::Faults(&["crash"]));
}

#[test]
fn what_says_too_much_is_cut() {
    check("invalid_utf8", USUAL, Then::Recovers);
    check("nan_score", USUAL, Then::Answers("good"));
    check("bad_suggestions", USUAL, Then::Answers("good"));
    check("odd_reasons", USUAL, Then::Answers("line1 line2  [31mred    rtl"));
    check("flood_log", USUAL, Then::Recovers);
    for name in ["million_results", "huge_reason"] {
        let bench = Bench::beside_good(name, LONG);
        let answer = bench.call("trigger");
        let list = list(&answer, &id_of(&bench, name)).unwrap_or_else(|| panic!("{name}: {answer:?}"));
        assert!((1..=32).contains(&list.len()), "{name}: {} proposals", list.len());
        assert!(list.iter().all(|proposal| proposal.reason.len() <= 1024), "{name}");
        bench.finish();
    }
}

#[test]
fn an_error_is_an_answer_and_no_fault() {
    let bench = Bench::beside_good("error_code", USUAL);
    for _ in 0..5 {
        let answer = bench.call("trigger");
        let said = [("test.hostile.error-code".to_owned(), "failed on purpose".to_owned())];
        assert_eq!(answer.degraded, said);
    }
    let listed = bench.listed("test.hostile.error-code");
    assert_eq!((listed.status.state, listed.status.restarts), (State::Ready, 0));
    bench.finish();
}

#[test]
fn sizes_of_structs_are_believed_only_so_far() {
    check("large_descriptor", USUAL, Then::Answers(""));
}

#[test]
fn what_cannot_start_is_put_aside_and_said() {
    let names = [
        ("segfault_constructor", "SIGSEGV"),
        ("small_descriptor", "smaller than that of version 1.0"),
        ("small_vtable", "smaller than that of version 1.0"),
        ("null_entry", "returns nothing"),
        ("newer_minor", "version 1.1"),
        ("unknown_flags", "demand something"),
        ("missing_functions", "which are required"),
        ("create_fails", "no configuration would ever please it"),
        ("create_null", "made no instance"),
        ("other_note", "its note says"),
    ];
    let bench = Bench::new(
        |_| {},
        |directory| {
            hostile("counter", directory);
            for (name, _) in names {
                hostile(name, directory);
            }
        },
    );
    let list = bench.host().list();
    for (name, part) in names {
        let file = format!("lib{name}.so");
        let listed = list.iter().find(|listed| listed.status.path.ends_with(&file)).unwrap();
        assert_eq!(listed.status.state, State::Quarantined, "{name}");
        let fault = listed.status.last_fault.as_ref().unwrap();
        assert!(fault.message.contains(part), "{name}: {fault:?}");
        assert!(listed.status.retry_in.is_some_and(|time| time <= Duration::from_secs(30)), "{name}");
    }
    let answer = bench.call("alpha");
    assert_eq!((answer.lists.len(), answer.degraded.len()), (1, names.len()), "{answer:?}");
    let counts = bench.host().counts();
    assert_eq!((counts.ready, counts.quarantined, counts.refused), (1, names.len(), 0));
    bench.finish();
}

#[test]
fn what_is_no_library_is_not_run() {
    let names = ["no_note", "wrong_major"];
    let bench = Bench::new(
        |_| {},
        |directory| {
            let good = hostile("counter", directory);
            for name in names {
                hostile(name, directory);
            }
            let content = fs::read(&good).unwrap();
            fs::write(directory.join("truncated.so"), &content[..content.len() / 3]).unwrap();
            fs::write(directory.join("text.so"), "no library").unwrap();
        },
    );
    for (id, part) in
        [("libno_note", "no note"), ("libwrong_major", "version 2"), ("truncated", "cut off"), ("text", "no ELF")]
    {
        let listed = bench.listed(id);
        let refusal = listed.status.refusal.unwrap_or_default();
        assert!(listed.status.state == State::Refused && refusal.contains(part), "{id}: {refusal}");
    }
    assert_eq!(bench.state("test.hostile.counter"), State::Ready);
    let counts = bench.host().counts();
    assert_eq!((counts.ready, counts.quarantined, counts.refused), (1, 0, 4));
    bench.finish();
}

#[test]
fn a_slow_start_is_no_start() {
    let bench = Bench::beside_good("create_slow", USUAL);
    let fault = bench.listed("test.hostile.create-slow").status.last_fault.unwrap();
    assert_eq!(fault.kind, "slow_start");
    assert_eq!(bench.call("alpha").lists.len(), 1);
    bench.finish();
}

#[test]
fn three_faults_quarantine_until_forgiven() {
    let bench = Bench::beside_good("segfault_suggest", USUAL);
    let id = "test.hostile.segfault-suggest";
    for fault in 1..=3 {
        wait_until("the library to be ready", || bench.state(id) == State::Ready);
        bench.call("trigger");
        wait_until("the fault to be counted", || bench.listed(id).status.restarts >= fault);
    }
    assert_eq!(bench.state(id), State::Quarantined);
    let answer = bench.call("alpha");
    assert_eq!(answer.degraded, [(id.to_owned(), "it is not ready: quarantined".to_owned())]);
    let sample = |state: &str| bench.metric(&format!("almanac_plugin_state{{plugin=\"{id}\",state=\"{state}\"}}"));
    assert_eq!((sample("quarantined"), sample("ready")), (Some(1.0), Some(0.0)));
    assert!(!bench.host().reset("nobody").unwrap());
    assert!(bench.host().reset(id).unwrap());
    wait_until("the library to be ready again", || bench.state(id) == State::Ready);
    assert_eq!(bench.call("alpha").lists.len(), 2);
    bench.finish();
}

#[test]
fn in_the_daemon_a_library_answers_as_well() {
    let bench = Bench::new(
        |settings| settings.isolation = Isolation::InProcess,
        |directory| {
            for name in ["counter", "late", "create_fails"] {
                hostile(name, directory);
            }
        },
    );
    assert_eq!(bench.state("test.hostile.counter"), State::Ready);
    assert_eq!(bench.state("test.hostile.create-fails"), State::Quarantined);
    let answer = bench.call("trigger");
    assert!(list(&answer, "test.hostile.counter").unwrap()[0].reason.starts_with("1.0.0 created 1"), "{answer:?}");
    let listed = bench.listed("test.hostile.counter");
    assert!(listed.status.pid.is_none() && listed.status.serving.is_some());
    bench.publish(2);
    assert_eq!(list(&bench.call("alpha"), "test.hostile.counter").unwrap()[0].tool, "beta");
    // A library in the daemon is mapped for good, and its copy stays open: there is no `finish`.
}
