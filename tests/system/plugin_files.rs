//! Files of rule libraries that trade ids and names, or whose places change: who serves goes on.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use almanac::plugin_host::{Isolation, LibraryStatus, Reloaded, State};

use crate::daemon::wait_until;
use crate::fixtures::compile;
use crate::plugin_cases::Bench;

const COUNTER: &str = "test.hostile.counter";
const OTHER: &str = "test.hostile.other";

/// The counter under this id, in this version, as the file `name`.
fn put(directory: &Path, name: &str, id: &str, version: &str) {
    let defines = [format!("ID=\"{id}\""), format!("VERSION=\"{version}\"")];
    compile("hostile/counter", &defines.each_ref().map(String::as_str), &directory.join(name));
}

/// A bench that looks at its files only when it is told to.
fn bench(files: &[(&str, &str)]) -> Bench {
    let put = |directory: &Path| files.iter().for_each(|(name, id)| put(directory, name, id, "1.0.0"));
    Bench::new(|settings| settings.watch = false, put)
}

fn reload(bench: &Bench) -> Reloaded {
    bench.runtime().block_on(bench.host().reload(None)).unwrap()
}

/// What is ready: ids, names of files and versions, in their order. All of them answer, and are on the metrics.
#[track_caller]
fn ready(bench: &Bench) -> Vec<(String, String, String)> {
    let name = |status: &LibraryStatus| status.path.file_name().unwrap().to_str().unwrap().to_owned();
    let list = bench.host().list();
    let ready = list.iter().filter(|listed| listed.status.state == State::Ready);
    let ready: Vec<_> = ready
        .map(|listed| {
            let status = &listed.status;
            let version = status.serving.as_ref().unwrap().1.version.clone();
            let sample = format!("almanac_plugin_state{{plugin=\"{}\",state=\"ready\"}}", status.id);
            assert_eq!(bench.metric(&sample), Some(1.0), "{sample}");
            (status.id.clone(), name(status), version)
        })
        .collect();
    assert_eq!(bench.call("trigger").lists.len(), ready.len(), "{ready:?}");
    ready
}

fn line(id: &str, name: &str, version: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), version.to_owned())
}

#[test]
fn an_id_stays_with_what_serves_under_it() {
    let check = |taker: &str, order: fn(&mut Vec<(String, String, String)>)| {
        let bench = bench(&[("m.so", COUNTER), (taker, OTHER)]);
        let mut both = vec![line(OTHER, taker, "1.0.0"), line(COUNTER, "m.so", "1.0.0")];
        order(&mut both);
        assert_eq!(ready(&bench), both);
        // It would die at its start.
        let claim = format!("ID=\"{COUNTER}\"");
        compile("hostile/segfault_constructor", &[&claim], &bench.directory.path().join(taker));
        // Again, since what is looked at once more is not said once more.
        for _ in 0..2 {
            let Reloaded { ready: count, failed } = reload(&bench);
            assert!(count == 2 && failed.len() == 1 && failed[0].0 == OTHER, "{taker}: {failed:?}");
            assert!(failed[0].1.contains("m.so, which serves"), "{taker}: {failed:?}");
            assert_eq!(ready(&bench), both);
        }
        let counted = |id: &str| bench.metric(&format!("almanac_plugin_updates_refused_total{{plugin=\"{id}\"}}"));
        assert_eq!((counted(OTHER), counted(COUNTER)), (Some(1.0), Some(0.0)), "{taker}");
        // With nobody there, the id is to be had, and what fails under it leaves the old one serving.
        fs::remove_file(bench.directory.path().join("m.so")).unwrap();
        let Reloaded { failed, .. } = reload(&bench);
        assert!(failed.len() == 1 && failed[0].1.contains("SIGSEGV"), "{taker}: {failed:?}");
        assert_eq!(ready(&bench), [line(OTHER, taker, "1.0.0")]);
        bench.finish();
    };
    check("a.so", |_| {});
    check("z.so", |both| both.reverse());
}

#[test]
fn what_serves_follows_its_file() {
    let bench = bench(&[("a.so", COUNTER), ("b.so", OTHER)]);
    let path = |name: &str| bench.directory.path().join(name);
    let rename = |from: &str, to: &str| fs::rename(path(from), path(to)).unwrap();
    let pid = |id: &str| bench.listed(id).status.pid.unwrap();
    let before = (pid(COUNTER), pid(OTHER));
    let none = |bench: &Bench| assert_eq!(reload(bench).failed, []);
    // Their names are swapped.
    rename("a.so", ".x");
    rename("b.so", "a.so");
    rename(".x", "b.so");
    none(&bench);
    assert_eq!(ready(&bench), [line(OTHER, "a.so", "1.0.0"), line(COUNTER, "b.so", "1.0.0")]);
    assert_eq!((pid(COUNTER), pid(OTHER)), before, "nothing was started again");
    // One has another name.
    rename("b.so", "c.so");
    none(&bench);
    assert_eq!(ready(&bench), [line(OTHER, "a.so", "1.0.0"), line(COUNTER, "c.so", "1.0.0")]);
    assert_eq!((pid(COUNTER), pid(OTHER)), before);
    // One takes the place of the other.
    rename("c.so", "a.so");
    none(&bench);
    assert_eq!(ready(&bench), [line(COUNTER, "a.so", "1.0.0")]);
    assert_eq!(pid(COUNTER), before.0);
    let gone = format!("almanac_plugin_state{{plugin=\"{OTHER}\",state=\"ready\"}}");
    assert_eq!(bench.metric(&gone), None);
    bench.finish();
}

#[test]
fn swapped_ids_in_new_versions_are_updates_of_each_other() {
    let bench = bench(&[("a.so", COUNTER), ("b.so", OTHER)]);
    put(bench.directory.path(), "a.so", OTHER, "2.0.0");
    put(bench.directory.path(), "b.so", COUNTER, "2.0.0");
    assert_eq!(reload(&bench).failed, []);
    assert_eq!(ready(&bench), [line(OTHER, "a.so", "2.0.0"), line(COUNTER, "b.so", "2.0.0")]);
    bench.finish();
}

#[test]
fn an_id_that_is_left_goes_to_who_waits_for_it() {
    let bench = bench(&[("a.so", COUNTER)]);
    put(bench.directory.path(), "b.so", COUNTER, "2.0.0");
    let Reloaded { failed, .. } = reload(&bench);
    assert!(failed.len() == 1 && failed[0].1.contains("a.so, which serves"), "{failed:?}");
    put(bench.directory.path(), "a.so", OTHER, "1.0.0");
    assert_eq!(reload(&bench).failed, []);
    assert_eq!(ready(&bench), [line(OTHER, "a.so", "1.0.0"), line(COUNTER, "b.so", "2.0.0")]);
    bench.finish();
}

#[test]
fn a_place_that_others_can_write_to_is_noticed_though_the_file_is_as_before() {
    let bench = bench(&[("a.so", COUNTER)]);
    let file = bench.directory.path().join("a.so");
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs().cast_signed();
    // Until its times tell each change of it, it is read anew at each look.
    wait_until("the file to have settled", || fs::metadata(&file).unwrap().ctime() + 3 < now());
    assert_eq!(reload(&bench).failed, []);
    let mode = |mode| fs::set_permissions(bench.directory.path(), Permissions::from_mode(mode)).unwrap();
    mode(0o777);
    let Reloaded { failed, .. } = reload(&bench);
    assert!(failed.len() == 1 && failed[0].1.contains("can be written by everybody"), "{failed:?}");
    assert_eq!(ready(&bench), [line(COUNTER, "a.so", "1.0.0")]);
    mode(0o755);
    assert_eq!(reload(&bench).failed, []);
    assert_eq!(bench.listed(COUNTER).status.refusal, None);
    bench.finish();
}

#[test]
fn an_update_that_waits_for_a_restart_is_counted_once() {
    let inside = |settings: &mut almanac::plugin_host::Settings| {
        (settings.watch, settings.isolation) = (false, Isolation::InProcess);
    };
    let bench = Bench::new(inside, |directory| put(directory, "a.so", COUNTER, "1.0.0"));
    put(bench.directory.path(), "a.so", COUNTER, "2.0.0");
    let counted = || bench.metric(&format!("almanac_plugin_updates_refused_total{{plugin=\"{COUNTER}\"}}"));
    for _ in 0..2 {
        let Reloaded { failed, .. } = reload(&bench);
        assert!(failed.len() == 1 && failed[0].1.contains("replaced by a restart"), "{failed:?}");
        assert_eq!(counted(), Some(1.0));
    }
    put(bench.directory.path(), "a.so", COUNTER, "1.0.0");
    assert_eq!(reload(&bench).failed, []);
    // A library in the daemon is mapped for good, and its copy stays open: there is no `finish`.
}
