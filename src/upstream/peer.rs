//! The conversation with one server over lines: requests and answers by id, progress, cancellation, and what the
//! server asks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, interval, sleep_until};

use super::call::ServerEvent;
use super::journal::ServerLog;
use super::lines::{self, MAX_MESSAGE_BYTES};
use crate::jsonrpc::lines::{LineReader, MessageLine};
use crate::jsonrpc::{Envelope, ErrorObject, Id, Members, MessageError, MessageLimits, code, members, meta};
use crate::text::head::head;

/// Lines in a row that are no messages, after which a server is given up.
const MAX_NOISE: usize = 100;

/// Of a line that is no message, how much is shown, in bytes.
const SHOWN_NOISE: usize = 200;

/// Of a log message that nobody else hears, how much is shown, in bytes.
const SHOWN_LOG: usize = 1000;

/// Between two signs that a request waits for its client.
const SIGNS: Duration = Duration::from_millis(500);

/// No answer came from the peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PeerFault {
    #[error("it ended: {0}")]
    Closed(String),
    #[error("{0}")]
    Unasked(String),
    #[error("no answer within {}", humantime::format_duration(*.0))]
    Timeout(Duration),
    #[error("its answer is too long")]
    TooLong,
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
}

/// A result, or an error object.
pub(super) type PeerOutcome = Result<Box<RawValue>, Box<RawValue>>;

/// What the peer told without being asked.
#[derive(Debug)]
pub(super) enum Notice {
    /// One of its lists changed.
    ListChanged,
    /// `params` of `notifications/resources/updated`.
    ResourceUpdated(Box<RawValue>),
}

struct Pending {
    answer: oneshot::Sender<Result<PeerOutcome, PeerFault>>,
    events: Option<mpsc::Sender<ServerEvent>>,
    progressed: Arc<Notify>,
    /// Is there more to hear once it is answered?
    is_task: bool,
}

/// The conversation.
pub(super) struct Peer {
    journal: Arc<ServerLog>,
    pending: Mutex<HashMap<u64, Pending>>,
    /// Tasks, by the numbers of the requests that began them, for as long as somebody listens.
    tasks: Mutex<HashMap<u64, mpsc::Sender<ServerEvent>>>,
    numbers: AtomicU64,
    /// Taken at the end: the peer sees the end of its input then.
    writer: Mutex<Option<mpsc::UnboundedSender<String>>>,
    /// Why it ended, once it has.
    closed: watch::Sender<Option<String>>,
    notices: mpsc::UnboundedSender<Notice>,
    /// Was it told what the one client behind it can do, so that its questions are that client's?
    has_client: bool,
}

/// A request as it is sent.
pub(super) struct PeerRequest<'a> {
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
    /// Where what is said meanwhile goes.
    pub(super) events: Option<mpsc::Sender<ServerEvent>>,
    /// Is a progress token sent along?
    pub(super) wants_progress: bool,
    /// Is it answered by a task, whose progress is told by the request's token until the task ends (2025-11-25)?
    pub(super) is_task: bool,
    /// From the last sign of life, if progress counts as one.
    pub(super) limit: Duration,
    /// From the start, whatever the progress.
    pub(super) most: Duration,
}

impl<'a> PeerRequest<'a> {
    pub(super) fn plain(method: &'a str, params: Option<&'a RawValue>, limit: Duration) -> Self {
        Self { method, params, events: None, wants_progress: false, is_task: false, limit, most: limit }
    }
}

impl Peer {
    /// Begins a conversation. Must be called within the runtime.
    pub(super) fn begin(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
        journal: Arc<ServerLog>,
        has_client: bool,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Notice>) {
        let (sender, lines) = mpsc::unbounded_channel();
        let (notices, told) = mpsc::unbounded_channel();
        let peer = Arc::new(Self {
            journal,
            pending: Mutex::default(),
            tasks: Mutex::default(),
            numbers: AtomicU64::new(1),
            writer: Mutex::new(Some(sender)),
            closed: watch::Sender::new(None),
            notices,
            has_client,
        });
        tokio::spawn(write(writer, lines));
        tokio::spawn(Arc::clone(&peer).read(reader));
        (peer, told)
    }

    /// Asks, and waits for the answer. Dropping the future cancels the request at the peer.
    pub(super) async fn request(self: &Arc<Self>, asked: PeerRequest<'_>) -> Result<PeerOutcome, PeerFault> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (answer, mut answered) = oneshot::channel();
        let progressed = Arc::new(Notify::new());
        let (events, is_task) = (asked.events, asked.is_task);
        let pending = Pending { answer, events, progressed: Arc::clone(&progressed), is_task };
        self.pending.lock().insert(number, pending);
        // From here on a drop cancels.
        let _guard = Guard { peer: self, number, cancels: asked.method != "initialize" };
        let with_token = if asked.wants_progress { with_token(asked.params, number) } else { None };
        let params = with_token.as_deref().or(asked.params);
        self.send(Envelope::write_request(&Id::number(number), asked.method, params))?;
        let (start, mut due) = (Instant::now(), Instant::now() + asked.limit.min(asked.most));
        loop {
            tokio::select! {
                biased;
                outcome = &mut answered => {
                    return outcome.unwrap_or_else(|_| Err(PeerFault::Closed(self.why_closed())));
                }
                () = progressed.notified() => due = (Instant::now() + asked.limit).min(start + asked.most),
                () = sleep_until(due) => return Err(PeerFault::Timeout(start.elapsed())),
            }
        }
    }

    /// Tells the peer something.
    pub(super) fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), PeerFault> {
        self.send(Envelope::write_notification(method, params))
    }

    /// Closes the peer's input, after what was sent; whatever waits for an answer has none.
    pub(super) fn close(&self, why: &str) {
        self.shut(why);
        let why = self.why_closed();
        let left: Vec<Pending> = self.pending.lock().drain().map(|(_, pending)| pending).collect();
        for pending in left {
            let _ = pending.answer.send(Err(PeerFault::Closed(why.clone())));
        }
    }

    /// Lets nothing more be asked. A request that was not done is not found by whoever closes what is over.
    pub(super) fn over(&self, why: &str, undone: Option<u64>) {
        let undone = undone.and_then(|number| self.pending.lock().remove(&number));
        self.shut(why);
        if let Some(pending) = undone {
            let _ = pending.answer.send(Err(PeerFault::Unasked(self.why_closed())));
        }
    }

    /// Lets nothing more be asked. What waits for an answer may still have one.
    pub(super) fn shut(&self, why: &str) {
        self.closed.send_if_modified(|closed| {
            let is_first = closed.is_none();
            closed.get_or_insert_with(|| why.to_owned());
            is_first
        });
        self.writer.lock().take();
    }

    /// Ends a request that the peer did not do, and will not.
    pub(super) fn undone(&self, number: u64) {
        let pending = self.pending.lock().remove(&number);
        if let Some(pending) = pending {
            let _ = pending.answer.send(Err(PeerFault::Unasked(self.why_closed())));
        }
    }

    /// Waits until the conversation is over; says why.
    pub(super) async fn closed(&self) -> String {
        let mut closed = self.closed.subscribe();
        // It fails only without a sender, which `self` is.
        let _ = closed.wait_for(Option::is_some).await;
        self.why_closed()
    }

    /// Can it still be asked?
    pub(super) fn is_open(&self) -> bool {
        self.closed.borrow().is_none()
    }

    fn why_closed(&self) -> String {
        self.closed.borrow().clone().unwrap_or_else(|| "it was closed".to_owned())
    }

    fn send(&self, line: String) -> Result<(), PeerFault> {
        let writer = self.writer.lock();
        let sent = writer.as_ref().is_some_and(|writer| writer.send(line).is_ok());
        if sent { Ok(()) } else { Err(PeerFault::Unasked(self.why_closed())) }
    }

    async fn read(self: Arc<Self>, reader: impl AsyncRead + Unpin) {
        let mut reader = LineReader::new(reader, MAX_MESSAGE_BYTES);
        let mut noise = 0;
        let why = loop {
            match reader.next().await {
                Ok(Some(MessageLine::Whole(line))) => {
                    let Err(why) = self.take(&line) else {
                        noise = 0;
                        continue;
                    };
                    noise += 1;
                    // What is cut off is the last word of one that died.
                    let is_cut = matches!(&why, MessageError::Syntax(error) if error.is_eof());
                    if !is_cut && lines::looks_like_an_answer(&line) {
                        self.fail(&line, &line, PeerFault::Unreadable(why.to_string()));
                    }
                    let shown =
                        String::from_utf8_lossy(&line[..line.len().min(SHOWN_NOISE)]).escape_debug().to_string();
                    self.journal.warn(&format!("wrote what is no message: {shown}"));
                    if noise == MAX_NOISE {
                        break format!("{MAX_NOISE} lines in a row that are no messages");
                    }
                }
                Ok(Some(MessageLine::TooLong(begin, end))) => self.too_long(&begin, &end),
                Ok(None) => break "it closed its output".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        self.close(&why);
    }

    fn too_long(&self, begin: &[u8], end: &[u8]) {
        self.journal.warn(&format!("wrote a message of more than {MAX_MESSAGE_BYTES} bytes; it is dropped"));
        self.fail(begin, end, PeerFault::TooLong);
    }

    /// Ends the request that a line answers of which only the begin and the end are looked at.
    fn fail(&self, begin: &[u8], end: &[u8], fault: PeerFault) {
        let pending = lines::id_of(begin, end).and_then(|number| self.pending.lock().remove(&number));
        if let Some(pending) = pending {
            let _ = pending.answer.send(Err(fault));
        }
    }

    /// Takes a message; says why it is none.
    fn take(self: &Arc<Self>, line: &[u8]) -> Result<(), MessageError> {
        let limits = MessageLimits::of_bytes(MAX_MESSAGE_BYTES);
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if let Some(batch) = members(line, limits) {
            return batch.iter().try_for_each(|member| self.take(member.get().as_bytes()));
        }
        match Envelope::read(line, limits) {
            Ok(Envelope::Response { id, outcome }) => self.answered(id.as_ref(), outcome),
            Ok(Envelope::Notification { method, params }) => self.told(&method, params),
            Ok(Envelope::Request { id, method, params }) => self.asked(id, method, params),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn answered(self: &Arc<Self>, id: Option<&Id>, outcome: Result<&RawValue, &RawValue>) {
        let pending = id.and_then(Id::as_number).and_then(|number| self.pending.lock().remove(&number));
        let Some(pending) = pending else {
            // Most likely of a request that was cancelled.
            tracing::debug!(?id, "an answer that nobody waits for");
            return;
        };
        if let (true, true, Some(number), Some(events)) =
            (pending.is_task, outcome.is_ok(), id.and_then(Id::as_number), pending.events)
        {
            self.follow(number, events);
        }
        let _ = pending.answer.send(Ok(outcome.map(ToOwned::to_owned).map_err(ToOwned::to_owned)));
    }

    /// Hands on what is said of a task, until nobody listens any more.
    fn follow(self: &Arc<Self>, number: u64, events: mpsc::Sender<ServerEvent>) {
        self.tasks.lock().insert(number, events.clone());
        let peer = Arc::downgrade(self);
        tokio::spawn(async move {
            events.closed().await;
            if let Some(peer) = peer.upgrade() {
                peer.tasks.lock().remove(&number);
            }
        });
    }

    fn told(&self, method: &str, params: Option<&RawValue>) {
        let owned = || params.map(ToOwned::to_owned).unwrap_or_default();
        match method {
            "notifications/progress" => {
                let token = params.and_then(|params| Members::read(params).ok()?.get("progressToken"));
                let number = token.and_then(Id::read).and_then(|token| token.as_number());
                let Some(number) = number else { return };
                if let Some(pending) = self.pending.lock().get(&number) {
                    pending.progressed.notify_one();
                    pending.send(ServerEvent::Progress(owned()));
                } else if let Some(events) = self.tasks.lock().get(&number) {
                    // What a listener is too slow for is dropped here as well.
                    let _ = events.try_send(ServerEvent::Progress(owned()));
                }
            }
            "notifications/message" if self.has_client && self.tell_latest(|| ServerEvent::Log(owned())).is_some() => {}
            "notifications/message" => {
                let text = params.map_or("", RawValue::get);
                self.journal.say(head(text, SHOWN_LOG));
            }
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => drop(self.notices.send(Notice::ListChanged)),
            "notifications/resources/updated" => drop(self.notices.send(Notice::ResourceUpdated(owned()))),
            // Cancellations of its own questions, and what later revisions add.
            _ => {}
        }
    }

    /// Hands something to the request that was made last, else to the task that was begun last, and gives the sign of
    /// its life; nothing if there is none.
    fn tell_latest(&self, event: impl FnOnce() -> ServerEvent) -> Option<Arc<Notify>> {
        let pending = self.pending.lock();
        let latest = pending.iter().filter(|(_, pending)| pending.events.is_some()).max_by_key(|(number, _)| **number);
        if let Some((_, pending)) = latest {
            return pending.send(event()).then(|| Arc::clone(&pending.progressed));
        }
        drop(pending);
        let tasks = self.tasks.lock();
        let (_, events) = tasks.iter().max_by_key(|(number, _)| **number)?;
        events.try_send(event()).is_ok().then(Arc::default)
    }

    fn asked(self: &Arc<Self>, id: Id, method: String, params: Option<&RawValue>) {
        if method == "ping" {
            let _ = self.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
            return;
        }
        let (answer, answered) = oneshot::channel();
        let params = params.map(ToOwned::to_owned);
        let question = ServerEvent::Question { method: method.clone(), params, answer };
        // Of a process that all clients share nobody can say whose question it is.
        let handed_up = if self.has_client { self.tell_latest(|| question) } else { None };
        let Some(lives) = handed_up else {
            self.journal.warn(&format!("asked {method}, which nobody can answer"));
            let _ = self.send(refusal(&id, &method));
            return;
        };
        let peer = Arc::clone(self);
        tokio::spawn(async move {
            let mut signs = interval(SIGNS);
            tokio::pin!(answered);
            let line = loop {
                tokio::select! {
                    answer = &mut answered => break match answer {
                        Ok(Ok(result)) => Envelope::write_result(&id, &result),
                        Ok(Err(error)) => Envelope::write_raw_error(Some(&id), error.get()),
                        Err(_) => refusal(&id, &method),
                    },
                    // The peer waits for the client, so its own time stands still.
                    _ = signs.tick() => lives.notify_one(),
                    _ = peer.closed() => return,
                }
            };
            lives.notify_one();
            let _ = peer.send(line);
        });
    }
}

/// What is answered to a question that reaches nobody.
fn refusal(id: &Id, method: &str) -> String {
    match method {
        "elicitation/create" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"cancel"}}}}"#),
        "sampling/createMessage" | "roots/list" => {
            let error = ErrorObject::new(code::INTERNAL, "nobody is there who could answer");
            Envelope::write_error(Some(id), &error)
        }
        _ => Envelope::write_error(Some(id), &ErrorObject::new(code::METHOD_NOT_FOUND, "no such method")),
    }
}

impl Pending {
    /// False if nobody listens; what a listener is too slow for is dropped.
    fn send(&self, event: ServerEvent) -> bool {
        self.events.as_ref().is_some_and(|events| events.try_send(event).is_ok())
    }
}

/// The params with the number as progress token.
fn with_token(params: Option<&RawValue>, number: u64) -> Option<Box<RawValue>> {
    let token = serde_json::value::to_raw_value(&number).ok()?;
    match params {
        Some(params) => meta::splice_meta(params, meta::PROGRESS_TOKEN, &token).ok(),
        None => RawValue::from_string(format!(r#"{{"_meta":{{"progressToken":{number}}}}}"#)).ok(),
    }
}

/// Takes a request back if nobody waits for its answer any more.
struct Guard<'a> {
    peer: &'a Arc<Peer>,
    number: u64,
    cancels: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // Once it is answered it is no longer there.
        if self.peer.pending.lock().remove(&self.number).is_some() && self.cancels {
            let params = format!(r#"{{"requestId":{},"reason":"the caller gave it up"}}"#, self.number);
            if let Ok(params) = RawValue::from_string(params) {
                let _ = self.peer.notify("notifications/cancelled", Some(&params));
            }
        }
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            // Its output ends as well then, which is where the end is noticed.
            return;
        }
    }
    let _ = writer.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_a_log_message_the_beginning_is_kept() {
        let check = async |text: &str, expected: usize| {
            let journal = Arc::new(ServerLog::new("a"));
            let (mut ours, theirs) = tokio::io::duplex(1 << 16);
            let (peer, _notices) = Peer::begin(theirs, tokio::io::sink(), Arc::clone(&journal), false);
            let line = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"d":"{text}"}}}}"#);
            ours.write_all(line.as_bytes()).await.unwrap();
            drop(ours);
            peer.closed().await;
            let said = journal.lines().concat();
            let (_time, said) = said.split_once(' ').unwrap();
            assert_eq!(said.len(), expected, "{} bytes", text.len());
        };
        check("short", 13).await;
        check(&"x".repeat(5000), 1000).await;
        check(&"ü".repeat(5000), 1000).await;
        // A character stands across the limit.
        check(&"東".repeat(5000), 999).await;
    }
}
