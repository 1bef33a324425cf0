//! Messages that need no tool: greetings, thanks, and what a model answers by itself.
//!
//! A message is compared with a few dozen such messages, and with the best tool. What reads more like small talk than like any
//! tool, and shares no telling word with the best ones, needs none.

use std::sync::LazyLock;

use super::message::Message;
use crate::text::embedding::Quantized;

/// One on each line.
const MESSAGES: &str = include_str!("quiet.txt");

/// How much more a message must be like one of these than like a tool.
const MARGIN: f32 = 0.12;

/// Likeness below which it is like none of them.
const LIKENESS: f32 = 0.6;

/// A tool that is this likely is needed, whatever the message sounds like.
const SURE: f32 = 0.6;

static MEANINGS: LazyLock<Box<[Quantized]>> =
    LazyLock::new(|| MESSAGES.lines().map(|line| Message::new(line).quantized).collect());

/// Does the message need no tool? `likeness` is the best tool's, `confidence` its probability.
pub(super) fn needs_no_tool(message: &Message, likeness: f32, confidence: f32) -> bool {
    if message.terms.is_empty() {
        return true;
    }
    let quiet = MEANINGS.iter().map(|quiet| quiet.dot(&message.quantized)).fold(0.0_f32, f32::max);
    quiet >= LIKENESS && quiet - likeness >= MARGIN && confidence < SURE
}
