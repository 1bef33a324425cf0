//! Where a library hands over its proposals: copied, checked and counted before the call returns.
#![allow(unsafe_code, reason = "a function that foreign code calls")]

use std::ptr;
use std::sync::{Mutex, PoisonError};

use almanac_plugin_abi::{Sink, Suggestion, code, read_prefix};

use super::ask::Proposal;
use super::text;
use super::wire::{MAX_PROPOSALS, MAX_REASON_BYTES, MAX_TOOL_BYTES};

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
        *self.collected.lock().unwrap_or_else(PoisonError::into_inner) =
            Collected { is_open: true, most: most.min(MAX_PROPOSALS), proposals: Vec::new() };
        &self.sink
    }

    /// What was handed over. From now on nothing is taken.
    pub(super) fn close(&self) -> Vec<Proposal> {
        std::mem::take(&mut *self.collected.lock().unwrap_or_else(PoisonError::into_inner)).proposals
    }
}

// SAFETY: the pointer in `sink` leads to `collected`, which is shared by reference and locked.
unsafe impl Sync for Collector {}

unsafe extern "C" fn push(sink: *const Sink, suggestion: *const Suggestion) -> i32 {
    // SAFETY: the library hands back the sink it was given, which is never freed.
    let collected = unsafe { sink.as_ref().and_then(|sink| sink.context.cast::<Mutex<Collected>>().as_ref()) };
    let Some(collected) = collected else { return code::INVALID };
    // SAFETY: the library lends us a suggestion, whose size stands first.
    let Some(proposal) = (unsafe { read(suggestion) }) else { return code::INVALID };
    let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
    if collected.is_open && collected.proposals.len() < collected.most {
        collected.proposals.push(proposal);
    }
    if collected.proposals.len() < collected.most { code::OK } else { code::STOP }
}

/// # Safety
/// `suggestion` is null, or a suggestion as long as it says, with readable texts.
unsafe fn read(suggestion: *const Suggestion) -> Option<Proposal> {
    if suggestion.is_null() {
        return None;
    }
    // SAFETY: the size is the first field of every version, and covers the rest.
    let suggestion = unsafe { read_prefix(suggestion, suggestion.cast::<u32>().read_unaligned() as usize) }?;
    if suggestion.score.is_nan() || suggestion.tool.len > MAX_TOOL_BYTES {
        return None;
    }
    // SAFETY: the texts are lent until the call returns.
    let (tool, reason) =
        unsafe { (text::cut(suggestion.tool, MAX_TOOL_BYTES)?, text::cut(suggestion.reason, MAX_REASON_BYTES)?) };
    if tool.is_empty() || reason.is_empty() {
        return None;
    }
    Some(Proposal { tool: tool.to_owned(), reason: reason.to_owned(), score: suggestion.score.clamp(0.0, 1.0) })
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
        check(tool, Str::new(&long), 7.0, size, code::OK);
        check(tool, why, -1.0, size, code::STOP);
        check(tool, why, 0.5, size, code::STOP);
        let proposals = collector.close();
        assert_eq!(proposals.iter().map(|proposal| proposal.score).collect::<Vec<_>>(), [1.0, 0.0]);
        assert_eq!(proposals[0].reason.len(), MAX_REASON_BYTES);
        check(tool, why, 0.5, size, code::STOP);
        assert!(collector.close().is_empty(), "a closed sink takes nothing");
    }
}
