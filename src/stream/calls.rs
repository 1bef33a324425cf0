//! Durations of tool calls, seen from outside: from a call's part to its result's, by the times at which they arrived.
//!
//! Neither protocol carries times, so a result that arrives together with its call has no duration that could be known,
//! and none is made up; nor is there one of a call for which the user was asked, as people take longer than tools. A
//! call that the stream gave up on took at least as long as was waited for it.
//!
//! AI SDK 4 tells a tool's failure as a failure of the stream that names neither call nor, mostly, tool, and goes on.
//! It is that of the one call which is open when the step ends; of several nobody can say which of them failed when.

use super::Protocol;
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
    protocol: Option<Protocol>,
    open: Vec<Open>,
    begun: u64,
    /// Failures that are some open call's, with the number of calls that had begun.
    failures: Vec<(u64, Arrival)>,
}

#[derive(Debug)]
struct Open {
    number: u64,
    call: String,
    tool: String,
    since: Arrival,
    /// Is it not known how long it took: did it wait for the user's consent, or may it have failed at any time?
    is_untimed: bool,
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
    /// Of a stream of this protocol.
    pub fn of(protocol: Protocol) -> Self {
        Self { protocol: Some(protocol), ..Self::default() }
    }

    /// Takes note of a part; the calls that it ended.
    pub fn take(&mut self, part: &Part, arrival: Arrival) -> Vec<EndedCall> {
        match part {
            Part::Error(text) if self.protocol == Some(Protocol::DataV1) => self.fail(text, arrival),
            Part::FinishStep { .. } | Part::Finish { .. } => self.settle(),
            part => self.take_call(part, arrival).into_iter().collect(),
        }
    }

    /// Something failed, possibly a tool: the one that is named, or one that is still open at the end of the step.
    fn fail(&mut self, text: &str, arrival: Arrival) -> Vec<EndedCall> {
        let mut named = self.open.iter().enumerate().filter(|(_, open)| names(text, open)).map(|(index, _)| index);
        if let (Some(index), None) = (named.next(), named.next()) {
            return vec![self.open.remove(index).end(arrival, Seen::Error)];
        }
        if self.failures.len() < self.open.len() {
            self.failures.push((self.begun, arrival));
        }
        Vec::new()
    }

    /// A step, or the stream, came to its end: whose are the failures? They are of calls that had begun before them.
    pub fn settle(&mut self) -> Vec<EndedCall> {
        let failures = std::mem::take(&mut self.failures);
        let Some(&(begun, latest)) = failures.last() else { return Vec::new() };
        let (concerned, others): (Vec<Open>, Vec<Open>) = self.open.drain(..).partition(|open| open.number < begun);
        self.open = others;
        let is_one = failures.len() == 1 && concerned.len() == 1;
        let concerned = concerned.into_iter().map(|open| Open { is_untimed: open.is_untimed || !is_one, ..open });
        if concerned.len() <= failures.len() {
            concerned.map(|open| open.end(latest, Seen::Error)).collect()
        } else {
            self.open.splice(0..0, concerned);
            Vec::new()
        }
    }

    fn take_call(&mut self, part: &Part, arrival: Arrival) -> Option<EndedCall> {
        let (call, how) = match part {
            Part::ToolCall { call, tool, .. } => {
                self.begin(call, tool, arrival);
                return None;
            }
            Part::ToolApprovalRequest { call } => {
                if let Some(open) = self.open.iter_mut().find(|open| open.call == *call) {
                    open.is_untimed = true;
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
        self.open.push(Open {
            number: self.begun,
            call: call.to_owned(),
            tool: tool.to_owned(),
            since,
            is_untimed: false,
        });
        self.begun += 1;
    }
}

/// Does the text of a failure name this call: its id, or its tool as AI SDK 4's own failures do?
fn names(text: &str, open: &Open) -> bool {
    let by_tool = text.split_once("executing tool ").and_then(|(_, rest)| rest.strip_prefix(open.tool.as_str()));
    by_tool.is_some_and(|rest| rest.starts_with(':')) || (open.call.len() >= MIN_ID && text.contains(&open.call))
}

/// Ids that are shorter stand in other words as well.
const MIN_ID: usize = 8;

impl Open {
    fn end(self, arrival: Arrival, how: Seen) -> EndedCall {
        let Self { call, tool, since, is_untimed, .. } = self;
        let is_known = arrival.burst != since.burst && !is_untimed;
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
        let mut calls = Calls::of(Protocol::DataV1);
        let ended = parts
            .iter()
            .flat_map(|(at_ms, part)| calls.take(part, Arrival { at_ms: *at_ms, burst: *at_ms }))
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

    fn failed(text: &str) -> Part {
        Part::Error(text.into())
    }

    #[test]
    fn a_failure_is_that_of_the_call_that_is_left() {
        let end = || Part::FinishStep { reason: None, usage: None, is_continued: false };
        let check = |parts: &[(u64, Part)], expected: &[(&str, Option<u64>, Seen)], left: usize| {
            let (ended, calls) = run(parts);
            let ended: Vec<_> = ended.iter().map(|(tool, ms, how)| (tool.as_str(), *ms, *how)).collect();
            assert_eq!((ended.as_slice(), calls.open().count()), (expected, left), "{parts:?}");
        };
        let (a, b) = (|| (1, called("call-one", "a")), || (2, called("call-two", "b")));
        check(&[a(), (11, failed("no")), (900, end())], &[("a", Some(10), Seen::Error)], 0);
        // The other's result comes after the failure.
        let parts = [a(), b(), (11, failed("no")), (21, answered("call-two", false)), (30, end())];
        check(&parts, &[("b", Some(19), Seen::Result), ("a", Some(10), Seen::Error)], 0);
        // It was the model that failed.
        let parts = [a(), (11, failed("no")), (21, answered("call-one", false)), (30, end())];
        check(&parts, &[("a", Some(20), Seen::Result)], 0);
        let named = failed("Error executing tool a: no");
        check(&[a(), b(), (11, named)], &[("a", Some(10), Seen::Error)], 1);
        check(&[a(), b(), (11, failed("call-two broke"))], &[("b", Some(9), Seen::Error)], 1);
        let both = [a(), b(), (11, failed("no")), (15, failed("no")), (30, end())];
        check(&both, &[("a", None, Seen::Error), ("b", None, Seen::Error)], 0);
        // Which of the two?
        check(&[a(), b(), (11, failed("no")), (30, end())], &[], 2);
        check(&[(0, failed("no")), a(), (30, end())], &[], 1);
        // The model failed, and called another tool then, which does not answer.
        let parts = [a(), (11, failed("no")), (12, answered("call-one", false)), b(), (30, end())];
        check(&parts, &[("a", Some(11), Seen::Result)], 1);
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
