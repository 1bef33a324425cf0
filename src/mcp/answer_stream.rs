//! An answer that takes long, as a stream of events: what is told meanwhile, signs of life, and the answer at its end.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{self, interval_at};

use super::request::RpcAnswer;
use super::streams::{Attach, AttachedStream, COMMENTS, EventLog, KEPT_FOR, PIECES};
use super::work::Work;
use crate::jsonrpc::sse;
use crate::jsonrpc::{Envelope, Id};

/// What is told next; never, if nobody wants to know.
pub(super) async fn next(told: &mut Option<mpsc::Receiver<Arc<str>>>) -> Arc<str> {
    if let Some(receiver) = told {
        if let Some(event) = receiver.recv().await {
            return event;
        }
        *told = None;
    }
    std::future::pending().await
}

/// An answer by events.
pub(super) struct AnswerStream {
    pub(super) id: Id,
    pub(super) work: Work,
    pub(super) told: Option<mpsc::Receiver<Arc<str>>>,
    /// What a legacy client may ask for again.
    pub(super) log: Option<EventLog>,
    /// Where events go while the client is there.
    pub(super) live: Option<AttachedStream>,
    pub(super) has_priming: bool,
}

/// What happens to a stream.
enum Happening {
    Told(Arc<str>),
    Answered(Option<RpcAnswer>),
    Silence,
    Left,
    Back(Attach),
}

impl AnswerStream {
    pub(super) async fn run(mut self, first: Option<Arc<str>>) {
        match (&self.log, self.has_priming) {
            (Some(log), true) => {
                let priming = log.priming();
                self.send(priming).await;
            }
            // The headers leave with the first byte.
            _ => self.send(sse::COMMENT).await,
        }
        if let Some(event) = first {
            self.tell(event.as_bytes()).await;
        }
        let mut comments = interval_at(time::Instant::now() + COMMENTS, COMMENTS);
        loop {
            let happening = tokio::select! {
                biased;
                event = next(&mut self.told) => Happening::Told(event),
                answer = self.work.done() => Happening::Answered(answer),
                () = left(self.live.as_ref()) => Happening::Left,
                back = back(self.log.as_mut()) => Happening::Back(back),
                _ = comments.tick() => Happening::Silence,
            };
            match happening {
                Happening::Told(event) => self.tell(event.as_bytes()).await,
                Happening::Silence => self.send(sse::COMMENT).await,
                Happening::Left if self.log.is_none() => return,
                Happening::Left => {
                    self.work.set_followed(false);
                    self.live = None;
                }
                Happening::Back(back) => {
                    self.work.set_followed(true);
                    self.go_on(back).await;
                }
                // It was given up: the stream ends, and nobody comes back for it.
                Happening::Answered(None) => return,
                Happening::Answered(Some(answer)) => {
                    let text = response(&self.id, &answer);
                    self.tell(text.as_bytes()).await;
                    break;
                }
            }
            // It was told something and is gone: nobody can come back for the rest.
            if self.live.is_none() && self.log.is_none() {
                return;
            }
        }
        self.linger().await;
    }

    /// Goes on with a client that is back. Not to be given up on the way, or it is lost.
    async fn go_on(&mut self, back: Attach) {
        if let Some(log) = &self.log {
            self.live = Some(log.replay(back).await);
        }
    }

    async fn tell(&mut self, json: &[u8]) {
        let event = match &mut self.log {
            Some(log) => log.event(json),
            None => sse::message(None, json),
        };
        self.send(event).await;
    }

    async fn send(&mut self, piece: Bytes) {
        if let Some((to, _)) = &self.live
            && to.send(piece).await.is_err()
        {
            self.work.set_followed(false);
            self.live = None;
        }
    }

    /// Waits until a legacy client has its answer, or for as long as it is kept.
    async fn linger(mut self) {
        let until = time::Instant::now() + KEPT_FOR;
        loop {
            if let Some((to, _)) = &self.live
                && to.reserve_many(PIECES).await.is_ok()
            {
                return;
            }
            self.live = None;
            if self.log.is_none() {
                return;
            }
            let back = tokio::select! {
                back = back(self.log.as_mut()) => back,
                () = time::sleep_until(until) => return,
            };
            self.go_on(back).await;
        }
    }
}

async fn left(live: Option<&AttachedStream>) {
    match live {
        Some((to, _)) => to.closed().await,
        None => std::future::pending().await,
    }
}

async fn back(log: Option<&mut EventLog>) -> Attach {
    if let Some(log) = log
        && let Some(back) = log.attached().await
    {
        return back;
    }
    std::future::pending().await
}

fn response(id: &Id, answer: &RpcAnswer) -> String {
    match answer {
        Ok(result) => Envelope::write_result(id, result),
        Err(error) => Envelope::write_error(Some(id), &error.object),
    }
}

#[cfg(test)]
mod tests {
    use prometheus::IntGauge;
    use serde_json::value::RawValue;

    use super::*;
    use crate::access::Grant;
    use crate::jsonrpc::Version;
    use crate::mcp::address::Address;
    use crate::mcp::request::{ClientPresence, McpCaller, Waits};
    use crate::mcp::streams::Streams;

    #[tokio::test]
    async fn a_client_that_is_back_loses_nothing_that_is_told_meanwhile() {
        let streams = Streams::new(1, IntGauge::new("n", "n").unwrap());
        let mut log = streams.keep(7);
        let kept = 2 * PIECES - 4;
        let first = String::from_utf8(log.event(b"{}").to_vec()).unwrap();
        let last_seen = first.lines().next().unwrap().strip_prefix("id: ").unwrap();
        (0..kept).for_each(|_| drop(log.event(b"{}")));
        let caller = McpCaller {
            grant: Grant::client(),
            address: Address::Default,
            version: Version::V2025_11_25,
            session: Some(7),
            is_public: true,
            waits: Waits::default(),
            capabilities: RawValue::from_string("{}".to_owned()).unwrap().into(),
        };
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let work = Work::start(&caller, ClientPresence::default(), async {
            let _ = answered.await;
            Ok(RawValue::from_string("{}".to_owned()).unwrap())
        });
        let (tell, told) = mpsc::channel(1);
        let id = Id::number(1);
        let stream = AnswerStream { id, work, told: Some(told), log: Some(log), live: None, has_priming: false };
        tokio::spawn(stream.run(None));
        let mut pieces = streams.resume(7, last_seen).unwrap();
        while pieces.len() < PIECES {
            tokio::task::yield_now().await;
        }
        // It has not taken yet what it missed, and is told something.
        tell.send("{}".into()).await.unwrap();
        answer.send(()).unwrap();
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        let mut got = 0;
        while pieces.recv().await.is_some() {
            got += 1;
        }
        assert_eq!(got, kept + 2, "what it missed, what was told, and the answer");
    }
}
