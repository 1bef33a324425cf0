//! A request's body, under the limits of size and time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};

use super::problem::Problem;
use crate::strict::Node;
use crate::strict::read::{self, Limits};

/// Values in one body: a batch of a thousand records has tens of thousands.
const MAX_NODES: usize = 200_000;

/// Largest body that the admin socket takes, in bytes: whoever may open it may restore an archive.
pub(super) const ADMIN_BYTES: usize = 64 << 20;

/// Reads the body as JSON.
pub(super) async fn json(headers: &HeaderMap, body: Incoming, most: usize, within: Duration) -> Result<Node, Problem> {
    check_type(headers)?;
    check_encoding(headers)?;
    let bytes = if let Ok(bytes) = tokio::time::timeout(within, collect(body, most)).await {
        bytes?
    } else {
        let detail = format!("the body did not arrive within {} s", within.as_secs_f32());
        return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow-body", detail).and_close());
    };
    let nodes = MAX_NODES.max(most / 64);
    let limits = Limits { nodes, depth: 64, ..Limits::of_bytes(most) };
    read::json(&bytes, &limits).map_err(|error| Problem::malformed(&error))
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
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", detail).and_close())
}

/// Refuses a body that is not sent as it is: compressed, it would be read as another text.
pub(super) fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get_all(CONTENT_ENCODING).iter().all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let detail = "send the body as it is, without `content-encoding`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded-body", detail).and_close())
}

async fn collect(mut body: Incoming, most: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("the body is larger than {most} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail).and_close()
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let mut collected = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::bad_request("broken-body", "the body broke off").and_close())?;
        let Ok(data) = frame.into_data() else { continue };
        if collected.len() + data.len() > most {
            return Err(too_large());
        }
        collected.extend_from_slice(&data);
    }
    Ok(collected.freeze())
}
