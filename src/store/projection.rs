//! What follows from the records: how many there are of each key, and what sessions called next.
//!
//! All of it is a projection over the records in their order, so the records alone have to be flushed for each
//! acknowledgement. The projection stands in memory and is written now and then, together with the id of the last
//! record in it; at a start, what was stored after that is folded again, to the same states.

use std::collections::HashMap;
use std::sync::Arc;

use crate::suggest::transitions::{Followers, Prefix, Transition};
use crate::timing::{Execution, Outcome};

/// Records after which the projection is written: so many are folded again after a kill, which takes some milliseconds.
const DUE: usize = 4096;

/// Sessions whose last calls are held; of others they are looked up.
const MAX_SESSIONS: usize = 10_000;

/// Keys, and prefixes, that are held once all of them are written.
const MAX_HELD: usize = 20_000;

/// What was written of it before, for whatever is not in memory.
pub(super) trait WrittenBefore {
    type Error;

    /// How many records of a key there were with a duration; nothing if it is not known.
    fn samples(&mut self, key: &CountedKey) -> Result<Option<i64>, Self::Error>;

    fn followers(&mut self, prefix: &Prefix) -> Result<Followers, Self::Error>;

    /// The last calls of a session before the record of this id.
    fn latest(&mut self, id: i64, tenant: &str, session: &str) -> Result<Option<Latest>, Self::Error>;
}

/// The projection, and the records that it is not written with yet.
#[derive(Debug, Default)]
pub(super) struct Projection {
    /// The id of the last record in it.
    pub(super) through: i64,
    /// Of the state that changed last.
    pub(super) tick: i64,
    unwritten: usize,
    /// By tenant, then by name.
    sessions: HashMap<String, HashMap<String, Latest>>,
    held_sessions: usize,
    prefixes: HashMap<Prefix, PrefixState>,
    counts: HashMap<CountedKey, KeySamples>,
    /// Trails that changed since changes were taken.
    changed: Vec<Prefix>,
}

/// The last calls of a session.
#[derive(Debug, Clone)]
pub(super) struct Latest {
    pub(super) last: String,
    pub(super) before: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct PrefixState {
    pub(super) followers: Arc<Followers>,
    pub(super) tick: i64,
    is_written: bool,
    is_told: bool,
}

/// A tool in a mode, empty for none; failures apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CountedKey {
    pub(super) tool: String,
    pub(super) mode: String,
    pub(super) failed: bool,
}

#[derive(Debug)]
pub(super) struct KeySamples {
    pub(super) samples: i64,
    pub(super) last_id: i64,
    is_written: bool,
}

/// What a record tells the projection.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoldedCall<'r> {
    pub(super) tenant: &'r str,
    pub(super) tool: &'r str,
    pub(super) mode: &'r str,
    pub(super) outcome: Outcome,
    pub(super) session: Option<&'r str>,
    /// Is its duration known? Only such records are counted.
    pub(super) is_timed: bool,
}

impl<'r> FoldedCall<'r> {
    pub(super) fn of(execution: &'r Execution) -> Self {
        Self {
            tenant: &execution.tenant,
            tool: &execution.tool,
            mode: execution.mode.as_deref().unwrap_or_default(),
            outcome: execution.outcome,
            session: execution.session.as_deref(),
            is_timed: execution.duration_ms.is_some(),
        }
    }

    pub(super) fn key(&self) -> CountedKey {
        let failed = self.outcome == Outcome::Error;
        CountedKey { tool: self.tool.to_owned(), mode: self.mode.to_owned(), failed }
    }
}

impl Projection {
    /// What was written up to a record, and a state's number.
    pub(super) fn from_there(through: i64, tick: i64) -> Self {
        Self { through, tick, ..Self::default() }
    }

    /// The id of the next record.
    pub(super) fn next_id(&self) -> i64 {
        self.through + 1
    }

    /// Folds the record of [`Projection::next_id`]. Returns how many of its key there are with a duration.
    pub(super) fn add<W: WrittenBefore>(&mut self, before: &mut W, execution: &Execution) -> Result<u64, W::Error> {
        self.take(before, self.next_id(), FoldedCall::of(execution)).map(i64::cast_unsigned)
    }

    /// Folds a record of a later id than all before.
    pub(super) fn take<W: WrittenBefore>(
        &mut self,
        before: &mut W,
        id: i64,
        call: FoldedCall<'_>,
    ) -> Result<i64, W::Error> {
        self.through = id;
        self.unwritten += 1;
        if let Some(session) = call.session {
            self.follow(before, id, session, call)?;
        }
        self.count(before, id, call)
    }

    fn count<W: WrittenBefore>(&mut self, before: &mut W, id: i64, call: FoldedCall<'_>) -> Result<i64, W::Error> {
        let key = call.key();
        if let Some(count) = self.counts.get_mut(&key) {
            count.samples += i64::from(call.is_timed);
            count.last_id = id;
            count.is_written = false;
            return Ok(count.samples);
        }
        let samples = before.samples(&key)?.unwrap_or_default() + i64::from(call.is_timed);
        self.counts.insert(key, KeySamples { samples, last_id: id, is_written: false });
        Ok(samples)
    }

    /// Takes note of what the session called before.
    fn follow<W: WrittenBefore>(
        &mut self,
        written: &mut W,
        id: i64,
        session: &str,
        call: FoldedCall<'_>,
    ) -> Result<(), W::Error> {
        let held = self.sessions.get(call.tenant).and_then(|sessions| sessions.get(session)).cloned();
        let earlier = if held.is_some() {
            held
        } else {
            self.held_sessions += 1;
            written.latest(id, call.tenant, session)?
        };
        let before = earlier.as_ref().map(|earlier| earlier.last.clone());
        let latest = Latest { last: call.tool.to_owned(), before };
        self.sessions.entry(call.tenant.to_owned()).or_default().insert(session.to_owned(), latest);
        let Some(Latest { last, before }) = earlier else { return Ok(()) };
        let succeeded = call.outcome == Outcome::Success;
        if before.is_some() {
            self.observe(written, Prefix { before, last: last.clone() }, call.tool, succeeded)?;
        }
        self.observe(written, Prefix { before: None, last }, call.tool, succeeded)
    }

    fn observe<W: WrittenBefore>(
        &mut self,
        before: &mut W,
        prefix: Prefix,
        tool: &str,
        succeeded: bool,
    ) -> Result<(), W::Error> {
        self.tick += 1;
        let state = if let Some(state) = self.prefixes.get_mut(&prefix) {
            state
        } else {
            let followers = Arc::new(before.followers(&prefix)?);
            let state = PrefixState { followers, is_told: true, ..PrefixState::default() };
            self.prefixes.entry(prefix.clone()).or_insert(state)
        };
        Arc::make_mut(&mut state.followers).observe(tool, succeeded);
        (state.tick, state.is_written) = (self.tick, false);
        if std::mem::take(&mut state.is_told) {
            self.changed.push(prefix);
        }
        Ok(())
    }

    /// Forgets all sessions' last calls, which are looked up again.
    pub(super) fn forget_sessions(&mut self) {
        self.sessions.clear();
        self.held_sessions = 0;
    }

    /// The same of one.
    pub(super) fn forget_session(&mut self, tenant: &str, session: &str) {
        let sessions = self.sessions.get_mut(tenant);
        if sessions.is_some_and(|sessions| sessions.remove(session).is_some()) {
            self.held_sessions -= 1;
        }
    }

    /// Are a session's last calls held?
    pub(super) fn knows(&self, tenant: &str, session: &str) -> bool {
        self.sessions.get(tenant).is_some_and(|sessions| sessions.contains_key(session))
    }

    /// The prefixes that changed since this was asked before, the one that changed last at the end.
    pub(super) fn take_changes(&mut self) -> Arc<[Transition]> {
        let changes = self.changed.drain(..).filter_map(|prefix| {
            let state = self.prefixes.get_mut(&prefix)?;
            state.is_told = true;
            Some(Transition { prefix, followers: Arc::clone(&state.followers), tick: state.tick.cast_unsigned() })
        });
        let mut changes: Vec<Transition> = changes.collect();
        changes.sort_unstable_by_key(|transition| transition.tick);
        changes.into()
    }

    /// Are there so many records that it is not written with that it should be?
    pub(super) fn is_due(&self) -> bool {
        self.unwritten >= DUE
    }

    /// Are there records that it is not written with?
    pub(super) fn is_unwritten(&self) -> bool {
        self.unwritten > 0
    }

    /// The states that it is not written with.
    pub(super) fn unwritten_prefixes(&mut self) -> impl Iterator<Item = (&Prefix, &mut PrefixState)> {
        self.prefixes.iter_mut().filter(|(_, state)| !state.is_written)
    }

    /// The counts that it is not written with.
    pub(super) fn unwritten_counts(&mut self) -> impl Iterator<Item = (&CountedKey, &mut KeySamples)> {
        self.counts.iter_mut().filter(|(_, count)| !count.is_written)
    }

    /// All of it is written.
    pub(super) fn written(&mut self) {
        self.prefixes.values_mut().for_each(|state| state.is_written = true);
        self.counts.values_mut().for_each(|count| count.is_written = true);
        self.unwritten = 0;
    }

    /// Keeps it in bounds. All records have to be in the database.
    pub(super) fn trim(&mut self) {
        self.trim_sessions();
        if self.is_unwritten() || !self.changed.is_empty() {
            return;
        }
        if self.prefixes.len() > MAX_HELD {
            self.prefixes.clear();
        }
        if self.counts.len() > MAX_HELD {
            self.counts.clear();
        }
    }

    /// Keeps sessions in bounds; others' last calls are looked up.
    pub(super) fn trim_sessions(&mut self) {
        if self.held_sessions > MAX_SESSIONS {
            self.forget_sessions();
        }
    }

    /// All states that are held.
    pub(super) fn states(&self) -> impl Iterator<Item = (&Prefix, &Arc<Followers>)> {
        self.prefixes.iter().map(|(prefix, state)| (prefix, &state.followers))
    }

    /// Takes a state that was written.
    pub(super) fn hold_state(&mut self, prefix: Prefix, followers: Arc<Followers>, tick: i64) {
        self.prefixes.insert(prefix, PrefixState { followers, tick, is_written: true, is_told: true });
    }

    /// Takes a count that was written.
    pub(super) fn hold_count(&mut self, key: CountedKey, samples: i64, last_id: i64) {
        self.counts.insert(key, KeySamples { samples, last_id, is_written: true });
    }

    /// Forgets all prefixes, which are looked up again. It has to be written before.
    pub(super) fn forget_prefixes(&mut self) {
        self.prefixes.clear();
        self.changed.clear();
    }
}
