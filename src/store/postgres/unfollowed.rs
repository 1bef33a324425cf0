//! Purges that this daemon had not followed when it noted something, its own included. What went with one of them is
//! not written again: whoever notes and whoever purges take turns, so a purge finds what was written before it, and
//! what is written after it finds the purge.

use std::collections::{BTreeMap, BTreeSet};

use imbl::HashMap;
use serde::Deserialize;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::session::DatabaseSession;
use crate::store::ForgottenTexts;
use crate::store::forgotten_texts::TextDigest;
use crate::store::notes::{Note, digest};

/// The class of the locks that a tenant's notes and purges share, and how many there are: the server has room for some
/// thousands, and a transaction may hold all.
const LOCKS: (i32, u32) = (0x6e6f_7465, 512);

/// How long one of them is waited for; longer than a step of a purge takes.
const PATIENCE: &str = "SELECT set_config('lock_timeout', '2s', true)";

/// The last purge of each tenant that is followed, by its stamp. A copy is cheap.
#[derive(Debug, Clone, Default)]
pub(super) struct PurgesFollowed(HashMap<String, i64>);

impl PurgesFollowed {
    pub(super) fn insert(&mut self, tenant: &str, stamp: i64) {
        let last = self.0.entry(tenant.to_owned()).or_insert(stamp);
        *last = stamp.max(*last);
    }

    fn last(&self, tenant: &str) -> i64 {
        self.0.get(tenant).copied().unwrap_or_default()
    }
}

/// One that removed something which notes may say.
#[derive(Debug)]
struct UnfollowedPurge {
    stamp: i64,
    has_choices: bool,
    sessions: Vec<String>,
    texts: ForgottenTexts,
}

/// By tenant.
#[derive(Debug, Default)]
pub(super) struct Unfollowed(BTreeMap<String, Vec<UnfollowedPurge>>);

impl Unfollowed {
    /// Those that were not followed when these were noted. No daemon's purge of the tenants comes before the
    /// transaction ends.
    pub(super) async fn read<'n>(
        session: &DatabaseSession,
        notes: impl Iterator<Item = (&'n Note, &'n PurgesFollowed)>,
    ) -> Result<Self, DatabaseFault> {
        let mut beyond = BTreeMap::<&str, i64>::new();
        for (note, followed) in notes {
            let last = followed.last(note.tenant());
            beyond.entry(note.tenant()).and_modify(|known| *known = last.min(*known)).or_insert(last);
        }
        let (tenants, stamps): (Vec<&str>, Vec<i64>) = beyond.into_iter().unzip();
        if tenants.is_empty() {
            return Ok(Self::default());
        }
        // In one order, so that no two daemons wait for each other.
        let locks: BTreeSet<i32> = tenants.iter().map(|tenant| lock_of(tenant)).collect();
        let (class, locks) = ((&LOCKS.0 as _, Type::INT4), locks.into_iter().collect::<Vec<_>>());
        session.query(PATIENCE, &[]).await?;
        let take = "SELECT pg_advisory_xact_lock_shared($1, number) FROM unnest($2::int4[]) AS number";
        session.query(take, &[class, (&locks, Type::INT4_ARRAY)]).await?;
        let later = "SELECT tenant, stamp, sessions, texts, has_choices
            FROM unnest($1::text[], $2::int8[]) AS noted (tenant, beyond)
            JOIN almanac.purges USING (tenant) WHERE stamp > beyond";
        let values = [(&tenants as _, Type::TEXT_ARRAY), (&stamps as _, Type::INT8_ARRAY)];
        let mut purges = BTreeMap::<String, Vec<UnfollowedPurge>>::new();
        for row in session.query(later, &values).await? {
            let texts = row.get::<_, Option<&[u8]>>(3).map(ForgottenTexts::of_bytes).unwrap_or_default();
            let (stamp, sessions, has_choices) = (row.get(1), row.get(2), row.get(4));
            let purge = UnfollowedPurge { stamp, has_choices, sessions, texts };
            purges.entry(row.get(0)).or_default().push(purge);
        }
        Ok(Self(purges))
    }

    /// Does the note say what went with one of them, or stand for what did?
    pub(super) fn has(&self, note: &Note, followed: &PurgesFollowed) -> bool {
        if !self.0.contains_key(note.tenant()) {
            return false;
        }
        let said = digests(note);
        let session = if let Note::Turn(turn) = note { Some(&turn.session) } else { None };
        self.of(note, followed).any(|purge| {
            session.is_some_and(|session| purge.sessions.contains(session))
                || said.iter().any(|digest| purge.texts.has_digest(digest))
        })
    }

    /// Did one of them reset what the tenant's choices had moved, from which this note goes on?
    pub(super) fn resets(&self, note: &Note, followed: &PurgesFollowed) -> bool {
        self.of(note, followed).any(|purge| purge.has_choices)
    }

    fn of(&self, note: &Note, followed: &PurgesFollowed) -> impl Iterator<Item = &UnfollowedPurge> {
        let last = followed.last(note.tenant());
        self.0.get(note.tenant()).into_iter().flatten().filter(move |purge| purge.stamp > last)
    }
}

/// Waits for those who note something of the tenant, in the transaction of a purge, which holds no other lock of the
/// tenant's yet.
pub(super) async fn await_notes(session: &DatabaseSession, tenant: &str) -> Result<(), DatabaseFault> {
    let lock = lock_of(tenant);
    session.query(PATIENCE, &[]).await?;
    let take = "SELECT pg_advisory_xact_lock($1, $2)";
    session.query(take, &[(&LOCKS.0 as _, Type::INT4), (&lock as _, Type::INT4)]).await.map(drop)
}

/// Of tenants that share one, one waits in vain.
fn lock_of(tenant: &str) -> i32 {
    let [a, b, c, d, ..] = digest(tenant);
    (u32::from_le_bytes([a, b, c, d]) % LOCKS.1).cast_signed()
}

/// What a note says.
fn digests(note: &Note) -> Vec<TextDigest> {
    match note {
        Note::Turn(turn) => {
            let said = TurnTexts::of(&turn.state).all().map(|text| digest(&text));
            said.chain(turn.kept.as_ref().map(|kept| kept.digest)).collect()
        }
        Note::Choice(choice) => vec![digest(&choice.message)],
    }
}

/// What a session was told, of a turn's state.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TurnTexts {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    said: Vec<String>,
}

impl TurnTexts {
    /// Nothing, of a state that is none.
    pub(super) fn of(state: &str) -> Self {
        serde_json::from_str(state).unwrap_or_default()
    }

    pub(super) fn all(self) -> impl Iterator<Item = String> {
        self.message.into_iter().chain(self.said)
    }
}
