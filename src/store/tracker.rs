//! Counts what sessions call next, in the transaction that stores the calls.
//!
//! A group of records touches the same trails many times, so their states are read once, counted in memory, and written once
//! at the group's end.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::trail::{Followed, Followers, MAX_TRAILS, Trail};
use super::{Execution, Outcome};

/// The trails that one transaction touches.
pub(super) struct Tracker<'t> {
    transaction: &'t Transaction<'t>,
    touched: HashMap<Trail, usize>,
    states: Vec<Followed>,
}

impl<'t> Tracker<'t> {
    pub(super) fn new(transaction: &'t Transaction<'t>) -> Self {
        Self { transaction, touched: HashMap::new(), states: Vec::new() }
    }

    /// Takes note of a call that is about to be stored.
    pub(super) fn called(&mut self, execution: &Execution) -> rusqlite::Result<()> {
        let Some(session) = &execution.session else { return Ok(()) };
        let mut latest = self.transaction.prepare_cached(
            "SELECT tool FROM executions WHERE tenant = ?1 AND session = ?2 ORDER BY id DESC LIMIT 2",
        )?;
        let earlier: Vec<String> =
            latest.query_map(params![execution.tenant, session], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let mut earlier = earlier.into_iter();
        let Some(last) = earlier.next() else { return Ok(()) };
        let succeeded = execution.outcome == Outcome::Success;
        if let Some(before) = earlier.next() {
            self.observe(Trail { before: Some(before), last: last.clone() }, &execution.tool, succeeded)?;
        }
        self.observe(Trail { before: None, last }, &execution.tool, succeeded)
    }

    fn observe(&mut self, trail: Trail, tool: &str, succeeded: bool) -> rusqlite::Result<()> {
        let position = if let Some(position) = self.touched.get(&trail) {
            *position
        } else {
            let followers = read(self.transaction, &trail)?.unwrap_or_default();
            self.states.push(Followed { trail: trail.clone(), followers, tick: 0 });
            self.touched.insert(trail, self.states.len() - 1);
            self.states.len() - 1
        };
        self.states[position].followers.observe(tool, succeeded);
        Ok(())
    }

    /// Writes what was counted, and says what it came to.
    pub(super) fn write(mut self) -> rusqlite::Result<Arc<[Followed]>> {
        if self.states.is_empty() {
            return Ok(Arc::default());
        }
        let latest: i64 = self
            .transaction
            .prepare_cached("SELECT coalesce(max(tick), 0) FROM trails")?
            .query_row([], |row| row.get(0))?;
        let mut put = self.transaction.prepare_cached(
            "INSERT INTO trails (before, last, followers, tick) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET followers = excluded.followers, tick = excluded.tick",
        )?;
        for (state, tick) in self.states.iter_mut().zip(latest + 1..) {
            let before = state.trail.before.as_deref().unwrap_or_default();
            put.execute(params![before, state.trail.last, state.followers.encode(), tick])?;
            state.tick = tick.cast_unsigned();
        }
        Ok(self.states.into())
    }
}

fn read(transaction: &Transaction<'_>, trail: &Trail) -> rusqlite::Result<Option<Followers>> {
    transaction
        .prepare_cached("SELECT followers FROM trails WHERE before = ?1 AND last = ?2")?
        .query_row(params![trail.before.as_deref().unwrap_or_default(), trail.last], |row| {
            Ok(Followers::decode(&row.get::<_, String>(0)?))
        })
        .optional()
}

/// The latest trails, earliest first.
pub(super) fn read_all(connection: &Connection) -> rusqlite::Result<Vec<Followed>> {
    let mut select =
        connection.prepare("SELECT before, last, followers, tick FROM trails ORDER BY tick DESC LIMIT ?1")?;
    let rows = select.query_map([MAX_TRAILS as i64], |row| {
        let before: String = row.get(0)?;
        let trail = Trail { before: Some(before).filter(|before| !before.is_empty()), last: row.get(1)? };
        let followers = Followers::decode(&row.get::<_, String>(2)?);
        Ok(Followed { trail, followers, tick: row.get::<_, i64>(3)?.cast_unsigned() })
    })?;
    let mut all: Vec<Followed> = rows.collect::<rusqlite::Result<_>>()?;
    all.reverse();
    Ok(all)
}

/// Forgets all but the latest trails.
pub(super) fn prune(connection: &Connection) -> rusqlite::Result<()> {
    let beyond = "DELETE FROM trails WHERE tick <= (SELECT tick FROM trails ORDER BY tick DESC LIMIT 1 OFFSET ?1)";
    connection.execute(beyond, [MAX_TRAILS as i64]).map(drop)
}
