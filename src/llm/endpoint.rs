//! Where a model is asked: an address that is safe to send messages and a key to.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Uri;
use hyper::http::uri::{Authority, Scheme};

use crate::strict::FromNode;

/// Where chat completions are asked for, below the base address.
const PATH: &str = "/chat/completions";

/// The address of chat completions.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(try_from = "String")]
pub struct Endpoint(Uri);

/// Not an address that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not even a URL.
    #[error("not a URL such as https://models.example.com/v1")]
    Malformed,
    /// Messages and the key would be readable on the way.
    #[error("http is for loopback addresses only: messages and the key would travel readable; use https")]
    Plain,
    /// A name and password in the address.
    #[error("a key does not belong here; name its environment variable in `api_key_env`")]
    Credentials,
    /// A query or a fragment.
    #[error("only a scheme, a host, a port and a path are allowed")]
    Query,
}

impl Endpoint {
    /// The address as it is requested.
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    /// Does the way there need TLS?
    pub fn is_tls(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl TryFrom<String> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: String) -> Result<Self, EndpointError> {
        text.parse()
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if text.contains('#') {
            return Err(EndpointError::Query);
        }
        let uri: Uri = text.parse().map_err(|_| EndpointError::Malformed)?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(EndpointError::Malformed);
        };
        if authority.as_str().contains('@') {
            return Err(EndpointError::Credentials);
        }
        if uri.query().is_some() {
            return Err(EndpointError::Query);
        }
        let is_http = *scheme == Scheme::HTTP;
        if authority.host().is_empty() || !is_http && *scheme != Scheme::HTTPS {
            return Err(EndpointError::Malformed);
        }
        if is_http && !is_loopback(authority) {
            return Err(EndpointError::Plain);
        }
        let base = uri.path().trim_end_matches('/');
        let base = base.strip_suffix(PATH).unwrap_or(base);
        Uri::builder()
            .scheme(scheme.clone())
            .authority(authority.clone())
            .path_and_query(format!("{base}{PATH}"))
            .build()
            .map(Self)
            .map_err(|_| EndpointError::Malformed)
    }
}

fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<&str, EndpointError>) {
        let got = text.parse::<Endpoint>().map(|endpoint| endpoint.to_string());
        assert_eq!(got, expected.map(str::to_owned), "{text}");
    }

    #[test]
    fn a_base_address_is_completed() {
        let full = "https://models.example.com/v1/chat/completions";
        check("https://models.example.com/v1", Ok(full));
        check("https://models.example.com/v1/", Ok(full));
        check(full, Ok(full));
        check("https://models.example.com", Ok("https://models.example.com/chat/completions"));
        check("http://localhost:11434/v1", Ok("http://localhost:11434/v1/chat/completions"));
        check("http://127.8.0.1:80", Ok("http://127.8.0.1:80/chat/completions"));
        check("http://[::1]:80/v1", Ok("http://[::1]:80/v1/chat/completions"));
    }

    #[test]
    fn what_would_leak_is_refused() {
        use EndpointError::{Credentials, Malformed, Plain, Query};
        for plain in ["http://models.example.com/v1", "http://10.0.0.7", "http://localhost.example.com", "http://[::2]"]
        {
            check(plain, Err(Plain));
        }
        check("https://user:key@models.example.com", Err(Credentials));
        check("http://localhost@models.example.com", Err(Credentials));
        check("https://models.example.com/v1?key=secret", Err(Query));
        check("https://models.example.com/v1#x", Err(Query));
        for malformed in ["", "models.example.com", "/v1", "ftp://localhost", "https://", "https://:80", "https://a b"]
        {
            check(malformed, Err(Malformed));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered_and_stays_what_it_became(text in "(https?://)?[!-~]{0,40}") {
            if let Ok(endpoint) = text.parse::<Endpoint>() {
                prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
            }
        }
    }
}
