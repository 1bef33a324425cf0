//! Tokens of an authorization server: who it is, its keys, and what its tokens allow here.
//!
//! A request is never made to wait for the issuer. Its keys are fetched beside the requests: at the start, from time to
//! time, and when a token names a key that is not known, at most once a minute.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hyper::Uri;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{DEFAULT_TENANT, Grant, Scope};
use crate::oauth::jwt::{JwtFault, KeySet, KeySetError};
use crate::oauth::reach::is_loopback_host;
use crate::oauth::{DiscoveryError, FetchError, FetchReach, Fetcher, discovery};
use crate::strict::{Fields, FromNode};

/// By how much clocks may disagree, in seconds.
const LEEWAY: f64 = 60.0;

/// Between two looks at the issuer's keys.
const REFRESH: Duration = Duration::from_secs(15 * 60);

/// Between two looks because of a key that is not known.
const RARELY: Duration = Duration::from_secs(60);

/// Until the next try, after one that failed: the first, and at most.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// In front of a subject, where tokens go by their names.
const SUBJECT: &str = "sub:";

/// Longest subject and tenant, in characters.
const MAX_NAME: usize = 255;

/// Of the section `auth`, what is about tokens of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Default, FromNode)]
#[node(default, check = check)]
pub struct IssuerSettings {
    /// The authorization server whose tokens are let in, by its URL; none by default.
    pub issuer: Option<String>,
    /// What its tokens are for: the URL by which clients reach `/mcp` here, such as `https://almanac.example.com/mcp`.
    pub audience: Option<String>,
    /// What its scopes allow here; without any, `read`, `record`, `memory` and `call` are what they are called.
    pub scopes: BTreeMap<String, Vec<Scope>>,
    /// The claim that names the tenant; all are of the tenant `default` without.
    pub tenant_claim: Option<String>,
}

/// Why a token of the issuer is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwtRefusal {
    /// There are no keys to check it with, for now.
    #[error("tokens of {0} cannot be checked now: its keys cannot be had; try again")]
    NoKeys(String),
    /// Its key may be new.
    #[error("this token's key is not known yet, and the keys of {0} are being fetched anew; try again")]
    NewKey(String),
    /// It is none that can be believed.
    #[error("this token is not let in: {0}")]
    Jwt(#[from] JwtFault),
    /// What it claims is not what is needed.
    #[error("this token is not let in: {0}")]
    Claims(&'static str),
}

/// The keys cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The issuer does not say what it is.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// It does not say where its keys are.
    #[error("its metadata has no `jwks_uri`")]
    NoPlace,
    /// They cannot be asked for.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// They are not there.
    #[error("{url} answered {status}")]
    Status {
        /// Where they should be.
        url: String,
        /// What came instead.
        status: hyper::StatusCode,
    },
    /// They are none.
    #[error("{url} cannot be used: {source}")]
    Keys {
        /// Where they should be.
        url: String,
        /// What is wrong.
        source: KeySetError,
    },
}

/// An issuer with its keys.
pub struct Issuer {
    settings: IssuerSettings,
    /// For how long keys hold that could not be fetched again.
    max_stale: Duration,
    fetcher: Fetcher,
    keys: Mutex<Keys>,
}

#[derive(Default)]
struct Keys {
    set: Option<Arc<KeySet>>,
    /// When the set was fetched.
    since: Option<Instant>,
    /// When it was last asked for, and whether that failed how often in a row.
    tried: Option<Instant>,
    failures: u32,
    /// A token named a key that is not there, which is minded at these times only.
    is_wanted: bool,
    wanted: Option<Instant>,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Issuer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Issuer {
    /// The issuer of the settings, if they name one.
    pub fn new(settings: &IssuerSettings, max_stale: Duration) -> Option<Self> {
        settings.issuer.as_ref()?;
        let fetcher = Fetcher::new(FetchReach::Configured);
        Some(Self { settings: settings.clone(), max_stale, fetcher, keys: Mutex::default() })
    }

    /// Is it of these settings?
    pub fn is_of(&self, settings: &IssuerSettings, max_stale: Duration) -> bool {
        self.settings == *settings && self.max_stale == max_stale
    }

    /// By its URL.
    pub fn name(&self) -> &str {
        self.settings.issuer.as_deref().unwrap_or_default()
    }

    /// What tokens are for, and what clients know this server as.
    pub fn audience(&self) -> &str {
        self.settings.audience.as_deref().unwrap_or_default()
    }

    /// The scopes that say something here, by the issuer's names.
    pub fn scopes(&self) -> Vec<String> {
        if self.settings.scopes.is_empty() {
            return [Scope::Read, Scope::Record, Scope::Memory, Scope::Call].iter().map(ToString::to_string).collect();
        }
        self.settings.scopes.keys().cloned().collect()
    }

    /// Which of its scopes allows this, and the least beside it; nothing if none does.
    pub fn scope_for(&self, scope: Scope) -> Option<String> {
        let mapped = &self.settings.scopes;
        if mapped.is_empty() {
            // Who may administer is said by the configuration alone.
            return (scope != Scope::Admin).then(|| scope.to_string());
        }
        let does = |allowed: &[Scope]| allowed.contains(&scope) || allowed.contains(&Scope::Admin);
        let doing = mapped.iter().filter(|(_, allowed)| does(allowed));
        let least = doing.min_by_key(|(_, allowed)| (allowed.contains(&Scope::Admin), allowed.len()));
        least.map(|(name, _)| name.clone())
    }

    /// Where clients find out who issues tokens (RFC 9728, section 3.1).
    pub fn resource_metadata(&self) -> Option<String> {
        let audience: Uri = self.audience().parse().ok()?;
        let (scheme, authority) = (audience.scheme_str()?, audience.authority()?);
        let path = audience.path().trim_end_matches('/');
        Some(format!("{scheme}://{authority}/.well-known/oauth-protected-resource{path}"))
    }

    /// Whom a token lets in.
    pub fn grant(&self, token: &str) -> Result<Grant, JwtRefusal> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        self.grant_at(token, seconds, Instant::now())
    }

    fn grant_at(&self, token: &str, seconds: f64, now: Instant) -> Result<Grant, JwtRefusal> {
        let no_keys = || JwtRefusal::NoKeys(self.name().to_owned());
        // Signatures are checked without the lock.
        let set = self.keys.lock().fresh(now, self.max_stale).ok_or_else(no_keys)?;
        let claims = match set.verify(token) {
            Err(JwtFault::UnknownKey) if self.keys.lock().want(now) => {
                return Err(JwtRefusal::NewKey(self.name().to_owned()));
            }
            verified => verified?,
        };
        self.check(&claims, seconds)?;
        self.granted(&claims)
    }

    fn check(&self, claims: &Map<String, Value>, now: f64) -> Result<(), JwtRefusal> {
        let issuer = claims.get("iss").and_then(Value::as_str);
        if issuer != self.settings.issuer.as_deref() {
            return Err(JwtRefusal::Claims("another issuer made it, by its `iss`"));
        }
        let is_own = |audience: &Value| audience.as_str() == self.settings.audience.as_deref();
        let is_for_us = match claims.get("aud") {
            Some(Value::Array(audiences)) => audiences.iter().any(is_own),
            Some(audience) => is_own(audience),
            None => false,
        };
        if !is_for_us {
            return Err(JwtRefusal::Claims("it is for another audience, by its `aud`"));
        }
        let Some(end) = claims.get("exp").and_then(Value::as_f64) else {
            return Err(JwtRefusal::Claims("it has no `exp`, which says when it ends"));
        };
        if now >= end + LEEWAY {
            return Err(JwtRefusal::Claims("it has expired"));
        }
        match claims.get("nbf").map(Value::as_f64) {
            None => Ok(()),
            Some(Some(begin)) if now + LEEWAY >= begin => Ok(()),
            Some(_) => Err(JwtRefusal::Claims("it is not valid yet, by its `nbf`")),
        }
    }

    fn granted(&self, claims: &Map<String, Value>) -> Result<Grant, JwtRefusal> {
        let name = |claim: &str| {
            let text = claims.get(claim).and_then(Value::as_str)?;
            let fits = (1..=MAX_NAME).contains(&text.chars().count()) && !text.contains(char::is_control);
            fits.then_some(text)
        };
        let subject = name("sub").ok_or(JwtRefusal::Claims("its `sub` is no name of 1 to 255 characters"))?;
        let tenant = match &self.settings.tenant_claim {
            None => DEFAULT_TENANT,
            Some(claim) => name(claim).ok_or(JwtRefusal::Claims("the claim that names the tenant is no name"))?,
        };
        // Nobody that the issuer names is taken for a token of the file.
        Ok(Grant::new(&format!("{SUBJECT}{subject}"), tenant, self.allowed(claims)))
    }

    /// What its scopes allow: those of `scope` (RFC 9068), else of `scp`, as a text or as a list.
    fn allowed(&self, claims: &Map<String, Value>) -> Vec<Scope> {
        let given: Vec<&str> = match claims.get("scope").or_else(|| claims.get("scp")) {
            Some(Value::String(text)) => text.split(' ').collect(),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut allowed = Vec::new();
        for scope in [Scope::Read, Scope::Record, Scope::Memory, Scope::Call, Scope::Admin] {
            let is_given = |name: &&str| match self.settings.scopes.get(*name) {
                Some(scopes) => scopes.contains(&scope),
                // Who may administer is said here, not elsewhere.
                None => self.settings.scopes.is_empty() && scope != Scope::Admin && scope.to_string() == **name,
            };
            if given.iter().any(is_given) {
                allowed.push(scope);
            }
        }
        allowed
    }

    /// Is it time to fetch the keys?
    pub fn is_due(&self, now: Instant) -> bool {
        let keys = self.keys.lock();
        let Some(tried) = keys.tried else { return true };
        let pause = match keys.failures {
            0 if keys.is_wanted => Duration::ZERO,
            0 => REFRESH,
            failures => (RETRY[0] * 2_u32.saturating_pow(failures.min(10) - 1)).min(RETRY[1]),
        };
        now.duration_since(tried) >= pause
    }

    /// Fetches the keys.
    pub async fn refresh(&self) -> Result<usize, KeysError> {
        self.keys.lock().tried = Some(Instant::now());
        let fetched = self.fetch().await;
        let mut keys = self.keys.lock();
        keys.is_wanted = false;
        let now = Instant::now();
        keys.tried = Some(now);
        match fetched {
            Ok(set) => {
                let count = set.len();
                (keys.set, keys.since, keys.failures) = (Some(Arc::new(set)), Some(now), 0);
                Ok(count)
            }
            Err(error) => {
                keys.failures += 1;
                Err(error)
            }
        }
    }

    async fn fetch(&self) -> Result<KeySet, KeysError> {
        let metadata = discovery::discover(&self.fetcher, self.name()).await?;
        let url = metadata.jwks_uri.ok_or(KeysError::NoPlace)?;
        let answer = self.fetcher.get(&url).await?;
        if !answer.status.is_success() {
            return Err(KeysError::Status { url, status: answer.status });
        }
        KeySet::read(&answer.body).map_err(|source| KeysError::Keys { url, source })
    }
}

impl Keys {
    /// The keys, unless they are too old.
    fn fresh(&self, now: Instant, max_stale: Duration) -> Option<Arc<KeySet>> {
        let is_fresh = self.since.is_some_and(|since| now.duration_since(since) < REFRESH + max_stale);
        self.set.clone().filter(|_| is_fresh)
    }

    /// Has the issuer asked because of a key that is not there; not if that was done a moment ago.
    fn want(&mut self, now: Instant) -> bool {
        let is_now = self.wanted.is_none_or(|wanted| now.duration_since(wanted) >= RARELY);
        if is_now {
            (self.is_wanted, self.wanted) = (true, Some(now));
        }
        is_now || self.is_wanted
    }
}

fn check(settings: &IssuerSettings, fields: &mut Fields<'_>) {
    let Some(issuer) = &settings.issuer else {
        for (is_given, key) in [
            (settings.audience.is_some(), "audience"),
            (!settings.scopes.is_empty(), "scopes"),
            (settings.tenant_claim.is_some(), "tenant_claim"),
        ] {
            if is_given {
                fields.bad_value(key, format!("`{key}` is about tokens of an `issuer`, and none is named"));
            }
        }
        return;
    };
    if !is_address(issuer) {
        fields.bad_value(
            "issuer",
            format!("`{issuer}` is no URL such as https://login.example.com; http is for this machine only"),
        );
    }
    for name in settings.scopes.keys().filter(|name| !is_scope(name)) {
        fields.bad_value(
            "scopes",
            format!("`{name}` is no scope: issuers name them in ASCII, without spaces, quotes and backslashes"),
        );
    }
    let audience = settings.audience.as_deref().unwrap_or_default();
    let path = audience.parse::<Uri>().map(|uri| uri.path().trim_end_matches('/').to_owned());
    if !is_address(audience) || !path.is_ok_and(|path| path.is_empty() || path == "/mcp") {
        let wanted = "the URL by which clients reach /mcp here, such as https://almanac.example.com/mcp";
        fields.bad_value(
            if settings.audience.is_some() { "audience" } else { "issuer" },
            format!("`audience` has to be {wanted}"),
        );
    }
}

/// A `scope-token` (RFC 6749, section 3.3).
fn is_scope(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// A URL whose host is known: over https, or on this machine.
fn is_address(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| {
        let is_plain = uri.scheme_str() == Some("http") && is_loopback_host(&uri);
        (is_plain || uri.scheme_str() == Some("https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.query().is_none()
            && !text.contains(['#', '@', '"'])
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::strict::load;
    use crate::strict::read::Limits;

    fn check_settings(yaml: &str, expected: &str) {
        let read = load::parse::<IssuerSettings>(Path::new("x.yaml"), yaml.as_bytes(), &Limits::of_bytes(1 << 16));
        let said = match read {
            Ok(settings) => {
                format!("{:?}", Issuer::new(&settings, Duration::ZERO).map(|issuer| issuer.resource_metadata()))
            }
            Err(faults) => faults.iter().map(|fault| fault.message.clone()).collect::<Vec<_>>().join("\n"),
        };
        assert!(said.contains(expected), "{yaml}\n{said}");
    }

    #[test]
    fn settings_are_held_to_what_can_work() {
        let with =
            |more: &str| format!("{{issuer: 'https://as.example', audience: 'https://a.example:8443/mcp'{more}}}");
        check_settings(&with(""), "https://a.example:8443/.well-known/oauth-protected-resource/mcp");
        check_settings(
            "{issuer: 'https://as', audience: 'https://a.example'}",
            "/.well-known/oauth-protected-resource\"",
        );
        check_settings("{issuer: 'http://127.0.0.1:1', audience: 'http://localhost:7311/mcp'}", "resource/mcp");
        check_settings("max: 1", "max");
        check_settings("{issuer: 'https://as'}", "`audience` has to be the URL");
        check_settings("{issuer: 'https://as', audience: almanac}", "`audience` has to be the URL");
        check_settings("{issuer: 'https://as', audience: 'https://a/other'}", "`audience` has to be the URL");
        check_settings("{issuer: 'http://as.example', audience: 'https://a/mcp'}", "http is for this machine only");
        check_settings("{issuer: as, audience: 'https://a/mcp'}", "is no URL");
        check_settings("audience: 'https://a/mcp'", "and none is named");
        check_settings("scopes: {x: [read]}", "and none is named");
        check_settings("tenant_claim: org", "and none is named");
        check_settings(&with(", scopes: {x: [reed]}"), "reed");
        check_settings(&with(", scopes: {'tools:use/all': [read]}"), "resource/mcp");
        for name in ["a b", "a\"", "ü", ""] {
            check_settings(&with(&format!(", scopes: {{'{name}': [read]}}")), "is no scope");
        }
    }

    #[test]
    fn whom_the_issuer_names_is_nobody_of_the_file() {
        let settings = IssuerSettings {
            issuer: Some("https://as".to_owned()),
            tenant_claim: Some("org".to_owned()),
            ..IssuerSettings::default()
        };
        let issuer = Issuer::new(&settings, Duration::ZERO).unwrap();
        let claims = serde_json::json!({"sub": "ci", "org": "acme", "scope": "read admin other"});
        let grant = issuer.granted(claims.as_object().unwrap()).unwrap();
        assert_eq!((&*grant.name, &*grant.tenant), ("sub:ci", "acme"));
        let allowed = [Scope::Read, Scope::Record, Scope::Admin].map(|scope| grant.allows(scope));
        assert_eq!(allowed, [true, false, false]);
    }

    #[test]
    fn an_issuer_that_is_away_is_asked_ever_more_seldom() {
        let settings = IssuerSettings { issuer: Some("https://as".to_owned()), ..IssuerSettings::default() };
        let issuer = Issuer::new(&settings, Duration::from_secs(60)).unwrap();
        let now = Instant::now();
        assert!(issuer.is_due(now));
        let check = |failures: u32, is_wanted: bool, seconds: u64| {
            let mut keys = issuer.keys.lock();
            (keys.tried, keys.failures, keys.is_wanted) = (Some(now), failures, is_wanted);
            drop(keys);
            let is_due_after = |milliseconds| issuer.is_due(now + Duration::from_millis(milliseconds));
            assert!(!is_due_after(seconds * 1000 - 1) && is_due_after(seconds * 1000), "{failures}");
        };
        check(1, false, 1);
        check(3, true, 4);
        check(100, false, 60);
        check(0, false, 900);
        issuer.keys.lock().is_wanted = true;
        assert!(issuer.is_due(now), "a token names a new key");
    }

    #[test]
    fn keys_that_could_not_be_fetched_again_hold_for_a_while() {
        let settings = IssuerSettings { issuer: Some("https://as".to_owned()), ..IssuerSettings::default() };
        let issuer = Issuer::new(&settings, Duration::from_secs(60)).unwrap();
        let now = Instant::now();
        (issuer.keys.lock().set, issuer.keys.lock().since) = (Some(Arc::default()), Some(now));
        let refused = |now| issuer.grant_at("a.b.c", 0.0, now).unwrap_err();
        assert_eq!(refused(now + REFRESH), JwtRefusal::Jwt(JwtFault::Malformed));
        assert!(matches!(refused(now + REFRESH + Duration::from_secs(60)), JwtRefusal::NoKeys(_)));
    }
}
