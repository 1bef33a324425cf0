//! Durations of tool calls, seen from outside: from a call's part to its result's, by the times at which they arrived.
//!
//! Neither protocol carries times, so a result that arrives together with its call has no duration that could be known,
//! and none is made up; nor is there one of a call for which the user was asked, as people take longer than tools. A
//! call that the stream gave up on took at least as long as was waited for it.

use super::part::Part;

/// Calls open at once; the oldest is forgotten for a further one.
const MAX_OPEN: usize = 1000;

/// A moment at which bytes arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Milliseconds of any steady clock.
    pub at_ms: u64,
    /// Which burst they belong to: what is of one burst arrived together.
    pub burst: u64,
}

/// The calls of one stream.
#[derive(Debug, Default)]
pub struct Calls {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    call: String,
    tool: String,
    since: Arrival,
    /// Did it wait for the user's consent?
    asked: bool,
}

/// A call that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCall {
    /// The call's id in the stream.
    pub call: String,
    pub tool: String,
    /// How long it took, in ms; nothing if it arrived with its result, or waited for the user.
    pub duration_ms: Option<u64>,
    pub how: Seen,
}

/// How a call ended, as the stream tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Result,
    Error,
    /// The stream was given up before it ended.
    GivenUp,
}

impl Calls {
    /// Takes note of a part; the call that it ended, if it did.
    pub fn take(&mut self, part: &Part, arrival: Arrival) -> Option<EndedCall> {
        let (call, how) = match part {
            Part::ToolCall { call, tool, .. } => {
                self.begin(call, tool, arrival);
                return None;
            }
            Part::ToolApprovalRequest { call } => {
                if let Some(open) = self.open.iter_mut().find(|open| open.call == *call) {
                    open.asked = true;
                }
                return None;
            }
            Part::ToolResult { call, preliminary: false, .. } => (call, Seen::Result),
            Part::ToolError { call, .. } => (call, Seen::Error),
            Part::ToolDenied { call } | Part::ToolInputError { call, .. } => {
                self.open.retain(|open| open.call != *call);
                return None;
            }
            _ => return None,
        };
        let index = self.open.iter().position(|open| open.call == *call)?;
        Some(self.open.remove(index).end(arrival, how))
    }

    /// The stream was given up: all that is open ended with it.
    pub fn give_up(&mut self, arrival: Arrival) -> Vec<EndedCall> {
        self.open.drain(..).map(|open| open.end(arrival, Seen::GivenUp)).collect()
    }

    /// Calls without a result so far, with their tools, oldest first.
    pub fn open(&self) -> impl Iterator<Item = (&str, &str)> {
        self.open.iter().map(|open| (open.call.as_str(), open.tool.as_str()))
    }

    fn begin(&mut self, call: &str, tool: &str, since: Arrival) {
        // Told twice, it began the first time.
        if self.open.iter().any(|open| open.call == call) {
            return;
        }
        if self.open.len() == MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push(Open { call: call.to_owned(), tool: tool.to_owned(), since, asked: false });
    }
}

impl Open {
    fn end(self, arrival: Arrival, how: Seen) -> EndedCall {
        let Self { call, tool, since, asked } = self;
        let is_known = arrival.burst != since.burst && !asked;
        let duration_ms = is_known.then(|| arrival.at_ms.saturating_sub(since.at_ms));
        EndedCall { call, tool, duration_ms, how }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn called(call: &str, tool: &str) -> Part {
        Part::ToolCall { call: call.into(), tool: tool.into(), input: Value::Null }
    }

    fn answered(call: &str, preliminary: bool) -> Part {
        Part::ToolResult { call: call.into(), output: Value::Null, preliminary }
    }

    fn run(parts: &[(u64, Part)]) -> (Vec<(String, Option<u64>, Seen)>, Calls) {
        let mut calls = Calls::default();
        let ended = parts
            .iter()
            .filter_map(|(at_ms, part)| calls.take(part, Arrival { at_ms: *at_ms, burst: *at_ms }))
            .map(|ended| (ended.tool, ended.duration_ms, ended.how))
            .collect();
        (ended, calls)
    }

    #[test]
    fn gaps_are_durations() {
        let failed = Part::ToolError { call: "2".into(), error: "e".into() };
        let (ended, calls) = run(&[
            (5, called("1", "a")),
            (7, called("2", "b")),
            (8, called("1", "a")),
            (9, answered("1", true)),
            (20, failed),
            (30, answered("1", false)),
            (31, answered("1", false)),
            (32, called("3", "c")),
            (32, answered("3", false)),
            (40, called("4", "d")),
            (41, Part::ToolDenied { call: "4".into() }),
            (50, called("5", "e")),
            (51, Part::ToolApprovalRequest { call: "5".into() }),
            (90, answered("5", false)),
        ]);
        let expected = [
            ("b".to_owned(), Some(13), Seen::Error),
            ("a".to_owned(), Some(25), Seen::Result),
            ("c".to_owned(), None, Seen::Result),
            ("e".to_owned(), None, Seen::Result),
        ];
        assert_eq!(ended, expected);
        assert_eq!(calls.open().count(), 0);
    }

    #[test]
    fn what_is_given_up_took_at_least_so_long() {
        let (_, mut calls) = run(&[(5, called("1", "a"))]);
        assert_eq!(calls.open().collect::<Vec<_>>(), [("1", "a")]);
        let ended = calls.give_up(Arrival { at_ms: 105, burst: 9 });
        assert_eq!((ended[0].duration_ms, ended[0].how), (Some(100), Seen::GivenUp));
        let (_, mut calls) = run(&(0..1500).map(|call| (call, called(&call.to_string(), "t"))).collect::<Vec<_>>());
        assert_eq!(calls.give_up(Arrival { at_ms: 0, burst: 9 }).len(), MAX_OPEN);
    }
}
