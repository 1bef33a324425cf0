//! What daemon and worker say to each other: frames of a length and a postcard body.
//!
//! Private to one build, since both ends are the same binary. The daemon takes nothing a worker says on trust: foreign
//! code lives there and can write to the socket itself. A frame has a limit, a body must decode to its last byte, and
//! an answer must carry the number of its question.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::{Ask, Proposal, Snapshot};
use super::text::{is_control, without_controls};
use crate::strict::Word;

/// Bytes of a frame's length, little-endian.
pub(super) const HEAD: usize = 4;

/// Longest frame to a worker, in bytes: a catalog of 10,000 tools takes some two million.
pub(super) const MAX_ORDER: usize = 1 << 28;

/// Longest frame from a worker, in bytes: [`MAX_PROPOSALS`] of the longest take some 40,000.
pub(super) const MAX_REPLY: usize = 1 << 18;

/// Proposals of one library for one call; what comes after is dropped.
pub(super) const MAX_PROPOSALS: usize = 32;

/// Longest name of a proposed tool, in bytes: the catalog's limit is 128 characters.
pub(super) const MAX_TOOL_BYTES: usize = 512;

/// Longest reason, in bytes; longer ones are cut.
pub(super) const MAX_REASON_BYTES: usize = 1024;

/// Longest message about a failure, in bytes; longer ones are cut.
pub(super) const MAX_MESSAGE_BYTES: usize = 512;

/// What the daemon tells a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Order<S = String> {
    /// The first: how to live, and what the library says it is.
    Setup(Setup),
    /// The catalog; the second, and then each new generation.
    Snapshot(Snapshot),
    Ask {
        /// Comes back with the answer.
        number: u64,
        /// How long somebody waits for it.
        patience: Duration,
        ask: Arc<Ask<S>>,
    },
    /// One experiment of the validator.
    Try(Experiment),
}

/// How a worker is to live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Setup {
    /// Address space, in bytes.
    pub(super) max_memory_bytes: u64,
    /// Give up where the kernel cannot confine files.
    pub(super) require_sandbox: bool,
    /// The library's configuration, a JSON object.
    pub(super) settings: String,
    /// What the note in the file says: id and version.
    pub(super) noted: (String, String),
}

/// What the validator does with a library beyond calling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Experiment {
    /// Make a second instance, ask it, destroy it, several times over.
    Instances,
    /// Structs as an older host makes them: shorter ones.
    SmallStructs,
    /// Structs and elements as a newer host makes them: longer ones, with bytes nobody knows.
    LargeStructs,
    /// A sink that says stop at once.
    StopAtOnce,
    /// A configuration that is no JSON; the library may refuse it, not fall over.
    BadSettings,
    /// Texts, numbers and enums at and beyond their edges.
    HostileInputs,
    /// Destroy the instance, and make it again.
    Rebirth,
    /// What was wrong with the proposals of all calls so far?
    Flaws,
}

/// What a worker tells the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The library is loaded, made and has answered a first call.
    Ready(Hello),
    /// It cannot be used.
    Failed(String),
    /// The catalog was told, or why not.
    Snapshotted(Result<(), Refusal>),
    /// The answer to a call.
    Answer {
        number: u64,
        /// Proposals, or the library's error.
        outcome: Result<Vec<Proposal>, Refusal>,
    },
    /// How an experiment ended.
    Tried(Result<String, Flaw>),
}

/// A library's own error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refusal {
    /// What it said, or its code.
    pub(super) message: String,
    /// The instance will answer nothing else.
    pub(super) for_good: bool,
}

/// What an experiment found wrong with a library, in words for its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct Flaw(String);

impl From<String> for Flaw {
    fn from(description: String) -> Self {
        Self(description)
    }
}

impl From<&str> for Flaw {
    fn from(description: &str) -> Self {
        Self(description.to_owned())
    }
}

/// A library that is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub id: String,
    /// Its name for people.
    pub name: String,
    pub version: String,
    /// Who made it; may be empty.
    pub vendor: String,
    /// Where to read on; may be empty.
    pub url: String,
    /// The minor version of the interface that it was built with.
    pub abi_minor: u32,
    /// Does it want to be told the catalog?
    pub wants_snapshots: bool,
    /// How it is confined.
    pub sandbox: Confined,
    /// What it lacks to be confined fully.
    pub lacks: Vec<Lack>,
}

/// How far the kernel confines a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Word)]
pub enum Confined {
    /// Not at all: it runs in the daemon.
    #[default]
    #[serde(rename = "none")]
    No,
    /// System calls only: the kernel has no Landlock.
    #[serde(rename = "system_calls")]
    Calls,
    /// System calls and files, but with a [`Lack`].
    #[serde(rename = "partial")]
    Partly,
    /// System calls, files and sockets, with user and network namespaces of its own.
    #[serde(rename = "full")]
    Fully,
}

/// How a worker is confined, for people: the word for it, and those for what it lacks.
pub fn confinement(sandbox: &str, lacks: &[impl Borrow<str>]) -> String {
    if lacks.is_empty() { sandbox.to_owned() } else { format!("{sandbox} (without {})", lacks.join(", ")) }
}

/// What keeps a worker from being confined fully.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// It has no user namespace: the kernel, or whoever set it up, grants none.
    UserNamespace,
    /// It has no network namespace.
    NetworkNamespace,
    /// The kernel's Landlock has some of the rights only.
    LandlockRights,
    /// The kernel has no Landlock: what the daemon's user can read, it can read.
    Landlock,
}

/// Something that is no frame of ours.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("a frame of {0} bytes is too long")]
    Long(usize),
    #[error("a frame is not what this version writes: {0}")]
    Garbled(#[from] postcard::Error),
    #[error("a frame has {0} bytes too many")]
    Trailing(usize),
}

/// The message as a frame, appended to `frame`.
pub(super) fn encode(message: &impl Serialize, frame: &mut Vec<u8>) {
    let start = frame.len();
    frame.extend_from_slice(&[0; HEAD]);
    let written = postcard::to_extend(message, std::mem::take(frame));
    *frame = written.expect("messages are structs and enums of known length, and a vector grows");
    let length = u32::try_from(frame.len() - start - HEAD).expect("a message has less than 4 GiB");
    frame[start..start + HEAD].copy_from_slice(&length.to_le_bytes());
}

/// The length of the first frame in `bytes` with its head, as soon as that is there.
pub(super) fn frame_length(bytes: &[u8], limit: usize) -> Result<Option<usize>, WireError> {
    let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_le_bytes(*head) as usize;
    if length > limit { Err(WireError::Long(length)) } else { Ok(Some(HEAD + length)) }
}

/// The message of a whole frame.
pub(super) fn decode<'f, T: Deserialize<'f>>(frame: &'f [u8]) -> Result<T, WireError> {
    let (message, rest) = postcard::take_from_bytes(&frame[HEAD..])?;
    if rest.is_empty() { Ok(message) } else { Err(WireError::Trailing(rest.len())) }
}

/// Brings proposals into their bounds, whoever sent them: a library through its sink, or by writing to the socket
/// itself.
pub(super) fn clamp(proposals: &mut Vec<Proposal>) {
    proposals.truncate(MAX_PROPOSALS);
    proposals.retain(|proposal| {
        !proposal.tool.is_empty() && proposal.tool.len() <= MAX_TOOL_BYTES && !proposal.score.is_nan()
    });
    for proposal in proposals {
        if proposal.reason.contains(is_control) {
            proposal.reason = without_controls(&proposal.reason);
        }
        cut(&mut proposal.reason, MAX_REASON_BYTES);
        proposal.score = proposal.score.clamp(0.0, 1.0);
    }
}

/// Cuts text to at most `limit` bytes, between two characters.
pub(super) fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever a worker writes is a message or an error, and a message is read as it was written.
        #[test]
        fn frames_hold(
            reason in ".{0,40}",
            score: f64,
            number: u64,
            noise in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let proposal = Proposal { tool: "t".to_owned(), reason, score };
            let reply = Reply::Answer { number, outcome: Ok(vec![proposal]) };
            let mut frame = Vec::new();
            encode(&reply, &mut frame);
            prop_assert_eq!(frame_length(&frame, MAX_REPLY).unwrap(), Some(frame.len()));
            prop_assert_eq!(format!("{:?}", decode::<Reply>(&frame).unwrap()), format!("{reply:?}"));
            frame.push(0);
            prop_assert!(decode::<Reply>(&frame).is_err());
            let mut made_up = vec![0; HEAD];
            made_up.extend(&noise);
            let _ = decode::<Reply>(&made_up);
            let _ = frame_length(&noise, MAX_REPLY);
        }

        /// What is clamped is in its bounds, and stays as it is when clamped again.
        #[test]
        fn proposals_are_brought_into_bounds(
            entries in prop::collection::vec((".{0,3}", ".{0,3}", any::<f64>(), 0usize..600), 0..40),
        ) {
            let long = |(tool, reason, score, times): (String, String, f64, usize)| {
                Proposal { tool: tool.repeat(times % 200), reason: reason.repeat(times), score }
            };
            let mut proposals: Vec<Proposal> = entries.into_iter().map(long).collect();
            clamp(&mut proposals);
            prop_assert!(proposals.len() <= MAX_PROPOSALS);
            for proposal in &proposals {
                prop_assert!((1..=MAX_TOOL_BYTES).contains(&proposal.tool.len()));
                prop_assert!(proposal.reason.len() <= MAX_REASON_BYTES && (0.0..=1.0).contains(&proposal.score));
            }
            let again = { let mut again = proposals.clone(); clamp(&mut again); again };
            prop_assert_eq!(again, proposals);
        }
    }

    #[test]
    fn a_long_frame_is_refused_by_its_head() {
        let head = u32::try_from(MAX_REPLY + 1).unwrap().to_le_bytes();
        assert!(matches!(frame_length(&head, MAX_REPLY), Err(WireError::Long(_))));
        assert!(matches!(frame_length(&head[..3], MAX_REPLY), Ok(None)));
    }

    /// Whatever a worker writes is a message within its bounds, or an error.
    #[test]
    fn fuzz_replies() {
        // What is no reply of this version reaches little.
        assert!(decode::<Reply>(include_bytes!("../../tests/corpus/replies/answer")).is_ok());
        crate::text::edits::fuzz("replies", |bytes| {
            let Ok(Some(length)) = frame_length(bytes, MAX_REPLY) else { return };
            let Some(frame) = bytes.get(..length) else { return };
            let Ok(Reply::Answer { outcome: Ok(mut proposals), .. }) = decode::<Reply>(frame) else { return };
            clamp(&mut proposals);
            assert!(proposals.len() <= MAX_PROPOSALS);
            assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
        });
    }
}
