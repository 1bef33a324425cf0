//! What a modern client is given to bring back with its answers: sealed, since all clients share our credential at a
//! server, so that a state is good for whom it was given to, for the same request, and for a while.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::Mac;

use super::session::SessionKey;

/// For how long a state can be brought back.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// Of the MAC, this many bytes.
const MAC: usize = 16;

/// Bytes before the state itself: its kind, and when it ends.
const HEAD: usize = 5;

/// A state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RoundState {
    /// A server's own.
    Server(String),
    /// Of a call that waits here.
    Parked(String),
}

/// What a state is good for.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoodFor<'a> {
    /// The name of the token.
    pub(super) token: &'a str,
    /// The server.
    pub(super) server: &'a str,
    /// The method, and what it is about.
    pub(super) request: (&'a str, &'a str),
}

impl GoodFor<'_> {
    fn bytes(&self) -> Vec<u8> {
        let parts = [self.token, self.server, self.request.0, self.request.1];
        // With their lengths, so that no two are the same.
        parts.iter().flat_map(|part| [&(part.len() as u64).to_be_bytes(), part.as_bytes()].concat()).collect()
    }
}

impl SessionKey {
    /// Seals a state from now on.
    pub(super) fn seal(&self, state: &RoundState, good_for: GoodFor<'_>, now: SystemTime) -> String {
        let (kind, text) = match state {
            RoundState::Server(text) => (0, text),
            RoundState::Parked(text) => (1, text),
        };
        let mut sealed = vec![kind];
        sealed.extend((seconds(now + LIFETIME) as u32).to_be_bytes());
        sealed.extend(text.as_bytes());
        let mac = self.mac(&[sealed.clone(), good_for.bytes()].concat()).finalize().into_bytes();
        sealed.extend(&mac[..MAC]);
        BASE64_URL_SAFE_NO_PAD.encode(sealed)
    }

    /// The state, if it was sealed here for the same and is not too old.
    pub(super) fn unseal(&self, sealed: &str, good_for: GoodFor<'_>, now: SystemTime) -> Option<RoundState> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok().filter(|sealed| sealed.len() >= HEAD + MAC)?;
        let (body, mac) = sealed.split_at(sealed.len() - MAC);
        self.mac(&[body, &good_for.bytes()].concat()).verify_truncated_left(mac).ok()?;
        let (kind, rest) = body.split_first()?;
        let (until, text) = rest.split_first_chunk::<4>()?;
        if seconds(now) > u64::from(u32::from_be_bytes(*until)) {
            return None;
        }
        let text = String::from_utf8(text.to_vec()).ok()?;
        Some(if *kind == 0 { RoundState::Server(text) } else { RoundState::Parked(text) })
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINE: GoodFor<'_> = GoodFor { token: "ci", server: "files", request: ("tools/call", "read") };

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_790_000_000)
    }

    #[test]
    fn a_state_is_good_for_the_same_request_of_the_same_token_for_a_while() {
        let key = SessionKey::random().unwrap();
        for state in [RoundState::Server("{\"a\":1} ✓".to_owned()), RoundState::Parked(String::new())] {
            let sealed = key.seal(&state, MINE, now());
            let check = |good_for: GoodFor<'_>, later: u64, expected: bool| {
                let found = key.unseal(&sealed, good_for, now() + Duration::from_secs(later));
                assert_eq!(found, expected.then(|| state.clone()), "{good_for:?} {later}");
            };
            check(MINE, 0, true);
            check(MINE, 15 * 60, true);
            check(MINE, 15 * 60 + 1, false);
            check(GoodFor { token: "other", ..MINE }, 0, false);
            check(GoodFor { server: "other", ..MINE }, 0, false);
            check(GoodFor { request: ("tools/call", "write"), ..MINE }, 0, false);
            check(GoodFor { request: ("prompts/get", "read"), ..MINE }, 0, false);
            assert_eq!(SessionKey::random().unwrap().unseal(&sealed, MINE, now()), None);
        }
    }

    proptest! {
        #[test]
        fn a_state_that_was_touched_is_none(state in ".{0,40}", place: prop::sample::Index, other in "[A-Za-z0-9_-]") {
            let key = SessionKey::random().unwrap();
            let sealed = key.seal(&RoundState::Server(state), MINE, now());
            let place = place.index(sealed.len());
            prop_assume!(sealed[place..=place] != other);
            let touched = format!("{}{other}{}", &sealed[..place], &sealed[place + 1..]);
            prop_assert_eq!(key.unseal(&touched, MINE, now()), None);
        }

        #[test]
        fn whatever_is_sent_is_no_state(text in ".{0,200}") {
            prop_assert_eq!(SessionKey::random().unwrap().unseal(&text, MINE, now()), None);
        }
    }
}
