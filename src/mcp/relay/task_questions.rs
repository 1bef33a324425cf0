//! What a server wants to know of a client that holds its call as a task: the client sees it when it looks at the task,
//! and answers by `tasks/update`, all at once or one by one.

use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::parked::ServerQuestion;
use crate::jsonrpc::Members;

/// The questions of one task.
#[derive(Debug, Default)]
pub(super) struct TaskQuestions(Mutex<Asked>);

#[derive(Debug, Default)]
struct Asked {
    /// Questions so far. No two of a task have one name, and a name that was answered does not come back.
    count: usize,
    open: Vec<OpenTaskQuestion>,
}

#[derive(Debug)]
struct OpenTaskQuestion {
    key: String,
    method: String,
    params: Option<Box<RawValue>>,
    answer: ServerQuestion,
    since: Instant,
}

impl TaskQuestions {
    /// Asks, and says under which name.
    pub(super) fn ask(&self, method: String, params: Option<Box<RawValue>>, answer: ServerQuestion) -> String {
        let mut asked = self.0.lock();
        asked.count += 1;
        let key = format!("question{}", asked.count);
        asked.open.push(OpenTaskQuestion { key: key.clone(), method, params, answer, since: Instant::now() });
        key
    }

    /// Refuses the question of this name, if it is still open.
    pub(super) fn refuse(&self, key: &str) {
        self.0.lock().open.retain(|question| question.key != key);
    }

    /// Takes answers by the names of their questions; any other is ignored. For how long the first of those that were
    /// answered was open, or nothing if none was.
    pub(super) fn answered(&self, responses: &Members<'_>) -> Option<Duration> {
        let mut asked = self.0.lock();
        let (answered, open) = asked.open.drain(..).partition(|question| responses.get(&question.key).is_some());
        asked.open = open;
        drop(asked);
        let answered: Vec<OpenTaskQuestion> = answered;
        let longest = answered.iter().map(|question| question.since.elapsed()).max();
        for OpenTaskQuestion { key, answer, .. } in answered {
            if let Some(response) = responses.get(&key) {
                // A server that has gone meanwhile is told so by the end of the call.
                let _ = answer.send(Ok(response.to_owned()));
            }
        }
        longest
    }

    /// Open ones.
    pub(super) fn count(&self) -> usize {
        self.0.lock().open.len()
    }

    /// The open ones by their names, in the protocol's words.
    pub(super) fn to_json(&self) -> Map<String, Value> {
        let asked = self.0.lock();
        let open = asked.open.iter().map(|OpenTaskQuestion { key, method, params, .. }| {
            let params = params.as_deref().and_then(|params| serde_json::from_str::<Value>(params.get()).ok());
            (key.clone(), json!({"method": method, "params": params.unwrap_or_else(|| json!({}))}))
        });
        open.collect()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn questions_are_answered_one_by_one_and_once() {
        let questions = TaskQuestions::default();
        let ask = || {
            let (answer, answered) = oneshot::channel();
            (questions.ask("elicitation/create".to_owned(), None, answer), answered)
        };
        let ((first, mut one), (second, mut other)) = (ask(), ask());
        assert_eq!(Value::Object(questions.to_json())[&second], json!({"method": "elicitation/create", "params": {}}));
        let answer = |json: &str| {
            let responses: &RawValue = serde_json::from_str(json).unwrap();
            questions.answered(&Members::read(responses).unwrap()).is_some()
        };
        assert!(!answer(r#"{"question9":{}}"#));
        assert!(answer(&format!(r#"{{"{first}":{{"action":"accept"}}}}"#)));
        assert_eq!(one.try_recv().unwrap().unwrap().get(), r#"{"action":"accept"}"#);
        assert_eq!((questions.count(), other.try_recv().is_err()), (1, true));
        assert!(!answer(&format!(r#"{{"{first}":{{}}}}"#)), "it was answered");
        questions.refuse(&second);
        assert!(matches!(other.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert_eq!(questions.count(), 0);
        assert_ne!(ask().0, first);
    }
}
