//! How a server at a URL lets us in, for all conversations with it: by tokens of its authorization server, by headers,
//! or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::{StatusCode, Uri};

use super::settings::ServerSettings;
use super::token::TokenSource;

/// What lets us in, and whether it is missing.
#[derive(Clone, Default)]
pub(super) struct WayIn {
    tokens: Option<Arc<TokenSource>>,
    needs_login: Arc<AtomicBool>,
}

impl WayIn {
    /// As the settings of a server have it.
    pub(super) fn new(settings: &ServerSettings) -> Self {
        let uri = settings.url.as_ref().and_then(|url| url.parse::<Uri>().ok());
        let source = uri.zip(settings.client_credentials.clone());
        let tokens = source.map(|(uri, credentials)| Arc::new(TokenSource::new(uri, credentials)));
        Self { tokens, needs_login: Arc::default() }
    }

    /// Where tokens for requests with these headers come from; nowhere if a caller's own credential is among them.
    pub(super) fn tokens(&self, headers: &HeaderMap) -> Option<&TokenSource> {
        self.tokens.as_deref().filter(|_| !headers.contains_key(AUTHORIZATION))
    }

    /// Does the server want a person who logs in?
    pub(super) fn needs_login(&self) -> bool {
        self.needs_login.load(Ordering::Relaxed)
    }

    /// The server is greeted anew.
    pub(super) fn begin(&self) {
        self.needs_login.store(false, Ordering::Relaxed);
    }

    /// What to do about the status of a greeting, which is noted.
    pub(super) fn greeted(&self, status: StatusCode, headers: &HeaderMap) -> &'static str {
        let is_bare = headers.is_empty() && self.tokens.is_none();
        self.needs_login.store(status == StatusCode::UNAUTHORIZED && is_bare, Ordering::Relaxed);
        self.hint(status, headers)
    }

    /// What to do about a status.
    pub(super) fn hint(&self, status: StatusCode, headers: &HeaderMap) -> &'static str {
        match status.as_u16() {
            401 if self.tokens(headers).is_some() => {
                ": it refuses the token that its authorization server has just given; its operator can say why"
            }
            403 if self.tokens(headers).is_some() => {
                ": its token does not allow that; `client_credentials.scopes` may have to name more"
            }
            401 if headers.is_empty() => {
                ": it wants a login, and no browser is opened here; set `client_credentials` that are issued for it, \
                 or an Authorization among its `headers`"
            }
            401 | 403 => ": `headers` of the configuration must let us in",
            300..=399 => {
                ": name the address that it leads to; redirects to another origin are not followed, nor are 301 to 303"
            }
            _ => "",
        }
    }
}
