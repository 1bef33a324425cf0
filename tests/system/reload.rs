//! Hot reload, and the traps that file systems, editors and clusters set for it.
//!
//! The poll is set to an hour wherever it is not what is tested, so that only events can explain a reload.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::daemon::{Daemon, Site, document, wait_until};

const BY_EVENTS: &str = "catalog: {poll_interval: 1h}\n";

pub fn start() -> (Site, Daemon) {
    let site = Site::new();
    site.configure(BY_EVENTS).save("a.yaml", &document("a", "one"));
    let daemon = site.start();
    assert_eq!(daemon.title("a").as_deref(), Some("one"));
    (site, daemon)
}

#[track_caller]
pub fn becomes(daemon: &Daemon, tool: &str, title: Option<&str>) {
    wait_until(&format!("{tool} to become {title:?}"), || daemon.title(tool).as_deref() == title);
}

/// Codes of the diagnostics of the last reload, with file name and line.
pub fn diagnostics(daemon: &Daemon) -> Vec<(String, String, u64)> {
    let catalog = daemon.json("/v1/catalog");
    let item = |finding: &serde_json::Value| {
        let file = Path::new(finding["file"].as_str().unwrap()).file_name().unwrap().to_string_lossy().into_owned();
        (file, finding["code"].as_str().unwrap().to_owned(), finding["line"].as_u64().unwrap())
    };
    catalog["diagnostics"].as_array().unwrap().iter().map(item).collect()
}

#[track_caller]
pub fn is_reported(daemon: &Daemon, file: &str, code: &str, line: u64) {
    wait_until(&format!("{code} in {file}:{line}"), || {
        diagnostics(daemon).contains(&(file.to_owned(), code.to_owned(), line))
    });
}

#[test]
fn a_save_by_rename_and_a_save_in_place() {
    let (site, daemon) = start();
    let etag = daemon.get("/v1/tools/a").header("etag").unwrap().to_owned();
    site.save("a.yaml", &document("a", "two"));
    becomes(&daemon, "a", Some("two"));
    let reply = daemon.send("GET", "/v1/tools/a", &[("if-none-match", &etag)], b"");
    assert_eq!(reply.status, 200);
    assert_ne!(reply.header("x-almanac-generation"), Some("1"));
    fs::write(site.tools().join("a.yaml"), document("a", "three")).unwrap();
    becomes(&daemon, "a", Some("three"));
}

#[test]
fn a_save_that_truncates_first_shows_no_gap() {
    let (site, daemon) = start();
    let path = site.tools().join("a.yaml");
    let mut file = fs::File::create(&path).unwrap();
    is_reported(&daemon, "a.yaml", "empty-document", 0);
    assert_eq!(daemon.title("a").as_deref(), Some("one"), "the last good version is served meanwhile");
    assert_eq!(daemon.json("/v1/catalog")["stale"], serde_json::json!(["a"]));
    assert_eq!(daemon.metric(r#"almanac_catalog_documents{state="stale"}"#), Some(1.0));
    file.write_all(document("a", "two").as_bytes()).unwrap();
    drop(file);
    becomes(&daemon, "a", Some("two"));
    wait_until("nothing is wrong", || diagnostics(&daemon).is_empty());
}

#[test]
fn a_broken_save_is_reported_with_its_line_and_changes_nothing() {
    let (site, daemon) = start();
    site.save("b.yaml", &document("b", "one"));
    becomes(&daemon, "b", Some("one"));
    site.save("a.yaml", &document("a", "two").replace("category:", "categry:"));
    is_reported(&daemon, "a.yaml", "unknown-key", 4);
    is_reported(&daemon, "a.yaml", "missing-key", 1);
    assert_eq!(daemon.title("a").as_deref(), Some("one"));
    let finding = &daemon.json("/v1/catalog")["diagnostics"];
    let hinted = finding.as_array().unwrap().iter().any(|finding| finding["hint"] == "did you mean `category`?");
    assert!(hinted, "{finding}");
    daemon.log.wait_for("unknown key `categry`");
    assert_eq!(daemon.metric("almanac_catalog_last_reload_successful"), Some(0.0));
    site.save("b.yaml", &document("b", "two"));
    becomes(&daemon, "b", Some("two"));
    fs::remove_file(site.tools().join("a.yaml")).unwrap();
    becomes(&daemon, "a", None);
    wait_until("nothing is wrong", || daemon.metric("almanac_catalog_last_reload_successful") == Some(1.0));
}

#[test]
fn strict_reload_takes_all_or_nothing() {
    let (site, daemon) = start();
    site.configure("catalog: {poll_interval: 1h, strict_reload: true}\n");
    assert_eq!(daemon.admin("POST", "/-/reload", b"").status, 200);
    site.save("bad.yaml", "name: ]");
    is_reported(&daemon, "bad.yaml", "yaml-syntax", 1);
    site.save("a.yaml", &document("a", "two"));
    let answer = daemon.admin("POST", "/-/reload", b"").json();
    assert_eq!(answer["outcome"], "rejected");
    assert_eq!(daemon.title("a").as_deref(), Some("one"));
    fs::remove_file(site.tools().join("bad.yaml")).unwrap();
    becomes(&daemon, "a", Some("two"));
}

#[test]
fn strict_reload_publishes_no_half_of_a_deployment() {
    let site = Site::new();
    site.configure("catalog: {poll_interval: 1h, strict_reload: true}\n");
    site.save("a.yaml", &document("a", "one"));
    site.save("b.yaml", &document("b", "one"));
    let daemon = site.start();
    site.save("a.yaml", &document("a", "two"));
    site.save("b.yaml", "name: ]");
    is_reported(&daemon, "b.yaml", "yaml-syntax", 1);
    assert_eq!(daemon.title("a").as_deref(), Some("one"), "the good half waits for the other");
    site.save("b.yaml", &document("b", "two"));
    becomes(&daemon, "b", Some("two"));
    assert_eq!(daemon.title("a").as_deref(), Some("two"));
}

#[test]
fn a_link_above_the_root_is_pointed_elsewhere() {
    let site = Site::new();
    for version in ["v1", "v2"] {
        fs::create_dir_all(site.path(version).join("tools")).unwrap();
        fs::write(site.path(version).join("tools/a.yaml"), document("a", version)).unwrap();
    }
    symlink("v1", site.path("current")).unwrap();
    site.configure(&format!(
        "tool_metadata: [{}]\ncatalog: {{poll_interval: 1h}}\n",
        site.path("current/tools").display()
    ));
    let daemon = configured_only(&site);
    assert_eq!(daemon.title("a").as_deref(), Some("v1"));
    symlink("v2", site.path("next")).unwrap();
    fs::rename(site.path("next"), site.path("current")).unwrap();
    becomes(&daemon, "a", Some("v2"));
}

/// A daemon whose documents are named by its configuration alone.
fn configured_only(site: &Site) -> Daemon {
    let mut command = crate::daemon::almanacd();
    command.args(["serve", "--config"]).arg(site.path("almanac.yaml")).arg("--state-dir").arg(site.path("state"));
    command.args(["--listen", "127.0.0.1:0", "--log-format", "json"]).stderr(std::process::Stdio::piped());
    Daemon::start(command, site.path("state/admin.sock"))
}

#[test]
fn a_reload_answers_with_the_worst_of_what_is_wrong() {
    let site = Site::new();
    let hinted = |count: usize| (0..count).map(|n| format!("unknown_{n}: 1\n")).collect::<String>();
    for n in 0..8 {
        site.save(&format!("{n}.yaml"), &format!("{}{}", document(&format!("t{n}"), "one"), hinted(20)));
    }
    site.save("z.yaml", "name: ]");
    let answer = site.start().admin("POST", "/-/reload", b"").json();
    let shown = answer["diagnostics"].as_array().unwrap();
    assert_eq!(shown.len(), 100);
    assert!(answer["total"].as_u64().unwrap() > 100, "{}", answer["total"]);
    assert_eq!(shown[0]["severity"], "error");
}

#[test]
fn a_mistyped_directory_takes_nothing_away() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "one"));
    let configure = |roots: &[&str]| {
        let roots: Vec<String> = roots.iter().map(|root| site.path(root).display().to_string()).collect();
        site.configure(&format!("tool_metadata: [{}]\ncatalog: {{poll_interval: 1h}}\n", roots.join(", ")));
    };
    configure(&["tools"]);
    let daemon = configured_only(&site);
    configure(&["typo"]);
    let answer = daemon.admin("POST", "/-/reload", b"").json();
    assert_eq!((&answer["outcome"], &answer["tools"]), (&"unchanged".into(), &1.into()));
    is_reported(&daemon, "typo", "unreadable", 0);
    site.save("a.yaml", "name: ]");
    fs::create_dir(site.path("more")).unwrap();
    fs::write(site.path("more/b.yaml"), document("b", "one")).unwrap();
    configure(&["more", "tools"]);
    daemon.admin("POST", "/-/reload", b"");
    assert_eq!(daemon.title("b").as_deref(), Some("one"));
    assert_eq!(daemon.title("a").as_deref(), Some("one"), "its last good version moves along");
}

#[test]
fn what_cannot_be_reached_keeps_its_last_good_version() {
    let (site, daemon) = start();
    let target = site.path("target.yaml");
    fs::write(&target, document("linked", "one")).unwrap();
    symlink(&target, site.tools().join("linked.yaml")).unwrap();
    fs::create_dir(site.path("elsewhere")).unwrap();
    fs::write(site.path("elsewhere/far.yaml"), document("far", "one")).unwrap();
    symlink(site.path("elsewhere"), site.tools().join("linked")).unwrap();
    becomes(&daemon, "far", Some("one"));
    becomes(&daemon, "linked", Some("one"));
    fs::remove_file(&target).unwrap();
    is_reported(&daemon, "linked.yaml", "unreadable", 0);
    fs::rename(site.path("elsewhere"), site.path("away")).unwrap();
    is_reported(&daemon, "linked", "unreadable", 0);
    assert_eq!(daemon.title("linked").as_deref(), Some("one"));
    assert_eq!(daemon.title("far").as_deref(), Some("one"));
    fs::rename(site.path("away"), site.path("elsewhere")).unwrap();
    fs::write(&target, document("linked", "two")).unwrap();
    becomes(&daemon, "linked", Some("two"));
    wait_until("nothing is wrong", || diagnostics(&daemon).is_empty());
}

#[test]
fn a_change_of_layout_is_no_new_generation() {
    let (site, daemon) = start();
    site.save("a.yaml", &format!("# a remark\n{}", document("a", "one")));
    wait_until("the scan", || {
        daemon.metric(r#"almanac_reloads_total{outcome="unchanged",trigger="event"}"#).is_some_and(|scans| scans >= 1.0)
    });
    assert_eq!(daemon.json("/v1/catalog")["generation"], 1);
}

#[test]
fn brackets_without_end_hold_nothing_up() {
    let (site, daemon) = start();
    site.save("bomb.yaml", &format!("a: {}", "[a, ".repeat(65_000)));
    site.save("a.yaml", &document("a", "two"));
    becomes(&daemon, "a", Some("two"));
    is_reported(&daemon, "bomb.yaml", "too-deep", 1);
    let message = daemon.json("/v1/catalog")["diagnostics"][0]["message"].to_string();
    assert!(message.contains("brackets"), "refused only after it was parsed: {message}");
}

#[test]
fn a_config_map_is_swapped() {
    let site = Site::new();
    site.configure(BY_EVENTS);
    let publish = |version: &str| {
        let directory = site.tools().join(format!("..{version}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("a.yaml"), document("a", version)).unwrap();
        let link = site.tools().join("..data_tmp");
        symlink(format!("..{version}"), &link).unwrap();
        fs::rename(link, site.tools().join("..data")).unwrap();
    };
    publish("v1");
    symlink("..data/a.yaml", site.tools().join("a.yaml")).unwrap();
    let daemon = site.start();
    assert_eq!(daemon.title("a").as_deref(), Some("v1"));
    for version in ["v2", "v3"] {
        publish(version);
        becomes(&daemon, "a", Some(version));
    }
    assert_eq!(diagnostics(&daemon), []);
}

#[test]
fn a_root_that_is_a_link_is_pointed_elsewhere() {
    let site = Site::new();
    site.configure(BY_EVENTS);
    for version in ["v1", "v2"] {
        fs::create_dir(site.path(version)).unwrap();
        fs::write(site.path(version).join("a.yaml"), document("a", version)).unwrap();
    }
    fs::remove_dir(site.tools()).unwrap();
    symlink(site.path("v1"), site.tools()).unwrap();
    let daemon = site.start();
    assert_eq!(daemon.title("a").as_deref(), Some("v1"));
    symlink(site.path("v2"), site.path("new")).unwrap();
    fs::rename(site.path("new"), site.tools()).unwrap();
    becomes(&daemon, "a", Some("v2"));
    fs::write(site.path("v2/a.yaml"), document("a", "edited")).unwrap();
    becomes(&daemon, "a", Some("edited"));
}

#[test]
fn a_root_is_removed_and_made_again() {
    let (site, daemon) = start();
    for title in ["two", "three"] {
        fs::rename(site.tools(), site.path("away")).unwrap();
        is_reported(&daemon, "tools", "unreadable", 0);
        assert!(daemon.title("a").is_some(), "a root that is gone takes nothing with it");
        fs::create_dir(site.tools()).unwrap();
        becomes(&daemon, "a", None);
        fs::write(site.tools().join("a.yaml"), document("a", title)).unwrap();
        becomes(&daemon, "a", Some(title));
        fs::remove_dir_all(site.path("away")).unwrap();
    }
}

#[test]
fn a_root_that_is_not_there_yet_is_waited_for() {
    let site = Site::new();
    site.configure(BY_EVENTS);
    fs::remove_dir(site.tools()).unwrap();
    let daemon = site.start();
    is_reported(&daemon, "tools", "unreadable", 0);
    fs::create_dir(site.tools()).unwrap();
    fs::write(site.tools().join("a.yaml"), document("a", "one")).unwrap();
    becomes(&daemon, "a", Some("one"));
}

#[test]
fn a_new_directory_written_to_at_once_is_read() {
    let (site, daemon) = start();
    for round in 0..20 {
        let directory = site.tools().join(format!("deep{round}/er"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("x.yml"), document(&format!("x{round}"), "new")).unwrap();
        becomes(&daemon, &format!("x{round}"), Some("new"));
    }
    fs::write(site.tools().join("deep0/er/x.yml"), document("x0", "edited")).unwrap();
    becomes(&daemon, "x0", Some("edited"));
    fs::remove_dir_all(site.tools().join("deep0")).unwrap();
    becomes(&daemon, "x0", None);
}

#[test]
fn twelve_thousand_files_at_once() {
    let (site, daemon) = start();
    for number in 0..12_000 {
        fs::write(site.tools().join(format!("t{number}.yaml")), document(&format!("t{number}"), "t")).unwrap();
    }
    wait_until("all to be loaded", || daemon.metric("almanac_catalog_tools") == Some(12_001.0));
    assert_eq!(diagnostics(&daemon), []);
    fs::write(site.tools().join("t7.yaml"), document("t7", "edited")).unwrap();
    becomes(&daemon, "t7", Some("edited"));
    for number in 0..12_000 {
        fs::remove_file(site.tools().join(format!("t{number}.yaml"))).unwrap();
    }
    wait_until("all to be gone", || daemon.metric("almanac_catalog_tools") == Some(1.0));
}

#[test]
fn a_pipe_in_the_place_of_the_categories_does_not_block() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "one"));
    for name in ["categories.yaml", "timing-defaults.yaml.new"] {
        assert!(Command::new("mkfifo").arg(site.path(name)).status().unwrap().success());
    }
    let daemon = site.start();
    site.save("a.yaml", &document("a", "two"));
    wait_until("the new version", || daemon.title("a").as_deref() == Some("two"));
    // Nor does the configuration itself.
    fs::remove_file(site.path("almanac.yaml")).unwrap();
    fs::rename(site.path("timing-defaults.yaml.new"), site.path("almanac.yaml")).unwrap();
    let reload = daemon.admin("POST", "/-/reload", b"");
    assert_eq!((reload.status, reload.code().as_str()), (422, "faulty-configuration"));
    site.save("a.yaml", &document("a", "three"));
    wait_until("the version after", || daemon.title("a").as_deref() == Some("three"));
}

#[test]
fn a_pipe_does_not_block() {
    let (site, daemon) = start();
    let made = Command::new("mkfifo").arg(site.tools().join("x.yaml")).status().unwrap();
    assert!(made.success());
    is_reported(&daemon, "x.yaml", "not-a-file", 0);
    site.save("a.yaml", &document("a", "two"));
    becomes(&daemon, "a", Some("two"));
    symlink("nowhere.yaml", site.tools().join("y.yaml")).unwrap();
    is_reported(&daemon, "y.yaml", "unreadable", 0);
    symlink("..", site.tools().join("circle")).unwrap();
    site.save("a.yaml", &document("a", "three"));
    becomes(&daemon, "a", Some("three"));
}

#[test]
fn hostile_documents_are_refused_fast() {
    let (site, daemon) = start();
    let bomb: String = (0..64)
        .map(|level| {
            format!(
                "k{level}: &a{level} [{}]\n",
                if level == 0 { "x".into() } else { vec![format!("*a{}", level - 1); 9].join(",") }
            )
        })
        .collect();
    site.save("bomb.yaml", &bomb);
    site.save("deep.yaml", &format!("name: {}", "[".repeat(5000)));
    site.save("huge.yaml", &"[".repeat(1 << 20));
    site.save("twice.yaml", &format!("{}name: b\n", document("b", "t")));
    site.save("binary.yaml", "name: \u{0}");
    fs::write(site.tools().join("latin.yaml"), b"name: caf\xe9\n").unwrap();
    for (file, code, line) in [
        ("bomb.yaml", "too-many-values", 6),
        ("deep.yaml", "too-deep", 1),
        ("huge.yaml", "too-large", 0),
        ("twice.yaml", "duplicate-key", 8),
        ("latin.yaml", "not-utf8", 1),
    ] {
        wait_until(file, || {
            diagnostics(&daemon).iter().any(|finding| (finding.0.as_str(), finding.1.as_str()) == (file, code))
        });
        if code != "too-many-values" {
            is_reported(&daemon, file, code, line);
        }
    }
    assert!(diagnostics(&daemon).iter().any(|finding| finding.0 == "binary.yaml"));
    assert_eq!(daemon.title("a").as_deref(), Some("one"));
    let memory = daemon.metric("process_resident_memory_bytes").unwrap();
    assert!(memory < 300e6, "{memory} bytes for six small files");
}

#[test]
fn two_files_with_one_name_are_both_named() {
    let (site, daemon) = start();
    site.save("b.yaml", &document("a", "other"));
    is_reported(&daemon, "b.yaml", "duplicate-tool", 0);
    let message = daemon.json("/v1/catalog")["diagnostics"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("a.yaml"), "{message}");
    assert_eq!(daemon.title("a").as_deref(), Some("one"), "the first path serves");
    fs::remove_file(site.tools().join("a.yaml")).unwrap();
    becomes(&daemon, "a", Some("other"));
}

#[test]
fn what_is_wrong_comes_in_pages_that_a_reload_may_part() {
    let (site, daemon) = start();
    for file in ["b.yaml", "c.yaml", "d.yaml"] {
        site.save(file, &document(file, "one").replace("title: one", "titel: one"));
    }
    let of = |files: &[&str]| {
        let report = daemon.json("/v1/catalog?limit=1000");
        let found: Vec<String> = places(&report);
        (files.iter().all(|file| found.iter().any(|place| place.contains(file)))).then_some(found)
    };
    wait_until("all findings", || of(&["b.yaml", "c.yaml", "d.yaml"]).is_some());
    let all = of(&[]).unwrap();
    let (mut joined, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let after = cursor.as_deref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let page = daemon.json(&format!("/v1/catalog?limit=1{after}"));
        assert_eq!(page["total"], all.len());
        joined.extend(places(&page));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = Some(next.to_owned());
    }
    assert_eq!(joined, all);
    let first = daemon.json("/v1/catalog?limit=1")["next_cursor"].as_str().unwrap().to_owned();
    site.save("c.yaml", &document("c", "one"));
    becomes(&daemon, "c", Some("one"));
    let rest = places(&daemon.json(&format!("/v1/catalog?cursor={first}")));
    let expected: Vec<String> = all[1..].iter().filter(|place| !place.contains("c.yaml")).cloned().collect();
    assert_eq!(rest, expected);
}

fn places(report: &serde_json::Value) -> Vec<String> {
    let place = |found: &serde_json::Value| format!("{}:{}:{}", found["file"], found["line"], found["code"]);
    report["diagnostics"].as_array().unwrap().iter().map(place).collect()
}

#[test]
fn a_tool_that_is_renamed_inside_its_file() {
    let (site, daemon) = start();
    site.save("a.yaml", &document("b", "one"));
    becomes(&daemon, "b", Some("one"));
    becomes(&daemon, "a", None);
}

#[test]
fn without_events_the_poll_finds_changes() {
    let site = Site::new();
    site.configure("catalog: {watch: false, poll_interval: 20ms}\n").save("a.yaml", &document("a", "one"));
    let daemon = site.start();
    daemon.log.wait_for("found by the poll only");
    assert_eq!(daemon.metric("almanac_catalog_watching"), Some(0.0));
    site.save("a.yaml", &document("a", "two"));
    becomes(&daemon, "a", Some("two"));
    wait_until("a poll is counted", || {
        daemon.metric(r#"almanac_reloads_total{outcome="changed",trigger="poll"}"#) == Some(1.0)
    });
}

#[test]
fn a_signal_and_a_request_reload() {
    let site = Site::new();
    site.configure("catalog: {watch: false, poll_interval: 1h}\n").save("a.yaml", &document("a", "one"));
    let daemon = site.start();
    site.save("a.yaml", &document("a", "two"));
    daemon.signal("HUP");
    becomes(&daemon, "a", Some("two"));
    site.save("a.yaml", &document("a", "three"));
    let answer = daemon.admin("POST", "/-/reload", b"");
    assert_eq!(answer.json()["outcome"], "changed");
    assert_eq!(daemon.title("a").as_deref(), Some("three"));
    assert_eq!(answer.header("x-almanac-generation"), daemon.get("/live").header("x-almanac-generation"));
    assert_eq!(daemon.admin("POST", "/-/reload", b"").json()["outcome"], "unchanged");
    site.configure("catalg: {}\n");
    let refused = daemon.admin("POST", "/-/reload", b"");
    assert_eq!((refused.status, refused.code().as_str()), (422, "faulty-configuration"));
    assert!(refused.text().contains("did you mean `catalog`?"), "{}", refused.text());
    assert_eq!(daemon.metric("almanac_config_last_reload_successful"), Some(0.0));
    let troubles = || daemon.admin("GET", "/-/status", b"").json()["troubles"].clone();
    assert!(troubles()[0].as_str().unwrap().contains("did you mean `catalog`?"), "{}", troubles());
    // Nor is one that names tokens which are not there.
    site.configure("auth: {tokens_file: none}\n");
    let refused = daemon.admin("POST", "/-/reload", b"");
    assert_eq!((refused.status, refused.code().as_str()), (422, "faulty-configuration"), "{}", refused.text());
    assert_eq!(daemon.get("/v1/tools").status, 200);
    site.configure("");
    assert_eq!(daemon.admin("POST", "/-/reload", b"").status, 200);
    assert_eq!(troubles(), serde_json::json!([]));
}

#[test]
fn the_directories_themselves_can_be_changed_by_a_reload() {
    let site = Site::new();
    for version in ["v1", "v2"] {
        fs::create_dir(site.path(version)).unwrap();
        fs::write(site.path(version).join("a.yaml"), document("a", version)).unwrap();
    }
    let configure = |version: &str| {
        let directory = site.path(version);
        site.configure(&format!("tool_metadata: [{}]\ncatalog: {{poll_interval: 1h}}\n", directory.display()));
    };
    configure("v1");
    let daemon = configured_only(&site);
    assert_eq!(daemon.title("a").as_deref(), Some("v1"));
    configure("v2");
    daemon.admin("POST", "/-/reload", b"");
    assert_eq!(daemon.title("a").as_deref(), Some("v2"));
    fs::write(site.path("v2/a.yaml"), document("a", "edited")).unwrap();
    becomes(&daemon, "a", Some("edited"));
}

#[test]
fn a_file_made_readable_is_read() {
    let (site, daemon) = start();
    let path = site.tools().join("b.yaml");
    fs::write(&path, document("b", "one")).unwrap();
    becomes(&daemon, "b", Some("one"));
    let scans = || daemon.metric(r#"almanac_reloads_total{outcome="unchanged",trigger="event"}"#).unwrap_or(0.0);
    wait_until("the scan that confirms it", || scans() >= 1.0);
    let before = scans();
    // Root reads everything, so only that the change is noticed is seen here; the failing read is a unit test.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    wait_until("a scan for the permissions alone", || scans() > before);
}

#[test]
fn inotify_limits_are_said_and_polled_around() {
    let site = Site::new();
    site.configure("catalog: {poll_interval: 20ms}\n").save("a.yaml", &document("a", "one"));
    // A user namespace of its own has limits of its own; where none can be made there is nothing to test.
    let limit = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"";
    let Some(command) = site.command_below(&[], limit) else { return };
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    daemon.log.wait_for("max_user_instances");
    site.save("a.yaml", &document("a", "two"));
    becomes(&daemon, "a", Some("two"));
}

#[test]
fn a_busy_directory_beside_the_root_costs_no_scan() {
    let (site, daemon) = start();
    let scans = || -> f64 {
        ["changed", "unchanged"]
            .iter()
            .filter_map(|outcome| {
                daemon.metric(&format!(r#"almanac_reloads_total{{outcome="{outcome}",trigger="event"}}"#))
            })
            .sum()
    };
    for number in 0..50 {
        fs::write(site.path(&format!("other{number}.yaml")), "x").unwrap();
    }
    site.save("a.yaml", &document("a", "two"));
    becomes(&daemon, "a", Some("two"));
    // The save is read at once and confirmed by one scan.
    wait_until("the scan", || scans() >= 2.0);
    assert!(scans() < 2.5);
}
