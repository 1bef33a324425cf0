//! Conditional requests by entity tags (RFC 9110, sections 8.8.3 and 13.1).

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};

use super::answer::{Answer, Body};

/// An answer with the tag; without its body, as 304, if the request holds that version already.
pub(super) fn conditional(headers: &HeaderMap, tag: HeaderValue, answer: impl FnOnce() -> Answer) -> Answer {
    let mut answer = if is_held(headers, tag.as_bytes()) {
        let mut unchanged = Answer::new(Body::from(Bytes::new()));
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        answer()
    };
    answer.headers_mut().insert(ETAG, tag);
    answer
}

/// Does `If-None-Match` name the tag? It may stand there several times, each time as a list, or be `*` for whatever
/// there is. Tags are compared weakly: a `W/` before them does not count.
fn is_held(headers: &HeaderMap, tag: &[u8]) -> bool {
    headers.contains_key(IF_NONE_MATCH)
        && headers.get_all(IF_NONE_MATCH).iter().any(|held| matches(held.as_bytes(), tag))
}

fn matches(mut held: &[u8], tag: &[u8]) -> bool {
    if held.trim_ascii() == b"*" {
        return true;
    }
    // A comma inside of quotes belongs to the tag.
    while let Some(start) = held.iter().position(|&byte| byte == b'"') {
        let Some(length) = held[start + 1..].iter().position(|&byte| byte == b'"') else { return false };
        let end = start + length + 2;
        if &held[start..end] == tag {
            return true;
        }
        held = &held[end..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly_and_one_by_one() {
        let check = |held: &[&str], expected: bool| {
            let mut headers = HeaderMap::new();
            for value in held {
                headers.append(IF_NONE_MATCH, HeaderValue::from_str(value).unwrap());
            }
            assert_eq!(is_held(&headers, b"\"a\""), expected, "{held:?}");
        };
        check(&[], false);
        check(&["\"a\""], true);
        check(&["W/\"a\""], true);
        check(&["\"b\", W/\"a\" , \"c\""], true);
        check(&["\"b\"", "\"a\""], true);
        check(&[" * "], true);
        check(&["a"], false);
        check(&["\"a"], false);
        check(&["\"b,\"a\"\""], false);
        check(&["\"A\""], false);
    }
}
