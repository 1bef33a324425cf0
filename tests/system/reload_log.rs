//! What the log says of a reload.

use std::fs;

use crate::daemon::{Site, almanacd, document, wait_until};
use crate::reload::{becomes, diagnostics, is_reported, start};

#[test]
fn the_log_names_a_fault_however_much_is_merely_worth_knowing() {
    let site = Site::new();
    for n in 0..30 {
        let related = "alternatives:\n  - tool: web_search\n    when: w\n    benefits: b\n";
        site.save(&format!("{n}.yaml"), &format!("{}{related}", document(&format!("t{n}"), "one")));
    }
    site.save("z.yaml", "name: ]");
    let daemon = site.start();
    daemon.log.wait_for("z.yaml");
    assert!(!daemon.log.text().contains("GET /v1/catalog lists all diagnostics"), "{}", daemon.log.text());
}

#[test]
fn the_log_tells_the_end_of_a_fault() {
    let (site, daemon) = start();
    site.save("b.yaml", &document("b", "one").replace("category", "categry"));
    daemon.log.wait_for("document not taken");
    site.save("b.yaml", &document("b", "one"));
    becomes(&daemon, "b", Some("one"));
    let line = daemon.log.wait_for("document mended");
    assert!(line["file"].as_str().unwrap().ends_with("/b.yaml"), "{line}");
    let complements = "complements: [{tool: a, scenario: s}]\n";
    site.save("c.yaml", &format!("{}{complements}", document("c", "one")));
    becomes(&daemon, "c", Some("one"));
    // Moved out and back: what that made questionable is not any more, and the last line says so.
    let (here, away) = (site.tools().join("a.yaml"), site.path("a.yaml"));
    fs::rename(&here, &away).unwrap();
    is_reported(&daemon, "c.yaml", "dangling-relation", 8);
    fs::rename(&away, &here).unwrap();
    wait_until("nothing is wrong", || diagnostics(&daemon).is_empty());
    wait_until("the last line on the catalog", || {
        let text = daemon.log.text();
        let last = text.lines().rev().find(|line| line.contains("\"message\":\"catalog ")).unwrap_or_default();
        last.contains("\"warnings\":0")
    });
}

/// With `strict_reload` one error holds a whole catalog back: that is said wherever one looks, and logged once.
#[test]
fn a_catalog_that_is_held_back_is_trouble_and_told_once() {
    let site = Site::new();
    site.configure("catalog: {poll_interval: 1s, strict_reload: true}\n");
    site.save("a.yaml", &document("a", "one"));
    let daemon = site.start();
    let status = || {
        let output = almanacd().args(["ctl", "status", "--socket"]).arg(&daemon.admin).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let held = "trouble: the catalog is the one of before, since the new one has an error (catalog.strict_reload)";
    assert!(!status().contains("trouble") && daemon.json("/v1/catalog").get("held_back").is_none());
    site.save("b.yaml", "name: ]");
    daemon.log.wait_for("catalog rejected");
    let polls = || daemon.metric_as_admin(r#"almanac_reloads_total{outcome="rejected",trigger="poll"}"#);
    wait_until("three polls", || polls().is_some_and(|polls| polls >= 3.0));
    assert!(status().contains(held), "{}", status());
    assert_eq!(daemon.json("/v1/catalog")["held_back"], true);
    assert_eq!(daemon.log.text().matches("catalog rejected").count(), 1, "{}", daemon.log.text());
    site.save("b.yaml", &document("b", "one"));
    becomes(&daemon, "b", Some("one"));
    assert!(!status().contains("trouble") && daemon.json("/v1/catalog").get("held_back").is_none());
}
