//! Redirects that are followed: to the same origin, by the same method.

use hyper::body::Incoming;
use hyper::header::LOCATION;
use hyper::{Response, StatusCode, Uri};

/// Where the server sends the request to, if it is the same one and of the same origin.
pub(super) fn target(from: &Uri, response: &Response<Incoming>) -> Option<Uri> {
    // The others make a GET of it.
    if ![StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&response.status()) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let to: Uri = location.parse().ok()?;
    if to.authority().is_none() {
        return location.starts_with('/').then(|| with_path(from, &to)).flatten();
    }
    let port = |uri: &Uri| {
        uri.port_u16().or(match uri.scheme_str() {
            Some("https") => Some(443),
            _ => Some(80),
        })
    };
    let is_same = to.scheme() == from.scheme() && to.host() == from.host() && port(&to) == port(from);
    // The authority of the configuration: another one may hold a name and a password.
    is_same.then(|| with_path(from, &to)).flatten()
}

fn with_path(origin: &Uri, path: &Uri) -> Option<Uri> {
    let mut parts = origin.clone().into_parts();
    parts.path_and_query = path.path_and_query().cloned();
    Uri::from_parts(parts).ok()
}
