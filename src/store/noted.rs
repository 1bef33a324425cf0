//! What of a tenant's notes goes with what it said: choices made for a text, and sessions that stand at one.

use std::collections::{BTreeSet, HashMap};

use super::notes::digest;
use crate::session::turns::{MAX_MESSAGE_BYTES, MAX_SAID_BYTES};
use crate::text::head::head;

/// What is noted of a tenant, by what it is found by, and what of it is to go.
#[derive(Debug, Default)]
pub(super) struct Noted {
    choices: HashMap<String, Vec<i64>>,
    /// By the message they stand at.
    turns: HashMap<String, Vec<String>>,
    /// By the beginnings of the messages that they are about.
    said: HashMap<String, Vec<String>>,
    /// By the digests of the messages of turns that are kept.
    kept: HashMap<[u8; 16], Vec<String>>,
    sessions: BTreeSet<String>,
    /// Numbers of choices.
    pub(super) gone_choices: BTreeSet<i64>,
    /// Names of sessions.
    pub(super) gone: BTreeSet<String>,
}

impl Noted {
    /// There is a choice of this number.
    pub(super) fn note_choice(&mut self, id: i64, message: String) {
        self.choices.entry(message).or_default().push(id);
    }

    /// There is a session that stands at this message, about those whose beginnings are listed in JSON.
    pub(super) fn note_turn(&mut self, session: String, message: Option<String>, said: Option<&str>) {
        if let Some(message) = message {
            self.turns.entry(message).or_default().push(session.clone());
        }
        let said = said.map(serde_json::from_str::<Vec<String>>);
        for message in said.and_then(Result::ok).into_iter().flatten() {
            self.said.entry(message).or_default().push(session.clone());
        }
        self.sessions.insert(session);
    }

    /// There is a turn that is kept, of a message with this digest. One of another length is nobody's.
    pub(super) fn note_kept(&mut self, session: String, digest: &[u8]) {
        if let Ok(digest) = digest.try_into() {
            self.kept.entry(digest).or_default().push(session);
        }
    }

    pub(super) fn forget_sessions(&mut self, names: impl Iterator<Item = String>) {
        self.gone.extend(names.filter(|name| self.sessions.contains(name)));
    }

    pub(super) fn forget_text(&mut self, text: &str) {
        let text = head(text, MAX_MESSAGE_BYTES);
        self.gone_choices.extend(self.choices.remove(text).into_iter().flatten());
        // Sessions without a message stand at none.
        if !text.is_empty() {
            self.gone.extend(self.turns.remove(text).into_iter().flatten());
            self.gone.extend(self.kept.remove(&digest(text)).into_iter().flatten());
            self.gone.extend(self.said.remove(head(text, MAX_SAID_BYTES)).into_iter().flatten());
        }
    }
}
