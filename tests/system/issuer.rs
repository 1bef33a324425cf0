//! Tokens of an authorization server, which the test is.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use almanac::oauth::signing::SigningKey;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::KeyPair as _;
use serde_json::{Value, json};

use crate::access::token;
use crate::daemon::{Daemon, Reply, Site, document, wait_for, wait_until};
use crate::mcp::{LEGACY, Session, ask_with, outcome};
use crate::mcp_fixture::server;
use crate::web::{Page, Web};

const AUDIENCE: &str = "https://almanac.example.com/mcp";

/// Where clients find out who issues tokens.
const PLACE: &str = "https://almanac.example.com/.well-known/oauth-protected-resource/mcp";

/// An authorization server with the keys that it publishes; without any it is away.
struct Issuer {
    web: Web,
    keys: Arc<Mutex<Vec<Value>>>,
}

fn key(kind: &'static rcgen::SignatureAlgorithm) -> SigningKey {
    SigningKey::read(&rcgen::KeyPair::generate_for(kind).unwrap().serialize_pem()).unwrap()
}

/// As the other keys are made by nobody here who knows RSA.
fn rsa_key() -> SigningKey {
    let made = Command::new("openssl")
        .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
        .stderr(Stdio::null())
        .output()
        .expect("openssl is installed");
    SigningKey::read(&String::from_utf8(made.stdout).unwrap()).unwrap()
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The public half, as an issuer publishes it.
fn public(key: &SigningKey, kid: &str) -> Value {
    match key {
        SigningKey::Es256(key) => {
            let (x, y) = key.public_key().as_ref()[1..].split_at(32);
            json!({"kty": "EC", "crv": "P-256", "kid": kid, "use": "sig", "x": encode(x), "y": encode(y)})
        }
        SigningKey::EdDsa(key) => {
            json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": encode(key.public_key().as_ref())})
        }
        SigningKey::Rs256(key) => {
            let parts = ring::signature::RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
            let (n, e) = (encode(&parts.n), encode(&parts.e));
            json!({"kty": "RSA", "alg": "RS256", "kid": kid, "n": n, "e": e})
        }
    }
}

impl Issuer {
    fn start(keys: &[Value]) -> Self {
        let keys = Arc::new(Mutex::new(keys.to_vec()));
        let published = Arc::clone(&keys);
        let web = Web::start(move |url, asked| {
            let keys = published.lock().unwrap();
            match asked.path.as_str() {
                _ if keys.is_empty() => Page::status("503 Service Unavailable"),
                "/.well-known/openid-configuration" => {
                    Page::json(&json!({"issuer": url, "jwks_uri": format!("{url}/keys")}))
                }
                "/keys" => Page::json(&json!({"keys": *keys})),
                _ => Page::status("404 Not Found"),
            }
        });
        Self { web, keys }
    }

    fn configuration(&self, more: &str) -> String {
        format!("auth:\n  issuer: {}\n  audience: {AUDIENCE}\n{more}", self.web.url)
    }

    /// A daemon that lets the issuer's tokens in, once it has the keys.
    fn daemon(&self, site: &Site, more: &str) -> Daemon {
        site.configure(&self.configuration(more));
        site.save("a.yaml", &document("a", "t"));
        let daemon = site.start();
        wait_until("the keys", || daemon.log.text().contains("the issuer's keys were fetched"));
        daemon
    }

    fn claims(&self, more: Value) -> Value {
        let mut claims = json!({
            "iss": self.web.url, "aud": AUDIENCE, "sub": "anna", "exp": now() + 600, "iat": now(),
            "scope": "read record",
        });
        let Value::Object(more) = more else { panic!("claims are an object: {more}") };
        claims.as_object_mut().unwrap().extend(more);
        claims
    }

    /// A token that the key signs, with these claims beside the usual ones; null takes one away.
    fn token(&self, key: &SigningKey, kid: &str, more: Value) -> String {
        let mut claims = self.claims(more);
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        key.sign_as(&claims, Some(kid)).unwrap()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn ask(daemon: &Daemon, path: &str, token: &str) -> Reply {
    daemon.send("GET", path, &[("authorization", &format!("Bearer {token}"))], b"")
}

fn send(daemon: &Daemon, path: &str, token: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    daemon.send("POST", path, &headers, body.to_string().as_bytes())
}

#[test]
fn tokens_of_the_issuer_are_let_in_beside_those_of_the_file() {
    let made = [key(&rcgen::PKCS_ECDSA_P256_SHA256), key(&rcgen::PKCS_ED25519), rsa_key()];
    let keys: Vec<Value> = made.iter().map(|key| public(key, key.algorithm())).collect();
    let issuer = Issuer::start(&keys);
    let site = Site::new();
    let filed = token(&site, "reader", "read");
    let daemon = issuer.daemon(&site, &format!("  tokens_file: {}\n", site.path("tokens").display()));
    for key in &made {
        let token = issuer.token(key, key.algorithm(), json!({}));
        let reply = ask(&daemon, "/v1/tools", &token);
        assert_eq!(reply.status, 200, "{}: {}", key.algorithm(), reply.text());
    }
    assert_eq!(ask(&daemon, "/v1/tools", &filed).status, 200);
    let refused = daemon.get("/v1/tools");
    let challenge = format!("Bearer resource_metadata=\"{PLACE}\"");
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(challenge.as_str())));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let metadata = daemon.json(path);
        assert_eq!(metadata["resource"], AUDIENCE);
        assert_eq!(metadata["authorization_servers"], json!([issuer.web.url]));
        assert_eq!(metadata["scopes_supported"], json!(["read", "record", "memory", "call"]));
    }
    let token = issuer.token(&made[0], "ES256", json!({"aud": ["other", AUDIENCE], "nbf": now() + 20}));
    assert_eq!(ask(&daemon, "/v1/tools", &token).status, 200, "several audiences, and clocks that disagree a little");
    assert!(!daemon.log.text().contains(&token), "no token is logged");
}

#[test]
fn tokens_that_are_not_meant_are_refused_with_the_reason() {
    let (own, other) = (key(&rcgen::PKCS_ECDSA_P256_SHA256), key(&rcgen::PKCS_ECDSA_P256_SHA256));
    let issuer = Issuer::start(&[public(&own, "a")]);
    let site = Site::new();
    let daemon = issuer.daemon(&site, "");
    let check = |token: &str, said: &str| {
        let reply = ask(&daemon, "/v1/tools", token);
        assert_eq!((reply.status, reply.code().as_str()), (401, "unknown-token"), "{said}: {}", reply.text());
        assert!(reply.text().contains(said), "{said}: {}", reply.text());
        let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{PLACE}\"");
        assert_eq!(reply.header("www-authenticate"), Some(challenge.as_str()));
    };
    let claims = |more: Value| issuer.token(&own, "a", more);
    check(&claims(json!({"exp": now() - 61})), "it has expired");
    check(&claims(json!({"exp": null})), "it has no `exp`");
    check(&claims(json!({"exp": "9999999999"})), "it has no `exp`");
    check(&claims(json!({"nbf": now() + 90})), "it is not valid yet");
    check(&claims(json!({"nbf": "soon"})), "it is not valid yet");
    check(&claims(json!({"aud": "https://other.example/mcp"})), "it is for another audience");
    check(&claims(json!({"aud": null})), "it is for another audience");
    check(&claims(json!({"iss": "https://other.example"})), "another issuer made it");
    check(&claims(json!({"sub": null})), "its `sub` is no name");
    check(&claims(json!({"sub": "a\nb"})), "its `sub` is no name");
    check(&claims(json!({"sub": "x".repeat(256)})), "its `sub` is no name");
    check(&issuer.token(&other, "a", json!({})), "its signature is wrong");
    let head = |head: Value| encode(head.to_string().as_bytes());
    let body = encode(issuer.claims(json!({})).to_string().as_bytes());
    check(&format!("{}.{body}.", head(json!({"alg": "none"}))), "not signed by RS256, ES256 or EdDSA");
    // The public key as a shared secret.
    let content = format!("{}.{body}", head(json!({"alg": "HS256", "kid": "a"})));
    let SigningKey::Es256(public_key) = &own else { panic!("it is of another kind") };
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public_key.public_key().as_ref());
    let signature = encode(ring::hmac::sign(&secret, content.as_bytes()).as_ref());
    check(&format!("{content}.{signature}"), "not signed by RS256, ES256 or EdDSA");
    let good = claims(json!({}));
    let (content, signature) = good.rsplit_once('.').unwrap();
    let changed = encode(issuer.claims(json!({"scope": "read call"})).to_string().as_bytes());
    check(&format!("{}.{changed}.{signature}", content.split_once('.').unwrap().0), "its signature is wrong");
    check("a.b.c", "it is no signed token");
    check("unknown", "this token is not known here");
    assert_eq!(ask(&daemon, "/v1/tools", &good).status, 200);
}

#[test]
fn scopes_and_tenants_are_as_those_of_a_token_of_the_file() {
    let own = key(&rcgen::PKCS_ED25519);
    let issuer = Issuer::start(&[public(&own, "a")]);
    let site = Site::new();
    let daemon = issuer.daemon(&site, "  tenant_claim: org\n");
    let token = |scope: &str, org: Value| issuer.token(&own, "a", json!({"scope": scope, "org": org}));
    let reader = token("read profile", json!("acme"));
    assert_eq!(ask(&daemon, "/v1/tools", &reader).status, 200);
    let execution = json!([{"tool_name": "a", "duration_ms": 5}]);
    let refused = send(&daemon, "/v1/executions", &reader, &execution);
    assert_eq!((refused.status, refused.code().as_str()), (403, "missing-scope"), "{}", refused.text());
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.contains("error=\"insufficient_scope\", scope=\"record\""), "{challenge}");
    let record = |token: &str| send(&daemon, "/v1/executions", token, &execution).status;
    let [mine, other] = ["acme", "other"].map(|org| token("read record", json!(org)));
    assert!((200..300).contains(&record(&mine)), "{}", send(&daemon, "/v1/executions", &mine, &execution).text());
    let listed = |token: &str| ask(&daemon, "/v1/executions", token).json()["items"].as_array().unwrap().len();
    wait_until("the record", || listed(&mine) > 0);
    assert_eq!(listed(&other), 0, "another tenant's calls do not exist");
    for org in [json!(null), json!(""), json!(5)] {
        let reply = ask(&daemon, "/v1/tools", &token("read", org));
        assert_eq!(reply.status, 401, "{}", reply.text());
    }
    // Who may administer is not the issuer's to say, unless the configuration has it so.
    assert_eq!(ask(&daemon, "/v1/tools", &token("admin", json!("acme"))).status, 403);
}

#[test]
fn who_may_too_little_is_told_which_scope_would_do_and_where() {
    let own = key(&rcgen::PKCS_ED25519);
    let issuer = Issuer::start(&[public(&own, "a")]);
    let site = Site::new();
    let scopes = "  scopes: {'tools:use': [read, call], 'tools:view': [read], 'tools:note': [record]}\n";
    let none = site.path("mcp.d");
    let servers = format!("mcp:\n  directory: {}\n  servers:\n    a: {}}}\n", none.display(), server("legacy"));
    let daemon = issuer.daemon(&site, &format!("{scopes}{servers}"));
    let token = issuer.token(&own, "a", json!({"scope": "tools:view"}));
    let said = |reply: &Reply| (reply.status, reply.header("www-authenticate").unwrap_or_default().to_owned());
    let challenge =
        |scope: &str| (403, format!("Bearer error=\"insufficient_scope\", {scope}resource_metadata=\"{PLACE}\""));
    let execution = json!([{"tool_name": "a", "duration_ms": 5}]);
    let refused = send(&daemon, "/v1/executions", &token, &execution);
    assert_eq!(said(&refused), challenge("scope=\"tools:note\", "));
    let call = |tool: &str| {
        let bearer = ("authorization".to_owned(), format!("Bearer {token}"));
        ask_with(&daemon, "/mcp/all", "tools/call", json!({"name": tool, "arguments": {}}), &[bearer])
    };
    // Nothing that the issuer gives allows this.
    assert_eq!(said(&call("recall")), challenge(""));
    let refused = wait_for("the server's tool", || Some(call("a_echo")).filter(|reply| reply.status != 200));
    assert_eq!(said(&refused), challenge("scope=\"tools:use\", "));
    assert_eq!(refused.json()["error"]["message"], "this token has not the scope call");
    let bearer = format!("Bearer {token}");
    let session = Session::begin(&daemon, &[("authorization", &bearer)], LEGACY);
    let refused = session.ask(&daemon, "tools/call", json!({"name": "a_echo"}));
    assert_eq!(said(&refused), challenge("scope=\"tools:use\", "));
    let able = issuer.token(&own, "a", json!({"scope": "tools:use"}));
    let bearer = ("authorization".to_owned(), format!("Bearer {able}"));
    let params = json!({"name": "a_echo", "arguments": {"text": "hi"}});
    let answered = outcome(&ask_with(&daemon, "/mcp", "tools/call", params, &[bearer]));
    assert_eq!(answered["result"]["content"][0]["text"], "hi", "{answered}");
}

#[test]
fn scopes_of_other_names_are_mapped() {
    let own = key(&rcgen::PKCS_ED25519);
    let issuer = Issuer::start(&[public(&own, "a")]);
    let site = Site::new();
    let daemon = issuer.daemon(&site, "  scopes: {'tools:use': [read, call], root: [admin]}\n");
    let status = |claims: Value| ask(&daemon, "/v1/tools", &issuer.token(&own, "a", claims)).status;
    assert_eq!(status(json!({"scope": "x tools:use"})), 200);
    assert_eq!(status(json!({"scope": null, "scp": ["root"]})), 200);
    assert_eq!(status(json!({"scope": "read"})), 403, "only what is mapped counts");
    assert_eq!(daemon.json("/.well-known/oauth-protected-resource")["scopes_supported"], json!(["root", "tools:use"]));
}

#[test]
fn a_new_key_is_fetched_when_a_token_names_it_but_not_for_each() {
    let (old, new) = (key(&rcgen::PKCS_ED25519), key(&rcgen::PKCS_ED25519));
    let issuer = Issuer::start(&[public(&old, "old")]);
    let site = Site::new();
    let daemon = issuer.daemon(&site, "");
    *issuer.keys.lock().unwrap() = vec![public(&new, "new")];
    let token = issuer.token(&new, "new", json!({}));
    let first = ask(&daemon, "/v1/tools", &token);
    assert_eq!(
        (first.status, first.code().as_str(), first.header("retry-after")),
        (503, "issuer-unavailable", Some("1"))
    );
    wait_until("the new key", || ask(&daemon, "/v1/tools", &token).status == 200);
    assert_eq!(ask(&daemon, "/v1/tools", &issuer.token(&old, "old", json!({}))).status, 401, "the old one is gone");
    for n in 0..20 {
        assert_eq!(ask(&daemon, "/v1/tools", &issuer.token(&new, &format!("k{n}"), json!({}))).status, 401);
    }
    assert_eq!(issuer.web.asked("/keys").len(), 2);
}

#[test]
fn without_the_issuer_its_tokens_wait_and_others_do_not() {
    let own = key(&rcgen::PKCS_ED25519);
    let issuer = Issuer::start(&[]);
    let site = Site::new();
    let filed = token(&site, "reader", "read");
    site.configure(&issuer.configuration(&format!("  tokens_file: {}\n", site.path("tokens").display())));
    let daemon = site.start();
    wait_until("the failure", || daemon.log.text().contains("the issuer's keys cannot be had"));
    let token = issuer.token(&own, "a", json!({}));
    let refused = ask(&daemon, "/v1/tools", &token);
    assert_eq!((refused.status, refused.code().as_str()), (503, "issuer-unavailable"));
    assert!(refused.text().contains("its keys cannot be had"), "{}", refused.text());
    assert_eq!(ask(&daemon, "/v1/tools", &filed).status, 200);
    issuer.keys.lock().unwrap().push(public(&own, "a"));
    wait_until("the keys", || ask(&daemon, "/v1/tools", &token).status == 200);
}
