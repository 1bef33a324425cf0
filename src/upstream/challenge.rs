//! What a server that refuses says of how to be let in: its challenge (RFC 9110, section 11.6.1), and the metadata of
//! a protected resource (RFC 9728).

use hyper::header::{HeaderMap, WWW_AUTHENTICATE};
use hyper::{StatusCode, Uri};
use serde::Deserialize;

use super::token::TokenError;
use crate::oauth::Fetcher;

/// What a challenge says that matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where the metadata of the resource is.
    pub(super) resource_metadata: Option<String>,
    /// What a token has to allow.
    pub(super) scope: Option<String>,
}

/// What a server says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct ResourceMetadata {
    /// Its name for itself.
    pub(super) resource: String,
    /// Who issues tokens for it.
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
}

impl Challenge {
    /// The `Bearer` challenge of an answer; an empty one if it has none.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for value in headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()) {
            for (name, value) in parameters(value) {
                match name.as_str() {
                    "resource_metadata" => found.resource_metadata = Some(value),
                    "scope" => found.scope = Some(value),
                    _ => {}
                }
            }
        }
        found
    }

    /// Asks for the metadata of the server at `server`: where the challenge says, else at its well-known addresses.
    pub(super) async fn resource(&self, fetcher: &Fetcher, server: &Uri) -> Result<ResourceMetadata, TokenError> {
        let places = match &self.resource_metadata {
            Some(place) => vec![place.clone()],
            None => well_known(server),
        };
        for url in places {
            let answer = fetcher.get(&url).await.map_err(TokenError::Resource)?;
            match answer.status {
                StatusCode::OK => {}
                status if status.is_client_error() && self.resource_metadata.is_none() => continue,
                status => return Err(TokenError::ResourceStatus { url, status }),
            }
            let read = serde_json::from_slice::<ResourceMetadata>(&answer.body);
            let metadata = read.map_err(|source| TokenError::ResourceMalformed { url: url.clone(), source })?;
            if !covers(&metadata.resource, server) {
                let found = metadata.resource.chars().filter(|c| !c.is_control()).take(200).collect();
                return Err(TokenError::OtherResource { url, found });
            }
            return Ok(metadata);
        }
        Err(TokenError::NoResource)
    }
}

/// The parameters of all challenges in a header's value, with their names in lower case.
fn parameters(value: &str) -> Vec<(String, String)> {
    let (mut found, mut rest) = (Vec::new(), value);
    while let Some(equals) = rest.find('=') {
        let name = rest[..equals].trim_end();
        let start = name.rfind([' ', ',', '\t']).map_or(0, |at| at + 1);
        let name = name[start..].to_ascii_lowercase();
        let (text, after) = text_of(rest[equals + 1..].trim_start());
        found.push((name, text));
        rest = after;
    }
    found
}

/// A token or a quoted string, and what follows it.
fn text_of(value: &str) -> (String, &str) {
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find([',', ' ', '\t']).unwrap_or(value.len());
        return (value[..end].to_owned(), &value[end..]);
    };
    let (mut text, mut is_escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            '"' if !is_escaped => return (text, &quoted[at + 1..]),
            _ => {
                text.push(c);
                is_escaped = false;
            }
        }
    }
    (text, "")
}

/// Where the metadata of a resource is by itself (RFC 9728, section 3.1): for its path first.
fn well_known(server: &Uri) -> Vec<String> {
    let origin = format!(
        "{}://{}",
        server.scheme_str().unwrap_or("https"),
        server.authority().map_or("", |whole| whole.as_str())
    );
    let place = format!("{origin}/.well-known/oauth-protected-resource");
    match server.path().trim_end_matches('/') {
        "" => vec![place],
        path => vec![format!("{place}{path}"), place],
    }
}

/// Is the server the resource, or below it? Tokens for another one are not for this.
fn covers(resource: &str, server: &Uri) -> bool {
    let Ok(resource) = resource.parse::<Uri>() else { return false };
    let port = |uri: &Uri| uri.port_u16().or(if uri.scheme_str() == Some("https") { Some(443) } else { Some(80) });
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    let (base, path) = (resource.path().trim_end_matches('/'), server.path());
    resource.scheme() == server.scheme()
        && host(&resource) == host(server)
        && port(&resource) == port(server)
        && path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_whatever_their_form() {
        let check = |value: &str, place: Option<&str>, scope: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(WWW_AUTHENTICATE, value.parse().unwrap());
            let expected = Challenge { resource_metadata: place.map(str::to_owned), scope: scope.map(str::to_owned) };
            assert_eq!(Challenge::of(&headers), expected, "{value}");
        };
        check(r#"Bearer resource_metadata="https://a/b""#, Some("https://a/b"), None);
        check(r#"Bearer realm="x=\"y", scope="a b", Resource_Metadata=https://a"#, Some("https://a"), Some("a b"));
        check(r#"Basic realm="x", Bearer error="invalid_token" , scope = "a""#, None, Some("a"));
        check("Bearer", None, None);
        check(r#"Bearer scope="a"#, None, Some("a"));
        check("Bearer scope=", None, Some(""));
    }

    #[test]
    fn any_value_is_read_to_its_end() {
        proptest::proptest!(|(value in "[ -~]{0,80}")| {
            proptest::prop_assert!(parameters(&value).len() <= value.len());
        });
    }

    #[test]
    fn a_resource_is_the_server_or_above_it() {
        let check = |resource: &str, expected: bool| {
            assert_eq!(covers(resource, &"https://m.example/a/mcp".parse().unwrap()), expected, "{resource}");
        };
        check("https://m.example/a/mcp", true);
        check("https://M.example:443/a/mcp/", true);
        check("https://m.example", true);
        check("https://m.example/a", true);
        check("https://m.example/a/m", false);
        check("https://m.example/b", false);
        check("https://m.example:8443/a/mcp", false);
        check("http://m.example/a/mcp", false);
        check("https://evil.example/a/mcp", false);
        check("mcp", false);
    }

    #[test]
    fn the_path_is_asked_for_first() {
        assert_eq!(
            well_known(&"https://m.example/a/mcp".parse().unwrap()),
            [
                "https://m.example/.well-known/oauth-protected-resource/a/mcp",
                "https://m.example/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            well_known(&"https://m.example".parse().unwrap()),
            ["https://m.example/.well-known/oauth-protected-resource"]
        );
    }
}
