//! With what a server's authorization server is asked for tokens: the daemon's own credentials there.

use crate::strict::{Fields, FromNode};

/// Credentials of a client of its own right (RFC 6749, section 4.4). It has one of `client_secret` and `private_key`.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(check = check)]
pub struct ClientCredentials {
    /// What the authorization server calls this client.
    pub client_id: String,
    /// Its secret, as `${env:NAME}` or `${credential:NAME}`.
    pub client_secret: Option<String>,
    /// Its private key in PEM (PKCS#8; P-256, RSA or Ed25519), by such a reference: it signs, and is never sent.
    pub private_key: Option<String>,
    /// What is asked for; what the server says it wants by default.
    pub scopes: Option<Vec<String>>,
    /// The only authorization server that the credentials are used at; whichever the server names by default.
    pub issuer: Option<String>,
}

impl ClientCredentials {
    /// The texts that may name secrets, each with its key.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let secret = self.client_secret.as_deref().map(|text| ("client_secret", text));
        secret.into_iter().chain(self.private_key.as_deref().map(|text| ("private_key", text)))
    }
}

fn check(credentials: &ClientCredentials, fields: &mut Fields<'_>) {
    if credentials.client_id.is_empty() {
        fields.bad_value("client_id", "a client has an id");
    }
    if credentials.client_secret.is_some() == credentials.private_key.is_some() {
        fields.bad_value("client_id", "credentials have either a `client_secret` or a `private_key`");
    }
    // RFC 6749, section 3.3.
    let is_scope = |scope: &String| {
        !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    };
    if let Some(wrong) = credentials.scopes.iter().flatten().find(|scope| !is_scope(scope)) {
        fields.bad_value("scopes", format!("`{wrong}` is no scope: visible characters without blanks"));
    }
    if let Some(issuer) = &credentials.issuer {
        let is_url = issuer.parse::<hyper::Uri>().is_ok_and(|uri| uri.host().is_some() && uri.scheme().is_some());
        if !is_url {
            fields.bad_value("issuer", format!("`{issuer}` is no URL, such as https://login.example.com"));
        }
    }
}
