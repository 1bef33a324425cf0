//! Ids of legacy sessions. An id holds all that is to be known of its session, under a MAC, so that a session costs no
//! memory and outlives the daemon: after "session not found" some clients never work again.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::capabilities::Capabilities;
use crate::jsonrpc::Version;
use crate::strict::replacement;

/// The file of the key, in the state directory.
const KEY_FILE: &str = "mcp-sessions.key";

/// For how long an id is taken.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What an id is ahead of our clock at most: the clock may have been set back.
const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);

/// The layout of an id; another one is none of ours.
const LAYOUT: u8 = 1;

/// Bytes of an id before its MAC: layout, version, capabilities, when it was made, random, view, token.
const BODY: usize = 1 + 1 + 2 + 4 + 8 + 8 + 8;

/// Bytes of the MAC that are kept: 128 bits cannot be guessed.
const MAC: usize = 16;

/// The key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionKeyError {
    /// It cannot be read or made.
    #[error("cannot use the key of MCP sessions, {file}")]
    Unusable {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Whoever reads it can make sessions of others.
    #[error("others can read {file}, the key of MCP sessions; remove it, or `chmod 600` it")]
    Exposed {
        /// The file.
        file: PathBuf,
    },
    /// No randomness.
    #[error("cannot make a key for MCP sessions")]
    Random(#[from] getrandom::Error),
}

/// Makes and reads ids.
pub(super) struct SessionKey([u8; 32]);

/// A session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct McpSession {
    /// Tells it from all others.
    pub(super) random: u64,
    /// What was agreed on.
    pub(super) version: Version,
    /// What the client can.
    pub(super) capabilities: Capabilities,
}

/// Whose session it is, and at which address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'w> {
    /// The name of the token.
    pub(super) token: &'w str,
    /// The view.
    pub(super) view: &'w str,
}

impl SessionKey {
    /// The key of the state directory, made if there is none. One that cannot be kept is made anew with each start.
    pub(super) fn open(state_dir: &Path) -> Result<Self, SessionKeyError> {
        let file = state_dir.join(KEY_FILE);
        let unusable = |source| SessionKeyError::Unusable { file: file.clone(), source };
        match File::open(&file) {
            Ok(mut open) => {
                if open.metadata().map_err(unusable)?.mode() & 0o077 != 0 {
                    return Err(SessionKeyError::Exposed { file });
                }
                let mut key = [0; 32];
                open.read_exact(&mut key).map_err(unusable)?;
                Ok(Self(key))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = Self::random()?;
                if let Err(error) = replacement::replace(&file, &key.0, 0o600) {
                    let file = file.display();
                    tracing::warn!(%error, %file, "MCP sessions end with the daemon: their key is not kept");
                }
                Ok(key)
            }
            Err(error) => Err(unusable(error)),
        }
    }

    /// A key that nobody keeps.
    pub(super) fn random() -> Result<Self, SessionKeyError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    /// A new session and its id.
    pub(super) fn begin(
        &self,
        version: Version,
        capabilities: Capabilities,
        whose: Whose<'_>,
        now: SystemTime,
    ) -> Result<(McpSession, String), SessionKeyError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)?;
        let session = McpSession { random: u64::from_be_bytes(random), version, capabilities };
        let mut id = Vec::with_capacity(BODY + MAC);
        id.extend([LAYOUT, version as u8]);
        id.extend(capabilities.bits().to_be_bytes());
        id.extend((seconds(now) as u32).to_be_bytes());
        id.extend(random);
        id.extend(digest(whose.view));
        id.extend(digest(whose.token));
        let mac = self.mac(&id).finalize().into_bytes();
        id.extend(&mac[..MAC]);
        Ok((session, BASE64_URL_SAFE_NO_PAD.encode(id)))
    }

    /// The session of an id that was made here for `whose`, not too long ago.
    pub(super) fn read(&self, id: &str, whose: Whose<'_>, now: SystemTime) -> Option<McpSession> {
        let id = BASE64_URL_SAFE_NO_PAD.decode(id).ok().filter(|id| id.len() == BODY + MAC)?;
        let (body, mac) = id.split_at(BODY);
        self.mac(body).verify_truncated_left(mac).ok()?;
        let (layout, rest) = body.split_first_chunk::<1>()?;
        let (version, rest) = rest.split_first_chunk::<1>()?;
        let (capabilities, rest) = rest.split_first_chunk::<2>()?;
        let (made, rest) = rest.split_first_chunk::<4>()?;
        let (random, rest) = rest.split_first_chunk::<8>()?;
        let (view, token) = rest.split_first_chunk::<8>()?;
        let (made, now) = (u64::from(u32::from_be_bytes(*made)), seconds(now));
        let is_timely = made <= now + CLOCK_SKEW.as_secs() && now <= made + LIFETIME.as_secs();
        let is_meant = *layout == [LAYOUT] && *view == digest(whose.view) && *token == digest(whose.token);
        if !is_timely || !is_meant {
            return None;
        }
        Some(McpSession {
            random: u64::from_be_bytes(*random),
            version: *Version::ALL.get(usize::from(version[0]))?,
            capabilities: Capabilities::from_bits(u16::from_be_bytes(*capabilities)),
        })
    }

    /// A MAC under this key.
    pub(super) fn mac(&self, content: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(content);
        mac
    }
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionKey").finish_non_exhaustive()
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn digest(text: &str) -> [u8; 8] {
    let sum = Sha256::digest(text);
    sum.first_chunk().copied().expect("a SHA-256 sum has 32 bytes")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    const MINE: Whose<'_> = Whose { token: "ci", view: "" };

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_790_000_000)
    }

    fn begin(key: &SessionKey) -> (McpSession, String) {
        key.begin(Version::V2025_11_25, Capabilities::SAMPLING, MINE, now()).unwrap()
    }

    #[test]
    fn a_session_is_read_from_its_id_by_its_owner_alone() {
        let key = SessionKey::random().unwrap();
        let (session, id) = begin(&key);
        assert_eq!(key.read(&id, MINE, now()), Some(session));
        assert_eq!(key.read(&id, Whose { token: "other", ..MINE }, now()), None);
        assert_eq!(key.read(&id, Whose { view: "all", ..MINE }, now()), None);
        assert_eq!(SessionKey::random().unwrap().read(&id, MINE, now()), None);
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(key.read(&id, MINE, now() + 29 * day), Some(session));
        assert_eq!(key.read(&id, MINE, now() + 31 * day), None);
        assert_eq!(key.read(&id, MINE, now() - day), None);
        assert_ne!(begin(&key).1, id);
    }

    proptest! {
        #[test]
        fn an_id_that_was_touched_is_none(place in 0_usize..64, other in "[A-Za-z0-9_-]") {
            let key = SessionKey::random().unwrap();
            let (_, id) = begin(&key);
            prop_assume!(id[place..=place] != other);
            let touched = format!("{}{other}{}", &id[..place], &id[place + 1..]);
            prop_assert_eq!(key.read(&touched, MINE, now()), None);
        }

        #[test]
        fn whatever_is_sent_is_no_id(text in ".{0,200}") {
            prop_assert_eq!(SessionKey::random().unwrap().read(&text, MINE, now()), None);
        }
    }

    #[test]
    fn the_key_stays_and_is_nobody_elses() {
        let directory = tempfile::tempdir().unwrap();
        let (session, id) = begin(&SessionKey::open(directory.path()).unwrap());
        assert_eq!(SessionKey::open(directory.path()).unwrap().read(&id, MINE, now()), Some(session));
        let file = directory.path().join(KEY_FILE);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(SessionKey::open(directory.path()), Err(SessionKeyError::Exposed { .. })));
        // A state that cannot be written does not keep the daemon from answering.
        SessionKey::open(&directory.path().join("not/there")).unwrap();
    }
}
