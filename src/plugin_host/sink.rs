//! Where a library hands over its proposals: copied, checked and counted before the call returns.
#![allow(unsafe_code, reason = "a function that foreign code calls")]

use std::ptr;

use almanac_plugin_abi::{Sink, Suggestion, code, read_prefix};

use super::ask::Proposal;
use super::text::{self, is_blank, is_control, without_controls};
use super::wire::{MAX_PROPOSALS, MAX_REASON_BYTES, MAX_TOOL_BYTES};
use parking_lot::{Mutex, MutexGuard};

/// The sink of one instance. Never freed, so that a thread which outlives its call pushes into a sink that is closed.
pub(super) struct Collector {
    sink: Sink,
    collected: Mutex<Collected>,
}

#[derive(Default)]
struct Collected {
    is_open: bool,
    most: usize,
    proposals: Vec<Proposal>,
    /// All that were found so far, each once; the first `reported` were reported.
    flaws: Vec<Flaw>,
    reported: usize,
}

impl Collected {
    fn note(&mut self, flaw: Flaw) {
        if !self.flaws.contains(&flaw) {
            self.flaws.push(flaw);
        }
    }
}

/// Why a proposal was not taken, or not as it was. Said to the library's author, who may not look at what `push`
/// returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    #[error("a proposal was refused: there is none, or its `struct_size` is less than that of version 1.0")]
    Size,
    #[error("a proposal was refused: its `score` is no number")]
    NotANumber,
    #[error("a proposal was refused: its `tool` is empty, longer than {MAX_TOOL_BYTES} bytes, or no UTF-8")]
    Tool,
    #[error("a proposal was refused: its `reason` is empty, blank or no UTF-8")]
    Reason,
    #[error("a `score` was moved to the nearer of 0 and 1, between which it has to be")]
    Score,
    #[error("a `reason` was cut to {MAX_REASON_BYTES} bytes")]
    LongReason,
    #[error("control characters in a `reason`, such as ends of lines, became blanks")]
    ControlCharacters,
}

impl Collector {
    pub(super) fn leak() -> &'static Self {
        let sink =
            Sink { struct_size: size_of::<Sink>() as u32, reserved: 0, context: ptr::null_mut(), push: Some(push) };
        let collector = Box::leak(Box::new(Self { sink, collected: Mutex::default() }));
        collector.sink.context = (&raw const collector.collected).cast_mut().cast();
        collector
    }

    /// The table as a library sees it, open for `most` proposals, and [`MAX_PROPOSALS`] at most.
    pub(super) fn open(&self, most: usize) -> &Sink {
        let mut collected = self.lock();
        (collected.is_open, collected.most, collected.proposals) = (true, most.min(MAX_PROPOSALS), Vec::new());
        &self.sink
    }

    /// What was handed over. From now on nothing is taken.
    pub(super) fn close(&self) -> Vec<Proposal> {
        let mut collected = self.lock();
        collected.is_open = false;
        collected.most = 0;
        std::mem::take(&mut collected.proposals)
    }

    /// Flaws of proposals, each once, that this did not tell before.
    pub(super) fn new_flaws(&self) -> Vec<Flaw> {
        let mut collected = self.lock();
        let fresh = collected.flaws[collected.reported..].to_vec();
        collected.reported = collected.flaws.len();
        fresh
    }

    /// All flaws of proposals so far.
    pub(super) fn flaws(&self) -> Vec<Flaw> {
        self.lock().flaws.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock()
    }
}

// SAFETY: the pointer in `sink` leads to `collected`, which is shared by reference and locked.
unsafe impl Sync for Collector {}

unsafe extern "C" fn push(sink: *const Sink, suggestion: *const Suggestion) -> i32 {
    // SAFETY: the library hands back the sink it was given, which is never freed.
    let collected = unsafe { sink.as_ref().and_then(|sink| sink.context.cast::<Mutex<Collected>>().as_ref()) };
    let Some(collected) = collected else { return code::INVALID };
    // SAFETY: the library lends us a suggestion, whose size stands first.
    let read = unsafe { read(suggestion) };
    let mut collected = collected.lock();
    let proposal = match read {
        Ok((proposal, flaws)) => {
            flaws.into_iter().flatten().for_each(|flaw| collected.note(flaw));
            proposal
        }
        Err(flaw) => {
            collected.note(flaw);
            return code::INVALID;
        }
    };
    if collected.is_open && collected.proposals.len() < collected.most {
        collected.proposals.push(proposal);
    }
    if collected.proposals.len() < collected.most { code::OK } else { code::STOP }
}

/// The proposal, and what of it was changed.
///
/// # Safety
/// `suggestion` is null, or a suggestion as long as it says, with readable texts.
unsafe fn read(suggestion: *const Suggestion) -> Result<(Proposal, [Option<Flaw>; 3]), Flaw> {
    if suggestion.is_null() {
        return Err(Flaw::Size);
    }
    // SAFETY: the size is the first field of every version, and covers the rest.
    let suggestion = unsafe { read_prefix(suggestion, suggestion.cast::<u32>().read_unaligned() as usize) };
    let Suggestion { tool, reason, score, .. } = suggestion.ok_or(Flaw::Size)?;
    if score.is_nan() {
        return Err(Flaw::NotANumber);
    }
    if tool.len > MAX_TOOL_BYTES {
        return Err(Flaw::Tool);
    }
    let is_long = reason.len > MAX_REASON_BYTES;
    // SAFETY: the texts are lent until the call returns.
    let (tool, reason) = unsafe { (text::cut(tool, MAX_TOOL_BYTES), text::cut(reason, MAX_REASON_BYTES)) };
    let tool = tool.filter(|tool| !tool.is_empty()).ok_or(Flaw::Tool)?;
    let reason = reason.filter(|reason| !reason.chars().all(is_blank)).ok_or(Flaw::Reason)?;
    let flaws = [
        (!(0.0..=1.0).contains(&score)).then_some(Flaw::Score),
        is_long.then_some(Flaw::LongReason),
        reason.contains(is_control).then_some(Flaw::ControlCharacters),
    ];
    let (reason, score) = (without_controls(reason), score.clamp(0.0, 1.0));
    Ok((Proposal { tool: tool.to_owned(), reason, score }, flaws))
}

#[cfg(test)]
mod tests {
    use almanac_plugin_abi::Str;

    use super::*;

    #[test]
    fn proposals_are_copied_checked_and_counted() {
        let collector = Collector::leak();
        let long = "ä".repeat(MAX_REASON_BYTES);
        let check = |tool: Str, reason: Str, score: f64, size: u32, expected: i32| {
            let suggestion = Suggestion { struct_size: size, reserved: 0, tool, reason, score };
            // SAFETY: the sink and the suggestion live.
            assert_eq!(unsafe { push(&raw const collector.sink, &raw const suggestion) }, expected);
        };
        let (size, why) = (size_of::<Suggestion>() as u32, Str::new("why"));
        let invalid = Str { data: b"\xff\xfe".as_ptr(), len: 2 };
        let tool = Str::new("t");
        collector.open(2);
        check(tool, why, f64::NAN, size, code::INVALID);
        check(Str::new(""), why, 0.5, size, code::INVALID);
        check(tool, Str::new(""), 0.5, size, code::INVALID);
        check(Str::ABSENT, why, 0.5, size, code::INVALID);
        check(invalid, why, 0.5, size, code::INVALID);
        check(tool, invalid, 0.5, size, code::INVALID);
        check(tool, why, 0.5, size - 1, code::INVALID);
        check(Str::new(&long), why, 0.5, size, code::INVALID);
        check(tool, Str::new(" \n\u{202e}"), 0.5, size, code::INVALID);
        check(tool, Str::new(&long), 7.0, size, code::OK);
        check(tool, why, -1.0, size, code::STOP);
        check(tool, why, 0.5, size, code::STOP);
        let proposals = collector.close();
        assert_eq!(proposals.iter().map(|proposal| proposal.score).collect::<Vec<_>>(), [1.0, 0.0]);
        assert_eq!(proposals[0].reason.len(), MAX_REASON_BYTES);
        check(tool, why, 0.5, size, code::STOP);
        assert!(collector.close().is_empty(), "a closed sink takes nothing");
        collector.open(1);
        check(tool, Str::new("line\nred \x1b[31m \u{7}\u{202e}rtl"), 0.5, size, code::STOP);
        assert_eq!(collector.close()[0].reason, "line red  [31m   rtl");
        let refused = [Flaw::NotANumber, Flaw::Tool, Flaw::Reason, Flaw::Size];
        let flaws = [&refused[..], &[Flaw::Score, Flaw::LongReason, Flaw::ControlCharacters]].concat();
        assert_eq!((collector.new_flaws(), collector.new_flaws()), (flaws.clone(), Vec::new()));
        assert_eq!(collector.flaws(), flaws);
    }
}
