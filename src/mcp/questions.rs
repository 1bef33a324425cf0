//! Questions of servers that a legacy client is asked on the stream of its own request, and answers by a POST.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::Mcp;
use super::request::{McpCaller, MessageSink};
use crate::jsonrpc::{Envelope, Id};

/// Questions that are open at once; further ones are refused.
const MAX_OPEN: usize = 1024;

/// What a client answers: a result, or an error object.
pub(super) type ClientAnswer = Result<Box<RawValue>, Box<RawValue>>;

type Open = Mutex<HashMap<(u64, Id), oneshot::Sender<ClientAnswer>>>;

/// Questions that wait for their answers.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    next: AtomicU64,
    open: Arc<Open>,
}

/// A question is open for as long as this lives.
#[derive(Debug)]
struct OpenQuestion {
    key: (u64, Id),
    open: Arc<Open>,
    answered: oneshot::Receiver<ClientAnswer>,
}

impl OpenQuestions {
    /// A question to the client of a session; nothing if too many are open.
    fn begin(&self, session: u64) -> Option<OpenQuestion> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let key = (session, Id::text(&format!("almanac-{number}")));
        let (answer, answered) = oneshot::channel();
        let mut open = self.open.lock();
        if open.len() >= MAX_OPEN {
            return None;
        }
        open.insert(key.clone(), answer);
        drop(open);
        Some(OpenQuestion { key, open: Arc::clone(&self.open), answered })
    }

    /// The client of a session answers. What nobody asked is ignored.
    pub(super) fn answered(&self, session: u64, id: &Id, outcome: Result<&RawValue, &RawValue>) {
        if let Some(answer) = self.open.lock().remove(&(session, id.clone())) {
            let _ = answer.send(outcome.map(ToOwned::to_owned).map_err(ToOwned::to_owned));
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.open.lock().remove(&self.key);
    }
}

impl Mcp {
    /// Asks a legacy client; nothing if it cannot answer such a question, or is not there.
    pub(super) async fn ask_client(
        &self,
        caller: &McpCaller,
        events: &MessageSink,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ClientAnswer> {
        if !caller.can_answer(method, params) {
            return None;
        }
        let mut question = self.questions.begin(caller.session?)?;
        events.send(Envelope::write_request(&question.key.1, method, params).into()).await.ok()?;
        (&mut question.answered).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_counts_once_and_from_its_session_alone() {
        let questions = OpenQuestions::default();
        let raw: &RawValue = serde_json::from_str(r#"{"action":"accept"}"#).unwrap();
        let mut question = questions.begin(1).unwrap();
        let id = question.key.1.clone();
        questions.answered(2, &id, Ok(raw));
        assert!(question.answered.try_recv().is_err(), "the session of another");
        questions.answered(1, &id, Ok(raw));
        questions.answered(1, &id, Err(raw));
        assert_eq!((&mut question.answered).await.unwrap().unwrap().get(), raw.get());
        let given_up = questions.begin(1).unwrap();
        assert_ne!(given_up.key.1, id);
        drop(given_up);
        assert!(questions.open.lock().is_empty());
    }

    #[test]
    fn open_questions_are_bounded() {
        let questions = OpenQuestions::default();
        let open: Vec<_> = (0..=MAX_OPEN).map(|_| questions.begin(1)).collect();
        assert_eq!(open.iter().flatten().count(), MAX_OPEN);
    }
}
