//! Where suggestions go.

use std::marker::PhantomData;

use almanac_plugin_abi::{self as abi, Str, code, read_prefix};

use crate::view::Invalid;

/// Takes suggestions, best first.
#[derive(Debug)]
pub struct Sink<'a> {
    pointer: *const abi::Sink,
    push: unsafe extern "C" fn(*const abi::Sink, *const abi::Suggestion) -> i32,
    full: bool,
    borrowed: PhantomData<&'a abi::Sink>,
}

impl Sink<'_> {
    /// # Safety
    /// `sink` is null, or a sink that lives for `'a`.
    pub(crate) unsafe fn new(sink: *const abi::Sink) -> Result<Self, Invalid> {
        if sink.is_null() {
            return Err(Invalid("there is no sink"));
        }
        // SAFETY: every sink starts with its size, by the contract.
        let size = unsafe { (&raw const (*sink).struct_size).read() };
        // SAFETY: it has as many bytes as it says.
        let raw = unsafe { read_prefix(sink, size as usize) }.ok_or(Invalid("a sink is too small"))?;
        let push = raw.push.ok_or(Invalid("a sink takes nothing"))?;
        Ok(Self { pointer: sink, push, full: false, borrowed: PhantomData })
    }

    /// Proposes a tool.
    ///
    /// `tool` is its name in the catalog; a tool that doesn't exist is dropped. `reason` is one sentence for the agent
    /// to read. `score`, from 0 to 1, says how strongly: suggestions of several libraries are blended by it, and equal
    /// ones keep their order. It is clamped; NaN, and an empty name or reason, are refused.
    pub fn suggest(&mut self, tool: &str, reason: &str, score: f64) {
        if self.full {
            return;
        }
        let suggestion = abi::Suggestion {
            struct_size: size_of::<abi::Suggestion>() as u32,
            reserved: 0,
            tool: Str::new(tool),
            reason: Str::new(reason),
            score,
        };
        // SAFETY: the sink's own function, during the call that the sink was given for; the suggestion is borrowed.
        let answer = unsafe { (self.push)(self.pointer, &raw const suggestion) };
        self.full = answer == code::STOP;
    }

    /// Whether the daemon wants no more; what is proposed from now on is dropped.
    pub fn is_full(&self) -> bool {
        self.full
    }
}
