//! The console's files, as `make console` built them.
//!
//! They are part of the binary, and name each other and the API by relative addresses, so that they work behind any
//! prefix of a proxy. Their names do not change with their content, so a browser asks each time whether it has the
//! latest.

use hyper::StatusCode;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue,
    LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};

use crate::http::answer::{self, Answer};
use crate::http::etag;
use crate::http::handler::{Access, Context, Handler, Request, Route};
use crate::http::operation::{Operation, path};
use crate::http::problem::Problem;
use crate::wire::problem::Code;

/// Nothing comes from elsewhere, nothing runs that is not one of these files, and no text becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; \
                      worker-src 'self'; require-trusted-types-for 'script'";

/// A file of the console.
struct File {
    name: &'static str,
    content_type: &'static str,
    /// The beginning of the SHA-256 sum of its content.
    sum: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

const FILES: &[File] = include!("../../../console/built/files.rs");

const INDEX: &str = "index.html";

/// The routes of the console's files.
pub(super) fn routes() -> Vec<Route> {
    let places: [(&'static str, Show); 3] = [("/console", redirect), ("/console/", index), ("/console/{file}", file)];
    let route = |(path, show): (&'static str, Show)| Route {
        method: hyper::Method::GET,
        path,
        access: Access::Console,
        handler: Handler::Now(show),
        operation,
        is_abandoned: false,
    };
    places.into_iter().map(route).collect()
}

type Show = fn(&Context, &mut Request) -> Result<Answer, Problem>;

/// A page for people, so the OpenAPI document does not have it.
fn operation() -> Operation {
    Operation::new("getConsole", "A page that shows what the daemon knows.")
        .taking(const { &[path("file", "A file of it.")] })
        .answering_text(200, "HTML, and what it needs.", "text/html")
}

/// The console, whatever prefix a proxy put before this path, from a path beside `/console/`.
pub(super) fn redirect(_: &Context, _: &mut Request) -> Result<Answer, Problem> {
    let mut answer = answer::bytes(StatusCode::FOUND, HeaderValue::from_static("text/plain"), "console/");
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static("console/"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

fn index(_: &Context, request: &mut Request) -> Result<Answer, Problem> {
    serve(INDEX, request.headers())
}

fn file(_: &Context, request: &mut Request) -> Result<Answer, Problem> {
    serve(request.parameter()?, request.headers())
}

fn serve(name: &str, headers: &HeaderMap) -> Result<Answer, Problem> {
    let Some(file) = FILES.iter().find(|file| file.name == name) else {
        return Err(Problem::not_found(Code::UnknownPath, "the console has no such file"));
    };
    let is_compressed = takes_gzip(headers);
    let (body, tag) = if is_compressed {
        (file.gzip, format!("\"{}-gzip\"", file.sum))
    } else {
        (file.plain, format!("\"{}\"", file.sum))
    };
    let content_type = HeaderValue::from_static(file.content_type);
    let tag = HeaderValue::try_from(tag).map_err(|error| Problem::not_found(Code::UnknownPath, error.to_string()))?;
    let mut answer = etag::conditional(headers, tag, || answer::bytes(StatusCode::OK, content_type, body));
    let headers = answer.headers_mut();
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let fixed: [(HeaderName, &'static str); 5] = [
        (VARY, "accept-encoding"),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    Ok(answer)
}

/// Does `Accept-Encoding` name gzip, and not with weight 0?
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.and_then(|weight| weight.parse::<f32>().ok()).is_some_and(|weight| weight <= 0.0)
        });
        is_gzip && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What all files may weigh on the way, in bytes.
    const MOST: usize = 200_000;

    #[test]
    fn gzip_is_sent_to_whoever_takes_it() {
        let check = |value: &str, expected: bool| {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_str(value).unwrap())]);
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        };
        check("gzip, deflate, br", true);
        check("br;q=1.0, GZIP;q=0.5", true);
        check("gzip;q=0", false);
        check("gzip; q=0.000, br", false);
        check("identity", false);
        check("", false);
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn the_files_are_all_there_and_small() {
        for needed in [INDEX, "console.js", "console.css", "licences.txt"] {
            assert!(FILES.iter().any(|file| file.name == needed), "{needed}");
        }
        let weight: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(weight <= MOST, "{weight} bytes");
        for file in FILES {
            assert!(!file.plain.is_empty() && file.gzip.starts_with(&[0x1f, 0x8b]), "{}", file.name);
        }
    }
}
