//! What is asked of a server, and what comes of it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// A request for a server.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Such as `tools/call`.
    pub method: String,
    /// As they came from the client, without the keys of the core in `_meta`; an object.
    pub params: Option<Box<RawValue>>,
    /// Who asks.
    pub caller: Caller,
    /// How long it may take from when it is sent; the server's progress starts that anew. The server's `timeout`, else
    /// 5 min, if nothing.
    pub limit: Option<Duration>,
    /// Set to when it is sent, for whoever wants to know how long it has been under way.
    pub sent: Option<Arc<OnceLock<Instant>>>,
}

/// Who asks a server.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// What a server with `per_session` has a process of its own for.
    pub session: Option<String>,
    /// The name of its token, which a server at a URL may know another credential for.
    pub token: Option<String>,
    /// The client's capabilities, an object; none if nothing.
    pub capabilities: Option<Box<RawValue>>,
    /// Is the progress of the call wanted?
    pub wants_progress: bool,
    /// From which level on log messages of the call are wanted, of a modern server.
    pub log_level: Option<String>,
}

/// What a server says while it works on a request.
#[derive(Debug)]
pub enum ServerEvent {
    /// `params` of `notifications/progress`. The token in them is not the client's.
    Progress(Box<RawValue>),
    /// `params` of `notifications/message`.
    Log(Box<RawValue>),
    /// A request of the server's, which waits for an answer. Dropping `answer` refuses it.
    Question {
        /// Such as `elicitation/create`.
        method: String,
        /// As the server sent them.
        params: Option<Box<RawValue>>,
        /// The result, or an error object.
        answer: oneshot::Sender<Result<Box<RawValue>, Box<RawValue>>>,
    },
}

/// What a server answered.
#[derive(Debug)]
pub struct CallReply {
    /// The result, or the error object, as the server sent it.
    pub outcome: Result<Box<RawValue>, Box<RawValue>>,
    /// From when it was sent until the answer was read.
    pub duration: Duration,
    /// Before it was sent: for a slot, and for the server's start.
    pub queued: Duration,
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFault {
    /// No server of that name.
    #[error("there is no server `{0}`")]
    UnknownServer(String),
    /// Too many wait already.
    #[error("{server} is busy: {waiting} calls wait for it; try again later")]
    Busy {
        /// The server.
        server: String,
        /// How many.
        waiting: usize,
    },
    /// It has a process for each session, and as many as it may.
    #[error(
        "{server} is busy: it has a process for each of {sessions} sessions, which is the most; end one, or wait until \
         one was idle for 10 minutes"
    )]
    NoPlace {
        /// The server.
        server: String,
        /// How many.
        sessions: usize,
    },
    /// It does not run, or not yet.
    #[error("{server} is not available: {reason}; the call was not made")]
    Down {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// It ended with the call in flight.
    #[error("{server} ended during the call ({reason}); the call may have run")]
    Died {
        /// The server.
        server: String,
        /// How.
        reason: String,
    },
    /// It took too long, and was cancelled.
    #[error(
        "{server} did not answer within {}; the call was cancelled and may have run",
        humantime::format_duration(*.after)
    )]
    Timeout {
        /// The server.
        server: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The definition changed since it was approved.
    #[error(
        "the definition of {tool} is not approved as it is now; `almanacd ctl mcp diff {server}` shows it, and \
         `almanacd ctl mcp approve {server} {tool}` accepts it"
    )]
    Blocked {
        /// The server.
        server: String,
        /// The tool's own name there.
        tool: String,
    },
    /// The answer is longer than any may be.
    #[error("the answer of {server} has more than {limit} bytes")]
    TooLong {
        /// The server.
        server: String,
        /// In bytes.
        limit: usize,
    },
    /// The answer is none that JSON-RPC knows.
    #[error("the answer of {server} cannot be read ({reason}); the call may have run")]
    Unreadable {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
}

impl CallFault {
    /// The same of a later question about a call that was made: that the question did not arrive says nothing of it.
    #[must_use]
    pub fn amid_the_call(self) -> Self {
        match self {
            Self::Down { server, reason } => Self::Died { server, reason },
            fault => fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_did_not_arrive_says_nothing_of_the_call() {
        let server = || "a".to_owned();
        let down = CallFault::Down { server: server(), reason: "it cannot be reached".to_owned() };
        assert!(matches!(down.amid_the_call(), CallFault::Died { .. }));
        let busy = CallFault::Busy { server: server(), waiting: 3 };
        assert_eq!(busy.clone().amid_the_call(), busy);
    }
}
