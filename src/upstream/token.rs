//! Tokens for a server, from the authorization server that it names, by the daemon's own credentials.
//!
//! A token is fetched when the server first refuses, by one call for all that wait, and again shortly before it ends.
//! It is in memory only, and in no text that is shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{HeaderMap, HeaderValue, InvalidHeaderValue};
use hyper::{StatusCode, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::challenge::Challenge;
use super::client_credentials::ClientCredentials;
use super::secret::{Mask, SecretError};
use crate::oauth::signing::{SigningError, SigningKey};
use crate::oauth::{DiscoveryError, FetchError, FetchReach, Fetcher, IssuerMetadata, discovery};

/// So long before its end a token is not used any more; a quarter of its life if that is shorter.
const MARGIN: Duration = Duration::from_secs(30);

/// How long an assertion is good, in seconds.
const ASSERTION_SECONDS: u64 = 60;

/// What stays as it is in a form.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*');

/// The errors that a token endpoint may name (RFC 6749, section 5.2; RFC 8707). What else it says is not shown: it
/// knows our secret.
const REFUSALS: [&str; 7] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
];

/// There is no token.
#[derive(Debug, Clone, thiserror::Error)]
#[error("no token for it can be had: {0}")]
pub(super) struct NoToken(Arc<TokenError>);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    #[error("its metadata as a protected resource cannot be read: {0}")]
    Resource(#[source] FetchError),
    #[error("its metadata as a protected resource cannot be read: {url} answered {status}")]
    ResourceStatus { url: String, status: StatusCode },
    #[error("{url} is no metadata of a protected resource: {source}")]
    ResourceMalformed { url: String, source: serde_json::Error },
    #[error("the metadata at {url} is of another resource, `{found}`")]
    OtherResource { url: String, found: String },
    #[error("it does not say who issues tokens for it: it has no metadata as a protected resource")]
    NoResource,
    #[error("it names no authorization server")]
    NoIssuer,
    #[error("it wants tokens of {found}, and `client_credentials` are for {wanted} only")]
    OtherIssuer { found: String, wanted: String },
    #[error("its authorization server cannot be used: {0}")]
    Discovery(#[from] DiscoveryError),
    #[error("the authorization server {0} has no token endpoint")]
    NoEndpoint(String),
    #[error("the authorization server {issuer} takes {taken} only, which `client_credentials` here are not for")]
    Method { issuer: String, taken: String },
    #[error("the token endpoint cannot be used: {0}")]
    Endpoint(#[source] FetchError),
    #[error("the authorization server refused `client_credentials` with {status}{why}")]
    Refused { status: StatusCode, why: String },
    #[error("the token endpoint {0} answers with what is no token")]
    NoAnswer(String),
    #[error("the token endpoint {url} gives a token of another type than Bearer")]
    Type { url: String },
    #[error("its token cannot be sent")]
    Token(#[from] InvalidHeaderValue),
    #[error("`client_credentials` cannot be used: {0}")]
    Secret(#[from] SecretError),
    #[error("`client_credentials` cannot be used: {0}")]
    Signing(#[from] SigningError),
    #[error("`client_credentials` cannot be used: the system has no randomness")]
    Random,
}

/// A token as it is sent.
#[derive(Debug, Clone)]
pub(super) struct BearerToken {
    /// `Bearer …`; marked as sensitive.
    pub(super) header: HeaderValue,
    /// Not used from then on; until it is refused if nobody said.
    until: Option<Instant>,
    /// Which one it is.
    number: u64,
}

/// What was found out when the server first refused.
struct Found {
    issuer: IssuerMetadata,
    endpoint: String,
    resource: String,
    scope: Option<String>,
}

#[derive(Default)]
struct Held {
    found: Option<Found>,
    token: Option<BearerToken>,
    /// Why the last try came to nothing.
    failure: Option<NoToken>,
}

/// Where the tokens for one server come from.
pub(super) struct TokenSource {
    server: Uri,
    credentials: ClientCredentials,
    fetcher: Fetcher,
    held: tokio::sync::Mutex<Held>,
    /// Tries so far.
    tries: AtomicU64,
}

impl TokenSource {
    pub(super) fn new(server: Uri, credentials: ClientCredentials) -> Self {
        let fetcher = Fetcher::new(FetchReach::of_server(&server));
        Self { server, credentials, fetcher, held: tokio::sync::Mutex::default(), tries: AtomicU64::new(0) }
    }

    /// The token that is sent now; none before the server first refused. One that ends soon is replaced.
    pub(super) async fn current(&self) -> Result<Option<BearerToken>, NoToken> {
        let seen = self.tries.load(Ordering::Acquire);
        let mut held = self.held.lock().await;
        self.failed_since(seen, &held)?;
        let Some(token) = held.token.clone() else { return Ok(None) };
        if token.until.is_none_or(|until| Instant::now() < until) {
            return Ok(Some(token));
        }
        self.renew(&mut held).await.map(Some)
    }

    /// Another token than the one that was refused with this answer.
    pub(super) async fn after_refusal(
        &self,
        refused: Option<&BearerToken>,
        headers: &HeaderMap,
    ) -> Result<BearerToken, NoToken> {
        let seen = self.tries.load(Ordering::Acquire);
        let mut held = self.held.lock().await;
        if let Some(token) = held.token.clone().filter(|token| refused.is_none_or(|old| old.number != token.number)) {
            // Somebody else was faster.
            return Ok(token);
        }
        self.failed_since(seen, &held)?;
        match self.find(Challenge::of(headers)).await {
            Ok(found) => held.found = Some(found),
            Err(error) => return Err(self.failed(&mut held, error)),
        }
        self.renew(&mut held).await
    }

    /// Who waited while somebody else tried in vain does not try again.
    fn failed_since(&self, seen: u64, held: &Held) -> Result<(), NoToken> {
        let is_tried = self.tries.load(Ordering::Acquire) != seen;
        held.failure.clone().filter(|_| is_tried).map_or(Ok(()), Err)
    }

    async fn renew(&self, held: &mut Held) -> Result<BearerToken, NoToken> {
        let number = self.tries.load(Ordering::Acquire) + 1;
        let fetched = match &held.found {
            Some(found) => self.fetch(found, number).await,
            None => Err(TokenError::NoResource),
        };
        match fetched {
            Ok(token) => {
                self.tries.fetch_add(1, Ordering::Release);
                (held.token, held.failure) = (Some(token.clone()), None);
                Ok(token)
            }
            Err(error) => Err(self.failed(held, error)),
        }
    }

    fn failed(&self, held: &mut Held, error: TokenError) -> NoToken {
        let failure = NoToken(Arc::new(error));
        self.tries.fetch_add(1, Ordering::Release);
        // The next request is sent without a token, so that the server says anew who issues them.
        *held = Held { failure: Some(failure.clone()), ..Held::default() };
        failure
    }

    /// Finds out who issues tokens for the server.
    async fn find(&self, challenge: Challenge) -> Result<Found, TokenError> {
        let resource = challenge.resource(&self.fetcher, &self.server).await?;
        let wanted = self.credentials.issuer.as_deref();
        let is_wanted = |issuer: &&String| wanted.is_none_or(|wanted| is_same(issuer, wanted));
        let Some(first) = resource.authorization_servers.first() else { return Err(TokenError::NoIssuer) };
        let issuer = resource.authorization_servers.iter().find(is_wanted).ok_or_else(|| TokenError::OtherIssuer {
            found: first.chars().filter(|c| !c.is_control()).take(200).collect(),
            wanted: wanted.unwrap_or_default().to_owned(),
        })?;
        let issuer = discovery::discover(&self.fetcher, issuer).await?;
        let endpoint = issuer.token_endpoint.clone().ok_or_else(|| TokenError::NoEndpoint(issuer.issuer.clone()))?;
        let scope = match &self.credentials.scopes {
            Some(scopes) => Some(scopes.join(" ")),
            None => challenge.scope,
        };
        Ok(Found { issuer, endpoint, resource: resource.resource, scope: scope.filter(|scope| !scope.is_empty()) })
    }

    async fn fetch(&self, found: &Found, number: u64) -> Result<BearerToken, TokenError> {
        let (form, authorization) = self.request(found)?;
        let answer = self.fetcher.post_form(&found.endpoint, form, authorization).await;
        let answer = answer.map_err(TokenError::Endpoint)?;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if !answer.status.is_success() {
            let named = body["error"].as_str().and_then(|error| REFUSALS.into_iter().find(|known| *known == error));
            let why = named.map(|error| format!(": {error}")).unwrap_or_default();
            return Err(TokenError::Refused { status: answer.status, why });
        }
        let text = body["access_token"].as_str().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| TokenError::NoAnswer(found.endpoint.clone()))?;
        if !body["token_type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            return Err(TokenError::Type { url: found.endpoint.clone() });
        }
        let mut header = HeaderValue::try_from(format!("Bearer {text}"))?;
        header.set_sensitive(true);
        Ok(BearerToken { header, until: until(&body["expires_in"]), number })
    }

    /// The form that asks for a token, and the header that says who asks.
    fn request(&self, found: &Found) -> Result<(String, Option<HeaderValue>), TokenError> {
        let mut fields = vec![("grant_type", "client_credentials".to_owned()), ("resource", found.resource.clone())];
        fields.extend(found.scope.clone().map(|scope| ("scope", scope)));
        let mut authorization = None;
        let (id, mut mask) = (&self.credentials.client_id, Mask::default());
        if let Some(key) = &self.credentials.private_key {
            found.takes(&["private_key_jwt"])?;
            let assertion = assertion(&SigningKey::read(&mask.resolve(key)?)?, id, &found.issuer.issuer)?;
            let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
            fields.extend([("client_assertion_type", kind.to_owned()), ("client_assertion", assertion)]);
        } else if let Some(secret) = &self.credentials.client_secret {
            let secret = mask.resolve(secret)?;
            match found.takes(&["client_secret_basic", "client_secret_post"])? {
                "client_secret_post" => fields.extend([("client_id", id.clone()), ("client_secret", secret)]),
                _ => authorization = Some(basic(id, &secret)?),
            }
        }
        let form: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        Ok((form.join("&"), authorization))
    }
}

impl Found {
    /// The first of these ways to show who asks that the authorization server takes.
    fn takes<'a>(&self, ways: &[&'a str]) -> Result<&'a str, TokenError> {
        let Some(taken) = &self.issuer.token_endpoint_auth_methods_supported else { return Ok(ways[0]) };
        let found = ways.iter().find(|way| taken.iter().any(|taken| taken == *way));
        found.copied().ok_or_else(|| {
            let taken: String = taken.join(", ").chars().filter(|c| !c.is_control()).take(200).collect();
            TokenError::Method { issuer: self.issuer.issuer.clone(), taken }
        })
    }
}

fn is_same(issuer: &str, other: &str) -> bool {
    issuer.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Until when a token is used that is good for so many seconds from now.
fn until(expires_in: &Value) -> Option<Instant> {
    let seconds = expires_in.as_f64().or_else(|| expires_in.as_str()?.parse().ok())?;
    // A day at most: what an authorization server says of later is not to be counted on.
    let life = Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0));
    Some(Instant::now() + life.saturating_sub(MARGIN.min(life / 4)))
}

/// `Basic …` as RFC 6749, section 2.3.1 has it: both parts are encoded as in a form.
fn basic(id: &str, secret: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    let mut header = HeaderValue::try_from(format!("Basic {pair}"))?;
    header.set_sensitive(true);
    Ok(header)
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string()
}

/// What says who asks, signed (RFC 7523, section 3).
fn assertion(key: &SigningKey, id: &str, audience: &str) -> Result<String, TokenError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| TokenError::Random)?;
    let claims = json!({
        "iss": id, "sub": id, "aud": audience, "iat": now, "exp": now + ASSERTION_SECONDS, "jti": hex::encode(random),
    });
    Ok(key.sign(&claims)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_left_shortly_before_its_end() {
        let check = |expires_in: Value, seconds: Option<u64>| {
            let left = until(&expires_in).map(|until| until.saturating_duration_since(Instant::now()).as_secs_f64());
            assert_eq!(left.map(|left| left.round() as u64), seconds, "{expires_in}");
        };
        check(json!(3600), Some(3570));
        check(json!("3600"), Some(3570));
        check(json!(40), Some(30));
        check(json!(0), Some(0));
        check(json!(-5), Some(0));
        check(json!(1e300), Some(86_370));
        check(json!(null), None);
        check(json!("soon"), None);
    }

    #[test]
    fn ids_and_secrets_are_encoded_as_in_a_form() {
        let header = basic("a:b", "c d%").unwrap();
        let pair = BASE64_STANDARD.decode(header.to_str().unwrap().trim_start_matches("Basic ")).unwrap();
        assert_eq!(String::from_utf8(pair).unwrap(), "a%3Ab:c%20d%25");
        assert!(header.is_sensitive());
    }
}
