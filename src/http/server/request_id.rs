//! An identity for every request: the caller's, or a new one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Longest identity taken from a caller, in bytes.
const LONGEST: usize = 128;

/// The caller's identity if it is visible ASCII of a sane length, else a new one of 16 hexadecimal digits.
pub(super) fn of(headers: &HeaderMap) -> HeaderValue {
    match headers.get(REQUEST_ID) {
        Some(id) if is_sane(id.as_bytes()) => id.clone(),
        _ => new(),
    }
}

fn is_sane(id: &[u8]) -> bool {
    !id.is_empty() && id.len() <= LONGEST && id.iter().all(u8::is_ascii_graphic)
}

fn new() -> HeaderValue {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let mut seed = [0_u8; 8];
        // Without randomness, identities start at 0 in each process: still unique within it.
        let _ = getrandom::fill(&mut seed);
        AtomicU64::new(u64::from_ne_bytes(seed))
    });
    // An odd factor permutes the numbers: neighbours in time look nothing alike, and none repeats.
    let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut text = [0_u8; 16];
    for (index, digit) in text.iter_mut().enumerate() {
        let nibble = (number >> (60 - 4 * index)) as u8 & 15;
        *digit = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    }
    HeaderValue::from_bytes(&text).expect("hexadecimal digits are visible ASCII")
}

/// The trace a caller's request belongs to (W3C Trace Context, `version-trace-parent-flags`).
pub(super) fn trace_of(traceparent: &HeaderValue) -> Option<&str> {
    let text = traceparent.to_str().ok()?;
    let trace = text.get(3..35)?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (text.as_bytes().get(2) == Some(&b'-') && text.as_bytes().get(35) == Some(&b'-') && is_hex(trace)).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sane_identity_is_kept() {
        let check = |given: &[u8], kept: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(given).unwrap());
            let id = of(&headers);
            assert_eq!(id.as_bytes() == given, kept, "{given:?} became {id:?}");
            assert!(is_sane(id.as_bytes()));
        };
        check(b"abc-1", true);
        check(b"", false);
        check(b"a b", false);
        check("ä".as_bytes(), false);
        check(&[b'x'; 129], false);
        assert_ne!(new(), new());
    }

    #[test]
    fn a_trace_is_taken_only_if_well_formed() {
        let check = |given: &str, expected: Option<&str>| {
            assert_eq!(trace_of(&HeaderValue::from_str(given).unwrap()), expected, "{given}");
        };
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        check(&format!("00-{trace}-00f067aa0ba902b7-01"), Some(trace));
        check(&format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()), None);
        check("00-short-1-1", None);
    }
}
