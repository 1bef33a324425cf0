//! What a handler returns: bytes that are there, or a stream of them.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use super::handler::Revoked;

/// An answer, but for the headers that every one carries.
pub(super) type Answer = Response<Body>;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Tells proxies to pass each piece of a stream on at once.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The body of an answer.
pub(super) struct Body {
    content: Content,
    /// Ends a stream before its end.
    until: Option<Revoked>,
    /// Called when the body has been taken whole, or given up.
    at_end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

enum Content {
    Whole(Full<Bytes>),
    Pieces(mpsc::Receiver<Bytes>),
}

impl Body {
    /// Is it a stream, of which nobody knows when it ends?
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.content, Content::Pieces(_))
    }

    /// Ends a stream when `revoked` does.
    pub(super) fn until(&mut self, revoked: Revoked) {
        self.until = Some(revoked);
    }

    /// Calls `at_end` when the body has been taken whole, or given up.
    pub(super) fn when_ended(&mut self, at_end: impl FnOnce() + Send + Sync + 'static) {
        self.at_end = Some(Box::new(at_end));
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self { content: Content::Whole(Full::new(bytes)), until: None, at_end: None }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let is_over = self.until.as_mut().is_some_and(|until| until.as_mut().poll(context).is_ready());
        if is_over {
            self.until = None;
            // Whoever sends finds that nobody takes any more.
            self.content = Content::Whole(Full::default());
        }
        match &mut self.content {
            Content::Whole(bytes) => Pin::new(bytes).poll_frame(context),
            Content::Pieces(pieces) => pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_end_stream(),
            Content::Pieces(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => bytes.size_hint(),
            Content::Pieces(_) => SizeHint::default(),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(at_end) = self.at_end.take() {
            at_end();
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Body").field("is_stream", &self.is_stream()).finish_non_exhaustive()
    }
}

/// An answer of bytes that are rendered already.
pub(super) fn bytes(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Body::from(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

/// 200 with `value` as JSON.
pub(super) fn json(value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).expect("wire types have string keys and finite numbers");
    bytes(StatusCode::OK, JSON, body)
}

/// 200 with whatever is sent, as it is sent; it ends when nobody can send any more. A sender that nobody takes from is
/// told so by a channel that is full, and one whose client left by a channel that is closed.
pub(super) fn stream(content_type: HeaderValue, pieces: mpsc::Receiver<Bytes>) -> Answer {
    let mut answer = Response::new(Body { content: Content::Pieces(pieces), until: None, at_end: None });
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    answer
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_stream_ends_with_its_last_sender_and_is_told_so() {
        let (sender, pieces) = mpsc::channel(1);
        let mut answer = stream(HeaderValue::from_static("text/event-stream"), pieces);
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        answer.body_mut().when_ended(move || told.store(true, Ordering::Relaxed));
        assert!(answer.body().is_stream() && !answer.body().is_end_stream());
        tokio::spawn(async move {
            for piece in ["a", "b"] {
                sender.send(Bytes::from_static(piece.as_bytes())).await.unwrap();
            }
        });
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ab");
        assert!(ended.load(Ordering::Relaxed));
    }
}
