//! When an endpoint that turns a call away wants the next one: `Retry-After` (RFC 9110, 10.2.3), seconds or a date.

use std::time::{Duration, SystemTime};

use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};

/// The wait that an answer asks for at `now`; nothing if it asks for none, or is not one that turns away. Not bounded.
pub(super) fn wait(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds are a long time.
        (!value.is_empty()).then(|| Duration::from_secs(value.parse().unwrap_or(u64::MAX)))
    } else {
        httpdate::parse_http_date(value).ok()?.duration_since(now).ok()
    };
    wait.filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn read(status: StatusCode, value: &[u8]) -> Option<Duration> {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_bytes(value).ok()?)]);
        wait(status, &headers, now)
    }

    #[test]
    fn seconds_and_dates_are_read() {
        let check = |value: &str, seconds: Option<u64>| {
            let expected = seconds.map(Duration::from_secs);
            for status in [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE] {
                assert_eq!(read(status, value.as_bytes()), expected, "{value}");
            }
            assert_eq!(read(StatusCode::INTERNAL_SERVER_ERROR, value.as_bytes()), None, "{value}");
        };
        check("120", Some(120));
        check(" 7 ", Some(7));
        check("99999999999999999999999", Some(u64::MAX));
        check("Sun, 06 Nov 1994 08:51:37 GMT", Some(120));
        check("Sun, 06 Nov 1994 08:49:37 GMT", None);
        check("Sun, 06 Nov 1994 08:00:00 GMT", None);
        for none in ["", "0", "-1", "1.5", "soon", "120s", "Sun, 99 Nov 1994"] {
            check(none, None);
        }
        assert_eq!(wait(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), SystemTime::now()), None);
    }

    proptest! {
        /// Whatever an endpoint sends is a wait or none.
        #[test]
        fn no_header_is_too_odd(value in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_ne!(read(StatusCode::TOO_MANY_REQUESTS, &value), Some(Duration::ZERO));
        }
    }
}
