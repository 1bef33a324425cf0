//! Servers at a URL that want tokens of an authorization server: what is asked there, how often, and what is said when
//! it goes wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::served::{Served, text};
use crate::daemon::{Site, wait_until};
use crate::web::{Asked, Page, Web};

const SECRET: &str = "s3cret-of-the-client";

/// What differs from a server and an authorization server that do all as they should.
type Twist = fn(url: &str, asked: &Asked) -> Option<Page>;

/// A server at `/mcp`, and at `/CASE/mcp`, with an authorization server at `/as` or `/CASE/as`.
struct Guarded {
    web: Web,
    /// The token that is let in.
    valid: Arc<Mutex<String>>,
    /// Seconds that tokens are said to be good for.
    life: Arc<AtomicUsize>,
}

impl Guarded {
    fn start(twist: Twist) -> Self {
        let (valid, life) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicUsize::new(3600)));
        let (issued, given, good_for) = (AtomicUsize::new(0), Arc::clone(&valid), Arc::clone(&life));
        let web = Web::start(move |url, asked| {
            if let Some(page) = twist(url, asked) {
                return page;
            }
            let (case, place) = split(&asked.path);
            let base = format!("{url}{case}");
            match place {
                "/resource" => Page::json(&json!({
                    "resource": format!("{base}/mcp"), "authorization_servers": [format!("{base}/as")],
                })),
                "/as/.well-known/openid-configuration" => Page::json(&json!({
                    "issuer": format!("{base}/as"), "token_endpoint": format!("{base}/token"),
                })),
                "/token" => {
                    let token = format!("t0ken-{}", issued.fetch_add(1, Ordering::Relaxed) + 1);
                    given.lock().unwrap().clone_from(&token);
                    let life = good_for.load(Ordering::Relaxed);
                    Page::json(&json!({"access_token": token, "token_type": "bearer", "expires_in": life}))
                }
                "/mcp" => {
                    let wanted = format!("Bearer {}", given.lock().unwrap());
                    if asked.header("authorization") == Some(&wanted) {
                        return served(asked);
                    }
                    let challenge = format!("Bearer scope=\"tools\", resource_metadata=\"{base}/resource\"");
                    let headers = format!("www-authenticate: {challenge}\r\n");
                    Page::Answer("401 Unauthorized", headers, String::new())
                }
                _ => Page::status("404 Not Found"),
            }
        });
        Self { web, valid, life }
    }

    fn daemon(&self, more: &str) -> Served {
        let credentials = format!("client_credentials: {{client_id: 'me:', client_secret: '{SECRET}'{more}}}");
        let server = format!("    far: {{url: '{}/mcp', {credentials}}}\n", self.web.url);
        Served::new(&server, "  anonymous_calls: true\n")
    }

    fn tokens(&self) -> Vec<Asked> {
        self.web.asked("/token")
    }
}

/// `/CASE` and the rest.
fn split(path: &str) -> (&str, &str) {
    let own = path.strip_prefix("/.well-known/").is_some() || path[1..].find('/').is_none() || path.starts_with("/as/");
    if own { ("", path) } else { path.split_at(path[1..].find('/').unwrap() + 1) }
}

/// What a server of the older era answers.
fn served(asked: &Asked) -> Page {
    let message: Value = serde_json::from_str(&asked.body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "g", "version": "1"},
        }),
        "tools/list" => {
            json!({"tools": [{"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "hello"}]}),
        "notifications/initialized" => return Page::status("202 Accepted"),
        _ => return Page::status("405 Method Not Allowed"),
    };
    Page::json(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

#[test]
fn tokens_are_fetched_when_they_are_wanted_and_shown_to_nobody_else() {
    let guarded = Guarded::start(|_, _| None);
    let served = guarded.daemon("");
    assert_eq!(text(&served.call("far_greet", json!({}))), "hello");
    let tokens = guarded.tokens();
    assert_eq!(tokens.len(), 1, "{tokens:?}");
    let resource = guarded.web.url.replace(':', "%3A").replace('/', "%2F");
    let form = format!("grant_type=client_credentials&resource={resource}%2Fmcp&scope=tools");
    assert_eq!((tokens[0].method.as_str(), tokens[0].body.as_str()), ("POST", form.as_str()));
    let basic = BASE64_STANDARD.encode(format!("me%3A:{SECRET}"));
    assert_eq!(tokens[0].header("authorization"), Some(format!("Basic {basic}").as_str()));
    // The server forgets the token: all calls wait for one other.
    "nothing".clone_into(&mut guarded.valid.lock().unwrap());
    thread::scope(|scope| {
        for n in 0..8 {
            let served = &served;
            scope.spawn(move || assert_eq!(text(&served.call("far_greet", json!({"n": n}))), "hello"));
        }
    });
    assert_eq!(guarded.tokens().len(), 2);
    let shown = [
        served.daemon.log.text(),
        served.logs("far"),
        served.daemon.admin("GET", "/-/mcp", b"").text(),
        served.daemon.get("/metrics").text(),
    ];
    for secret in [SECRET, "t0ken", &basic] {
        assert!(shown.iter().all(|shown| !shown.contains(secret)), "{secret} is shown");
    }
}

#[test]
fn a_token_that_ends_is_replaced_before_it_is_refused() {
    let guarded = Guarded::start(|_, _| None);
    guarded.life.store(0, Ordering::Relaxed);
    let served = guarded.daemon(", scopes: [a, b]");
    let (before, refused) = (guarded.tokens().len(), refusals(&guarded));
    assert!(guarded.tokens()[0].body.ends_with("&scope=a%20b"));
    assert_eq!(text(&served.call("far_greet", json!({}))), "hello");
    assert!(guarded.tokens().len() > before);
    assert_eq!(refusals(&guarded), refused, "it did not have to be asked who issues them");
}

fn refusals(guarded: &Guarded) -> usize {
    guarded.web.asked("/resource").len()
}

#[test]
fn what_is_wrong_with_a_way_to_a_token_is_said() {
    const CASES: [(&str, &str); 16] = [
        ("issuer", "is of the issuer `https://evil.example`, not of http://127.0.0.1"),
        ("other", "is of another resource, `https://other.example/mcp`"),
        ("refused", "refused `client_credentials` with 401 Unauthorized: invalid_client"),
        ("down", "the token endpoint cannot be used: http://127.0.0.1:9/token cannot be reached"),
        ("moved", "/moved/token answers 307 Temporary Redirect; redirects are not followed"),
        ("huge", "/huge/token answers with more than 256 KiB"),
        ("slow", "/slow/token did not answer within 10 s"),
        ("private", "https://10.0.0.1/.well-known/oauth-authorization-server is at a private address"),
        ("plain", "http://as.example.com/token is not https"),
        ("nowhere", "nowhere/resource answered 404 Not Found"),
        ("nobody", "it names no authorization server"),
        ("garbage", "garbage/resource is no metadata of a protected resource"),
        ("none", "has no metadata of an authorization server at its well-known addresses"),
        ("empty", "/empty/token answers with what is no token"),
        ("mac", "gives a token of another type than Bearer"),
        ("never", "refuses the token that its authorization server has just given"),
    ];
    let guarded = Guarded::start(|url, asked| {
        let (case, place) = split(&asked.path);
        let base = format!("{url}{case}");
        let resource = |resource: &str, issuers: Value| {
            Some(Page::json(&json!({"resource": resource, "authorization_servers": issuers})))
        };
        let own = format!("{base}/mcp");
        let endpoint =
            |endpoint: &str| Some(Page::json(&json!({"issuer": format!("{base}/as"), "token_endpoint": endpoint})));
        match (case.trim_start_matches('/'), place) {
            ("issuer", "/as/.well-known/openid-configuration") => {
                Some(Page::json(&json!({"issuer": "https://evil.example", "token_endpoint": format!("{base}/token")})))
            }
            ("other", "/resource") => resource("https://other.example/mcp", json!([format!("{base}/as")])),
            ("refused", "/token") => {
                let said = json!({"error": "invalid_client", "error_description": format!("not {SECRET}")});
                Some(Page::Answer("401 Unauthorized", String::new(), said.to_string()))
            }
            ("down", "/as/.well-known/openid-configuration") => endpoint("http://127.0.0.1:9/token"),
            ("plain", "/as/.well-known/openid-configuration") => endpoint("http://as.example.com/token"),
            ("moved", "/token") => {
                Some(Page::Answer("307 Temporary Redirect", "location: /token\r\n".to_owned(), String::new()))
            }
            ("huge", "/token") => Some(Page::Flood),
            ("slow", "/token") => Some(Page::Stall),
            ("private", "/resource") => resource(&own, json!(["https://10.0.0.1"])),
            ("nowhere", "/resource") | ("none", "/as/.well-known/openid-configuration") => {
                Some(Page::status("404 Not Found"))
            }
            ("nobody", "/resource") => resource(&own, json!([])),
            ("garbage", "/resource") => Some(Page::Answer("200 OK", String::new(), "<html>".to_owned())),
            ("empty", "/token") => Some(Page::json(&json!({}))),
            ("mac", "/token") => Some(Page::json(&json!({"access_token": "x", "token_type": "mac"}))),
            ("never", "/token") => Some(Page::json(&json!({"access_token": "x", "token_type": "Bearer"}))),
            _ => None,
        }
    });
    let credentials = format!("client_credentials: {{client_id: me, client_secret: '{SECRET}'");
    let url = &guarded.web.url;
    let mut servers: String =
        CASES.iter().map(|(case, _)| format!("    {case}: {{url: '{url}/{case}/mcp', {credentials}}}}}\n")).collect();
    servers.push_str(&format!("    bound: {{url: '{url}/mcp', {credentials}, issuer: 'https://mine.example'}}}}\n"));
    servers
        .push_str(&format!("    keyed: {{url: '{url}/mcp', client_credentials: {{client_id: me, private_key: x}}}}\n"));
    let served = Served::start(Site::new(), &servers, "");
    let problem = |name: &str| {
        let listed = served.daemon.admin("GET", "/-/mcp", b"").json();
        let found = listed["items"].as_array().unwrap().iter().find(|item| item["name"] == name).unwrap().clone();
        (found["problem"].as_str().unwrap_or_default().to_owned(), found["state"].clone())
    };
    let more = [
        ("bound", "and `client_credentials` are for https://mine.example only"),
        ("keyed", "the private key is not in PEM"),
    ];
    for (case, said) in CASES.iter().chain(&more) {
        wait_until(said, || problem(case).0.contains(*said));
        let (problem, state) = problem(case);
        assert!(!problem.contains(SECRET), "{case}: {problem}");
        assert_eq!(state, "down", "{case}");
    }
    assert!(!served.daemon.log.text().contains(SECRET));
}

#[test]
fn a_server_that_wants_a_login_is_told_apart() {
    let guarded = Guarded::start(|_, _| None);
    let url = &guarded.web.url;
    let servers = format!("    far: {{url: '{url}/mcp'}}\n    key: {{url: '{url}/mcp', headers: {{X-Key: wrong}}}}\n");
    let served = Served::start(Site::new(), &servers, "");
    let list = || served.daemon.admin("GET", "/-/mcp", b"").json()["items"].clone();
    wait_until("the refusals", || list().as_array().unwrap().iter().all(|item| item["problem"].is_string()));
    let items = list();
    assert_eq!((&items[0]["state"], &items[1]["state"]), (&json!("needs-login"), &json!("down")), "{items}");
    assert!(items[0]["problem"].as_str().unwrap().contains("set `client_credentials`"), "{items}");
    assert_eq!(served.daemon.json("/v1/servers")["items"][0]["state"], "needs-login");
    assert!(guarded.tokens().is_empty());
}
