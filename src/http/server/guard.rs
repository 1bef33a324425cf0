//! Who may pass: by the door they came through, the host they asked for, and their token.

use std::future::pending;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, FORWARDED, HOST, HeaderMap, HeaderValue, ORIGIN, VIA};
use hyper::{StatusCode, Version};

use tokio::time::timeout;

use super::cors::Cors;
use crate::access::{Grant, JwtRefusal, Refused, Scope, TokenKeeper, TokenRefusal};
use crate::http::handler::{Access, Revoked};
use crate::http::problem::Problem;
use crate::http::settings::Settings;
use crate::wire::problem::Code;

/// Between two looks whether the token of an open stream has ended.
const LOOK: Duration = Duration::from_secs(10);

/// The way a connection came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// A TCP address. On loopback a web page may be behind the request (DNS rebinding), so its host is checked.
    Tcp {
        /// Is the address a loopback one?
        loopback: bool,
    },
    /// The admin socket: whoever may open it may administer.
    Admin,
    /// The socket of MCP clients: whoever may open it may ask there, and nowhere else.
    Mcp,
}

impl Door {
    /// The door at a TCP address.
    pub fn at(address: SocketAddr) -> Self {
        Self::Tcp { loopback: address.ip().to_canonical().is_loopback() }
    }
}

/// Decides who may pass.
#[derive(Debug)]
pub(super) struct Guard {
    tokens: Arc<TokenKeeper>,
    allowed_hosts: Vec<String>,
    cors: Cors,
    /// Is the console served? On loopback addresses only if nobody says.
    console: Option<bool>,
    anonymous: Grant,
    administrator: Grant,
    client: Grant,
}

impl Guard {
    pub(super) fn new(tokens: Arc<TokenKeeper>, settings: &Settings) -> Self {
        Self {
            tokens,
            allowed_hosts: settings.allowed_hosts.iter().map(|host| host.to_lowercase()).collect(),
            cors: Cors::new(&settings.allowed_origins),
            console: settings.console,
            anonymous: Grant::anonymous(),
            administrator: Grant::administrator(),
            client: Grant::client(),
        }
    }

    /// Pages of other origins.
    pub(super) fn cors(&self) -> &Cors {
        &self.cors
    }

    /// Refuses a request that was addressed to another host, or that a page of another origin sent.
    pub(super) fn check_host(
        &self,
        door: Door,
        version: Version,
        authority: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        let Door::Tcp { loopback } = door else { return Ok(()) };
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next();
        if hosts.next().is_some() || host.is_none() && version == Version::HTTP_11 {
            return Err(Problem::bad_request(Code::BadHost, "exactly one Host header is needed").and_close());
        }
        if !loopback && self.allowed_hosts.is_empty() {
            return Ok(());
        }
        let host = match authority {
            Some(authority) => Some(authority),
            None => host.map(|host| host.to_str().unwrap_or_default()),
        };
        if let Some(host) = host
            && !self.is_allowed(host, loopback)
        {
            let detail = "this host is not served here; http.allowed_hosts names further ones";
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, Code::ForeignHost, detail).and_close());
        }
        match headers.get(ORIGIN) {
            Some(origin) if !self.is_allowed_origin(origin, loopback) => {
                let detail =
                    "requests from pages of this origin are refused; http.allowed_origins names those that may ask";
                Err(Problem::new(StatusCode::FORBIDDEN, Code::ForeignOrigin, detail).and_close())
            }
            _ => Ok(()),
        }
    }

    fn is_allowed_origin(&self, origin: &HeaderValue, loopback: bool) -> bool {
        if self.cors.allows(origin) {
            return true;
        }
        let origin = origin.to_str().unwrap_or_default();
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| self.is_allowed(host, loopback))
    }

    fn is_allowed(&self, host: &str, loopback: bool) -> bool {
        let name = without_port(host);
        let is_local = name.eq_ignore_ascii_case("localhost")
            || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        loopback && is_local
            || self
                .allowed_hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(host))
    }

    /// Refuses a request that its sender may not make.
    pub(super) fn check_access(&self, door: Door, access: Access, headers: &HeaderMap) -> Result<Grant, Problem> {
        match (door, access) {
            (Door::Admin, _) => return Ok(self.administrator.clone()),
            (Door::Mcp, Access::Mcp) => return Ok(self.client.clone()),
            (Door::Mcp, _) => {
                return Err(Problem::not_found(Code::UnknownPath, "this socket is for MCP clients only; ask at /mcp"));
            }
            (Door::Tcp { .. }, _) => {}
        }
        match access {
            Access::Open => Ok(self.anonymous.clone()),
            Access::Console => self.check_console(door, headers).map(|()| self.anonymous.clone()),
            Access::Socket => {
                Err(Problem::not_found(Code::UnknownPath, "this path is served on the admin socket only"))
            }
            Access::Scope(scope) => self.check_scope(door, scope, headers.get(AUTHORIZATION)),
            Access::Mcp => self.grant(door, headers.get(AUTHORIZATION)),
        }
    }

    /// Refuses the console where it is not served. Who comes through a proxy needs a token afterwards: without tokens
    /// the daemon trusts this machine, and a proxy brings in others.
    pub(super) fn check_console(&self, door: Door, headers: &HeaderMap) -> Result<(), Problem> {
        let is_loopback = door == (Door::Tcp { loopback: true });
        if !self.console.unwrap_or(is_loopback || door == Door::Admin) {
            let detail = "the console is not served here; `http.console: true` in the configuration serves it";
            return Err(Problem::not_found(Code::UnknownPath, detail));
        }
        let is_forwarded =
            headers.keys().any(|name| *name == FORWARDED || *name == VIA || name.as_str().starts_with("x-forwarded-"));
        if is_loopback && is_forwarded && !self.tokens.are_required() {
            let detail = "this request came through a proxy, and there are no tokens, so whoever can reach the proxy \
                          could do everything here; name a file of them as `auth.tokens_file`, then open the console \
                          again";
            return Err(Problem::new(StatusCode::FORBIDDEN, Code::TokensNeeded, detail));
        }
        Ok(())
    }

    /// The same for the commonest case, without a copy of the grant.
    pub(super) fn may(&self, door: Door, scope: Scope, headers: &HeaderMap) -> Result<(), Problem> {
        if door == Door::Admin || door == (Door::Tcp { loopback: true }) && !self.tokens.are_required() {
            return Ok(());
        }
        self.check_scope(door, scope, headers.get(AUTHORIZATION)).map(drop)
    }

    /// Ends when whoever sent this `Authorization` may not do that any more.
    pub(super) fn revoked(self: &Arc<Self>, door: Door, access: Access, authorization: Option<HeaderValue>) -> Revoked {
        let guard = Arc::clone(self);
        Box::pin(async move {
            if matches!(access, Access::Open | Access::Console | Access::Socket) || !matches!(door, Door::Tcp { .. }) {
                return pending().await;
            }
            let mut changes = guard.tokens.subscribe();
            while guard.still_may(door, access, authorization.as_ref()) {
                // A token of an issuer ends by itself.
                if let Ok(Err(_)) = timeout(LOOK, changes.changed()).await {
                    return pending().await;
                }
            }
        })
    }

    fn still_may(&self, door: Door, access: Access, authorization: Option<&HeaderValue>) -> bool {
        match access {
            Access::Scope(scope) => self.check_scope(door, scope, authorization).is_ok(),
            Access::Mcp => self.grant(door, authorization).is_ok(),
            Access::Open | Access::Console | Access::Socket => true,
        }
    }

    fn check_scope(&self, door: Door, scope: Scope, authorization: Option<&HeaderValue>) -> Result<Grant, Problem> {
        let grant = self.grant(door, authorization)?;
        if grant.allows(scope) {
            return Ok(grant);
        }
        if !self.tokens.are_required() {
            return Err(Problem::needs_token(scope));
        }
        Err(Problem::missing_scope(scope).with_challenge(&self.tokens.challenge(Refused::TooLittle(scope))))
    }

    /// What the sender may do, whatever it asks.
    fn grant(&self, door: Door, authorization: Option<&HeaderValue>) -> Result<Grant, Problem> {
        if !self.tokens.are_required() && door == (Door::Tcp { loopback: true }) {
            return Ok(self.anonymous.clone());
        }
        let Some(token) = bearer(authorization) else {
            let problem = Problem::unauthorized(Code::NoToken, "send a token as `Authorization: Bearer …`");
            return Err(problem.with_challenge(&self.tokens.challenge(Refused::NoToken)));
        };
        self.tokens.grant(token).map_err(|refusal| match &refusal {
            TokenRefusal::Jwt(JwtRefusal::NoKeys(_) | JwtRefusal::NewKey(_)) => {
                Problem::unavailable(Code::IssuerUnavailable, refusal.to_string())
            }
            TokenRefusal::Unknown | TokenRefusal::Jwt(_) => {
                let problem = Problem::unauthorized(Code::UnknownToken, refusal.to_string());
                problem.with_challenge(&self.tokens.challenge(Refused::WrongToken))
            }
        })
    }
}

fn bearer(authorization: Option<&HeaderValue>) -> Option<&str> {
    let (scheme, token) = authorization?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && (!name.contains(':') || name.ends_with(']')) =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(door: Door, allowed: &[&str], headers: &[(&'static str, &str)], expected: bool) {
        let settings = Settings {
            allowed_hosts: allowed.iter().map(|&host| host.to_owned()).collect(),
            allowed_origins: vec!["https://app.example".to_owned()],
            ..Settings::default()
        };
        let guard = Guard::new(Arc::default(), &settings);
        let map: HeaderMap = headers
            .iter()
            .map(|(name, value)| (hyper::header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect();
        let passed = guard.check_host(door, Version::HTTP_11, None, &map).is_ok();
        assert_eq!(passed, expected, "{door:?} {allowed:?} {headers:?}");
    }

    #[test]
    fn loopback_is_for_loopback_names() {
        let local = Door::Tcp { loopback: true };
        for host in ["localhost", "LOCALHOST:7311", "127.0.0.1:7311", "127.1.2.3", "[::1]:80", "[::1]"] {
            check(local, &[], &[("host", host)], true);
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "", "10.0.0.1"] {
            check(local, &[], &[("host", host)], false);
        }
        check(local, &[], &[], false);
        check(local, &["Almanac.example"], &[("host", "almanac.example:443")], true);
        check(local, &[], &[("host", "localhost"), ("origin", "http://localhost:3000")], true);
        check(local, &[], &[("host", "localhost"), ("origin", "https://evil.example")], false);
        check(local, &[], &[("host", "localhost"), ("origin", "https://app.example")], true);
        check(local, &[], &[("host", "localhost"), ("origin", "https://app.example:1")], false);
        check(local, &[], &[("host", "localhost"), ("origin", "null")], false);
    }

    #[test]
    fn the_console_is_for_this_machine_unless_somebody_says() {
        let check = |door: Door, console: Option<bool>, header: Option<&'static str>, expected: Option<StatusCode>| {
            let guard = Guard::new(Arc::default(), &Settings { console, ..Settings::default() });
            let name = header.map(hyper::header::HeaderName::from_static);
            let headers = HeaderMap::from_iter(name.map(|name| (name, HeaderValue::from_static("x"))));
            let refused = guard.check_console(door, &headers).err().map(|problem| problem.status());
            assert_eq!(refused, expected, "{door:?} {console:?} {header:?}");
        };
        let (local, remote) = (Door::Tcp { loopback: true }, Door::Tcp { loopback: false });
        let (absent, refused) = (Some(StatusCode::NOT_FOUND), Some(StatusCode::FORBIDDEN));
        check(local, None, None, None);
        check(local, Some(false), None, absent);
        check(remote, None, None, absent);
        check(remote, Some(true), None, None);
        check(Door::Admin, None, None, None);
        for header in ["forwarded", "via", "x-forwarded-for", "x-forwarded-host"] {
            check(local, None, Some(header), refused);
        }
        check(local, None, Some("x-request-id"), None);
    }

    #[test]
    fn elsewhere_only_configured_hosts_are_checked() {
        let remote = Door::Tcp { loopback: false };
        check(remote, &[], &[("host", "anything")], true);
        check(remote, &["a.example"], &[("host", "b.example")], false);
        check(remote, &["a.example"], &[("host", "localhost")], false);
        check(Door::Admin, &[], &[], true);
    }
}
