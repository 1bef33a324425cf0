//! Real counterparts: Prometheus and promtool. Where they are not installed these tests say so and pass, unless
//! `ALMANAC_TEST_COUNTERPARTS` is set, as it is in the continuous integration.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::daemon::{Connection, Site, document, wait_for};

/// Is the program there? Its absence fails the test where counterparts are promised.
pub fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(found || std::env::var_os("ALMANAC_TEST_COUNTERPARTS").is_none(), "{program} is not installed");
    if !found {
        let _ = writeln!(std::io::stderr(), "skipped: {program} is not installed");
    }
    found
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn promtool_has_nothing_to_say() {
    if !installed("promtool") {
        return;
    }
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    for path in ["/v1/tools/a", "/v1/tools/b", "/v1/tools", "/nowhere", "/ready"] {
        daemon.get(path);
    }
    site.save("a.yaml", "broken: [");
    daemon.admin("POST", "/-/reload", b"");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(&daemon.get("/metrics").body).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn prometheus_scrapes_and_answers() {
    if !installed("prometheus") || !installed("promtool") {
        return;
    }
    let site = Site::new();
    for tool in ["a", "b", "c"] {
        site.save(&format!("{tool}.yaml"), &document(tool, "t"));
    }
    let daemon = site.start();
    let configuration = format!(
        "scrape_configs:\n- job_name: almanac\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  static_configs: \
         [{{targets: ['{}']}}]\n",
        daemon.address,
    );
    std::fs::write(site.path("prometheus.yml"), configuration).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _prometheus = Killed(
        Command::new("prometheus")
            .arg(format!("--config.file={}", site.path("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", site.path("tsdb").display()))
            .arg(format!("--web.listen-address={port}"))
            .arg("--enable-feature=exemplar-storage")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let server = format!("http://{port}");
    let query = |query: &str| -> Option<String> {
        let output = Command::new("promtool").args(["query", "instant", &server, query]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        Some(said.split("=> ").nth(1)?.split(' ').next()?.to_owned())
    };
    let tools = wait_for("a scrape", || query("almanac_catalog_tools"));
    assert_eq!(tools, "3");
    assert_eq!(query("up{job=\"almanac\"}").as_deref(), Some("1"));
    let scrapes = || query("almanac_http_requests_total{route=\"/metrics\"}");
    wait_for("a second scrape", || scrapes().filter(|count| count != "1"));
    wait_for("an exemplar", || {
        // Of so many routes that the answer comes in chunks.
        for path in ["/v1/tools", "/v1/plugins", "/ready", "/nowhere", "/v1/tools/a"] {
            daemon.send("GET", path, &[("x-request-id", "a-slow-one")], b"");
        }
        let mut prometheus = Connection::open(port);
        let path = "/api/v1/query_exemplars?start=0&end=9999999999&query=almanac_http_request_duration_seconds_bucket";
        prometheus.request("GET", path, &[], b"");
        let found = prometheus.reply().text();
        found.contains(r#"{"labels":{"request_id":"a-slow-one"}"#).then_some(())
    });
}
