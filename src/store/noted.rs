//! What of a tenant's notes goes with what it said: choices made for a text, and sessions that stand at one.

use std::collections::{BTreeSet, HashMap};

use super::forgotten_texts::{ForgottenTexts, TextDigest};
use super::notes::digest;

/// What is noted of a tenant, by the texts it is found by, and what of it is to go.
#[derive(Debug, Default)]
pub(super) struct Noted {
    choices: HashMap<TextDigest, Vec<i64>>,
    /// By the message that each stands at, the beginnings of those that it is about, and the messages of its turns that
    /// are kept.
    saying: HashMap<TextDigest, Vec<String>>,
    sessions: BTreeSet<String>,
    /// Numbers of choices.
    pub(super) gone_choices: BTreeSet<i64>,
    /// Names of sessions.
    pub(super) gone: BTreeSet<String>,
}

impl Noted {
    /// There is a choice of this number.
    pub(super) fn note_choice(&mut self, id: i64, message: &str) {
        self.choices.entry(digest(message)).or_default().push(id);
    }

    /// There is a session that was told these.
    pub(super) fn note_turn(&mut self, session: String, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.saying.entry(digest(&text)).or_default().push(session.clone());
        }
        self.sessions.insert(session);
    }

    /// There is a turn that is kept, of a message with this digest. One of another length is nobody's.
    pub(super) fn note_kept(&mut self, session: String, digest: &[u8]) {
        if let Ok(digest) = digest.try_into() {
            self.saying.entry(digest).or_default().push(session);
        }
    }

    pub(super) fn forget_sessions(&mut self, names: impl IntoIterator<Item = String>) {
        self.gone.extend(names.into_iter().filter(|name| self.sessions.contains(name)));
    }

    /// Finds what goes with a text, which joins those that went.
    pub(super) fn forget_text(&mut self, text: &str, texts: &mut ForgottenTexts) {
        for digest in texts.insert(text) {
            self.gone_choices.extend(self.choices.remove(&digest).into_iter().flatten());
            self.gone.extend(self.saying.remove(&digest).into_iter().flatten());
        }
    }

    /// Finds what goes with texts that went before.
    pub(super) fn forget_texts(&mut self, texts: &ForgottenTexts) {
        let choices = self.choices.extract_if(|digest, _| texts.has_digest(digest));
        self.gone_choices.extend(choices.flat_map(|(_, ids)| ids));
        let sessions = self.saying.extract_if(|digest, _| texts.has_digest(digest));
        self.gone.extend(sessions.flat_map(|(_, names)| names));
    }
}
