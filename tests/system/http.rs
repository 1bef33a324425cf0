//! The catalog's routes, and what they make of bad requests.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, document, shipped, wait_until};

fn start() -> (Site, Daemon) {
    let site = Site::new();
    let mut command = site.command();
    command.arg("--tool-metadata").arg(shipped());
    let daemon = Daemon::start(command, site.path("state/admin.sock"));
    (site, daemon)
}

#[test]
fn a_tool_is_answered_whole_and_only_once() {
    let (_site, daemon) = start();
    let reply = daemon.get("/v1/tools/web_search");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.header("x-almanac-generation"), Some("1"));
    assert_eq!(reply.json()["providers"][0], "tavily");
    let etag = reply.header("etag").unwrap().to_owned();
    let check = |held: &str, status: u16| {
        let again = daemon.send("GET", "/v1/tools/web_search", &[("if-none-match", held)], b"");
        assert_eq!((again.status, again.header("etag")), (status, Some(etag.as_str())), "{held}");
        assert_eq!(again.body.is_empty(), status == 304);
    };
    check(&etag, 304);
    check(&format!("\"x\", W/{etag}"), 304);
    check("*", 304);
    check("\"x\"", 200);
    let head = daemon.send("HEAD", "/v1/tools/web_search", &[], b"");
    assert_eq!((head.status, head.header("content-length")), (200, reply.header("content-length")));
}

#[test]
fn one_connection_serves_many_requests() {
    let (_site, daemon) = start();
    let mut connection = daemon.connect();
    for _ in 0..100 {
        connection.request("GET", "/v1/tools/file_read", &[], b"");
        assert_eq!(connection.reply().status, 200);
    }
    connection.raw(&b"GET /v1/tools/file_read HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(10));
    for _ in 0..10 {
        assert_eq!(connection.reply().status, 200);
    }
}

#[test]
fn every_answer_carries_a_request_identity() {
    let (_site, daemon) = start();
    let id = |headers: &[(&str, &str)], path: &str| {
        daemon.send("GET", path, headers, b"").header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(id(&[("x-request-id", "mine-1")], "/v1/tools/nope"), "mine-1");
    let made = id(&[("x-request-id", "a b")], "/nowhere");
    assert!(made.len() == 16 && made != id(&[], "/v1/catalog"), "{made}");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    daemon.admin("PUT", "/-/log-level", br#"{"level":"debug"}"#);
    id(&[("traceparent", trace), ("x-request-id", "traced")], "/v1/catalog");
    let line = daemon.log.wait_for("\"request_id\":\"traced\"");
    assert_eq!(line["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(line["route"], "/v1/catalog");
}

#[test]
fn lists_are_filtered_paged_and_ranked() {
    let (_site, daemon) = start();
    let names = |query: &str| -> Vec<String> {
        let page = daemon.json(&format!("/v1/tools?{query}"));
        page["items"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = names("limit=1000");
    assert!(all.is_sorted() && all.len() >= 210);
    assert_eq!(names("category=rest_api"), ["http_request"]);
    assert_eq!(names("provider=Brave"), ["web_search"]);
    assert_eq!(names("env_var=TAVILY_API_KEY"), ["crawlSite", "extractWebPage", "web_search"]);
    assert!(names("capability=zzz").is_empty());
    assert_eq!(names("q=search%20the%20web%20for%20news")[0], "web_search");
    assert_eq!(names("q=which+option+should+we+choose&category=reasoning&limit=1"), ["reasoning_decision"]);
    let mut paged = Vec::new();
    let mut query = "limit=7".to_owned();
    loop {
        let page = daemon.json(&format!("/v1/tools?{query}"));
        assert_eq!(page["total"], all.len());
        paged.extend(page["items"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("limit=7&cursor={cursor}");
    }
    assert_eq!(paged, all);
    // One ranking for both: what a message is offered first is listed first.
    let message = "Is anything on fire in the news about Lisbon today?";
    let asked = daemon.post("/v1/qualify", &serde_json::json!({"message": message}).to_string()).json();
    let listed = names(&format!("q={}", message.replace(' ', "%20").replace('?', "%3F")));
    let hints: Vec<String> = serde_json::from_value(asked["toolHints"].clone()).unwrap();
    assert!(!hints.is_empty() && hints.iter().all(|hint| listed[..20].contains(hint)), "{hints:?} in {listed:?}");
    let ranked = daemon.json("/v1/tools?q=file&limit=1");
    assert!(ranked["items"][0]["score"].as_f64().unwrap() > 0.0);
    let cursor = ranked["next_cursor"].as_str().unwrap();
    assert_ne!(names(&format!("q=file&limit=1&cursor={cursor}")), names("q=file&limit=1"));
}

#[test]
fn relations_and_checks_see_both_directions() {
    let (site, daemon) = start();
    let find = |relations: &Value, kind: &str, tool: &str, direction: &str| -> Value {
        let items = relations[kind].as_array().unwrap();
        items.iter().find(|item| item["tool"] == tool && item["direction"] == direction).cloned().unwrap()
    };
    let web = daemon.json("/v1/tools/web_search/relations");
    let (out, back) =
        (find(&web, "conflicts", "http_request", "outgoing"), find(&web, "conflicts", "http_request", "incoming"));
    assert_eq!(out["severity"], "high");
    assert_eq!(out["when_prefer_this"], back["when_prefer_this"]);
    assert_eq!(out["resolved"], json!(["http_request"]));
    let verdict =
        daemon.post("/v1/tools/check", r#"{"tools":["web_search","http_request"],"envVars":["TAVILY_API_KEY"]}"#);
    let verdict = verdict.json();
    assert_eq!((&verdict["ok"], verdict["conflicts"].as_array().unwrap().len()), (&json!(false), 1));
    assert_eq!(verdict["conflicts"][0]["prefer"][1]["tool"], "web_search");
    let good = daemon.post("/v1/tools/check", r#"{"tools":["file_read"]}"#).json();
    assert_eq!(good["ok"], true);
    site.save("member.yaml", &format!("{}backend: mcp:shop\n", document("member", "t")));
    site.save(
        "user.yaml",
        &format!(
            "{}complements: [{{tool: 'mcp:shop', scenario: s}}, {{tool: 'mcp:gone', scenario: s}}]\n",
            document("user", "t")
        ),
    );
    daemon.admin("POST", "/-/reload", b"");
    let user = daemon.json("/v1/tools/user/relations");
    assert_eq!(find(&user, "complements", "mcp:shop", "outgoing")["resolved"], json!(["member"]));
    assert_eq!(find(&user, "complements", "mcp:gone", "outgoing")["dangling"], true);
    assert_eq!(find(&daemon.json("/v1/tools/member/relations"), "complements", "user", "incoming")["scenario"], "s");
}

#[test]
fn bad_requests_are_told_what_is_wrong() {
    let (_site, daemon) = start();
    let check = |method: &str, path: &str, body: &str, status: u16, code: &str| {
        let headers: &[(&str, &str)] = if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
        let reply = daemon.send(method, path, headers, body.as_bytes());
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{method} {path} {body}: {}", reply.text());
        reply.json()
    };
    let near = check("GET", "/v1/tools/web_serach", "", 404, "unknown-tool");
    assert_eq!(near["near"][0], json!("web_search"));
    check("GET", "/v1/tools/..", "", 404, "unknown-tool");
    check("GET", "/v1/tools/%2e%2e%2fx", "", 400, "invalid-name");
    check("GET", "/v1/tools/%2e%2e", "", 404, "unknown-tool");
    check("GET", "/v1/tools/a%00b", "", 400, "invalid-name");
    check("GET", "/v1/tools/%ff", "", 400, "invalid-name");
    check("GET", &format!("/v1/tools/{}", "x".repeat(200)), "", 400, "invalid-name");
    check("GET", "/v1/tools/../../etc/passwd", "", 404, "unknown-path");
    check("GET", "/etc/passwd", "", 404, "unknown-path");
    check("GET", "/v1/tools?catgory=x", "", 400, "unknown-parameter");
    check("GET", "/v1/tools/web_search?x=1", "", 400, "unknown-parameter");
    check("GET", "/v1/tools?limit=0", "", 422, "invalid-parameter");
    check("GET", "/v1/tools?limit=1&limit=2", "", 400, "repeated-parameter");
    check("GET", "/v1/tools?cursor=r:5", "", 422, "invalid-cursor");
    check("GET", "/v1/timing?cursor=x", "", 422, "invalid-cursor");
    check("GET", "/v1/presets?cursor=-1", "", 422, "invalid-cursor");
    check("GET", "/v1/tools?limit=", "", 422, "invalid-parameter");
    check("GET", "/v1/tools?q=x&cursor=r:99999999999999999999", "", 422, "invalid-cursor");
    check("GET", "/v1/catalog?limit=1001", "", 422, "invalid-parameter");
    check("GET", "/v1/catalog?limit=many", "", 422, "invalid-parameter");
    check("GET", "/v1/catalog?cursor=5", "", 422, "invalid-cursor");
    check("GET", "/v1/catalog?cursor=0:a.yaml", "", 422, "invalid-cursor");
    check("DELETE", "/v1/tools/web_search", "", 405, "method-not-allowed");
    check("POST", "/v1/catalog", "{}", 405, "method-not-allowed");
    check("POST", "/v1/tools/check", "{", 400, "malformed-json");
    check("POST", "/v1/tools/check", r#"{"tools":[],"tools":[]}"#, 400, "malformed-json");
    check("POST", "/v1/tools/check", &"[".repeat(10_000), 400, "malformed-json");
    let faults = check("POST", "/v1/tools/check", r#"{"tools":["a",1],"envvars":[]}"#, 422, "invalid-body");
    let pointers: Vec<&str> =
        faults["errors"].as_array().unwrap().iter().map(|e| e["pointer"].as_str().unwrap()).collect();
    assert_eq!(pointers, ["/tools/1", "/envvars"]);
    check("POST", "/v1/tools/check", r#"{"tools":null}"#, 422, "invalid-body");
    check("POST", "/v1/tools/check", "[]", 422, "invalid-body");
    check("POST", "/-/reload", "", 404, "unknown-path");
    let reply = daemon.send("POST", "/v1/tools/check", &[("content-type", "text/plain")], b"{}");
    assert_eq!((reply.status, reply.code().as_str()), (415, "not-json"));
    let allowed = daemon.send("DELETE", "/v1/tools/web_search", &[], b"");
    assert_eq!(allowed.header("allow"), Some("GET, HEAD"));
}

#[test]
fn a_path_that_was_mistyped_is_told_from_what_is_served() {
    let (_site, daemon) = start();
    let check = |path: &str, status: u16, near: Value| {
        let reply = daemon.post(path, "{}");
        assert_eq!((reply.status, &reply.json()["near"]), (status, &near), "{path}: {}", reply.text());
    };
    check("/v1/memories/message", 405, json!(["/v1/memories/messages"]));
    check("/v1/estimates", 404, json!(["/v1/estimate"]));
    check("/v1/nothing-like-it", 404, Value::Null);
}

#[test]
fn a_name_needs_no_escape_it_was_written_with() {
    let (site, daemon) = start();
    site.save("odd.yaml", &document("'ünü tool: %41?'", "odd"));
    daemon.admin("POST", "/-/reload", b"");
    assert_eq!(daemon.title("%C3%BCn%C3%BC%20tool%3A%20%2541%3F").as_deref(), Some("odd"));
}

#[test]
fn metrics_count_by_route_and_not_by_path() {
    let (_site, daemon) = start();
    for path in ["/v1/tools/a", "/v1/tools/b", "/v1/tools/file_read", "/x", "/y"] {
        daemon.get(path);
    }
    let requests = |labels: &str| daemon.metric(&format!("almanac_http_requests_total{{{labels}}}"));
    assert_eq!(requests(r#"code="404",method="GET",route="/v1/tools/{name}""#), Some(2.0));
    assert_eq!(requests(r#"code="200",method="GET",route="/v1/tools/{name}""#), Some(1.0));
    assert_eq!(requests(r#"code="404",method="GET",route="unmatched""#), Some(2.0));
    assert_eq!(daemon.metric("almanac_catalog_generation"), Some(1.0));
    assert_eq!(daemon.metric(r#"almanac_catalog_documents{state="good"}"#), daemon.metric("almanac_catalog_tools"));
    assert!(daemon.metric("process_resident_memory_bytes").unwrap() > 0.0);
    assert!(daemon.metric("process_start_time_seconds").unwrap() > 0.0);
}

#[test]
fn a_page_of_another_origin_asks_as_configured() {
    let site = Site::new();
    site.configure("http: {allowed_origins: [https://app.example]}\n").save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    let origin = |origin: &str| daemon.send("GET", "/v1/tools/a", &[("origin", origin)], b"");
    let reply = origin("https://app.example");
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some("https://app.example")));
    assert_eq!(reply.header("vary"), Some("origin"));
    assert!(reply.header("access-control-expose-headers").unwrap().contains("etag"));
    assert_eq!(
        (origin("https://evil.example").status, origin("https://evil.example").code().as_str()),
        (403, "foreign-origin")
    );
    // A page of this machine may ask, and may not read.
    let local = origin("http://localhost:3000");
    assert_eq!((local.status, local.header("access-control-allow-origin")), (200, None));
    let preflight = |path: &str, origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,content-type"),
        ];
        daemon.send("OPTIONS", path, &headers, b"")
    };
    let reply = preflight("/v1/estimate", "https://app.example");
    assert_eq!((reply.status, reply.header("access-control-allow-methods")), (204, Some("POST")));
    // All that the clients send.
    let allowed = reply.header("access-control-allow-headers").unwrap();
    for sent in ["authorization", "content-type", "idempotency-key", "if-match", "x-request-id"] {
        assert!(allowed.split(", ").any(|name| name == sent), "{sent}: {allowed}");
    }
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(reply.header("access-control-max-age").is_some());
    assert_eq!(
        preflight("/v1/tools/a", "https://app.example").header("access-control-allow-methods"),
        Some("GET, HEAD")
    );
    assert_eq!(preflight("/v1/estimate", "https://evil.example").status, 403);
    assert_eq!(preflight("/nowhere", "https://app.example").status, 404);
    // Refusals can be read as well.
    let refused = daemon.send("GET", "/v1/tools/none", &[("origin", "https://app.example")], b"");
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (404, Some("https://app.example")));
}

#[test]
fn without_origins_nothing_is_said_to_pages() {
    let (_site, daemon) = start();
    let headers = [("origin", "http://localhost:3000"), ("access-control-request-method", "POST")];
    assert_eq!(daemon.send("OPTIONS", "/v1/estimate", &headers, b"").status, 405);
    let reply = daemon.send("GET", "/v1/tools", &headers[..1], b"");
    assert_eq!((reply.status, reply.header("access-control-allow-origin"), reply.header("vary")), (200, None, None));
    let site = Site::new();
    site.configure("http: {allowed_origins: ['*']}\n");
    let (code, said) = site.fail(&[]);
    assert!(code == 78 && said.contains("is no origin"), "{said}");
}

fn without_console() -> (Site, Daemon) {
    let site = Site::new();
    site.configure("http: {console: false}\n");
    let daemon = site.start();
    (site, daemon)
}

#[test]
fn the_root_is_a_page_with_links() {
    let (_site, daemon) = without_console();
    // One of the links says whether it is.
    wait_until("it to be ready", || daemon.get("/ready").status == 200);
    let reply = daemon.get("/");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let page = reply.text();
    let links: Vec<&str> = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(links.len() >= 8, "{links:?}");
    for link in links {
        assert_eq!(daemon.get(link).status, 200, "{link}");
    }
}

#[test]
fn a_received_error_finds_what_to_do() {
    let (_site, daemon) = start();
    let page = daemon.json("/v1/tools?error=HTTP%20401%20MISSING_API_KEY&limit=1000");
    let items = page["items"].as_array().unwrap();
    assert!(items.iter().any(|tool| tool["name"] == "web_search"), "{page:#}");
    for tool in items {
        let errors = tool["common_errors"].as_array().unwrap();
        assert!(
            !errors.is_empty() && errors.iter().all(|error| !error["solution"].as_str().unwrap().is_empty()),
            "{tool:#}"
        );
    }
    let plain = daemon.json("/v1/tools?limit=1");
    assert!(plain["items"][0].get("common_errors").is_none());
    let output = crate::daemon::almanacd()
        .args(["tools", "--error", "HTTP 401 MISSING_API_KEY", "--socket"])
        .arg(&daemon.admin)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("web_search") && text.contains("MISSING_API_KEY:") && text.contains(" → "), "{text}");
}

#[test]
fn a_set_is_good_when_one_provider_is() {
    let (_site, daemon) = start();
    let check = |body: serde_json::Value| daemon.post("/v1/tools/check", &body.to_string()).json();
    let free = check(json!({"tools": ["web_search"]}));
    assert_eq!(free["ok"], true, "{free:#}");
    let missing = free["missing_prerequisites"].as_array().unwrap();
    assert!(!missing.is_empty() && missing.iter().all(|missing| missing["optional"] == true), "{free:#}");
    let mistyped = check(json!({"tools": ["web_search"], "provider": "tavilly"}));
    assert_eq!((&mistyped["code"], &mistyped["near"]), (&json!("invalid-body"), &json!(["tavily"])), "{mistyped:#}");
    let named = check(json!({"tools": ["web_search"], "provider": "tavily"}));
    assert_eq!(
        (&named["ok"], &named["missing_prerequisites"][0]["optional"]),
        (&json!(false), &json!(false)),
        "{named:#}"
    );
    assert_eq!(
        check(json!({"tools": ["web_search"], "provider": "tavily", "env_vars": ["TAVILY_API_KEY"]}))["ok"],
        true
    );
}

#[test]
fn a_faulty_new_document_is_told_by_its_name() {
    let site = Site::new();
    site.save("some_file.yaml", &document("fresh", "t").replace("category", "categry"));
    let daemon = site.start();
    let reply = daemon.get("/v1/tools/fresh");
    assert_eq!((reply.status, reply.code().as_str()), (404, "unknown-tool"));
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("some_file.yaml:1:1: the key `category` is missing"), "{detail}");
    assert!(!daemon.get("/v1/tools/some_file").json()["detail"].as_str().unwrap().contains("faulty"));
    let loader = almanac::catalog::Loader::new(site.tools());
    let error = loader.load("fresh").unwrap_err().to_string();
    assert!(error.contains("some_file.yaml:") && error.contains("categry"), "{error}");
    assert!(loader.load("other").unwrap().is_none());
}

#[test]
fn a_reload_says_which_keys_wait_for_a_restart() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    site.configure("workers: 1\n");
    let daemon = site.start();
    let reload = || {
        let mut command = crate::daemon::almanacd();
        let output = command.args(["ctl", "reload", "--wait", "--socket"]).arg(&daemon.admin).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(reload(), "");
    site.configure("workers: 2\n");
    assert_eq!(reload(), "waits for a restart: workers\n");
    let defaults = |text: &str| std::fs::write(site.path("timing-defaults.yaml"), text).unwrap();
    defaults("unknown_tool_ms: 700\n");
    assert_eq!(reload(), "waits for a restart: workers, timing-defaults.yaml\n");
    defaults("garbage: [\n");
    assert!(reload().contains("timing-defaults.yaml"), "{}", reload());
}
