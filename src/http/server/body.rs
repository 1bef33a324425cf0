//! A request's body, under the limits of size and time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};

use crate::http::problem::Problem;
use crate::wire::problem::Code;

/// Largest body that the admin socket takes, in bytes: whoever may open it may restore an archive.
pub(super) const ADMIN_BYTES: usize = 64 << 20;

/// The whole of a body that is to be JSON.
pub(super) async fn collect(
    headers: &HeaderMap,
    body: Incoming,
    most: usize,
    within: Duration,
) -> Result<Bytes, Problem> {
    check_type(headers)?;
    bytes(headers, body, most, within).await
}

/// Reads the body as it is.
pub(in crate::http) async fn bytes(
    headers: &HeaderMap,
    body: Incoming,
    most: usize,
    within: Duration,
) -> Result<Bytes, Problem> {
    check_encoding(headers)?;
    tokio::time::timeout(within, frames(body, most)).await.unwrap_or_else(|_| {
        let detail = format!("the body did not arrive within {} s", within.as_secs_f32());
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, Code::SlowBody, detail).and_close())
    })
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or_default());
    let essence = given.split(';').next().unwrap_or_default().trim();
    let is_json =
        ["application/json", "application/merge-patch+json"].iter().any(|json| essence.eq_ignore_ascii_case(json));
    if is_json {
        return Ok(());
    }
    let detail = "send JSON, with `content-type: application/json`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::NotJson, detail).and_close())
}

/// Refuses a body that is not sent as it is: compressed, it would be read as another text.
pub(in crate::http) fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get_all(CONTENT_ENCODING).iter().all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let detail = "send the body as it is, without `content-encoding`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::EncodedBody, detail).and_close())
}

async fn frames(mut body: Incoming, most: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("the body is larger than {most} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, Code::BodyTooLarge, detail).and_close()
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let mut collected = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::bad_request(Code::BrokenBody, "the body broke off").and_close())?;
        let Ok(data) = frame.into_data() else { continue };
        if collected.len() + data.len() > most {
            return Err(too_large());
        }
        collected.extend_from_slice(&data);
    }
    Ok(collected.freeze())
}
