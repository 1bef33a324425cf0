//! What selection must not forget: where each session stands, and which tools were chosen for which messages.
//!
//! No question waits for the disk: what it notes is there after an orderly end, and all but the last moment of it after
//! any other. What is reported is waited for, in a bound, so that what was acknowledged is not forgotten.
//!
//! Choices do not say whose message it was. Whoever asks that a person be forgotten is served by what is known: the
//! texts of the memories about that person, and the chats they were said in.

use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Store, StoreError};
use crate::session::turns::MAX_MESSAGE_BYTES;
use crate::text::head::head;

#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Where a session stands, in place of what was noted of it before.
    Turn(TurnNote),
    /// A choice, and what its tenant's choices have moved.
    Choice(ChoiceNote),
}

impl Note {
    /// Whose it is.
    pub fn tenant(&self) -> &str {
        match self {
            Self::Turn(turn) => &turn.tenant,
            Self::Choice(choice) => &choice.tenant,
        }
    }
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnNote {
    /// Whose session it is.
    pub tenant: String,
    pub session: String,
    /// Its turns so far, this one included; the note of a later one stands.
    pub number: i64,
    /// Its state; text whose form is its owner's.
    pub state: String,
    /// What is kept of this turn when later ones stand, if that is news; the last [`KEPT_TURNS`] of a session are.
    pub kept: Option<KeptTurnNote>,
}

/// What is kept of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTurnNote {
    /// What it is found by when its message is to be forgotten, which is not kept: see [`digest`].
    pub digest: [u8; 16],
    /// Text whose form is its owner's.
    pub state: String,
}

/// Turns of a session that are kept.
pub const KEPT_TURNS: i64 = 20;

/// What a message is known by where it is not kept.
pub fn digest(message: &str) -> [u8; 16] {
    let sum = Sha256::digest(head(message, MAX_MESSAGE_BYTES));
    sum[..16].try_into().expect("a SHA-256 sum has 32 bytes")
}

/// A tool that was chosen for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceNote {
    /// Whose choice it was.
    pub tenant: String,
    pub tool: String,
    pub message: String,
    /// How far it is trusted, 0 to 1.
    pub trust: f32,
    /// What moved with it; bytes whose form is their owner's.
    pub adaptation: Vec<u8>,
}

/// Everything noted, oldest first.
#[derive(Debug, Default)]
pub struct Notes {
    /// Where sessions stand, the one that was quiet longest first.
    pub turns: Vec<TurnNote>,
    /// Choices; the adaptation is the tenant's latest.
    pub choices: Vec<ChoiceNote>,
}

/// How long a report waits for its notes: the store is in trouble, or busy, if it takes longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Notes on their way to the disk.
#[derive(Debug, Default)]
pub struct NotesPending(pub(super) Vec<oneshot::Receiver<Result<(), StoreError>>>);

impl NotesPending {
    /// Waits until all of them are durable or refused; for threads that may block.
    pub fn wait(self) {
        for noted in self.0 {
            let _ = noted.blocking_recv();
        }
    }

    /// Waits until all of them are durable, for at most a second.
    ///
    /// # Errors
    /// If one is not stored, or not yet.
    pub async fn durable(self) -> Result<(), StoreError> {
        let all = async {
            for noted in self.0 {
                noted.await.map_err(|_| StoreError::Closed)??;
            }
            Ok(())
        };
        let late = || StoreError::Unavailable(format!("it takes longer than {} s", PATIENCE.as_secs()));
        timeout(PATIENCE, all).await.unwrap_or_else(|_| Err(late()))
    }
}

/// Where the notes of one question or report are made.
#[derive(Debug)]
pub struct Notepad<'s> {
    store: &'s dyn Store,
    noted: Result<NotesPending, StoreError>,
}

impl<'s> Notepad<'s> {
    pub fn new(store: &'s dyn Store) -> Self {
        Self { store, noted: Ok(NotesPending::default()) }
    }

    /// Notes it. A store that is busy or in trouble loses it, which it says itself; no answer fails for that.
    pub fn note(&mut self, note: Note) {
        match (self.store.note(vec![note]), &mut self.noted) {
            (Ok(noted), Ok(all)) => all.0.extend(noted.0),
            (Ok(_), Err(_)) => {}
            (Err(error), noted) => {
                tracing::debug!(%error, "a note was not taken");
                *noted = Err(error);
            }
        }
    }

    /// All that was noted; an error if any of it was not taken.
    pub fn close(self) -> Result<NotesPending, StoreError> {
        self.noted
    }
}
