//! Chat streams: what an agent's model sends to its user while it works, tool calls included.
//!
//! Two protocols carry it in the field. The data stream of AI SDK 4 (`data-v1`) is lines of a code, a colon and JSON;
//! the UI message stream of AI SDK 5 and later (`ui-v1`) is server-sent events of typed JSON objects. Both are read
//! into one model, [`Part`], from bytes cut anywhere. A line that cannot be read is a [`LineFault`] and the next one is
//! read all the same: the published clients give up the whole stream instead, and read only the first element of a data
//! line.
//!
//! What the field's servers send beyond the protocols is accepted where clients accept it: a null `usage`, finish
//! reasons of their own, `f:{"id"}`, `9:` with its result, lines of two lanes (`a0:`), `tool-call` and `tool-result`
//! events, `data-custom`.

pub mod calls;
mod data_v1;
mod lines;
pub mod parser;
pub mod part;
mod part_error;
pub mod render;
mod ui_v1;

pub use calls::{Arrival, Calls, EndedCall, Seen};
pub use parser::{LineFault, Parser, Read};
pub use part::{Part, StepUsage};

use crate::strict::Word;

/// A protocol of chat streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The data stream of AI SDK 4.
    DataV1,
    /// The UI message stream of AI SDK 5 and later.
    UiV1,
}

impl Protocol {
    /// The header by which an answer says that it is of this protocol, with the value `v1`.
    pub fn header(self) -> &'static str {
        match self {
            Self::DataV1 => "x-vercel-ai-data-stream",
            Self::UiV1 => "x-vercel-ai-ui-message-stream",
        }
    }

    /// The content type of an answer.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::DataV1 => "text/plain; charset=utf-8",
            Self::UiV1 => "text/event-stream",
        }
    }
}
