//! Headers that a modern request repeats of its body, so that proxies can go by them. What they say must be what the
//! body says: else a proxy and we would see two requests.

use hyper::HeaderMap;
use serde_json::value::RawValue;

use super::error::RpcError;
use crate::jsonrpc::param_headers::ParamHeaders;
use crate::jsonrpc::wire_headers::decode;
pub(super) use crate::jsonrpc::wire_headers::{METHOD, NAME, SESSION, VERSION, subject_of};

/// Does the version's header say what the body does?
pub(super) fn check_version(headers: &HeaderMap, version: &str) -> Result<(), RpcError> {
    check(headers, VERSION, version)
}

/// Do the headers say what the body does? `subject` is that of the method, if it has one.
pub(super) fn check_method(headers: &HeaderMap, method: &str, subject: Option<&str>) -> Result<(), RpcError> {
    check(headers, METHOD, method)?;
    subject.map_or(Ok(()), |subject| check(headers, NAME, subject))
}

fn check(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), RpcError> {
    if only(headers, name)? == expected { Ok(()) } else { Err(differs(name)) }
}

fn differs(name: &str) -> RpcError {
    RpcError::header_mismatch(format!("the header {name} says something else than the body"))
}

/// Do the headers say what the arguments do that they must repeat?
pub(super) fn check_arguments(
    headers: &HeaderMap,
    wanted: &ParamHeaders,
    arguments: Option<&RawValue>,
) -> Result<(), RpcError> {
    match wanted.first_wrong(arguments, |name| only(headers, name))? {
        Some(name) => Err(differs(name)),
        None => Ok(()),
    }
}

/// The header's value, which must be there once.
fn only(headers: &HeaderMap, name: &str) -> Result<String, RpcError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => decode(value)
            .ok_or_else(|| RpcError::header_mismatch(format!("the header {name} is neither ASCII nor =?base64?…?="))),
        (None, _) => Err(RpcError::header_mismatch(format!("the header {name} is missing"))),
        (Some(_), Some(_)) => Err(RpcError::header_mismatch(format!("the header {name} stands there twice"))),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::jsonrpc::wire_headers::encode;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn a_header_says_what_the_body_does_and_only_once() {
        let check = |pairs: &[(&'static str, &str)], method: &str, subject: Option<&str>, expected: bool| {
            assert_eq!(check_method(&headers(pairs), method, subject).is_ok(), expected, "{pairs:?}");
        };
        check(&[("mcp-method", "tools/list")], "tools/list", None, true);
        check(&[("mcp-method", "TOOLS/LIST")], "tools/list", None, false);
        check(&[], "tools/list", None, false);
        check(&[("mcp-method", "ping"), ("mcp-method", "ping")], "ping", None, false);
        let call = ("mcp-method", "tools/call");
        check(&[call, ("mcp-name", "  a ")], "tools/call", Some("a"), true);
        check(&[call], "tools/call", Some("a"), false);
        check(&[call, ("mcp-name", "=?base64?w7w=?=")], "tools/call", Some("ü"), true);
        check(&[call, ("mcp-name", "=?base64?w7w?=")], "tools/call", Some("ü"), false);
        assert_eq!(subject_of("tools/call"), Some("name"));
        assert_eq!(subject_of("tools/list"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_encoded_is_decoded_again(text in any::<String>()) {
            let value = HeaderValue::from_str(&encode(&text)).unwrap();
            prop_assert_eq!(decode(&value), Some(text));
        }
    }
}
