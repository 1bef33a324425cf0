//! What an authorization server says of itself: RFC 8414, and OpenID Connect Discovery 1.0, in the order of MCP's
//! authorization (2025-11-25, "Authorization Server Metadata Discovery").

use hyper::{StatusCode, Uri};
use serde::Deserialize;

use super::{FetchError, Fetcher};

/// What is known of an authorization server.
#[derive(Debug, Clone, Deserialize)]
pub struct IssuerMetadata {
    /// Its own name of itself.
    pub issuer: String,
    /// Where tokens are asked for.
    pub token_endpoint: Option<String>,
    /// Where its keys are.
    pub jwks_uri: Option<String>,
    /// How clients may show who they are at the token endpoint; `client_secret_basic` if it does not say.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// An authorization server does not say what it is.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// It cannot be asked.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It answers with an error.
    #[error("{url} answered {status}")]
    Status { url: String, status: StatusCode },
    /// It answers with something else.
    #[error("{url} is no metadata of an authorization server: {source}")]
    Malformed { url: String, source: serde_json::Error },
    /// It answers in the name of another.
    #[error("the metadata at {url} is of the issuer `{found}`, not of {wanted}")]
    Issuer { url: String, found: String, wanted: String },
    /// None of the places has any.
    #[error("{0} has no metadata of an authorization server at its well-known addresses")]
    Missing(String),
}

/// Asks an authorization server what it is.
pub async fn discover(fetcher: &Fetcher, issuer: &str) -> Result<IssuerMetadata, DiscoveryError> {
    for url in places(issuer).ok_or_else(|| FetchError::Url(issuer.chars().take(200).collect()))? {
        let answer = fetcher.get(&url).await?;
        match answer.status {
            StatusCode::OK => {}
            status if status.is_client_error() => continue,
            status => return Err(DiscoveryError::Status { url, status }),
        }
        let read: Result<IssuerMetadata, _> = serde_json::from_slice(&answer.body);
        let metadata = read.map_err(|source| DiscoveryError::Malformed { url: url.clone(), source })?;
        // Mix-ups of servers begin with metadata in another's name (RFC 8414, section 3.3).
        if metadata.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            let found = metadata.issuer.chars().filter(|c| !c.is_control()).take(200).collect();
            return Err(DiscoveryError::Issuer { url, found, wanted: issuer.to_owned() });
        }
        return Ok(metadata);
    }
    Err(DiscoveryError::Missing(issuer.to_owned()))
}

/// The well-known addresses of an issuer's metadata, in the order in which they are asked.
fn places(issuer: &str) -> Option<Vec<String>> {
    let uri: Uri = issuer.parse().ok()?;
    let origin = format!("{}://{}", uri.scheme_str()?, uri.authority()?);
    let path = uri.path().trim_end_matches('/');
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_in_the_order_of_the_protocol() {
        assert_eq!(
            places("https://a.example/t/1").unwrap(),
            [
                "https://a.example/.well-known/oauth-authorization-server/t/1",
                "https://a.example/.well-known/openid-configuration/t/1",
                "https://a.example/t/1/.well-known/openid-configuration",
            ]
        );
        for root in ["https://a.example:8443", "https://a.example:8443/"] {
            assert_eq!(
                places(root).unwrap(),
                [
                    "https://a.example:8443/.well-known/oauth-authorization-server",
                    "https://a.example:8443/.well-known/openid-configuration",
                ]
            );
        }
        assert!(places("a.example").is_none());
    }
}
