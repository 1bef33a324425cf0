//! Rule libraries of a running daemon: replaced, refused, killed, shown, and gone with it.

use std::fs::{self, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use almanac::plugin_host::{Ask, State};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, document, shipped, wait_for, wait_until};
use crate::fixtures::{compile, hostile, reasoning};
use crate::plugin_cases::Bench;

const COUNTER: &str = "test.hostile.counter";

fn start(site: &Site) -> Daemon {
    let daemon = site.start();
    wait_until("the rule libraries", || daemon.get("/ready").status == 200);
    daemon
}

fn plugins(daemon: &Daemon) -> Vec<Value> {
    daemon.json("/v1/plugins")["items"].as_array().unwrap().clone()
}

fn plugin(daemon: &Daemon, id: &str) -> Value {
    let items = plugins(daemon);
    items.iter().find(|item| item["id"] == id).unwrap_or_else(|| panic!("no {id} in {items:#?}")).clone()
}

fn exists(pid: u64) -> bool {
    // A process that was not reaped has a directory, too.
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The library with another version: the texts have the same length, so it stays one.
fn patched(library: &[u8], version: &str) -> Vec<u8> {
    let (old, new) = (b"1.0.0", version.as_bytes());
    assert_eq!(old.len(), new.len());
    let mut patched = library.to_vec();
    for at in 0..patched.len() - old.len() {
        if patched[at..].starts_with(old) {
            patched[at..at + new.len()].copy_from_slice(new);
        }
    }
    patched
}

/// In one step, as packages do.
fn replace(path: &Path, content: &[u8]) {
    let temporary = path.with_extension("new");
    fs::write(&temporary, content).unwrap();
    fs::rename(temporary, path).unwrap();
}

#[test]
fn a_library_is_shown_and_counted() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let daemon = start(&site);
    let item = plugin(&daemon, COUNTER);
    let expected = json!([
        "ready",
        "1.0.0",
        "1.0",
        0,
        {"answered": 0, "failed": 0, "timeout": 0, "busy": 0, "fault": 0, "unavailable": 0}
    ]);
    assert_eq!(json!([item["state"], item["version"], item["abi"], item["restarts"], item["calls"]]), expected);
    assert!(item["hash"] == item["file_hash"] && item["hash"].as_str().unwrap().len() == 64, "{item}");
    assert_eq!(item["sandboxed"], daemon.json("/v1/plugins")["sandbox_available"]);
    assert_eq!(daemon.metric("almanac_plugin_state{plugin=\"test.hostile.counter\",state=\"ready\"}"), Some(1.0));
    let status = daemon.admin("GET", "/-/status", b"").json();
    assert!(status["status"].as_str().unwrap().contains("1 plugin ready"), "{status}");
    daemon.log.wait_for("rule library ready");
}

#[test]
fn a_worker_has_nothing_of_the_daemon() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let daemon = start(&site);
    let pid = plugin(&daemon, COUNTER)["pid"].as_u64().unwrap();
    let read = |what: &str| fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap();
    assert_eq!(read("environ"), "");
    let status = read("status");
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    let mut open: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    open.sort();
    assert_eq!(open, ["0", "1", "2", "3", "4"]);
    assert_eq!(fs::read_link(format!("/proc/{pid}/fd/0")).unwrap(), Path::new("/dev/null"));
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
}

#[test]
fn a_killed_worker_is_replaced_and_nothing_leaks() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let daemon = start(&site);
    let open = || fs::read_dir(format!("/proc/{}/fd", daemon.child.id())).unwrap().count();
    let mut opened = None;
    for _ in 0..12 {
        let ready = || Some(plugin(&daemon, COUNTER)).filter(|item| item["state"] == "ready");
        let pid = wait_for("the worker", ready)["pid"].as_u64().unwrap();
        // Counted after the first, since a connection of the test's own comes and goes.
        opened.get_or_insert_with(open);
        Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
        wait_until("another worker", || plugin(&daemon, COUNTER)["pid"].as_u64().is_none_or(|now| now != pid));
        assert!(!exists(pid), "{pid} was not reaped");
        assert_eq!(daemon.admin("POST", "/-/plugins/test.hostile.counter/reset", b"").status, 200);
    }
    let item = wait_for("the last", || Some(plugin(&daemon, COUNTER)).filter(|item| item["state"] == "ready"));
    assert_eq!((&item["restarts"], &item["last_fault"]["kind"]), (&json!(12), &json!("crash")));
    assert!(item["last_fault"]["message"].as_str().unwrap().contains("ended"), "{item}");
    let opened = opened.unwrap();
    wait_until("descriptors to be closed", || open() <= opened + 1);
    let restarts = "almanac_plugin_restarts_total{plugin=\"test.hostile.counter\",reason=\"crash\"}";
    assert_eq!(daemon.metric(restarts), Some(12.0));
}

#[test]
fn a_library_that_is_put_aside_is_forgiven_by_the_administrator_and_by_another_content() {
    let site = Site::new();
    let library = site.path("plugins/x.so");
    compile("hostile/segfault_constructor", &[], &library);
    let daemon = start(&site);
    let id = "test.hostile.segfault-constructor";
    let item = plugin(&daemon, id);
    assert_eq!((&item["state"], &item["last_fault"]["kind"]), (&json!("quarantined"), &json!("crash")), "{item}");
    assert!(item["retry_in_seconds"].as_f64().is_some_and(|time| time <= 30.0));
    daemon.log.wait_for("rule library quarantined");
    assert_eq!(daemon.admin("POST", "/-/plugins/nobody/reset", b"").code(), "unknown-plugin");
    assert_eq!(daemon.admin("POST", &format!("/-/plugins/{id}/reset"), b"").status, 200);
    wait_until("three more failures", || plugin(&daemon, id)["restarts"] == 6);
    compile("hostile/counter", &[], &library);
    wait_until("the mended one", || plugins(&daemon)[0]["state"] == "ready");
    assert_eq!(plugins(&daemon)[0]["id"], COUNTER);
    assert_eq!(daemon.metric(&format!("almanac_plugin_state{{plugin=\"{id}\",state=\"quarantined\"}}")), None);
}

#[test]
fn a_library_behind_a_link_is_replaced_when_what_it_leads_to_is() {
    let site = Site::new();
    fs::create_dir(site.path("out")).unwrap();
    let library = hostile("counter", &site.path("out"));
    std::os::unix::fs::symlink(&library, site.path("plugins/x.so")).unwrap();
    site.configure("catalog: {poll_interval: 1h}\n");
    let daemon = start(&site);
    assert_eq!(plugin(&daemon, COUNTER)["version"], "1.0.0");
    let first = fs::read(&library).unwrap();
    replace(&library, &patched(&first, "1.0.1"));
    wait_until("the new version", || plugin(&daemon, COUNTER)["version"] == "1.0.1");
    // Also while it leads nowhere.
    fs::remove_file(&library).unwrap();
    wait_until("its end to be noticed", || plugin(&daemon, COUNTER)["update_refused"].is_string());
    replace(&library, &first);
    wait_until("the version of before", || plugin(&daemon, COUNTER)["version"] == "1.0.0");
}

#[test]
fn who_else_can_write_decides_nothing() {
    let site = Site::new();
    let library = hostile("counter", &site.path("plugins"));
    fs::set_permissions(&library, Permissions::from_mode(0o666)).unwrap();
    let daemon = start(&site);
    let item = plugins(&daemon)[0].clone();
    let refusal = item["refusal"].as_str().unwrap();
    assert!(item["state"] == "refused" && refusal.contains("can be written by everybody"), "{item}");
    assert!(item["pid"].is_null() && item["id"] == "libcounter");
    let status = daemon.admin("GET", "/-/status", b"").json();
    assert_eq!((&status["plugins_quarantined"], &status["plugins_refused"]), (&json!(0), &json!(1)), "{status}");
    assert!(status["status"].as_str().unwrap().contains("0 plugins ready, 1 refused"), "{status}");
    let (code, said) = reload(&daemon);
    assert!(code == 1 && said.contains("can be written by everybody"), "{said}");
    fs::set_permissions(&library, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(reload(&daemon).0, 0);
    assert_eq!(plugin(&daemon, COUNTER)["state"], "ready");
}

/// `almanacd ctl reload --wait`: its exit code and what it said.
fn reload(daemon: &Daemon) -> (i32, String) {
    let output = crate::daemon::almanacd().args(["ctl", "reload", "--wait", "--socket"]).arg(&daemon.admin).output();
    let output = output.unwrap();
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn only_sums_on_the_list_are_run() {
    let site = Site::new();
    let library = hostile("counter", &site.path("plugins"));
    site.configure(&format!("plugins: {{allow: ['{}']}}\n", "0".repeat(64)));
    let daemon = start(&site);
    let item = plugins(&daemon)[0].clone();
    assert!(item["refusal"].as_str().unwrap().contains("plugins.allow"), "{item}");
    let sum = Command::new("sha256sum").arg(&library).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap().split(' ').next().unwrap().to_owned();
    site.configure(&format!("plugins: {{allow: ['{sum}']}}\n"));
    assert_eq!(reload(&daemon).0, 0);
    let pid = plugin(&daemon, COUNTER)["pid"].as_u64().unwrap();
    site.configure(&format!("plugins: {{allow: ['{}']}}\n", "0".repeat(64)));
    assert_eq!(reload(&daemon).0, 1);
    assert_eq!(plugins(&daemon)[0]["state"], "refused");
    wait_until("the worker to end", || !exists(pid));
}

#[test]
fn settings_that_a_library_refuses_leave_it_serving_and_mended_ones_are_tried_at_once() {
    let site = Site::new();
    compile("needs_table", &[], &site.path("plugins/needs_table.so"));
    let configured = |key: &str| format!("plugins: {{settings: {{test.needs-table: {{{key}: 1}}}}}}\n");
    site.configure(&configured("table"));
    let daemon = start(&site);
    let pid = plugin(&daemon, "test.needs-table")["pid"].as_u64().unwrap();
    site.configure(&configured("tabel"));
    let (code, said) = reload(&daemon);
    assert!(code == 1 && said.contains("goes on with the settings of before"), "{said}");
    let item = plugin(&daemon, "test.needs-table");
    assert_eq!((&item["state"], &item["pid"], &item["restarts"]), (&json!("ready"), &json!(pid), &json!(0)), "{item}");
    assert!(item["update_refused"].as_str().unwrap().contains("the key `table` is required"), "{item}");
    // Those of before are those that serve.
    site.configure(&configured("table"));
    assert_eq!(reload(&daemon).0, 0);
    drop(daemon);
    site.configure(&configured("tabel"));
    let daemon = start(&site);
    assert_eq!(plugin(&daemon, "test.needs-table")["state"], "quarantined");
    site.configure(&configured("table"));
    assert_eq!(reload(&daemon).0, 0);
    assert_eq!(plugin(&daemon, "test.needs-table")["state"], "ready");
    fs::rename(site.path("plugins"), site.path("elsewhere")).unwrap();
    let (code, said) = reload(&daemon);
    assert!(code == 1 && said.contains("plugins cannot be looked at"), "{said}");
}

#[test]
fn workers_end_with_the_daemon_and_after_its_last_answer() {
    for signal in ["TERM", "KILL"] {
        let site = Site::new();
        hostile("counter", &site.path("plugins"));
        let mut daemon = start(&site);
        let pid = plugin(&daemon, COUNTER)["pid"].as_u64().unwrap();
        daemon.signal(signal);
        let status = daemon.wait();
        if signal == "TERM" {
            assert_eq!(status.code(), Some(0));
            assert!(!exists(pid), "the daemon ended before its worker");
        }
        wait_until("the worker to end", || !exists(pid));
    }
}

/// As a terminal does with Ctrl-C.
#[test]
fn a_signal_to_the_group_of_the_daemon_is_no_fault_of_libraries() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let mut command = site.command();
    command.process_group(0);
    let mut daemon = Daemon::start(command, site.path("state/admin.sock"));
    wait_until("the rule library", || daemon.get("/ready").status == 200);
    let group = format!("-{}", daemon.child.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    assert_eq!(daemon.wait().code(), Some(0));
    daemon.log.wait_for("stopped");
    assert!(!daemon.log.text().contains("at fault"), "{}", daemon.log.text());
}

/// As `systemctl kill` does, which sends to all processes of a service.
#[test]
fn signals_that_are_for_the_daemon_do_not_end_workers() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let daemon = start(&site);
    let pid = plugin(&daemon, COUNTER)["pid"].as_u64().unwrap();
    for signal in ["HUP", "INT", "USR1", "USR2"] {
        assert!(Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap().success());
    }
    // An answer shows that it has taken them.
    let reply = daemon.post("/v1/metadata", r#"{"tool": "trigger", "duration_ms": 1}"#);
    let item = plugin(&daemon, COUNTER);
    assert_eq!((&item["pid"], &item["restarts"]), (&json!(pid), &json!(0)), "{} {item}", reply.text());
}

#[test]
fn a_removed_library_is_gone() {
    let site = Site::new();
    let library = hostile("counter", &site.path("plugins"));
    let daemon = start(&site);
    let pid = plugin(&daemon, COUNTER)["pid"].as_u64().unwrap();
    fs::remove_file(library).unwrap();
    wait_until("the library to go", || plugins(&daemon).is_empty());
    wait_until("the worker to end", || !exists(pid));
    assert_eq!(daemon.metric("almanac_plugin_state{plugin=\"test.hostile.counter\",state=\"ready\"}"), None);
}

#[test]
fn a_refused_update_is_said_counted_and_fails_the_list() {
    let site = Site::new();
    let path = hostile("counter", &site.path("plugins"));
    let daemon = start(&site);
    let library = fs::read(&path).unwrap();
    let list = || {
        let mut command = crate::daemon::almanacd();
        let output = command.args(["ctl", "plugin", "list", "--socket"]).arg(&daemon.admin).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, before) = list();
    assert!(code == Some(0) && before.starts_with("ready  "), "{before}");
    replace(&path, b"no library at all");
    wait_until("the refusal", || plugin(&daemon, COUNTER)["update_refused"].is_string());
    let (code, shown) = list();
    assert!(code == Some(1) && shown.starts_with("ready, update refused"), "{shown}");
    let status = daemon.admin("GET", "/-/status", b"").json();
    assert!(status["status"].as_str().unwrap().contains("1 plugin ready, 1 update refused"), "{status}");
    assert_eq!(plugin(&daemon, COUNTER)["state"], "ready");
    daemon.log.wait_for("update of a rule library refused; the old version serves");
    let counted = "almanac_plugin_updates_refused_total{plugin=\"test.hostile.counter\"}";
    assert_eq!(daemon.metric(counted), Some(1.0));
    let is_outdated = "almanac_plugin_update_refused{plugin=\"test.hostile.counter\"}";
    assert_eq!(daemon.metric(is_outdated), Some(1.0));
    replace(&path, &patched(&library, "2.0.0"));
    wait_until("the new version", || plugin(&daemon, COUNTER)["version"] == "2.0.0");
    assert_eq!(daemon.metric(is_outdated), Some(0.0));
    assert!(plugin(&daemon, COUNTER)["update_refused"].is_null());
    assert_eq!(list().0, Some(0));
}

#[test]
fn of_two_with_one_id_the_first_is_run() {
    let site = Site::new();
    for name in ["b", "a"] {
        compile("hostile/counter", &[&format!("VERSION=\"{name}\"")], &site.path("plugins").join(format!("{name}.so")));
    }
    let daemon = start(&site);
    let items = plugins(&daemon);
    assert_eq!((&items[0]["state"], &items[0]["version"]), (&json!("ready"), &json!("a")));
    assert_eq!(items[1]["state"], "refused");
    assert!(items[1]["refusal"].as_str().unwrap().contains("a.so, which comes first"), "{items:?}");
}

/// Runs `body` on a thread, and with children, for which the kernel has no Landlock.
fn without_landlock<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    let calls = [libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];
    let filter = SeccompFilter::new(
        calls.into_iter().map(|call| (call, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let filter: BpfProgram = filter.unwrap().try_into().unwrap();
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            seccompiler::apply_filter(&filter).unwrap();
            body()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_kernel_without_landlock_is_said_and_may_be_refused() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let daemon = without_landlock(|| start(&site));
    let list = daemon.json("/v1/plugins");
    assert_eq!(list["sandbox_available"], false);
    let item = &list["items"][0];
    assert_eq!(
        (&item["state"], &item["sandboxed"], &item["sandbox"]),
        (&json!("ready"), &json!(false), &json!("system_calls"))
    );
    assert_eq!(daemon.metric("almanac_plugin_sandbox_available"), Some(0.0));
    daemon.log.wait_for("NO LANDLOCK");
    assert_eq!(daemon.log.text().matches("NO LANDLOCK").count(), 1, "said once");
    drop(daemon);
    site.configure("plugins: {require_sandbox: true}\n");
    let daemon = without_landlock(|| start(&site));
    let item = plugins(&daemon)[0].clone();
    assert!(item["state"] == "refused" && item["refusal"].as_str().unwrap().contains("Landlock"), "{item}");
    assert!(item["pid"].is_null());
}

#[test]
fn a_worker_has_namespaces_of_its_own() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let daemon = start(&site);
    let item = plugin(&daemon, COUNTER);
    assert_eq!((&item["sandbox"], &item["sandbox_lacks"]), (&json!("full"), &Value::Null));
    let of = |pid: u64, name: &str| fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
    for name in ["user", "net"] {
        assert_ne!(of(item["pid"].as_u64().unwrap(), name), of(daemon.child.id().into(), name));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", item["pid"])).unwrap();
    assert!(status.contains("CapEff:\t0000000000000000") && status.contains("CapPrm:\t0000000000000000"), "{status}");
}

#[test]
fn a_sandbox_that_is_not_whole_says_what_it_lacks() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    // Below it, the kernel grants no namespaces.
    let none = "for kind in user net; do echo 0 > /proc/sys/user/max_${kind}_namespaces || exit; done; exec \"$@\"";
    let Some(command) = site.command_below(&[], none) else { return };
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    wait_until("the rule library", || daemon.get("/ready").status == 200);
    let item = plugin(&daemon, COUNTER);
    assert_eq!(
        (&item["state"], &item["sandbox"], &item["sandbox_lacks"]),
        (&json!("ready"), &json!("partial"), &json!(["user_namespace", "network_namespace"]))
    );
    let listed = almanacd().args(["ctl", "plugin", "list", "--socket"]).arg(&daemon.admin).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("sandbox: partial (without user_namespace, network_namespace)"), "{listed}");
}

/// What the counter says it is: its version.
fn version(bench: &Bench) -> Result<String, String> {
    let answer = bench.call("trigger");
    match answer.lists.as_slice() {
        [(_, list)] => Ok(list[0].reason.split(' ').next().unwrap().to_owned()),
        _ => Err(format!("{answer:?}")),
    }
}

#[test]
fn a_hundred_replacements_under_load_are_not_noticed() {
    let bench = Bench::new(|_| {}, |directory| drop(hostile("counter", directory)));
    let path = bench.directory.path().join("libcounter.so");
    let library = fs::read(&path).unwrap();
    let (stop, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let answer = bench
                        .runtime()
                        .block_on(bench.host().propose(Ask { tool: "trigger".to_owned(), ..Ask::default() }));
                    assert!(answer.degraded.is_empty() && answer.lists.len() == 1, "{answer:?}");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 1..=100 {
            let version = format!("{number:05}");
            replace(&path, &patched(&library, &version));
            let serves = || {
                let hello = bench.listed(COUNTER).status.serving;
                hello.is_some_and(|(_, hello)| hello.version == version)
            };
            // Every third change is told by a request, the others by file events.
            if number % 3 == 0 {
                bench.runtime().block_on(bench.host().reload(None)).unwrap();
                assert!(serves(), "{version} after a reload that was waited for");
            } else {
                wait_until("the new version", serves);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(calls.into_inner() > 100);
    assert_eq!(
        bench.metric("almanac_plugin_restarts_total{plugin=\"test.hostile.counter\",reason=\"update\"}"),
        Some(100.0)
    );
    bench.finish();
}

#[test]
fn a_library_overwritten_in_place_harms_nothing() {
    let bench = Bench::new(|_| {}, |directory| drop(hostile("counter", directory)));
    let path = bench.directory.path().join("libcounter.so");
    let library = fs::read(&path).unwrap();
    let overwrite = |content: &[u8]| {
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(content).unwrap();
    };
    overwrite(&vec![0xee; library.len()]);
    wait_until("the new content to be refused", || bench.listed(COUNTER).status.refusal.is_some());
    assert_eq!(version(&bench), Ok("1.0.0".to_owned()), "the old content serves from its copy");
    assert_eq!(bench.state(COUNTER), State::Ready);
    // A worker that dies now is replaced by what served before.
    let pid = bench.listed(COUNTER).status.pid.unwrap();
    Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    wait_until("another worker", || bench.listed(COUNTER).status.pid.is_some_and(|now| now != pid));
    assert_eq!(version(&bench), Ok("1.0.0".to_owned()));
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    overwrite(&patched(&library, "2.0.0"));
    wait_until("the new version", || version(&bench).is_ok_and(|version| version == "2.0.0"));
    assert_eq!(bench.listed(COUNTER).status.refusal, None);
    bench.finish();
}

#[test]
fn a_new_version_that_fails_leaves_the_old_one_serving() {
    let bench = Bench::new(|_| {}, |directory| drop(hostile("counter", directory)));
    let path = bench.directory.path().join("libcounter.so");
    compile("hostile/create_fails", &[], &path);
    let reloaded = bench.runtime().block_on(bench.host().reload(None)).unwrap();
    assert_eq!((reloaded.ready, reloaded.failed.len()), (1, 1), "{reloaded:?}");
    assert!(reloaded.failed[0].1.contains("no configuration"), "{reloaded:?}");
    let status = bench.listed(COUNTER).status;
    assert_eq!(status.state, State::Ready);
    assert!(status.serving.is_some_and(|(hash, _)| status.file.is_some_and(|(file, _)| hash != file)));
    assert_eq!(version(&bench), Ok("1.0.0".to_owned()));
    bench.finish();
}

#[test]
fn each_catalog_is_told_and_a_large_one_stalls_nothing() {
    use almanac::plugin_host::{Snapshot, Tool};
    let bench = Bench::new(|_| {}, |directory| drop(hostile("counter", directory)));
    let first = |bench: &Bench| bench.call("none").lists.first().map(|(_, list)| list[0].tool.clone());
    assert_eq!(first(&bench).as_deref(), Some("alpha"));
    for generation in 2..30 {
        let tool = move |number: usize| Tool {
            name: format!("g{generation:02}_{number:05}"),
            keywords: vec!["keyword".repeat(20)],
            ..Tool::default()
        };
        bench.host().publish(move || Snapshot { generation, tools: (0..10_000).map(tool).collect() });
    }
    wait_until("the last catalog", || first(&bench).as_deref() == Some("g29_00000"));
    let status = bench.listed(COUNTER).status;
    assert_eq!((status.state, status.restarts), (State::Ready, 0));
    bench.finish();
}

#[test]
fn a_catalog_that_changes_reaches_the_library_of_a_daemon() {
    let site = Site::new();
    hostile("counter", &site.path("plugins"));
    let daemon = start(&site);
    let pid = plugin(&daemon, COUNTER)["pid"].clone();
    site.save("a.yaml", &document("a", "t"));
    wait_until("the new tool", || daemon.title("a").is_some());
    let (code, said) = reload(&daemon);
    assert!(code == 0 && said.contains("1 plugin ready, 0 failed"), "{said}");
    assert_eq!(plugin(&daemon, COUNTER)["pid"], pid, "a catalog is no reason for another process");
}

#[test]
fn suggestions_come_from_rules_and_name_who_is_missing() {
    let site = Site::new();
    fs::copy(reasoning(), site.path("plugins/libalmanac_reasoning.so")).unwrap();
    hostile("segfault_suggest", &site.path("plugins"));
    site.save("trigger.yaml", &document("trigger", "t"));
    site.configure("plugins: {deadline: 10s}\n");
    let mut command = site.command();
    command.arg("--tool-metadata").arg(shipped());
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    wait_until("the rule libraries", || daemon.get("/ready").status == 200);
    let suggestions = |tool: &str| {
        let result = json!({"num_outputs": 4, "complexity": "complex"});
        let body = json!({"tool_name": tool, "result_context": result});
        let reply = daemon.post("/v1/metadata", &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["suggestions"].clone()
    };
    let said = suggestions("reasoning_divergent");
    let next: Vec<&str> =
        said["next_tools"].as_array().unwrap().iter().map(|next| next["tool"].as_str().unwrap()).collect();
    for tool in ["reasoning_checkpoint", "reasoning_decision", "reasoning_reflection"] {
        assert!(next.contains(&tool), "{said:#}");
    }
    assert!(said["next_tools"].to_string().contains("Synthesize 4 perspectives"), "{said:#}");
    assert_eq!(said["degraded"].as_array().map_or(0, Vec::len), 0, "{said:#}");
    let id = "test.hostile.segfault-suggest";
    let said = suggestions("trigger");
    assert_eq!(said["degraded"][0]["plugin"], id, "{said:#}");
    // The answer may be there before the fault is seen to.
    let back = || Some(plugin(&daemon, id)).filter(|item| item["restarts"] == 1 && item["state"] == "ready");
    let item = wait_for("the library to be back", back);
    assert_eq!((&item["last_fault"]["kind"], &item["calls"]["fault"]), (&json!("crash"), &json!(1)), "{item:#}");
    assert_eq!(daemon.metric(&format!("almanac_plugin_calls_total{{outcome=\"fault\",plugin=\"{id}\"}}")), Some(1.0));
    assert_eq!(suggestions("reasoning_linear")["degraded"].as_array().map_or(0, Vec::len), 0);
}
